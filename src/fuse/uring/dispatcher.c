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
#include "fuse/kernel/killed.h"

#define FEW         8U  /* entries in reserve: more are added when there are fewer */
#define ENTRIES     64U /* of the ring: commands prepared at once */
#define COMPLETIONS 1024U
#define PAUSE       (10 * MFS_MSEC) /* between looks at interrupts that are held … */
#define NUDGES      (50 * MFS_MSEC) /* … between nudges, … */
#define QUICK       (5 * MFS_MSEC)  /* … while they come back, … */
#define SLOW        MFS_SEC         /* … and when so many did not: */
#define ASTRAY      100U
#define FULL        MFS_MSEC /* until the kernel may have memory */
#define COLD        16384U   /* bytes that an entry in reserve keeps resident */

/* Only this thread adds. */
static void found_none(struct queue *q)
{
    atomic_store(&q->found_none, atomic_load(&q->added));
}

/* Entries that the kernel takes later than they were given to it are added then. */
static int enter(struct mfs_uring *u, bool wait, int64_t ns)
{
    int rc = mfs_ring_enter(&u->ring, wait, ns);

    if (u->ring.waiting > 0)
        u->late = true;
    else if (u->late) {
        u->late = false;
        for (unsigned q = 0; q < u->queues; q++)
            atomic_fetch_add(&u->queue[q].added, 1);
    }
    return rc;
}

/* The completion carries no entry. */
static void listen_to_event(struct mfs_uring *u)
{
    struct io_uring_sqe *sqe = mfs_ring_next(&u->ring);

    u->listens = sqe != NULL;
    if (sqe == NULL)
        return; /* tried again */
    sqe->opcode = IORING_OP_READ;
    sqe->fd = u->event;
    sqe->addr = (uint64_t)(uintptr_t)&u->events;
    sqe->len = sizeof u->events;
}

static bool submit(struct mfs_uring *u, struct mfs_uring_entry *e)
{
    struct io_uring_sqe *sqe = mfs_ring_next(&u->ring);

    if (sqe == NULL)
        return false;
    mfs_uring_entry_command(e, sqe);
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
        if (!submit(u, &b->entry[i]))
            mfs_uring_submit_again(u, &b->entry[i]);
    enter(u, false, 0); /* what is left, with the next wait */
}

/* The kernel sends requests as soon as the last queue has one entry, which they may exhaust before
 * it has them all. That is 0's, as that processor is online. */
static void add_first(struct mfs_uring *u)
{
    for (unsigned q = u->queues; q-- > 0;)
        add_batch(u, q);
    atomic_fetch_add(&u->queue[0].added, 1);
    u->supplied = true;
    u->nudged = mfs_clock_mono();
}

static bool has_again(struct mfs_uring *u)
{
    bool has;

    pthread_mutex_lock(&u->lock);
    has = u->again != NULL;
    pthread_mutex_unlock(&u->lock);
    return has;
}

/* While the kernel has not taken what it was given there is no use in giving it more. */
static bool is_short(struct mfs_uring *u, unsigned queue)
{
    return u->supplied && !atomic_load(&u->refused) && u->queue[queue].reserve < FEW &&
           !has_again(u);
}

static void add_where_few(struct mfs_uring *u)
{
    for (unsigned q = 0; q < u->queues; q++) {
        if (!is_short(u, q))
            continue;
        add_batch(u, q);
        atomic_fetch_add(&u->queue[q].added, 1);
        mfs_debug("fuse", "ring of processor %u: more entries", q);
    }
}

