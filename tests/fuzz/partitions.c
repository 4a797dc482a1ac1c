#include "partitions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "meta/record.h"
#include "store/internal.h"

#define DEPTH    4 /* of arrays in arrays */
#define ELEMENTS 64
#define TRUSTED  (INT64_MAX / 2) /* idle_since: the connection is not looked at before its use */

/* ---- connections ----------------------------------------------------------------------------- */

struct mfs_channel *fuzz_channel(int *fd, int64_t wait)
{
    struct timeval tv = {.tv_sec = wait / MFS_SEC, .tv_usec = wait % MFS_SEC / 1000};
    struct mfs_channel *conn = calloc(1, sizeof *conn);
    int pair[2];

    FUZZ_CHECK(conn && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    conn->ctx = redisConnectFd(pair[0]);
    FUZZ_CHECK(conn->ctx && redisSetTimeout(conn->ctx, tv) == REDIS_OK);
    mfs_channel_limit(conn);
    conn->deadline = INT64_MAX;
    *fd = pair[1];
    return conn;
}

void fuzz_partitions_init(struct fuzz_partitions *f, const char *path, int64_t wait)
{
    struct mfs_store_opts opts = {.io_timeout = wait, .fence_wait = 1};
    struct mfs_table *table = mfs_table_new(FUZZ_PARTITIONS);

    FUZZ_CHECK(table);
    f->wait = wait;
    table->epoch = 1;
    table->stripe_size = MFS_STRIPE_SIZE_DEFAULT;
    snprintf(table->name, sizeof table->name, "fuzz");
    for (uint32_t i = 0; i < FUZZ_PARTITIONS; i++) {
        f->fd[i] = -1;
        snprintf(table->part[i].host, sizeof table->part[i].host, "127.0.0.1");
        snprintf(table->part[i].unix_path, sizeof table->part[i].unix_path, "%s", path);
    }
    FUZZ_CHECK(!mfs_store_create(&f->store, table, &opts));
    fuzz_partitions_renew(f);
}

static void renew(struct fuzz_partitions *f, uint32_t i)
{
    struct mfs_part *part = &f->store->part[i];

    mfs_pool_close_all(mfs_idle_take(f->store, part));
    if (f->fd[i] >= 0)
        close(f->fd[i]);
    f->conn[i] = fuzz_channel(&f->fd[i], f->wait);
    f->conn[i]->gen = part->gen;
    f->conn[i]->idle_since = TRUSTED;
    part->idle = f->conn[i];
    part->nidle = 1;
    f->store->nidle++;
    part->down_since = 0;
    part->fenced = false;
}

void fuzz_partitions_renew(struct fuzz_partitions *f)
{
    pthread_mutex_lock(&f->store->lock);
    for (uint32_t i = 0; i < FUZZ_PARTITIONS; i++)
        renew(f, i);
    pthread_mutex_unlock(&f->store->lock);
}

bool fuzz_partition_say(struct fuzz_partitions *f, uint32_t part, const void *p, size_t n)
{
    char asked[16384];
    ssize_t got;

    do {
        got = recv(f->fd[part], asked, sizeof asked, MSG_DONTWAIT);
    } while (got > 0);
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        return false;
    f->conn[part]->idle_since = TRUSTED; /* it lives, as its end is open */
    return send(f->fd[part], p, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

/* ---- replies --------------------------------------------------------------------------------- */

static void put(struct mfs_buf *out, const void *p, size_t n)
{
    FUZZ_CHECK(!mfs_buf_append(out, p, n));
}

static void put_head(struct mfs_buf *out, char kind, long long n)
{
    FUZZ_CHECK(!mfs_buf_printf(out, "%c%lld\r\n", kind, n));
}

static void put_string(struct mfs_buf *out, const void *p, size_t n)
{
    put_head(out, '$', (long long)n);
    put(out, p, n);
    put(out, "\r\n", 2);
}

static void put_taken(struct mfs_buf *out, struct fuzz_input text)
{
    put_string(out, text.p, text.n);
}

/* One line, so neither CR nor LF. */
static void put_error(struct mfs_buf *out, struct fuzz_input text)
{
    put(out, "-", 1);
    for (size_t i = 0; i < text.n; i++)
        put(out, text.p[i] < ' ' ? "?" : (const char *)text.p + i, 1);
    put(out, "\r\n", 2);
}

static void put_record(struct mfs_buf *out, struct fuzz_input *in)
{
    struct mfs_attr attr = {.version = 1, .nlink = 1, .alloc = 4096};
    char record[MFS_RECORD_FIXED + 255];
    struct fuzz_input tail;

    attr.mode = fuzz_u16(in);
    attr.size = attr.data_end = fuzz_u16(in);
    tail = fuzz_take(in, fuzz_u8(in));
    mfs_meta_record_encode(&attr, record);
    if (tail.n)
        memcpy(record + MFS_RECORD_FIXED, tail.p, tail.n);
    put_string(out, record, MFS_RECORD_FIXED + tail.n);
}

static void put_reply(struct fuzz_input *in, struct mfs_buf *out, unsigned depth)
{
    uint8_t kind = fuzz_u8(in) % 10, n;

    switch (kind) {
    case 1:
        put_head(out, ':', (int8_t)fuzz_u8(in));
        break;
    case 2:
        put_head(out, ':', (int64_t)fuzz_u64(in));
        break;
    case 3:
        put_taken(out, fuzz_take(in, fuzz_u8(in)));
        break;
    case 4:
        put_taken(out, fuzz_take(in, fuzz_u16(in)));
        break;
    case 5:
        n = depth < DEPTH ? fuzz_u8(in) % ELEMENTS : 0;
        put_head(out, '*', n);
        for (uint8_t i = 0; i < n; i++)
            put_reply(in, out, depth + 1);
        break;
    case 6:
        put_error(out, fuzz_take(in, fuzz_u8(in)));
        break;
    case 7:
        put_taken(out, fuzz_take(in, 8));
        break;
    case 8:
        put(out, "+OK\r\n", 5);
        break;
    case 9:
        put_record(out, in);
        break;
    default:
        put(out, "$-1\r\n", 5);
    }
}

void fuzz_reply(struct fuzz_input *in, struct mfs_buf *out)
{
    put_reply(in, out, 0);
}
