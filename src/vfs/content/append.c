#include "vfs/content/append.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "data/stripes/stripes.h"
#include "vfs/content/commit.h"
#include "vfs/content/fills.h"
#include "vfs/content/privileges.h"
#include "vfs/content/tail.h"

#define GATHER_MAX   ((size_t)128 << 10) /* bytes of a file */
#define GATHER_ONE   ((size_t)32 << 10)  /* of an append; larger ones are stored at once */
#define GATHER_AGE   (250 * MFS_MSEC)    /* stored after this, or somewhat later */
#define OFTEN        (1 * MFS_SEC)       /* two appends within this are followed by others */
#define AFTER_RECALL (100 * MFS_MSEC)    /* no new lease: the other mount is to get its turn */
#define AFTER_ERROR  (1 * MFS_SEC)       /* nor after an error, or while others have it open */
#define APPEND_TRIES 8 /* each after the session was taken for dead in the one before */
#define FULL_PAUSE   (50 * MFS_MSEC)
#define FULL_LEAST   (2 * MFS_SEC) /* as other writes that were accepted */

/* --- at the home: append.busy is this thread's ------------------------------------------------ */

/* The place behind the end is ours alone, asked for at mono time `since`: stores the bytes there,
 * then the file grows. -ECANCELED: others took this session for dead, the place is theirs. */
static int fill_appended(struct mfs_vnode *v, const void *buf, size_t len, uint64_t off,
                         uint32_t drop, struct mfs_end_lease *lease, uint64_t number, int64_t since)
{
    struct mfs_vfs *vfs = v->vfs;
    struct mfs_range place = {off, off + len};
    int rc = -ECANCELED, end;
    struct mfs_attr attr;
    int64_t alloc = 0;
    uint64_t from;

    if (mfs_meta_append_holds(vfs->meta, since))
        rc = mfs_stripes_write(vfs->store, v->ino, off, len, buf, &alloc);
    if (rc == -ENOSPC) /* of one partition: others may have stored their part */
        mfs_vnode_leave_void(v, place.hi, &attr);
    end = mfs_meta_append_end_leased(vfs->meta, v->ino, number, rc == 0, &place, drop, lease, &from,
                                     &attr);
    if (rc == 0 && end == 0)
        mfs_vnode_carry(v, from, &attr);
    return rc < 0 ? rc : end;
}

/* *off: where the bytes went. */
static int append_once(struct mfs_vnode *v, const void *buf, size_t len, uint32_t drop,
                       struct mfs_end_lease *lease, uint64_t *off)
{
    int64_t since = mfs_clock_mono();
    struct mfs_attr attr;
    uint64_t from, number;
    int rc = mfs_meta_append_leased(v->vfs->meta, v->ino, buf, len, drop, lease, off, &number,
                                    &from, &attr);

    if (rc == 0 && number == 0)
        mfs_vnode_carry(v, from, &attr);
    else if (rc == 0)
        rc = fill_appended(v, buf, len, *off, drop, lease, number, since);
    return rc;
}

/* *at: as in mfs_append. */
static int append_at_home(struct mfs_vnode *v, const void *buf, size_t len, uint64_t *at,
                          uint32_t drop, struct mfs_end_lease *lease)
{
    uint64_t guess = *at, off = guess;
    int rc = -ECANCELED;

    mfs_vnode_changed(v);
    atomic_fetch_add(&v->changing, 1);
    for (int i = 0; i < APPEND_TRIES && rc == -ECANCELED; i++)
        rc = append_once(v, buf, len, drop, lease, &off);
    atomic_fetch_sub(&v->changing, 1);
    if (rc == -ECANCELED)
        rc = -EIO;
    if (off != guess || rc < 0) {
        mfs_vnode_drop_pages(v);
        mfs_fills_append_moved(v);
    } else {
        mfs_tail_made(v, off + len, false);
    }
    *at = off;
    return rc;
}

/* What a write has accepted waits for memory that may come. */
static int append_gathered(struct mfs_vnode *v, struct mfs_end_lease *lease)
{
    int64_t since = mfs_clock_mono();
    int rc;

    for (;;) {
        uint64_t at = v->append.begin;

        rc = append_at_home(v, v->append.buf, v->append.n, &at, v->append.drop, lease);
        int64_t wait = mfs_store_full_wait(v->vfs->store);

        if (rc != -ENOSPC || mfs_clock_mono() - since >= (wait > FULL_LEAST ? wait : FULL_LEAST))
            return rc;
        mfs_clock_sleep(FULL_PAUSE);
    }
}

