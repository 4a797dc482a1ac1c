/* The commands of the module (protocol.h lists them); arguments and answers stand above each
 * function. They check how many arguments there are and how long, as clients send them. */
#ifndef MFS_PARTITION_COMMANDS_H
#define MFS_PARTITION_COMMANDS_H

#include "partition/answer.h"
#include "partition/keys.h"
#include "partition/request.h"
#include "partition/protocol.h"

#define MFS_COMMAND(name, words, first, effect) int mfs_command_##name(const struct mfs_request *r);
MFS_COMMANDS(MFS_COMMAND)
#undef MFS_COMMAND

#endif
