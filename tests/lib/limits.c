/* What programs do wrong: arguments out of range, files of another connection, a connection that
 * was forked, a process that is killed with locks or while it puts. Nothing may crash or hang, and
 * each says why. ctest: leaves timeout=240 */
#include <sys/file.h>

#include "lib_putter.h"

static struct memefs *fs;

static void test_nulls(void)
{
    struct memefs_options o = lib_options();
    struct memefs *none = fs;
    struct memefs_file *f;
    struct stat st;

    EQUAL(-EINVAL, memefs_connect(&o, NULL));
    o.size = 8;
    EQUAL(-EINVAL, memefs_connect(&o, &none));
    CHECK(none == NULL && strstr(memefs_error(), "MEMEFS_OPTIONS_INIT") != NULL);
    o = lib_options();
    o.flags = 1U << 30;
    EQUAL(-EINVAL, memefs_connect(&o, &none));
    o = lib_options();
    o.deployment = "not-there";
    o.state_dir = "/tmp/not-there/memefs";
    o.connect_ms = 100;
    CHECK(memefs_connect(&o, &none) < 0 && memefs_error()[0] != '\0');
    EQUAL(-EINVAL, memefs_stat(NULL, "/", &st));
    EQUAL(-EINVAL, memefs_stat(fs, NULL, &st));
    EQUAL(-EINVAL, memefs_stat(fs, "/", NULL));
    EQUAL(-ENOENT, memefs_stat(fs, "", &st));
    EQUAL(-EINVAL, memefs_open(fs, "/", O_RDONLY, 0, NULL));
    EQUAL(-EINVAL, memefs_open(fs, "/", O_ACCMODE, 0, &f));
    EQUAL(-EINVAL, memefs_read(NULL, &st, 1));
    EQUAL(-EINVAL, memefs_put(fs, "/x", NULL, 1, 0));
    EQUAL(-EINVAL, memefs_put(fs, "/x", "", 0, 99));
    EQUAL(-EINVAL, memefs_get(fs, NULL, NULL, 0));
    EQUAL(-EINVAL, memefs_mget(fs, NULL, 1));
    EQUAL(0, memefs_mget(fs, NULL, 0));
    GOOD(memefs_disconnect(NULL));
    memefs_free(NULL);
}

static void test_lengths(void)
{
    static char path[8192], name[300];
    struct stat st;

    memset(name, 'n', sizeof name - 1);
    memset(path, '/', sizeof path - 1);
    EQUAL(-ENAMETOOLONG, memefs_stat(fs, name, &st));
    EQUAL(-ENAMETOOLONG, memefs_mkdir(fs, name, 0755));
    EQUAL(-ENAMETOOLONG, memefs_put(fs, name, "", 0, 0));
    EQUAL(-ENAMETOOLONG, memefs_stat(fs, path, &st));
    GOOD(memefs_symlink(fs, "loop", "/loop"));
    EQUAL(-ELOOP, memefs_stat(fs, "/loop/x", &st));
    EQUAL(-ELOOP, memefs_put(fs, "/loop/x", "", 0, 0));
    EQUAL(-ERANGE, memefs_getxattr(fs, "/", name, NULL, 0));
    EQUAL(-ENOENT, memefs_symlink(fs, "", "/empty"));
}

static void test_other_connections(void)
{
    struct memefs *other = lib_connect();
    struct memefs_file *dir, *f;
    struct stat st;

    GOOD(memefs_open(fs, "/", O_RDONLY | O_DIRECTORY, 0, &dir));
    EQUAL(-EINVAL, memefs_fstatat(other, dir, "x", &st, 0));
    EQUAL(-EINVAL, memefs_openat(other, dir, "x", O_RDONLY, 0, &f));
    GOOD(memefs_close(dir));
    GOOD(memefs_disconnect(other));
}