static void complete(struct mfs_uring *u, struct mfs_uring_entry *e, int result)
{
    u->queue[e->queue].reserve--;
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

/* When no completion is there after that, none of them has got a request: nothing waits in their
 * queues. */
static void commit_answered(struct mfs_uring *u)
{
    struct mfs_uring_entry *all, *e, *next;
    int rc;

    pthread_mutex_lock(&u->lock);
    all = u->answered;
    u->answered = NULL;
    pthread_mutex_unlock(&u->lock);
    if (all == NULL)
        return;
    DL_FOREACH_SAFE(all, e, next)
    if (!submit(u, e)) {
        DL_DELETE(all, e);
        mfs_uring_submit_again(u, e);
    }
    rc = enter(u, false, 0);
    if (rc < 0 || !mfs_ring_is_empty(&u->ring))
        return;
    DL_FOREACH(all, e)
    {
        mfs_uring_entry_trim(e, COLD);
        found_none(&u->queue[e->queue]);
    }
}

static void submit_again(struct mfs_uring *u)
{
    struct mfs_uring_entry *all, *e, *next;
    int64_t now = mfs_clock_mono();

    if (!u->listens)
        listen_to_event(u);
    if (now < u->retried + PAUSE)
        return;
    u->retried = now;
    pthread_mutex_lock(&u->lock);
    all = u->again;
    u->again = NULL;
    pthread_mutex_unlock(&u->lock);
    DL_FOREACH_SAFE(all, e, next)
    {
        DL_DELETE(all, e);
        if (!submit(u, e))
            mfs_uring_submit_again(u, e);
        u->late = true;
    }
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

/* Between nudges. They go by the mount's path, which may lead elsewhere by now. */
static int64_t interval(struct mfs_uring *u)
{
    unsigned n = atomic_load(&u->queue[u->last % u->queues].unanswered);

    if (n == 0)
        return QUICK;
    if (n < ASTRAY)
        return NUDGES;
    if (!u->astray)
        mfs_warn("fuse", "our own requests do not come back: is %s covered?", u->source.path);
    u->astray = true;
    return SLOW;
}

/* One queue at a time. */
static void nudge(struct mfs_uring *u)
{
    int64_t now = mfs_clock_mono();
    unsigned q;

    if (atomic_load(&u->refused) || now < u->nudged + interval(u))
        return;
    u->nudged = now;
    if (mfs_nudge_refused(u->nudge, &q)) {
        mfs_warn("fuse", "processor %u: not ours, so a request of it may wait for its next one", q);
        found_none(&u->queue[q]);
    }
    for (unsigned i = 0; i < u->queues; i++) {
        q = ++u->last % u->queues;
        if (mfs_uring_is_suspect(&u->queue[q])) {
            if (mfs_nudge(u->nudge, q))
                atomic_fetch_add(&u->queue[q].unanswered, 1);
            return;
        }
    }
}

/* ---- what waits, and whose caller is killed -------------------------------------------------- */

struct gone {
    struct mfs_uring_entry *all;
    int64_t now;
};

static bool deferred_is_gone(void *arg, const char *request, size_t len)
{
    struct gone *g = arg;
    struct mfs_uring_entry *e;

    if (len != sizeof e)
        return false;
    memcpy(&e, request, sizeof e); // NOLINT(bugprone-sizeof-expression): the entry's address
    if (!mfs_killed(e->request, e->length))
        return false;
    e->admitted = false; /* it never was */
    DL_APPEND(g->all, e);
    return true;
}

static void take_gone(struct mfs_uring *u, struct gone *g)
{
    struct mfs_uring_entry *e, *next;

    pthread_mutex_lock(&u->lock);
    DL_FOREACH_SAFE(u->ready, e, next)
    if (g->now >= e->since + MFS_KILLED_LOOK && mfs_killed(e->request, e->length)) {
        DL_DELETE(u->ready, e);
        DL_APPEND(g->all, e);
    }
    pthread_mutex_unlock(&u->lock);
    mfs_admission_look(u->admission, deferred_is_gone, g);
}

static void drop_what_is_gone(struct mfs_uring *u)
{
    struct gone g = {.now = mfs_clock_mono()};
    struct mfs_uring_entry *e, *next, *admitted;

    if (g.now < u->looked + MFS_KILLED_LOOK)
        return;
    u->looked = g.now;
    take_gone(u, &g);
    DL_FOREACH_SAFE(g.all, e, next)
    {
        DL_DELETE(g.all, e);
        if (e->admitted && mfs_admission_next(u->admission, (char *)&admitted) > 0)
            mfs_uring_hand_over(u, admitted);
        mfs_uring_entry_drop(e);
        mfs_uring_leave_to_dispatcher(u, e);
    }
}

/* ---------------------------------------------------------------------------------------------- */

/* How long the dispatcher may wait. */
static int64_t pause_of(struct mfs_uring *u)
{
    int64_t ns = -1;
    bool ready;

    for (unsigned q = 0; q < u->queues; q++)
        if ((mfs_uring_is_suspect(&u->queue[q]) && !atomic_load(&u->refused)) || is_short(u, q))
            ns = interval(u) < NUDGES ? interval(u) : NUDGES;
    if (ns < 0) /* a worker may have deferred something, whose caller may be killed */
        ns = MFS_KILLED_LOOK;
    pthread_mutex_lock(&u->lock);
    ready = u->ready != NULL || u->again != NULL || !u->listens;
    pthread_mutex_unlock(&u->lock);
    return ready || mfs_interrupts_any(u->interrupts) ? PAUSE : ns;
}

static void look(struct mfs_uring *u)
{
    if (!u->supplied && atomic_load(&u->begun))
        add_first(u);
    commit_answered(u);
    submit_again(u);
    add_where_few(u);
    nudge(u);
    mfs_interrupts_send(u->interrupts, is_known, send_interrupt, u);
    drop_what_is_gone(u);
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
        rc = enter(u, true, pause_of(u));
        if (rc == -EBUSY || rc == -EAGAIN)
            mfs_clock_sleep(FULL);
        else if (rc < 0 && rc != -ETIME && rc != -EINTR)
            mfs_error("fuse", "ring: %s", strerror(-rc));
        reap(u);
        look(u);
    }
    commit_answered(u);
    mfs_ring_enter(&u->ring, false, 0);
    mfs_ring_close(&u->ring);
    return NULL;
}
