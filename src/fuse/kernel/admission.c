#include "fuse/kernel/admission.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/clock.h"
#include "fuse/kernel/killed.h"

struct deferred {
    struct deferred *prev, *next;
    int64_t since; /* mono */
    size_t len;
    char request[];
};

struct mfs_admission {
    pthread_mutex_t lock; /* guards what follows; a leaf */
    unsigned served, most;
    struct deferred *queue; /* of deferred ones; empty while fewer than `most` are served */
};

struct mfs_admission *mfs_admission_create(unsigned most)
{
    struct mfs_admission *a = calloc(1, sizeof *a);

    if (a == NULL)
        return NULL;
    a->most = most;
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

void mfs_admission_destroy(struct mfs_admission *a)
{
    struct deferred *d, *next;

    if (a == NULL)
        return;
    DL_FOREACH_SAFE(a->queue, d, next)
    free(d);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

/* False: no memory, so the request is admitted. Lock held. */
static bool defer(struct mfs_admission *a, const char *request, size_t len)
{
    struct deferred *d = malloc(sizeof *d + len);

    if (d == NULL)
        return false;
    d->since = mfs_clock_mono();
    d->len = len;
    memcpy(d->request, request, len);
    DL_APPEND(a->queue, d);
    return true;
}

bool mfs_admission_admit(struct mfs_admission *a, const char *request, size_t len)
{
    bool deferred;

    pthread_mutex_lock(&a->lock);
    deferred = a->served >= a->most && defer(a, request, len);
    a->served += !deferred;
    pthread_mutex_unlock(&a->lock);
    return !deferred;
}

/* Lock held. */
static void served_one_less(struct mfs_admission *a)
{
    assert(a->served > 0);
    a->served--;
}

bool mfs_admission_look(struct mfs_admission *a,
                        bool (*gone)(void *arg, const char *request, size_t len), void *arg)
{
    int64_t before = mfs_clock_mono() - MFS_KILLED_LOOK;
    struct deferred *d, *next;
    bool any;

    pthread_mutex_lock(&a->lock);
    DL_FOREACH_SAFE(a->queue, d, next)
    if (d->since <= before && gone(arg, d->request, d->len)) {
        DL_DELETE(a->queue, d);
        free(d);
    }
    any = a->queue != NULL;
    pthread_mutex_unlock(&a->lock);
    return any;
}

size_t mfs_admission_next(struct mfs_admission *a, char *request)
{
    struct deferred *d;
    size_t len = 0;

    pthread_mutex_lock(&a->lock);
    d = a->queue;
    if (d != NULL)
        DL_DELETE(a->queue, d);
    else
        served_one_less(a);
    pthread_mutex_unlock(&a->lock);
    if (d != NULL) {
        len = d->len;
        memcpy(request, d->request, len);
    }
    free(d);
    return len;
}