/* Of a child that works with what its parent had, and with a connection of its own. */
static void child(struct memefs_file *f)
{
    struct memefs *own;
    struct stat st;

    alarm(60);
    EQUAL(-EBADF, memefs_stat(fs, "/", &st));
    EQUAL(-EBADF, memefs_pread(f, &st, 1, 0));
    EQUAL(-EBADF, memefs_close(f));
    EQUAL(-EBADF, memefs_disconnect(fs));
    own = lib_connect();
    GOOD(memefs_stat(own, "/", &st));
    GOOD(memefs_disconnect(own));
    _exit(0);
}

static void test_fork(void)
{
    struct memefs_file *f;
    int status;
    pid_t pid;

    GOOD(memefs_open(fs, "/fork", O_RDWR | O_CREAT, 0644, &f));
    OK(pid = fork());
    if (pid == 0)
        child(f);
    OK(waitpid(pid, &status, 0));
    EQUAL(0, status);
    EQUAL(1, memefs_pwrite(f, "x", 1, 0));
    GOOD(memefs_close(f));
}

static void test_killed(void)
{
    struct memefs_file *f;
    int ready[2], fd;
    char byte;
    pid_t pid;

    OK(close(open("lock", O_CREAT | O_WRONLY, 0644)));
    OK(pipe(ready));
    OK(pid = fork());
    if (pid == 0) {
        GOOD(memefs_open(lib_connect(), "/lock", O_RDWR, 0, &f));
        GOOD(memefs_flock(f, LOCK_EX, 0));
        OK(write(ready[1], "", 1));
        pause();
    }
    EQUAL(1, read(ready[0], &byte, 1));
    GOOD(memefs_open(fs, "/lock", O_RDWR, 0, &f));
    EQUAL(-EAGAIN, memefs_flock(f, LOCK_EX, 0));
    OK(kill(pid, SIGKILL));
    OK(waitpid(pid, NULL, 0));
    GOOD(memefs_flock(f, LOCK_EX, 60000)); /* a session's life is 20 s */
    GOOD(memefs_close(f));
    OK(fd = open("lock", O_RDWR));
    OK(flock(fd, LOCK_EX));
    OK(close(fd));
}

/* --- killed while it puts --------------------------------------------------------------------- */

/* What it was putting has no name. Returns what is used then. */
static size_t kill_putting(void)
{
    GOOD(memefs_mkdir(fs, "/putting", 0755));
    lib_begin_put(fs, "/putting/x");
    OK(kill(lib_putter.pid, SIGKILL));
    OK(waitpid(lib_putter.pid, NULL, 0));
    OK(close(lib_putter.go));
    GOOD(memefs_rmdir(fs, "/putting"));
    sleep(2); /* figures are a second old at most */
    return lib_used(fs);
}

/* Its session is over, and housekeeping comes to it. */
static void test_freed(size_t held)
{
    for (int i = 0; i < 60 && lib_used(fs) + LIB_STORED / 2 > held; i++)
        sleep(1);
    CHECK(lib_used(fs) + LIB_STORED / 2 <= held);
}

/* --- random arguments ------------------------------------------------------------------------- */

static uint64_t draw(uint64_t *state)
{
    uint64_t x = (*state += 0x9e3779b97f4a7c15ULL);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    return x ^ (x >> 31);
}

static int number(uint64_t *random)
{
    static const int some[] = {0,
                               1,
                               -1,
                               2,
                               7,
                               0644,
                               0x7fffffff,
                               (int)0x80000000,
                               AT_EMPTY_PATH,
                               O_CREAT | O_RDWR,
                               O_TMPFILE | O_RDWR,
                               AT_REMOVEDIR};
    uint64_t x = draw(random);

    return x % 4 == 0 ? (int)(x >> 8) : some[(x >> 8) % (sizeof some / sizeof *some)];
}

static const char *text(uint64_t *random)
{
    static const char *const some[] = {NULL,        "",
                                       "/",         ".",
                                       "..",        "/fuzz",
                                       "fuzz/a",    "fuzz/a/",
                                       "fuzz/b",    "../../fuzz/b",
                                       "loop",      "//fuzz//c",
                                       "fuzz/c/..", "user.x",
                                       "trusted.x", "system.posix_acl_access",
                                       "bad"};

    return some[draw(random) % (sizeof some / sizeof *some)];
}