/* Another mount that wants the file could not tell a client that hears no notices. */
static bool hears(const struct mfs_vnode *v)
{
    return mfs_meta_in_contact(v->vfs->meta);
}

/* --- one thread at a time: append.lock is held ------------------------------------------------ */

static void wait_idle(struct mfs_vnode *v)
{
    while (v->append.busy)
        mfs_cond_wait(&v->append.changed, &v->append.lock, MFS_SEC);
}

static void end_busy(struct mfs_vnode *v, const struct mfs_end_lease *lease)
{
    v->append.lease = *lease;
    v->append.busy = false;
    if (lease->number == 0) {
        free(v->append.buf);
        v->append.buf = NULL;
    }
    pthread_cond_broadcast(&v->append.changed);
}

/* --- storing what is gathered ----------------------------------------------------------------- */

/* append.lock is held, and dropped meanwhile. */
static void store_gathered(struct mfs_vnode *v, bool keep)
{
    struct mfs_end_lease lease = v->append.lease;
    size_t n = v->append.n;
    int rc = 0;

    v->append.busy = true;
    lease.wanted = keep && !v->append.recalled && hears(v);
    lease.mtime = v->append.mtime;
    pthread_mutex_unlock(&v->append.lock);
    if (n > 0)
        rc = append_gathered(v, &lease);
    else
        mfs_meta_end_give_back(v->vfs->meta, v->ino, &lease);
    if (rc < 0)
        mfs_dirty_lost(atomic_load(&v->dirty), rc);
    if (n > 0)
        mfs_dirty_gathers(atomic_load(&v->dirty), false);
    pthread_mutex_lock(&v->append.lock);
    v->append.n = 0;
    v->append.drop = 0;
    if (rc < 0) {
        v->append.failed = true;
        v->append.again = mfs_clock_mono() + AFTER_ERROR;
    }
    end_busy(v, &lease);
}

static void store(struct mfs_vnode *v, bool keep)
{
    pthread_mutex_lock(&v->append.lock);
    /* One that appends at the home with nothing gathered has not answered its caller yet. */
    if (!keep || v->append.n > 0)
        wait_idle(v);
    if (v->append.n > 0 || (!keep && v->append.lease.number != 0))
        store_gathered(v, keep);
    pthread_mutex_unlock(&v->append.lock);
}

void mfs_append_store(struct mfs_vnode *v)
{
    store(v, true);
}

void mfs_append_stop(struct mfs_vnode *v)
{
    store(v, false);
}

/* An mfs_dirty_gathered_fn. */
static void gathered(void *arg, bool due)
{
    struct mfs_vnode *v = arg;
    int64_t now = mfs_clock_mono();
    bool keep, leased;

    if (!due) {
        mfs_append_store(v);
        return;
    }
    pthread_mutex_lock(&v->append.lock);
    keep = !v->append.recalled && now - v->append.last < OFTEN && hears(v);
    pthread_mutex_unlock(&v->append.lock);
    store(v, keep);
    pthread_mutex_lock(&v->append.lock);
    if (v->append.recalled)
        v->append.again = mfs_clock_mono() + AFTER_RECALL;
    v->append.recalled = false;
    leased = v->append.lease.number != 0;
    pthread_mutex_unlock(&v->append.lock);
    if (leased)
        mfs_dirty_gathered(atomic_load(&v->dirty), gathered, mfs_clock_mono() + GATHER_AGE);
}

void mfs_append_end_wanted(void *arg, uint64_t ino)
{
    struct mfs_vnode *v = mfs_vnode_find(arg, ino);
    struct mfs_dirty *d = v != NULL ? atomic_load(&v->dirty) : NULL;

    if (d != NULL) {
        pthread_mutex_lock(&v->append.lock);
        v->append.recalled = true;
        pthread_mutex_unlock(&v->append.lock);
        mfs_dirty_gathered(d, gathered, 0);
    }
    mfs_vnode_put(v);
}

/* --- appending -------------------------------------------------------------------------------- */

/* Other writes of this mount, which were before: they go out first, or their times would be told
 * after those of what is gathered. */
static bool is_dirty(struct mfs_vnode *v)
{
    struct mfs_dirty *d = atomic_load(&v->dirty);
    struct timespec mtime;
    uint64_t end;

    return d != NULL && mfs_dirty_attr(d, &end, NULL, &mtime);
}

