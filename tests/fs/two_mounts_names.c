/* ctest: release timeout=180 long=30
 *
 * Names and attributes: what one mount has changed shows on the other as soon as the call has
 * returned, however warm its caches are. */
#include "fs_pair.h"
#include <sys/xattr.h>

/* Makes a mount look at a name in every way that might be remembered. */
static void warm(struct pair *p, int mount, const char *name)
{
    const char *path = pair_path(p, mount, "%s", name);
    struct stat st;
    int fd;

    (void)!lstat(path, &st);
    (void)!access(path, R_OK);
    fd = open(path, O_RDONLY | O_NONBLOCK);
    if (fd >= 0) {
        char c;

        (void)!read(fd, &c, 1);
        close(fd);
    }
    pair_listed(p->dir[mount], name, NULL);
}

/* The name is there, of that kind, once in the listing; or it is not there at all. */
static void expect_name(struct pair *p, int mount, const char *name, mode_t kind)
{
    const char *path = pair_path(p, mount, "%s", name);
    struct stat st;

    if (!kind) {
        pair_absent(path);
        EQUAL(0, pair_listed(p->dir[mount], name, NULL));
        return;
    }
    OK(lstat(path, &st));
    EQUAL(kind, st.st_mode & S_IFMT);
    EQUAL(1, pair_listed(p->dir[mount], name, NULL));
}

/* Makes a name of one of six kinds; gives back which. */
static mode_t make(struct pair *p, int mount, const char *name)
{
    const char *path = pair_path(p, mount, "%s", name);
    int fd;

    switch (pair_random(p, 6)) {
    case 0:
        OK(mkdir(path, 0755));
        return S_IFDIR;
    case 1:
        OK(symlink("some/where", path));
        return S_IFLNK;
    case 2:
        OK(mkfifo(path, 0644));
        return S_IFIFO;
    case 3:
        OK(mknod(path, S_IFREG | 0600, 0));
        return S_IFREG;
    case 4:
        OK(link(pair_path(p, mount, "source"), path));
        return S_IFREG;
    default:
        fd = pair_open(path, O_RDWR | O_CREAT | O_EXCL);
        OK(close(fd));
        return S_IFREG;
    }
}

/* A name comes and goes, each time of another kind. */
static void come_and_go(struct pair *p)
{
    int a = (int)pair_random(p, 2), b = pair_random(p, 4) ? !a : a;
    char name[32];
    mode_t kind;

    if (p->round == 0)
        fs_put(pair_path(p, 0, "source"), "source", 6);
    snprintf(name, sizeof name, "name%u", pair_random(p, 4));
    warm(p, !a, name);
    kind = make(p, a, name);
    expect_name(p, !a, name, kind);
    if (pair_random(p, 2))
        warm(p, a, name);
    OK(remove(pair_path(p, b, "%s", name)));
    expect_name(p, !b, name, 0);
    expect_name(p, b, name, 0);
}

/* rename within a directory and across, over something that was there or not. */
static void renamed(struct pair *p)
{
    int a = (int)pair_random(p, 2);
    const char *from = pair_random(p, 2) ? "d1/from" : "d2/from";
    const char *to = pair_random(p, 2) ? "d1/to" : "d2/to";
    bool over = pair_random(p, 2);
    struct stat before, after;

    if (p->round == 0) {
        OK(mkdir(pair_path(p, a, "d1"), 0755));
        OK(mkdir(pair_path(p, a, "d2"), 0755));
    }
    fs_put(pair_path(p, pair_random(p, 2), "%s", from), "from", 4);
    if (over)
        fs_put(pair_path(p, pair_random(p, 2), "%s", to), "overwritten", 11);
    warm(p, !a, from);
    warm(p, !a, to);
    OK(stat(pair_path(p, !a, "%s", from), &before));
    OK(rename(pair_path(p, a, "%s", from), pair_path(p, a, "%s", to)));
    pair_absent(pair_path(p, !a, "%s", from));
    OK(stat(pair_path(p, !a, "%s", to), &after));
    EQUAL(before.st_ino, after.st_ino);
    EQUAL(1, after.st_nlink);
    fs_expect(pair_path(p, !a, "%s", to), "from", 4);
    for (int i = 1; i <= 2; i++) {
        const char *dir = pair_path(p, !a, "d%d", i);
        bool here = to[1] == '0' + i;
        unsigned total;

        EQUAL(here, pair_listed(dir, "to", &total));
        EQUAL(here, total);
    }
    OK(unlink(pair_path(p, pair_random(p, 2), "%s", to)));
}

