/* A lock between writers of a file (any number) and a truncate, on this mount. Linux keeps writers
 * out of truncate(2) and ftruncate(2), but not out of open(2) with O_TRUNC when the file system
 * does that itself: what is stored while stripes are freed would be freed with them, and a wait for
 * what is in flight would last for as long as a process writes.
 *
 * Any thread. No mutex is held between the calls, which may use the network. */
#ifndef MFS_VFS_VNODE_LATCH_H
#define MFS_VFS_VNODE_LATCH_H

#include <pthread.h>
#include <stdbool.h>

struct mfs_latch {
    pthread_mutex_t lock; /* a leaf */
    pthread_cond_t changed;
    unsigned inside; /* writers */
    bool closed;     /* to those that come */
};

int mfs_latch_init(struct mfs_latch *l); /* 0 or a negative errno */
void mfs_latch_fini(struct mfs_latch *l);

/* A writer: waits while it is closed, which is bounded by what the truncate waits for. */
void mfs_latch_enter(struct mfs_latch *l);
void mfs_latch_leave(struct mfs_latch *l);

/* Waits until all writers have left; others wait until it is open again. */
void mfs_latch_close(struct mfs_latch *l);
void mfs_latch_open(struct mfs_latch *l);

#endif
