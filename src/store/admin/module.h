/* Where the module is that every redis-server of a deployment loads (src/partition). */
#ifndef MFS_STORE_ADMIN_MODULE_H
#define MFS_STORE_ADMIN_MODULE_H

#include <stddef.h>

/* Its absolute path: beside this program, or where both are installed. 0 or -ENOENT. */
int mfs_module_path(char *out, size_t n);

#endif
