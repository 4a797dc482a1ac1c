#include "client/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/ino.h"
#include "base/text.h"
#include "client/client.h"
#include "cluster/placement.h"
#include "cluster/table.h"
#include "vfs/vfs.h"

static int put_head(struct mfs_client *c, uint64_t ino, const struct mfs_table *t,
                    struct mfs_buf *out)
{
    struct mfs_attr attr;
    int rc = mfs_vfs_getattr(mfs_client_vfs(c), ino, &attr);

    if (rc < 0)
        return rc;
    return mfs_buf_printf(out,
                          "memefs-layout 4\ndeployment %s\nepoch %llu\nino %llu\nsize %llu\n"
                          "data_end %llu\nstripe_size %u\npartitions %u\nstep %u\n",
                          t->name, (unsigned long long)t->epoch, (unsigned long long)ino,
                          (unsigned long long)attr.size, (unsigned long long)attr.data_end,
                          mfs_ino_stripe_size(ino, t->stripe_size), t->nparts,
                          mfs_placement_step(t->nparts));
}

static int put_chunk(const struct mfs_table *t, uint64_t chunk, struct mfs_buf *out)
{
    uint64_t from = chunk * MEMEFS_LAYOUT_CHUNK, to = from + MEMEFS_LAYOUT_CHUNK;
    int rc = 0;

    if (from >= t->nparts && chunk > 0)
        return -ENODATA;
    for (uint64_t p = from; p < to && p < t->nparts && rc >= 0; p++)
        rc = mfs_buf_printf(out, "p %llu %u %s:%u\n", (unsigned long long)p, t->part[p].node,
                            t->part[p].host, t->part[p].port);
    return rc;
}

ssize_t mfs_client_layout(struct mfs_client *c, uint64_t ino, const char *rest, void *buf,
                          size_t cap)
{
    struct mfs_table *t;
    struct mfs_buf out;
    uint64_t chunk = 0;
    ssize_t n;
    int rc = 0;

    if (*rest != '\0' &&
        (*rest != '.' || mfs_text_u64(rest + 1, &chunk) < 0 || chunk > MFS_PARTITIONS_MAX))
        return -ENODATA;
    t = mfs_client_table(c);
    if (t == NULL)
        return -ENOMEM;
    mfs_buf_init(&out);
    if (chunk == 0)
        rc = put_head(c, ino, t, &out);
    if (rc >= 0)
        rc = put_chunk(t, chunk, &out);
    n = rc < 0 ? rc : (ssize_t)mfs_buf_len(&out);
    if (n >= 0 && cap > 0) {
        if ((size_t)n <= cap)
            memcpy(buf, mfs_buf_data(&out), (size_t)n);
        else
            n = -ERANGE;
    }
    mfs_buf_fini(&out);
    free(t);
    return n;
}
