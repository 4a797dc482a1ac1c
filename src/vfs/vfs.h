/* What a file system does, without FUSE: names, open files, data with write-behind and read-ahead,
 * locks that wait, and the rules between them. Also the library for programs and for tests without a
 * mount (include/memefs/memefs.h is a thin face of it).
 *
 * Every function returns 0, a count, or a negative errno; any thread; blocking unless said
 * otherwise, bounded by the store's I/O timeout. A file is named by its ino (64 bit, never reused).
 * Permission checks of path walks are the caller's (the kernel's); what POSIX wants changed along
 * with an operation (set-group-ID inheritance, ACL inheritance and umask, ctime …) is done here.
 *
 * Consistency (docs/ARCHITECTURE.md): nothing that this layer keeps may be seen by a later system
 * call once another mount's call that changed it has returned, other than content of a file that
 * was open all the time. */
#ifndef MFS_VFS_VFS_H
#define MFS_VFS_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "meta/attr.h"
#include "meta/meta.h"

struct mfs_vfs;
struct mfs_file;   /* an open file */
struct mfs_dirh;   /* an open directory */

struct mfs_vfs_opts {
    uint32_t threads;       /* senders, and as many fetchers */
    size_t write_window;    /* bytes, see data/writeback.h */
    size_t read_window;     /* bytes, see data/readahead.h */
    bool strict_atime, no_atime;
};

/* Called when pages that the kernel may hold of a file are no longer true. Never from a thread that
 * serves a request of that file… see fuse/notify.c. */
typedef void mfs_vfs_invalidate_fn(void *arg, uint64_t ino);

int mfs_vfs_create(struct mfs_vfs **vfs, struct mfs_store *store, const struct mfs_vfs_opts *opts);
void mfs_vfs_destroy(struct mfs_vfs *vfs); /* flushes what is dirty */
void mfs_vfs_on_invalidate(struct mfs_vfs *vfs, mfs_vfs_invalidate_fn *fn, void *arg);
struct mfs_meta *mfs_vfs_meta(struct mfs_vfs *vfs);

struct mfs_cred {
    uid_t uid;
    gid_t gid;
    mode_t umask;
    bool in_group; /* of a file whose group is asked about; set by callers that know */
};

/* --- names -------------------------------------------------------------------------------- */
int mfs_vfs_lookup(struct mfs_vfs *vfs, uint64_t parent, const char *name, struct mfs_attr *attr);
int mfs_vfs_mknod(struct mfs_vfs *vfs, uint64_t parent, const char *name, mode_t mode, dev_t rdev,
                  const struct mfs_cred *cred, struct mfs_attr *attr); /* also mkdir: S_IFDIR */
int mfs_vfs_symlink(struct mfs_vfs *vfs, const char *target, uint64_t parent, const char *name,
                    const struct mfs_cred *cred, struct mfs_attr *attr);
int mfs_vfs_link(struct mfs_vfs *vfs, uint64_t ino, uint64_t parent, const char *name,
                 struct mfs_attr *attr);
int mfs_vfs_unlink(struct mfs_vfs *vfs, uint64_t parent, const char *name);
int mfs_vfs_rmdir(struct mfs_vfs *vfs, uint64_t parent, const char *name);
int mfs_vfs_rename(struct mfs_vfs *vfs, uint64_t parent, const char *name, uint64_t new_parent,
                   const char *new_name, unsigned flags);

/* --- inodes ------------------------------------------------------------------------------- */
int mfs_vfs_getattr(struct mfs_vfs *vfs, uint64_t ino, struct mfs_attr *attr);

/* mask: MFS_SET_* and MFS_VFS_SET_SIZE. Attributes to set in *attr, the new ones there on return. */
#define MFS_VFS_SET_SIZE 0x100U
int mfs_vfs_setattr(struct mfs_vfs *vfs, uint64_t ino, uint32_t mask, struct mfs_attr *attr);
int mfs_vfs_readlink(struct mfs_vfs *vfs, uint64_t ino, char *buf, size_t cap);
ssize_t mfs_vfs_getxattr(struct mfs_vfs *vfs, uint64_t ino, const char *name, void *buf, size_t cap);
ssize_t mfs_vfs_listxattr(struct mfs_vfs *vfs, uint64_t ino, char *buf, size_t cap);
int mfs_vfs_setxattr(struct mfs_vfs *vfs, uint64_t ino, const char *name, const void *value,
                     size_t len, int flags, const struct mfs_cred *cred);
