/* The sentence that goes with an error code. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int mfs_err_set(struct mfs_err *err, int code, const char *fmt, ...)
{
    va_list ap;

    if (err) {
        err->code = code;
        va_start(ap, fmt);
        vsnprintf(err->msg, sizeof err->msg, fmt, ap);
        va_end(ap);
    }
    return code;
}

int mfs_err_prefix(struct mfs_err *err, const char *fmt, ...)
{
    char old[MFS_ERR_MSG_MAX];
    size_t used;
    va_list ap;

    if (!err)
        return 0;
    memcpy(old, err->msg, sizeof old);
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    used = strlen(err->msg);
    snprintf(err->msg + used, sizeof err->msg - used, ": %s", old);
    return err->code;
}
