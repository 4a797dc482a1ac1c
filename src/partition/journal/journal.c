/* The server's hooks, and what happens in them. All of it in the server's one thread. */
#include "partition/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "partition/journal/api.h"
#include "partition/journal/rewrite.h"
#include "partition/journal/state.h"
#include "partition/journal/marks.h"
#include "partition/keys.h"

#define LOADED_BATCH (256U << 10) /* bytes that are written at once while a copy is loaded */
#define AGAIN        1            /* s until what could not be written is begun anew */

static const struct mfs_span none;

static struct {
    bool on;      /* otherwise all else means nothing */
    bool loading; /* a copy comes */
    bool awake; /* between two sleeps; otherwise answers may leave before the next one is told of */
    bool fence_asked, fenced;
    bool copied, inherited;         /* `point` is this process', or that of the one before */
    struct mfs_journal_point point; /* what the journal says */
    struct mfs_journal_file file;
    struct mfs_journal_found found;
    struct mfs_marks marks, written; /* the second: of those that are being written */
    bool writing;
    struct mfs_answer batch;
    struct mfs_answer command; /* the last one that changes fields: key, fields, each with its
                                * length (4) before it */
    time_t broken_at;
    uint64_t rewrites;
} j;

/* ---- writing --------------------------------------------------------------------------------- */

static void complain(struct RedisModuleCtx *ctx, const char *what)
{
    mfs_journal_api.Log(ctx, "warning", "journal %s: %s: %s", j.file.path, what, strerror(errno));
}

static void write_batch(struct RedisModuleCtx *ctx)
{
    bool was = j.file.broken;

    if (!mfs_journal_batch_empty(&j.batch)) {
        mfs_journal_batch_seal(&j.batch);
        mfs_journal_file_write(&j.file, &j.batch);
    }
    mfs_journal_batch_begin(&j.batch);
    if (!j.file.broken || was)
        return;
    complain(ctx, "can't be written, so that all would be lost with this process");
    j.broken_at = time(NULL);
}

static void add_plain(enum mfs_journal_kind kind, int64_t number)
{
    struct mfs_journal_record r = {.kind = kind, .number = number};

    mfs_journal_batch_add(&j.batch, &r);
}

static void forget_copy(void)
{
    j.copied = j.inherited = false;
    if (!j.point.stream[0])
        return;
    j.point = (struct mfs_journal_point){.offset = 0};
    mfs_point_add(&j.batch, &j.point);
}

/* `exact`: the server is between two commands, so that its offset has all of the last one. */
static void look_point(struct RedisModuleCtx *ctx, bool exact)
{
    struct mfs_journal_point now = mfs_point_now(ctx);

    if (!exact)
        now.offset = MFS_POINT_UNKNOWN;
    if (mfs_point_same(&now, &j.point))
        return;
    j.point = now;
    mfs_point_add(&j.batch, &now);
}

/* Are clients refused? What was asked of the server may have failed, so it is asked. */
static void look_fence(struct RedisModuleCtx *ctx)
{
    struct RedisModuleCallReply *user = mfs_redis.Call(ctx, "ACL", "cc", "GETUSER", "memefs"), *e;
    size_t n = user ? mfs_redis.CallReplyLength(user) : 0, len;
    const char *text;
    bool fenced = false;

    for (size_t i = 0; i + 1 < n; i += 2) {
        e = mfs_redis.CallReplyArrayElement(user, i);
        text = e ? mfs_redis.CallReplyStringPtr(e, &len) : NULL;
        if (!text || len != 8 || memcmp(text, "commands", 8))
            continue;
        e = mfs_redis.CallReplyArrayElement(user, i + 1);
        text = e ? mfs_redis.CallReplyStringPtr(e, &len) : NULL;
        fenced = text && !memchr(text, '+', len);
    }
    if (user)
        mfs_redis.FreeCallReply(user);
    j.fence_asked = false;
    if (fenced != j.fenced)
        add_plain(MFS_JOURNAL_FENCED, fenced);
    if (j.fenced && !fenced)
        forget_copy();
    j.fenced = fenced;
}

/* `exact`: as of look_point. */
static void write_marked(struct RedisModuleCtx *ctx, bool exact)
{
    struct mfs_marks marks = j.marks;
    struct mfs_span key, field;
    size_t at = 0;

    if (j.loading || j.writing)
        return;
    /* A look at a key whose time is over ends it, which marks it. */
    j.writing = true;
    j.marks = j.written;
    if (j.fence_asked)
        look_fence(ctx);
    while (mfs_marks_next(&marks, &at, &key, &field)) {
        if (j.file.broken && j.file.next_fd < 0)
            break;
        if (field.p)
            mfs_journal_encode_field(ctx, key, field, &j.batch);
        else
            mfs_journal_encode(ctx, key, true, &j.batch);
    }
    mfs_marks_clear(&marks);
    if (j.copied)
        look_point(ctx, exact);
    j.written = marks;
    j.writing = false;
    write_batch(ctx);
}

