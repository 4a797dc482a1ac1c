/* The workload "filecopy", as published for in-memory file systems of jobs: each worker writes a
 * file of its own in chunks, and when all have done so reads the file of a worker on the next node.
 * Nodes meet in a directory of the file system that is measured: nothing else connects them. */
#ifndef MFS_CLI_FILECOPY_H
#define MFS_CLI_FILECOPY_H

#include <stdint.h>

#include "base/err.h"

struct mfs_filecopy {
    const char *dir;   /* made when it is not there; gone afterwards */
    unsigned nodes;    /* that take part, 1 or more */
    unsigned workers;  /* of each, 1 or more */
    uint64_t file;     /* bytes of each worker's file … */
    uint64_t chunk;    /* … and of each call; 16 or more */
    unsigned patience; /* s, that a node waits for the others */
};

/* What all nodes together have reached. */
struct mfs_filecopy_rates {
    unsigned rank;      /* of this node: its place among the nodes, 0 for one of them */
    double write, read; /* bytes/s: all bytes, by the time of the slowest node */
};

/* Takes part, and blocks until all have finished. 0, or a negative errno with the sentence;
 * -EUCLEAN: what was read is not what was written. Not more than once at a time in a process. */
int mfs_filecopy_run(const struct mfs_filecopy *f, struct mfs_filecopy_rates *rates,
                     struct mfs_err *err);

#endif
