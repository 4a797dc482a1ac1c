/* A request of the command line's that takes long: meanwhile cm is asked for the progress now and
 * then, which also shows that it lives. */
#ifndef MFS_CM_CLI_LONG_CALL_H
#define MFS_CM_CLI_LONG_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "args/paths.h"
#include "proto/messages.h"

struct mfs_long_call {
    enum mfs_msg type;
    const void *body;
    const char *if_silent; /* what becomes of it if cm does not answer any more, for the message */
    bool terminal;         /* show the progress on stderr */
    void *reply;           /* of the type's size; clear it with mfs_schema_clear */
    bool tried, begun;     /* results: cm was found; it was asked */
};

/* Blocks until it is answered, or cm does not live. 0 or a negative errno with the reason. */
int mfs_long_call(const struct mfs_paths *p, struct mfs_long_call *call, struct mfs_err *err);

#endif
