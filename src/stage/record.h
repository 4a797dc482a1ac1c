/* Which pieces of a large file are there, noted in an extended attribute of the unfinished copy, so
 * that a later run of the same call goes on from there. Where there are no such attributes it
 * begins anew. Threads: the caller's lock. */
#ifndef MFS_STAGE_RECORD_H
#define MFS_STAGE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_stage_record {
    uint32_t n;          /* pieces */
    char of[128];        /* what the source is like: another one's pieces are of no use */
    unsigned char *done; /* a byte each */
};

int mfs_stage_record_init(struct mfs_stage_record *r, uint32_t n); /* 0 or -ENOMEM */
void mfs_stage_record_fini(struct mfs_stage_record *r);

/* True: the copy has a record of that source, whose pieces are `done` then. */
bool mfs_stage_record_load(struct mfs_stage_record *r, int fd);
void mfs_stage_record_save(const struct mfs_stage_record *r, int fd);
void mfs_stage_record_drop(int fd);

#endif
