/* Files that are open here without their partition knowing it. Under a lease an open asks nobody:
 * it is registered when it has lasted for a while, which few do, and before the file may go:
 *
 *  - before this client takes a name away, so that it does not free what it has open itself;
 *  - before it answers another client that has taken the last name. Until all who had a lease of
 *    the file have answered, its partition keeps it (partition/inode.h).
 *
 * What was open when a session died is not registered for the next one either, and due at once.
 *
 * A partition that does not answer is asked again once a second. Meanwhile this client frees
 * nothing there, and tells others that they must not either: they free it later, when it says that
 * they may (meta/deferred/chores.c), and keep the lease alive until then.
 *
 * Any thread. */
#ifndef MFS_META_SESSION_UNTOLD_H
#define MFS_META_SESSION_UNTOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct mfs_attr;
struct mfs_meta;
struct mfs_untold;

int mfs_untold_create(struct mfs_untold **untold, struct mfs_meta *meta); /* starts a thread */
/* Calls at once what was to be called later. NULL is fine. */
void mfs_untold_destroy(struct mfs_untold *u);

/* Opens the file if it is known under a lease. */
bool mfs_untold_open(struct mfs_untold *u, uint64_t ino, struct mfs_attr *attr);

/* Around a step that may create a file in the partition, and leases it; it must not wait for
 * memory, as who removes a file there waits for it. True: it need not be registered, if it is new;
 * then mfs_untold_created has to follow, which opens it (ino 0: nothing was created). `birth` has
 * to stay until then. */
struct mfs_untold_birth {
    uint32_t part;
    uint64_t number;
    TAILQ_ENTRY(mfs_untold_birth) among;
};
bool mfs_untold_creating(struct mfs_untold *u, struct mfs_untold_birth *birth, uint32_t part);
void mfs_untold_created(struct mfs_untold *u, struct mfs_untold_birth *birth, uint64_t ino);

/* Around a call by which this client may take a file's last name: meanwhile opens are registered as
 * they are made. */
void mfs_untold_removing(struct mfs_untold *u);
void mfs_untold_removed(struct mfs_untold *u);
/* Within that, before a file of the partition may go: registers what is open there. 0 or -errno:
 * don't, something is open there that it does not know of. Blocks. */
int mfs_untold_tell(struct mfs_untold *u, uint32_t part);

/* Another client has changed the file; nothing from before it is known here any more. Calls fn(arg,
 * told) when the partition knows of what is open, or (`told` false) does not answer who tells it:
 * before it returns, or later by a thread. False: ENOMEM, it won't be called. */
typedef void mfs_untold_over_fn(void *arg, bool told);
bool mfs_untold_over(struct mfs_untold *u, uint64_t ino, mfs_untold_over_fn *fn, void *arg);

#endif
