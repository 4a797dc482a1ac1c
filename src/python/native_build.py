"""What of libmemefs (include/memefs/memefs.h, which explains it) Python calls, for cffi.

The C compiler checks these declarations against the header.
"""

import os
import subprocess

from cffi import FFI

DECLARATIONS = """
typedef int... off_t;
typedef int... mode_t;
typedef int... uid_t;
typedef int... gid_t;
typedef int... dev_t;
typedef int... ino_t;
typedef int... nlink_t;
typedef int... blksize_t;
typedef int... blkcnt_t;
typedef int... time_t;
struct timespec { time_t tv_sec; long tv_nsec; ...; };
struct stat {
    dev_t st_dev, st_rdev;
    ino_t st_ino;
    nlink_t st_nlink;
    mode_t st_mode;
    uid_t st_uid;
    gid_t st_gid;
    off_t st_size;
    blksize_t st_blksize;
    blkcnt_t st_blocks;
    struct timespec st_atim, st_mtim, st_ctim;
    ...;
};
struct statvfs {
    unsigned long f_bsize, f_frsize, f_blocks, f_bfree, f_bavail, f_files, f_ffree, f_favail, f_fsid, f_flag, f_namemax;
    ...;
};

struct memefs;
struct memefs_file;
struct memefs_dir;
struct memefs_ids { uint32_t uid, gid; const uint32_t *groups; size_t ngroups; ...; };
struct memefs_options {
    size_t size;
    const char *deployment, *state_dir, *lm, *cm, *secret, *label;
    const struct memefs_ids *ids;
    uint32_t umask, flags, threads, connect_ms, io_ms, full_ms;
    uint64_t write_window, read_window, contents;
    uint32_t files, names;
    ...;
};
#define MEMEFS_UMASK_OF_PROCESS ...
#define MEMEFS_NO_ATIME ...

int memefs_connect(const struct memefs_options *options, struct memefs **fs);
int memefs_disconnect(struct memefs *fs);
const char *memefs_error(void);
void memefs_free(void *p);
const char *memefs_version(void);
int memefs_log(const char *level, const char *path);

int memefs_stat(struct memefs *fs, const char *path, struct stat *st);
int memefs_lstat(struct memefs *fs, const char *path, struct stat *st);
int memefs_access(struct memefs *fs, const char *path, int mode);
int memefs_chmod(struct memefs *fs, const char *path, mode_t mode);
int memefs_chown(struct memefs *fs, const char *path, uid_t uid, gid_t gid);
int memefs_lchown(struct memefs *fs, const char *path, uid_t uid, gid_t gid);
int memefs_utimensat(struct memefs *fs, struct memefs_file *at, const char *path, const struct timespec *times,
                     int at_flags);
int memefs_truncate(struct memefs *fs, const char *path, off_t size);
int memefs_mkdir(struct memefs *fs, const char *path, mode_t mode);
int memefs_makedirs(struct memefs *fs, const char *path, mode_t mode);
int memefs_mknod(struct memefs *fs, const char *path, mode_t mode, dev_t dev);
int memefs_symlink(struct memefs *fs, const char *target, const char *path);
int memefs_link(struct memefs *fs, const char *from, const char *to);
int memefs_unlink(struct memefs *fs, const char *path);
int memefs_rmdir(struct memefs *fs, const char *path);
int memefs_rename(struct memefs *fs, const char *from, const char *to, unsigned flags);
ssize_t memefs_readlink(struct memefs *fs, const char *path, char *buf, size_t size);
int memefs_statfs(struct memefs *fs, struct statvfs *st);
ssize_t memefs_getxattrat(struct memefs *fs, struct memefs_file *at, const char *path, const char *name, void *value,
                          size_t size, int at_flags);
int memefs_setxattrat(struct memefs *fs, struct memefs_file *at, const char *path, const char *name, const void *value,
                      size_t size, int flags, int at_flags);
ssize_t memefs_listxattrat(struct memefs *fs, struct memefs_file *at, const char *path, char *names, size_t size,
                           int at_flags);
int memefs_removexattrat(struct memefs *fs, struct memefs_file *at, const char *path, const char *name, int at_flags);

struct memefs_dirent {
    const char *name;
    uint64_t ino;
    uint32_t type;
    int32_t stat_rc;
    struct stat st;
    int64_t cookie;
    ...;
};
#define MEMEFS_DIR_STAT ...
int memefs_opendir(struct memefs *fs, const char *path, unsigned flags, struct memefs_dir **dir);
int memefs_readdir(struct memefs_dir *dir, const struct memefs_dirent **entry);
int memefs_closedir(struct memefs_dir *dir);

int memefs_open(struct memefs *fs, const char *path, int flags, mode_t mode, struct memefs_file **file);
int memefs_close(struct memefs_file *file);
ssize_t memefs_read(struct memefs_file *file, void *buf, size_t len);
ssize_t memefs_pread(struct memefs_file *file, void *buf, size_t len, off_t off);
ssize_t memefs_write(struct memefs_file *file, const void *buf, size_t len);
ssize_t memefs_pwrite(struct memefs_file *file, const void *buf, size_t len, off_t off);
int64_t memefs_lseek(struct memefs_file *file, off_t off, int whence);
int memefs_fsync(struct memefs_file *file);
int memefs_fstat(struct memefs_file *file, struct stat *st);
int memefs_ftruncate(struct memefs_file *file, off_t size);
int memefs_fallocate(struct memefs_file *file, int mode, off_t off, off_t len);
ssize_t memefs_copy_file_range(struct memefs_file *in, off_t *off_in, struct memefs_file *out, off_t *off_out,
                               size_t len, unsigned flags);
int memefs_flock(struct memefs_file *file, int operation, int wait_ms);
struct memefs_lock { int type; int64_t start, len, pid; ...; };
int memefs_lock(struct memefs_file *file, const struct memefs_lock *lock, int wait_ms);
"""

