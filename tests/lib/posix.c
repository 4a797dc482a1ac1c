/* ctest: threaded
 *
 * Each call of libmemefs that a system call stands for, by a connection beside a mount: what one of
 * them makes, the other sees. */
#include <dirent.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "lib_check.h"

static struct memefs *fs;
static const char *mnt; /* a mount's root, where this program is */

static void test_files(void)
{
    struct memefs_file *f, *g;
    char buf[64];
    struct stat st;

    GOOD(memefs_mkdir(fs, "/files", 0755));
    GOOD(memefs_open(fs, "files/f", O_RDWR | O_CREAT | O_EXCL, 0640, &f));
    EQUAL(-EEXIST, memefs_open(fs, "files/f", O_RDWR | O_CREAT | O_EXCL, 0640, &g));
    CHECK(g == NULL);
    CHECK(strcmp(memefs_error(), "open: files/f: File exists") == 0);
    EQUAL(5, memefs_write(f, "hello", 5));
    EQUAL(0, memefs_pread(f, buf, sizeof buf, 5));
    GOOD(memefs_fsync(f));
    OK(stat("files/f", &st));
    EQUAL(5, st.st_size);
    EQUAL(S_IFREG | 0640, st.st_mode);
    EQUAL(6, memefs_pwrite(f, " world", 6, 5));
    EQUAL(5, memefs_lseek(f, 0, SEEK_CUR));
    EQUAL(6, memefs_read(f, buf, sizeof buf));
    CHECK(memcmp(buf, " world", 6) == 0);
    GOOD(memefs_ftruncate(f, 3));
    GOOD(memefs_fstat(f, &st));
    EQUAL(3, st.st_size);
    GOOD(memefs_fallocate(f, 0, 0, 100));
    EQUAL(100, memefs_lseek(f, 0, SEEK_END));
    EQUAL(-EINVAL, memefs_lseek(f, -101, SEEK_END));
    GOOD(memefs_close(f));
    GOOD(memefs_truncate(fs, "files/f", 0));
    OK(stat("files/f", &st));
    EQUAL(0, st.st_size);
    GOOD(memefs_open(fs, "files/f", O_RDONLY, 0, &f));
    EQUAL(-EBADF, memefs_write(f, "x", 1));
    EQUAL(-EINVAL, memefs_ftruncate(f, 1));
    GOOD(memefs_close(f));
    GOOD(memefs_close(NULL));
}

static void test_appends_and_vectors(void)
{
    const struct iovec out[] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    struct memefs_file *f;
    char a[4], b[8];
    const struct iovec in[] = {{a, 4}, {b, 8}};

    GOOD(memefs_open(fs, "files/v", O_RDWR | O_CREAT | O_APPEND, 0644, &f));
    EQUAL(5, memefs_writev(f, out, 3));
    EQUAL(5, memefs_lseek(f, 0, SEEK_CUR));
    EQUAL(5, memefs_pwritev(f, out, 3, 0)); /* an append all the same */
    EQUAL(10, memefs_preadv(f, in, 2, 0));
    CHECK(memcmp(a, "abcd", 4) == 0 && memcmp(b, "eabcde", 6) == 0);
    GOOD(memefs_close(f));
}

static struct memefs_file *appended[2]; /* handles of one file */

/* Behind an append the position is at its own end, wherever another's bytes went meanwhile. */
static void *append_many(void *arg)
{
    struct memefs_file *f = *(struct memefs_file **)arg;
    char own[9], seen[8];

    for (int i = 0; i < 300; i++) {
        snprintf(own, sizeof own, "%c%07d", f == appended[0] ? 'a' : 'b', i);
        EQUAL(8, memefs_write(f, own, 8));
        EQUAL(8, memefs_pread(f, seen, 8, memefs_lseek(f, 0, SEEK_CUR) - 8));
        CHECK(memcmp(own, seen, 8) == 0);
    }
    return NULL;
}

