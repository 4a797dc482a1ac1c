/* One call on several nodes (docs/design/decisions/0044-staging-on-all-nodes.md): a command starts
 * the same program on each, which takes what it is to do from its standard input and tells how far
 * it is on its standard output, in lines of words (stage/words.h). They share the work as calls
 * with `shared` do. The end of its input ends each: so does the death of what started it.
 *
 * → "memefs-stage 3 in|out TARGET CALL JOBS FLAGS ROOT ROOT-THERE TOKEN" (flags: e: exact, v:
 * verify, c: count), "entry FROM TO SUM" of each entry, "go".
 *
 * ← "stage WORKER counts …" (struct mfs_stage_counts), "stage WORKER failed CODE PATH WHY", at last
 * "stage WORKER end FULL STOPPED", or "stage WORKER error CODE WHY": it could not begin.
 *
 * ROOT is where the starter's node has the mount; paths below it are below ROOT-THERE. TOKEN is a
 * file that the starter has put into the target: a worker that does not see it has another one. */
#ifndef MFS_STAGE_NODES_H
#define MFS_STAGE_NODES_H

#include "stage/stage.h"

struct mfs_stage_node {
    char *name;    /* for messages */
    char *command; /* for sh, which starts one program, or several */
    char *root;    /* where it has the mount; "": as here */
    bool many;     /* the command starts it on several nodes, which are known when they tell */
};

struct mfs_stage_nodes {
    uint32_t n;
    struct mfs_stage_node *node;
    const char *root; /* where the mount is here */
};

/* As mfs_stage_run, on all of these; paths of the plan are absolute. A node that dies leaves its
 * part to the others: it fails when none comes to its end (-EIO). The target is made here first.
 * Signals of the terminal do not reach the commands, which have sessions of their own. Not
 * thread-safe: it waits for children. */
int mfs_stage_run_on(const struct mfs_stage_nodes *nodes, bool in,
                     const struct mfs_stage_plan *plan, struct mfs_stage_result *result,
                     struct mfs_err *err);

/* What is started there: reads a plan, runs it and tells of it. `check` looks at it before. Lasts
 * as long as the input. 0; 1: it could not begin, which has been told; or a negative errno with the
 * reason. */
int mfs_stage_work(bool in, int input, int output,
                   int (*check)(const struct mfs_stage_plan *plan, struct mfs_err *err),
                   struct mfs_err *err);

#endif
