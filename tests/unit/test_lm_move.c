/* Partitions that come to a node and leave it: a Local Manager (lm_world) on the receiving side and
 * a redis process of the test's own as the source. ctest: timeout=180 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lm_world.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "lm/mover.h"
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

    if (mfs_admin_open(&admin, r->unix_path, NULL, 0, r->admin_password, 60 * MFS_SEC, &err))
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

static void show_logs(const struct source *s)
{
    char path[160];
    struct mfs_buf text;

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s/redis-%u.log", s->w->dir, i ? "node-3" : "source", PART);
        mfs_buf_init(&text);
        if (!mfs_file_read(path, 1U << 24, &text))
            fprintf(stderr, "%s:\n%.*s", path, (int)mfs_buf_len(&text), mfs_buf_data(&text));
        mfs_buf_fini(&text);
    }
}

static int teardown(void **state)
{
    struct source *s = *state;
    void *world = s->w;

    if (getenv("TEST_SHOW_LOG"))
        show_logs(s);
    mfs_redis_stop(&s->node, &s->redis, 1);
    free(s);
    return lm_world_teardown(&world);
}

/* Puts n values of that size there, with the source's own words. Keys that begin as those of
 * stripes do: all others would be in the journal, too, and count twice. */
static void fill(const struct source *s, const char *n, const char *size)
{
    static const char script[] =
        "local v = string.rep('x', ARGV[2]) "
        "for i = 1, ARGV[1] do redis.call('SET', 'Sfill' .. i, v .. i) end "
        "return 1";
    const char *const words[] = {"EVAL", script, "0", n, size};

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

/* A process of its own, as lm_world forks; what is below is in memory that both see. */
struct writer {
    uint64_t size;
    uint64_t most;            /* writes; 0: as many as it can */
    _Atomic uint64_t written; /* acknowledged */
    atomic_int rc;            /* that ended it */
    atomic_bool stop;
    pid_t pid;
};

static void write_on(struct writer *w, const struct mfs_redis *r)
{
    struct mfs_channel *c = client_of(r);
    char key[32], *value = malloc(w->size + 32);
    int rc = 0;

    memset(value, '.', w->size + 31);
    value[w->size + 31] = '\0';
    while (!rc && !atomic_load(&w->stop) && (!w->most || w->written < w->most)) {
        int len = snprintf(value, 24, "%020llu", (unsigned long long)w->written);

        value[len] = '.';
        snprintf(key, sizeof key, "Sw%llu", (unsigned long long)w->written % 512);
        rc = run(c, "SET", key, value, NULL, 0);
        if (!rc)
            atomic_fetch_add(&w->written, 1);
    }
    atomic_store(&w->rc, rc);
}

static struct writer *writer_start_some(const struct source *s, uint64_t size, uint64_t most)
{
    struct writer *w =
        mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;

    assert_ptr_not_equal(w, MAP_FAILED);
    *w = (struct writer){.size = size, .most = most};
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_on(w, &s->redis);
        _exit(0);
    }
    w->pid = pid;
    for (int i = 0; i < 20000 && atomic_load(&w->written) < 100; i++)
        mfs_clock_sleep(MFS_MSEC);
    assert_true(atomic_load(&w->written) >= 100);
    return w;
}

static struct writer *writer_start(const struct source *s, uint64_t size)
{
    return writer_start_some(s, size, 0);
}

static void writer_end(struct writer *w)
{
    int status;

    assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
    assert_int_equal(status, 0);
}

