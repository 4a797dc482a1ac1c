/* The thread that asks depends on this process' own answer. It has no file open, so that the
 * device is closed, and with it its wait ended, when the process is killed meanwhile; and nobody
 * waits for it. */
#include "fuse/uring/nudge.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/threads/thread.h"

#define CLOSE_UNSHARED (1U << 1) /* CLOSE_RANGE_UNSHARE */

struct mfs_nudge {
    atomic_uint users; /* the owner, and the thread that asks */
    atomic_bool asks;
    atomic_bool refused; /* may not run on that processor */
    unsigned processor;
    char path[];
};

struct mfs_nudge *mfs_nudge_create(const char *path)
{
    size_t size = strlen(path) + 1;
    struct mfs_nudge *n = calloc(1, sizeof *n + size);

    if (n == NULL)
        return NULL;
    atomic_init(&n->users, 1);
    memcpy(n->path, path, size);
    return n;
}

void mfs_nudge_destroy(struct mfs_nudge *n)
{
    if (n != NULL && atomic_fetch_sub(&n->users, 1) == 1)
        free(n);
}

static void *ask(void *arg)
{
    struct mfs_nudge *n = arg;
    struct statfs st;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(n->processor, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0)
        atomic_store(&n->refused, true);
    else if (syscall(SYS_close_range, 0U, ~0U, CLOSE_UNSHARED) == 0)
        statfs(n->path, &st);
    atomic_store(&n->asks, false);
    mfs_nudge_destroy(n);
    return NULL;
}

void mfs_nudge(struct mfs_nudge *n, unsigned processor)
{
    pthread_t thread;

    if (atomic_exchange(&n->asks, true))
        return;
    n->processor = processor;
    atomic_fetch_add(&n->users, 1);
    if (mfs_thread_start(&thread, "fuse-nudge", ask, n) == 0) {
        pthread_detach(thread);
        return;
    }
    atomic_store(&n->asks, false);
    mfs_nudge_destroy(n);
}

bool mfs_nudge_refused(struct mfs_nudge *n, unsigned *processor)
{
    bool refused = !atomic_load(&n->asks) && atomic_exchange(&n->refused, false);

    if (refused)
        *processor = n->processor;
    return refused;
}
