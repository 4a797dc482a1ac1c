/* Partitions that come to a node and leave it: a Local Manager (lm_world) on the receiving side and
 * a redis process of the test's own as the source. ctest: timeout=180 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lm_world.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "lm/redis_proc.h"
#include "store/admin.h"
#include "store/args.h"
#include "store/channel.h"
#include "store/reply.h"

#define MIB    (1ULL << 20)
#define PART   1U
#define STRIPE (1U << 20)

/* ---- the source ------------------------------------------------------------------------------ */

struct source {
    struct lm_world *w;
    char dir[96];
    struct mfs_redis_node node;
    struct mfs_redis redis;
    struct mfs_msg_receive ask;
    struct mfs_msg_take take;
};

static struct mfs_admin *admin_of(const struct mfs_redis *r)
{
    struct mfs_admin *admin;
    struct mfs_err err;

    if (mfs_admin_open(&admin, r->unix_path, NULL, 0, r->admin_password, 5 * MFS_SEC, &err))
        fail_msg("%s", err.msg);
    return admin;
}

static void admin_run(const struct mfs_redis *r, int n, const char *const *words)
{
    struct mfs_admin *admin = admin_of(r);
    struct mfs_args args;
    struct mfs_err err;
    struct mfs_cmd cmd;

    mfs_args_init(&args, words[0]);
    for (int i = 1; i < n; i++)
        mfs_args_str(&args, words[i]);
    cmd = mfs_args_cmd(&args, PART);
    if (mfs_admin_call(admin, &cmd, &err))
        fail_msg("%s", err.msg);
    mfs_cmds_fini(&cmd, 1);
    mfs_admin_close(admin);
}

