/* Whole objects: what single and many calls, and queues, share. */
#ifndef MFS_LIB_OBJECTS_H
#define MFS_LIB_OBJECTS_H

#include "lib/lib.h"

/* Where a path's last name is; remembered from one path to the next, as objects are often
 * neighbours.
 */
struct mfs_lib_where {
    struct mfs_path_last last;
    char *prefix; /* of the path, up to the name; heap, NULL: none yet */
    size_t len;
    bool searched; /* the directory may be searched */
};

/* Finds it. *name points into the path, or into last. 0 or -errno. */
int mfs_lib_where(struct memefs *fs, struct mfs_lib_where *w, const char *path, const char **name);
void mfs_lib_where_fini(struct mfs_lib_where *w);

/* May a file be put under the name? 0 or -errno. */
int mfs_lib_may_put(struct memefs *fs, const struct mfs_path_last *last, const char *name);

/* Copies what is known of the object, without asking if it was learned just before
 * (mfs_meta_learn_names). 1: done, *size; 0: it has to be opened; or -errno. *alloc, if alloc is
 * not NULL: the bytes in a buffer of their own. */
int mfs_lib_get_known(struct memefs *fs, uint64_t dir, const char *name, void *buf, size_t cap,
                      void **alloc, int64_t *size);

/* The same of what is known of it otherwise: its attributes and the first `stored` bytes of its
 * content, the others are zeros; asked for after `mark` (mfs_meta_read_mark). */
int mfs_lib_get_told(struct memefs *fs, uint64_t mark, const struct mfs_name *name,
                     const struct mfs_attr *attr, const void *content, size_t stored, void *buf,
                     size_t cap, void **alloc, int64_t *size);

/* Opens it and reads. The size or -errno. */
int64_t mfs_lib_get_open(struct memefs *fs, const char *path, void *buf, size_t cap, void **alloc);

/* Makes the directories of the path that are not there. */
int mfs_lib_make_parent(struct memefs *fs, const char *path);

int mfs_lib_put(struct memefs *fs, const char *path, const void *buf, size_t len, unsigned flags);
int64_t mfs_lib_get(struct memefs *fs, const char *path, void *buf, size_t cap, void **alloc);

#endif
