/* Which files of a listing a look-up brings along: how many, and in which order of the names. Both
 * are tried out. What is brought, and used, is halved with each batch: several threads may go
 * through the directory, each from its own place on, so that what the last batch alone brought says
 * little. Does not lock. */
#ifndef MFS_VFS_NAMES_AHEAD_H
#define MFS_VFS_NAMES_AHEAD_H

#include "vfs/names/order.h"

/* All zeros: nothing was brought, and the listing's order is tried first. */
struct mfs_ahead {
    unsigned batch;        /* files that were brought last */
    unsigned hits;         /* look-ups since then that had to ask nobody: the caller counts */
    unsigned brought, hit; /* before that, halved with each batch */
    unsigned wrong;        /* batches in sequence of which too little was used */
    unsigned tried;        /* orders in sequence that were of no use */
    enum mfs_order how;
    uint32_t *order[MFS_ORDERS]; /* made once, when they are first tried; NULL: as listed */
};

/* Tries that order first. */
void mfs_ahead_begin(struct mfs_ahead *a, const struct mfs_listing *l, enum mfs_order how);
void mfs_ahead_fini(const struct mfs_ahead *a);

/* A file has to be asked for: sets a->batch, how many are to be brought, and a->how. An order is
 * given up when some batches in sequence were of little use; when all of them were tried in vain,
 * each for twice as many batches as before, so that looks in no order go on without more ado. */
void mfs_ahead_next(struct mfs_ahead *a, const struct mfs_listing *l);

#endif
