#include "base/waits.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

static _Thread_local const struct mfs_waits *told;
static _Thread_local unsigned depth;

void mfs_waits_tell(const struct mfs_waits *w)
{
    assert(depth == 0);
    told = w;
}

void mfs_waits_begin(void)
{
    int err = errno;

    if (told != NULL && depth++ == 0)
        told->begin(told->arg);
    errno = err;
}

void mfs_waits_end(void)
{
    int err = errno;

    if (told != NULL && --depth == 0)
        told->end(told->arg);
    errno = err;
}
