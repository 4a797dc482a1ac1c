/* Attributes: modes, owners, times, extended attributes, the file system's size. */
#include "fs_check.h"
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>

enum { some_uid = 12345, some_gid = 23456 };

/* Runs check in a child with that user's rights. */
static void as_user(uid_t uid, gid_t gid, void (*check)(void))
{
    int status;
    pid_t pid = fork();

    OK(pid);
    if (!pid) {
        OK(setgid(gid));
        OK(setuid(uid));
        check();
        _exit(0);
    }
    OK(waitpid(pid, &status, 0));
    EQUAL(0, status);
}

static void modes(void)
{
    fs_put("m", "x", 1);
    OK(chmod("m", 04711));
    EQUAL(04711, fs_stat("m").st_mode & 07777);
    OK(chmod("m", 0600));
    EQUAL(0600, fs_stat("m").st_mode & 07777);
}

static void stranger_is_refused(void)
{
    FAILS(EACCES, open("m", O_RDONLY));
    FAILS(EPERM, chmod("m", 0777));
    FAILS(EACCES, open("new", O_CREAT | O_WRONLY, 0644));
}

static void owner_works(void)
{
    struct stat st;

    fs_put("own/f", "mine", 4);
    st = fs_stat("own/f");
    EQUAL(some_uid, st.st_uid);
    EQUAL(some_gid, st.st_gid);
    fs_expect("own/f", "mine", 4);
    OK(unlink("own/f"));
}

static void sticky_protects(void)
{
    FAILS(EPERM, unlink("sticky/roots"));
}

static void writing_drops_setuid(void)
{
    int fd = open("own/s", O_WRONLY);

    OK(fd);
    fs_write_at(fd, "y", 1, 0);
    OK(close(fd));
    EQUAL(0777, fs_stat("own/s").st_mode & 07777);
}

static void owners(void)
{
    if (geteuid() != 0)
        return;
    as_user(some_uid, some_gid, stranger_is_refused);
    OK(mkdir("own", 0755));
    OK(chown("own", some_uid, some_gid));
    EQUAL(some_uid, fs_stat("own").st_uid);
    as_user(some_uid, some_gid, owner_works);

    fs_put("own/s", "x", 1);
    OK(chmod("own/s", 04777));
    as_user(some_uid, some_gid, writing_drops_setuid);
    OK(unlink("own/s"));

    OK(chmod("own", 02775)); /* set-group-ID directories hand their group down */
    fs_put("own/g", "", 0);
    EQUAL(some_gid, fs_stat("own/g").st_gid);
    OK(mkdir("own/d", 0755));
    CHECK(fs_stat("own/d").st_mode & S_ISGID);
    OK(rmdir("own/d"));
    OK(unlink("own/g"));
    OK(rmdir("own"));

    OK(mkdir("sticky", 0777));
    OK(chmod("sticky", 01777));
    fs_put("sticky/roots", "", 0);
    as_user(some_uid, some_gid, sticky_protects);
    OK(unlink("sticky/roots"));
    OK(rmdir("sticky"));
}

static bool later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Does reading a file that was written since it was last read change its time of access? That may
 * take a moment to be seen. */
static void expect_atime(const char *path, int flags, bool changes)
{
    struct stat before = fs_stat(path);
    bool changed = false;
    char byte;
    int fd = open(path, O_RDONLY | flags);

    OK(fd);
    EQUAL(0, posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)); /* not from the page cache */
    EQUAL(1, read(fd, &byte, 1));
    OK(close(fd));
    for (unsigned i = 0; i < 100 && !changed; i++) {
        changed = later(fs_stat(path).st_atim, before.st_atim);
        if (!changes && i == 10)
            break;
        usleep(changed ? 0 : 10000);
    }
    CHECK(changed == changes);
}

