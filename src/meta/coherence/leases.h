/* Leases: taken along with what is asked for (partition/files/leases.h), and what is known under
 * them. Any thread. */
#ifndef MFS_META_COHERENCE_LEASES_H
#define MFS_META_COHERENCE_LEASES_H

#include "meta/call.h"
#include "meta/internal.h"

/* What a function takes for the session that wants a lease: nothing when none are wanted. Points to
 * *sid. */
void mfs_lease_arg(struct mfs_meta *meta, struct mfs_call *c, struct mfs_ino_arg *sid);

/* The inode's attributes, of its home at mono time `asked`; *leased: with a lease of them. */
int mfs_lease_ask(struct mfs_meta *meta, uint64_t ino, int64_t asked, struct mfs_attr *attr,
                  bool *leased);

/* Forgets all that is known here under leases. Any thread, does not block. */
void mfs_leases_forget(struct mfs_meta *meta);

/* The session is another one, in whose name nothing has been given back yet: what was given back in
 * the former one's, by commands whose answers were lost, does not matter any more. */
void mfs_leases_renewed(struct mfs_meta *meta);

/* What is known of a file under a lease, by name or number. False: nothing that can be relied on.
 */
bool mfs_leases_name(struct mfs_meta *meta, uint64_t parent, const char *name,
                     struct mfs_attr *attr);
bool mfs_leases_attr(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr);
/* Is it known that the name is not there? */
bool mfs_leases_absent(struct mfs_meta *meta, uint64_t dir, uint32_t part, const char *name);
#endif
