/* How a provider hands the deployment's secret to the command that starts a Local Manager: in this
 * variable of its environment, and as the first line of its standard input. Never in a command
 * line, which every user of the machine can read. */
#ifndef MFS_PROTO_SECRET_H
#define MFS_PROTO_SECRET_H

#define MFS_SECRET_VARIABLE "MEMEFS_SECRET"

#endif
