/* What clients may do in a partition: the rights of the ACL user MFS_REDIS_USER, which lm gives it.
 * They are the commands that partition/protocol.h lists. Everything else is refused: configuration,
 * scripts, other users, replication, whatever touches every key at once.
 *
 * A command that is missing there is refused with NOPERM. Unit tests run under these rules, so one
 * of them will ask for it. */
#ifndef MFS_STORE_RIGHTS_H
#define MFS_STORE_RIGHTS_H

#include "partition/protocol.h"

/* ACL rules, separated by blanks, that replace those the user has. The only channels are those of
 * notices to a session. */
#define MFS_MAY_SERVER(command, effect)            " +" command
#define MFS_MAY_MODULE(name, words, first, effect) " +mfs_" #name
#define MFS_CLIENT_RIGHTS                                                                          \
    "-@all resetchannels &N*" MFS_SERVER_COMMANDS(MFS_MAY_SERVER)                                  \
        MFS_CLIENT_COMMANDS(MFS_MAY_MODULE)

/* A fenced process' (src/store/fence.c): nothing. Without channels, connections that subscribed are
 * closed: they would wait for nothing. */
#define MFS_CLIENT_RIGHTS_FENCED "-@all resetchannels"

#endif
