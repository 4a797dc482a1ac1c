/* Link counts that follow names in another partition: of an inode whose name went, or is to come,
 * not at its home. Where the first step is done it is noted (#intents), and the partition that does
 * the second one remembers that (T txn), so that it is done once: by the client, or, when that has
 * died or has lost an answer, by any client's housekeeping.
 *
 *     unlink, a rename over it    noted where the name was; its home decides, by counting
 *     link                        noted at the home; the name's partition decides, by having it
 *
 * A note is deleted before its outcome is, or the step would be done again. Both are deleted a
 * moment later, of many at once; the outcome only if the note was gone before housekeeping could
 * have taken it for left behind, as another client's may be on its way to do the step, too. What is
 * not deleted so is left to housekeeping, or to its time to live. */
#include "meta/internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/deferred/deferred.h"
#include "meta/ops/ops.h"
#include "meta/session/unregistered_opens.h"
#include "meta/txn/txn.h"
#include "partition/protocol.h"

#define AT_ONCE   64
#define GONE_LEN  8                    /* of a note: the inode */
#define COMES_LEN 18                   /* zeros, decider, inode */
#define TOO_OLD   (20 * INT64_C(3600)) /* s */

static_assert(TOO_OLD * 1000 < MFS_TXN_LIFE_MS, "younger ones' outcomes are remembered");

struct done {
    char txn[MFS_TXN_LEN];
    int64_t begun;
    uint32_t noted, decider;
    struct done *next;
};

struct mfs_link_counts {
    pthread_mutex_t flushing; /* one at a time: the next one then finds everything done */
    pthread_mutex_t mutex;    /* a leaf */
    struct done *list;        /* under mutex */
};

struct mfs_link_counts *mfs_link_counts_create(void)
{
    struct mfs_link_counts *d = calloc(1, sizeof *d);

    if (d) {
        pthread_mutex_init(&d->flushing, NULL);
        pthread_mutex_init(&d->mutex, NULL);
    }
    return d;
}

static void drop(struct done *p)
{
    while (p) {
        struct done *next = p->next;

        free(p);
        p = next;
    }
}

void mfs_link_counts_destroy(struct mfs_link_counts *d)
{
    if (!d)
        return;
    drop(d->list);
    pthread_mutex_destroy(&d->flushing);
    pthread_mutex_destroy(&d->mutex);
    free(d);
}

void mfs_link_counts_done(struct mfs_meta *meta, const char *txn, int64_t begun, uint32_t noted,
                          uint32_t decider)
{
    struct mfs_link_counts *d = meta->link_counts;
    struct done *p = malloc(sizeof *p);

    if (!p)
        return; /* housekeeping will find that it is done */
    memcpy(p->txn, txn, MFS_TXN_LEN);
    p->begun = begun;
    p->noted = noted;
    p->decider = decider;
    pthread_mutex_lock(&d->mutex);
    p->next = d->list;
    d->list = p;
    pthread_mutex_unlock(&d->mutex);
    mfs_ticker_work(&meta->closes_ticker);
}

/* --- forgetting ---------------------------------------------------------------------------------
 */

struct batch {
    const struct done *done[AT_ONCE];
    char key[AT_ONCE][1 + MFS_TXN_LEN];
    struct mfs_args args[AT_ONCE];
    struct mfs_cmd cmds[AT_ONCE];
    size_t n;
};

/* What remains in the batch no other client has taken for left behind, nor will. */
static void forget_notes(struct mfs_meta *meta, struct batch *b)
{
    int64_t unseen = meta->limits.intent_seconds * MFS_SEC / 2, now;
    size_t kept = 0;

    for (size_t i = 0; i < b->n; i++) {
        mfs_args_init(&b->args[i], "HDEL");
        mfs_args_str(&b->args[i], "#intents");
        mfs_args_bin(&b->args[i], b->done[i]->txn, MFS_TXN_LEN);
        b->cmds[i] = mfs_args_cmd(&b->args[i], b->done[i]->noted);
        b->cmds[i].idempotent = true;
    }
    mfs_store_exec(meta->store, b->cmds, b->n);
    now = mfs_clock_mono();
    for (size_t i = 0; i < b->n; i++)
        if (!b->cmds[i].rc && now - b->done[i]->begun < unseen)
            b->done[kept++] = b->done[i];
    mfs_cmds_fini(b->cmds, b->n);
    b->n = kept;
}