static void one_call(uint64_t *r, struct memefs_file **f)
{
    struct memefs_lock lock = {.type = number(r), .start = number(r), .len = number(r)};
    struct timespec times[2] = {{number(r), number(r)}, {number(r), number(r)}};
    char buf[64];
    const struct iovec iov = {buf, sizeof buf};
    off_t off = number(r);
    struct stat st;

    switch (draw(r) % 24) {
    case 0:
        memefs_close(*f);
        *f = NULL;
        memefs_open(fs, text(r), number(r), (mode_t)number(r), f);
        break;
    case 1:
        memefs_fstatat(fs, *f, text(r), &st, number(r));
        break;
    case 2:
        memefs_mkdirat(fs, *f, text(r), (mode_t)number(r));
        break;
    case 3:
        memefs_mknodat(fs, *f, text(r), (mode_t)number(r), (dev_t)number(r));
        break;
    case 4:
        memefs_symlinkat(fs, text(r), *f, text(r));
        break;
    case 5:
        memefs_linkat(fs, *f, text(r), NULL, text(r), number(r));
        break;
    case 6:
        memefs_unlinkat(fs, *f, text(r), number(r));
        break;
    case 7:
        memefs_renameat(fs, *f, text(r), NULL, text(r), (unsigned)number(r));
        break;
    case 8:
        memefs_fchmodat(fs, *f, text(r), (mode_t)number(r) | 0700, number(r));
        break;
    case 9:
        memefs_utimensat(fs, *f, text(r), times, number(r));
        break;
    case 10:
        memefs_setxattr(fs, text(r), text(r), buf, (size_t)(number(r) & 63), number(r));
        break;
    case 11:
        memefs_getxattr(fs, text(r), text(r), buf, (size_t)(number(r) & 63));
        break;
    case 12:
        memefs_removexattr(fs, text(r), text(r));
        break;
    case 13:
        memefs_pread(*f, buf, sizeof buf, off);
        break;
    case 14:
        memefs_pwrite(*f, buf, sizeof buf, off & 0xfffff);
        break;
    case 15:
        memefs_lseek(*f, off, number(r));
        break;
    case 16:
        memefs_ftruncate(*f, off & 0xfffff);
        break;
    case 17:
        memefs_fallocate(*f, number(r), off & 0xfffff, number(r) & 0xfffff);
        break;
    case 18:
        memefs_lock(*f, &lock, 0);
        break;
    case 19:
        memefs_getlk(*f, &lock);
        break;
    case 20:
        memefs_flock(*f, number(r), 0);
        break;
    case 21:
        memefs_put(fs, text(r), buf, (size_t)(number(r) & 63), (unsigned)number(r));
        break;
    case 22:
        memefs_writev(*f, &iov, number(r) & 1);
        break;
    default:
        memefs_copy_file_range(*f, &off, *f, NULL, (size_t)(number(r) & 63),
                               (unsigned)number(r) & 1);
        break;
    }
}

static void test_random(void)
{
    const char *given = getenv("MFS_SEED");
    uint64_t random =
        given != NULL ? strtoull(given, NULL, 0) : (uint64_t)getpid() ^ (uint64_t)time(NULL);
    struct memefs_file *f = NULL;
    struct stat st;

    printf("MFS_SEED=%llu\n", (unsigned long long)random);
    for (int i = 0; i < 4000; i++)
        one_call(&random, &f);
    GOOD(memefs_close(f));
    GOOD(memefs_stat(fs, "/", &st));
}

int main(int argc, char **argv)
{
    size_t held;

    CHECK(argc > 1);
    OK(chdir(argv[1]));
    fs = lib_connect();
    test_nulls();
    test_lengths();
    test_other_connections();
    test_fork();
    held = kill_putting();
    test_killed();
    test_freed(held);
    test_random();
    GOOD(memefs_disconnect(fs));
    return 0;
}