/* One change of a file's attributes. */
static void change_attribute(struct pair *p, int mount, const char *name)
{
    const char *path = pair_path(p, mount, "%s", name);
    struct timespec times[2] = {
        {.tv_sec = pair_random(p, 2000000000), .tv_nsec = pair_random(p, 1000000000)},
        {.tv_sec = pair_random(p, 2000000000), .tv_nsec = pair_random(p, 1000000000)}};

    switch (pair_random(p, 4)) {
    case 0:
        OK(chmod(path, pair_random(p, 07777)));
        break;
    case 1:
        OK(chown(path, pair_random(p, 65000), pair_random(p, 65000)));
        break;
    case 2:
        OK(utimensat(AT_FDCWD, path, times, 0));
        break;
    default:
        OK(truncate(path, pair_random(p, 1 << 22)));
    }
}

/* chmod, chown, utimens, truncate: the other mount's stat and fstat agree at once. */
static void attributes(struct pair *p)
{
    static int fd[2] = {-1, -1};
    int a = (int)pair_random(p, 2);
    struct stat here, there, by_fd;

    for (int i = 0; i < 2 && p->round == 0; i++)
        fd[i] = pair_open(pair_path(p, i, "file"), O_RDWR | O_CREAT);
    warm(p, !a, "file");
    change_attribute(p, a, "file");
    OK(stat(pair_path(p, !a, "file"), &there));
    OK(stat(pair_path(p, a, "file"), &here));
    pair_same_attributes(&here, &there);
    OK(fstat(fd[!a], &by_fd));
    pair_same_attributes(&here, &by_fd);
}

/* The kernel checks permissions by what it has cached: a change counts for the other mount's users.
 */
static void permission(struct pair *p)
{
    int a = (int)pair_random(p, 2), fd;
    bool allowed = pair_random(p, 2);

    if (p->round == 0) {
        OK(mkdir(pair_path(p, a, "dir"), 0777));
        fs_put(pair_path(p, a, "dir/file"), "x", 1);
    }
    if (pair_random(p, 2)) {
        OK(chmod(pair_path(p, a, "dir"), 0755));
        OK(chmod(pair_path(p, a, "dir/file"), allowed ? 0644 : 0600));
    } else {
        OK(chmod(pair_path(p, a, "dir/file"), 0644));
        OK(chmod(pair_path(p, a, "dir"), allowed ? 0755 : 0700));
    }
    OK(seteuid(12345));
    fd = open(pair_path(p, !a, "dir/file"), O_RDONLY);
    if (allowed) {
        OK(fd);
        OK(close(fd));
    } else {
        EQUAL(-1, fd);
        EQUAL(EACCES, errno);
    }
    OK(seteuid(0));
}

/* Extended attributes set, changed and removed. */
static void extended(struct pair *p)
{
    int a = (int)pair_random(p, 2);
    char name[32], value[300], got[512], list[4096];
    size_t len = pair_random(p, sizeof value);
    const char *here, *there;
    bool listed = false;
    ssize_t n;

    if (p->round == 0)
        fs_put(pair_path(p, 0, "file"), "x", 1);
    snprintf(name, sizeof name, "user.name%u", pair_random(p, 5));
    memset(value, 'a' + (int)pair_random(p, 26), sizeof value);
    here = pair_path(p, a, "file");
    there = pair_path(p, !a, "file");
    OK(setxattr(here, name, value, len, 0));
    EQUAL(len, getxattr(there, name, got, sizeof got));
    CHECK(!memcmp(got, value, len));
    n = listxattr(there, list, sizeof list);
    OK(n);
    for (char *s = list; s < list + n; s += strlen(s) + 1)
        listed = listed || !strcmp(s, name);
    CHECK(listed);
    if (pair_random(p, 2)) {
        OK(removexattr(here, name));
        FAILS(ENODATA, getxattr(there, name, got, sizeof got));
    }
}

/* A symbolic link replaced by another one of the same name, removed before or not: what it says,
 * which kernels keep, is that of the new one. */
static void symbolic(struct pair *p)
{
    int a = (int)pair_random(p, 2);
    char target[64], got[128];
    ssize_t n;

    snprintf(target, sizeof target, "file%u", p->round % 7);
    fs_put(pair_path(p, 0, "%s", target), target, strlen(target));
    if (p->round && pair_random(p, 2))
        OK(unlink(pair_path(p, a, "link")));
    OK(symlink(target, pair_path(p, a, "new link")));
    OK(rename(pair_path(p, a, "new link"), pair_path(p, a, "link")));
    n = readlink(pair_path(p, !a, "link"), got, sizeof got);
    EQUAL(strlen(target), n);
    CHECK(!memcmp(got, target, (size_t)n));
    fs_expect(pair_path(p, !a, "link"), target, strlen(target));
}

