#include "store/args.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void mfs_args_init(struct mfs_args *a, const char *command)
{
    a->n = 0;
    mfs_args_str(a, command);
}

void mfs_args_bin(struct mfs_args *a, const void *p, size_t len)
{
    assert(a->n < MFS_ARGS_MAX);
    a->v[a->n].p = p;
    a->v[a->n].len = len;
    a->n++;
}

void mfs_args_str(struct mfs_args *a, const char *s)
{
    mfs_args_bin(a, s, strlen(s));
}

void mfs_args_int(struct mfs_args *a, int64_t v)
{
    char *num;

    assert(a->n < MFS_ARGS_MAX);
    num = a->num[a->n];
    mfs_args_bin(a, num, (size_t)snprintf(num, MFS_ARGS_NUM_MAX, "%" PRId64, v));
}

struct mfs_cmd mfs_args_cmd(const struct mfs_args *a, uint32_t part)
{
    return (struct mfs_cmd){.part = part, .argc = a->n, .argv = a->v};
}
