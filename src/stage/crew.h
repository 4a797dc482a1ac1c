/* What the workers of a call on several nodes have told, and what comes of it all. */
#ifndef MFS_STAGE_CREW_H
#define MFS_STAGE_CREW_H

#include "stage/stage.h"

struct mfs_stage_crew;
struct mfs_stage_tally;

struct mfs_stage_crew *mfs_stage_crew_create(struct mfs_stage_tally *tally); /* NULL: ENOMEM */
void mfs_stage_crew_destroy(struct mfs_stage_crew *c);                       /* takes NULL */

/* Takes a line that came from the command of that number; `name` is the node's, "" when several
 * come by it, which are told apart by their own then: failures are told on stderr. False: it is
 * none of a worker's. */
bool mfs_stage_crew_take(struct mfs_stage_crew *c, uint32_t command, const char *name, char *line);

/* All together, for the tally. */
void mfs_stage_crew_count(const struct mfs_stage_crew *c, struct mfs_stage_counts *sum);

/* Has every worker of the command told of its end? False also when there is none yet. */
bool mfs_stage_crew_ended(const struct mfs_stage_crew *c, uint32_t command);
/* Has one come to its end without a failure, which has found as much as any: is all there? */
bool mfs_stage_crew_whole(const struct mfs_stage_crew *c);

/* At the end: what failed is what the worker with the fewest failures has told, of those that have
 * found the most, as each looks at all. One that has found less is named (result.differs). False:
 * none of those that have found the most came to its end. */
bool mfs_stage_crew_result(struct mfs_stage_crew *c, struct mfs_stage_result *result);

#endif
