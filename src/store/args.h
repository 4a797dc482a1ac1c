/* Builds the argument list of one command on the stack. Strings are not copied; numbers are printed
 * into the builder itself. Overflow is a programming error and asserts. */
#ifndef MFS_STORE_ARGS_H
#define MFS_STORE_ARGS_H

#include "store/store.h"

#define MFS_ARGS_MAX     48
#define MFS_ARGS_NUM_MAX 24 /* a decimal 64-bit integer and NUL */

struct mfs_args {
    struct mfs_arg v[MFS_ARGS_MAX];
    char num[MFS_ARGS_MAX][MFS_ARGS_NUM_MAX];
    uint32_t n;
};

void mfs_args_init(struct mfs_args *a, const char *command);
void mfs_args_bin(struct mfs_args *a, const void *p, size_t len);
void mfs_args_str(struct mfs_args *a, const char *s);
void mfs_args_int(struct mfs_args *a, int64_t v);

/* A command for `part` with these arguments; *a must stay until the call returns. */
struct mfs_cmd mfs_args_cmd(const struct mfs_args *a, uint32_t part);

#endif