static void rewrite(struct RedisModuleCtx *ctx)
{
    if (j.loading)
        return;
    if (j.file.next_fd < 0 &&
        (j.file.broken ? time(NULL) - j.broken_at >= AGAIN : mfs_journal_file_long(&j.file))) {
        j.broken_at = time(NULL);
        if (mfs_journal_rewrite_begin(&j.file, j.fenced, &j.point))
            return;
    }
    if (mfs_journal_rewrite_step(ctx, &j.file) > 0)
        j.rewrites++;
}

/* An empty partition, or (`loading`) one that is being filled. */
static void begin_anew(struct RedisModuleCtx *ctx, bool loading)
{
    j.loading = loading;
    j.copied = j.inherited = false;
    j.point = (struct mfs_journal_point){.offset = 0};
    mfs_marks_clear(&j.marks);
    mfs_journal_batch_begin(&j.batch);
    if (mfs_journal_file_reset(&j.file)) {
        complain(ctx, "can't be emptied");
        j.file.broken = true;
        return;
    }
    mfs_journal_add_head(&j.batch, j.fenced, &j.point);
    if (loading)
        add_plain(MFS_JOURNAL_LOADING, 0);
    write_batch(ctx);
}

/* ---- what was changed ------------------------------------------------------------------------ */

void mfs_journal_settle(struct RedisModuleCtx *ctx)
{
    if (j.on && !j.awake)
        write_marked(ctx, false);
}

/* Commands that change single fields or members, and how far apart these are. */
static const struct {
    const char *name;
    int step, most; /* most: 0: any number */
} by_field[] = {
    {"HSET", 2, 0},  {"HDEL", 1, 0},   {"SADD", 1, 0},    {"SREM", 1, 0},
    {"HMSET", 2, 0}, {"HSETNX", 2, 1}, {"HINCRBY", 2, 1},
};

static void keep(struct mfs_span s)
{
    uint32_t n = (uint32_t)s.n;

    mfs_answer_add(&j.command, &n, 4);
    mfs_answer_span(&j.command, s);
}

static struct mfs_span kept(size_t *at)
{
    uint32_t n;
    struct mfs_span s;

    memcpy(&n, j.command.p + *at, 4);
    s = (struct mfs_span){j.command.p + *at + 4, n};
    *at += 4 + (size_t)n;
    return s;
}

static void on_field_command(struct RedisModuleCommandFilterCtx *c, int step, int most)
{
    int argc = mfs_journal_api.CommandFilterArgsCount(c);

    if (argc < 3)
        return;
    keep(mfs_string_span(mfs_redis.CommandFilterArgGet(c, 1)));
    for (int i = 2; i < argc && (!most || i < 2 + most); i += step)
        keep(mfs_string_span(mfs_redis.CommandFilterArgGet(c, i)));
}

/* Before each command, of any client. */
static void on_command(struct RedisModuleCommandFilterCtx *c)
{
    struct mfs_span name = mfs_string_span(mfs_redis.CommandFilterArgGet(c, 0));

    j.command.n = 0;
    if (name.n < 3 || name.n > 7 || !strchr("hHsSaA", name.p[0]))
        return;
    for (size_t i = 0; i < sizeof by_field / sizeof *by_field; i++) {
        if (!strcasecmp(name.p, by_field[i].name)) {
            on_field_command(c, by_field[i].step, by_field[i].most);
            return;
        }
    }
    j.fence_asked |= !strcasecmp(name.p, "ACL");
}

/* A key was changed: the fields that the command names, if it is about this key. Outside of the
 * turns of the server's loop commands run that were seen by on_command long before. */
static void mark_changed(struct mfs_span key)
{
    size_t at = 0;
    struct mfs_span of;

    if (j.awake && j.command.n) {
        of = kept(&at);
        if (of.n == key.n && !memcmp(of.p, key.p, key.n)) {
            while (at < j.command.n)
                mfs_marks_add(&j.marks, key, kept(&at));
            return;
        }
    }
    mfs_marks_add(&j.marks, key, none);
}

static int on_key(struct RedisModuleCtx *ctx, int type, const char *event,
                  struct RedisModuleString *name)
{
    struct mfs_span key = mfs_string_span(name);

