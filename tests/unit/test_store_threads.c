/* Many threads on several partitions: every value read is the one written, nothing is lost,
 * executed twice or out of order, also while partitions are fenced, moved or given back. ctest:
 * threaded */
#include <pthread.h>
#include <stdatomic.h>

#include "base/threads/thread.h"
#include "store_test.h"

#define NPARTS  4
#define THREADS 8
#define BIG     (256 << 10)

static struct store_test t;
static atomic_bool stop;

static int setup(void **state)
{
    (void)state;
    stop = false;
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = NPARTS, .tcp = true},
                    &(struct mfs_store_opts){
                        .io_timeout = 20 * MFS_SEC, .table_wait = 5 * MFS_SEC, .idle_per_part = 3});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_test_close(&t);
    return 0;
}

struct hammer {
    pthread_t thread;
    unsigned id;
    int rounds; /* 0: until `stop` */
    int done;
    int rc;
    const char *what; /* went wrong */
};

static int spoil(struct hammer *h, int rc, const char *what)
{
    h->rc = rc;
    h->what = what;
    return rc;
}

/* One call with a value for every partition and, behind each, its read. */
static int write_and_read(struct hammer *h, unsigned round, unsigned char *out, unsigned char *in)
{
    struct mfs_args a[2 * NPARTS];
    struct mfs_cmd cmds[2 * NPARTS];
    size_t len[NPARTS];
    char key[32];
    int rc;

    snprintf(key, sizeof key, "hammer%u", h->id);
    for (uint32_t i = 0; i < NPARTS; i++) {
        unsigned seed = h->id * 7919 + round * NPARTS + i;

        len[i] = round % 3 ? seed * 31 % 3000 : seed * 65537U % BIG;
        fill_pattern(out + i * BIG, len[i], seed);
        cmds[2 * i] = set_cmd(&a[2 * i], i, key, out + i * BIG, len[i]);
        cmds[2 * i].idempotent = true;
        cmds[2 * i + 1] = get_cmd(&a[2 * i + 1], i, key, in + i * BIG, BIG);
    }
    rc = mfs_store_exec(t.store, cmds, 2 * NPARTS);
    mfs_cmds_fini(cmds, 2 * NPARTS);
    if (rc)
        return spoil(h, rc, "exec");
    for (uint32_t i = 0; i < NPARTS; i++)
        if (cmds[2 * i + 1].into_len != (ssize_t)len[i] ||
            memcmp(in + i * BIG, out + i * BIG, len[i]) != 0)
            return spoil(h, -EBADMSG, "content");
    return 0;
}

static int count(struct hammer *h, uint32_t part)
{
    struct mfs_args a;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&a, "INCR");
    mfs_args_str(&a, "counter");
    cmd = mfs_args_cmd(&a, part);
    rc = mfs_store_exec(t.store, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    if (!rc)
        rc = mfs_store_post(t.store, &cmd);
    return rc ? spoil(h, rc, "count") : 0;
}

