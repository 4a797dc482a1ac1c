/* MemEFS, for programs: the client of a deployment as a library (libmemefs, link with
 * `pkg-config --cflags --libs memefs`), without a mount; and, at the end, what a program that uses
 * a mount may want to know of it. docs/how-to/use-from-a-program.md and libmemefs(3) introduce it.
 *
 * Consistency. A connection is one more client beside the mounts, and promises what a mount does:
 * when memefs_close or memefs_fsync has returned, every later open, stat or read by any client sees
 * all of it; names, attributes, locks and what memefs_put has made are
 * seen at once. A write that is
 * neither synced nor closed may be in this process only.
 *
 * Errors. Calls return 0, a count or an offset, or a negative errno, as Linux would give it for the
 * system call of that name; errno itself is not touched. memefs_error() has the last one in words.
 * Beyond those of the system calls there are, from any call: -EBADF (a connection of the process
 * that this one was forked from), -EIO, -ETIMEDOUT (a partition does not answer), -ENOMEM; and
 * -EINVAL where an argument is NULL that may not be.
 *
 * Threads. Any thread may make any call at any time, also on one file; but nothing may be under way
 * on what is destroyed (disconnect, close, closedir,
 * queue_destroy). Calls block for round trips,
 * bounded by io_timeout (locks that wait: by their own limit). No call is a cancellation point nor
 * async-signal-safe; the library installs no signal handler, its threads block all signals, SIGPIPE
 * is never raised. A call goes on when a signal comes.
 *
 * fork(2). The child may not use connections of its parent: each call says -EBADF there, and
 * memefs_disconnect, memefs_close and the like only free nothing. It may make its own.
 *
 * Ownership. Strings and buffers belong to the caller and are not used after the call (but those of
 * a queue's requests: until they are reaped). What a call
 * allocates for the caller says so, and is freed by memefs_free. Pointers that a call fills in are
 * set to NULL when it fails.
 *
 * Paths begin at the root of the file system, with or without a "/" before them ("/a" is at
 * MOUNT/a), also those in symbolic links. Rights are checked as a mount's kernel does, by mode and
 * ACL, for the ids of the connection. A program that can read the deployment's secret can take any
 * ids: the check keeps honest programs from mistakes, the secret's mode is what keeps others out.
 *
 * A process that changes its own ids later must be able to reach the partitions all the same: new
 * channels are opened when they are needed, by sockets in the state directory, which only its owner
 * may search. A daemon that gives up its rights connects afterwards; else its calls fail with -EIO.
 *
 * Units: bytes; times of struct timespec as usual; _ms are milliseconds.
 *
 * The ABI only grows: structs that may grow begin with their own size, set by their _INIT; the
 * others (memefs_ids, memefs_lock) stay as they are. */
#ifndef MEMEFS_MEMEFS_H
#define MEMEFS_MEMEFS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A program of 32 bits defines _FILE_OFFSET_BITS=64. */
typedef char memefs_off_t_has_64_bits[sizeof(off_t) == 8 ? 1 : -1];

/* --- connections --------------------------------------------------------------------------- */

struct memefs;       /* a connection to a deployment */
struct memefs_file;  /* an open file or directory, with a position */
struct memefs_dir;   /* a listing of a directory */
struct memefs_queue; /* of asynchronous requests */

/* On whose behalf. */
struct memefs_ids {
    uint32_t uid, gid;
    const uint32_t *groups; /* further ones */
    size_t ngroups;
};

#define MEMEFS_UMASK_OF_PROCESS UINT32_MAX