static void forget_outcomes(struct mfs_meta *meta, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        b->key[i][0] = 'T';
        memcpy(b->key[i] + 1, b->done[i]->txn, MFS_TXN_LEN);
        mfs_args_init(&b->args[i], "DEL");
        mfs_args_bin(&b->args[i], b->key[i], sizeof b->key[i]);
        b->cmds[i] = mfs_args_cmd(&b->args[i], b->done[i]->decider);
        b->cmds[i].idempotent = true;
    }
    if (b->n)
        mfs_store_exec(meta->store, b->cmds, b->n);
    mfs_cmds_fini(b->cmds, b->n);
}

void mfs_link_counts_flush(struct mfs_meta *meta)
{
    struct mfs_link_counts *d = meta->link_counts;
    struct done *list, *at;
    struct batch *b;

    pthread_mutex_lock(&d->flushing);
    pthread_mutex_lock(&d->mutex);
    list = at = d->list;
    d->list = NULL;
    pthread_mutex_unlock(&d->mutex);
    b = list ? malloc(sizeof *b) : NULL;
    while (b && at) {
        for (b->n = 0; at && b->n < AT_ONCE; at = at->next)
            b->done[b->n++] = at;
        forget_notes(meta, b);
        forget_outcomes(meta, b);
    }
    free(b);
    drop(list);
    pthread_mutex_unlock(&d->flushing);
}

/* --- what others have left ----------------------------------------------------------------------
 */

bool mfs_link_counts_is_note(struct mfs_bytes note)
{
    static const char none[8];

    return note.n == GONE_LEN || (note.n == COMES_LEN && !memcmp(note.p, none, sizeof none));
}

static void forget_note(struct mfs_meta *meta, uint32_t part, const char *txn)
{
    struct mfs_call c;

    mfs_call_command(&c, "HDEL");
    mfs_args_str(&c.args, "#intents");
    mfs_args_bin(&c.args, txn, MFS_TXN_LEN);
    c.cmd.idempotent = true;
    mfs_call_run(meta, &c, part);
    mfs_call_fini(&c);
}

static int count_less(struct mfs_meta *meta, uint64_t ino, const char *txn)
{
    struct mfs_time_arg time = mfs_now_arg();
    int rc;

    mfs_info("meta", "ending a change of the names of inode %" PRIx64 " that was left", ino);
    mfs_filecache_revoke(meta->files, ino); /* the name that is gone, too */
    mfs_unregistered_removing(meta->unregistered);
    rc = mfs_meta_unref(meta, ino, &time, txn, (struct mfs_bytes){0});
    mfs_unregistered_removed(meta->unregistered);
    return rc;
}

void mfs_link_counts_finish(struct mfs_meta *meta, uint32_t part, const char *txn,
                            struct mfs_bytes note, int64_t age)
{
    uint64_t ino = mfs_get_be64(note.p + note.n - 8);
    int rc = 0;

    if (age > TOO_OLD) { /* whether it was done is forgotten; too high a count only leaks */
        mfs_warn("meta", "inode %" PRIx64 " may count a name too many, see memefs fsck", ino);
    } else if (note.n == COMES_LEN) {
        rc = mfs_txn_abort(meta, txn, mfs_get_be16(note.p + 8));
        rc = rc ? rc : count_less(meta, ino, txn);
    } else {
        rc = count_less(meta, ino, txn);
    }
    if (rc >= 0 || rc == -ESTALE) /* which is a partition that there never was */
        forget_note(meta, part, txn);
}
