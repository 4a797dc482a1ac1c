/* Inside the library: what its parts share. The contract is include/memefs/memefs.h.
 *
 * Each call of the contract is a function that begins with one of the mfs_lib_enter…, does its work
 * with negative errnos, and ends with mfs_lib_end, which notes what memefs_error tells. */
#ifndef MFS_LIB_LIB_H
#define MFS_LIB_LIB_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "args/paths.h"
#include "client/client.h"
#include "client/path.h"
#include "memefs/memefs.h"
#include "vfs/names/access.h"
#include "vfs/vfs.h"

struct memefs {
    struct mfs_client *client;
    struct mfs_vfs *vfs; /* the client's */
    struct mfs_paths paths;
    char *lm, *cm, *label;
    unsigned instance;  /* of this process' connections */
    unsigned forks;     /* of the process, when it was made */
    struct mfs_ids ids; /* with groups of its own */
    struct mfs_cred cred;
    uint32_t flags;
    dev_t dev;                  /* what stat tells: of the deployment's name */
    atomic_uint_fast64_t owner; /* numbers for owners of locks */
    atomic_uint queues;         /* that are there */
    pthread_mutex_t lock;       /* guards what follows; a leaf */
    struct memefs_file *files;
    struct memefs_dir *dirs;
};

struct memefs_file {
    struct memefs *fs;
    struct mfs_file *open; /* NULL: a directory, or opened with O_PATH */
    struct mfs_attr attr;  /* as of the open; of a directory that is gone, what is told of it */
    int flags;             /* as opened */
    uint64_t owner;        /* of its locks */
    pthread_mutex_t lock;  /* guards pos, and is held while a call moves it */
    off_t pos;
    struct memefs_file *prev, *next; /* of fs->files */
};

/* --- calls ----------------------------------------------------------------------------------- */

/* 0, -EINVAL (NULL) or -EBADF (of the process that this one was forked from). */
int mfs_lib_enter(const struct memefs *fs);
int mfs_lib_enter_file(const struct memefs_file *file);

/* Notes an error for memefs_error, if rc is one, and returns rc. `what` is the call, a literal;
 * `path` what it was about (may be NULL): what it led to can't be stale, but is not there. */
int64_t mfs_lib_end(int64_t rc, const char *what, const char *path);
struct mfs_err;
int mfs_lib_end_said(int rc, const struct mfs_err *err); /* with a sentence of its own */

unsigned mfs_lib_forks(void); /* how often this process, or one before it, was forked */
int mfs_lib_instance_get(unsigned *instance); /* the lowest number that no other connection has */
void mfs_lib_instance_put(unsigned instance);
void mfs_lib_quiet(void); /* no log unless memefs_log has asked for one */

/* --- rights ---------------------------------------------------------------------------------- */

/* Credentials for a call that makes something in the directory, or changes the mode of the inode:
 * only members of its group may have set-group-ID bits there. */
struct mfs_cred mfs_lib_cred(const struct memefs *fs, const struct mfs_attr *attr);

/* --- paths ----------------------------------------------------------------------------------- */

/* Where a relative path begins: 0, -ENOTDIR, -EINVAL (of another connection). NULL: the root. */
int mfs_lib_from(struct memefs *fs, struct memefs_file *at, uint64_t *from);

/* What is at the path, by at_flags AT_SYMLINK_NOFOLLOW (or `nofollow`) and AT_EMPTY_PATH. */
int mfs_lib_look(struct memefs *fs, struct memefs_file *at, const char *path, int at_flags,
                 struct mfs_attr *attr);

/* Where a name is to be made, removed or moved; does not look at it. */
int mfs_lib_last(struct memefs *fs, struct memefs_file *at, const char *path,
                 struct mfs_path_last *last);

#define MFS_LIB_TRIES 100 /* in each of which another client has changed what the path leads to */

/* What a call met there was gone when it came to it: as a kernel, let it look again. For `while`;
 * tries begins with 0. */
static inline bool mfs_lib_again(int64_t rc, unsigned *tries)
{
    return rc == -ESTALE && ++*tries < MFS_LIB_TRIES;
}

/* Is the name "." or ".." or none at all? */
bool mfs_lib_is_dots(const struct mfs_path_last *last);

/* --- attributes ------------------------------------------------------------------------------ */

void mfs_lib_stat(const struct memefs *fs, const struct mfs_attr *attr, struct stat *st);
int mfs_lib_attr(struct memefs_file *file, struct mfs_attr *attr); /* as they are now */

/* --- open files ------------------------------------------------------------------------------ */

int mfs_lib_open(struct memefs *fs, struct memefs_file *at, const char *path, int flags,
                 mode_t mode, struct memefs_file **file);
int mfs_lib_close(struct memefs_file *file);
ssize_t mfs_lib_read(struct memefs_file *file, void *buf, size_t len, uint64_t off);

#endif