struct memefs_options {
    size_t size;            /* of this struct: MEMEFS_OPTIONS_INIT */
    const char *deployment; /* its name; NULL: "memefs" */
    const char *state_dir;  /* where it keeps its state on this machine; NULL: its default place */
    const char *lm;         /* the socket of a Local Manager; NULL: that of the first node here */
    const char *cm;         /* "HOST:PORT" of the Central Manager, instead of an lm */
    const char *secret;     /* path of the file with the secret; NULL: that in the state directory.
                             * With cm and secret no state directory is needed */
    const char *label;      /* what cm clients calls it, no path; NULL, "": the program's name */
    const struct memefs_ids *ids; /* NULL: the process' effective ones, as they are now */
    uint32_t umask;               /* MEMEFS_UMASK_OF_PROCESS: as it is now */
    uint32_t flags;               /* MEMEFS_NO_ATIME … */
    uint32_t threads;             /* that send, and as many that fetch, ≤ 256; 0: 4 */
    uint32_t connect_ms;          /* most that connect waits for the deployment; 0: 10,000 */
    uint32_t io_ms;               /* most that a partition may take to answer; 0: 30,000 */
    uint32_t full_ms;      /* a writer waits so long for memory while nodes may come; 0: not */
    uint64_t write_window; /* bytes written that may wait to be sent; 0: 64 MiB */
    uint64_t read_window;  /* bytes read ahead; 0: 64 MiB */
    uint64_t contents;     /* bytes of small files that are kept; 0: 32 MiB */
    uint32_t files, names; /* that are kept with their attributes; 0: 65,536 and 262,144 */
};
#define MEMEFS_OPTIONS_INIT                                                                        \
    {                                                                                              \
        .size = sizeof(struct memefs_options), .umask = MEMEFS_UMASK_OF_PROCESS                    \
    }
#define MEMEFS_NO_ATIME 1U /* reads leave access times as they are */

/* Blocks until the deployment has told where its partitions are. options: NULL: all defaults.
 * -ECONNREFUSED, -ENOENT, -EACCES, -ETIMEDOUT …, which memefs_error() explains. */
int memefs_connect(const struct memefs_options *options, struct memefs **fs);

/* What is written goes out; files and directories that are still open are closed and may not be
 * used any more; locks are given back. 0, or the first error of what could not be written; the
 * connection is gone in any case, but for -EBUSY: there is a queue of it. NULL is fine.
 * Blocks until all is written, but, however many files are open, for no longer than io_ms after a
 * partition last answered, or 5 s where the deployment has been stopped. */
int memefs_disconnect(struct memefs *fs);

/* The calling thread's last error of this library, "open: /a/b: Permission denied"; "" if there was
 * none. Good until the thread's next call of the library. */
const char *memefs_error(void);

/* Frees what a call has allocated for its caller; NULL is fine. */
void memefs_free(void *p);

const char *memefs_version(void); /* of the library that runs: "0.1.0" */

/* Where lines about what is going on go, of all connections of the process: level "error", "warn",
 * "info" or "debug" (NULL: none are written, as in the beginning), path of a file to append to,
 * NULL: stderr. Lines are as in the clients' logs. */
int memefs_log(const char *level, const char *path);

/* --- names ---------------------------------------------------------------------------------
 * The …at calls take a directory that is open (by memefs_open with O_DIRECTORY), where relative
 * paths begin; NULL: at the root. at_flags: AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH (an empty path is
 * the open file itself) and what the system call of that name knows. */
int memefs_stat(struct memefs *fs, const char *path, struct stat *st);
int memefs_lstat(struct memefs *fs, const char *path, struct stat *st);
int memefs_fstatat(struct memefs *fs, struct memefs_file *at, const char *path, struct stat *st,
                   int at_flags);
int memefs_access(struct memefs *fs, const char *path, int mode); /* for the connection's ids */
int memefs_faccessat(struct memefs *fs, struct memefs_file *at, const char *path, int mode,
                     int at_flags);
int memefs_chmod(struct memefs *fs, const char *path, mode_t mode);
int memefs_fchmodat(struct memefs *fs, struct memefs_file *at, const char *path, mode_t mode,
                    int at_flags);
int memefs_chown(struct memefs *fs, const char *path, uid_t uid, gid_t gid); /* −1: as it is */
int memefs_lchown(struct memefs *fs, const char *path, uid_t uid, gid_t gid);
int memefs_fchownat(struct memefs *fs, struct memefs_file *at, const char *path, uid_t uid,
                    gid_t gid, int at_flags);