static int setup_size(void **state, uint64_t maxmemory)
{
    struct source *s = calloc(1, sizeof *s);
    struct mfs_err err;
    void *world;

    if (lm_world_setup(&world))
        return -1;
    s->w = world;
    snprintf(s->dir, sizeof s->dir, "%s/source", s->w->dir);
    s->node =
        (struct mfs_redis_node){s->dir, s->dir, "127.0.0.1", LM_WORLD_NAME, LM_WORLD_PARTS, STRIPE};
    s->redis = (struct mfs_redis){.part = PART, .format = true, .maxmemory = maxmemory};
    mfs_random_hex(s->redis.password, 32);
    mfs_random_hex(s->redis.admin_password, 32);
    if (mfs_redis_start(&s->node, &s->redis, 1, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return -1;
    }
    s->ask = (struct mfs_msg_receive){.index = PART,
                                      .nparts = LM_WORLD_PARTS,
                                      .stripe_size = STRIPE,
                                      .memory = LM_WORLD_MEMORY,
                                      .source_host = "127.0.0.1",
                                      .source_port = s->redis.port};
    mfs_random_hex(s->ask.password, 32);
    mfs_random_hex(s->ask.admin_password, 32);
    mfs_text_copy(s->ask.source_admin_password, sizeof s->ask.source_admin_password,
                  s->redis.admin_password);
    s->take = (struct mfs_msg_take){.index = PART};
    mfs_text_copy(s->take.password, sizeof s->take.password, s->ask.password);
    *state = s;
    return 0;
}

static int setup(void **state)
{
    return setup_size(state, 100 * MIB);
}

static int teardown(void **state)
{
    struct source *s = *state;
    void *world = s->w;

    mfs_redis_stop(&s->node, &s->redis, 1);
    free(s);
    return lm_world_teardown(&world);
}

/* Puts n values of that size there, with the source's own words. */
static void fill(const struct source *s, const char *n, const char *size)
{
    const char *const words[] = {"EVAL",
                                 "local v = string.rep('x', ARGV[2]) "
                                 "for i = 1, ARGV[1] do redis.call('SET', 'fill' .. i, v .. i) end "
                                 "return 1",
                                 "0", n, size};

    admin_run(&s->redis, 5, words);
}

/* The partition as it was taken. */
static struct mfs_redis target_of(const struct source *s)
{
    struct mfs_redis r = {.part = PART, .port = (uint16_t)s->w->taken.port};

    mfs_text_copy(r.unix_path, sizeof r.unix_path, s->w->taken.unix_path);
    mfs_text_copy(r.password, sizeof r.password, s->ask.password);
    mfs_text_copy(r.admin_password, sizeof r.admin_password, s->ask.admin_password);
    return r;
}

static struct mfs_channel *client_of(const struct mfs_redis *r)
{
    struct mfs_endpoint ep = {NULL, "127.0.0.1", r->port, MFS_REDIS_USER, r->password};
    struct mfs_channel *c;
    struct mfs_err err;

    if (mfs_channel_open(&c, &ep, 5 * MFS_SEC, 5 * MFS_SEC, &err))
        fail_msg("%s", err.msg);
    return c;
}

/* One command as a client: its rc, and what it gave. */
static int run(struct mfs_channel *c, const char *name, const char *key, const char *value,
               char *got, size_t n)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    const char *text;
    size_t len;
    int rc;

    mfs_args_init(&args, name);
    mfs_args_str(&args, key);
    if (value)
        mfs_args_str(&args, value);
    cmd = mfs_args_cmd(&args, PART);
    rc = mfs_channel_call(c, &cmd, 10 * MFS_SEC, NULL);
    if (!rc)
        rc = cmd.rc;
    if (got) {
        text = rc ? NULL : mfs_reply_str(cmd.reply, &len);
        snprintf(got, n, "%.*s", text ? (int)len : 0, text ? text : "");
    }
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* ---- a writer that counts -------------------------------------------------------------------- */

struct writer {
    pthread_t thread;
    struct mfs_channel *conn;
    uint64_t written; /* acknowledged */
    int rc;           /* that ended it */
    atomic_bool stop;
    uint64_t size;
    _Atomic uint64_t seen;
};

static void *write_on(void *arg)
{
    struct writer *w = arg;
    char key[32], *value = calloc(1, w->size + 32);

    memset(value + 24, 'w', w->size);
    while (!w->rc && !atomic_load(&w->stop)) {
        int len = snprintf(value, 24, "%020llu", (unsigned long long)w->written);

        value[len] = '.';
        memset(value + len + 1, '.', 24U - (unsigned)len - 1);
        snprintf(key, sizeof key, "w%llu", (unsigned long long)w->written % 512);
        w->rc = run(w->conn, "SET", key, value, NULL, 0);
        if (!w->rc)
            atomic_store(&w->seen, ++w->written);
    }
    free(value);
    return NULL;
}

static void writer_start(struct writer *w, const struct source *s, uint64_t size)
{
    *w = (struct writer){.conn = client_of(&s->redis), .size = size};
    assert_int_equal(pthread_create(&w->thread, NULL, write_on, w), 0);
    while (atomic_load(&w->seen) < 100)
        mfs_clock_sleep(MFS_MSEC);
}

static void writer_end(struct writer *w)
{
    pthread_join(w->thread, NULL);
    mfs_channel_close(w->conn);
}

/* What was acknowledged is there, in its last version; what was refused is not. */
static void check_written(const struct writer *w, const struct mfs_redis *r)
{
    uint64_t first = w->written > 512 ? w->written - 512 : 0;
    struct mfs_channel *c = client_of(r);
    char key[32], got[64];

    for (uint64_t i = first; i < w->written; i++) {
        snprintf(key, sizeof key, "w%llu", (unsigned long long)i % 512);
        assert_int_equal(run(c, "GET", key, NULL, got, sizeof got), 0);
        assert_int_equal(strtoull(got, NULL, 10), i);
    }
    mfs_channel_close(c);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void must(struct source *s, enum mfs_msg type, const void *body)
{
    if (lm_world_ask(s->w, type, body))
        fail_msg("%s", s->w->err.msg);
}

static void hot_move(struct source *s, uint64_t size)
{
    struct writer writer;
    struct mfs_redis target;

    writer_start(&writer, s, size);
    must(s, MFS_MSG_RECEIVE, &s->ask);
    must(s, MFS_MSG_TAKE, &s->take);
    writer_end(&writer);
    assert_int_equal(writer.rc, -EACCES);
    target = target_of(s);
    check_written(&writer, &target);
    print_message("%llu writes, %llu bytes copied in %llu us, blocked %llu us\n",
                  (unsigned long long)writer.written, (unsigned long long)s->w->received.bytes,
                  (unsigned long long)s->w->received.duration_us,
                  (unsigned long long)s->w->taken.blocked_us);
}

static void test_hot_move_under_a_writer(void **state)
{
    hot_move(*state, 8192);
}

static void test_a_large_partition_arrives_whole(void **state)
{
    struct source *s = *state;
    struct mfs_redis target;
    struct mfs_channel *c;
    char got[16];

    fill(s, "50", "1000000");
    hot_move(s, 8192);
    target = target_of(s);
    c = client_of(&target);
    assert_int_equal(run(c, "GET", "fill50", NULL, got, sizeof got), 0);
    assert_string_equal(got, "xxxxxxxxxxxxxxx");
    mfs_channel_close(c);
}

static void test_an_empty_partition_moves_fast(void **state)
{
    struct source *s = *state;

    must(s, MFS_MSG_RECEIVE, &s->ask);
    must(s, MFS_MSG_TAKE, &s->take);
    print_message("copied in %llu us, blocked %llu us\n",
                  (unsigned long long)s->w->received.duration_us,
                  (unsigned long long)s->w->taken.blocked_us);
    assert_true(s->w->received.duration_us < 500000);
    assert_true(s->w->taken.blocked_us < 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_empty_partition_moves_fast, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hot_move_under_a_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_large_partition_arrives_whole, setup, teardown),
    };

    return cmocka_run_group_tests_name("lm move", tests, NULL, NULL);
}