static void times(void)
{
    struct timespec set[2] = {{1000000000, 123456789}, {1100000000, 987654321}};
    struct stat before, after, dir_before;

    OK(utimensat(AT_FDCWD, "m", set, 0));
    before = fs_stat("m");
    EQUAL(1000000000, before.st_atim.tv_sec);
    EQUAL(123456789, before.st_atim.tv_nsec);
    EQUAL(1100000000, before.st_mtim.tv_sec);
    EQUAL(987654321, before.st_mtim.tv_nsec);

    dir_before = fs_stat(".");
    usleep(20000);
    OK(chmod("m", 0644));
    after = fs_stat("m");
    CHECK(later(after.st_ctim, before.st_ctim));
    EQUAL(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    fs_put("m", "longer", 6);
    CHECK(later(fs_stat("m").st_mtim, before.st_mtim));
    fs_put("m2", "", 0);
    CHECK(later(fs_stat(".").st_mtim, dir_before.st_mtim));
    CHECK(later(fs_stat(".").st_ctim, dir_before.st_ctim));
    OK(unlink("m2"));

    expect_atime("m", O_NOATIME, false);
    expect_atime("m", 0, true);
    set[0].tv_nsec = UTIME_OMIT;
    set[1].tv_nsec = UTIME_NOW;
    OK(utimensat(AT_FDCWD, "m", set, 0));
}

/* The listing must hold exactly the names given. */
static void expect_names(const char *path, size_t n, const char *const *names)
{
    char list[4096];
    ssize_t len = listxattr(path, list, sizeof list);
    size_t found = 0;

    OK(len);
    for (char *p = list; p < list + len; p += strlen(p) + 1) {
        if (strncmp(p, "user.", 5))
            continue;
        found++;
        for (size_t i = 0; i <= n; i++) {
            CHECK(i < n);
            if (!strcmp(p, names[i]))
                break;
        }
    }
    EQUAL(n, found);
}

static void extended_attributes(void)
{
    static const char *const two[] = {"user.a", "user.b"};
    char buf[128], big[4000];

    if (setxattr("m", "user.a", "1", 1, 0) == -1 && errno == ENOTSUP) {
        printf("no user xattrs here\n");
        return;
    }
    OK(setxattr("m", "user.b", "two", 3, XATTR_CREATE));
    FAILS(EEXIST, setxattr("m", "user.a", "x", 1, XATTR_CREATE));
    FAILS(ENODATA, setxattr("m", "user.c", "x", 1, XATTR_REPLACE));
    OK(setxattr("m", "user.a", "", 0, XATTR_REPLACE));
    EQUAL(0, getxattr("m", "user.a", buf, sizeof buf));
    EQUAL(3, getxattr("m", "user.b", NULL, 0));
    FAILS(ERANGE, getxattr("m", "user.b", buf, 2));
    EQUAL(3, getxattr("m", "user.b", buf, sizeof buf));
    CHECK(!memcmp(buf, "two", 3));
    expect_names("m", 2, two);
    OK(removexattr("m", "user.a"));
    FAILS(ENODATA, removexattr("m", "user.a"));
    FAILS(ENODATA, getxattr("m", "user.a", buf, sizeof buf));
    memset(big, 'v', sizeof big);
    OK(setxattr("m", "user.b", big, sizeof big, 0));
    EQUAL(sizeof big, getxattr("m", "user.b", NULL, 0));
    OK(rename("m", "moved"));
    EQUAL(sizeof big, getxattr("moved", "user.b", NULL, 0));
    OK(rename("moved", "m"));
}

static void space(void)
{
    struct statvfs before, after;
    char *data = calloc(1, 8 << 20);

    CHECK(data);
    OK(statvfs(".", &before));
    CHECK(before.f_blocks > 0 && before.f_bavail <= before.f_blocks);
    EQUAL(255, before.f_namemax);
    memset(data, 1, 8 << 20);
    fs_put("big", data, 8 << 20);
    OK(statvfs(".", &after));
    /* What nodes may hold is reckoned anew each second, by what their processes take besides. */
    CHECK(after.f_blocks > before.f_blocks - before.f_blocks / 16);
    CHECK(after.f_blocks < before.f_blocks + before.f_blocks / 16);
    CHECK(fs_stat("big").st_blocks * 512 >= 8 << 20);
    OK(unlink("big"));
    free(data);
}

/* --- what a change of content takes away ------------------------------------------------------ */

enum { SUID = 06755, CHANGES = 5 };

static void write_some(void)
{
    int fd = open("suid", O_WRONLY);

    OK(fd);
    EQUAL(1, write(fd, "y", 1));
    OK(close(fd));
}

static void truncate_it(void)
{
    OK(truncate("suid", 1));
}

static void empty_it(void)
{
    int fd = open("suid", O_WRONLY | O_TRUNC);

    OK(fd);
    OK(close(fd));
}

static void empty_by_create(void)
{
    int fd = open("suid", O_WRONLY | O_TRUNC | O_CREAT, 0600);

    OK(fd);
    OK(close(fd));
}

static void allocate(void)
{
    int fd = open("suid", O_WRONLY);

    OK(fd);
    OK(fallocate(fd, 0, 0, 10000));
    OK(close(fd));
}

/* A stranger's change takes both bits; root's may keep them. Capabilities go with anybody's. */
static void privileges(void)
{
    static void (*const change[CHANGES])(void) = {write_some, truncate_it, empty_it,
                                                  empty_by_create, allocate};
    static const unsigned char caps[20] = {0, 0, 0, 2, 0, 32};
    char value[64];

    if (geteuid() != 0)
        return;
    for (unsigned i = 0; i < CHANGES; i++) {
        fs_put("suid", "xyz", 3);
        OK(chmod("suid", SUID | 022));
        as_user(some_uid, some_gid, change[i]);
        EQUAL(0777, fs_stat("suid").st_mode & 07777);
        OK(chmod("suid", SUID));
        change[i]();
        EQUAL(SUID, fs_stat("suid").st_mode & 07777);
        OK(setxattr("suid", "security.capability", caps, sizeof caps, 0));
        change[i]();
        FAILS(ENODATA, getxattr("suid", "security.capability", value, sizeof value));
    }
    OK(chmod("suid", SUID));
    OK(chown("suid", some_uid, some_gid));
    EQUAL(0755, fs_stat("suid").st_mode & 07777);
    OK(unlink("suid"));
    OK(mkfifo("suid", 0600)); /* chown(2) takes them from all but directories */
    OK(chmod("suid", SUID));
    OK(chown("suid", some_uid, some_gid));
    EQUAL(0755, fs_stat("suid").st_mode & 07777);
    OK(unlink("suid"));
    OK(mkdir("suid", 0700));
    OK(chmod("suid", SUID));
    OK(chown("suid", some_uid, some_gid));
    EQUAL(SUID, fs_stat("suid").st_mode & 07777);
    OK(rmdir("suid"));
}

int main(int argc, char **argv)
{
    fs_enter(argc, argv);
    if (geteuid() == 0)
        OK(chmod(".", 0755));
    modes();
    owners();
    times();
    extended_attributes();
    space();
    privileges();
    OK(unlink("m"));
    fs_leave();
    return 0;
}
