/* Files that go when they have been read so often (decisions/0045): readings that have ended are
 * gathered here, and their partitions are told of all of them at once a moment later, by a thread
 * that there is from the first of them on. A partition answers which files have been read as often
 * as they are to be, and this client takes away the name by which it knew them: by mfs_unlink, of
 * what the partition has seen, if the directory has such a hint. All other names, and those that a
 * client has left as it died, are found by housekeeping (expire.c).
 *
 * A call that may have been executed is not sent again: a reading that is counted twice would lose
 * a file too early, one that is not counted only leaves it. Nor is any other process told than the
 * one of which the content was: versions that a replica gives after it has taken over may be those
 * of other content that the former process had given. */
#include "meta/deferred/deferred.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <utlist.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/threads/thread.h"
#include "meta/cache/cache.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"

#define INTERVAL     (200 * MFS_MSEC)
#define END_MOST     MFS_SEC    /* that names are removed for at the end */
#define READS_MOST   (1U << 18) /* readings, or names, that wait: what is more does not count */
#define CALL_MOST    256U /* files in one call: bounds the time that it holds up the partition */
#define THREADS_MOST 8U   /* that remove names, … */
#define THREAD_EACH  16U  /* … one more for so many */
#define LOG_INTERVAL (10 * MFS_SEC)

struct mfs_read {
    uint64_t ino, version;
    uint64_t parent;       /* 0: no name of it is known */
    uint32_t era;          /* of the process whose content it is (mfs_store_era) */
    struct timespec ctime; /* of a name that is to go: as the partition has seen its file */
    struct mfs_read *prev, *next;
    char name[];
};

struct mfs_reads {
    struct mfs_meta *meta;
    pthread_mutex_t mutex; /* guards … */
    struct mfs_read *list;
    size_t n;     /* of them */
    bool started; /* whether there is the thread, or no other try at one */
    struct mfs_ticker ticker;
    /* The thread's: */
    struct mfs_read *names; /* that are to go */
    size_t nnames;
    size_t removed, lost; /* names and readings since the log told last */
    int lost_rc;
    int64_t told; /* mono */
};

/* --- readings --------------------------------------------------------------------------------- */

uint64_t mfs_meta_read_mark(const struct mfs_meta *meta)
{
    return mfs_store_failovers(meta->store);
}

/* Of the process that has told this client of the file since the mark, or will: before a table has
 * another one it has more failovers. False: that may have been one or the other. */
static bool era_since(struct mfs_meta *meta, uint64_t mark, uint64_t ino, uint32_t *era)
{
    uint32_t part = mfs_placement_home(ino);

    if (part >= meta->nparts)
        return false;
    *era = mfs_store_era(meta->store, part);
    return mfs_store_failovers(meta->store) == mark;
}

