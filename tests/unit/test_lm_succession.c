/* Which copies of cm's state an lm keeps: what it has voted for, and has kept, binds it, also when
 * it was killed and started again. ctest: timeout=60 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "lm_world.h"

static int keep(struct lm_world *w, uint64_t term, uint32_t candidate, uint64_t base,
                uint64_t revision)
{
    char text[64];
    struct mfs_msg_state m = {
        .term = term, .revision = revision, .candidate = candidate, .base = base, .text = text};

    /* As cm writes it: what is 0 is left out. */
    if (term != 0)
        snprintf(text, sizeof text, "{\"term\":%d,\"revision\":%d}", (int)term, (int)revision);
    else
        snprintf(text, sizeof text, "{\"revision\":%d}", (int)revision);
    return lm_world_ask(w, MFS_MSG_STATE, &m);
}

static int vote(struct lm_world *w, uint64_t term, uint32_t candidate)
{
    struct mfs_msg_follow m = {.term = term, .candidate = candidate};

    return lm_world_ask(w, MFS_MSG_FOLLOW, &m);
}

static void restart(struct lm_world *w)
{
    lm_world_kill_lm(w);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
}

static void test_a_vote_is_for_ever(void **state)
{
    struct lm_world *w = *state;

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(keep(w, 0, 0, 0, 1), 0);
    assert_int_equal(keep(w, 0, 0, 0, 2), 0);
    assert_int_equal(vote(w, 1, 2), 0);
    assert_int_equal(keep(w, 0, 0, 0, 3), -EBUSY); /* the other cm would not know of it */
    assert_int_equal(keep(w, 1, 3, 0, 3), -EBUSY);
    assert_int_equal(keep(w, 1, 2, 0, 3), 0);
    assert_int_equal(keep(w, 0, 0, 0, 4), -ESTALE);
    assert_int_equal(keep(w, 1, 3, 0, 4), -ESTALE);
}

static void test_a_raised_term_goes_on_from_what_is_here(void **state)
{
    struct lm_world *w = *state;

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(keep(w, 1, 2, 0, 1), 0);
    assert_int_equal(keep(w, 3, 4, 0, 2), -ESTALE); /* that cm has not seen term 1 */
    assert_int_equal(keep(w, 3, 4, 1, 2), 0);
}

static void test_a_new_lm_keeps_to_it(void **state)
{
    struct lm_world *w = *state;

    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(keep(w, 0, 0, 0, 1), 0);
    assert_int_equal(vote(w, 2, 1), 0);
    restart(w);
    assert_int_equal(w->join.vote_term, 2);
    assert_int_equal(w->join.copy_revision, 1);
    assert_int_equal(keep(w, 0, 0, 0, 2), -EBUSY);
    assert_int_equal(keep(w, 3, 0, 0, 2), 0);
    restart(w);
    assert_int_equal(w->join.term, 3);
    assert_int_equal(keep(w, 2, 1, 0, 3), -ESTALE);
}

/* What has changed is put into the copy that is there, and only into that one. */
static void test_a_copy_is_edited(void **state)
{
    struct lm_world *w = *state;
    char text[] = "{\"revision\":1}", later[] = "{\"revision\":2}", two[] = "2";
    struct mfs_edit edit = {.at = 12, .cut = 1, .text = two};
    struct mfs_msg_state m = {.revision = 2, .nedits = 1, .edit = &edit};

    mfs_table_digest_text(mfs_hash64(text, strlen(text), 0), m.of);
    assert_int_equal(lm_world_ask(w, MFS_MSG_STATE, &m), -ENODATA); /* there is none */
    assert_int_equal(keep(w, 0, 0, 0, 1), 0);
    edit.at = 100;
    assert_int_equal(lm_world_ask(w, MFS_MSG_STATE, &m), -ENODATA);
    edit.at = 12;
    assert_int_equal(lm_world_ask(w, MFS_MSG_STATE, &m), 0);
    m.revision = 3;
    assert_int_equal(lm_world_ask(w, MFS_MSG_STATE, &m), -ENODATA); /* it is another one by now */
    mfs_table_digest_text(mfs_hash64(later, strlen(later), 0), m.of);
    assert_int_equal(lm_world_ask(w, MFS_MSG_STATE, &m), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lm_world_setup, lm_world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_copy_is_edited),
        TEST(test_a_vote_is_for_ever),
        TEST(test_a_raised_term_goes_on_from_what_is_here),
        TEST(test_a_new_lm_keeps_to_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
