/* ctest: timeout=180
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

/* A symbolic link replaced by another one of the same name. */
static void symbolic(struct pair *p)
{
    int a = (int)pair_random(p, 2);
    char target[64], got[128];
    ssize_t n;

    snprintf(target, sizeof target, "file%u", p->round % 7);
    fs_put(pair_path(p, 0, "%s", target), target, strlen(target));
    if (p->round)
        OK(unlink(pair_path(p, a, "link")));
    OK(symlink(target, pair_path(p, a, "link")));
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

/* A directory removed and made again under the same name, with the other mount sitting in it. */
static void remade(struct pair *p)
{
    int a = (int)pair_random(p, 2), fd;
    struct stat old, new;

    if (p->round == 0)
        OK(mkdir(pair_path(p, a, "dir"), 0755));
    OK(chdir(pair_path(p, !a, "dir")));
    fd = pair_open(".", O_RDONLY | O_DIRECTORY);
    OK(fstat(fd, &old));
    fs_put("inside", "x", 1);
    EQUAL(1, pair_listed(pair_path(p, a, "dir"), "inside", NULL));
    FAILS(ENOTEMPTY, rmdir(pair_path(p, a, "dir")));
    OK(unlink(pair_path(p, a, "dir/inside")));
    pair_absent("inside");
    OK(rmdir(pair_path(p, a, "dir")));
    pair_absent(pair_path(p, !a, "dir"));
    FAILS(ENOENT, open("another", O_RDWR | O_CREAT, 0644));
    FAILS(ENOENT, mkdir("another", 0755));
    OK(mkdir(pair_path(p, a, "dir"), 0700));
    OK(stat(pair_path(p, !a, "dir"), &new));
    CHECK(new.st_ino != old.st_ino);
    EQUAL(0700, new.st_mode & 07777);
    FAILS(ENOENT, open("another", O_RDWR | O_CREAT, 0644));
    OK(fstat(fd, &new));
    EQUAL(old.st_ino, new.st_ino);
    EQUAL(0, new.st_nlink);
    OK(close(fd));
    fs_put(pair_path(p, !a, "dir/inside"), "y", 1);
    fs_expect(pair_path(p, a, "dir/inside"), "y", 1);
    OK(unlink(pair_path(p, a, "dir/inside")));
    OK(chdir("/"));
}

/* A directory renamed while the other mount sits in it or deep below: it goes along. */
static void moved(struct pair *p)
{
    int a = (int)pair_random(p, 2);
    const char *from = p->round % 2 ? "there/new" : "here/old";
    const char *to = p->round % 2 ? "here/old" : "there/new";

    if (p->round == 0) {
        OK(mkdir(pair_path(p, a, "here"), 0755));
        OK(mkdir(pair_path(p, a, "there"), 0755));
        OK(mkdir(pair_path(p, a, "here/old"), 0755));
        OK(mkdir(pair_path(p, a, "here/old/deep"), 0755));
    }
    fs_put(pair_path(p, !a, "%s/deep/file", from), "one", 3);
    OK(chdir(pair_path(p, !a, "%s/deep", from)));
    OK(rename(pair_path(p, a, "%s", from), pair_path(p, a, "%s", to)));
    pair_absent(pair_path(p, !a, "%s/deep/file", from));
    pair_absent(pair_path(p, !a, "%s", from));
    fs_expect("file", "one", 3);
    fs_expect(pair_path(p, !a, "%s/deep/file", to), "one", 3);
    fs_put("made inside", "two", 3);
    fs_expect(pair_path(p, a, "%s/deep/made inside", to), "two", 3);
    OK(unlink(pair_path(p, a, "%s/deep/made inside", to)));
    OK(unlink(pair_path(p, a, "%s/deep/file", to)));
    pair_absent("file");
    /* Another directory takes the old name. */
    OK(mkdir(pair_path(p, a, "%s", from), 0755));
    pair_absent(pair_path(p, !a, "%s/deep", from));
    OK(rmdir(pair_path(p, !a, "%s", from)));
    OK(chdir("/"));
}

/* Directories that a mount holds while another one removes them, and then sees much else. */
static void removed_held(struct pair *p)
{
    enum { HELD = 40, OTHERS = 400 };
    int a = (int)pair_random(p, 2), fd[HELD];
    struct stat st;

    for (unsigned i = 0; p->round == 0 && i < OTHERS; i++)
        OK(mknod(pair_path(p, a, "other%u", i), S_IFREG | 0644, 0));
    for (unsigned i = 0; i < HELD; i++) {
        OK(mkdir(pair_path(p, a, "held%u", i), 0755));
        fd[i] = pair_open(pair_path(p, !a, "held%u", i), O_PATH | O_DIRECTORY);
        OK(rmdir(pair_path(p, a, "held%u", i)));
    }
    for (unsigned i = 0; i < OTHERS; i++)
        OK(stat(pair_path(p, !a, "other%u", i), &st));
    for (unsigned i = 0; i < HELD; i++) {
        OK(fstat(fd[i], &st));
        EQUAL(0, st.st_nlink);
        CHECK(S_ISDIR(st.st_mode));
        FAILS(ENOENT, openat(fd[i], "new", O_RDWR | O_CREAT, 0644));
        FAILS(ENOENT, mkdirat(fd[i], "new", 0755));
        OK(close(fd[i]));
    }
}

/* Renames by a mount that holds a directory, and one below it, which the other mount has moved: by
 * what is held and by paths, and into itself. */
static void held_moved(struct pair *p)
{
    int a = (int)pair_random(p, 2), top, deep;

    OK(mkdir(pair_path(p, a, "was"), 0755));
    OK(mkdir(pair_path(p, a, "is"), 0755));
    OK(mkdir(pair_path(p, a, "was/top"), 0755));
    OK(mkdir(pair_path(p, a, "was/top/deep"), 0755));
    OK(mkdir(pair_path(p, a, "was/top/deep/er"), 0755));
    OK(chdir(pair_path(p, !a, "was/top/deep/er")));
    top = pair_open(pair_path(p, !a, "was/top"), O_RDONLY | O_DIRECTORY);
    deep = pair_open(pair_path(p, !a, "was/top/deep"), O_RDONLY | O_DIRECTORY);
    OK(rename(pair_path(p, a, "was/top"), pair_path(p, a, "is/top")));
    /* The first that this mount hears of it is in the middle of a rename. */
    FAILS(EINVAL, rename(pair_path(p, !a, "is/top"), pair_path(p, !a, "is/top/deep/er/loop")));
    FAILS(EINVAL, renameat(AT_FDCWD, pair_path(p, !a, "is/top"), deep, "loop"));
    FAILS(EINVAL, renameat(AT_FDCWD, pair_path(p, !a, "is"), AT_FDCWD, "loop"));
    OK(renameat(top, "deep", AT_FDCWD, pair_path(p, !a, "was/deep")));
    OK(stat(pair_path(p, a, "was/deep/er"), &(struct stat){0}));
    OK(rename(pair_path(p, a, "was/deep"), pair_path(p, a, "deep")));
    FAILS(EINVAL, rename(pair_path(p, !a, "deep"), pair_path(p, !a, "deep/er/loop")));
    OK(renameat(deep, "er", top, "er"));
    OK(rename(pair_path(p, !a, "is/top/er"), pair_path(p, !a, "deep/er")));
    fs_put("file", "x", 1);
    fs_expect(pair_path(p, a, "deep/er/file"), "x", 1);
    /* Below each other the other way round. */
    OK(rename(pair_path(p, a, "is/top"), pair_path(p, a, "deep/er/top")));
    OK(rename(pair_path(p, !a, "deep/er/top"), pair_path(p, !a, "top")));
    OK(rename(pair_path(p, !a, "deep"), pair_path(p, !a, "top/deep")));
    fs_expect(pair_path(p, !a, "top/deep/er/file"), "x", 1);
    OK(chdir("/"));
    OK(close(top));
    OK(close(deep));
    pair_remove_tree(pair_path(p, a, "top"));
    OK(rmdir(pair_path(p, !a, "was")));
    OK(rmdir(pair_path(p, !a, "is")));
}

/* A directory renamed over an empty one; a full one is refused. */
static void over_directory(struct pair *p)
{
    int a = (int)pair_random(p, 2);
    struct stat st, seen;

    OK(mkdir(pair_path(p, a, "one"), 0755));
    OK(mkdir(pair_path(p, !a, "two"), 0755));
    fs_put(pair_path(p, !a, "one/in one"), "1", 1);
    OK(stat(pair_path(p, !a, "one"), &st));
    fs_put(pair_path(p, !a, "two/in two"), "2", 1);
    FAILS(ENOTEMPTY, rename(pair_path(p, a, "one"), pair_path(p, a, "two")));
    OK(unlink(pair_path(p, !a, "two/in two")));
    OK(rename(pair_path(p, a, "one"), pair_path(p, a, "two")));
    pair_absent(pair_path(p, !a, "one"));
    OK(stat(pair_path(p, !a, "two"), &seen));
    EQUAL(st.st_ino, seen.st_ino);
    EQUAL(1, pair_listed(pair_path(p, !a, "two"), "in one", NULL));
    EQUAL(0, pair_listed(pair_path(p, !a, "two"), "in two", NULL));
    OK(unlink(pair_path(p, !a, "two/in one")));
    OK(rmdir(pair_path(p, a, "two")));
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

/* Waits until the other mount sees a directory's time of change: it may be a second late. */
static void same_change_time(struct pair *p, int a, const char *name)
{
    struct stat here, there;
    double start = pair_now();

    OK(stat(pair_path(p, a, "%s", name), &here));
    do {
        OK(stat(pair_path(p, !a, "%s", name), &there));
        if (pair_same_time(here.st_mtim, there.st_mtim) &&
            pair_same_time(here.st_ctim, there.st_ctim))
            return;
        usleep(20000);
    } while (pair_now() - start < 1.5);
    EQUAL(here.st_mtim.tv_sec, there.st_mtim.tv_sec);
    EQUAL(here.st_mtim.tv_nsec, there.st_mtim.tv_nsec);
    EQUAL(here.st_ctim.tv_nsec, there.st_ctim.tv_nsec);
}

static void links_become(struct pair *p, int m, const char *name, unsigned links, bool now)
{
    double start = pair_now();
    struct stat st;

    do {
        OK(stat(pair_path(p, m, "%s", name), &st));
    } while (!now && st.st_nlink != links && pair_now() - start < 1 && usleep(5000) == 0);
    EQUAL(links, st.st_nlink);
}

/* A directory's own attributes after changes in it: on the mount that made them at once, on others
 * within a second. */
static void parent(struct pair *p)
{
    int a = (int)pair_random(p, 2), last = a;
    struct stat before, st;
    unsigned links = 2 + pair_random(p, 3);

    OK(mkdir(pair_path(p, a, "parent"), 0755));
    for (unsigned i = 2; i < links; i++) {
        last = (int)pair_random(p, 2);
        OK(mkdir(pair_path(p, last, "parent/d%u", i), 0755));
        links_become(p, last, "parent", i + 1, true);
    }
    for (int m = 0; m < 2; m++)
        links_become(p, m, "parent", links, m == last);
    OK(stat(pair_path(p, a, "parent"), &before));
    usleep(5000);
    fs_put(pair_path(p, a, "parent/file"), "x", 1);
    OK(stat(pair_path(p, a, "parent"), &st));
    CHECK(!pair_same_time(before.st_mtim, st.st_mtim));
    CHECK(!pair_same_time(before.st_ctim, st.st_ctim));
    same_change_time(p, a, "parent");
    OK(unlink(pair_path(p, !a, "parent/file")));
    for (unsigned i = 2; i < links; i++) {
        last = (int)pair_random(p, 2);
        OK(rmdir(pair_path(p, last, "parent/d%u", i)));
        links_become(p, last, "parent", links - i + 1, true);
        links_become(p, !last, "parent", links - i + 1, false);
    }
    OK(rmdir(pair_path(p, !a, "parent")));
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
        {"come_and_go", .script = come_and_go},
        {"renamed", .script = renamed},
        {"attributes", .script = attributes},
        {"permission", .script = permission},
        {"extended", .script = extended},
        {"symbolic", .script = symbolic},
        {"link_count", .script = link_count},
        {"remade", .script = remade},
        {"removed_held", .script = removed_held, .cost = 100},
        {"moved", .script = moved},
        {"held_moved", .script = held_moved},
        {"over_directory", .script = over_directory},
        {"exchanged", .script = exchanged},
        {"parent", .script = parent, .cost = 10},
        {"listed", .script = listed, .cost = 10},
        {NULL},
    };

    if (geteuid()) {
        printf("SKIP: must be root\n");
        return 77;
    }
    return pair_main(argc, argv, scenarios);
}