/* times[0]: access, [1]: modification; UTIME_NOW, UTIME_OMIT; NULL: both now. */
int memefs_utimens(struct memefs *fs, const char *path, const struct timespec times[2]);
int memefs_utimensat(struct memefs *fs, struct memefs_file *at, const char *path,
                     const struct timespec times[2], int at_flags);
int memefs_truncate(struct memefs *fs, const char *path, off_t size);

int memefs_mkdir(struct memefs *fs, const char *path, mode_t mode);
int memefs_mkdirat(struct memefs *fs, struct memefs_file *at, const char *path, mode_t mode);
int memefs_makedirs(struct memefs *fs, const char *path, mode_t mode); /* with its parents; 0 also
                                                                        * when it is there */
int memefs_mknod(struct memefs *fs, const char *path, mode_t mode, dev_t dev);
int memefs_mknodat(struct memefs *fs, struct memefs_file *at, const char *path, mode_t mode,
                   dev_t dev);
int memefs_symlink(struct memefs *fs, const char *target, const char *path);
int memefs_symlinkat(struct memefs *fs, const char *target, struct memefs_file *at,
                     const char *path);
int memefs_link(struct memefs *fs, const char *from, const char *to); /* symlinks: not followed */
int memefs_linkat(struct memefs *fs, struct memefs_file *from_at, const char *from,
                  struct memefs_file *to_at, const char *to, int at_flags); /* AT_SYMLINK_FOLLOW,
                                                                             * AT_EMPTY_PATH */
int memefs_unlink(struct memefs *fs, const char *path);
int memefs_rmdir(struct memefs *fs, const char *path);
int memefs_unlinkat(struct memefs *fs, struct memefs_file *at, const char *path,
                    int at_flags); /* AT_REMOVEDIR */
/* flags: RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT of renameat2(2). */
int memefs_rename(struct memefs *fs, const char *from, const char *to, unsigned flags);
int memefs_renameat(struct memefs *fs, struct memefs_file *from_at, const char *from,
                    struct memefs_file *to_at, const char *to, unsigned flags);

/* The target's length, of which at most size bytes are put in buf, without a NUL (all of it is, if
 * the result is not more than size). */
ssize_t memefs_readlink(struct memefs *fs, const char *path, char *buf, size_t size);
ssize_t memefs_readlinkat(struct memefs *fs, struct memefs_file *at, const char *path, char *buf,
                          size_t size);

int memefs_statfs(struct memefs *fs, struct statvfs *st); /* at most 1 s old */

/* Extended attributes and ACLs: user.*, trusted.* and security.* (for uid 0),
 * system.posix_acl_access and _default (in Linux' format), and MEMEFS_XATTR_LAYOUT below. The
 * length of the value (of the names, each with its NUL); size 0: only that; -ERANGE, -ENODATA. */
ssize_t memefs_getxattr(struct memefs *fs, const char *path, const char *name, void *value,
                        size_t size);
ssize_t memefs_getxattrat(struct memefs *fs, struct memefs_file *at, const char *path,
                          const char *name, void *value, size_t size, int at_flags);
int memefs_setxattr(struct memefs *fs, const char *path, const char *name, const void *value,
                    size_t size, int flags); /* XATTR_CREATE, XATTR_REPLACE */
int memefs_setxattrat(struct memefs *fs, struct memefs_file *at, const char *path, const char *name,
                      const void *value, size_t size, int flags, int at_flags);
ssize_t memefs_listxattr(struct memefs *fs, const char *path, char *names, size_t size);
ssize_t memefs_listxattrat(struct memefs *fs, struct memefs_file *at, const char *path, char *names,
                           size_t size, int at_flags);
int memefs_removexattr(struct memefs *fs, const char *path, const char *name);
int memefs_removexattrat(struct memefs *fs, struct memefs_file *at, const char *path,
                         const char *name, int at_flags);

/* --- directories --------------------------------------------------------------------------- */

