/* Files that are open here without their home partition knowing it. Under a lease an open asks no
 * partition: it is registered when it has lasted for a while, which few do, and before the file may
 * be freed:
 *
 *  - before this client takes a name away, so that it does not free what it has open itself;
 *  - before it answers another client that has taken the last name. Until all clients that had a
 *    lease of the file have answered, its partition keeps it (partition/inode.h).
 *
 * What was open when a session died is not registered for the next one either, and due at once.
 *
 * A partition that does not answer is asked again once a second. Meanwhile this client frees
 * nothing there, and tells other clients not to either: they free the file later, when this client
 * says that they may (meta/deferred/chores.c), and keep the lease alive until then.
 *
 * Any thread. */
#ifndef MFS_META_SESSION_UNREGISTERED_OPENS_H
#define MFS_META_SESSION_UNREGISTERED_OPENS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct mfs_attr;
struct mfs_meta;
struct mfs_unregistered;

/* Starts a thread. */
int mfs_unregistered_create(struct mfs_unregistered **unregistered, struct mfs_meta *meta);
/* Calls at once what was to be called later. NULL is fine. */
void mfs_unregistered_destroy(struct mfs_unregistered *u);
/* Something is to be registered, sooner or later. The caller holds no lock. NULL is fine. */
void mfs_unregistered_work(struct mfs_unregistered *u);

/* Opens the file if it is known under a lease. */
bool mfs_unregistered_open(struct mfs_unregistered *u, uint64_t ino, struct mfs_attr *attr);

/* Around a step that may create a file in the partition, and leases it; it must not wait for
 * memory, as a thread that removes a file there waits for it. True: the open need not be registered
 * if the file is new; then mfs_unregistered_created has to follow, which opens it (ino 0: nothing
 * was created). `creation` has to stay until then. */
struct mfs_unregistered_creation {
    uint32_t part;
    uint64_t number;
    TAILQ_ENTRY(mfs_unregistered_creation) among;
};
bool mfs_unregistered_creating(struct mfs_unregistered *u,
                               struct mfs_unregistered_creation *creation, uint32_t part);
void mfs_unregistered_created(struct mfs_unregistered *u,
                              struct mfs_unregistered_creation *creation, uint64_t ino);

/* Around a call by which this client may take a file's last name: meanwhile opens are registered as
 * they are made. */
void mfs_unregistered_removing(struct mfs_unregistered *u);
void mfs_unregistered_removed(struct mfs_unregistered *u);
/* Within that, before a file of the partition may go: registers what is open there. 0 or -errno:
 * don't, something is open there that it does not know of. Blocks. */
int mfs_unregistered_register(struct mfs_unregistered *u, uint32_t part);

/* Is nothing of the file open, or being created, that its partition does not know? No open can come
 * to be that when the file is known under a lease no more. */
bool mfs_unregistered_none(struct mfs_unregistered *u, uint64_t ino);

/* Another client has changed the file; nothing from before it is known here any more. Calls fn(arg,
 * registered) when all opens of the file are registered, or (`registered` false) when the partition
 * does not answer: before it returns, or later by a thread. False: ENOMEM, it won't be called. */
typedef void mfs_unregistered_done_fn(void *arg, bool registered);
bool mfs_unregistered_when_done(struct mfs_unregistered *u, uint64_t ino,
                                mfs_unregistered_done_fn *fn, void *arg);

#endif
