/* What a file system does, without FUSE: names, open files, data with write-behind and read-ahead,
 * locks that wait, and the rules between them. Also the library for programs and for tests without
 * a mount (include/memefs/memefs.h is a thin face of it).
 *
 * Every function returns 0, a count, or a negative errno; any thread; blocking unless said
 * otherwise, bounded by the store's I/O timeout. A file is named by its ino (64 bit, never reused).
 * Permission checks of path walks are the caller's (the kernel's); what POSIX wants changed along
 * with an operation (set-group-ID inheritance, ACL inheritance and umask, ctime …) is done here.
 *
 * Consistency (docs/design/architecture.md): nothing that this layer keeps may be seen by a later
 * system call once another mount's call that changed it has returned (meta/coherence/notices.h for
 * content of files that are open all the time). */
#ifndef MFS_VFS_VFS_H
#define MFS_VFS_VFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "meta/attr.h"
#include "meta/meta.h"

struct mfs_view;
struct mfs_vfs;
struct mfs_file; /* an open file */
struct mfs_dirh; /* an open directory */

struct mfs_vfs_opts {
    uint32_t threads;    /* senders, and as many fetchers; 0: 4 */
    size_t write_window; /* bytes, all files, see data/writeback/writeback.h; 0: its default */
    size_t read_window;  /* bytes, all files, see data/readahead/readahead.h; 0: its default */
    size_t contents;     /* bytes of small files; with files and names: see meta/meta.h */
    uint32_t files, names;
    size_t heads; /* bytes of small files that came with their open and are not read yet; 0: 32 MiB
                   */
    bool no_atime, no_diratime;
    bool leases;                 /* of directories, as in meta.h; needs mfs_vfs_on_revoke */
    bool dir_names;              /* likewise: no kernel keeps names of directories */
    struct mfs_metrics *metrics; /* to register figures with; NULL: none */
};

/* Drops pages that the kernel may hold of a file and that are no longer true. Starts it and
 * returns; `done` (may be NULL) is called when it has happened, from another thread or at once.
 * Must not wait for it: the pages may be locked by requests that are only now being served. */
typedef void mfs_vfs_invalidate_fn(void *arg, uint64_t ino, void (*done)(void *done_arg),
                                   void *done_arg);

int mfs_vfs_create(struct mfs_vfs **vfs, struct mfs_store *store, const struct mfs_vfs_opts *opts);

/* Locks that wait get -EINTR, now and from now on. */
void mfs_vfs_stop_waiting(struct mfs_vfs *vfs);

/* Ends waiting locks, flushes what is dirty, frees open files that were not released. No other call
 * may be under way. Takes NULL. */
void mfs_vfs_destroy(struct mfs_vfs *vfs);

/* Before the first open; without it no pages are cached and nothing is invalidated. */
void mfs_vfs_on_invalidate(struct mfs_vfs *vfs, mfs_vfs_invalidate_fn *fn, void *arg);

/* Before the first request, when opts.leases. */
void mfs_vfs_on_revoke(struct mfs_vfs *vfs, mfs_meta_revoked_fn *on_revoke,
                       mfs_meta_distrust_fn *on_distrust, void *arg);
/* Likewise; without it mfs_vfs_may_show says false. */
void mfs_vfs_on_recall(struct mfs_vfs *vfs, mfs_meta_recalled_fn *fn, void *arg);
struct mfs_meta *mfs_vfs_meta(struct mfs_vfs *vfs);
struct mfs_store *mfs_vfs_store(struct mfs_vfs *vfs);

struct mfs_cred {
    uid_t uid;
    gid_t gid;
    mode_t umask;
    bool in_group;          /* of the file (directory) whose group matters here, or may act as if */
    uint32_t drop;          /* MFS_DROP_*: what a file that is emptied by O_TRUNC loses */
    struct mfs_owned owned; /* the owner that an inode has to have to get another ACL */
};

/* The thread (of the kernel's numbers, 0: none) whose request the calling thread serves from now
 * on. */
void mfs_vfs_act_for(uint32_t thread);

/* --- names -------------------------------------------------------------------------------- */
int mfs_vfs_lookup(struct mfs_vfs *vfs, uint64_t parent, const char *name, struct mfs_attr *attr);
bool mfs_vfs_is_leased(struct mfs_vfs *vfs, const struct mfs_attr *attr); /* see meta/meta.h */
int mfs_vfs_mknod(struct mfs_vfs *vfs, uint64_t parent, const char *name, mode_t mode, dev_t rdev,
                  const struct mfs_cred *cred, struct mfs_attr *attr); /* also mkdir: S_IFDIR */
