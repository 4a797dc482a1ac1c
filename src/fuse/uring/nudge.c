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

#include "base/clock.h"
#include "base/threads/thread.h"

#define STUCK          (100 * MFS_MSEC)
#define STUCK_MOST     64U
#define CLOSE_UNSHARED (1U << 1) /* CLOSE_RANGE_UNSHARE */

struct mfs_nudge {
    atomic_uint users;   /* the owner, and the threads that ask */
    atomic_uint asking;  /* threads */
    atomic_uint refused; /* 1 + the processor on which one may not run; 0: none */
    int64_t begun;       /* when the last one was; the owner's */
    char path[];
};

struct question {
    struct mfs_nudge *n;
    unsigned processor;
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
    struct question *question = arg;
    struct mfs_nudge *n = question->n;
    struct statfs st;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(question->processor, &set);
    if (sched_setaffinity(0, sizeof set, &set) < 0)
        atomic_store(&n->refused, question->processor + 1);
    else if (syscall(SYS_close_range, 0U, ~0U, CLOSE_UNSHARED) == 0)
        statfs(n->path, &st);
    atomic_fetch_sub(&n->asking, 1);
    mfs_nudge_destroy(n);
    free(question);
    return NULL;
}

/* One may itself wait in the kernel's queue, until the next one's reply. */
static bool may_ask(struct mfs_nudge *n, int64_t now)
{
    unsigned asking = atomic_load(&n->asking);

    return asking == 0 || (asking < STUCK_MOST && now > n->begun + STUCK);
}

bool mfs_nudge(struct mfs_nudge *n, unsigned processor)
{
    struct question *question;
    int64_t now = mfs_clock_mono();
    pthread_t thread;

    if (!may_ask(n, now))
        return false;
    question = malloc(sizeof *question);
    if (question == NULL)
        return false;
    *question = (struct question){n, processor};
    n->begun = now;
    atomic_fetch_add(&n->users, 1);
    atomic_fetch_add(&n->asking, 1);
    if (mfs_thread_start(&thread, "fuse-nudge", ask, question) == 0) {
        pthread_detach(thread);
        return true;
    }
    atomic_fetch_sub(&n->asking, 1);
    mfs_nudge_destroy(n);
    free(question);
    return false;
}

bool mfs_nudge_refused(struct mfs_nudge *n, unsigned *processor)
{
    unsigned refused = atomic_exchange(&n->refused, 0);

    if (refused != 0)
        *processor = refused - 1;
    return refused != 0;
}
