/* The hints that there are (docs/reference/hints.md), a row each: extended attributes
 * "user.memefs.HINT", which are kept in the record (decisions/0038). Pure. */
#ifndef MFS_META_HINTS_H
#define MFS_META_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "meta/attr.h"

#define MFS_HINT_TEXT_MAX 32 /* bytes of a value, NUL included */

#define MFS_XATTR_PLACE    "user.memefs.place"
#define MFS_XATTR_TTL      "user.memefs.ttl"
#define MFS_XATTR_READS    "user.memefs.delete-after-reads"
#define MFS_XATTR_PIN      "user.memefs.pin"
#define MFS_XATTR_REPLICAS "user.memefs.replicas"
#define MFS_XATTR_STRIPE   "user.memefs.stripe"

struct mfs_hint_kind {
    const char *name;  /* of the attribute */
    uint32_t set;      /* MFS_SET_*: what of a record it is */
    const char *right; /* values, after "is to be " */
    const char *fixed; /* why a file that is there can't get another value; NULL: it can */
    int (*parse)(const char *text, struct mfs_attr *attr);
    void (*show)(const struct mfs_attr *attr, char out[MFS_HINT_TEXT_MAX]);
};

/* NULL behind the last one. */
const struct mfs_hint_kind *mfs_hint_kind_at(size_t i);

/* Of that name; NULL: there is none. */
const struct mfs_hint_kind *mfs_hint_kind(const char *name);

/* May no attribute but a hint have that name? */
bool mfs_hint_name_is_kept(const char *name);

/* The value is the hint's in the attributes from then on; other hints stay. 0 or -EINVAL. */
int mfs_hint_parse(const struct mfs_hint_kind *kind, const void *value, size_t len,
                   struct mfs_attr *attr);

/* And back; "" where there is none. */
void mfs_hint_show(const struct mfs_hint_kind *kind, const struct mfs_attr *attr,
                   char out[MFS_HINT_TEXT_MAX]);

/* Is it among the attributes' names? What is listed is copied; so of files only what can be set for
 * a copy. */
bool mfs_hint_is_listed(const struct mfs_hint_kind *kind, const struct mfs_attr *attr);

#endif