/* Whole files, each with its content, in place of what is under its name: mfs_meta_put
 * (meta/meta.h), MFS_META_PUT_MOST at most. Each one's rc; -EAGAIN: it has to be made in several
 * steps. */
struct mfs_vfs_put {
    uint64_t parent;
    const char *name;
    mode_t mode;
    const void *buf;
    size_t len;                   /* MFS_META_CONTENT at most */
    const struct mfs_attr *exact; /* NULL; or mode and times as they are to be, and owner and group
                                     but for UINT32_MAX, which is as usual */
    bool exclusive;
    /* NULL; or may the caller make names in the directory, of which these are the attributes of
     * now? 0 or a negative errno. */
    int (*permits)(void *arg, const struct mfs_attr *dir);
    void *arg;
    int rc;
};
void mfs_vfs_put(struct mfs_vfs *vfs, struct mfs_vfs_put *puts, size_t n,
                 const struct mfs_cred *cred);
int mfs_vfs_symlink(struct mfs_vfs *vfs, const char *target, uint64_t parent, const char *name,
                    const struct mfs_cred *cred, struct mfs_attr *attr);
int mfs_vfs_link(struct mfs_vfs *vfs, uint64_t ino, uint64_t parent, const char *name,
                 struct mfs_attr *attr);
int mfs_vfs_unlink(struct mfs_vfs *vfs, uint64_t parent, const char *name);
int mfs_vfs_rmdir(struct mfs_vfs *vfs, uint64_t parent, const char *name);
/* *cred is for the inode that RENAME_WHITEOUT leaves. */
int mfs_vfs_rename(struct mfs_vfs *vfs, uint64_t parent, const char *name, uint64_t new_parent,
                   const char *new_name, unsigned flags, const struct mfs_cred *cred);

/* --- inodes ------------------------------------------------------------------------------- */
int mfs_vfs_getattr(struct mfs_vfs *vfs, uint64_t ino, struct mfs_attr *attr);

/* What is known of an open file without asking: its size is that of now, as other mounts tell of
 * changes of the content before they return; of modes, owners and links they do not. False: nothing
 * is known. */
bool mfs_vfs_size(struct mfs_file *file, struct mfs_attr *attr);

/* Has this mount not changed the content since it got these attributes? */
bool mfs_vfs_is_current(struct mfs_vfs *vfs, const struct mfs_attr *attr);

/* May the kernel use the file's attributes for MFS_META_SHOWN without asking, or until they are
 * recalled? Of what this mount changes itself it knows. True: *attr are those of now. */
bool mfs_vfs_may_show(struct mfs_vfs *vfs, struct mfs_attr *attr);
/* Would a read through the kernel's pages now change the access time? It shows in a request only
 * where the kernel may not use attributes. */
bool mfs_vfs_atime_is_due(struct mfs_vfs *vfs, const struct mfs_attr *attr);

/* What is written but not yet committed on this mount, laid over attributes that came from
 * elsewhere (listings). Sizes and times only. */
void mfs_vfs_overlay_attr(struct mfs_vfs *vfs, struct mfs_attr *attr);

/* Where a regular file ends; reads know it from now on. For telling the kernel, which is to be done
 * after its pages are dropped and mfs_vfs_pages_dropped was called, which waits for readers that
 * are about to take bytes from them, 50 ms at most. */
int mfs_vfs_learn_end(struct mfs_vfs *vfs, uint64_t ino, uint64_t *size);
void mfs_vfs_pages_dropped(struct mfs_vfs *vfs, uint64_t ino, uint64_t size);

/* mask: MFS_SET_* and MFS_VFS_SET_SIZE, with this what MFS_DROP_* the file loses. Attributes to set
 * in *attr, the new ones there on return. *owned may be NULL. */
#define MFS_VFS_SET_SIZE 0x100U
int mfs_vfs_setattr(struct mfs_vfs *vfs, uint64_t ino, uint32_t mask, struct mfs_attr *attr,
                    const struct mfs_owned *owned);
int mfs_vfs_readlink(struct mfs_vfs *vfs, uint64_t ino, char *buf, size_t cap);

/* Namespaces user, trusted, security and system.posix_acl_*; others are -EOPNOTSUPP. The list is
 * without trusted.* unless `trusted`. */
ssize_t mfs_vfs_getxattr(struct mfs_vfs *vfs, uint64_t ino, const char *name, void *buf,
                         size_t cap);
