#include "fuse/kernel/lookup_attrs.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"

#define SLOTS   256U
#define MOMENT  (1 * MFS_MSEC)
#define AT_ONCE 50000 /* ns */

static_assert(AT_ONCE < MOMENT, "the second question has to come sooner than the first");

struct slot {
    pthread_mutex_t lock; /* guards the slot; a leaf */
    pid_t thread;         /* 0: empty */
    int64_t until;
    bool recalled; /* once already */
    struct mfs_attr attr;
};

struct mfs_lookup_attrs {
    struct slot slot[SLOTS];
};

struct mfs_lookup_attrs *mfs_lookup_attrs_create(void)
{
    struct mfs_lookup_attrs *l = calloc(1, sizeof *l);

    for (unsigned i = 0; l != NULL && i < SLOTS; i++)
        pthread_mutex_init(&l->slot[i].lock, NULL);
    return l;
}

void mfs_lookup_attrs_destroy(struct mfs_lookup_attrs *l)
{
    for (unsigned i = 0; l != NULL && i < SLOTS; i++)
        pthread_mutex_destroy(&l->slot[i].lock);
    free(l);
}

void mfs_lookup_attrs_remember(struct mfs_lookup_attrs *l, pid_t thread,
                               const struct mfs_attr *attr)
{
    struct slot *s = &l->slot[(unsigned)thread % SLOTS];

    if (thread == 0) /* of another PID namespace: all threads there have this number */
        return;
    pthread_mutex_lock(&s->lock);
    s->thread = thread;
    s->until = mfs_clock_mono() + MOMENT;
    s->recalled = false;
    s->attr = *attr;
    pthread_mutex_unlock(&s->lock);
}

bool mfs_lookup_attrs_recall(struct mfs_lookup_attrs *l, pid_t thread, uint64_t ino,
                             struct mfs_attr *attr)
{
    struct slot *s = &l->slot[(unsigned)thread % SLOTS];
    int64_t now = mfs_clock_mono();
    bool known;

    if (thread == 0)
        return false;
    pthread_mutex_lock(&s->lock);
    known = s->thread == thread && s->attr.ino == ino && now < s->until;
    if (known)
        *attr = s->attr;
    if (known && S_ISDIR(s->attr.mode) && !s->recalled) {
        s->recalled = true;
        s->until = now + AT_ONCE;
    } else if (s->thread == thread) {
        s->thread = 0;
    }
    pthread_mutex_unlock(&s->lock);
    return known;
}

void mfs_lookup_attrs_forget(struct mfs_lookup_attrs *l, pid_t thread)
{
    struct slot *s = &l->slot[(unsigned)thread % SLOTS];

    pthread_mutex_lock(&s->lock);
    if (s->thread == thread)
        s->thread = 0;
    pthread_mutex_unlock(&s->lock);
}