static void test_position_of_appends(void)
{
    struct memefs *other = lib_connect();
    pthread_t thread;

    GOOD(memefs_open(fs, "files/p", O_RDWR | O_CREAT | O_APPEND, 0644, &appended[0]));
    GOOD(memefs_open(other, "files/p", O_RDWR | O_APPEND, 0, &appended[1]));
    EQUAL(0, pthread_create(&thread, NULL, append_many, &appended[1]));
    append_many(&appended[0]);
    EQUAL(0, pthread_join(thread, NULL));
    EQUAL(2 * 300 * 8, memefs_lseek(appended[0], 0, SEEK_END));
    GOOD(memefs_close(appended[0]));
    GOOD(memefs_close(appended[1]));
    GOOD(memefs_disconnect(other));
}

static void test_sparse(void)
{
    struct memefs_file *f, *to;
    off_t from = 0, at = 0;
    char byte;

    GOOD(memefs_open(fs, "files/s", O_RDWR | O_CREAT, 0644, &f));
    EQUAL(1, memefs_pwrite(f, "x", 1, 5 << 20));
    GOOD(memefs_fsync(f));
    CHECK(memefs_lseek(f, 0, SEEK_DATA) > 0);
    EQUAL(0, memefs_lseek(f, 0, SEEK_HOLE));
    GOOD(memefs_open(fs, "files/c", O_RDWR | O_CREAT, 0644, &to));
    EQUAL((5 << 20) + 1, memefs_copy_file_range(f, &from, to, &at, 10 << 20, 0));
    EQUAL(1, memefs_pread(to, &byte, 1, 5 << 20));
    EQUAL('x', byte);
    GOOD(memefs_close(to));
    GOOD(memefs_close(f));
}

static void test_names(void)
{
    char target[16];
    struct stat st;

    GOOD(memefs_makedirs(fs, "/names/a/b", 0755));
    GOOD(memefs_makedirs(fs, "names/a/b/", 0755));
    EQUAL(-ENOENT, memefs_rmdir(fs, "/names/none"));
    GOOD(memefs_makedirs(fs, "/names/a/b", 0755));
    CHECK(strncmp(memefs_error(), "rmdir", 5) == 0); /* not of what was tried on the way */
    GOOD(memefs_put(fs, "/names/a/b/f", "x", 1, 0));
    EQUAL(-ENOTEMPTY, memefs_rename(fs, "/names/a/b/f", "/names/a", 0));
    GOOD(memefs_unlink(fs, "/names/a/b/f"));
    EQUAL(-EEXIST, memefs_mkdir(fs, "/names/a", 0755));
    EQUAL(-ENOENT, memefs_mkdir(fs, "/names/x/y", 0755));
    GOOD(memefs_mknod(fs, "/names/f", S_IFREG | 0600, 0));
    GOOD(memefs_symlink(fs, "f", "/names/l"));
    EQUAL(1, memefs_readlink(fs, "/names/l", target, sizeof target));
    GOOD(memefs_stat(fs, "/names/l", &st));
    CHECK(S_ISREG(st.st_mode));
    GOOD(memefs_lstat(fs, "/names/l", &st));
    CHECK(S_ISLNK(st.st_mode));
    GOOD(memefs_link(fs, "/names/f", "/names/g"));
    GOOD(memefs_stat(fs, "/names/g", &st));
    EQUAL(2, st.st_nlink);
    GOOD(memefs_rename(fs, "/names/g", "/names/a/g", 0));
    EQUAL(-EEXIST, memefs_rename(fs, "/names/f", "/names/a/g", RENAME_NOREPLACE));
    EQUAL(-EINVAL, memefs_rename(fs, "/names", "/names/a/z", 0));
    EQUAL(-EINVAL, memefs_rename(fs, "/names/f", "/names/h", 99));
    FAILS(ENOENT, stat("names/g", &st));
    EQUAL(-EISDIR, memefs_unlink(fs, "/names/a"));
    EQUAL(-ENOTDIR, memefs_rmdir(fs, "/names/f"));
    EQUAL(-ENOTEMPTY, memefs_rmdir(fs, "/names/a"));
    EQUAL(-EBUSY, memefs_rmdir(fs, "/"));
    EQUAL(-EINVAL, memefs_rmdir(fs, "/names/."));
    EQUAL(-ENOTEMPTY, memefs_rmdir(fs, "/names/a/.."));
    EQUAL(-ENOTDIR, memefs_unlink(fs, "/names/f/"));
    EQUAL(-ENOTDIR, memefs_stat(fs, "/names/f/", &st));
    GOOD(memefs_unlink(fs, "/names/a/g"));
    GOOD(memefs_rmdir(fs, "/names/a/b"));
    GOOD(memefs_rmdir(fs, "/names/a"));
    FAILS(ENOENT, stat("names/a", &st));
}

