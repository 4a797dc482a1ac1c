/* Directories that were listed lately. A program that has listed one mostly goes on to look at what
 * is in it, or removes it, name by name: each look-up would ask a partition. So one that has to ask
 * brings the listing's next files along, in the same round trip: few at first, and more as long as
 * they are used. What is brought is known under leases, as by any look-up (meta/meta.h). Which are
 * the next ones is tried out (vfs/names/order.h).
 *
 * A program that looks at files one by one without a listing has one made for it, when what that
 * costs is little beside what the program has asked for by then (vfs/names/streaks.h).
 *
 * Any thread. */
#ifndef MFS_VFS_NAMES_LISTED_H
#define MFS_VFS_NAMES_LISTED_H

#include "meta/meta.h"

struct mfs_listed;

/* Calls with NULL do nothing. */
/* `most`: names of all that it keeps. */
struct mfs_listed *mfs_listed_create(size_t most); /* NULL: no memory */
void mfs_listed_destroy(struct mfs_listed *l);

/* Takes over one reference to the listing. */
void mfs_listed_put(struct mfs_listed *l, uint64_t dir, struct mfs_listing *listing);

/* The name is about to be looked up: may block for a round trip or two, by which it, and others,
 * are known if they are files. True: it was not in a listing, so that mfs_listed_found should
 * follow if it turns out to be a file. */
bool mfs_listed_look(struct mfs_listed *l, struct mfs_meta *meta, uint64_t dir, const char *name);

/* A partition had the file. When there have been many in a directory it is listed at the next one's
 * look-up, if it has no more names than are kept. */
void mfs_listed_found(struct mfs_listed *l, uint64_t dir);

#endif