ssize_t mfs_vfs_listxattr(struct mfs_vfs *vfs, uint64_t ino, bool trusted, char *buf, size_t cap);
int mfs_vfs_setxattr(struct mfs_vfs *vfs, uint64_t ino, const char *name, const void *value,
                     size_t len, int flags, const struct mfs_cred *cred);
int mfs_vfs_removexattr(struct mfs_vfs *vfs, uint64_t ino, const char *name,
                        const struct mfs_owned *owned); /* may be NULL */
int mfs_vfs_statfs(struct mfs_vfs *vfs, struct mfs_meta_space *space);

/* --- open files --------------------------------------------------------------------------- */
/* flags as open(2): access mode, O_TRUNC (with O_RDONLY, too; the file loses its privileges, and
 * set-user-ID unless MFS_VFS_MAY_KEEP is among them), O_APPEND, O_EXCL, O_DIRECT.
 * *keep_cache: pages that the kernel holds from an earlier open on this mount are still true.
 * To create is -ESTALE where the name is there by now and the kernel has to decide. */
#define MFS_VFS_MAY_KEEP (1 << 30) /* no flag of open(2) */
int mfs_vfs_create_open(struct mfs_vfs *vfs, uint64_t parent, const char *name, mode_t mode,
                        int flags, const struct mfs_cred *cred, struct mfs_attr *attr,
                        struct mfs_file **file, bool *keep_cache);
/* As mfs_meta_tmpfile: `name` may be NULL. */
int mfs_vfs_tmpfile(struct mfs_vfs *vfs, uint64_t parent, const char *name, mode_t mode, int flags,
                    const struct mfs_cred *cred, struct mfs_attr *attr, struct mfs_file **file,
                    bool *keep_cache);
int mfs_vfs_open(struct mfs_vfs *vfs, uint64_t ino, int flags, struct mfs_file **file,
                 bool *keep_cache);

/* What mfs_vfs_tmpfile has made has a name by now: its close need not be waited for. */
void mfs_vfs_has_name(struct mfs_file *file);
/* The directory that mfs_vfs_tmpfile was called for, and by whom; 0: the file was opened otherwise.
 */
uint64_t mfs_vfs_made_in(const struct mfs_file *file, uid_t *uid, gid_t *gid);
bool mfs_vfs_has_created(const struct mfs_file *file); /* or had another made the file? */
uint64_t mfs_file_ino(const struct mfs_file *file);

/* `direct`: not for the kernel's pages, so that the kernel does not bound the read by a size: it is
 * asked for when the read passes what is known; otherwise only when it does so by a page or more.
 * With a view (data/readahead/readahead.h; {0}, to be released by the caller when n > 0) only that
 * tells where the bytes are: large files are not copied to buf for it. */
ssize_t mfs_vfs_read(struct mfs_file *file, void *buf, size_t len, uint64_t off, bool direct,
                     struct mfs_view *view);

/* flags: O_APPEND ignores off; O_DSYNC (a part of O_SYNC): see below. how: MFS_DROP_* that the file
 * loses; MFS_VFS_THROUGH: stored and committed before return (mmap's pages). */
#define MFS_VFS_THROUGH 1U
ssize_t mfs_vfs_write(struct mfs_file *file, const void *buf, size_t len, uint64_t off, int flags,
                      uint32_t how);
/* The same; after an append *at, where the caller believes the end to be, is where the bytes went.
 */
ssize_t mfs_vfs_write_to(struct mfs_file *file, const void *buf, size_t len, uint64_t *at,
                         int flags, uint32_t how);

/* A direct write, which bypassed the kernel's pages, has taken so many bytes. True: pages in *drop
 * may have been read before that, and have to be dropped before it is answered
 * (vfs/content/fills.h); afterwards mfs_vfs_direct_dropped is called. */
bool mfs_vfs_direct_written(struct mfs_file *file, uint64_t off, size_t len,
                            struct mfs_range *drop);
void mfs_vfs_direct_dropped(struct mfs_file *file);

/* Likewise a cached write, through the pages, which came at mono time `since`; but it may be
 * answered before, and nothing is to be called. */
bool mfs_vfs_cached_written(struct mfs_file *file, uint64_t off, size_t len, int64_t since,
                            struct mfs_range *drop);

/* The kernel is about to drop pages of the file, or has just dropped them; or will, when it gets
 * the reply to this open. */
void mfs_vfs_pages_invalidated(struct mfs_vfs *vfs, uint64_t ino);
void mfs_vfs_open_invalidates(struct mfs_file *file);

/* To be said before the first use of a file of which the kernel keeps no pages: it will not ask for
 * an fsync after a write with O_DSYNC, so that the write does it. */