static void test_attributes(void)
{
    const struct timespec times[2] = {{1000000000, 5}, {1000000001, 6}};
    struct statvfs space;
    char value[16];
    struct stat st;

    GOOD(memefs_chmod(fs, "/names/f", 0751));
    GOOD(memefs_chown(fs, "/names/f", 12, 13));
    GOOD(memefs_utimens(fs, "/names/f", times));
    OK(stat("names/f", &st));
    EQUAL(0751, st.st_mode & 07777);
    EQUAL(12, st.st_uid);
    EQUAL(13, st.st_gid);
    EQUAL(1000000001, st.st_mtim.tv_sec);
    EQUAL(6, st.st_mtim.tv_nsec);
    GOOD(memefs_access(fs, "/names/f", R_OK | W_OK | X_OK));
    GOOD(memefs_statfs(fs, &space));
    CHECK(space.f_blocks > space.f_bfree && space.f_bfree > 0);
    GOOD(memefs_setxattr(fs, "/names/f", "user.x", "one", 3, XATTR_CREATE));
    EQUAL(-EEXIST, memefs_setxattr(fs, "/names/f", "user.x", "one", 3, XATTR_CREATE));
    EQUAL(3, getxattr("names/f", "user.x", value, sizeof value));
    EQUAL(7, memefs_listxattr(fs, "/names/f", value, sizeof value));
    EQUAL(-ERANGE, memefs_getxattr(fs, "/names/f", "user.x", value, 1));
    GOOD(memefs_removexattr(fs, "/names/f", "user.x"));
    EQUAL(-ENODATA, memefs_getxattr(fs, "/names/f", "user.x", value, sizeof value));
    CHECK(memefs_getxattr(fs, "/names/f", MEMEFS_XATTR_LAYOUT, NULL, 0) > 0);
}

/* Which are kept where a device has its number. */
static void test_hints(void)
{
    struct memefs_file *f;
    struct stat st;

    GOOD(memefs_mkdir(fs, "/hinted", 0755));
    GOOD(memefs_setxattr(fs, "/hinted", "user.memefs.place", "local", 5, 0));
    GOOD(memefs_setxattr(fs, "/hinted", "user.memefs.ttl", "86400", 5, 0));
    EQUAL(-EINVAL, memefs_setxattr(fs, "/hinted", "user.memefs.place", NULL, 0, 0));
    GOOD(memefs_open(fs, "/hinted/f", O_CREAT | O_RDWR, 0644, &f));
    GOOD(memefs_close(f));
    GOOD(memefs_stat(fs, "/hinted/f", &st));
    EQUAL(0, st.st_rdev);
    GOOD(memefs_stat(fs, "/hinted", &st));
    EQUAL(0, st.st_rdev);
    EQUAL(0, st.st_blocks);
}

