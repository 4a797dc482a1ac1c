/* Who does what below a path, and what the time goes to: lines added up, and the one sentence that
 * says what is to be seen in them. One thread. */
#ifndef MFS_TRACE_PROFILE_H
#define MFS_TRACE_PROFILE_H

#include <stdint.h>

#include "base/buf.h"
#include "base/phases.h"
#include "trace/line.h"
#include "trace/nodes.h"

struct mfs_profile;

/* `below`: a path from the mount on; ".": all of it. NULL: ENOMEM. */
struct mfs_profile *mfs_profile_create(const char *below);
void mfs_profile_destroy(struct mfs_profile *p); /* takes NULL */

/* Is the path at `below`, or below it? */
bool mfs_profile_is_below(const char *path, const char *below);

/* A request that has ended, or is still under way (`open`); others than those below the path count
 * for the shortest round trip to a node alone. Of the time that it took the last `most_ms` count. 0
 * or -ENOMEM. */
int mfs_profile_add(struct mfs_profile *p, const struct mfs_trace_line *l, double most_ms);
void mfs_profile_lost(struct mfs_profile *p, uint64_t lines); /* so many are missing */

/* What the client knew of nodes at the end; those at the beginning are taken off. */
int mfs_profile_nodes(struct mfs_profile *p, const struct mfs_trace_nodes *before,
                      const struct mfs_trace_nodes *after);

/* Appends: tables for people, ending with the sentence; or JSON. `seconds`: for how long. 0 or
 * -ENOMEM. */
int mfs_profile_text(struct mfs_profile *p, double seconds, struct mfs_buf *to);
int mfs_profile_json(struct mfs_profile *p, double seconds, struct mfs_buf *to);

/* The sentence alone, without an end of line. */
int mfs_profile_sentence(struct mfs_profile *p, double seconds, struct mfs_buf *to);

#endif
