/* Files of no name (open(2) with O_TMPFILE, as systemd, git and overlayfs make them): they can be
 * used, get a name once, and go with their last descriptor. */
#include "fs_check.h"

enum { SIZE = 3 << 20 };

static char there[4096]; /* the same directory on another mount, if there is one */

static int nameless(int flags, mode_t mode)
{
    int fd = open(".", O_TMPFILE | flags, mode);

    if (fd == -1 && errno == EOPNOTSUPP)
        fs_skip("no O_TMPFILE here");
    OK(fd);
    return fd;
}

static int give_name(int fd, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static struct stat fstat_of(int fd)
{
    struct stat st;

    OK(fstat(fd, &st));
    return st;
}

static void expect_there(const char *name, const void *data, size_t len)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/%s", there, name);
    fs_expect(path, data, len);
}

static void gets_a_name(void)
{
    int fd = nameless(O_RDWR, 0666);
    struct stat st = fstat_of(fd);

    EQUAL(0, st.st_nlink);
    EQUAL(S_IFREG | 0644, st.st_mode);
    EQUAL(geteuid(), st.st_uid);
    fs_write_at(fd, "hello", 5, 0);
    OK(fchmod(fd, 0600));
    EQUAL(0, fstat_of(fd).st_nlink);
    fs_put("taken", "", 0);
    FAILS(EEXIST, give_name(fd, "taken"));
    EQUAL(0, fstat_of(fd).st_nlink);
    OK(give_name(fd, "named"));
    EQUAL(1, fstat_of(fd).st_nlink);
    fs_write_at(fd, "J", 1, 0);
    OK(close(fd));
    expect_there("named", "Jello", 5);
    EQUAL(0600 | S_IFREG, fs_stat("named").st_mode);
    OK(unlink("named"));
    OK(unlink("taken"));
}

/* Names in many directories' partitions; each has its own file. */
static void many_names(void)
{
    char name[32];

    for (int i = 0; i < 20; i++) {
        int fd = nameless(O_WRONLY, 0644);

        snprintf(name, sizeof name, "many%d", i);
        CHECK(write(fd, name, strlen(name)) == (ssize_t)strlen(name));
        OK(linkat(fd, "", AT_FDCWD, name, AT_EMPTY_PATH));
        OK(close(fd));
        expect_there(name, name, strlen(name));
        OK(unlink(name));
    }
}

/* Once it had a name it is like any other file; with O_EXCL it gets none. */
static void no_second_birth(void)
{
    int fd = nameless(O_RDWR, 0644);

    OK(give_name(fd, "once"));
    OK(unlink("once"));
    FAILS(ENOENT, give_name(fd, "twice"));
    OK(close(fd));
    fd = nameless(O_RDWR | O_EXCL, 0644);
    fs_write_at(fd, "x", 1, 0);
    FAILS(ENOENT, give_name(fd, "never"));
    OK(close(fd));
    FAILS(EINVAL, open(".", O_TMPFILE | O_RDONLY, 0644));
}

/* A user's program of no name does not become root's. */
static void privileges(void)
{
    int fd;

    if (geteuid() != 0)
        return;
    fd = nameless(O_RDWR, 0644);
    OK(fchown(fd, 1000, 1000));
    OK(fchmod(fd, 06755));
    EQUAL(S_IFREG | 06755, fstat_of(fd).st_mode);
    OK(fchown(fd, 0, 0));
    EQUAL(S_IFREG | 0755, fstat_of(fd).st_mode);
    OK(close(fd));
}

static void mapped_and_large(void)
{
    unsigned char *data = malloc(SIZE);
    int fd = nameless(O_RDWR, 0644);

    CHECK(data);
    fs_fill(data, SIZE, 0, 1);
    fs_write_at(fd, data, SIZE, 0);
    OK(fsync(fd));
    OK(give_name(fd, "large"));
    OK(close(fd));
    expect_there("large", data, SIZE);
    OK(unlink("large"));
    fd = nameless(O_RDWR, 0644);
    fs_write_at(fd, data, SIZE, 0);
    OK(close(fd)); /* and all of it is gone */
    free(data);
}

int main(int argc, char **argv)
{
    char here[2048];

    fs_enter(argc, argv);
    CHECK(getcwd(here, sizeof here));
    snprintf(there, sizeof there, "%s/%s", argc > 2 ? argv[2] : argv[1], strrchr(here, '/') + 1);
    gets_a_name();
    many_names();
    no_second_birth();
    privileges();
    mapped_and_large();
    fs_leave();
    return 0;
}
