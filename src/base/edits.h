/* What makes one long text of another that differs in few lines. */
#ifndef MFS_BASE_EDITS_H
#define MFS_BASE_EDITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* At `at`, `cut` bytes make place for `text`. Those of a list are made one after the other: each is
 * of the text that the one before has left. */
struct mfs_edit {
    uint64_t at, cut;
    char *text; /* "" or NULL: nothing */
};

/* *list: what makes `to` of `from`, the caller's to free (mfs_edits_free). Neither has a NUL. *n is
 * their number. 0 or -ENOMEM. */
int mfs_edits_make(const struct mfs_buf *from, const struct mfs_buf *to, struct mfs_edit **list,
                   uint32_t *n);

/* 0, -ENOMEM, or -EINVAL: one lies outside of the text, which is spoiled then. */
int mfs_edits_apply(struct mfs_buf *text, const struct mfs_edit *list, uint32_t n);

/* Bytes that they bring. */
size_t mfs_edits_size(const struct mfs_edit *list, uint32_t n);

void mfs_edits_free(struct mfs_edit *list, uint32_t n); /* takes NULL */

#endif