int mfs_vfs_removexattr(struct mfs_vfs *vfs, uint64_t ino, const char *name);
int mfs_vfs_statfs(struct mfs_vfs *vfs, struct mfs_meta_space *space);

/* --- open files --------------------------------------------------------------------------- */
/* flags as open(2): access mode, O_TRUNC, O_APPEND, O_EXCL, O_DIRECT. *keep_cache: pages that the
 * kernel holds from an earlier open on this mount are still true. */
int mfs_vfs_create_open(struct mfs_vfs *vfs, uint64_t parent, const char *name, mode_t mode,
                        int flags, const struct mfs_cred *cred, struct mfs_attr *attr,
                        struct mfs_file **file);
int mfs_vfs_open(struct mfs_vfs *vfs, uint64_t ino, int flags, struct mfs_file **file,
                 bool *keep_cache);
ssize_t mfs_vfs_read(struct mfs_file *file, void *buf, size_t len, uint64_t off);

/* flags: O_APPEND ignores off. `through`: stored and committed before return (mmap's pages). */
ssize_t mfs_vfs_write(struct mfs_file *file, const void *buf, size_t len, uint64_t off, int flags,
                      bool through);
int mfs_vfs_flush(struct mfs_file *file, uint64_t lock_owner); /* close(2): data out, locks gone */
int mfs_vfs_fsync(struct mfs_file *file);
void mfs_vfs_release(struct mfs_file *file, bool flock_held, uint64_t lock_owner); /* last close */
int mfs_vfs_fallocate(struct mfs_file *file, int mode, uint64_t off, uint64_t len);
int64_t mfs_vfs_lseek(struct mfs_file *file, uint64_t off, int whence); /* SEEK_DATA, SEEK_HOLE */
ssize_t mfs_vfs_copy_range(struct mfs_file *in, uint64_t off_in, struct mfs_file *out,
                           uint64_t off_out, size_t len);

/* --- open directories ---------------------------------------------------------------------- */
int mfs_vfs_opendir(struct mfs_vfs *vfs, uint64_t ino, struct mfs_dirh **dir);
void mfs_vfs_releasedir(struct mfs_dirh *dir);

/* Calls fn for the entries from cookie on until it returns false. A cookie of 0 takes a new listing
 * (rewinddir); a cookie that fn saw resumes behind that entry. With `plus` *attr is filled in
 * (NULL: unknown, e.g. removed meanwhile). fn is called with no lock held. */
typedef bool mfs_vfs_dirent_fn(void *arg, const struct mfs_dirent *entry,
                               const struct mfs_attr *attr, uint64_t cookie);
int mfs_vfs_readdir(struct mfs_dirh *dir, uint64_t cookie, bool plus, mfs_vfs_dirent_fn *fn,
                    void *arg);

/* --- locks -------------------------------------------------------------------------------- */
int mfs_vfs_getlk(struct mfs_file *file, struct mfs_lock *lock);

/* Ends at once with 0, -EAGAIN, … or, with `wait`, calls done later from another thread, exactly
 * once, with 0, -EINTR (cancelled) or -errno; then the return value is -EINPROGRESS and *waiter
 * names it for cancelling. flock: whole-file locks of flock(2), only type and owner count. */
struct mfs_lock_waiter;
typedef void mfs_vfs_lock_fn(void *arg, int rc);
int mfs_vfs_setlk(struct mfs_file *file, const struct mfs_lock *lock, bool flock, bool wait,
                  mfs_vfs_lock_fn *done, void *arg, struct mfs_lock_waiter **waiter);
void mfs_vfs_lock_cancel(struct mfs_vfs *vfs, struct mfs_lock_waiter *waiter);

#endif
