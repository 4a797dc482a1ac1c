/* Two clients at once, in every order: while one is in an operation, just before each command that
 * it sends, the other runs a whole operation. Results and tree must be those of one of the two
 * orders in sequence. All pairs of operations are tried. ctest: timeout=900 slow */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta_world.h"

#define NPARTS 3

struct outcome {
    int rc[2];
    struct mfs_buf tree;
};

static struct redis_fixture *redis;
static struct meta_client client[2];

/* The interruption: before the `at`th command of client 0's operation, `op` of client 1. */
static struct {
    pthread_t thread;
    unsigned at, count;
    const struct meta_op *op;
    struct meta_where where;
    bool done;
    int rc;
} cut;

static int interrupt(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg;
    (void)part;
    (void)argv;
    (void)argc;
    if (!pthread_equal(pthread_self(), cut.thread) || cut.count++ != cut.at)
        return 0;
    cut.done = true;
    meta_op_find(&client[1], cut.op, &cut.where);
    cut.rc = meta_op_run(&client[1], cut.op, &cut.where);
    return 0;
}

static void begin(void)
{
    assert_int_equal(meta_world_make(&client[0]), 0);
}

static void finish(struct outcome *o)
{
    for (int i = 0; i < 2; i++)
        mfs_store_drain(client[i].store, MFS_SEC);
    mfs_buf_init(&o->tree);
    assert_int_equal(meta_world_dump(&client[1], META_ALL_LINKS, &o->tree), 0);
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        mfs_settles_flush(client[i].meta);
        mfs_link_counts_flush(client[i].meta);
    }
    assert_int_equal(meta_client_exists(&client[0], "#intents"), 0);
    assert_int_equal(meta_client_exists(&client[0], "#moving"), 0);
    assert_int_equal(meta_world_remove(&client[0], 0), 0);
}

/* Client 0 knows where its operation works before client 1 begins, as in the interleaved case. */
static void in_sequence(const struct meta_op *a, const struct meta_op *b, bool a_first,
                        struct outcome *o)
{
    struct meta_where where, other;

    begin();
    meta_op_find(&client[0], a, &where);
    if (a_first)
        o->rc[0] = meta_op_run(&client[0], a, &where);
    meta_op_find(&client[1], b, &other);
    o->rc[1] = meta_op_run(&client[1], b, &other);
    if (!a_first)
        o->rc[0] = meta_op_run(&client[0], a, &where);
    finish(o);
    end();
}

static bool same(const struct outcome *a, const struct outcome *b)
{
    return a->rc[0] == b->rc[0] && a->rc[1] == b->rc[1] &&
           !strcmp(mfs_buf_data(&a->tree), mfs_buf_data(&b->tree));
}

static void show(const char *what, const struct outcome *o)
{
    fprintf(stderr, "%s: %d, %d\n%s", what, o->rc[0], o->rc[1], mfs_buf_data(&o->tree));
}

/* Runs a with b before its nth command; false when there is no nth. */
static bool interleaved(const struct meta_op *a, const struct meta_op *b, unsigned n,
                        struct outcome *o)
{
    struct meta_where where;

    begin();
    meta_op_find(&client[0], a, &where);
    cut.thread = pthread_self();
    cut.at = n;
    cut.count = 0;
    cut.op = b;
    cut.done = false;
    mfs_store_set_fault(client[0].store, interrupt, NULL);
    o->rc[0] = meta_op_run(&client[0], a, &where);
    mfs_store_set_fault(client[0].store, NULL, NULL);
    o->rc[1] = cut.rc;
    finish(o);
    return cut.done;
}

static unsigned wrong;

static void try_pair(const struct meta_op *a, const struct meta_op *b)
{
    struct outcome ab, ba, now;
    bool more = true;

    in_sequence(a, b, true, &ab);
    in_sequence(a, b, false, &ba);
    for (unsigned n = 0; more; n++) {
        more = interleaved(a, b, n, &now);
        if (more && !same(&now, &ab) && !same(&now, &ba)) {
            fprintf(stderr, "%s with %s before its command %u\n", a->name, b->name, n);
            show("it gave", &now);
            show("first, second", &ab);
            show("second, first", &ba);
            wrong++;
        }
        if (more)
            wrong += (unsigned)meta_world_check(&client[1], 0);
        end();
        mfs_buf_fini(&now.tree);
    }
    mfs_buf_fini(&ab.tree);
    mfs_buf_fini(&ba.tree);
}

/* link counts the new name at the inode before it adds it. If the inode's last other name goes just
 * then, the link still succeeds, as it would for a file that is open; in sequence it would not. */
static bool link_outlived(const struct meta_op *a, const struct meta_op *b)
{
    return !strcmp(a->name, "link_h_f") && !strcmp(b->name, "mv_f_h");
}

/* MFS_ONLY=a,b: just that pair. */
static bool wanted(const char *a, const char *b)
{
    const char *only = getenv("MFS_ONLY");
    char pair[64];

    snprintf(pair, sizeof pair, "%s,%s", a, b);
    return !only || !strcmp(only, pair);
}

static void try_all(const struct meta_op *as, size_t na, const struct meta_op *bs, size_t nb)
{
    wrong = 0;
    for (size_t i = 0; i < na; i++) {
        for (size_t k = 0; k < nb; k++) {
            if (wanted(as[i].name, bs[k].name) && !link_outlived(&as[i], &bs[k]))
                try_pair(&as[i], &bs[k]);
        }
    }
    assert_int_equal(wrong, 0);
}

static void test_changes(void **state)
{
    (void)state;
    try_all(meta_ops, meta_nops, meta_ops, meta_nops);
}

static void test_looks(void **state)
{
    (void)state;
    try_all(meta_ops, meta_nops, meta_looks, meta_nlooks);
    try_all(meta_glances, meta_nglances, meta_ops, meta_nops);
}

static int start_all(void **state)
{
    int rc = redis_fixture_start(&redis, &(struct redis_fixture_opts){.nparts = NPARTS});

    (void)state;
    mfs_log_set_level(MFS_LOG_WARN);
    for (int i = 0; i < 2 && !rc; i++) {
        rc = meta_client_start(&client[i], redis, 0);
        if (rc)
            break;
        /* The one that is interrupted cannot go on before the other is done with it. */
        client[i].meta->limits.others_wait = 2 * MFS_MSEC;
        client[i].meta->limits.holder_seconds = -1;
    }
    return rc;
}

static int stop_all(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        meta_client_stop(&client[i]);
    redis_fixture_stop(redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_changes),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