void mfs_vfs_bypasses(struct mfs_file *file);

/* Its release is not to count as one of a file that goes after so many readings: it was not opened
 * for a program, or not read. */
void mfs_vfs_does_not_count(struct mfs_file *file);

/* close(2): data out, fcntl locks of the owner gone, those of the open file about to go. */
int mfs_vfs_flush(struct mfs_file *file, uint64_t lock_owner);
int mfs_vfs_fsync(struct mfs_file *file);
void mfs_vfs_release(struct mfs_file *file); /* last close */
int mfs_vfs_fallocate(struct mfs_file *file, int mode, uint64_t off, uint64_t len, uint32_t drop);
int64_t mfs_vfs_lseek(struct mfs_file *file, uint64_t off, int whence); /* SEEK_DATA, SEEK_HOLE */

/* Copies at most MFS_VFS_COPY_MAX bytes, so that a caller can be interrupted between calls. */
#define MFS_VFS_COPY_MAX (16U << 20)
ssize_t mfs_vfs_copy_range(struct mfs_file *in, uint64_t off_in, struct mfs_file *out,
                           uint64_t off_out, size_t len, uint32_t drop);

/* The file was read without our being asked (from the kernel's pages): atime, relatime-like. */
void mfs_vfs_accessed(struct mfs_file *file);

/* --- open directories ---------------------------------------------------------------------- */
int mfs_vfs_opendir(struct mfs_vfs *vfs, uint64_t ino, int flags, struct mfs_dirh **dir);
void mfs_vfs_releasedir(struct mfs_dirh *dir);

/* Calls fn for the entries from cookie on until it returns false. A cookie of 0 takes a new listing
 * (rewinddir); a cookie that fn saw resumes behind that entry. With `plus` *attr is filled in
 * where the kernel may use it and the name for MFS_META_SHOWN (else NULL), if it takes it before it
 * asks for more or releases the directory. fn may not call back into this directory. */
typedef bool mfs_vfs_dirent_fn(void *arg, const struct mfs_dirent *entry,
                               const struct mfs_attr *attr, uint64_t cookie);
int mfs_vfs_readdir(struct mfs_dirh *dir, uint64_t cookie, bool plus, mfs_vfs_dirent_fn *fn,
                    void *arg);

/* --- locks -------------------------------------------------------------------------------- */
int mfs_vfs_getlk(struct mfs_file *file, struct mfs_lock *lock);

/* Called exactly once, from another thread, with 0, -EINTR (cancelled) or another -errno. */
typedef void mfs_vfs_lock_fn(void *arg, int rc);

/* Takes or gives back a lock without waiting for its holder: 0, -EAGAIN, …; or -EINPROGRESS: it is
 * taken, but pages have to be dropped first, and `done` will tell. -EBUSY: refused, but the holder
 * of the lock in conflict has just closed a descriptor of its file. The kernel tells of the end of
 * an open file, and so of its locks of flock(2) and F_OFD_SETLK, only after close(2) has returned;
 * so even a caller that does not want to wait has to, for MFS_VFS_LOCK_CLOSING at most, to see what
 * was closed as closed. flock: whole-file locks of flock(2), only type and owner count. */
#define MFS_VFS_LOCK_CLOSING MFS_META_CLOSING
int mfs_vfs_setlk(struct mfs_file *file, const struct mfs_lock *lock, bool flock,
                  mfs_vfs_lock_fn *done, void *arg);

/* Waiting for a lock costs no thread of the caller. ns < 0: for ever, else for at most `ns` and
 * only while it is for holders that have just closed (-EBUSY, above); then -EAGAIN. create, then
 * start (0: `done` will be called, and then the waiter frees itself; else not: destroy it); cancel
 * may be called from create until then, from any thread. The file must stay open until then. */
struct mfs_lock_waiter;
struct mfs_lock_waiter *mfs_lock_waiter_create(struct mfs_file *file, const struct mfs_lock *lock,
                                               bool flock, int64_t ns, mfs_vfs_lock_fn *done,
                                               void *arg);
int mfs_lock_waiter_start(struct mfs_lock_waiter *waiter);
void mfs_lock_waiter_destroy(struct mfs_lock_waiter *waiter); /* one that has not been started */
void mfs_lock_waiter_cancel(struct mfs_lock_waiter *waiter);
/* Who has the lock that it waits for, as of its last try. From create until `done` returns, by any
 * thread. */
struct mfs_lock_holder mfs_lock_waiter_holder(struct mfs_lock_waiter *waiter);

#endif
