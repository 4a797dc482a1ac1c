/* A writer that counts what was acknowledged, while the partition that it writes to moves. A
 * process of its own, as lm_world forks; the struct is in memory that both see. */
#ifndef MFS_TESTS_MOVE_WRITER_H
#define MFS_TESTS_MOVE_WRITER_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "move_source.h"

struct move_writer {
    uint64_t size;            /* bytes of a value */
    uint64_t most;            /* writes; 0: as many as it can */
    _Atomic uint64_t written; /* acknowledged */
    atomic_int rc;            /* that ended it */
    atomic_bool stop;
    pid_t pid;
};

/* Returns when some have been written. Writes until `most`, until it is told to stop, or until the
 * source refuses one. */
struct move_writer *move_writer_start(const struct move_source *s, uint64_t size);
struct move_writer *move_writer_start_some(const struct move_source *s, uint64_t size,
                                           uint64_t most);
void move_writer_end(struct move_writer *w); /* waits for that */

/* What was acknowledged is there, in its last version; what was refused is not. */
void move_check_written(const struct move_writer *w, const struct mfs_redis *r);

#endif
