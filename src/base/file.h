/* Whole files: read with a bound, replaced atomically; directories; random bytes. All block. */
#ifndef MFS_BASE_FILE_H
#define MFS_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

/* Appends the file's content to *out. 0, -EFBIG when it is larger than max, -ENOTSUP when it is a
 * pipe, which would wait, or a negative errno. */
int mfs_file_read(const char *path, size_t max, struct mfs_buf *out);
int mfs_file_read_fd(int fd, size_t max, struct mfs_buf *out); /* from where it is */

/* The same of what an operator has named, who may give a pipe (a FIFO, or /dev/fd/63 of the shell's
 * `<(command)`): for each piece of it some seconds are waited, else -ETIMEDOUT. */
int mfs_file_read_given(const char *path, size_t max, struct mfs_buf *out);

/* Replaces the file by n bytes at p: written beside it, fsync, rename, fsync of the directory; a
 * crash leaves the old or the new content. 0 or a negative errno. */
int mfs_file_write(const char *path, const void *p, size_t n, mode_t mode);

/* The same for a file of that name in an open directory. */
int mfs_file_write_at(int dir, const char *name, const void *p, size_t n, mode_t mode);

/* fsync of a directory, which some file systems do not know. 0 or a negative errno. */
int mfs_file_sync_dir(int dir);

/* As mfs_file_write without fsync: against the death of processes, not of the machine. Does not
 * wait for a disk, which may take long while others write. */
int mfs_file_note(const char *path, const void *p, size_t n, mode_t mode);

/* As mkdir -p; `mode` is for the directories made. 0 or a negative errno. */
int mfs_file_mkdirs(const char *path, mode_t mode);

/* Made absolute, not resolved, without slashes at its end: what is at the path need not exist, or
 * be alive. 0 or a negative errno. */
int mfs_file_absolute(const char *path, char *out, size_t n);

/* Removes a file or a directory with all below; never follows symbolic links, never crosses a
 * mount point (-EBUSY). What is not there counts as removed. 0 or the first negative errno. */
int mfs_file_remove_tree(const char *path);
int mfs_file_remove_tree_at(int dir, const char *name); /* below an open directory */

/* Writes all n bytes. 0 or a negative errno. */
int mfs_file_write_all(int fd, const void *p, size_t n);

/* n random bytes from the kernel. 0 or a negative errno. */
int mfs_random(void *p, size_t n);

/* 2·n random hexadecimal digits and a NUL. 0 or a negative errno; n ≤ 64. */
int mfs_random_hex(char *out, size_t n);

#endif