struct mfs_read *mfs_meta_read_begin(struct mfs_meta *meta, uint64_t mark,
                                     const struct mfs_attr *attr, uint64_t parent, const char *name)
{
    char known[MFS_NAME_LEN_MAX + 1];
    struct mfs_read *read;
    uint32_t era;
    size_t n;

    if (!S_ISREG(attr->mode) || mfs_hint_reads(attr->hints) == 0 || attr->size == 0 ||
        !era_since(meta, mark, attr->ino, &era))
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
    *read =
        (struct mfs_read){.ino = attr->ino, .version = attr->version, .parent = parent, .era = era};
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
    if (r->n < READS_MOST) {
        DL_APPEND(r->list, read);
        r->n++;
        read = NULL;
    }
    if (!r->started)
        rc = mfs_ticker_start_resting(&r->ticker, "meta-reads", INTERVAL, tick, r);
    r->started = true;
    mfs_ticker_work(&r->ticker);
    pthread_mutex_unlock(&r->mutex);
    free(read);
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

/* Readings, those of one partition in a row, and the commands that tell of them. */
struct telling {
    struct mfs_read **reads;
    char *items;
    struct mfs_arg (*argv)[2];
    struct mfs_cmd *cmds;
    size_t *first; /* of each command's readings; and their end */
    size_t n;      /* commands */
};

static void telling_fini(struct telling *t)
{
    free(t->reads);
    free(t->items);
    free(t->argv);
    free(t->cmds);
    free(t->first);
}

static int telling_init(struct telling *t, size_t nreads)
{
    *t = (struct telling){.reads = calloc(nreads, sizeof *t->reads),
                          .items = malloc(nreads * MFS_READS_ITEM),
                          .argv = calloc(nreads, sizeof *t->argv),
                          .cmds = calloc(nreads, sizeof *t->cmds),
                          .first = calloc(nreads + 1, sizeof *t->first)};
    return t->reads && t->items && t->argv && t->cmds && t->first ? 0 : -ENOMEM;
}

static int by_process(const struct mfs_read *a, const struct mfs_read *b)
{
    uint32_t x = mfs_placement_home(a->ino), y = mfs_placement_home(b->ino);

    return x != y ? (x > y) - (x < y) : (a->era > b->era) - (a->era < b->era);
}

/* Does the reading go into another command than the one before it? */
static bool begins_command(const struct telling *t, size_t i, const struct mfs_read *read)
{
    const struct mfs_cmd *last = &t->cmds[t->n - 1];

    return t->n == 0 || last->part != mfs_placement_home(read->ino) ||
           last->only_era != read->era || i - t->first[t->n - 1] == CALL_MOST;
}

static void prepare(struct telling *t, struct mfs_read *list)
{
    struct mfs_read *read;
    size_t i = 0;

    DL_FOREACH(list, read)
    {
        if (begins_command(t, i, read)) {
            t->argv[t->n][0] = (struct mfs_arg){"mfs_reads", strlen("mfs_reads")};
            t->argv[t->n][1].p = t->items + MFS_READS_ITEM * i;
            t->cmds[t->n] = (struct mfs_cmd){.part = mfs_placement_home(read->ino),
                                             .argv = t->argv[t->n],
                                             .argc = 2,
                                             .in_era = true,
                                             .only_era = read->era};
            t->first[t->n++] = i;
        }
        t->argv[t->n - 1][1].len += MFS_READS_ITEM;
        mfs_reads_item(t->items + MFS_READS_ITEM * i, read->ino, read->version, 1);
        t->reads[i++] = read;
    }
    t->first[t->n] = i;
}

/* Under which name it was read is to go; it may have been under several. */
static void take_names(const struct telling *t, size_t cmd, const struct mfs_attr *attr)
{
    for (size_t i = t->first[cmd]; i < t->first[cmd + 1]; i++)
        if (t->reads[i]->ino == attr->ino)
            t->reads[i]->ctime = attr->ctime;
}

static void take_answer(const struct telling *t, size_t cmd)
{
    const struct mfs_reply *answer = t->cmds[cmd].reply;
    struct mfs_attr attr;
    const char *tail;
    size_t n;

    for (size_t i = 0; i + 1 < mfs_reply_count(answer); i += 2) {
        struct mfs_bytes ino = mfs_reply_bytes(mfs_reply_at(answer, i));
        struct mfs_bytes record = mfs_reply_bytes(mfs_reply_at(answer, i + 1));

        if (ino.n == 8 && record.p &&
            !mfs_meta_record_decode(record.p, record.n, mfs_get_be64(ino.p), &attr, &tail, &n) &&
            S_ISREG(attr.mode))
            take_names(t, cmd, &attr);
    }
}

static void tell(struct mfs_reads *r, struct mfs_read *list, size_t n)
{
    struct telling t;
    int rc = telling_init(&t, n);

    if (rc) {
        r->lost += n;
        r->lost_rc = rc;
    } else {
        prepare(&t, list);
        mfs_session_note_outcome(r->meta, mfs_store_exec(r->meta->store, t.cmds, t.n));
    }
    for (size_t i = 0; i < t.n; i++) {
        if (t.cmds[i].rc == 0) {
            take_answer(&t, i);
        } else {
            r->lost += t.first[i + 1] - t.first[i];
            r->lost_rc = t.cmds[i].rc;
        }
    }
    if (!rc)
        mfs_cmds_fini(t.cmds, t.n);
    telling_fini(&t);
}

static void flush(struct mfs_reads *r)
{
    struct mfs_read *list, *read, *next;
    size_t n;

    pthread_mutex_lock(&r->mutex);
    list = r->list;
    n = r->n;
    r->list = NULL;
    r->n = 0;
    pthread_mutex_unlock(&r->mutex);
    if (!list)
        return;
    DL_SORT(list, by_process);
    tell(r, list, n);
    DL_FOREACH_SAFE(list, read, next)
    {
        DL_DELETE(list, read);
        if (read->parent && read->ctime.tv_sec != 0 && r->nnames < READS_MOST) {
            DL_APPEND(r->names, read);
            r->nnames++;
        } else {
            free(read);
        }
    }
}

/* --- names that go ---------------------------------------------------------------------------- */

/* Each is a call or two that wait for a partition, or for clients that have leases: several threads
 * go on at the same time, and others may end readings meanwhile. */
struct removing {
    struct mfs_reads *r;
    int64_t until;         /* mono: no other name after that */
    pthread_mutex_t mutex; /* guards r->names, r->nnames and r->removed */
};

static struct mfs_read *next_name(struct removing *all)
{
    struct mfs_reads *r = all->r;
    struct mfs_read *read = NULL;

    pthread_mutex_lock(&all->mutex);
    if (r->names && mfs_clock_mono() < all->until) {
        read = r->names;
        DL_DELETE(r->names, read);
        r->nnames--;
    }
    pthread_mutex_unlock(&all->mutex);
    return read;
}

static bool remove_name(struct mfs_meta *meta, const struct mfs_read *read)
{
    const struct mfs_attr seen = {.ino = read->ino, .ctime = read->ctime};
    struct mfs_attr dir;

    return !mfs_meta_dir(meta, read->parent, 0, &dir) && mfs_hint_reads(dir.hints) != 0 &&
           !mfs_meta_unlink_seen(meta, read->parent, read->name, &seen);
}

static void *remove_some(void *arg)
{
    struct removing *all = arg;
    struct mfs_read *read;
    size_t removed = 0;

    while ((read = next_name(all))) {
        removed += remove_name(all->r->meta, read);
        free(read);
    }
    pthread_mutex_lock(&all->mutex);
    all->r->removed += removed;
    pthread_mutex_unlock(&all->mutex);
    return NULL;
}

/* For so many ns. */
static void remove_names(struct mfs_reads *r, int64_t ns)
{
    struct removing all = {.r = r, .until = mfs_clock_mono() + ns};
    pthread_t thread[THREADS_MOST - 1];
    size_t wanted = r->nnames / THREAD_EACH, n = 0;

    if (!r->names)
        return;
    if (wanted > THREADS_MOST - 1)
        wanted = THREADS_MOST - 1;
    pthread_mutex_init(&all.mutex, NULL);
    while (n < wanted && !mfs_thread_start(&thread[n], "meta-reads", remove_some, &all))
        n++;
    remove_some(&all);
    for (size_t i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&all.mutex);
}

static void log_some(struct mfs_reads *r, int64_t interval)
{
    int64_t now = mfs_clock_mono();

    if (r->removed == 0 && r->lost == 0)
        return;
    if (now - r->told < interval) {
        mfs_ticker_again(&r->ticker, interval - (now - r->told));
        return;
    }
    if (r->removed > 0)
        mfs_info("meta", "%zu files had been read as often as they were to be, and are gone",
                 r->removed);
    if (r->lost > 0)
        mfs_warn(
            "meta", "partitions may not know that %zu files have been read, which may stay: %s",
            r->lost, r->lost_rc == -ECANCELED ? "a replica has taken over" : strerror(-r->lost_rc));
    r->removed = r->lost = 0;
    r->told = now;
}

static void tick(void *arg)
{
    struct mfs_reads *r = arg;

    flush(r);
    remove_names(r, INTERVAL);
    log_some(r, LOG_INTERVAL);
    if (r->names)
        mfs_ticker_hurry(&r->ticker);
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
    remove_names(r, END_MOST); /* the others are left to housekeeping */
    log_some(r, 0);
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
    DL_FOREACH_SAFE(r->names, read, next)
    {
        free(read);
    }
    pthread_mutex_destroy(&r->mutex);
    free(r);
}
