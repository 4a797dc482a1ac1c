#include "fuse/kernel/walks.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"

#define SLOTS   256U
#define MOMENT  (1 * MFS_MSEC)
#define AT_ONCE 50000 /* ns */

struct slot {
    pthread_mutex_t lock; /* guards the slot; a leaf */
    pid_t thread;         /* 0: empty */
    int64_t until;
    bool recalled; /* once already */
    struct mfs_attr attr;
};

struct mfs_walks {
    struct slot slot[SLOTS];
};

struct mfs_walks *mfs_walks_create(void)
{
    struct mfs_walks *w = calloc(1, sizeof *w);

    for (unsigned i = 0; w != NULL && i < SLOTS; i++)
        pthread_mutex_init(&w->slot[i].lock, NULL);
    return w;
}

void mfs_walks_destroy(struct mfs_walks *w)
{
    for (unsigned i = 0; w != NULL && i < SLOTS; i++)
        pthread_mutex_destroy(&w->slot[i].lock);
    free(w);
}

void mfs_walks_found(struct mfs_walks *w, pid_t thread, const struct mfs_attr *attr)
{
    struct slot *s = &w->slot[(unsigned)thread % SLOTS];

    if (thread == 0) /* of another PID namespace: nobody can tell these apart */
        return;
    pthread_mutex_lock(&s->lock);
    s->thread = thread;
    s->until = mfs_clock_mono() + MOMENT;
    s->recalled = false;
    s->attr = *attr;
    pthread_mutex_unlock(&s->lock);
}

bool mfs_walks_recall(struct mfs_walks *w, pid_t thread, uint64_t ino, struct mfs_attr *attr)
{
    struct slot *s = &w->slot[(unsigned)thread % SLOTS];
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

void mfs_walks_end(struct mfs_walks *w, pid_t thread)
{
    struct slot *s = &w->slot[(unsigned)thread % SLOTS];

    pthread_mutex_lock(&s->lock);
    if (s->thread == thread)
        s->thread = 0;
    pthread_mutex_unlock(&s->lock);
}