/* What was acknowledged is there, in its last version; what was refused is not. */
static void check_written(const struct writer *w, const struct mfs_redis *r)
{
    uint64_t first = w->written > 512 ? w->written - 512 : 0;
    struct mfs_channel *c = client_of(r);
    char key[32], got[64];

    for (uint64_t i = first; i < w->written; i++) {
        snprintf(key, sizeof key, "Sw%llu", (unsigned long long)i % 512);
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
    struct writer *writer;
    struct mfs_redis target;

    writer = writer_start(s, size);
    must(s, MFS_MSG_RECEIVE, &s->ask);
    must(s, MFS_MSG_TAKE, &s->take);
    writer_end(writer);
    assert_int_equal(writer->rc, -EACCES);
    target = target_of(s);
    check_written(writer, &target);
    print_message("%llu writes, %llu bytes copied in %llu us, blocked %llu us\n",
                  (unsigned long long)writer->written, (unsigned long long)s->w->received.bytes,
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
    assert_int_equal(run(c, "GET", "Sfill50", NULL, got, sizeof got), 0);
    assert_string_equal(got, "xxxxxxxxxxxxxxx");
    mfs_channel_close(c);
}

/* No step of it waits for a timer of redis, which would be felt as 100 ms or a second. */
static void test_an_empty_partition_moves_fast(void **state)
{
    struct source *s = *state;
    struct mfs_msg_release release = {.index = PART};
    uint64_t best = UINT64_MAX;

    mfs_text_copy(release.password, sizeof release.password, s->ask.password);
    for (int i = 0; i < 8 && best > 90000; i++) {
        must(s, MFS_MSG_RECEIVE, &s->ask);
        if (s->w->received.duration_us < best)
            best = s->w->received.duration_us;
        must(s, MFS_MSG_RELEASE, &release);
    }
    print_message("copied in %llu us\n", (unsigned long long)best);
    assert_true(best < 300000);
    must(s, MFS_MSG_RECEIVE, &s->ask);
    must(s, MFS_MSG_TAKE, &s->take);
    print_message("blocked %llu us\n", (unsigned long long)s->w->taken.blocked_us);
    assert_true(s->w->taken.blocked_us < 500000);
}

/* ---- the life of a copy ---------------------------------------------------------------------- */

/* So that it takes some seconds. */
static void receive_slowly(struct source *s)
{
    fill(s, "50", "1000000");
    s->ask.rate = 10 * MIB;
    lm_world_begin(s->w, MFS_MSG_RECEIVE, &s->ask);
}

static bool some_has_arrived(struct lm_world *w)
{
    return w->answered ||
           (w->report.ncopies == 1 && w->copy[0].index == PART && w->copy[0].bytes > 5 * MIB);
}

static void await_some(struct source *s)
{
    assert_true(lm_world_wait(s->w, some_has_arrived, 20));
    if (s->w->answered)
        fail_msg("it ended before: %s", s->w->err.msg);
}

static struct mfs_proc copy_process(const struct source *s)
{
    struct mfs_state state = lm_world_state(s->w);
    struct mfs_proc p = {0};

    if (state.ncopies == 1)
        p = mfs_state_proc_get(&state.copy[0].redis.proc);
    mfs_record_clear(&mfs_state_record, &state);
    return p;
}

static uint64_t config_of(const struct mfs_redis *r, const char *name)
{
    struct mfs_admin *admin = admin_of(r);
    struct mfs_args args;
    struct mfs_cmd cmd;
    struct mfs_err err;
    uint64_t v;

    mfs_args_init(&args, "CONFIG");
    mfs_args_str(&args, "GET");
    mfs_args_str(&args, name);
    cmd = mfs_args_cmd(&args, PART);
    if (mfs_admin_call(admin, &cmd, &err))
        fail_msg("%s", err.msg);
    v = strtoull(mfs_reply_str(mfs_reply_at(cmd.reply, 1), NULL), NULL, 10);
    mfs_cmds_fini(&cmd, 1);
    mfs_admin_close(admin);
    return v;
}

/* Is a client served there? */
static bool serves(const struct mfs_redis *r)
{
    struct mfs_channel *c = client_of(r);
    int rc = run(c, "SET", "probe", "1", NULL, 0);

    mfs_channel_close(c);
    assert_true(!rc || rc == -EACCES);
    return !rc;
}

static void check_filled(const struct mfs_redis *r)
{
    struct mfs_channel *c = client_of(r);
    char key[16], got[16];

    for (int i = 1; i <= 50; i++) {
        snprintf(key, sizeof key, "Sfill%d", i);
        assert_int_equal(run(c, "GET", key, NULL, got, sizeof got), 0);
        assert_string_equal(got, "xxxxxxxxxxxxxxx");
    }
    mfs_channel_close(c);
}

static void take_and_check(struct source *s, bool force)
{
    struct mfs_redis target;

    s->take.force = force;
    must(s, MFS_MSG_TAKE, &s->take);
    target = target_of(s);
    check_filled(&target);
    assert_true(serves(&target));
    assert_true(config_of(&target, "maxmemory") > 50 * MIB);
    if (!force)
        assert_false(serves(&s->redis));
}

static void test_a_node_without_partitions_receives_one(void **state)
{
    struct source *s = *state;
    struct mfs_msg_assign none = {
        .nparts = LM_WORLD_PARTS, .stripe_size = STRIPE, .memory = LM_WORLD_MEMORY};

    must(s, MFS_MSG_ASSIGN, &none);
    receive_slowly(s);
    await_some(s);
    assert_int_equal(s->w->report.nparts, 0);
    assert_true(lm_world_wait(s->w, lm_world_answered, 30));
    if (s->w->err.code)
        fail_msg("%s", s->w->err.msg);
    assert_true(s->w->received.duration_us > 4000000); /* 50 MB at 10 MiB/s */
    assert_true(s->w->received.bytes > 50000000);
    assert_int_equal(config_of(&s->redis, "rdb-key-save-delay"), 0);
    take_and_check(s, false);
}

static void test_what_is_repeated_is_answered(void **state)
{
    struct source *s = *state;
    struct mfs_msg_release release = {.index = PART};
    struct mfs_msg_take_reply first;

    mfs_text_copy(release.password, sizeof release.password, s->ask.password);
    fill(s, "50", "1000000");
    must(s, MFS_MSG_RECEIVE, &s->ask);
    must(s, MFS_MSG_RECEIVE, &s->ask);
    assert_true(s->w->received.bytes > 50000000);
    take_and_check(s, false);
    first = s->w->taken;
    must(s, MFS_MSG_TAKE, &s->take);
    assert_memory_equal(&first, &s->w->taken, sizeof first);
    must(s, MFS_MSG_RECEIVE, &s->ask);
    take_and_check(s, false);
    must(s, MFS_MSG_RELEASE, &release);
    must(s, MFS_MSG_RELEASE, &release);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -ENOENT);
}

static void test_a_cold_move(void **state)
{
    struct source *s = *state;
    struct writer *writer;
    struct mfs_redis target;
    char path[160];
    struct stat st;

    fill(s, "50", "1000000");
    s->ask.cold = true;
    writer = writer_start(s, 8192);
    must(s, MFS_MSG_RECEIVE, &s->ask);
    writer_end(writer);
    assert_int_equal(writer->rc, -EACCES);
    assert_false(serves(&s->redis));
    take_and_check(s, false);
    assert_true(s->w->taken.blocked_us >= s->w->received.duration_us / 4);
    target = target_of(s);
    check_written(writer, &target);
    print_message("blocked %llu us\n", (unsigned long long)s->w->taken.blocked_us);
    snprintf(path, sizeof path, "%s/redis-%u.rdb", s->dir, PART);
    /* redis looks once a second whether anybody needs it yet. */
    for (unsigned i = 0; i < 1000 && stat(path, &st) == 0; i++)
        mfs_clock_sleep(10 * MFS_MSEC);
    assert_int_equal(stat(path, &st), -1);
}

static void test_a_partition_is_fenced_and_released(void **state)
{
    struct source *s = *state;
    struct mfs_msg_fence fence = {.index = PART, .on = true};
    struct mfs_msg_release release = {.index = PART};
    struct mfs_redis r;
    struct mfs_proc p;

    fill(s, "50", "1000000");
    must(s, MFS_MSG_RECEIVE, &s->ask);
    take_and_check(s, false);
    r = target_of(s);
    mfs_text_copy(fence.password, sizeof fence.password, s->ask.password);
    must(s, MFS_MSG_FENCE, &fence);
    must(s, MFS_MSG_FENCE, &fence);
    assert_false(serves(&r));
    fence.on = false;
    must(s, MFS_MSG_FENCE, &fence);
    assert_true(serves(&r));
    fence.password[0] ^= 1;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_FENCE, &fence), -ENOENT);
    mfs_text_copy(release.password, sizeof release.password, fence.password);
    must(s, MFS_MSG_RELEASE, &release); /* not the one that is meant */
    p = lm_world_redis(s->w, PART);
    assert_true(mfs_proc_alive(&p));
    mfs_text_copy(release.password, sizeof release.password, s->ask.password);
    must(s, MFS_MSG_RELEASE, &release);
    assert_false(mfs_proc_alive(&p));
    assert_int_equal(lm_world_redis(s->w, PART).pid, 0);
    assert_null(strstr(s->w->events, "redis-died"));
}

