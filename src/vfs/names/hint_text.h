/* Hints as people write them: extended attributes "user.memefs.HINT" (docs/reference/hints.md).
 * Pure. */
#ifndef MFS_VFS_NAMES_HINT_TEXT_H
#define MFS_VFS_NAMES_HINT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define MFS_HINT_TEXT_MAX 32 /* bytes of a value, NUL included */

enum mfs_hint {
    MFS_HINT_IS_NONE,    /* the attribute's name is not one of hints' */
    MFS_HINT_IS_PLACE,   /* MFS_XATTR_PLACE */
    MFS_HINT_IS_TTL,     /* MFS_XATTR_TTL */
    MFS_HINT_IS_READS,   /* MFS_XATTR_READS */
    MFS_HINT_IS_REFUSED, /* of that name there is a hint that no deployment can follow yet */
    MFS_HINT_IS_UNKNOWN  /* "user.memefs." and anything else */
};

enum mfs_hint mfs_hint_of(const char *name);

/* "local", "spread", "node:node-3", "node:3" → MFS_HINT_*, without reads. 0 or -EINVAL. */
int mfs_hint_parse_place(const char *value, size_t len, uint32_t *hints);

/* And back; "" when there is none. */
void mfs_hint_place_text(uint32_t hints, char out[MFS_HINT_TEXT_MAX]);

/* Seconds, from 1 on. 0 or -EINVAL. */
int mfs_hint_parse_ttl(const char *value, size_t len, int64_t *ttl);

/* How often, from 1 to MFS_HINT_READS. 0 or -EINVAL. */
int mfs_hint_parse_reads(const char *value, size_t len, uint32_t *reads);

#endif
