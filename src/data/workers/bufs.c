/* Size classes 4 KiB, 16 KiB, … up to the stripe size, each with a list of free buffers that is
 * linked through the buffers themselves. */
#include "data/workers/bufs.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define BUFS_LEAST   4096
#define BUFS_CLASSES 8 /* 4 KiB · 4^7 = 64 MiB, above any stripe */

struct free_buf {
    struct free_buf *next;
};

struct mfs_bufs {
    size_t size[BUFS_CLASSES];
    unsigned classes;
    size_t keep;
    pthread_mutex_t lock; /* guards what follows */
    size_t kept;
    struct free_buf *free[BUFS_CLASSES];
};

int mfs_bufs_create(struct mfs_bufs **bufs, size_t largest, size_t keep)
{
    struct mfs_bufs *b = calloc(1, sizeof *b);
    size_t size = BUFS_LEAST;

    if (!b)
        return -ENOMEM;
    /* The last class but one is left out when it is nearly the last. */
    while (size * 2 < largest) {
        b->size[b->classes++] = size;
        size *= 4;
    }
    b->size[b->classes++] = largest;
    b->keep = keep;
    pthread_mutex_init(&b->lock, NULL);
    *bufs = b;
    return 0;
}

void mfs_bufs_destroy(struct mfs_bufs *bufs)
{
    if (!bufs)
        return;
    for (unsigned i = 0; i < bufs->classes; i++)
        while (bufs->free[i]) {
            struct free_buf *f = bufs->free[i];

            bufs->free[i] = f->next;
            free(f);
        }
    pthread_mutex_destroy(&bufs->lock);
    free(bufs);
}

static unsigned class_of(const struct mfs_bufs *b, size_t len)
{
    unsigned i = 0;

    while (i + 1 < b->classes && b->size[i] < len)
        i++;
    return i;
}

size_t mfs_bufs_size(const struct mfs_bufs *bufs, size_t len)
{
    return bufs->size[class_of(bufs, len)];
}

void *mfs_bufs_get(struct mfs_bufs *bufs, size_t len)
{
    unsigned i = class_of(bufs, len);
    struct free_buf *f;

    pthread_mutex_lock(&bufs->lock);
    f = bufs->free[i];
    if (f) {
        bufs->free[i] = f->next;
        assert(bufs->kept >= bufs->size[i]);
        bufs->kept -= bufs->size[i];
    }
    pthread_mutex_unlock(&bufs->lock);
    return f ? (void *)f : malloc(bufs->size[i]);
}

void mfs_bufs_put(struct mfs_bufs *bufs, void *buf, size_t len)
{
    unsigned i = class_of(bufs, len);
    struct free_buf *f = buf;

    if (!f)
        return;
    pthread_mutex_lock(&bufs->lock);
    if (bufs->kept + bufs->size[i] <= bufs->keep) {
        f->next = bufs->free[i];
        bufs->free[i] = f;
        bufs->kept += bufs->size[i];
        f = NULL;
    }
    pthread_mutex_unlock(&bufs->lock);
    free(f);
}