static bool no_copy_is_left(struct lm_world *w)
{
    struct mfs_state state = lm_world_state(w);
    bool none = !state.ncopies;

    mfs_record_clear(&mfs_state_record, &state);
    return none;
}

static bool copy_was_cancelled(struct lm_world *w)
{
    return w->err.code == -ECANCELED;
}

static void test_a_copy_is_released_under_way(void **state)
{
    struct source *s = *state;
    struct mfs_msg_release release = {.index = PART};
    struct mfs_proc p;
    int64_t start;

    mfs_text_copy(release.password, sizeof release.password, s->ask.password);
    receive_slowly(s);
    await_some(s);
    p = copy_process(s);
    assert_true(mfs_proc_alive(&p));
    start = mfs_clock_mono();
    lm_world_ask(s->w, MFS_MSG_RELEASE, &release);
    assert_true(
        lm_world_wait(s->w, copy_was_cancelled, 5)); /* before RELEASE is answered, or after */
    assert_true(lm_world_wait(s->w, no_copy_is_left, 5));
    assert_true(mfs_clock_mono() - start < 5 * MFS_SEC);
    assert_false(mfs_proc_alive(&p));
    assert_int_equal(copy_process(s).pid, 0);
    assert_true(serves(&s->redis));
    s->ask.rate = 0;
    must(s, MFS_MSG_RECEIVE, &s->ask);
    take_and_check(s, false);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void await_failure(struct source *s, int code, int64_t limit)
{
    int64_t start = mfs_clock_mono();

    assert_true(lm_world_wait(s->w, lm_world_answered, 50));
    if (s->w->err.code != code)
        fail_msg("%d: %s", s->w->err.code, s->w->err.msg);
    assert_true(mfs_clock_mono() - start < limit);
}

static void test_the_source_dies_while_it_is_copied(void **state)
{
    struct source *s = *state;

    receive_slowly(s);
    await_some(s);
    mfs_proc_kill(&s->redis.proc, SIGKILL);
    await_failure(s, -EHOSTUNREACH, 3 * MFS_SEC);
    assert_true(lm_world_wait(s->w, no_copy_is_left, 5));
    s->take.force = true;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -ENOENT);
}