/* Link counts, as links come and go on both mounts. */
static void link_count(struct pair *p)
{
    static unsigned links = 1;
    static bool there[8];
    int a = (int)pair_random(p, 2);
    unsigned i = pair_random(p, 8);
    struct stat st;

    if (p->round == 0)
        fs_put(pair_path(p, 0, "linked"), "x", 1);
    if (there[i])
        OK(unlink(pair_path(p, a, "link%u", i)));
    else
        OK(link(pair_path(p, a, "linked"), pair_path(p, a, "link%u", i)));
    links += there[i] ? -1 : 1;
    there[i] = !there[i];
    OK(stat(pair_path(p, !a, "linked"), &st));
    EQUAL(links, st.st_nlink);
    for (unsigned j = 0; j < 8; j++) {
        if (!there[j])
            continue;
        OK(stat(pair_path(p, !a, "link%u", j), &st));
        EQUAL(links, st.st_nlink);
    }
}

/* EXCHANGE swaps two names whatever they are; NOREPLACE never replaces. */
static void exchanged(struct pair *p)
{
    int a = (int)pair_random(p, 2);
    const char *one = pair_random(p, 2) ? "x1/one" : "one",
               *two = pair_random(p, 2) ? "x2/two" : "two";
    struct stat before[2], after[2];

    if (p->round == 0) {
        OK(mkdir(pair_path(p, a, "x1"), 0755));
        OK(mkdir(pair_path(p, a, "x2"), 0755));
        fs_put(pair_path(p, 0, "source"), "x", 1);
    }
    make(p, !a, one);
    make(p, !a, two);
    OK(lstat(pair_path(p, !a, "%s", one), &before[0]));
    OK(lstat(pair_path(p, !a, "%s", two), &before[1]));
    FAILS(EEXIST, renameat2(AT_FDCWD, pair_path(p, a, "%s", one), AT_FDCWD,
                            pair_path(p, a, "%s", two), RENAME_NOREPLACE));
    OK(renameat2(AT_FDCWD, pair_path(p, a, "%s", one), AT_FDCWD, pair_path(p, a, "%s", two),
                 RENAME_EXCHANGE));
    OK(lstat(pair_path(p, !a, "%s", one), &after[0]));
    OK(lstat(pair_path(p, !a, "%s", two), &after[1]));
    EQUAL(before[1].st_ino, after[0].st_ino);
    EQUAL(before[0].st_ino, after[1].st_ino);
    EQUAL(before[1].st_mode, after[0].st_mode);
    EQUAL(before[0].st_mode, after[1].st_mode);
    OK(remove(pair_path(p, !a, "%s", one)));
    OK(renameat2(AT_FDCWD, pair_path(p, a, "%s", two), AT_FDCWD, pair_path(p, a, "%s", one),
                 RENAME_NOREPLACE));
    pair_absent(pair_path(p, !a, "%s", two));
    OK(remove(pair_path(p, !a, "%s", one)));
    FAILS(ENOENT, renameat2(AT_FDCWD, pair_path(p, a, "%s", one), AT_FDCWD,
                            pair_path(p, a, "%s", two), RENAME_EXCHANGE));
}

/* Many names made at one go are all listed on the other mount, and gone when they were removed. */
static void listed(struct pair *p)
{
    int a = (int)pair_random(p, 2);
    unsigned count = pair_random(p, 8) ? pair_random(p, 60) : 1500, total;

    OK(mkdir(pair_path(p, a, "full"), 0755));
    for (unsigned i = 0; i < count; i++)
        OK(close(pair_open(pair_path(p, a, "full/file%u", i), O_CREAT | O_WRONLY)));
    pair_listed(pair_path(p, !a, "full"), "", &total);
    EQUAL(count, total);
    for (unsigned i = 0; i < count; i += 2)
        OK(unlink(pair_path(p, !a, "full/file%u", i)));
    pair_listed(pair_path(p, a, "full"), "", &total);
    EQUAL(count / 2, total);
    for (unsigned i = 1; i < count; i += 2)
        OK(unlink(pair_path(p, a, "full/file%u", i)));
    pair_listed(pair_path(p, !a, "full"), "", &total);
    EQUAL(0, total);
    OK(rmdir(pair_path(p, !a, "full")));
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"come_and_go", .script = come_and_go},   {"renamed", .script = renamed},
        {"attributes", .script = attributes},     {"permission", .script = permission},
        {"extended", .script = extended},         {"symbolic", .script = symbolic},
        {"link_count", .script = link_count},     {"exchanged", .script = exchanged},
        {"listed", .script = listed, .cost = 10}, {NULL},
    };

    if (geteuid()) {
        printf("SKIP: must be root\n");
        return 77;
    }
    return pair_main(argc, argv, scenarios);
}
