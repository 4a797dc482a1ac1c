/* Messages that other clients send us through a partition (redis' publish and subscribe): one
 * channel, one connection that is kept up for ever, one thread.
 *
 * Delivery is not promised: what is published while the connection is down is lost. `up` says when
 * that may have happened, and the publisher learns from the number of receivers that there was no
 * listener. */
#ifndef MFS_STORE_SUBSCRIBER_H
#define MFS_STORE_SUBSCRIBER_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define MFS_SUBSCRIBER_CHANNEL_MAX 32

struct mfs_subscriber;

struct mfs_subscriber_opts {
    uint32_t part;
    const void *channel;
    size_t channel_len; /* ≤ MFS_SUBSCRIBER_CHANNEL_MAX */
    /* Both are called by the subscriber's thread; neither may block for long. */
    void (*up)(void *arg); /* listening from now on; earlier messages may have been missed */
    void (*message)(void *arg, const void *p, size_t n);
    void *arg;
};

/* Returns once it listens (`up` has been called), or a negative errno when that can't be reached
 * within the store's I/O timeout. The store must outlive it. */
int mfs_subscriber_create(struct mfs_subscriber **subscriber, struct mfs_store *store,
                          const struct mfs_subscriber_opts *opts);
void mfs_subscriber_destroy(
    struct mfs_subscriber *subscriber); /* within a second or so; takes NULL */

#endif