static void test_the_target_dies_while_it_is_copied(void **state)
{
    struct source *s = *state;
    struct mfs_proc p;

    receive_slowly(s);
    await_some(s);
    p = copy_process(s);
    mfs_proc_kill(&p, SIGKILL);
    await_failure(s, -EIO, 3 * MFS_SEC);
    assert_true(lm_world_wait(s->w, no_copy_is_left, 5));
    assert_non_null(strstr(s->w->events, "copy-died: partition 1"));
    assert_true(serves(&s->redis));
    s->ask.rate = 0;
    must(s, MFS_MSG_RECEIVE, &s->ask);
    take_and_check(s, false);
}

static void test_the_source_is_dead_when_it_is_taken(void **state)
{
    struct source *s = *state;

    fill(s, "50", "1000000");
    must(s, MFS_MSG_RECEIVE, &s->ask);
    mfs_proc_kill(&s->redis.proc, SIGKILL);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EHOSTUNREACH);
    take_and_check(s, true);
}

/* Asks for it, and has the request leave. */
static void begin_to_take(struct source *s)
{
    lm_world_begin(s->w, MFS_MSG_TAKE, &s->take);
    lm_world_wait(s->w, lm_world_answered, 0);
}

/* Hung at first, so that it is in the cut that it dies. */
static void test_the_source_dies_in_the_cut(void **state)
{
    struct source *s = *state;

    fill(s, "50", "1000000");
    must(s, MFS_MSG_RECEIVE, &s->ask);
    mfs_proc_kill(&s->redis.proc, SIGSTOP);
    begin_to_take(s);
    mfs_clock_sleep(100 * MFS_MSEC);
    mfs_proc_kill(&s->redis.proc, SIGKILL);
    await_failure(s, -EHOSTUNREACH, 3 * MFS_SEC);
    take_and_check(s, true);
}

