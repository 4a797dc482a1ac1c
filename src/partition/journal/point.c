#include "partition/journal/point.h"

#include <stdlib.h>
#include <string.h>

#include "partition/journal/format.h"
#include "partition/redis.h"

/* What is behind "name" at the beginning of a line, up to the line's end. */
static struct mfs_span value_of(struct mfs_span text, const char *name)
{
    size_t n = strlen(name);
    const char *end;

    while (text.n) {
        end = memchr(text.p, '\r', text.n);
        if (!end)
            break;
        if ((size_t)(end - text.p) >= n && !memcmp(text.p, name, n))
            return (struct mfs_span){text.p + n, (size_t)(end - text.p) - n};
        end += text.n > (size_t)(end - text.p) + 1 ? 2 : 1;
        text.n -= (size_t)(end - text.p);
        text.p = end;
    }
    return (struct mfs_span){NULL, 0};
}

static int64_t number(struct mfs_span digits)
{
    char text[24] = "";

    if (!digits.n || digits.n >= sizeof text)
        return MFS_POINT_UNKNOWN;
    memcpy(text, digits.p, digits.n);
    return strtoll(text, NULL, 10);
}

struct mfs_journal_point mfs_point_of(struct mfs_span stream, int64_t offset)
{
    struct mfs_journal_point p = {.offset = offset};

    if (!stream.n || stream.n > MFS_POINT_STREAM)
        return (struct mfs_journal_point){.offset = 0};
    memcpy(p.stream, stream.p, stream.n);
    return p;
}

struct mfs_journal_point mfs_point_now(struct RedisModuleCtx *ctx)
{
    struct RedisModuleCallReply *info = mfs_redis.Call(ctx, "INFO", "c", "replication");
    struct mfs_journal_point p = {.stream = "?", .offset = MFS_POINT_UNKNOWN};
    struct mfs_span text = {NULL, 0}, stream;

    if (info)
        text.p = mfs_redis.CallReplyStringPtr(info, &text.n);
    if (text.p) {
        stream = value_of(text, "master_replid:");
        if (stream.n && stream.n <= MFS_POINT_STREAM)
            p = mfs_point_of(stream, number(value_of(text, "master_repl_offset:")));
    }
    if (info)
        mfs_redis.FreeCallReply(info);
    return p;
}

bool mfs_point_same(const struct mfs_journal_point *a, const struct mfs_journal_point *b)
{
    return a->offset == b->offset && !strcmp(a->stream, b->stream);
}

void mfs_point_add(struct mfs_answer *batch, const struct mfs_journal_point *p)
{
    struct mfs_journal_record r = {
        .kind = MFS_JOURNAL_POINT, .key = {p->stream, strlen(p->stream)}, .number = p->offset};

    mfs_journal_batch_add(batch, &r);
}
