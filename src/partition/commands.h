/* The commands of the module; arguments and answers stand above each. They check how many arguments
 * there are and how long, as it is others who send them. */
#ifndef MFS_PARTITION_COMMANDS_H
#define MFS_PARTITION_COMMANDS_H

#include "partition/keys.h"

/* names.c */
int mfs_command_lookup(const struct mfs_request *r);
int mfs_command_create(const struct mfs_request *r);
int mfs_command_unlink(const struct mfs_request *r);
int mfs_command_unref(const struct mfs_request *r);

/* files.c */
int mfs_command_open(const struct mfs_request *r);
int mfs_command_close(const struct mfs_request *r);
int mfs_command_disown(const struct mfs_request *r);
int mfs_command_told(const struct mfs_request *r);
int mfs_command_commit(const struct mfs_request *r);
int mfs_command_recount(const struct mfs_request *r);
int mfs_command_sput(const struct mfs_request *r);
int mfs_command_drop(const struct mfs_request *r);

/* holders.c */
int mfs_command_lease(const struct mfs_request *r);
int mfs_command_holders(const struct mfs_request *r);

/* locks.c */
int mfs_command_getlk(const struct mfs_request *r);
int mfs_command_setlk(const struct mfs_request *r);
int mfs_command_in_way(const struct mfs_request *r);
int mfs_command_closing(const struct mfs_request *r);
int mfs_command_unlock_session(const struct mfs_request *r);

/* module.c: for the administrator. */
int mfs_command_journal(const struct mfs_request *r);

/* scan.c */
int mfs_command_scan(const struct mfs_request *r);

#endif
