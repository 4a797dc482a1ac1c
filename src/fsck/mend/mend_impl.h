/* What the parts of mend.c share: what each kind of finding is mended by, and steps for that. */
#ifndef MFS_FSCK_MEND_MEND_IMPL_H
#define MFS_FSCK_MEND_MEND_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "fsck/mend/mend.h"

struct mfs_call;

struct mfs_mender {
    struct mfs_store *store;
    struct mfs_meta *meta;
    bool borrowed;
};

/* As mfs_mender_mend, for one kind. */
typedef int mfs_mend_fn(struct mfs_mender *m, const struct mfs_census *c,
                        const struct mfs_found *f);

/* Runs the call at that partition and releases it. */
int mfs_mend_done(struct mfs_mender *m, struct mfs_call *call, uint32_t part);
/* The same for one that answers 1 when it has changed something; else -ESTALE. */
int mfs_mend_changed(struct mfs_mender *m, struct mfs_call *call, uint32_t part);

/* Is the inode there? 1, 0 or a negative errno. */
int mfs_mend_exists(struct mfs_mender *m, uint64_t ino);
/* 0; -ESTALE: the inode is there after all. */
int mfs_mend_absent(struct mfs_mender *m, uint64_t ino);

/* Puts bytes into a record that is still the one that was judged. */
int mfs_mend_splice(struct mfs_mender *m, const struct mfs_census *c, uint64_t ino, size_t at,
                    const void *bytes, size_t len);

/* A key that has none gets a time to live. */
int mfs_mend_expire(struct mfs_mender *m, uint32_t part, const char *key, size_t len,
                    int64_t seconds);

/* --- names.c -------------------------------------------------------------------------------- */
mfs_mend_fn mfs_mend_bit, mfs_mend_cycle, mfs_mend_dangling, mfs_mend_links, mfs_mend_name_place,
    mfs_mend_nameless, mfs_mend_parent, mfs_mend_shard, mfs_mend_tomb, mfs_mend_two_names,
    mfs_mend_type;

/* --- data.c --------------------------------------------------------------------------------- */
mfs_mend_fn mfs_mend_beyond, mfs_mend_dead, mfs_mend_forever, mfs_mend_loose, mfs_mend_stripe_long,
    mfs_mend_stripe_place, mfs_mend_stripes;

/* --- txn.c ---------------------------------------------------------------------------------- */
mfs_mend_fn mfs_mend_intent, mfs_mend_listed, mfs_mend_outcome, mfs_mend_seal, mfs_mend_sequence,
    mfs_mend_transaction;

#endif
