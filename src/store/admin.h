/* What a Local Manager does to one redis process, as its ACL user MFS_REDIS_ADMIN. Blocking, each
 * call bounded by the timeout given at open; one thread at a time per connection. The sentence in
 * *err names the process and the cause. */
#ifndef MFS_STORE_ADMIN_H
#define MFS_STORE_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct mfs_admin;
struct mfs_cmd;

/* Connects to unix_path, or to host:port when that is NULL, and authenticates. */
int mfs_admin_open(struct mfs_admin **admin, const char *unix_path, const char *host, uint16_t port,
                   const char *password, int64_t timeout_ns, struct mfs_err *err);
void mfs_admin_close(struct mfs_admin *admin);

/* Makes the partition ready: loads the function library (replacing an older one) and, where there
 * is none yet, writes #super and, on partition 0, the root directory (mode 01777, root's). An
 * existing #super of another deployment, shape or format is -EINVAL. Safe to repeat. */
struct mfs_admin_format {
    const char *deployment;
    uint32_t index, nparts, stripe_size;
};
int mfs_admin_format(struct mfs_admin *admin, const struct mfs_admin_format *f,
                     struct mfs_err *err);

struct mfs_admin_info {
    uint64_t used_memory, used_memory_rss, maxmemory; /* bytes */
    uint64_t keys;
    uint64_t net_in, net_out; /* bytes since start */
    uint32_t pid;
};
int mfs_admin_info(struct mfs_admin *admin, struct mfs_admin_info *info, struct mfs_err *err);

int mfs_admin_set_maxmemory(struct mfs_admin *admin, uint64_t bytes, struct mfs_err *err);
int mfs_admin_purge(struct mfs_admin *admin, struct mfs_err *err); /* MEMORY PURGE */

/* Any other command: cmd->argc and argv are given, part is ignored, the results are set as by
 * mfs_store_exec and released by mfs_cmds_fini, in any case. Returns cmd->rc. */
int mfs_admin_call(struct mfs_admin *admin, struct mfs_cmd *cmd, struct mfs_err *err);

/* Asks the process to exit without saving; 0 when the connection ended. */
int mfs_admin_shutdown(struct mfs_admin *admin, struct mfs_err *err);

#endif
