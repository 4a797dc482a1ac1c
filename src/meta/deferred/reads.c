/* Files that go when they have been read so often (decisions/0045): readings that have ended are
 * gathered here, and their partitions are told of many at once a moment later, by a thread that
 * there is from the first of them on. A partition answers which files have been read as often as
 * they are to be, and this client takes away the name by which it knew them: by mfs_unlink, of what
 * the partition has seen, if the directory has such a hint. All other names, and those that a
 * client has left as it died, are found by housekeeping (expire.c).
 *
 * A call that may have been executed is not sent again: a reading that is counted twice would lose
 * a file too early, one that is not counted only leaves it. */
#include "meta/deferred/deferred.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <utlist.h>

#include "base/bytes.h"
#include "base/log.h"
#include "meta/cache/cache.h"
#include "meta/ops/ops.h"

#define INTERVAL     (200 * MFS_MSEC)
#define CALL_MOST    256U /* files in one call: bounds the time that it holds up the partition */
#define LOG_INTERVAL (10 * MFS_SEC)

struct mfs_read {
    uint64_t ino, version;
    uint64_t parent; /* 0: no name of it is known */
    struct mfs_read *prev, *next;
    char name[];
};

struct mfs_reads {
    struct mfs_meta *meta;
    pthread_mutex_t mutex; /* guards … */
    struct mfs_read *list;
    bool started; /* whether there is the thread, or no other try at one */
    struct mfs_ticker ticker;
    /* The thread's: */
    size_t removed; /* since the log told last */
    int64_t told;   /* mono */
};

/* --- readings --------------------------------------------------------------------------------- */

struct mfs_read *mfs_meta_read_begin(struct mfs_meta *meta, const struct mfs_attr *attr,
                                     uint64_t parent, const char *name)
{
    char known[MFS_NAME_LEN_MAX + 1];
    struct mfs_read *read;
    size_t n;

    if (!S_ISREG(attr->mode) || mfs_hint_reads(attr->hints) == 0 || attr->size == 0)
        return NULL;
    if (!name) {
        known[0] = '\0';
        if (!mfs_filecache_a_name(meta->files, attr->ino, &parent, known))
            parent = 0;
        name = known;
    }
    n = strlen(name) + 1;
    read = malloc(sizeof *read + n);
    if (!read)
        return NULL;
    *read = (struct mfs_read){.ino = attr->ino, .version = attr->version, .parent = parent};
    memcpy(read->name, name, n);
    return read;
}

void mfs_meta_read_forget(struct mfs_read *read)
{
    free(read);
}

static void tick(void *arg);

void mfs_meta_read_end(struct mfs_meta *meta, struct mfs_read *read)
{
    struct mfs_reads *r = meta->reads;
    int rc = 0;

    if (!read)
        return;
    pthread_mutex_lock(&r->mutex);
    DL_APPEND(r->list, read);
    if (!r->started)
        rc = mfs_ticker_start_resting(&r->ticker, "meta-reads", INTERVAL, tick, r);
    r->started = true;
    mfs_ticker_work(&r->ticker);
    pthread_mutex_unlock(&r->mutex);
    if (rc)
        mfs_warn("meta", "files that have been read stay until the end: no thread: %s",
                 strerror(-rc));
}

/* --- what partitions are told, and answer ----------------------------------------------------- */

void mfs_reads_item(char item[MFS_READS_ITEM], uint64_t ino, uint64_t version, uint32_t count)
{
    mfs_put_be64(item, ino);
    mfs_put_be64(item + 8, version);
    mfs_put_be32(item + 16, count);
}

/* Readings that one partition is told of. */
struct group {
    struct mfs_read *list; /* all of them */
    char items[CALL_MOST * MFS_READS_ITEM];
    size_t n;
};

/* Of those that are left, some of one partition. */
static void take_group(struct group *g, struct mfs_read **left)
{
    uint32_t part = mfs_placement_home((*left)->ino);
    struct mfs_read *read, *next;

    g->list = NULL;
    g->n = 0;
    DL_FOREACH_SAFE(*left, read, next)
    {
        if (g->n == CALL_MOST || mfs_placement_home(read->ino) != part)
            continue;
        DL_DELETE(*left, read);
        DL_APPEND(g->list, read);
        mfs_reads_item(g->items + MFS_READS_ITEM * g->n++, read->ino, read->version, 1);
    }
}

