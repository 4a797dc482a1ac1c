/* What must never be: a request that nobody looks for. An entry that is free in a worker's ring is
 * seen at once, as the worker waits there. One that is free in the dispatcher's is, as the
 * dispatcher waits for nothing else. One that is ready waits for a worker only while `most` serve,
 * each of which takes the next before it waits; of those that wait for other mounts fewer than
 * `most` are admitted. And of what waits in the kernel without need see struct queue. */
#include "fuse/uring/uring_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/fuse.h>
#include <utlist.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/threads/thread.h"

#define KICKS (20 * MFS_MSEC)

static void nothing(int signo)
{
    (void)signo;
}

void mfs_uring_tell_dispatcher(struct mfs_uring *u)
{
    uint64_t one = 1;

    while (write(u->event, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void mfs_uring_leave_to_dispatcher(struct mfs_uring *u, struct mfs_uring_entry *e)
{
    pthread_mutex_lock(&u->lock);
    DL_APPEND(u->answered, e);
    pthread_mutex_unlock(&u->lock);
    mfs_uring_tell_dispatcher(u);
}

void mfs_uring_submit_again(struct mfs_uring *u, struct mfs_uring_entry *e)
{
    pthread_mutex_lock(&u->lock);
    DL_APPEND(u->again, e);
    pthread_mutex_unlock(&u->lock);
    mfs_uring_tell_dispatcher(u);
}

struct mfs_uring_entry *mfs_uring_find(struct mfs_uring *u, uint64_t unique)
{
    for (struct batch *b = atomic_load(&u->batches); b != NULL; b = b->next)
        for (unsigned i = 0; i < MFS_URING_BATCH; i++)
            if (atomic_load(&b->entry[i].unique) == unique)
                return &b->entry[i];
    return NULL;
}

bool mfs_uring_reply(struct mfs_uring *u, const struct iovec *iov, int count)
{
    const struct fuse_out_header *out = iov[0].iov_base;
    struct mfs_uring_entry *e = mfs_uring_served;

    if (out->unique == 0)
        return false;
    if (out->unique & 1) { /* FUSE_INT_REQ_BIT: of an interrupt */
        if (out->error != -EAGAIN || !atomic_load(&u->begun) || atomic_load(&u->refused))
            return false;
        mfs_interrupts_hold(u->interrupts, out->unique - 1);
        mfs_uring_tell_dispatcher(u);
        return true;
    }
    if (e == NULL || atomic_load(&e->unique) != out->unique)
        e = mfs_uring_find(u, out->unique);
    if (e == NULL)
        return false;
    mfs_uring_entry_reply(e, iov, count);
    if (atomic_exchange(&e->state, MFS_URING_ANSWERED) == MFS_URING_LEFT)
        mfs_uring_leave_to_dispatcher(u, e);
    return true;
}

/* What the kernel has queues for: "0-3,8" are 5 processors. 0: not known. */
static unsigned processors(void)
{
    static const char path[] = "/sys/devices/system/cpu/possible";
    unsigned n = 0, first, last;
    const char *at = NULL;
    struct mfs_buf b;
    int used;

    mfs_buf_init(&b);
    if (mfs_file_read(path, 4096, &b) == 0 && mfs_buf_printf(&b, "%s", "") >= 0)
        at = mfs_buf_data(&b);
    while (at != NULL && sscanf(at, "%u%n", &first, &used) == 1) {
        at += used;
        last = first;
        if (sscanf(at, "-%u%n", &last, &used) == 1)
            at += used;
        n += last - first + 1;
        at += *at == ',';
    }
    mfs_buf_fini(&b);
    return n;
}

static int start_dispatcher(struct mfs_uring *u)
{
    int rc = mfs_thread_start(&u->dispatcher, "fuse-rings", mfs_uring_dispatch, u);

    if (rc < 0)
        return rc;
    while (sem_wait(&u->opened) < 0)
        ;
    u->runs = u->rc == 0;
    if (!u->runs)
        pthread_join(u->dispatcher, NULL);
    return u->rc;
}

static int init(struct mfs_uring *u)
{
    struct sigaction kick = {.sa_handler = nothing};

    u->queues = processors();
    if (u->queues == 0)
        return -EOPNOTSUPP;
    u->kept = u->source.kept / 4 / u->queues;
    u->queue = calloc(u->queues, sizeof *u->queue);
    u->admission = mfs_admission_create(u->source.admitted);
    u->interrupts = mfs_interrupts_create();
    u->nudge = mfs_nudge_create(u->source.path);
    if (u->queue == NULL || u->admission == NULL || u->interrupts == NULL || u->nudge == NULL)
        return -ENOMEM;
    u->event = eventfd(0, EFD_CLOEXEC);
    if (u->event < 0 || sigaction(MFS_URING_KICK, &kick, NULL) < 0)
        return -errno;
    return start_dispatcher(u);
}

int mfs_uring_create(struct mfs_uring **uring, int fd, const struct mfs_uring_source *source)
{
    struct mfs_uring *u = calloc(1, sizeof *u);
    int rc = u != NULL ? mfs_cond_init(&u->ended) : -ENOMEM;

    *uring = NULL;
    if (rc < 0) {
        free(u);
        return rc;
    }
    pthread_mutex_init(&u->lock, NULL);
    sem_init(&u->opened, 0, 0);
    u->source = *source;
    u->fd = fd;
    u->event = -1;
    rc = init(u);
    if (rc < 0)
        mfs_uring_destroy(u);
    else
        *uring = u;
    return rc;
}

void mfs_uring_begin(struct mfs_uring *u)
{
    atomic_store(&u->begun, true);
    mfs_uring_tell_dispatcher(u);
}

/* Lock held. A signal gets nobody out of a wait that it is only about to begin: hence again and
 * again. */
static void end_workers(struct mfs_uring *u)
{
    struct worker *w;

    for (; u->idle != NULL; u->idle = u->idle->next_idle)
        sem_post(&u->idle->wake);
    while (u->over < u->made) {
        LL_FOREACH(u->all, w)
        if (atomic_load(&w->waits))
            pthread_kill(w->thread, MFS_URING_KICK);
        mfs_cond_wait(&u->ended, &u->lock, KICKS);
    }
}

void mfs_uring_stop(struct mfs_uring *u)
{
    struct worker *w;

    if (u == NULL || !u->runs)
        return;
    atomic_store(&u->stop, true);
    pthread_mutex_lock(&u->lock);
    end_workers(u);
    pthread_mutex_unlock(&u->lock);
    LL_FOREACH(u->all, w)
    pthread_join(w->thread, NULL);
    atomic_store(&u->halt, true);
    mfs_uring_tell_dispatcher(u);
    pthread_join(u->dispatcher, NULL);
    u->runs = false;
}

void mfs_uring_destroy(struct mfs_uring *u)
{
    struct batch *b, *next;
    struct worker *w, *more;

    if (u == NULL)
        return;
    mfs_uring_stop(u);
    for (b = atomic_load(&u->batches); b != NULL; b = next) {
        next = b->next;
        munmap(b->memory, MFS_URING_BATCH * mfs_uring_entry_size());
        free(b);
    }
    LL_FOREACH_SAFE(u->all, w, more)
    {
        sem_destroy(&w->wake);
        free(w);
    }
    if (u->event >= 0)
        close(u->event);
    mfs_nudge_destroy(u->nudge);
    mfs_interrupts_destroy(u->interrupts);
    mfs_admission_destroy(u->admission);
    free(u->queue);
    sem_destroy(&u->opened);
    pthread_cond_destroy(&u->ended);
    pthread_mutex_destroy(&u->lock);
    free(u);
}
