#include "fuse/uring/entry.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/fuse.h>

#include "base/clock.h"
#include "cluster/capacity.h"
#include "fuse/kernel/killed.h"

/* linux/fuse.h may be older than the kernel: what follows are its fuse_uring_… of Linux 6.14. */
struct headers {
    char in_out[128]; /* struct fuse_in_header, or fuse_out_header */
    char op_in[128];  /* the operation's own */
    uint64_t flags, commit_id;
    uint32_t payload, padding;
    uint64_t reserved;
};

struct command {
    uint64_t flags, commit_id;
    uint16_t queue;
    uint8_t padding[6];
};

enum { CMD_REGISTER = 1, CMD_COMMIT_AND_FETCH = 2 };

#define PAYLOAD 4096U /* where it begins */
#define ROOM    (sizeof(struct fuse_in_header) + sizeof((struct headers *)0)->op_in)

static_assert(sizeof(struct headers) == 288, "as the kernel has it");
static_assert(sizeof(struct headers) + ROOM <= PAYLOAD,
              "both headers find room before the payload");

size_t mfs_uring_entry_size(void)
{
    return PAYLOAD + MFS_CAPACITY_REQUEST;
}

void mfs_uring_entry_init(struct mfs_uring_entry *e, char *memory, uint16_t queue)
{
    *e = (struct mfs_uring_entry){
        .memory = memory,
        .queue = queue,
        .area = {{memory, sizeof(struct headers)}, {memory + PAYLOAD, MFS_CAPACITY_REQUEST}}};
}

static struct headers *headers_of(const struct mfs_uring_entry *e)
{
    return (struct headers *)(void *)e->memory;
}

static void touch(struct mfs_uring_entry *e, size_t bytes)
{
    if (e->touched < bytes)
        e->touched = bytes;
}

int mfs_uring_entry_take(struct mfs_uring_entry *e)
{
    const struct headers *h = headers_of(e);
    struct fuse_in_header in;
    size_t own;

    memcpy(&in, h->in_out, sizeof in);
    own = in.len - sizeof in - h->payload; /* wraps when it is wrong */
    if (h->payload > MFS_CAPACITY_REQUEST || own > sizeof h->op_in)
        return -EIO;
    e->length = in.len;
    e->since = mfs_clock_mono();
    e->request = e->memory + PAYLOAD - own - sizeof in;
    memcpy(e->request, &in, sizeof in);
    memcpy(e->request + sizeof in, h->op_in, own);
    touch(e, h->payload);
    atomic_store(&e->state, MFS_URING_SERVED);
    atomic_store(&e->unique, in.unique);
    return 0;
}

void mfs_uring_entry_refuse(struct mfs_uring_entry *e)
{
    struct fuse_out_header out = {.error = -EIO};
    struct fuse_in_header in;

    memcpy(&in, headers_of(e)->in_out, sizeof in);
    out.unique = in.unique;
    mfs_uring_entry_reply(e, &(struct iovec){&out, sizeof out}, 1);
    atomic_store(&e->state, MFS_URING_ANSWERED);
    atomic_store(&e->unique, in.unique);
}

void mfs_uring_entry_drop(struct mfs_uring_entry *e)
{
    struct fuse_out_header out = mfs_killed_answer(e->request);

    mfs_uring_entry_reply(e, &(struct iovec){&out, sizeof out}, 1);
    atomic_store(&e->state, MFS_URING_ANSWERED);
}

void mfs_uring_entry_reply(struct mfs_uring_entry *e, const struct iovec *iov, int count)
{
    struct headers *h = headers_of(e);
    struct fuse_out_header *out = iov[0].iov_base;
    size_t len = 0;

    for (int i = 1; i < count; i++) {
        if (iov[i].iov_len > MFS_CAPACITY_REQUEST - len) {
            out->error = -EIO;
            len = 0;
            break;
        }
        memcpy(e->memory + PAYLOAD + len, iov[i].iov_base, iov[i].iov_len);
        len += iov[i].iov_len;
    }
    memcpy(h->in_out, out, sizeof *out);
    h->payload = (uint32_t)len;
    touch(e, len);
}

void mfs_uring_entry_trim(struct mfs_uring_entry *e, size_t kept)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole;
    char *payload = e->memory + PAYLOAD, *from = payload + kept;

    if (e->touched <= kept)
        return;
    from += (page - (uintptr_t)from % page) % page;
    whole = (uintptr_t)(payload + MFS_CAPACITY_REQUEST) / page * page;
    if (from < payload + e->touched && (uintptr_t)from < whole)
        madvise(from, whole - (uintptr_t)from, MADV_DONTNEED);
    e->touched = kept;
}

static struct command *prepare(struct mfs_uring_entry *e, struct io_uring_sqe *sqe, uint32_t op)
{
    struct command *c = (struct command *)(void *)sqe->cmd;

    sqe->opcode = IORING_OP_URING_CMD;
    sqe->flags = IOSQE_FIXED_FILE; /* number 0 */
    sqe->cmd_op = op;
    sqe->user_data = (uint64_t)(uintptr_t)e;
    c->queue = e->queue;
    return c;
}

void mfs_uring_entry_command(struct mfs_uring_entry *e, struct io_uring_sqe *sqe)
{
    uint64_t unique = atomic_exchange(&e->unique, 0);

    if (unique != 0)
        e->commit_id = unique;
    if (e->commit_id != 0) {
        prepare(e, sqe, CMD_COMMIT_AND_FETCH)->commit_id = e->commit_id;
        return;
    }
    prepare(e, sqe, CMD_REGISTER);
    sqe->addr = (uint64_t)(uintptr_t)e->area;
    sqe->len = 2;
}
