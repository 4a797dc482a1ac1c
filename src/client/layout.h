/* Where the pieces of a file are, told through a virtual extended attribute that no listing shows;
 * its form is public: memefs/memefs.h. */
#ifndef MFS_CLIENT_LAYOUT_H
#define MFS_CLIENT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "memefs/memefs.h"

struct mfs_client;

/* As getxattr; `rest` is what follows MEMEFS_XATTR_LAYOUT in the name. */
ssize_t mfs_client_layout(struct mfs_client *client, uint64_t ino, const char *rest, void *buf,
                          size_t cap);

#endif
