/* What the parts of store/admin/admin.h share. */
#ifndef MFS_STORE_ADMIN_ADMIN_IMPL_H
#define MFS_STORE_ADMIN_ADMIN_IMPL_H

#include "cluster/table.h"
#include "store/admin/admin.h"
#include "store/channel.h"
#include "store/store.h"

struct mfs_args;

struct mfs_admin {
    struct mfs_channel *conn;
    int64_t timeout_ns;
    bool counts_asked; /* by mfs_admin_ask, whose answers have not been taken */
    char name[MFS_UNIXPATH_MAX + MFS_HOST_MAX + 8]; /* for messages: path or host:port */
};

/* A command of whose answer only the error matters. */
int mfs_admin_plain(struct mfs_admin *admin, const struct mfs_args *args, struct mfs_err *err);

/* Sends up to so many commands. The answer to each is to be received, in this order and before
 * anything else is sent, within the timeout from here; what has come by then is still taken. */
#define MFS_ADMIN_SEND_MAX 2
int mfs_admin_send(struct mfs_admin *admin, struct mfs_cmd *cmd, size_t n, struct mfs_err *err);
/* Waits for the next answer; returns cmd->rc. When the connection is broken it is given up. */
int mfs_admin_receive(struct mfs_admin *admin, struct mfs_cmd *cmd, struct mfs_err *err);

/* Two commands in one round trip; the second is executed also when the first is refused. Both are
 * to be released by mfs_cmds_fini, in any case. */
int mfs_admin_both(struct mfs_admin *admin, struct mfs_cmd cmd[2], struct mfs_err *err);

/* --- admin_info.c --------------------------------------------------------------------------- */

/* The number behind "\nfield:" in an answer to INFO, 0 when there is none. */
uint64_t mfs_admin_field(const char *text, const char *field);
struct mfs_admin_replication mfs_admin_replication_of(const char *text);

#endif