static void test_listing(void)
{
    const struct memefs_dirent *e;
    int64_t cookie = 0;
    struct memefs_dir *d;
    char name[32];
    int n = 0;

    GOOD(memefs_mkdir(fs, "/list", 0755));
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "list/%d", i);
        OK(close(open(name, O_CREAT | O_WRONLY, 0644)));
    }
    GOOD(memefs_opendir(fs, "/list", MEMEFS_DIR_STAT, &d));
    while (memefs_readdir(d, &e) > 0) {
        EQUAL(0, e->stat_rc);
        EQUAL(e->ino, e->st.st_ino);
        EQUAL(e->type, e->st.st_mode & S_IFMT);
        if (++n == 200)
            cookie = e->cookie;
    }
    EQUAL(302, n);
    GOOD(memefs_seekdir(d, cookie));
    for (n = 0; memefs_readdir(d, &e) > 0; n++)
        ;
    EQUAL(102, n);
    GOOD(memefs_closedir(d));
    EQUAL(-ENOTDIR, memefs_opendir(fs, "/names/f", 0, &d));
    EQUAL(-EINVAL, memefs_opendir(fs, "/list", 8, &d));
}

static void test_at(void)
{
    struct memefs_file *dir, *f, *path;
    struct stat st;

    GOOD(memefs_open(fs, "/list", O_RDONLY | O_DIRECTORY, 0, &dir));
    GOOD(memefs_openat(fs, dir, "at", O_CREAT | O_WRONLY, 0600, &f));
    GOOD(memefs_close(f));
    GOOD(memefs_fstatat(fs, dir, "", &st, AT_EMPTY_PATH));
    CHECK(S_ISDIR(st.st_mode));
    GOOD(memefs_renameat(fs, dir, "at", dir, "there", 0));
    GOOD(memefs_unlinkat(fs, dir, "there", 0));
    GOOD(memefs_openat(fs, dir, ".", O_TMPFILE | O_RDWR, 0600, &f));
    EQUAL(1, memefs_write(f, "t", 1));
    GOOD(memefs_linkat(fs, f, "", dir, "linked", AT_EMPTY_PATH));
    GOOD(memefs_close(f));
    OK(stat("list/linked", &st));
    EQUAL(1, st.st_size);
    GOOD(memefs_open(fs, "/list/linked", O_PATH, 0, &path));
    EQUAL(-EBADF, memefs_read(path, &st, 1));
    GOOD(memefs_fstat(path, &st));
    GOOD(memefs_close(path));
    EQUAL(-EISDIR, memefs_read(dir, &st, 1));
    EQUAL(-EISDIR, memefs_open(fs, "/list", O_RDWR, 0, &f));
    EQUAL(-ENOTDIR, memefs_open(fs, "/names/f", O_DIRECTORY, 0, &f));
    EQUAL(-ELOOP, memefs_open(fs, "/names/l", O_NOFOLLOW, 0, &f));
    GOOD(memefs_close(dir));
}

static void test_locks(void)
{
    struct memefs_lock all = {.type = F_WRLCK}, ask = {.type = F_WRLCK},
                       last = {.type = F_UNLCK, .start = 1, .len = INT64_MAX};
    struct memefs *other = lib_connect();
    struct memefs_file *f, *g;
    int fd;

    GOOD(memefs_open(fs, "/names/f", O_RDWR, 0, &f));
    GOOD(memefs_open(other, "/names/f", O_RDWR, 0, &g));
    OK(fd = open("names/f", O_RDWR));
    GOOD(memefs_flock(f, LOCK_EX, 0));
    EQUAL(-EAGAIN, memefs_flock(g, LOCK_SH, 0));
    EQUAL(-EAGAIN, memefs_flock(g, LOCK_SH, 50));
    FAILS(EWOULDBLOCK, flock(fd, LOCK_SH | LOCK_NB));
    GOOD(memefs_flock(f, LOCK_UN, 0));
    OK(flock(fd, LOCK_SH | LOCK_NB));
    EQUAL(-EAGAIN, memefs_flock(g, LOCK_EX, 0));
    OK(close(fd));
    GOOD(memefs_flock(g, LOCK_EX, 5000));
    GOOD(memefs_lock(f, &last, 0)); /* up to the last byte that a file may have */
    GOOD(memefs_lock(f, &all, 0));
    EQUAL(-EAGAIN, memefs_lock(g, &all, 0));
    GOOD(memefs_getlk(g, &ask));
    EQUAL(F_WRLCK, ask.type);
    GOOD(memefs_close(f));
    GOOD(memefs_lock(g, &all, 0));
    GOOD(memefs_disconnect(other)); /* with g open */
    GOOD(memefs_open(fs, "/names/f", O_RDWR, 0, &f));
    GOOD(memefs_lock(f, &all, 0));
    GOOD(memefs_close(f));
}

