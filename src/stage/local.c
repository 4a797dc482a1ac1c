/* Files of file systems as sources. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stage/file.h"

static int copy(struct mfs_stage_file *f, struct mfs_stage_range *r, struct mfs_err *err)
{
    (void)f;
    (void)err;
    return mfs_stage_copy_range(r);
}

static int unchanged(struct mfs_stage_file *f)
{
    struct stat st;

    if (fstat(f->from, &st) < 0)
        return -errno;
    return st.st_size == f->st.st_size && st.st_mtim.tv_sec == f->st.st_mtim.tv_sec &&
                   st.st_mtim.tv_nsec == f->st.st_mtim.tv_nsec
               ? 0
               : -ESTALE;
}

static int keep(struct mfs_stage_file *f)
{
    return mfs_stage_keep_fd(f->item->dir, f->from, f->to, &f->st, f->created);
}

static int same(struct mfs_stage_file *f, int there)
{
    posix_fadvise(there, 0, 0, POSIX_FADV_DONTNEED);
    return mfs_stage_same_content(f->from, there, (uint64_t)f->st.st_size);
}

static void mend(struct mfs_stage_file *f, int there)
{
    mfs_stage_keep_owner(f->item->dir, there, &f->st);
}

static void shut(struct mfs_stage_file *f)
{
    if (f->from >= 0)
        close(f->from);
}

/* Writers of one file wait for each other (the kernel's lock of the inode), spinning: two keep both
 * sides at work, more take processor time from the mount. */
#define PIECES 2

static const struct mfs_stage_source local = {PIECES, copy, unchanged, keep,
                                              same,   mend, shut,      true};

void mfs_stage_copy_file(struct mfs_stage_item *i, const struct stat *st)
{
    struct mfs_stage *s = i->dir->stage;
    struct mfs_stage_file *f = calloc(1, sizeof *f);
    int rc = f ? 0 : -ENOMEM;

    if (f) {
        *f = (struct mfs_stage_file){.item = i, .source = &local};
        f->from = openat(i->dir->from, i->from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (f->from < 0 || fstat(f->from, &f->st) < 0)
            rc = -errno;
        else if (!S_ISREG(f->st.st_mode))
            rc = -ESTALE;
    }
    if (rc) {
        mfs_stage_fail(s, i->dir, i->from, false, rc, "%s",
                       rc == -ESTALE ? "changed while it was read" : strerror(-rc));
        if (f)
            shut(f);
        free(f);
        mfs_stage_link_end(i, st, false);
        mfs_stage_item_destroy(i);
        return;
    }
    f->sparse = (uint64_t)f->st.st_blocks * 512 < (uint64_t)f->st.st_size;
    mfs_stage_file_begin(f);
}