/* append.lock is held, no thread is busy. `end`: where the file ends, but for what is gathered. */
static bool may_gather(struct mfs_vnode *v, size_t len, uint64_t guess)
{
    struct mfs_attr attr;
    uint64_t end;

    if (v->append.lease.number == 0 || v->append.recalled || v->append.failed || len > GATHER_ONE ||
        len > GATHER_MAX - v->append.n || (v->append.n == 0 && is_dirty(v)) ||
        !mfs_meta_append_holds(v->vfs->meta, v->append.lease.since) || !mfs_vnode_attr(v, &attr))
        return false;
    end = attr.size + v->append.n;
    if (end != guess || end + len > mfs_vnode_size_max(v) ||
        (v->append.n > 0 && v->append.begin != attr.size))
        return false;
    if (v->append.buf == NULL)
        v->append.buf = malloc(GATHER_MAX);
    if (v->append.buf != NULL && v->append.n == 0)
        v->append.begin = attr.size;
    return v->append.buf != NULL;
}

static bool gather(struct mfs_vnode *v, const void *buf, size_t len, uint64_t guess, uint32_t drop)
{
    bool may;

    pthread_mutex_lock(&v->append.lock);
    wait_idle(v);
    may = may_gather(v, len, guess);
    if (may) {
        memcpy(v->append.buf + v->append.n, buf, len);
        v->append.n += len;
        v->append.drop |= drop;
        v->append.mtime = mfs_clock_real();
        v->append.last = mfs_clock_mono();
        mfs_dirty_gathers(atomic_load(&v->dirty), true);
    }
    pthread_mutex_unlock(&v->append.lock);
    if (may) {
        mfs_vnode_changed(v);
        mfs_tail_made(v, guess + len, false);
    }
    return may;
}

/* append.lock is held. */
static bool wants_lease(const struct mfs_vnode *v, size_t len, int64_t now)
{
    return v->vfs->opts.leases && len <= GATHER_ONE && now - v->append.last < OFTEN &&
           now >= v->append.again && !v->append.recalled && hears(v);
}

/* An append that is stored before it returns. */
static int append_now(struct mfs_vnode *v, const void *buf, size_t len, uint64_t *at, uint32_t drop)
{
    bool had = mfs_vnode_dirty(v) != NULL; /* which calls `gathered` */
    int64_t now = mfs_clock_mono();
    struct mfs_end_lease lease;
    bool wanted, got;
    int rc;

    pthread_mutex_lock(&v->append.lock);
    wait_idle(v);
    v->append.busy = true;
    lease = v->append.lease;
    lease.mtime = (struct timespec){0};
    wanted = lease.wanted = had && wants_lease(v, len, now);
    pthread_mutex_unlock(&v->append.lock);
    rc = append_at_home(v, buf, len, at, drop, &lease);
    pthread_mutex_lock(&v->append.lock);
    got = lease.number != 0;
    if (wanted && !got)
        v->append.again = now + AFTER_ERROR;
    v->append.last = now;
    end_busy(v, &lease);
    pthread_mutex_unlock(&v->append.lock);
    if (got)
        mfs_dirty_gathered(atomic_load(&v->dirty), gathered, now + GATHER_AGE);
    return rc;
}

/* What is dirty and gathered goes out, and its errors are told. */
static int settle_former(struct mfs_file *f)
{
    int rc = mfs_vnode_flush(f->node, &f->errors);

    pthread_mutex_lock(&f->node->append.lock);
    f->node->append.failed = false;
    pthread_mutex_unlock(&f->node->append.lock);
    return rc;
}

static bool is_too_long(struct mfs_vnode *v, size_t len)
{
    struct mfs_attr attr;

    return mfs_vnode_attr(v, &attr) && attr.size + len > mfs_vnode_size_max(v);
}

ssize_t mfs_append(struct mfs_file *f, const void *buf, size_t len, uint64_t *at, uint32_t drop)
{
    struct mfs_vnode *v = f->node;
    bool gathers = gather(v, buf, len, *at, drop); /* only just there */
    int rc = 0;

    if (!gathers) {
        /* Also what other handles have written, so that the end is the same for all. */
        rc = settle_former(f);
        if (rc < 0)
            return rc;
        if (is_too_long(v, len))
            return -EFBIG;
        gathers = gather(v, buf, len, *at, drop);
    }
    if (gathers && mfs_privileges_appeared(v, drop))
        rc = mfs_vnode_flush(v, &f->errors);
    else if (!gathers)
        rc = append_now(v, buf, len, at, drop);
    return rc < 0 ? rc : (ssize_t)len;
}
