#include "move_source.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "store/args.h"
#include "store/reply.h"

#define MIB    MOVE_MIB
#define PART   MOVE_PART
#define STRIPE MOVE_STRIPE

struct mfs_admin *move_admin(const struct mfs_redis *r)
{
    struct mfs_admin *admin;
    struct mfs_err err;

    if (mfs_admin_open(&admin, r->unix_path, NULL, 0, r->admin_password, 60 * MFS_SEC, &err))
        fail_msg("%s", err.msg);
    return admin;
}

void move_admin_run(const struct mfs_redis *r, int n, const char *const *words)
{
    struct mfs_admin *admin = move_admin(r);
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

int move_setup(void **state)
{
    struct move_source *s = calloc(1, sizeof *s);
    struct mfs_err err;
    void *world;

    if (lm_world_setup(&world))
        return -1;
    s->w = world;
    snprintf(s->dir, sizeof s->dir, "%s/source", s->w->dir);
    s->node =
        (struct mfs_redis_node){s->dir, s->dir, "127.0.0.1", LM_WORLD_NAME, LM_WORLD_PARTS, STRIPE};
    s->redis = (struct mfs_redis){.part = PART, .format = true, .maxmemory = 100 * MIB};
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

static void show_logs(const struct move_source *s)
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

int move_teardown(void **state)
{
    struct move_source *s = *state;
    void *world = s->w;

    if (getenv("TEST_SHOW_LOG"))
        show_logs(s);
    mfs_redis_stop(&s->node, &s->redis, 1);
    free(s);
    return lm_world_teardown(&world);
}

void move_fill(const struct move_source *s, const char *n, const char *size)
{
    size_t len = strtoul(size, NULL, 10);
    char key[16], *value = malloc(len + 16);
    const char *const words[] = {"SET", key, value};

    assert_non_null(value);
    memset(value, 'x', len);
    for (unsigned long i = 1; i <= strtoul(n, NULL, 10); i++) {
        snprintf(key, sizeof key, "Sfill%lu", i);
        snprintf(value + len, 16, "%lu", i);
        move_admin_run(&s->redis, 3, words);
    }
    free(value);
}

struct mfs_redis move_target(const struct move_source *s)
{
    struct mfs_redis r = {.part = PART, .port = (uint16_t)s->w->taken.port};

    mfs_text_copy(r.unix_path, sizeof r.unix_path, s->w->taken.unix_path);
    mfs_text_copy(r.password, sizeof r.password, s->ask.password);
    mfs_text_copy(r.admin_password, sizeof r.admin_password, s->ask.admin_password);
    return r;
}

struct mfs_channel *move_client(const struct mfs_redis *r)
{
    struct mfs_endpoint ep = {NULL, "127.0.0.1", r->port, MFS_REDIS_USER, r->password};
    struct mfs_channel *c;
    struct mfs_err err;

    if (mfs_channel_open(&c, &ep, 5 * MFS_SEC, 5 * MFS_SEC, &err))
        fail_msg("%s", err.msg);
    return c;
}

int move_run(struct mfs_channel *c, const char *name, const char *key, const char *value, char *got,
             size_t n)
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

void move_must(struct move_source *s, enum mfs_msg type, const void *body)
{
    if (lm_world_ask(s->w, type, body))
        fail_msg("%s", s->w->err.msg);
}

bool move_serves(const struct mfs_redis *r)
{
    struct mfs_channel *c = move_client(r);
    int rc = move_run(c, "SET", "probe", "1", NULL, 0);

    mfs_channel_close(c);
    assert_true(!rc || rc == -EACCES);
    return !rc;
}

uint64_t move_config(const struct mfs_redis *r, const char *name)
{
    struct mfs_admin *admin = move_admin(r);
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

void move_receive_slowly(struct move_source *s)
{
    move_fill(s, "50", "1000000");
    s->ask.rate = 10 * MIB;
    lm_world_begin(s->w, MFS_MSG_RECEIVE, &s->ask);
}

static bool some_has_arrived(struct lm_world *w)
{
    return w->answered ||
           (w->report.ncopies == 1 && w->copy[0].index == PART && w->copy[0].bytes > 5 * MIB);
}

void move_await_some(struct move_source *s)
{
    assert_true(lm_world_wait(s->w, some_has_arrived, 20));
    if (s->w->answered)
        fail_msg("it ended before: %s", s->w->err.msg);
}

struct mfs_proc move_copy_process(const struct move_source *s)
{
    struct mfs_state state = lm_world_state(s->w);
    struct mfs_proc p = {0};

    if (state.ncopies == 1)
        p = mfs_state_proc_get(&state.copy[0].redis.proc);
    mfs_schema_clear(&mfs_state_schema, &state);
    return p;
}

bool move_no_copy_is_left(struct lm_world *w)
{
    struct mfs_state state = lm_world_state(w);
    bool none = !state.ncopies;

    mfs_schema_clear(&mfs_state_schema, &state);
    return none;
}

void move_check_filled(const struct mfs_redis *r)
{
    struct mfs_channel *c = move_client(r);
    char key[16], got[16];

    for (int i = 1; i <= 50; i++) {
        snprintf(key, sizeof key, "Sfill%d", i);
        assert_int_equal(move_run(c, "GET", key, NULL, got, sizeof got), 0);
        assert_string_equal(got, "xxxxxxxxxxxxxxx");
    }
    mfs_channel_close(c);
}

void move_take_and_check(struct move_source *s, bool force)
{
    struct mfs_redis target;

    s->take.force = force;
    move_must(s, MFS_MSG_TAKE, &s->take);
    target = move_target(s);
    move_check_filled(&target);
    assert_true(move_serves(&target));
    assert_true(move_config(&target, "maxmemory") > 50 * MIB);
    if (!force)
        assert_false(move_serves(&s->redis));
}

void move_await_failure(struct move_source *s, int code, int64_t limit)
{
    int64_t start = mfs_clock_mono();

    assert_true(lm_world_wait(s->w, lm_world_answered, 50));
    if (s->w->err.code != code)
        fail_msg("%d: %s", s->w->err.code, s->w->err.msg);
    assert_true(mfs_clock_mono() - start < limit);
}

void move_begin_to_take(struct move_source *s)
{
    lm_world_begin(s->w, MFS_MSG_TAKE, &s->take);
    lm_world_wait(s->w, lm_world_answered, 0);
}

void move_restart_lm(struct move_source *s)
{
    lm_world_kill_lm(s->w);
    lm_world_start_lm(s->w);
    assert_true(lm_world_wait(s->w, lm_world_joined, 10));
}
