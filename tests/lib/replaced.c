/* Paths that lead to something else, or to nothing, by the time a call comes to it: files that are
 * replaced all the time are always there, removed directories are still what their handles are, and
 * directories that permit no search tell nothing. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/xattr.h>
#include <time.h>

#include "lib_check.h"

#define SECONDS 3

static struct memefs *fs, *user;
static atomic_bool stop;

static void *replace(void *arg)
{
    const char *other = arg;

    while (!atomic_load(&stop)) {
        fs_put(other, "new", 3);
        OK(rename(other, "always/f"));
    }
    return NULL;
}

/* A link to a file of which the last name is just going is refused (ENOENT), as Linux does. */
static int make_and_remove(const char *name)
{
    int rc = memefs_link(fs, "always/f", name);

    if (rc == -ENOENT)
        return 0;
    return rc == 0 ? memefs_unlink(fs, name) : rc;
}

static void call_all(unsigned i)
{
    char value[8];
    struct stat st;

    GOOD(memefs_stat(fs, "always/f", &st));
    GOOD(memefs_access(fs, "always/f", R_OK));
    GOOD(memefs_chmod(fs, "always/f", 0600 | (i & 0077)));
    GOOD(memefs_chown(fs, "always/f", 0, i % 3));
    GOOD(memefs_utimens(fs, "always/f", NULL));
    GOOD(memefs_truncate(fs, "always/f", i % 5));
    GOOD(memefs_setxattr(fs, "always/f", "user.x", "x", 1, 0));
    CHECK(memefs_getxattr(fs, "always/f", "user.none", value, sizeof value) == -ENODATA);
    GOOD(memefs_listxattr(fs, "always/f", NULL, 0));
    GOOD(make_and_remove("always/link"));
}

static void test_replaced(void)
{
    pthread_t threads[2];
    static char *const names[] = {"always/1", "always/2"};
    time_t end = time(NULL) + SECONDS;

    OK(mkdir("always", 0755));
    fs_put("always/f", "old", 3);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, replace, names[i]) == 0);
    for (unsigned i = 0; time(NULL) < end; i++)
        call_all(i);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void test_removed_directory(void)
{
    const struct memefs_dirent *e;
    struct memefs_file *dir, *f;
    struct memefs_dir *list;
    struct stat st;

    GOOD(memefs_mkdir(fs, "gone", 0755));
    GOOD(memefs_open(fs, "gone", O_RDONLY | O_DIRECTORY, 0, &dir));
    OK(rmdir("gone"));
    EQUAL(-ENOENT, memefs_openat(fs, dir, "x", O_CREAT | O_RDWR, 0644, &f));
    EQUAL(-ENOENT, memefs_openat(fs, dir, "x", O_RDONLY, 0, &f));
    EQUAL(-ENOENT, memefs_fstatat(fs, dir, "x", &st, 0));
    EQUAL(-ENOENT, memefs_mkdirat(fs, dir, "x", 0755));
    EQUAL(-ENOENT, memefs_symlinkat(fs, "x", dir, "x"));
    EQUAL(-ENOENT, memefs_unlinkat(fs, dir, "x", 0));
    GOOD(memefs_fstatat(fs, dir, ".", &st, 0));
    EQUAL(0, st.st_nlink);
    GOOD(memefs_fstatat(fs, dir, "./", &st, 0));
    GOOD(memefs_faccessat(fs, dir, ".", R_OK, 0));
    GOOD(memefs_opendirat(fs, dir, ".", 0, 0, &list));
    CHECK(memefs_readdir(list, &e) <= 0 || e->name[0] == '.');
    GOOD(memefs_closedir(list));
    GOOD(memefs_close(dir));
}