/* Under which name it was read; it may have been under several. */
static void remove_names(struct mfs_reads *r, const struct group *g, const struct mfs_attr *attr)
{
    struct mfs_read *read;
    struct mfs_attr dir;

    DL_FOREACH(g->list, read)
    {
        if (read->ino != attr->ino || !read->parent ||
            mfs_meta_dir(r->meta, read->parent, 0, &dir) || mfs_hint_reads(dir.hints) == 0)
            continue;
        if (!mfs_meta_unlink_seen(r->meta, read->parent, read->name, attr))
            r->removed++;
        read->parent = 0; /* it may have been read several times, and be answered as often */
    }
}

static void take_answer(struct mfs_reads *r, const struct group *g, const struct mfs_reply *answer)
{
    struct mfs_attr attr;
    const char *tail;
    size_t n;

    for (size_t i = 0; i + 1 < mfs_reply_count(answer); i += 2) {
        struct mfs_bytes ino = mfs_reply_bytes(mfs_reply_at(answer, i));
        struct mfs_bytes record = mfs_reply_bytes(mfs_reply_at(answer, i + 1));

        if (ino.n == 8 && record.p &&
            !mfs_meta_record_decode(record.p, record.n, mfs_get_be64(ino.p), &attr, &tail, &n) &&
            S_ISREG(attr.mode))
            remove_names(r, g, &attr);
    }
}

static void tell(struct mfs_reads *r, const struct group *g)
{
    uint32_t part = mfs_placement_home(g->list->ino);
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_reads");
    mfs_args_bin(&c.args, g->items, MFS_READS_ITEM * g->n);
    rc = mfs_call_run(r->meta, &c, part);
    if (rc)
        mfs_warn("meta",
                 "partition %u may not know that %zu files have been read, which may stay: %s",
                 part, g->n, strerror(-rc));
    else
        take_answer(r, g, c.cmd.reply);
    mfs_call_fini(&c);
}

static void flush(struct mfs_reads *r)
{
    struct mfs_read *left, *read, *next;
    struct group *g;

    pthread_mutex_lock(&r->mutex);
    left = r->list;
    r->list = NULL;
    pthread_mutex_unlock(&r->mutex);
    g = left ? malloc(sizeof *g) : NULL;
    while (g && left) {
        take_group(g, &left);
        tell(r, g);
        DL_FOREACH_SAFE(g->list, read, next)
        {
            free(read);
        }
    }
    free(g);
    DL_FOREACH_SAFE(left, read, next) /* no memory */
    {
        free(read);
    }
}

static void log_removed(struct mfs_reads *r, int64_t interval)
{
    int64_t now = mfs_clock_mono();

    if (r->removed == 0)
        return;
    if (now - r->told < interval) {
        mfs_ticker_again(&r->ticker, interval - (now - r->told));
        return;
    }
    mfs_info("meta", "%zu files had been read as often as they were to be, and are gone",
             r->removed);
    r->removed = 0;
    r->told = now;
}

static void tick(void *arg)
{
    struct mfs_reads *r = arg;

    flush(r);
    log_removed(r, LOG_INTERVAL);
}

/* --- life ------------------------------------------------------------------------------------- */

struct mfs_reads *mfs_reads_create(struct mfs_meta *meta)
{
    struct mfs_reads *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->meta = meta;
    pthread_mutex_init(&r->mutex, NULL);
    return r;
}

void mfs_reads_stop(struct mfs_reads *r)
{
    mfs_ticker_stop(&r->ticker);
    flush(r);
    log_removed(r, 0);
}

void mfs_reads_destroy(struct mfs_reads *r)
{
    struct mfs_read *read, *next;

    if (!r)
        return;
    mfs_ticker_stop(&r->ticker);
    DL_FOREACH_SAFE(r->list, read, next)
    {
        free(read);
    }
    pthread_mutex_destroy(&r->mutex);
    free(r);
}
