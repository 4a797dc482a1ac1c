/* The verbs of `memefs`, and how they show names. */
#ifndef MFS_CLI_VERBS_H
#define MFS_CLI_VERBS_H

#include "args/program.h"

struct mfs_client;

extern const struct mfs_verb mfs_verb_mount, mfs_verb_umount, mfs_verb_fsck, mfs_verb_lost,
    mfs_verb_layout, mfs_verb_renew, mfs_verb_stats, mfs_verb_trace, mfs_verb_profile, mfs_verb_top,
    mfs_verb_bench, mfs_verb_stage_in, mfs_verb_stage_out;

/* Joins the call's deployment as a client without a file system, under the verb's name; blocks
 * until there is a partition table, 10 s at most. 0, or a negative errno with the reason. */
int mfs_verb_join(struct mfs_client **client, const struct mfs_verb_call *call,
                  struct mfs_err *err);

/* "50ms", "2s", "1min", or seconds. 0 or -EINVAL. */
int mfs_verb_duration(const char *text, double *ms);

/* A JSON string of the text, with its quotes, to stdout. A byte that is no UTF-8 becomes "\udcXX",
 * half of a surrogate pair, as RFC 8259 (8.2) allows: what Python calls "surrogateescape" (PEP
 * 383), whose os.fsencode makes the byte of it again. */
void mfs_verb_json_text(const char *text);

/* The name of a file as ls(1) shows it on a terminal: itself if a shell would read it as one plain
 * word, else quoted so that a shell reads it as what it is; what a terminal could take for an order
 * of its own (ESC, a newline) as $'\033'. To stdout. */
void mfs_verb_shell_text(const char *text);

#endif
