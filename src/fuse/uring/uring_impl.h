/* What the files of this folder share: see uring.h. */
#ifndef MFS_FUSE_URING_URING_IMPL_H
#define MFS_FUSE_URING_URING_IMPL_H

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#include "fuse/kernel/admission.h"
#include "fuse/uring/entry.h"
#include "fuse/uring/interrupts.h"
#include "fuse/uring/nudge.h"
#include "fuse/uring/ring.h"
#include "fuse/uring/uring.h"

#define MFS_URING_BATCH 32U     /* entries that are added to a queue at once */
#define MFS_URING_KICK  SIGUSR2 /* gets a worker out of its ring */

struct batch {
    struct batch *next;
    char *memory;
    struct mfs_uring_entry entry[MFS_URING_BATCH];
};

struct queue {
    unsigned reserve; /* entries free in the dispatcher's ring; the dispatcher's */
    /* Entries were added, so requests may wait in the kernel: how often that was so, and how often
     * it had been when a reply was submitted that found none. When they differ the queue is
     * suspect; an older value of the second is harmless. */
    atomic_uint added, found_none;
    atomic_uint unanswered; /* nudges since the last statfs that came there */
};

struct worker {
    struct mfs_uring *u;
    pthread_t thread;
    struct mfs_ring ring;
    atomic_bool waits; /* in its ring */
    sem_t wake;        /* it is given a request, or all is over */
    bool sent;         /* the reply to the request that it serves was submitted; its own */
    struct mfs_uring_entry *given;
    struct worker *next;      /* of all */
    struct worker *next_idle; /* the last one first */
};

struct mfs_uring {
    struct mfs_uring_source source;
    int fd;
    size_t kept; /* of an entry */
    struct mfs_admission *admission;
    struct mfs_interrupts *interrupts;
    struct mfs_nudge *nudge;
    pthread_t dispatcher;
    sem_t opened;
    int rc;                  /* of the dispatcher's ring */
    bool runs;               /* the dispatcher; of those that create and stop */
    int event;               /* eventfd: the dispatcher is to look at what follows */
    atomic_bool begun, stop; /* entries may be given to the kernel; no request is served any more */
    atomic_bool halt;        /* the dispatcher is to end */
    atomic_bool refused;     /* the kernel takes no more entries, for good */
    atomic_bool taken;       /* a request has come: the kernel sends them by rings, for good */
    atomic_bool warned;      /* of what the kernel did not take; once */
    _Atomic(struct batch *) batches;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t ended;
    struct mfs_uring_entry *ready;    /* requests that wait for a worker */
    struct mfs_uring_entry *answered; /* that the dispatcher is to commit */
    struct mfs_uring_entry *again;    /* … to submit once more, a moment later */
    struct worker *all, *idle;
    unsigned made, over, busy;
    unsigned beside; /* of the busy ones, with what is urgent */
    /* The dispatcher's. */
    struct mfs_ring ring;
    unsigned queues;
    struct queue *queue;
    bool supplied;   /* the kernel has got entries */
    int64_t nudged;  /* when last … */
    unsigned last;   /* … and which queue */
    bool astray;     /* it was said that nudges do not come back */
    bool late;       /* the kernel has not yet taken all that was prepared */
    bool listens;    /* to `event`, … */
    uint64_t events; /* … of which this is read */
    int64_t retried; /* when `again` was submitted last */
    int64_t looked;  /* when it was looked whether callers of what waits are killed */
};

static inline bool mfs_uring_is_suspect(struct queue *q)
{
    return atomic_load(&q->found_none) != atomic_load(&q->added);
}

/* uring.c: any thread. */
void mfs_uring_tell_dispatcher(struct mfs_uring *u);
struct mfs_uring_entry *mfs_uring_find(struct mfs_uring *u,
                                       uint64_t unique); /* NULL: none has it */
/* The reply is in the entry, which no worker can wait for: the dispatcher is to commit it. */
void mfs_uring_leave_to_dispatcher(struct mfs_uring *u, struct mfs_uring_entry *e);

/* The kernel had no memory for its last command. */
void mfs_uring_submit_again(struct mfs_uring *u, struct mfs_uring_entry *e);

/* worker.c */
extern _Thread_local struct mfs_uring_entry *mfs_uring_served; /* that the thread serves, or NULL */
/* An entry is complete: is there a request to serve now? `result`: the completion's. */
bool mfs_uring_take(struct mfs_uring *u, struct mfs_uring_entry *e, int result);
void mfs_uring_hand_over(struct mfs_uring *u, struct mfs_uring_entry *e); /* to a worker */
/* Has the first that is ready served, if there may be one more. Without memory for a thread it
 * stays ready, for those at work or the dispatcher's next look. Lock held. */
void mfs_uring_use_worker(struct mfs_uring *u);

void *mfs_uring_dispatch(void *arg); /* dispatcher.c: the thread; arg: the struct mfs_uring */

#endif