/* An entry; lives until the next call for this listing. */
struct memefs_dirent {
    size_t size;      /* of what follows that is filled in: the library's sizeof */
    const char *name; /* with its NUL */
    uint64_t ino;
    uint32_t type;   /* S_IFMT bits of st_mode */
    int32_t stat_rc; /* 0: st is filled in; else why not (-ENOENT: it is gone by now) */
    struct stat st;  /* with MEMEFS_DIR_STAT only; not followed when a symbolic link */
    int64_t cookie;  /* for memefs_seekdir: the entry behind this one is next */
};
#define MEMEFS_DIR_STAT 1U /* attributes, too: a few round trips for all entries together */

/* Takes a listing: names that are there all the time are in it exactly once; with "." and "..". */
int memefs_opendir(struct memefs *fs, const char *path, unsigned flags, struct memefs_dir **dir);
int memefs_opendirat(struct memefs *fs, struct memefs_file *at, const char *path, unsigned flags,
                     int at_flags, struct memefs_dir **dir);
/* 1: there is one more, *entry points to it; 0: the end. One thread at a time. */
int memefs_readdir(struct memefs_dir *dir, const struct memefs_dirent **entry);
int memefs_seekdir(struct memefs_dir *dir, int64_t cookie); /* 0: a new listing, from its begin */
int memefs_closedir(struct memefs_dir *dir);                /* NULL is fine */

/* --- open files ---------------------------------------------------------------------------- */

/* flags and mode as open(2): O_RDONLY …, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY,
 * O_NOFOLLOW, O_TMPFILE, O_SYNC, O_DSYNC, O_NOATIME, O_PATH; others are ignored. Fifos, sockets and
 * devices can be opened with O_PATH only, else -EOPNOTSUPP. */
int memefs_open(struct memefs *fs, const char *path, int flags, mode_t mode,
                struct memefs_file **file);
int memefs_openat(struct memefs *fs, struct memefs_file *at, const char *path, int flags,
                  mode_t mode, struct memefs_file **file);

/* Stores what was written; 0, or the first error since the last fsync of this file. The file is
 * closed and its locks are given back in any case. NULL is fine. */
int memefs_close(struct memefs_file *file);

/* As the system calls: fewer bytes only at the end of the file (read), or if the rest failed, which
 * the next call tells. Those without p use and move the file's position, one call at a time. */
ssize_t memefs_read(struct memefs_file *file, void *buf, size_t len);
ssize_t memefs_readv(struct memefs_file *file, const struct iovec *iov, int n);
ssize_t memefs_pread(struct memefs_file *file, void *buf, size_t len, off_t off);
ssize_t memefs_preadv(struct memefs_file *file, const struct iovec *iov, int n, off_t off);
ssize_t memefs_write(struct memefs_file *file, const void *buf, size_t len);
ssize_t memefs_writev(struct memefs_file *file, const struct iovec *iov, int n);
ssize_t memefs_pwrite(struct memefs_file *file, const void *buf, size_t len, off_t off);
ssize_t memefs_pwritev(struct memefs_file *file, const struct iovec *iov, int n, off_t off);
/* SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE; the new position. */
int64_t memefs_lseek(struct memefs_file *file, off_t off, int whence);

int memefs_fsync(struct memefs_file *file);     /* other clients see it then */
int memefs_fdatasync(struct memefs_file *file); /* the same */
int memefs_fstat(struct memefs_file *file, struct stat *st);
int memefs_ftruncate(struct memefs_file *file, off_t size);
int memefs_fallocate(struct memefs_file *file, int mode, off_t off, off_t len);
/* *off_in, *off_out: where to begin, moved by what was copied; NULL: the file's position. */
ssize_t memefs_copy_file_range(struct memefs_file *in, off_t *off_in, struct memefs_file *out,
                               off_t *off_out, size_t len, unsigned flags);

/* Locks, across all clients. Each open file is an owner (as of F_OFD_SETLK); they end with
 * memefs_close, memefs_disconnect, or, if the process dies, some 20 s later at the latest.
 * Directories have none: -EBADF.
 * wait_ms: -EAGAIN when it is not to be had by then; 0: at once; −1: for ever (-EDEADLK: it would
 * be). */
