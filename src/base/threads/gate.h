/* One thread waits, with a bound, for one call of another. Both have a use of it, and the last one
 * frees it. */
#ifndef MFS_BASE_THREADS_GATE_H
#define MFS_BASE_THREADS_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_gate;

struct mfs_gate *mfs_gate_create(void); /* NULL: ENOMEM */

/* To be called once, by any thread. A void * so that it can be a callback. */
void mfs_gate_open(void *gate);

/* To be called once. True: opened within `most` ns. */
bool mfs_gate_wait(struct mfs_gate *gate, int64_t most);

#endif