    if (type == MFS_NOTIFY_LOADED) {
        if (j.loading)
            mfs_journal_encode(ctx, key, false, &j.batch);
        if (j.batch.n > LOADED_BATCH)
            write_batch(ctx);
        return MFS_REDIS_OK;
    }
    if (event[0] == 'h' || event[0] == 's')
        mark_changed(key);
    else
        mfs_marks_add(&j.marks, key, none);
    mfs_journal_settle(ctx);
    return MFS_REDIS_OK;
}

/* ---- the server's loop and its content ------------------------------------------------------- */

static void on_loop(struct RedisModuleCtx *ctx, struct mfs_redis_event event, uint64_t sub,
                    void *data)
{
    (void)event;
    (void)data;
    j.awake = sub == MFS_LOOP_AFTER_SLEEP;
    if (j.awake)
        return;
    write_marked(ctx, true);
    rewrite(ctx);
}

static void on_flush(struct RedisModuleCtx *ctx, struct mfs_redis_event event, uint64_t sub,
                     void *data)
{
    (void)event;
    (void)data;
    if (sub == MFS_FLUSHDB_END)
        begin_anew(ctx, false);
}

static void on_loading(struct RedisModuleCtx *ctx, struct mfs_redis_event event, uint64_t sub,
                       void *data)
{
    (void)event;
    (void)data;
    if (sub < MFS_LOADING_ENDED) {
        begin_anew(ctx, true);
    } else if (sub == MFS_LOADING_ENDED && j.loading) {
        j.loading = false;
        add_plain(MFS_JOURNAL_LOADED, 0);
        write_batch(ctx);
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

static int replay(struct RedisModuleCtx *ctx, const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC), rc = 0;
    struct stat st;
    void *bytes;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st))
        rc = -errno;
    else if (!st.st_size)
        rc = -ENODATA;
    bytes = rc ? MAP_FAILED : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (!rc && bytes == MAP_FAILED)
        rc = -errno;
    if (!rc) {
        rc = mfs_journal_replay(ctx, (struct mfs_span){bytes, (size_t)st.st_size}, &j.found);
        munmap(bytes, (size_t)st.st_size);
    }
    if (!rc && ftruncate(fd, (off_t)j.found.whole))
        rc = -errno;
    close(fd);
    return rc;
}

static int hook(struct RedisModuleCtx *ctx)
{
    static const struct {
        uint64_t event;
        mfs_redis_on_event *run;
    } hooks[] = {
        {MFS_EVENT_LOOP, on_loop}, {MFS_EVENT_FLUSHDB, on_flush}, {MFS_EVENT_LOADING, on_loading}};

    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        struct mfs_redis_event event = {hooks[i].event, 1};

        if (mfs_redis.SubscribeToServerEvent(ctx, event, hooks[i].run) != MFS_REDIS_OK)
            return MFS_REDIS_ERR;
    }
    if (!mfs_redis.RegisterCommandFilter(ctx, on_command, 0))
        return MFS_REDIS_ERR;
    return mfs_journal_api.SubscribeToKeyspaceEvents(ctx, MFS_NOTIFY_CHANGES | MFS_NOTIFY_LOADED,
                                                     on_key);
}

int mfs_journal_open(struct RedisModuleCtx *ctx, struct mfs_span path, bool again)
{
    int rc;

    if (mfs_journal_api_bind(ctx) != MFS_REDIS_OK)
        return MFS_REDIS_ERR;
    rc = again ? replay(ctx, path.p) : 0; /* the server's strings end with NUL */
    j.point = j.found.point;
    j.inherited = j.point.stream[0] != '\0';
    j.found.fenced |= j.inherited;
    j.fenced = j.found.fenced;
    mfs_journal_batch_begin(&j.batch);
    if (!rc)
        rc = mfs_journal_file_open(&j.file, path, again);
    if (rc) {
        mfs_journal_api.Log(ctx, "warning", "journal %s: %s", path.p,
                            rc == -ENODATA ? "it is not whole" : strerror(-rc));
        return MFS_REDIS_ERR;
    }
    if (!again)
        begin_anew(ctx, false);
    j.on = true;
    mfs_key_mark_changes(&j.marks);
    return hook(ctx);
}

struct mfs_journal_status mfs_journal_status(void)
{
    return (struct mfs_journal_status){
        .fenced = j.found.fenced,
        .whole = j.on && !j.file.broken && !j.loading,
        .stripes = j.found.stripes,
        .lost = j.found.bytes,
        .bytes = j.file.bytes + j.file.next,
        .rewrites = j.rewrites,
        .died_at = j.inherited ? j.point : (struct mfs_journal_point){.offset = 0}};
}

void mfs_journal_copied(struct RedisModuleCtx *ctx)
{
    if (!j.on || j.copied)
        return;
    j.copied = true;
    j.inherited = false;
    look_point(ctx, j.awake);
}
