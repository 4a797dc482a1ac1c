/* Made by system calls, without liburing. With DEFER_TASKRUN the kernel does a command's rest in
 * mfs_ring_enter alone: it never interrupts a wait of this thread for something else. */
#include "fuse/uring/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define FLAGS                                                                                      \
    (IORING_SETUP_SQE128 | IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL |                         \
     IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)
#define NEEDED   (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG)
#define SQE_SIZE 128

static void *map(const struct mfs_ring *r, size_t size, off_t what)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, what);

    return at != MAP_FAILED ? at : NULL;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static int map_all(struct mfs_ring *r, const struct io_uring_params *p)
{
    char *at;

    r->rings_size = larger(p->sq_off.array + p->sq_entries * sizeof(unsigned),
                           p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe));
    r->sqes_size = (size_t)p->sq_entries * SQE_SIZE;
    r->rings = at = map(r, r->rings_size, IORING_OFF_SQ_RING);
    r->sqes = map(r, r->sqes_size, IORING_OFF_SQES);
    if (r->rings == NULL || r->sqes == NULL)
        return -ENOMEM;
    r->entries = p->sq_entries;
    r->sq_head = (unsigned *)(void *)(at + p->sq_off.head);
    r->sq_tail = (unsigned *)(void *)(at + p->sq_off.tail);
    r->sq_mask = *(unsigned *)(void *)(at + p->sq_off.ring_mask);
    r->cq_head = (unsigned *)(void *)(at + p->cq_off.head);
    r->cq_tail = (unsigned *)(void *)(at + p->cq_off.tail);
    r->cq_mask = *(unsigned *)(void *)(at + p->cq_off.ring_mask);
    r->cqes = (const struct io_uring_cqe *)(void *)(at + p->cq_off.cqes);
    for (unsigned i = 0; i < p->sq_entries; i++)
        ((unsigned *)(void *)(at + p->sq_off.array))[i] = i;
    return 0;
}

int mfs_ring_open(struct mfs_ring *r, unsigned entries, unsigned completions, int file)
{
    struct io_uring_params p = {.flags = FLAGS, .cq_entries = completions};
    int rc;

    *r = (struct mfs_ring){.fd = (int)syscall(SYS_io_uring_setup, entries, &p)};
    if (r->fd < 0)
        return errno == EINVAL ? -EOPNOTSUPP : -errno;
    rc = (p.features & NEEDED) == NEEDED ? map_all(r, &p) : -EOPNOTSUPP;
    if (rc == 0 && syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_FILES, &file, 1) < 0)
        rc = -errno;
    if (rc < 0)
        mfs_ring_close(r);
    return rc;
}

void mfs_ring_close(struct mfs_ring *r)
{
    if (r->fd < 0)
        return;
    if (r->sqes != NULL)
        munmap(r->sqes, r->sqes_size);
    if (r->rings != NULL)
        munmap(r->rings, r->rings_size);
    close(r->fd);
    r->fd = -1;
}

struct io_uring_sqe *mfs_ring_next(struct mfs_ring *r)
{
    unsigned tail = *r->sq_tail;
    char *sqe = (char *)r->sqes + (size_t)(tail & r->sq_mask) * SQE_SIZE;

    if (r->waiting == r->entries)
        mfs_ring_enter(r, false, 0);
    if (r->waiting == r->entries)
        return NULL;
    memset(sqe, 0, SQE_SIZE);
    r->waiting++;
    __atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
    return (struct io_uring_sqe *)(void *)sqe;
}

int mfs_ring_enter(struct mfs_ring *r, bool wait, int64_t ns)
{
    struct __kernel_timespec ts = {ns / MFS_SEC, ns % MFS_SEC};
    struct io_uring_getevents_arg arg = {.ts = ns >= 0 ? (uint64_t)(uintptr_t)&ts : 0};
    unsigned flags = wait ? IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG : 0;
    long n = syscall(SYS_io_uring_enter, r->fd, r->waiting, wait ? 1 : 0, flags, wait ? &arg : NULL,
                     wait ? sizeof arg : 0);

    if (n < 0)
        return -errno;
    r->waiting -= (unsigned)n;
    return r->waiting == 0 ? 0 : -EAGAIN;
}

bool mfs_ring_is_empty(const struct mfs_ring *r)
{
    return *r->cq_head == __atomic_load_n(r->cq_tail, __ATOMIC_ACQUIRE);
}

bool mfs_ring_peek(const struct mfs_ring *r, int *result)
{
    if (mfs_ring_is_empty(r))
        return false;
    *result = r->cqes[*r->cq_head & r->cq_mask].res;
    return true;
}

bool mfs_ring_take(struct mfs_ring *r, uint64_t *data, int *result)
{
    unsigned head = *r->cq_head;

    if (!mfs_ring_peek(r, result))
        return false;
    *data = r->cqes[head & r->cq_mask].user_data;
    __atomic_store_n(r->cq_head, head + 1, __ATOMIC_RELEASE);
    return true;
}