/* Appends the round to a list, by exec or by post. */
static int note(struct hammer *h, int round, bool post)
{
    struct mfs_args a;
    struct mfs_cmd cmd;
    char key[32];
    int rc;

    snprintf(key, sizeof key, "%s%u", post ? "posted" : "executed", h->id);
    mfs_args_init(&a, "RPUSH");
    mfs_args_str(&a, key);
    mfs_args_int(&a, round);
    cmd = mfs_args_cmd(&a, h->id % NPARTS);
    rc = post ? mfs_store_post(t.store, &cmd) : mfs_store_exec(t.store, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    return rc ? spoil(h, rc, "note") : 0;
}

static void *hammer(void *arg)
{
    struct hammer *h = arg;
    unsigned char *out = malloc(NPARTS * BIG), *in = malloc(NPARTS * BIG);

    for (int i = 0; (h->rounds ? i < h->rounds : !stop) && !h->rc; i++) {
        if (write_and_read(h, (unsigned)i, out, in) || count(h, (uint32_t)i % NPARTS) ||
            note(h, i, false) || note(h, i, true))
            break;
        h->done++;
    }
    free(in);
    free(out);
    return NULL;
}

static void start(struct hammer h[THREADS], int rounds)
{
    for (unsigned i = 0; i < THREADS; i++) {
        h[i] = (struct hammer){.id = i, .rounds = rounds};
        assert_int_equal(mfs_thread_start(&h[i].thread, "hammer", hammer, &h[i]), 0);
    }
}

/* The list must be 0, 1, 2 … */
static void check_list(const struct hammer *h, const char *name)
{
    struct mfs_args a;
    struct mfs_cmd cmd;
    char key[32];

    snprintf(key, sizeof key, "%s%u", name, h->id);
    cmd = cmd_of(&a, h->id % NPARTS, "LRANGE", key, "0");
    mfs_args_str(&a, "-1");
    cmd.argc++;
    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), 0);
    assert_int_equal(mfs_reply_count(cmd.reply), h->done);
    for (int i = 0; i < h->done; i++)
        assert_int_equal(atoi(mfs_reply_str(mfs_reply_at(cmd.reply, (size_t)i), NULL)), i);
    mfs_cmds_fini(&cmd, 1);
}

static int64_t counter(uint32_t part);

/* Nothing failed, and everything was executed once and in order. */
static void finish(struct hammer h[THREADS])
{
    int64_t done = 0, sum = 0;

    stop = true;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(h[i].thread, NULL);
        if (h[i].rc)
            print_error("thread %u: %s: %s\n", i, h[i].what, strerror(-h[i].rc));
        assert_int_equal(h[i].rc, 0);
        done += h[i].done;
    }
    assert_int_equal(mfs_store_drain(t.store, 10 * MFS_SEC), 0);
    for (uint32_t i = 0; i < NPARTS; i++)
        sum += counter(i);
    assert_int_equal(sum, 2 * done);
    for (unsigned i = 0; i < THREADS; i++) {
        check_list(&h[i], "executed");
        check_list(&h[i], "posted");
    }
}

static int64_t counter(uint32_t part)
{
    char text[32] = "";
    struct mfs_args a;
    struct mfs_cmd cmd = get_cmd(&a, part, "counter", text, sizeof text - 1);

    assert_int_equal(mfs_store_exec(t.store, &cmd, 1), 0);
    return atoll(text);
}

static void hammering_keeps_integrity(void **state)
{
    struct hammer h[THREADS];

    (void)state;
    start(h, 200);
    finish(h);
}

/* Moves that are given up, again and again. */
static void fences_lose_and_repeat_nothing(void **state)
{
    struct hammer h[THREADS];

    (void)state;
    start(h, 0);
    for (uint32_t i = 0; i < 40; i++) {
        assert_int_equal(redis_fixture_fence(t.fixture, i % NPARTS, true), 0);
        mfs_clock_sleep((i % 4) * 5 * MFS_MSEC);
        assert_int_equal(redis_fixture_fence(t.fixture, i % NPARTS, false), 0);
        mfs_clock_sleep(2 * MFS_MSEC);
    }
    finish(h);
}

static void moving_partitions_is_not_noticed(void **state)
{
    struct hammer h[THREADS];

    (void)state;
    start(h, 0);
    for (uint32_t i = 0; i < 2 * NPARTS; i++) {
        assert_int_equal(redis_fixture_migrate(t.fixture, i % NPARTS), 0);
        mfs_clock_sleep((i % 3) * 50 * MFS_MSEC);
        if (i % 3)
            redis_fixture_release(t.fixture); /* by now everybody has met the fence */
        assert_int_equal(mfs_store_set_table(t.store, redis_fixture_table(t.fixture)), 0);
    }
    finish(h);
    assert_int_equal(mfs_store_epoch(t.store), 1 + 2 * NPARTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hammering_keeps_integrity, setup, teardown),
        cmocka_unit_test_setup_teardown(fences_lose_and_repeat_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(moving_partitions_is_not_noticed, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
