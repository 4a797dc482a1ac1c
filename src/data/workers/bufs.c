/* Sizes 4 KiB, 16 KiB, … and those that stripes have, each with a list of free buffers that is
 * linked through the buffers themselves. */
#include "data/workers/bufs.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/ino.h"

#define LEAST 4096U
#define TIMES 4U
#define STEPS 7U                           /* of these: 4 KiB · 4^6 = 16 MiB, above any stripe */
#define SIZES (STEPS + 1 + MFS_INO_STRIPE) /* and the deployment's stripe, and others */

struct free_buf {
    struct free_buf *next;
};

struct list {
    size_t size;
    struct free_buf *first;
};

struct mfs_bufs {
    size_t keep;
    pthread_mutex_t lock; /* guards what follows */
    size_t kept;
    struct list list[SIZES];
};

int mfs_bufs_create(struct mfs_bufs **bufs, size_t stripe_size, size_t keep)
{
    struct mfs_bufs *b = calloc(1, sizeof *b);
    size_t size = LEAST;

    if (!b)
        return -ENOMEM;
    for (unsigned i = 0; i < STEPS; i++, size *= TIMES)
        b->list[i].size = size;
    for (unsigned i = 0; i < MFS_INO_STRIPE; i++)
        b->list[STEPS + i].size = mfs_stripe_bytes(i + 1);
    b->list[SIZES - 1].size = stripe_size;
    b->keep = keep;
    pthread_mutex_init(&b->lock, NULL);
    *bufs = b;
    return 0;
}

void mfs_bufs_destroy(struct mfs_bufs *bufs)
{
    if (!bufs)
        return;
    for (unsigned i = 0; i < SIZES; i++)
        while (bufs->list[i].first) {
            struct free_buf *f = bufs->list[i].first;

            bufs->list[i].first = f->next;
            free(f);
        }
    pthread_mutex_destroy(&bufs->lock);
    free(bufs);
}

/* The last size below the stripe's is left out when it is nearly that. */
size_t mfs_bufs_size(size_t len, size_t stripe_size)
{
    size_t size = LEAST;

    while (size < len && size * 2 < stripe_size)
        size *= TIMES;
    return size * 2 < stripe_size ? size : stripe_size;
}

static struct list *list_of(struct mfs_bufs *b, size_t size)
{
    unsigned i = 0;

    while (b->list[i].size != size) {
        i++;
        assert(i < SIZES);
    }
    return &b->list[i];
}

void *mfs_bufs_get(struct mfs_bufs *bufs, size_t size)
{
    struct list *list = list_of(bufs, size);
    struct free_buf *f;

    pthread_mutex_lock(&bufs->lock);
    f = list->first;
    if (f) {
        list->first = f->next;
        assert(bufs->kept >= size);
        bufs->kept -= size;
    }
    pthread_mutex_unlock(&bufs->lock);
    return f ? (void *)f : malloc(size);
}

void mfs_bufs_put(struct mfs_bufs *bufs, void *buf, size_t size)
{
    struct free_buf *f = buf;

    if (!f)
        return;
    pthread_mutex_lock(&bufs->lock);
    if (bufs->kept + size <= bufs->keep) {
        struct list *list = list_of(bufs, size);

        f->next = list->first;
        list->first = f;
        bufs->kept += size;
        f = NULL;
    }
    pthread_mutex_unlock(&bufs->lock);
    free(f);
}
