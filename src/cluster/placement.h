/* Layer 1 of placement: which partition holds an object. Pure, O(1), the same on every client and
 * for the whole life of a deployment, because P (the number of partitions) never changes.
 *
 * After: Uta et al., "MemEFS: A network-aware elastic in-memory runtime distributed file system",
 * FGCS 82 (2018); stripes are keyed by the file's identity instead of its path, so that a rename
 * moves no data. */
#ifndef MFS_CLUSTER_PLACEMENT_H
#define MFS_CLUSTER_PLACEMENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/ino.h"

#define MFS_PARTITIONS_MAX 65535U
#define MFS_ROOT_INO       1ULL /* home partition 0, sequence 1 */

/* The partition that has the inode. */
static inline uint32_t mfs_placement_home(uint64_t ino)
{
    return mfs_ino_home(ino);
}

/* The partition of the entry `name` of directory `parent`, and so the home of what is created
 * under it: XXH64(parent, name) mod P. */
uint32_t mfs_placement_entry(uint64_t parent, const char *name, size_t len, uint32_t nparts);

/* The partition of stripe n:
 *
 *     (home + shift(n div P) + step · (n mod P)) mod P
 *
 * step is coprime to P and near P divided by the golden ratio; shift(0) is 0, shift(b) is
 * XXH64(ino, b). So stripe 0 is at home, each P stripes of a file from a multiple of P on lie in P
 * different partitions, and any few in sequence are far apart: they spread over ranges of
 * partitions, which is what nodes have, with no more than about two beyond a node's part (Vera Sós'
 * theorem of three distances). A hash of (ino, n) is even only in the mean: of 64 stripes on 8
 * nodes some 12 would be on one. The shift keeps a program that works on every P-th stripe from
 * having all of them in one partition.
 *
 * Of an inode with MFS_INO_TOGETHER all stripes are at home (decisions/0038). */
uint32_t mfs_placement_stripe(uint64_t ino, uint32_t n, uint32_t nparts);
uint32_t mfs_placement_step(uint32_t nparts);

#endif