OBJECTS = """
#define MEMEFS_PUT_EXCL ...
#define MEMEFS_PUT_PARENTS ...
#define MEMEFS_PUT_SMALL ...
int memefs_put(struct memefs *fs, const char *path, const void *buf, size_t len, unsigned flags);
ssize_t memefs_get(struct memefs *fs, const char *path, void *buf, size_t size);
struct memefs_item { const char *path; void *buf; size_t len; int64_t result; ...; };
int memefs_mget(struct memefs *fs, struct memefs_item *items, size_t n);
int memefs_mput(struct memefs *fs, struct memefs_item *items, size_t n, unsigned flags);

struct memefs_queue;
struct memefs_completion { void *data; int64_t result; ...; };
int memefs_queue_create(struct memefs *fs, unsigned depth, unsigned threads, struct memefs_queue **queue);
void memefs_queue_destroy(struct memefs_queue *queue);
int memefs_queue_fd(struct memefs_queue *queue);
int memefs_queue_get(struct memefs_queue *queue, const char *path, void *buf, size_t size, void *data);
int memefs_queue_mput(struct memefs_queue *queue, struct memefs_item *items, size_t n, unsigned flags, void *data);
int memefs_queue_mget(struct memefs_queue *queue, struct memefs_item *items, size_t n, void *data);
int memefs_queue_stat(struct memefs_queue *queue, const char *path, struct stat *st, int at_flags, void *data);
int memefs_queue_pread(struct memefs_queue *queue, struct memefs_file *file, void *buf, size_t len, off_t off,
                       void *data);
int memefs_queue_pwrite(struct memefs_queue *queue, struct memefs_file *file, const void *buf, size_t len, off_t off,
                        void *data);
int memefs_queue_fsync(struct memefs_queue *queue, struct memefs_file *file, void *data);
int memefs_queue_reap(struct memefs_queue *queue, struct memefs_completion *done, unsigned most, unsigned least,
                      int wait_ms);

struct memefs_node { uint32_t id, partitions; char host[64]; uint32_t is_here; ...; };
ssize_t memefs_nodes(struct memefs *fs, struct memefs_node *nodes, size_t size, size_t n);
struct memefs_piece { uint64_t offset, length; uint32_t partition, node; ...; };
ssize_t memefs_layout(struct memefs *fs, const char *path, uint64_t off, uint64_t len, struct memefs_piece *pieces,
                      size_t size, size_t n);
struct memefs_lost_file { const char *path; uint64_t ino, stripes, bytes; ...; };
typedef int memefs_lost_fn(void *arg, const struct memefs_lost_file *file);
int memefs_lost(struct memefs *fs, memefs_lost_fn *fn, void *arg);
extern "Python" int memefs_python_lost(void *arg, const struct memefs_lost_file *file);
"""

LOADER_LOOKS_IN = ("/lib", "/usr/lib", "/usr/local/lib")


def pkg_config(*arguments: str) -> list[str]:
    try:
        return subprocess.check_output(["pkg-config", *arguments, "memefs"], text=True).split()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            "memefs: pkg-config does not find libmemefs: install MemEFS (docs/how-to/install.md), "
            "have $PKG_CONFIG_PATH name the folder with memefs.pc, or $MEMEFS_BUILD a build of it, as build/release"
        ) from error


def where() -> dict[str, list[str]]:
    """For the compiler: where libmemefs is."""
    build = os.environ.get("MEMEFS_BUILD")
    if build:
        include = os.environ.get("MEMEFS_INCLUDE") or os.path.join(build, "../../include")
        lib = os.path.join(build, "lib")
        return {"include_dirs": [include], "library_dirs": [lib], "runtime_library_dirs": [lib]}
    lib = pkg_config("--variable=libdir")[0]
    found = {
        "include_dirs": [flag[2:] for flag in pkg_config("--cflags-only-I")],
        "library_dirs": [lib],
    }
    if not os.path.realpath(lib).startswith(LOADER_LOOKS_IN):
        found["runtime_library_dirs"] = [lib]
    return found


ffi = FFI()
ffi.cdef(DECLARATIONS)
ffi.cdef(OBJECTS)
ffi.set_source(
    "memefs._native",
    "#include <memefs/memefs.h>\n",
    libraries=["memefs"],
    # What the header does not have, or has otherwise.
    extra_compile_args=["-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types"],
    **where(),
)
