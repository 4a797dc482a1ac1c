#include "cluster/capacity.h"

#define MIB MFS_CAPACITY_MIB

/* Text and constant data of all programs (10 MiB, shared by all processes of a machine), lm and cm
 * (1 MiB each). */
#define PROGRAMS (12 * MIB)

/* What is taken between two looks of lm: commands on their way in, a fork that has just begun. */
#define SLACK(limit) ((limit) / 32)

/* Of what partitions and replicas may use, one part stays free for the partitions. */
#define HEADROOM 16

/* Of a client: code, stacks, connections, tables of fixed size. */
#define CLIENT_FIXED (7 * MIB)
#define REST_LEAST   (4 * MIB)

#define KEPT_LEAST (64U << 10)
#define FILE_TAKES 384 /* bytes: attributes, a name of usual length, two tables */
#define FILES_MOST 65536
#define NAME_TAKES 128
#define NAMES_MOST (1U << 18)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

uint64_t mfs_capacity_client(uint64_t limit)
{
    return least(most(limit / 8, MFS_CAPACITY_CLIENT_LEAST), MFS_CAPACITY_CLIENT_MOST);
}

uint64_t mfs_capacity_partitions(uint64_t limit)
{
    uint64_t others = PROGRAMS + mfs_capacity_client(limit) + SLACK(limit);

    return most(less(limit, others), limit / 4);
}

uint64_t mfs_capacity_used(uint64_t limit, uint32_t n)
{
    return most(less(mfs_capacity_partitions(limit), n * MFS_CAPACITY_PROCESS), limit / 8);
}

uint64_t mfs_capacity_replicated(uint64_t usable)
{
    return usable - usable / HEADROOM;
}

uint64_t mfs_capacity_least(uint32_t n)
{
    uint64_t need = PROGRAMS + MFS_CAPACITY_CLIENT_LEAST + 2 * n * MFS_CAPACITY_PROCESS;

    return need + need / 16;
}

uint64_t mfs_capacity_start(uint32_t n)
{
    /* What clients call must be loaded, too, and a process refuses to when it is full to the brim.
     */
    const uint64_t each = MFS_CAPACITY_EMPTY + MIB / 8;
    uint64_t limit = MIB;

    while (mfs_capacity_used(limit, n) < n * each)
        limit += MIB;
    return limit;
}

/* The largest power of 2 of which all workers may have one. */
static uint32_t kept_of(uint64_t bytes, uint32_t workers)
{
    uint32_t kept = MFS_CAPACITY_REQUEST;

    while (kept > KEPT_LEAST && (uint64_t)kept * workers > bytes)
        kept /= 2;
    return kept;
}

void mfs_capacity_divide(uint64_t memory, uint32_t workers, struct mfs_capacity_shares *s)
{
    uint64_t rest;

    memory = most(memory, MFS_CAPACITY_CLIENT_LEAST);
    s->held = (size_t)(memory / 8);
    if (!s->write_window)
        s->write_window = (size_t)most(8 * MIB, least(memory / 4, 128 * MIB));
    if (!s->read_window)
        s->read_window = (size_t)most(4 * MIB, least(memory / 4, 128 * MIB));
    rest =
        most(less(memory, CLIENT_FIXED + s->held + s->write_window + s->read_window), REST_LEAST);
    s->contents = (size_t)least(rest / 5 * 2, 128 * MIB);
    s->heads = (size_t)least(rest / 8, 32 * MIB);
    s->kept = kept_of(rest / 4, workers);
    s->files = (uint32_t)least(rest / 10 / FILE_TAKES, FILES_MOST);
    s->names = (uint32_t)least(rest / 8 / NAME_TAKES, NAMES_MOST);
}