/* What a name there is can't be found out: each call says EACCES, whatever the name is. */
static void test_private(void)
{
    static const char *const names[] = {"priv/d",    "priv/d/", "priv/f", "priv/f/",
                                        "priv/none", "priv/.",  "priv/.."};
    struct memefs_file *f;

    GOOD(memefs_makedirs(fs, "priv/d", 0755));
    GOOD(memefs_mknod(fs, "priv/f", S_IFREG | 0666, 0));
    GOOD(memefs_mkdir(fs, "pub", 0777));
    GOOD(memefs_chmod(fs, "pub", 0777));
    GOOD(memefs_mknod(user, "pub/f", S_IFREG | 0666, 0));
    GOOD(memefs_chmod(fs, "priv", 0700));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        EQUAL(-EACCES, memefs_unlink(user, names[i]));
        EQUAL(-EACCES, memefs_rmdir(user, names[i]));
        EQUAL(-EACCES, memefs_mkdir(user, names[i], 0755));
        EQUAL(-EACCES, memefs_mknod(user, names[i], S_IFREG | 0644, 0));
        EQUAL(-EACCES, memefs_symlink(user, "x", names[i]));
        EQUAL(-EACCES, memefs_link(user, "pub/f", names[i]));
        EQUAL(-EACCES, memefs_rename(user, names[i], "pub/x", 0));
        EQUAL(-EACCES, memefs_rename(user, "pub/f", names[i], 0));
        EQUAL(-EACCES, memefs_open(user, names[i], O_CREAT | O_WRONLY, 0644, &f));
    }
}

static void test_opens(void)
{
    struct memefs_file *f;

    EQUAL(-EEXIST, memefs_open(fs, "pub/.", O_CREAT | O_EXCL | O_WRONLY, 0644, &f));
    EQUAL(-EEXIST, memefs_open(fs, "pub/..", O_CREAT | O_EXCL | O_WRONLY, 0644, &f));
    EQUAL(-EISDIR, memefs_open(fs, "pub/.", O_CREAT | O_WRONLY, 0644, &f));
    EQUAL(-EINVAL, memefs_open(fs, "pub", O_TMPFILE | O_CREAT | O_RDWR, 0644, &f));
    GOOD(memefs_open(fs, "pub/f", O_PATH, 0, &f));
    EQUAL(-EBADF, memefs_ftruncate(f, 0));
    GOOD(memefs_close(f));
}

#define ENTRIES 300 /* more than a listing has in memory */

/* Attributes are told by the rights of now, not those of opendir. */
static void test_listing(void)
{
    const struct memefs_dirent *e;
    struct memefs_dir *dir;
    char path[32];
    int refused = 0;

    GOOD(memefs_mkdir(fs, "list", 0755));
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(path, sizeof path, "list/%d", i);
        GOOD(memefs_mknod(fs, path, S_IFREG | 0644, 0));
    }
    GOOD(memefs_opendirat(user, NULL, "list", MEMEFS_DIR_STAT, 0, &dir));
    EQUAL(1, memefs_readdir(dir, &e));
    EQUAL(0, e->stat_rc);
    GOOD(memefs_chmod(fs, "list", 0754));
    while (memefs_readdir(dir, &e) == 1)
        refused += e->stat_rc == -EACCES;
    CHECK(refused > 0 && refused < ENTRIES);
    GOOD(memefs_closedir(dir));
}

#define ROUNDS 500
#define HALF   1000

/* Reads records of two equal halves by one position. */
static void *read_records(void *arg)
{
    static _Thread_local char a[HALF], b[HALF];
    const struct iovec iov[] = {{a, HALF}, {b, HALF}};
    ssize_t n;

    while ((n = memefs_readv(arg, iov, 2)) > 0) {
        EQUAL(2 * HALF, n);
        CHECK(memcmp(a, b, HALF) == 0);
    }
    GOOD(n);
    return NULL;
}

static void test_vectors(void)
{
    static char record[2 * HALF];
    pthread_t other;
    struct memefs_file *f;
    off_t from = 0, to = 100;

    GOOD(memefs_open(fs, "records", O_CREAT | O_RDWR, 0644, &f));
    for (int i = 0; i < ROUNDS; i++) {
        memset(record, i, sizeof record);
        EQUAL(sizeof record, memefs_write(f, record, sizeof record));
    }
    GOOD(memefs_lseek(f, 0, SEEK_SET));
    CHECK(pthread_create(&other, NULL, read_records, f) == 0);
    read_records(f);
    CHECK(pthread_join(other, NULL) == 0);
    EQUAL(-EINVAL, memefs_readv(NULL, NULL, 0));
    GOOD(memefs_ftruncate(f, 10));
    EQUAL(10, memefs_copy_file_range(f, &from, f, &to, 1 << 30, 0));
    GOOD(memefs_close(f));
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    OK(chdir(argv[1]));
    umask(022);
    fs = lib_connect();
    user = lib_connect_as(1000, 1000);
    test_replaced();
    test_removed_directory();
    test_private();
    test_opens();
    test_listing();
    test_vectors();
    GOOD(memefs_disconnect(user));
    GOOD(memefs_disconnect(fs));
    return 0;
}
