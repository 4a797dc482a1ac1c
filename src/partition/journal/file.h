/* The journal's files: the one that counts, and beside it the one that is to replace it. */
#ifndef MFS_PARTITION_JOURNAL_FILE_H
#define MFS_PARTITION_JOURNAL_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "partition/answer.h"

struct mfs_journal_file {
    char path[PATH_MAX], next_path[PATH_MAX];
    int fd, next_fd;      /* -1: none */
    uint64_t bytes, next; /* of each */
    uint64_t least;       /* bytes when it was last written anew */
    bool broken;          /* it can't be written, and is empty */
};

/* 0 or a negative errno. `keep`: goes on behind what is there. */
int mfs_journal_file_open(struct mfs_journal_file *f, struct mfs_span path, bool keep);
/* Empties the file, and gives up the next one. 0 or a negative errno. */
int mfs_journal_file_reset(struct mfs_journal_file *f);
/* Sealed batches, to both. What fails is given up: the next one, or the file (`broken`). */
void mfs_journal_file_write(struct mfs_journal_file *f, const struct mfs_answer *batch);

/* Worth being written anew? */
bool mfs_journal_file_long(const struct mfs_journal_file *f);
/* The same, to the next one alone. 0 or a negative errno; it is given up then. */
int mfs_journal_next_open(struct mfs_journal_file *f);
int mfs_journal_next_write(struct mfs_journal_file *f, const struct mfs_answer *batch);
int mfs_journal_next_replace(struct mfs_journal_file *f); /* it is the one that counts now */
void mfs_journal_next_drop(struct mfs_journal_file *f);

#endif
