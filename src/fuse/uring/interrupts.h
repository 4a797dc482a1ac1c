/* Interrupts that requests in rings need, and the kernel does not send or send again:
 *
 *   early    INTERRUPT comes by /dev/fuse, and may come before its request. libfuse keeps it for
 * the next request, and when that is another one, it answers EAGAIN, so that the kernel sends it
 * again, which this does not for requests in rings. So it is held here until a request of that
 * number is known; or for a second, as those whose requests have been answered meanwhile come, too.
 *
 *   missed   A signal that comes after a request was queued, and before the thread that serves
 * has got it, interrupts nothing (Linux 6.14 to 6.18: unlike fuse_dev_do_read(), nobody looks for
 * FR_INTERRUPTED then). It stays pending, as its thread waits for the reply. So whether that has
 * one is looked at, once, for requests that wait: a moment later, as one that another thread of the
 * process takes is gone by then.
 *
 * Any thread. */
#ifndef MFS_FUSE_URING_INTERRUPTS_H
#define MFS_FUSE_URING_INTERRUPTS_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_interrupts;

struct mfs_interrupts *mfs_interrupts_create(void);    /* NULL: ENOMEM */
void mfs_interrupts_destroy(struct mfs_interrupts *i); /* takes NULL */

/* Both are lost when there is no memory. `unique`: of the request. */
void mfs_interrupts_hold(struct mfs_interrupts *i, uint64_t unique); /* was answered EAGAIN */
void mfs_interrupts_watch(struct mfs_interrupts *i, uint64_t unique, uint32_t thread); /* waits */

bool mfs_interrupts_any(struct mfs_interrupts *i); /* is there anything to look at? */

/* A look: calls `send` for those that are due and whose request is `known`. */
void mfs_interrupts_send(struct mfs_interrupts *i, bool (*known)(void *arg, uint64_t unique),
                         void (*send)(void *arg, uint64_t unique), void *arg);

#endif
