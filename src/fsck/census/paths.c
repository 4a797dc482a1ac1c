/* Paths of what was seen, for people: by first names, from the inode up. */
#include "fsck/census/census.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/placement.h"

#define DEPTH_MAX 256

static int append_up(const struct mfs_census *c, const size_t *steps, size_t n, struct mfs_buf *out)
{
    int rc = 0;

    while (n-- > 0 && !rc) {
        const struct mfs_seen_entry *e = mfs_census_entry(c, steps[n]);

        rc = mfs_buf_append(out, "/", 1);
        if (!rc)
            rc = mfs_buf_append(out, mfs_census_name(c, e->name), e->len);
    }
    return rc;
}

/* The path of a directory, without a slash at its end. */
static int append_path(const struct mfs_census *c, uint64_t ino, struct mfs_buf *out)
{
    size_t steps[DEPTH_MAX], n = 0;
    int rc = 0;

    while (ino != MFS_ROOT_INO && n < DEPTH_MAX) {
        size_t at = mfs_census_first_entry(c, ino);

        if (at >= c->entries.n || mfs_census_entry(c, at)->ino != ino)
            break;
        steps[n++] = at;
        ino = mfs_census_entry(c, at)->dir;
    }
    if (ino != MFS_ROOT_INO)
        rc = mfs_buf_append(out, "...", 3);
    return rc ? rc : append_up(c, steps, n, out);
}

int mfs_census_path(const struct mfs_census *c, uint64_t ino, struct mfs_buf *out)
{
    size_t at = mfs_census_first_entry(c, ino);
    int rc = 0;

    mfs_buf_clear(out);
    if (ino == MFS_ROOT_INO)
        rc = mfs_buf_append(out, "/", 1);
    else if (at < c->entries.n && mfs_census_entry(c, at)->ino == ino)
        rc = append_path(c, ino, out);
    return rc ? rc : mfs_buf_append(out, "", 1);
}

int mfs_census_path_of(const struct mfs_census *c, uint64_t dir, const char *name, size_t len,
                       struct mfs_buf *out)
{
    int rc;

    mfs_buf_clear(out);
    rc = append_path(c, dir, out);
    if (!rc)
        rc = mfs_buf_append(out, "/", 1);
    if (!rc)
        rc = mfs_buf_append(out, name, len);
    return rc ? rc : mfs_buf_append(out, "", 1);
}
