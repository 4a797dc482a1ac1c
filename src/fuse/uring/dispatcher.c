/* The thread that has the entries in reserve. */
#include "fuse/uring/uring_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <linux/fuse.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"

#define FEW         8U  /* entries in reserve: more are added when there are fewer */
#define ENTRIES     64U /* of the ring: commands prepared at once */
#define COMPLETIONS 1024U
#define PAUSE       (10 * MFS_MSEC) /* between looks at interrupts that are held … */
#define NUDGES      (50 * MFS_MSEC) /* … and between nudges */
#define COLD        16384U          /* bytes that an entry in reserve keeps resident */

/* The completion carries no entry. */
static void listen_to_event(struct mfs_uring *u)
{
    struct io_uring_sqe *sqe = mfs_ring_next(&u->ring);

    if (sqe == NULL)
        return;
    sqe->opcode = IORING_OP_READ;
    sqe->fd = u->event;
    sqe->addr = (uint64_t)(uintptr_t)&u->events;
    sqe->len = sizeof u->events;
}

static bool submit(struct mfs_uring *u, struct mfs_uring_entry *e,
                   void (*fill)(struct mfs_uring_entry *e, struct io_uring_sqe *sqe))
{
    struct io_uring_sqe *sqe = mfs_ring_next(&u->ring);

    if (sqe == NULL)
        return false;
    fill(e, sqe);
    u->queue[e->queue].reserve++;
    return true;
}

static struct batch *new_batch(uint16_t queue)
{
    size_t size = mfs_uring_entry_size();
    struct batch *b = calloc(1, sizeof *b);

    if (b == NULL)
        return NULL;
    b->memory = mmap(NULL, MFS_URING_BATCH * size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->memory == MAP_FAILED) {
        free(b);
        return NULL;
    }
    madvise(b->memory, MFS_URING_BATCH * size, MADV_NOHUGEPAGE); /* most of it is never touched */
    for (unsigned i = 0; i < MFS_URING_BATCH; i++)
        mfs_uring_entry_init(&b->entry[i], b->memory + i * size, queue);
    return b;
}

static void add_batch(struct mfs_uring *u, unsigned queue)
{
    struct batch *b = new_batch((uint16_t)queue);

    if (b == NULL)
        return; /* tried again */
    b->next = atomic_load(&u->batches);
    atomic_store(&u->batches, b);
    for (unsigned i = 0; i < MFS_URING_BATCH; i++)
        submit(u, &b->entry[i], mfs_uring_entry_register);
    mfs_ring_enter(&u->ring, false, 0);
}

/* The kernel sends requests as soon as the last queue has one entry, which they may exhaust before
 * it has them all. That is 0's, as that processor is online. */
static void add_first(struct mfs_uring *u)
{
    for (unsigned q = u->queues; q-- > 0;)
        add_batch(u, q);
    atomic_fetch_add(&u->queue[0].suspect, 1);
    u->supplied = true;
    u->nudged = mfs_clock_mono();
}

static bool is_short(const struct mfs_uring *u, unsigned queue)
{
    return u->supplied && !atomic_load(&u->refused) && u->queue[queue].reserve < FEW;
}

static void add_where_few(struct mfs_uring *u)
{
    for (unsigned q = 0; q < u->queues; q++) {
        if (!is_short(u, q))
            continue;
        add_batch(u, q);
        atomic_fetch_add(&u->queue[q].suspect, 1);
        mfs_debug("fuse", "ring of processor %u: more entries", q);
    }
}

static void complete(struct mfs_uring *u, struct mfs_uring_entry *e, int result)
{
    u->queue[e->queue].reserve--;
    if (result == -EAGAIN) { /* of a registration */
        submit(u, e, mfs_uring_entry_register);
        return;
    }
    if (mfs_uring_take(u, e, result))
        mfs_uring_hand_over(u, e);
}

static void reap(struct mfs_uring *u)
{
    uint64_t data;
    int result;

    while (mfs_ring_take(&u->ring, &data, &result))
        if (data == 0)
            listen_to_event(u);
        else
            complete(u, (struct mfs_uring_entry *)(uintptr_t)data, result); // NOLINT
}