int memefs_flock(struct memefs_file *file, int operation, int wait_ms); /* LOCK_SH, _EX, _UN */
struct memefs_lock {
    int type;           /* F_RDLCK, F_WRLCK, F_UNLCK */
    int64_t start, len; /* from the beginning of the file; len 0: to the end, wherever that is */
    int64_t pid;        /* getlk: of the holder, where it said so; 0: unknown. lock: ignored */
};
int memefs_lock(struct memefs_file *file, const struct memefs_lock *lock, int wait_ms);
int memefs_getlk(struct memefs_file *file, struct memefs_lock *lock); /* who is in the way; type
                                                                       * F_UNLCK: nobody */

/* --- whole objects -------------------------------------------------------------------------- */

#define MEMEFS_PUT_EXCL    1U /* -EEXIST if the name is there */
#define MEMEFS_PUT_PARENTS 2U /* makes directories that are not there */

/* Makes a file of these bytes at path, in place of whatever file was there, at once: a reader sees
 * the old or the new one, whole (those who have the old one open go on to read that). Mode 0666
 * without umask, a new inode. Up to MEMEFS_PUT_SMALL bytes it costs one round trip, if
 * the path's directories are known by calls of the last seconds. -EISDIR. */
int memefs_put(struct memefs *fs, const char *path, const void *buf, size_t len, unsigned flags);
#define MEMEFS_PUT_SMALL 65536U

/* The object's whole size, of which at most size bytes are put in buf. One round trip up to 16 KiB;
 * of objects of a directory that are got in turn those that come next are brought along. */
ssize_t memefs_get(struct memefs *fs, const char *path, void *buf, size_t size);
/* The same into a buffer of its own, which memefs_free frees. */
ssize_t memefs_get_alloc(struct memefs *fs, const char *path, void **buf);

/* Many at once. */
struct memefs_item {
    const char *path;
    void *buf;      /* mput: the bytes, only read. mget: room for them; NULL: allocated by the call,
                     * memefs_free frees it */
    size_t len;     /* mput: how many. mget: the room */
    int64_t result; /* mput: 0; mget: the object's whole size; or a negative errno */
};
/* How many of the n items failed, each with its own result; or a negative errno, then nothing was
 * done. Small objects travel together, one pipeline per partition. mput makes them in no order,
 * each as memefs_put; items of one path: one of them. What is put so is not remembered here, as
 * another one reads it as a rule. */
int memefs_mget(struct memefs *fs, struct memefs_item *items, size_t n);
int memefs_mput(struct memefs *fs, struct memefs_item *items, size_t n, unsigned flags);

/* --- asynchronous --------------------------------------------------------------------------
 * Requests are served by threads of the queue, in no order. `data` is the caller's, given back with
 * the completion. A request is -EAGAIN when as many as the queue takes are neither served nor
 * reaped. Buffers must stay until the completion is reaped, and files be open; paths are copied. */
struct memefs_completion {
    void *data;
    int64_t result; /* what the call would have returned */
};
/* depth: requests that it takes, 1 … 65,536; threads: 1 … 256. */
int memefs_queue_create(struct memefs *fs, unsigned depth, unsigned threads,
                        struct memefs_queue **queue);
/* Waits for what is being served; what is not yet is not done. NULL is fine. */
void memefs_queue_destroy(struct memefs_queue *queue);
/* An eventfd(2), the queue's: readable while there are completions; only to be polled. */
int memefs_queue_fd(struct memefs_queue *queue);
int memefs_queue_put(struct memefs_queue *queue, const char *path, const void *buf, size_t len,
                     unsigned flags, void *data);
int memefs_queue_get(struct memefs_queue *queue, const char *path, void *buf, size_t size,
                     void *data);
/* Many at once as one request; items and what they point to must stay until it is reaped. */
int memefs_queue_mput(struct memefs_queue *queue, struct memefs_item *items, size_t n,
                      unsigned flags, void *data);
int memefs_queue_mget(struct memefs_queue *queue, struct memefs_item *items, size_t n, void *data);
int memefs_queue_stat(struct memefs_queue *queue, const char *path, struct stat *st, int at_flags,
                      void *data); /* AT_SYMLINK_NOFOLLOW */
