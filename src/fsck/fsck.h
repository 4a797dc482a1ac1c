/* The check of a running deployment: reads all partitions, compares names, inodes, stripes and
 * bookkeeping with each other, and mends what is wrong if that is wanted.
 *
 * Clients go on meanwhile, and what is read of them is no moment's state. So what looks wrong is
 * reported only if two more looks, the last after longer than anything takes that clients do, find
 * the same with unchanged records (docs/design/metadata.md, "fsck"). One thread; blocks for as long
 * as that takes.
 *
 * Memory: some 100 bytes and the name for each file, 16 for each stripe. */
#ifndef MFS_FSCK_FSCK_H
#define MFS_FSCK_FSCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/store.h"

struct mfs_meta;

/* Longer than steps of one operation are apart, and closes are told late. */
#define MFS_FSCK_PAUSE (8 * MFS_SEC)
/* Longer than a command may be under way (mfs_store_opts.io_timeout) before its partition executes
 * it: what is mended must not be about to become right by itself. */
#define MFS_FSCK_PAUSE_MENDER (35 * MFS_SEC)
/* Housekeeping ends transactions long before. */
#define MFS_FSCK_STALE 30 /* s */

enum mfs_fsck_state { MFS_FSCK_FOUND, MFS_FSCK_MENDED, MFS_FSCK_LEFT };

struct mfs_fsck_finding {
    const char *kind; /* a word, as in docs/design/metadata.md */
    bool leak;        /* what a crash may leave; otherwise nothing of ours should do this */
    uint64_t ino;     /* 0: of none */
    uint32_t part;
    const char *path; /* "" when there is none */
    const char *text; /* what is wrong */
    enum mfs_fsck_state state;
    const char *why; /* not mended, or "" */
};

struct mfs_fsck_report {
    struct mfs_fsck_finding *findings;     /* of all rounds */
    size_t n, left;                        /* left: are still wrong */
    uint64_t inodes, names, stripes, keys; /* with slices, of the last one */
    uint64_t lost; /* of the stripes: their bytes are (fsck/lost.h). No contradiction */
    unsigned passes;
    size_t changed; /* looked wrong, and were not when looked at again */
};

struct mfs_fsck_opts {
    bool mend;
    bool leaks;            /* mends only what clients that die leave, and what is always safe */
    struct mfs_meta *meta; /* by this client; NULL: by one of its own */
    uint32_t slices; /* inodes are looked at in so many parts, one after the other, which takes so
                      * much less memory, and so many times as long; 0: one */
    const atomic_bool *stop; /* -EINTR soon after it is set; may be NULL */
    int64_t pause;           /* ns before the last look, and at most before others; 0: as above */
    int64_t stale;           /* s after which a transaction counts as left; 0: as above */
    /* Now and then; `what` is a phrase, done and all are partitions or ns, all 0: not known. May be
     * NULL. */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t all);
    void *arg;
};

/* 0 and *report, whatever was found; or a negative errno: the check could not be made. */
int mfs_fsck_run(struct mfs_store *store, const struct mfs_fsck_opts *opts,
                 struct mfs_fsck_report **report, struct mfs_err *err);
void mfs_fsck_report_free(struct mfs_fsck_report *report); /* takes NULL */

#endif
