/* Copies ranges of bytes between descriptors, and compares them. */
#ifndef MFS_STAGE_CONTENT_H
#define MFS_STAGE_CONTENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mfs_stage_range {
    size_t step; /* bytes of a read and a write, at most; 0: MFS_STAGE_BUFFER */
    int from, to;
    uint64_t at, end;
    bool sparse;             /* what is zero is left out: `to` has its size already */
    bool verify;             /* what was written is read back */
    const atomic_bool *stop; /* -EINTR when it is set */
    unsigned char *sum;      /* SHA-256 of all into sum[32]; NULL: not asked for */
    uint64_t copied;         /* bytes written */
    bool reading;            /* an error is the source's */
};

/* 0, or a negative errno: -ENODATA, the source has ended earlier; -EUCLEAN, what was read back is
 * something else. */
int mfs_stage_copy_range(struct mfs_stage_range *r);

/* Is what `to` has in the range what has that XXH64? It is read from where it is kept, not from the
 * kernel's memory. 0, -EUCLEAN, or another negative errno. */
int mfs_stage_read_back(int to, uint64_t at, uint64_t end, uint64_t hash);

/* Have the first `size` bytes of both files the same content? 1, 0, or a negative errno. */
int mfs_stage_same_content(int a, int b, uint64_t size);

/* Where files go when they have been read so often: that `fd` is open is no reading of its file. Of
 * each file of a source that is copied one open file counts, of a target none. -1 is fine. */
void mfs_stage_is_no_reading(int fd);

/* SHA-256 of [at, end). 0 or a negative errno. */
int mfs_stage_sum(int fd, uint64_t at, uint64_t end, unsigned char sum[32]);

#endif
