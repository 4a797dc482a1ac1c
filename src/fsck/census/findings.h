/* What was found to be wrong in one pass. */
#ifndef MFS_FSCK_CENSUS_FINDINGS_H
#define MFS_FSCK_CENSUS_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "fsck/census/flat.h"
#include "meta/record.h"

/* Kind, word, may a crash leave it, as a sentence. */
#define MFS_FAULTS(EACH)                                                                           \
    EACH(DANGLING, "dangling-name", false)                                                         \
    EACH(TYPE, "wrong-type", false)                                                                \
    EACH(NAME_PLACE, "misplaced-name", false)                                                      \
    EACH(BIT, "missing-bit", false)                                                                \
    EACH(SHARD, "lost-shard", false)                                                               \
    EACH(TOMB, "tomb-of-the-living", false)                                                        \
    EACH(NAMELESS, "nameless-inode", true)                                                         \
    EACH(LINKS_MANY, "links-too-many", true)                                                       \
    EACH(LINKS_FEW, "links-too-few", false)                                                        \
    EACH(DIR_LINKS, "directory-links", true)                                                       \
    EACH(PARENT, "wrong-parent", false)                                                            \
    EACH(TWO_NAMES, "two-names", false)                                                            \
    EACH(CYCLE, "cycle", false)                                                                    \
    EACH(STRIPES, "lost-stripes", true)                                                            \
    EACH(BEYOND, "stripes-beyond-end", true)                                                       \
    EACH(STRIPE_LONG, "stripe-too-long", false)                                                    \
    EACH(STRIPE_PLACE, "misplaced-stripe", false)                                                  \
    EACH(LOOSE, "lost-key", true)                                                                  \
    EACH(DEAD_OPENER, "dead-opener", true)                                                         \
    EACH(DEAD_LOCK, "dead-lock", true)                                                             \
    EACH(DEAD_APPENDER, "dead-appender", true)                                                     \
    EACH(FOREVER, "no-expiry", false)                                                              \
    EACH(INTENT, "stale-intent", true)                                                             \
    EACH(SEAL, "stale-seal", true)                                                                 \
    EACH(OUTCOME, "stale-outcome", true)                                                           \
    EACH(TRANSACTION, "stale-transaction", true)                                                   \
    EACH(MOVE_LOCK, "stale-move-lock", true)                                                       \
    EACH(REAP, "stale-reap", true)                                                                 \
    EACH(ORPHAN, "stale-orphan", true)                                                             \
    EACH(INODE_PLACE, "misplaced-inode", false)                                                    \
    EACH(SEQUENCE, "low-sequence", false)                                                          \
    EACH(ROOT, "no-root", false)                                                                   \
    EACH(KEY, "bad-key", false)

enum mfs_fault {
#define MFS_FAULT_ENUM(fault, word, leak) MFS_FAULT_##fault,
    MFS_FAULTS(MFS_FAULT_ENUM)
#undef MFS_FAULT_ENUM
        MFS_FAULT_COUNT
};

const char *mfs_fault_word(enum mfs_fault fault);
bool mfs_fault_leak(enum mfs_fault fault);

/* Two of different passes are the same if all up to `digest` is. */
struct mfs_found {
    enum mfs_fault fault;
    uint32_t part;
    uint64_t ino, dir;
    uint64_t digest; /* of the evidence */

    uint64_t a, b; /* what mending needs to know */
    char txn[MFS_TXN_LEN + 2];
    char *name; /* of the entry, or the key; heap, may be NULL */
    size_t name_len;
    char *text; /* heap */
};

struct mfs_findings {
    struct mfs_flat list;
};

void mfs_findings_init(struct mfs_findings *f);
void mfs_findings_fini(struct mfs_findings *f);

/* Adds one; `name` (may be NULL) is copied and counts as evidence. NULL: no memory. */
struct mfs_found *mfs_findings_add(struct mfs_findings *f, enum mfs_fault fault, uint32_t part,
                                   uint64_t ino, uint64_t dir, uint64_t digest, const char *name,
                                   size_t name_len, const char *fmt, ...)
    __attribute__((format(printf, 9, 10)));

void mfs_findings_sort(struct mfs_findings *f); /* each once */
/* Those that are not in `other`, which is sorted as well, are dropped; how many. */
size_t mfs_findings_keep_common(struct mfs_findings *f, const struct mfs_findings *other);

/* How many are in both, but with other evidence. */
size_t mfs_findings_unsettled(const struct mfs_findings *f, const struct mfs_findings *other);

/* A name or key for people: what can't be printed as \xNN; into out[n]. */
const char *mfs_findings_show(const char *p, size_t len, char *out, size_t n);

#endif