/* ---- a source that has died and was revived -------------------------------------------------- */

/* As its Local Manager does it. */
static struct mfs_admin_journal die_and_revive(struct source *s)
{
    struct mfs_revived how;
    struct mfs_err err = {0};

    mfs_proc_kill(&s->redis.proc, SIGKILL);
    if (mfs_redis_revive(&s->node, &s->redis, &how, &err))
        fail_msg("%s", err.msg);
    return how.journal;
}

static int prove(struct source *s, const struct mfs_admin_journal *j, uint64_t offset)
{
    s->take.force = true;
    mfs_text_copy(s->take.stream, sizeof s->take.stream, j->stream);
    s->take.offset = offset;
    return lm_world_ask(s->w, MFS_MSG_TAKE, &s->take);
}

static struct mfs_admin_journal serve_source(const struct source *s)
{
    struct mfs_admin_journal j;
    struct mfs_err err = {0};

    if (mfs_mover_fence(s->redis.unix_path, s->redis.admin_password, false, &j, &err))
        fail_msg("%s", err.msg);
    return j;
}

/* Has a connection with a wrong password been refused there? */
static bool has_refused(const struct mfs_redis *r)
{
    struct mfs_admin *admin = admin_of(r);
    struct mfs_args args;
    struct mfs_cmd cmd;
    struct mfs_err err;
    bool has = false;

    mfs_args_init(&args, "ACL");
    mfs_args_str(&args, "LOG");
    cmd = mfs_args_cmd(&args, PART);
    if (mfs_admin_call(admin, &cmd, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < mfs_reply_count(cmd.reply); i++) {
        const char *reason = mfs_reply_str(mfs_reply_at(mfs_reply_at(cmd.reply, i), 3), NULL);

        has |= reason && !strcmp(reason, "auth");
    }
    mfs_cmds_fini(&cmd, 1);
    mfs_admin_close(admin);
    return has;
}

/* It is revived without the bytes of stripes. The copy does not follow it, and has all of them. */
static void copy_outlives_source(struct source *s, bool cold)
{
    struct mfs_admin_journal j;
    struct writer *writer;
    struct mfs_redis target;

    fill(s, "50", "1000000");
    writer = writer_start_some(s, 512, 2000);
    writer_end(writer);
    s->ask.moves = true;
    s->ask.cold = cold;
    must(s, MFS_MSG_RECEIVE, &s->ask);
    j = die_and_revive(s);
    assert_true(j.fenced);
    assert_int_equal(strlen(j.stream), 40);
    assert_int_equal(j.stripes, 50 + 512);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EHOSTUNREACH);
    assert_false(serves(&s->redis));
    for (int i = 0; i < 2000 && !has_refused(&s->redis); i++)
        mfs_clock_sleep(10 * MFS_MSEC); /* redis tries once a second */
    assert_true(has_refused(&s->redis));
    j = die_and_revive(s); /* once more, which is no matter */
    assert_int_equal(prove(s, &j, j.offset), 0);
    target = target_of(s);
    check_filled(&target);
    check_written(writer, &target);
    assert_true(serves(&target));
    assert_false(serves(&s->redis));
}

static void test_a_copy_outlives_its_source(void **state)
{
    copy_outlives_source(*state, false);
}

static void test_a_cold_copy_outlives_its_source(void **state)
{
    copy_outlives_source(*state, true);
}

/* Killed while it is written to: the copy serves only with all that was acknowledged. */
static void test_a_source_dies_under_a_writer(void **state)
{
    struct source *s = *state;
    struct mfs_admin_journal j;
    struct writer *writer;
    struct mfs_redis target;
    int rc;

    s->ask.moves = true;
    writer = writer_start(s, 8192);
    must(s, MFS_MSG_RECEIVE, &s->ask);
    mfs_proc_kill(&s->redis.proc, SIGKILL);
    writer_end(writer);
    j = die_and_revive(s);
    assert_true(j.fenced);
    rc = prove(s, &j, j.offset);
    print_message("%llu writes, %s\n", (unsigned long long)writer->written,
                  rc ? s->w->err.msg : "all there");
    assert_true(!rc || rc == -ENODATA);
    target = target_of(s);
    if (!rc)
        check_written(writer, &target);
}

