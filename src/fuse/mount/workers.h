/* The threads that serve requests: at most a few wait for one, the others sleep.
 *
 * Were all of them to wait in read(2) on /dev/fuse, the kernel would wake one after the other, each
 * the one that has slept longest, whose stack and data no processor's cache has any more. So at
 * most two wait. A worker that has served a request waits for the next one if there is room, and
 * else sleeps; the one that was the last to go to sleep is the first to be woken.
 *
 * Requests may depend on each other (a write that waits for another mount, whose answer waits for
 * pages that a read has locked). So no request may have to wait because all workers wait for
 * something: when nobody waits for a request, and fewer workers than processors are at work,
 * another one is woken, or made, until `most` of them serve requests. A worker is at work unless it
 * has told that it waits (base/waits.h). A wait that is not told is noticed by a look every 50 ms
 * while nobody waits for a request; else, with nothing held or deferred, no thread looks.
 *
 * When `most` serve requests two more threads read on: what tells why everything waits must not
 * wait with it. They serve what is urgent, and hold what is not in memory for the first worker that
 * is through with its request. When there is no room for more of these they serve one, too, and
 * then the kernel holds the rest. What is held is dropped when its caller is killed.
 *
 * Where requests come from is the source's: /dev/fuse (device.h). */
#ifndef MFS_FUSE_MOUNT_WORKERS_H
#define MFS_FUSE_MOUNT_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct mfs_workers;

enum mfs_workers_urgency {
    MFS_WORKERS_NORMAL,
    MFS_WORKERS_BRIEF,  /* it may wait, but others like it are few, or can wait for it */
    MFS_WORKERS_AT_ONCE /* it waits for nothing */
};

struct mfs_workers_source {
    /* Called by any worker, each with a buffer of its own of `size` bytes.
     *
     * Puts to `buf` a request for which nobody has to wait; its length; 0: there is none. */
    size_t (*ready)(void *arg, char *buf);
    /* Waits for a request. Its length; 0: there will be no more; -EINTR: perhaps it is to stop, or
     * to be called again; another -errno: there will be no more. */
    ssize_t (*wait)(void *arg, char *buf);
    void (*serve)(void *arg, char *buf, size_t len); /* may wait */
    /* Of what was waited for; does not block. What is urgent is none of `ready`. */
    enum mfs_workers_urgency (*urgency)(void *arg, const char *buf, size_t len);
    /* Of one that has been held for a while: true: nobody waits for it any more, and it was
     * answered. With a lock held: does not wait, and does not call back. */
    bool (*gone)(void *arg, const char *request, size_t len);
    /* From time to time, by another thread: at what the source defers. False: there is nothing; it
     * is called again after mfs_workers_deferred. */
    bool (*look)(void *arg);
    size_t size;
};

/* 0 or -errno. `most`: requests that are served at once, 2 at least; `held`: bytes of those held.
 * The source must stay. */
int mfs_workers_create(struct mfs_workers **w, unsigned most, size_t held,
                       const struct mfs_workers_source *source, void *arg);
void mfs_workers_destroy(struct mfs_workers *w); /* takes NULL; none runs */

/* Returns when there are no more requests, or after mfs_workers_stop, when each request that was
 * taken is served: 0, or the -errno of the source or of the first thread's start. Once. */
int mfs_workers_run(struct mfs_workers *w);

/* The source has deferred something, at which it has to look from time to time. Any thread, does
 * not block. */
void mfs_workers_deferred(struct mfs_workers *w);

/* No further request is waited for. Any thread; at once. */
void mfs_workers_stop(struct mfs_workers *w);

#endif