int memefs_queue_pread(struct memefs_queue *queue, struct memefs_file *file, void *buf, size_t len,
                       off_t off, void *data);
int memefs_queue_pwrite(struct memefs_queue *queue, struct memefs_file *file, const void *buf,
                        size_t len, off_t off, void *data);
int memefs_queue_fsync(struct memefs_queue *queue, struct memefs_file *file, void *data);
/* Takes completions, at most `most`, into done[]; waits until there are `least`, for wait_ms at
 * most (−1: for ever). How many. */
int memefs_queue_reap(struct memefs_queue *queue, struct memefs_completion *done, unsigned most,
                      unsigned least, int wait_ms);

/* --- where things are ----------------------------------------------------------------------- */

struct memefs_node {
    uint32_t id;
    uint32_t partitions; /* that it has */
    char host[64];       /* address of these */
    uint32_t is_here;    /* 1: the node whose Local Manager serves this connection */
};
/* The nodes that hold partitions, by id: how many there are, of which at most n are put in nodes.
 * `size`: sizeof(struct memefs_node). */
ssize_t memefs_nodes(struct memefs *fs, struct memefs_node *nodes, size_t size, size_t n);

/* A piece of a file that is in one place. */
struct memefs_piece {
    uint64_t offset, length;
    uint32_t partition, node; /* node: an id of memefs_nodes */
};
/* Where the pieces of [off, off + len) of the file are, ascending (len 0: to its end): how many
 * there are, of which at most n are put in pieces. `size`: sizeof(struct memefs_piece). */
ssize_t memefs_layout(struct memefs *fs, const char *path, uint64_t off, uint64_t len,
                      struct memefs_piece *pieces, size_t size, size_t n);

/* A file of which data were lost with the process that held them. */
struct memefs_lost_file {
    const char *path;             /* from the root; "": it has no name any more */
    uint64_t ino, stripes, bytes; /* lost */
};
/* Looks through all partitions and calls fn for each damaged file, by path, until that returns not
 * 0, which is the result. 0, or a negative errno; -EIO after the last one: partitions can't be read
 * just now, and what they have is not among them. For the deployment's user and root only. */
typedef int memefs_lost_fn(void *arg, const struct memefs_lost_file *file);
int memefs_lost(struct memefs *fs, memefs_lost_fn *fn, void *arg);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/* --- mounts --------------------------------------------------------------------------------- */

/* How a program that uses a mount recognises it, and asks where the pieces of a file are, e.g. to
 * run a task on the node that holds its input.
 *
 * A mount shows as file system type "fuse.memefs" in /proc/self/mountinfo, its source is the
 * deployment's name.
 *
 * getxattr(2) of MEMEFS_XATTR_LAYOUT on a file (no listing shows it) gives lines of text:
 *
 *     memefs-layout 4
 *     deployment NAME
 *     epoch N
 *     ino N
 *     size N                     bytes
 *     data_end N                 no byte at or beyond this offset is stored
 *     stripe_size N              bytes, of this file's stripes
 *     partitions P
 *     step N
 *     p INDEX NODE HOST:PORT     one line each for the first MEMEFS_LAYOUT_CHUNK partitions
 *
 * and MEMEFS_XATTR_LAYOUT ".K" (K ≥ 1) the p lines from partition K · MEMEFS_LAYOUT_CHUNK on.
 * Stripe n is in partition (home + shift + step · (n mod P)) mod P: home is ino >> 37 & 65535;
 * shift is 0 for n < P, else XXH64 of 12 bytes (ino, 8 bytes, and n div P, 4 bytes, both
 * big-endian; seed 0). If bit 36 of ino is set all stripes are in the home partition.
 * `memefs layout FILE --json` does all of it.
 *
 * Lines may be added behind these; the first one changes when they change. */
#define MEMEFS_FSTYPE       "fuse.memefs"
#define MEMEFS_XATTR_LAYOUT "system.memefs.layout"
#define MEMEFS_LAYOUT_CHUNK 512U   /* partitions per attribute */
#define MEMEFS_LAYOUT_MAX   65536U /* bytes of one attribute, at most */

#endif