static void test_a_copy_that_is_behind_is_refused(void **state)
{
    struct source *s = *state;
    struct mfs_admin_journal j, after;

    fill(s, "50", "1000000");
    s->ask.moves = true;
    must(s, MFS_MSG_RECEIVE, &s->ask);
    j = die_and_revive(s);
    assert_int_equal(prove(s, &j, j.offset + 1), -ENODATA);
    j.stream[0] ^= 1;
    assert_int_equal(prove(s, &j, j.offset), -ENODATA);
    after = serve_source(s); /* from here on the copy is older than the source */
    assert_string_equal(after.stream, "");
    assert_true(serves(&s->redis));
    assert_string_equal(die_and_revive(s).stream, "");
    assert_true(serves(&s->redis));
}

/* Of a replica that is made nobody decides who goes on: its source serves again at once. */
static void test_a_source_that_does_not_move_serves_again(void **state)
{
    struct source *s = *state;

    fill(s, "5", "1000");
    must(s, MFS_MSG_RECEIVE, &s->ask);
    assert_string_equal(die_and_revive(s).stream, "");
    assert_true(serves(&s->redis));
}

static void test_the_target_dies_in_the_cut(void **state)
{
    struct source *s = *state;
    struct mfs_proc p;

    fill(s, "50", "1000000");
    must(s, MFS_MSG_RECEIVE, &s->ask);
    p = copy_process(s);
    mfs_proc_kill(&p, SIGSTOP);
    begin_to_take(s);
    mfs_clock_sleep(100 * MFS_MSEC);
    mfs_proc_kill(&p, SIGKILL);
    await_failure(s, -EIO, 3 * MFS_SEC);
    assert_true(serves(&s->redis));
    assert_true(lm_world_wait(s->w, no_copy_is_left, 5));
    must(s, MFS_MSG_RECEIVE, &s->ask);
    take_and_check(s, false);
}

/* It can't get in step: the source goes on, and so may the copy, later. */
static void test_a_target_that_hangs_does_not_stop_the_source(void **state)
{
    struct source *s = *state;
    struct mfs_proc p;

    fill(s, "50", "1000000");
    must(s, MFS_MSG_RECEIVE, &s->ask);
    p = copy_process(s);
    mfs_proc_kill(&p, SIGSTOP);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EIO);
    assert_true(serves(&s->redis));
    mfs_proc_kill(&p, SIGCONT);
    take_and_check(s, false);
}

static void restart_lm(struct source *s)
{
    lm_world_kill_lm(s->w);
    lm_world_start_lm(s->w);
    assert_true(lm_world_wait(s->w, lm_world_joined, 10));
}

static void test_lm_restarts_while_it_copies(void **state)
{
    struct source *s = *state;
    struct mfs_proc p;

    receive_slowly(s);
    await_some(s);
    p = copy_process(s);
    restart_lm(s);
    assert_int_equal(s->w->join.ncopies, 1);
    assert_int_equal(s->w->joined_copy[0].index, PART);
    assert_int_equal(s->w->join.nassigned, 0);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EAGAIN);
    must(s, MFS_MSG_RECEIVE, &s->ask);
    assert_int_equal(copy_process(s).pid, p.pid);
    assert_int_equal(config_of(&s->redis, "rdb-key-save-delay"), 0);
    take_and_check(s, false);
    restart_lm(s);
    assert_int_equal(s->w->join.ncopies, 0);
    assert_int_equal(s->w->join.nassigned, 1);
    must(s, MFS_MSG_TAKE, &s->take);
}

static void test_lm_restarts_before_the_cut(void **state)
{
    struct source *s = *state;

    fill(s, "50", "1000000");
    must(s, MFS_MSG_RECEIVE, &s->ask);
    restart_lm(s);
    assert_int_equal(s->w->join.ncopies, 1);
    take_and_check(s, false);
}

