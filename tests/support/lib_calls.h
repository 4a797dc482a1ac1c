/* Has a program of tests/fs use libmemefs in place of system calls for what is below one of its
 * mounts
 * ($MEMEFS_TEST_LIB_MOUNT): included before all else of the program (-include), so that its calls
 * mean the functions of lib_calls.c. Descriptors of the library's files are LIB_CALLS_FIRST and
 * above; a process has a connection of its own, made with its first call. */
#ifndef MFS_TESTS_LIB_CALLS_H
#define MFS_TESTS_LIB_CALLS_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIB_CALLS_FIRST 1000000

struct lib_dir; /* of the library, or of the system */

int lib_open(const char *path, int flags, ...);
int lib_openat(int at, const char *path, int flags, ...);
int lib_close(int fd);
ssize_t lib_read(int fd, void *buf, size_t len);
ssize_t lib_write(int fd, const void *buf, size_t len);
ssize_t lib_pread(int fd, void *buf, size_t len, off_t off);
ssize_t lib_pwrite(int fd, const void *buf, size_t len, off_t off);
off_t lib_lseek(int fd, off_t off, int whence);
int lib_fsync(int fd);
int lib_ftruncate(int fd, off_t size);
int lib_truncate(const char *path, off_t size);
int lib_fallocate(int fd, int mode, off_t off, off_t len);
int lib_flock(int fd, int operation);
int lib_fstat(int fd, struct stat *st);
int lib_fstatat(int at, const char *path, struct stat *st, int flags);
int lib_access(const char *path, int mode);
int lib_mkdirat(int at, const char *path, mode_t mode);
int lib_mknod(const char *path, mode_t mode, dev_t dev);
int lib_symlinkat(const char *target, int at, const char *path);
int lib_linkat(int from_at, const char *from, int to_at, const char *to, int flags);
int lib_unlinkat(int at, const char *path, int flags);
int lib_renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags);
int lib_fchmodat(int at, const char *path, mode_t mode, int flags);
int lib_utimensat(int at, const char *path, const struct timespec times[2], int flags);
struct lib_dir *lib_opendir(const char *path);
struct dirent *lib_readdir(struct lib_dir *d);
void lib_rewinddir(struct lib_dir *d);
long lib_telldir(struct lib_dir *d);
void lib_seekdir(struct lib_dir *d, long cookie);
int lib_closedir(struct lib_dir *d);

#ifndef LIB_CALLS_HERE
#define open(...)             lib_open(__VA_ARGS__)
#define openat(...)           lib_openat(__VA_ARGS__)
#define close(fd)             lib_close(fd)
#define read(...)             lib_read(__VA_ARGS__)
#define write(...)            lib_write(__VA_ARGS__)
#define pread(...)            lib_pread(__VA_ARGS__)
#define pwrite(...)           lib_pwrite(__VA_ARGS__)
#define lseek(...)            lib_lseek(__VA_ARGS__)
#define fsync(fd)             lib_fsync(fd)
#define ftruncate(...)        lib_ftruncate(__VA_ARGS__)
#define truncate(...)         lib_truncate(__VA_ARGS__)
#define fallocate(...)        lib_fallocate(__VA_ARGS__)
#define flock(...)            lib_flock(__VA_ARGS__)
#define fstat(...)            lib_fstat(__VA_ARGS__)
#define fstatat(...)          lib_fstatat(__VA_ARGS__)
#define stat(path, st)        lib_fstatat(AT_FDCWD, path, st, 0)
#define lstat(path, st)       lib_fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW)
#define access(...)           lib_access(__VA_ARGS__)
#define mkdirat(...)          lib_mkdirat(__VA_ARGS__)
#define mkdir(path, mode)     lib_mkdirat(AT_FDCWD, path, mode)
#define mkfifo(path, mode)    lib_mknod(path, S_IFIFO | (mode), 0)
#define mknod(...)            lib_mknod(__VA_ARGS__)
#define symlinkat(...)        lib_symlinkat(__VA_ARGS__)
#define symlink(target, path) lib_symlinkat(target, AT_FDCWD, path)
#define linkat(...)           lib_linkat(__VA_ARGS__)
#define link(from, to)        lib_linkat(AT_FDCWD, from, AT_FDCWD, to, 0)
#define unlinkat(...)         lib_unlinkat(__VA_ARGS__)
#define unlink(path)          lib_unlinkat(AT_FDCWD, path, 0)
#define rmdir(path)           lib_unlinkat(AT_FDCWD, path, AT_REMOVEDIR)
#define renameat2(...)        lib_renameat2(__VA_ARGS__)
#define rename(from, to)      lib_renameat2(AT_FDCWD, from, AT_FDCWD, to, 0)
#define fchmodat(...)         lib_fchmodat(__VA_ARGS__)
#define chmod(path, mode)     lib_fchmodat(AT_FDCWD, path, mode, 0)
#define utimensat(...)        lib_utimensat(__VA_ARGS__)
#define DIR                   struct lib_dir
#define opendir(path)         lib_opendir(path)
#define readdir(d)            lib_readdir(d)
#define rewinddir(d)          lib_rewinddir(d)
#define telldir(d)            lib_telldir(d)
#define seekdir(d, cookie)    lib_seekdir(d, cookie)
#define closedir(d)           lib_closedir(d)
#endif

#endif
