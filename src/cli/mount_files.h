/* The files about a mount, .memefs (fuse/inside/inside.h), for who reads them. */
#ifndef MFS_CLI_MOUNT_FILES_H
#define MFS_CLI_MOUNT_FILES_H

#include <limits.h>

#include "base/buf.h"
#include "base/err.h"

struct mfs_mount_files {
    int dir;              /* open: what is below it can be opened whatever becomes of the root */
    char mount[PATH_MAX]; /* path of the mount */
    char below[PATH_MAX]; /* the path from there on; "." */
};

/* Those of the mount that the path lies in; NULL: of the only mount of MemEFS here. 0, or a
 * negative errno with the sentence; some seconds at most. To be closed when it is 0. */
int mfs_mount_files_open(const char *path, struct mfs_mount_files *f, struct mfs_err *err);
void mfs_mount_files_close(struct mfs_mount_files *f);

/* Appends the whole file. 0 or a negative errno with the sentence. */
int mfs_mount_files_read(const struct mfs_mount_files *f, const char *name, struct mfs_buf *to,
                         struct mfs_err *err);

/* Lines of an open file. */
struct mfs_line_reader {
    int fd;
    struct mfs_buf buf;
};

/* 0 or a negative errno with the sentence. wait: reads wait for lines. */
int mfs_line_reader_open(struct mfs_line_reader *r, const struct mfs_mount_files *f,
                         const char *name, int wait, struct mfs_err *err);
void mfs_line_reader_close(struct mfs_line_reader *r);

/* Calls `each` for every whole line that one read brings, without its newline; stops at the first
 * return that is not 0. 1: there was something; 0: the file's end; -EAGAIN, -EINTR or another
 * -errno; or what `each` has returned. */
int mfs_line_reader_read(struct mfs_line_reader *r, int (*each)(void *arg, char *line, size_t len),
                         void *arg);

#endif