/* At any moment of the cut: the next TAKE completes it, and nothing is lost. */
static void test_lm_dies_in_the_cut(void **state)
{
    struct source *s = *state;
    struct writer *writer;
    struct mfs_redis target;

    must(s, MFS_MSG_RECEIVE, &s->ask);
    writer = writer_start(s, 512);
    for (int i = 0; i < 6; i++) {
        begin_to_take(s);
        mfs_clock_sleep(i * MFS_MSEC);
        restart_lm(s);
    }
    must(s, MFS_MSG_TAKE, &s->take);
    writer_end(writer);
    target = target_of(s);
    check_written(writer, &target);
    assert_true(serves(&target));
    assert_false(serves(&s->redis));
}

static void test_a_wrong_password_of_the_source(void **state)
{
    struct source *s = *state;

    s->ask.source_admin_password[0] ^= 1;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_RECEIVE, &s->ask), -EACCES);
    s->ask.source_admin_password[0] ^= 1;
    must(s, MFS_MSG_RECEIVE, &s->ask);
    s->take.password[0] ^= 1;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -ENOENT);
    s->ask.password[0] ^= 1;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_RECEIVE, &s->ask), -EBUSY);
}

static void test_what_does_not_fit_is_refused_at_once(void **state)
{
    struct source *s = *state;

    fill(s, "50", "1000000");
    s->ask.memory = 40 * MIB;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_RECEIVE, &s->ask), -ENOSPC);
    assert_non_null(strstr(s->w->err.msg, "no memory"));
    assert_true(serves(&s->redis));
    s->ask.memory = LM_WORLD_MEMORY;
    must(s, MFS_MSG_RECEIVE, &s->ask);
    take_and_check(s, false);
}

/* The source grows while it is copied, to more than what the node has. */
static void test_what_outgrows_the_node_is_given_up(void **state)
{
    struct source *s = *state;
    struct writer *writer;

    s->ask.memory = 110 * MIB;
    receive_slowly(s);
    await_some(s);
    writer = writer_start_some(s, 60000, 600);
    assert_true(lm_world_wait(s->w, lm_world_answered, 30));
    writer_end(writer);
    assert_int_equal(writer->written, 600);
    if (!s->w->err.code) /* it was slower than the copy */
        lm_world_ask(s->w, MFS_MSG_TAKE, &s->take);
    assert_int_equal(s->w->err.code, -ENOSPC);
    assert_true(serves(&s->redis));
}

static void test_a_link_that_breaks_again_and_again(void **state)
{
    struct source *s = *state;
    const char *const limit[] = {"CONFIG", "SET", "client-output-buffer-limit", "replica 1mb 0 0"};
    struct writer *writer;

    admin_run(&s->redis, 4, limit);
    fill(s, "50", "1000000");
    s->ask.rate = 20 * MIB;
    writer = writer_start(s, 30000);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_RECEIVE, &s->ask), -ENOBUFS);
    atomic_store(&writer->stop, true);
    writer_end(writer);
    assert_int_equal(writer->rc, 0);
    assert_true(lm_world_wait(s->w, no_copy_is_left, 5));
    s->ask.cold = true;
    s->ask.rate = 0;
    must(s, MFS_MSG_RECEIVE, &s->ask);
    take_and_check(s, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hot_move_under_a_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_large_partition_arrives_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_empty_partition_moves_fast, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_node_without_partitions_receives_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_is_repeated_is_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_cold_move, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_partition_is_fenced_and_released, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_copy_is_released_under_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_source_dies_while_it_is_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_target_dies_while_it_is_copied, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_source_is_dead_when_it_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_source_dies_in_the_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_copy_outlives_its_source, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_cold_copy_outlives_its_source, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_source_dies_under_a_writer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_copy_that_is_behind_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_source_that_does_not_move_serves_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_the_target_dies_in_the_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_target_that_hangs_does_not_stop_the_source, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_lm_restarts_while_it_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lm_restarts_before_the_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lm_dies_in_the_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wrong_password_of_the_source, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_does_not_fit_is_refused_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_outgrows_the_node_is_given_up, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_link_that_breaks_again_and_again, setup, teardown),
    };

    return cmocka_run_group_tests_name("lm move", tests, NULL, NULL);
}
