/* Clients share the partitions that housekeeping looks at: one that comes too late looks at fewer,
 * one that comes first at more, none is forgotten, and after a lost answer a client looks at all.
 * ctest: release */
#define NPARTS 96
#include "meta_test.h"

#include <string.h>

#include "meta/session/session.h"

#define LEAST 32 /* partitions of one go */

static bool looked[NPARTS];

static int note_look(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    if (argc > 0 && argv[0].len == 10 && memcmp(argv[0].p, "mfs_chores", 10) == 0)
        looked[part] = true;
    return 0;
}

/* At how many partitions one go looks. */
static unsigned go(struct meta_client *c)
{
    unsigned n = 0;

    memset(looked, 0, sizeof looked);
    mfs_store_set_fault(c->store, note_look, NULL);
    mfs_chores_tick(c->meta);
    mfs_store_set_fault(c->store, NULL, NULL);
    for (unsigned i = 0; i < NPARTS; i++)
        n += looked[i];
    return n;
}

static int setup_alone(void **state)
{
    int rc = setup(state);

    /* Their own threads do nothing of the kind meanwhile, and what is looked at stays so. */
    mfs_ticker_stop(&a.meta->chores_ticker);
    mfs_ticker_stop(&b.meta->chores_ticker);
    a.meta->limits.chores_ms = b.meta->limits.chores_ms = 60000;
    return rc;
}

static void whoever_comes_first_looks_at_more(void **state)
{
    (void)state;
    assert_int_equal(go(&a), LEAST); /* all were free, as for the next ones: */
    assert_int_equal(go(&a), 2 * LEAST);
    /* All of them are taken. */
    assert_int_equal(go(&a), NPARTS);
    assert_int_equal(go(&a), NPARTS / 2);
    assert_int_equal(go(&a), LEAST);
    assert_int_equal(go(&b), LEAST);
    assert_int_equal(go(&b), LEAST);
}

static void no_partition_is_forgotten(void **state)
{
    bool seen[NPARTS] = {false};

    (void)state;
    while (go(&a) < NPARTS) /* so b comes too late always */
        ;
    for (unsigned round = 0; round < NPARTS / LEAST; round++) {
        assert_int_equal(go(&b), LEAST);
        for (unsigned i = 0; i < NPARTS; i++) {
            assert_false(seen[i] && looked[i]);
            seen[i] = seen[i] || looked[i];
        }
    }
}

static void a_lost_answer_has_a_client_look_at_all(void **state)
{
    (void)state;
    mfs_session_note_outcome(a.meta, -ENOENT);
    assert_int_equal(go(&a), LEAST);
    mfs_session_note_outcome(a.meta, -EIO);
    assert_int_equal(go(&a), NPARTS);
    assert_int_equal(go(&a), NPARTS);
    a.meta->round.all_until = 0; /* time has passed */
    assert_true(go(&a) < NPARTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whoever_comes_first_looks_at_more, setup_alone, teardown),
        cmocka_unit_test_setup_teardown(no_partition_is_forgotten, setup_alone, teardown),
        cmocka_unit_test_setup_teardown(a_lost_answer_has_a_client_look_at_all, setup_alone,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
