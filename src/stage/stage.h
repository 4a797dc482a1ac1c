/* Files and trees into a deployment and out of it: many at a time, large ones in pieces, repeated
 * runs skip what is there. A copy comes under its own name only when it is whole, as it is written
 * under another one beside it. Attributes are kept as by `cp -a`. Knows no MemEFS but in where it
 * puts temporary names: any two directories will do.
 *
 * Source of what is kept: cp(1), "-a"; of the sums' format: sha256sum(1). */
#ifndef MFS_STAGE_STAGE_H
#define MFS_STAGE_STAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define MFS_STAGE_SUM 32 /* bytes of SHA-256 */

/* One thing to copy, with all that is below it. */
struct mfs_stage_entry {
    char *from;                       /* a path; with "/" at its end: what is in the directory */
    char *to;                         /* below the target, may have slashes; NULL: its last name */
    bool has_sum;                     /* of a regular file: */
    unsigned char sum[MFS_STAGE_SUM]; /* of its content */
};

struct mfs_stage_list {
    uint32_t n;
    struct mfs_stage_entry *entry;
};

/* Appends; texts are copied. 0 or -ENOMEM. */
int mfs_stage_list_add(struct mfs_stage_list *l, const char *from, const char *to);
/* Appends what a file names, a line each: "PATH" (copied to PATH below the target, as rsync
 * --files-from has it), "SRC<TAB>DST", or one of sha256sum's, of either. 0, or a negative errno
 * with the reason. */
int mfs_stage_list_read(struct mfs_stage_list *l, const char *manifest, struct mfs_err *err);
void mfs_stage_list_fini(struct mfs_stage_list *l);

/* How far a run is; at last what it has done. */
struct mfs_stage_counts {
    uint64_t files, directories,
        others;                      /* made or replaced: regular; directories; links, fifos … */
    uint64_t bytes;                  /* of content that was copied, without holes */
    uint64_t skipped, skipped_bytes; /* files that were there */
    uint64_t failed;                 /* a sentence each on stderr */
    uint64_t found;                  /* names in the sources so far, whatever became of them */
    uint64_t left_out; /* names of unfinished copies; to a server, empty directories, too */
    uint64_t all_files, all_bytes; /* that there are to do, as far as is known, … */
    bool all;                      /* … which is all */
};

/* What a run tells while it goes on, from any thread, one call at a time. */
struct mfs_stage_watch {
    void (*failed)(void *arg, const char *path, int code, const char *why);
    /* Four times a second, and at the end. */
    void (*counts)(void *arg, const struct mfs_stage_counts *c);
    void *arg;
};

struct mfs_stage_plan {
    const struct mfs_stage_list *list;
    const char *target; /* a directory, made when it is not there */
    bool exact;         /* the target is the copy's own name; of one entry */
    bool verify;        /* read back what was written; compare what is skipped */
    bool shared;        /* with the same call on other nodes: each copies what none has begun */
    bool progress;      /* to stderr, which is a terminal */
    bool count;         /* find out how much there is to do */
    unsigned threads;   /* 1 or more */
    uint64_t call;      /* with `shared`: what the same call has in common (mfs_stage_call); 0: make
                           it of the list */
    const struct mfs_stage_watch *watch; /* takes what else goes to stderr; NULL: none */
    const atomic_bool *stop;             /* may be set at any time: ends the run soon */
};

struct mfs_stage_failure {
    char *path;
    int code; /* negative errno */
    char *why;
};

/* Of a call on several nodes: what one of its processes has done. */
struct mfs_stage_part {
    char *node;            /* its name, or HOST:PID where a launcher has chosen the node */
    uint64_t files, bytes; /* copied by it */
    uint64_t failed;
    bool whole; /* it came to its end, and found as much in the sources as any */
};

struct mfs_stage_result {
    struct mfs_stage_counts counts;
    bool full;    /* the target has no room: the rest was left out */
    bool stopped; /* by plan.stop: likewise */
    bool differs; /* nodes came to their ends and found not the same sources */
    double seconds;
    uint32_t nfailures; /* of the first of them */
    struct mfs_stage_failure *failure;
    uint32_t nparts; /* 0: it ran here alone */
    struct mfs_stage_part *part;
};

/* Of what a list names; targets and the order of calls have no part in it. 0: out of memory. */
uint64_t mfs_stage_call(const struct mfs_stage_list *l);

/* Blocks until all is done; sets the process' umask to 0. 0 although single ones have failed
 * (result.counts.failed); or a negative errno with the reason: nothing was begun. */
int mfs_stage_run(const struct mfs_stage_plan *plan, struct mfs_stage_result *result,
                  struct mfs_err *err);
void mfs_stage_result_fini(struct mfs_stage_result *result);

#endif
