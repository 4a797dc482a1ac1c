#include "fuse/kernel/recalls.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "meta/meta.h"

#define FILES   65536U
#define ANSWERS 1024U
#define TICKS   (20 * MFS_MSEC) /* the kernel rounds times up, to its ticks */
#define SEVERAL UINT64_MAX      /* no number of an inode */

/* By hash of the ino. */
struct file {
    int64_t until;  /* the kernel uses nothing that was sent any more, mono */
    unsigned begun; /* answers that show something and were not sent yet */
    uint64_t acl;   /* the inode for whose ACL the kernel has asked; 0: none */
};

/* The last answer that may have told a thread of an inode. */
struct answer {
    pid_t thread; /* 0: of another PID namespace */
    uint64_t ino;
    bool create;
    int64_t begun; /* mono */
    int64_t taken; /* by then it is, mono; 0: there was none; INT64_MAX: it was not sent yet */
};

struct mfs_recalls {
    pthread_mutex_t lock; /* guards what follows; a leaf */
    struct file files[FILES];
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

static uint64_t hash(uint64_t ino)
{
    return mfs_hash64(&ino, sizeof ino, 0);
}

static struct file *file_of(struct mfs_recalls *r, uint64_t ino)
{
    return &r->files[hash(ino) % FILES];
}

static struct answer *answer_to(struct mfs_recalls *r, pid_t thread, uint64_t ino)
{
    return &r->answers[(thread != 0 ? (uint64_t)thread : hash(ino)) % ANSWERS];
}

void mfs_recalls_show(struct mfs_recalls *r, uint64_t ino)
{
    pthread_mutex_lock(&r->lock);
    file_of(r, ino)->begun++;
    pthread_mutex_unlock(&r->lock);
}

/* With the lock held, as what follows. */
static struct file *end(struct mfs_recalls *r, uint64_t ino)
{
    struct file *f = file_of(r, ino);

    assert(f->begun > 0); /* once for each that has begun */
    f->begun--;
    return f;
}

static void shown(struct mfs_recalls *r, uint64_t ino, int64_t now)
{
    end(r, ino)->until = now + MFS_RECALLS_TAKEN + MFS_META_SHOWN + TICKS;
}

void mfs_recalls_shown(struct mfs_recalls *r, uint64_t ino)
{
    pthread_mutex_lock(&r->lock);
    shown(r, ino, mfs_clock_mono());
    pthread_mutex_unlock(&r->lock);
}

void mfs_recalls_not_shown(struct mfs_recalls *r, uint64_t ino)
{
    pthread_mutex_lock(&r->lock);
    end(r, ino);
    pthread_mutex_unlock(&r->lock);
}

bool mfs_recalls_show_new(struct mfs_recalls *r, pid_t thread, uint64_t ino, bool create)
{
    struct answer *a = answer_to(r, thread, ino);
    int64_t now;
    bool free;

    if (create && thread == 0) /* nothing would prove it, and changes would wait */
        return false;
    pthread_mutex_lock(&r->lock);
    now = mfs_clock_mono();
    free = a->taken <= now;
    if (free) {
        *a = (struct answer){thread, ino, create, now, INT64_MAX};
        file_of(r, ino)->begun++;
    }
    pthread_mutex_unlock(&r->lock);
    return free;
}

void mfs_recalls_shown_new(struct mfs_recalls *r, pid_t thread, uint64_t ino)
{
    struct answer *a = answer_to(r, thread, ino);
    int64_t now;

    pthread_mutex_lock(&r->lock);
    now = mfs_clock_mono();
    shown(r, ino, now);
    if (a->thread == thread && a->ino == ino && a->taken == INT64_MAX)
        a->taken = now + MFS_RECALLS_TAKEN;
    pthread_mutex_unlock(&r->lock);
}

void mfs_recalls_not_shown_new(struct mfs_recalls *r, pid_t thread, uint64_t ino)
{
    struct answer *a = answer_to(r, thread, ino);

    pthread_mutex_lock(&r->lock);
    end(r, ino);
    if (a->thread == thread && a->ino == ino)
        a->taken = 0;
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
    const struct file *f = file_of(r, ino);
    bool any;

    pthread_mutex_lock(&r->lock);
    any = f->begun > 0 || mfs_clock_mono() < f->until;
    pthread_mutex_unlock(&r->lock);
    return any;
}

enum mfs_recalls_untaken mfs_recalls_untaken(struct mfs_recalls *r, uint64_t ino, int64_t time)
{
    enum mfs_recalls_untaken found = MFS_RECALLS_NONE, one;
    const struct file *f = file_of(r, ino);
    bool any;
    int64_t now;

    pthread_mutex_lock(&r->lock);
    now = mfs_clock_mono();
    any = f->begun > 0 || now < f->until - MFS_META_SHOWN - TICKS;
    for (unsigned i = 0; any && i < ANSWERS; i++) {
        const struct answer *a = &r->answers[i];

        if (a->ino != ino || a->taken <= now || a->begun > time)
            continue;
        one = a->create ? MFS_RECALLS_OF_ANY_CASE : MFS_RECALLS_OF_UNKNOWN;
        found = one > found ? one : found;
    }
    pthread_mutex_unlock(&r->lock);
    return found;
}

void mfs_recalls_acl(struct mfs_recalls *r, uint64_t ino)
{
    struct file *f = file_of(r, ino);

    pthread_mutex_lock(&r->lock);
    f->acl = f->acl == 0 || f->acl == ino ? ino : SEVERAL;
    pthread_mutex_unlock(&r->lock);
}

bool mfs_recalls_take_acl(struct mfs_recalls *r, uint64_t ino)
{
    struct file *f = file_of(r, ino);
    bool taken;

    pthread_mutex_lock(&r->lock);
    taken = f->acl == ino || f->acl == SEVERAL;
    if (f->acl == ino)
        f->acl = 0;
    pthread_mutex_unlock(&r->lock);
    return taken;
}
