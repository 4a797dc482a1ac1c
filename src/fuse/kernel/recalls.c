#include "fuse/kernel/recalls.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "meta/meta.h"

#define FILES   65536U
#define ANSWERS 1024U
#define TICKS   (20 * MFS_MSEC) /* the kernel rounds times up, to its ticks */

/* The last answer that may have told a thread of an inode. */
struct answer {
    pid_t thread; /* 0: of another PID namespace */
    uint64_t ino;
    int64_t taken; /* by then it is, mono; 0: there was none; INT64_MAX: it was not sent yet */
};

struct mfs_recalls {
    pthread_mutex_t lock;           /* guards what follows; a leaf */
    int64_t until[FILES];           /* by hash of the ino: the kernel uses none of them any more */
    struct answer answers[ANSWERS]; /* by thread; of thread 0 by hash of the ino */
};

struct mfs_recalls *mfs_recalls_create(void)
{
    struct mfs_recalls *r = calloc(1, sizeof *r);

    if (r != NULL)
        pthread_mutex_init(&r->lock, NULL);
    return r;
}

void mfs_recalls_destroy(struct mfs_recalls *r)
{
    if (r != NULL)
        pthread_mutex_destroy(&r->lock);
    free(r);
}

static int64_t *until(struct mfs_recalls *r, uint64_t ino)
{
    return &r->until[mfs_hash64(&ino, sizeof ino, 0) % FILES];
}

static struct answer *answer_to(struct mfs_recalls *r, pid_t thread, uint64_t ino)
{
    uint64_t key = thread != 0 ? (uint64_t)thread : mfs_hash64(&ino, sizeof ino, 0);

    return &r->answers[key % ANSWERS];
}

static void show(struct mfs_recalls *r, uint64_t ino, int64_t now)
{
    *until(r, ino) = now + MFS_RECALLS_TAKEN + MFS_META_SHOWN + TICKS;
}

void mfs_recalls_show(struct mfs_recalls *r, uint64_t ino)
{
    pthread_mutex_lock(&r->lock);
    show(r, ino, mfs_clock_mono());
    pthread_mutex_unlock(&r->lock);
}

bool mfs_recalls_show_new(struct mfs_recalls *r, pid_t thread, uint64_t ino)
{
    struct answer *a = answer_to(r, thread, ino);
    bool free;
    int64_t now;

    pthread_mutex_lock(&r->lock);
    now = mfs_clock_mono();
    free = a->taken <= now;
    if (free) {
        *a = (struct answer){thread, ino, INT64_MAX};
        show(r, ino, now);
    }
    pthread_mutex_unlock(&r->lock);
    return free;
}

void mfs_recalls_sent(struct mfs_recalls *r, pid_t thread, uint64_t ino)
{
    struct answer *a = answer_to(r, thread, ino);

    pthread_mutex_lock(&r->lock);
    if (a->thread == thread && a->ino == ino)
        a->taken = mfs_clock_mono() + MFS_RECALLS_TAKEN;
    pthread_mutex_unlock(&r->lock);
}

void mfs_recalls_taken(struct mfs_recalls *r, pid_t thread)
{
    struct answer *a = answer_to(r, thread, 0);

    pthread_mutex_lock(&r->lock);
    if (thread != 0 && a->thread == thread)
        a->taken = 0;
    pthread_mutex_unlock(&r->lock);
}

bool mfs_recalls_any(struct mfs_recalls *r, uint64_t ino)
{
    bool any;

    pthread_mutex_lock(&r->lock);
    any = mfs_clock_mono() < *until(r, ino);
    pthread_mutex_unlock(&r->lock);
    return any;
}

bool mfs_recalls_untaken(struct mfs_recalls *r, uint64_t ino)
{
    bool found = false;
    int64_t now;

    pthread_mutex_lock(&r->lock);
    now = mfs_clock_mono();
    for (unsigned i = 0; i < ANSWERS && !found; i++)
        found = r->answers[i].ino == ino && now < r->answers[i].taken;
    pthread_mutex_unlock(&r->lock);
    return found;
}