static void commit_answered(struct mfs_uring *u)
{
    struct mfs_uring_entry *all, *e, *next;

    pthread_mutex_lock(&u->lock);
    all = u->answered;
    u->answered = NULL;
    pthread_mutex_unlock(&u->lock);
    if (all == NULL)
        return;
    DL_FOREACH_SAFE(all, e, next)
    if (!submit(u, e, mfs_uring_entry_commit)) {
        DL_DELETE(all, e);
        mfs_uring_leave_to_dispatcher(u, e); /* again */
    }
    mfs_ring_enter(&u->ring, false, 0);
    if (mfs_ring_is_empty(&u->ring)) /* none has got a request */
        DL_FOREACH(all, e)
    mfs_uring_entry_trim(e, COLD);
}

static bool is_known(void *arg, uint64_t unique)
{
    return mfs_uring_find(arg, unique) != NULL;
}

/* INTERRUPT as the kernel sends it. */
static void send_interrupt(void *arg, uint64_t unique)
{
    struct mfs_uring *u = arg;
    struct {
        struct fuse_in_header in;
        struct fuse_interrupt_in interrupt;
    } request = {{.len = sizeof request, .opcode = FUSE_INTERRUPT, .unique = unique + 1}, {unique}};

    u->source.serve(u->source.arg, (char *)&request, sizeof request);
}

/* One queue at a time. */
static void nudge(struct mfs_uring *u)
{
    int64_t now = mfs_clock_mono();
    unsigned q;

    if (now < u->nudged + NUDGES)
        return;
    u->nudged = now;
    if (mfs_nudge_refused(u->nudge, &q)) {
        mfs_warn("fuse", "processor %u: not ours, so a request of it may wait for its next one", q);
        atomic_store(&u->queue[q].suspect, 0);
    }
    for (unsigned i = 0; i < u->queues; i++) {
        q = ++u->last % u->queues;
        if (atomic_load(&u->queue[q].suspect) != 0) {
            mfs_nudge(u->nudge, q);
            return;
        }
    }
}

/* How long the dispatcher may wait; -1: until something comes. */
static int64_t pause_of(struct mfs_uring *u)
{
    int64_t ns = -1;
    bool ready;

    for (unsigned q = 0; q < u->queues; q++)
        if (atomic_load(&u->queue[q].suspect) != 0 || is_short(u, q))
            ns = NUDGES;
    pthread_mutex_lock(&u->lock);
    ready = u->ready != NULL;
    pthread_mutex_unlock(&u->lock);
    return ready || mfs_interrupts_any(u->interrupts) ? PAUSE : ns;
}

static void look(struct mfs_uring *u)
{
    if (!u->supplied && atomic_load(&u->begun))
        add_first(u);
    commit_answered(u);
    add_where_few(u);
    nudge(u);
    mfs_interrupts_send(u->interrupts, is_known, send_interrupt, u);
    pthread_mutex_lock(&u->lock);
    mfs_uring_use_worker(u);
    pthread_mutex_unlock(&u->lock);
}

void *mfs_uring_dispatch(void *arg)
{
    struct mfs_uring *u = arg;
    int rc = mfs_ring_open(&u->ring, ENTRIES, COMPLETIONS, u->fd);

    u->rc = rc;
    sem_post(&u->opened);
    if (rc < 0)
        return NULL;
    listen_to_event(u);
    while (!atomic_load(&u->halt)) {
        rc = mfs_ring_enter(&u->ring, true, pause_of(u));
        if (rc < 0 && rc != -ETIME && rc != -EINTR && rc != -EBUSY && rc != -EAGAIN)
            mfs_error("fuse", "ring: %s", strerror(-rc));
        reap(u);
        look(u);
    }
    commit_answered(u);
    mfs_ring_enter(&u->ring, false, 0);
    mfs_ring_close(&u->ring);
    return NULL;
}