/* Other users: what the kernel would refuse. */
static void test_rights(void)
{
    struct memefs *nobody = lib_connect_as(65534, 65534), *user = lib_connect_as(12, 13);
    struct memefs_file *f;
    struct stat st;

    GOOD(memefs_mkdir(fs, "/rights", 0755));
    GOOD(memefs_mkdir(fs, "/rights/tmp", 0777));
    GOOD(memefs_chmod(fs, "/rights/tmp", 01777));
    EQUAL(-EACCES, memefs_mkdir(nobody, "/rights/x", 0755));
    EQUAL(-EACCES, memefs_open(nobody, "/rights/x", O_CREAT | O_WRONLY, 0644, &f));
    GOOD(memefs_open(nobody, "/rights/tmp/n", O_CREAT | O_WRONLY, 0666, &f));
    GOOD(memefs_close(f));
    OK(stat("rights/tmp/n", &st));
    EQUAL(0644, st.st_mode & 07777);
    EQUAL(65534, st.st_uid);
    EQUAL(-EPERM, memefs_unlink(user, "/rights/tmp/n"));
    EQUAL(-EPERM, memefs_rename(user, "/rights/tmp/n", "/rights/tmp/u", 0));
    EQUAL(-EPERM, memefs_chmod(user, "/rights/tmp/n", 0777));
    EQUAL(-EPERM, memefs_chown(nobody, "/rights/tmp/n", 12, -1));
    EQUAL(-EACCES, memefs_open(user, "/rights/tmp/n", O_WRONLY, 0, &f));
    EQUAL(-EACCES, memefs_truncate(user, "/rights/tmp/n", 0));
    EQUAL(-EACCES, memefs_utimens(user, "/rights/tmp/n", NULL));
    EQUAL(-EPERM, memefs_link(user, "/rights/tmp/n", "/rights/tmp/u"));
    EQUAL(-EACCES, memefs_setxattr(user, "/rights/tmp/n", "user.x", "", 0, 0));
    EQUAL(-EPERM, memefs_mknod(user, "/rights/tmp/d", S_IFCHR | 0600, makedev(1, 3)));
    GOOD(memefs_chmod(nobody, "/rights/tmp/n", 0600));
    EQUAL(-EACCES, memefs_open(user, "/rights/tmp/n", O_RDONLY, 0, &f));
    EQUAL(-EACCES, memefs_open(user, "/rights/tmp/n", O_CREAT | O_RDONLY, 0600, &f));
    GOOD(memefs_unlink(nobody, "/rights/tmp/n"));
    GOOD(memefs_disconnect(user));
    GOOD(memefs_disconnect(nobody));
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    mnt = argv[1];
    OK(chdir(mnt));
    umask(022);
    fs = lib_connect();
    test_files();
    test_appends_and_vectors();
    test_position_of_appends();
    test_sparse();
    test_names();
    test_attributes();
    test_hints();
    test_listing();
    test_at();
    test_locks();
    test_rights();
    GOOD(memefs_disconnect(fs));
    return 0;
}
