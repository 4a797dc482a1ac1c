/* Where the module is that every redis-server of a deployment loads (src/partition). */
#ifndef MFS_STORE_MODULE_H
#define MFS_STORE_MODULE_H

#include <stddef.h>

/* What clients may do that redis itself does not know, as ACL rules. */
#define MFS_MODULE_RULES                                                                           \
    "+mfs_lookup +mfs_create +mfs_unlink +mfs_unref +mfs_open +mfs_close +mfs_commit "             \
    "+mfs_commit0 +mfs_disown +mfs_told +mfs_sput +mfs_lease +mfs_holders +mfs_scan"

/* Its absolute path: beside this program, or where both are installed. 0 or -ENOENT. */
int mfs_module_path(char *out, size_t n);

#endif
