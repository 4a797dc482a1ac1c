/* What a name is looked up by in the tables of this folder: its directory's inode, and the name.
 * Pure. */
#ifndef MFS_META_CACHE_NAME_KEY_H
#define MFS_META_CACHE_NAME_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "meta/meta.h"

#define MFS_NAME_KEY_MAX (8 + MFS_NAME_LEN_MAX)

/* Returns its length. */
static inline size_t mfs_name_key(char key[MFS_NAME_KEY_MAX], uint64_t parent, const char *name)
{
    size_t len = strnlen(name, MFS_NAME_LEN_MAX);

    memcpy(key, &parent, sizeof parent);
    memcpy(key + sizeof parent, name, len);
    return sizeof parent + len;
}

#endif
