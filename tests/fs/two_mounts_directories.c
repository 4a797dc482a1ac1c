/* ctest: release timeout=180 long=40
 *
 * Directories that one mount sits in, holds or has just seen, while the other one removes them,
 * makes them again, moves them, or changes what is in them. */
#include "fs_pair.h"

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

/* Changes an entry of the directory in one of six ways. */
static void change_entry(struct pair *p, int m, unsigned how)
{
    switch (how) {
    case 0:
        fs_put(pair_path(p, m, "set/new"), "x", 1);
        break;
    case 1:
        OK(unlink(pair_path(p, m, "set/file")));
        break;
    case 2:
        OK(mkdir(pair_path(p, m, "set/dir"), 0755));
        break;
    case 3:
        OK(rmdir(pair_path(p, m, "set/sub")));
        break;
    case 4:
        OK(link(pair_path(p, m, "set/file"), pair_path(p, m, "set/linked")));
        break;
    default:
        OK(rename(pair_path(p, m, "set/file"), pair_path(p, m, "set/moved")));
    }
}

/* Waits until a mount's time of the directory is, or is not, the one that was set. */
static void shows_time(struct pair *p, int m, struct timespec set, bool is)
{
    double start = pair_now();
    struct stat st;

    do {
        OK(stat(pair_path(p, m, "set"), &st));
    } while (pair_same_time(st.st_mtim, set) != is && pair_now() - start < 1.5 &&
             usleep(20000) == 0);
    CHECK(pair_same_time(st.st_mtim, set) == is);
    CHECK(labs(st.st_ctim.tv_sec - time(NULL)) < 60);
    CHECK(is || labs(st.st_mtim.tv_sec - time(NULL)) < 60);
}

/* make, rsync and backups go by a directory's time: what was set by hand, be it ahead or back,
 * holds against changes of entries that came before, and goes with the next one, on any mount. */
static void times_set(struct pair *p)
{
    int setter = (int)pair_random(p, 2), m = (int)pair_random(p, 2);
    struct timespec ts[2] = {{0}, {time(NULL) + (pair_random(p, 2) ? 3600 : -3600), 5}};
    struct stat st;

    OK(mkdir(pair_path(p, setter, "set"), 0755));
    OK(mkdir(pair_path(p, setter, "set/sub"), 0755));
    fs_put(pair_path(p, m, "set/file"), "x", 1);
    fs_put(pair_path(p, !setter, "set/before"), "x", 1);
    OK(utimensat(AT_FDCWD, pair_path(p, setter, "set"), ts, 0));
    for (int side = 0; side < 2; side++) {
        OK(stat(pair_path(p, side, "set"), &st));
        CHECK(pair_same_time(st.st_mtim, ts[1]));
    }
    usleep(300000); /* what was not told of the changes before is now */
    for (int side = 0; side < 2; side++)
        shows_time(p, side, ts[1], true);
    change_entry(p, m, p->round % 6);
    OK(stat(pair_path(p, m, "set"), &st));
    CHECK(labs(st.st_mtim.tv_sec - time(NULL)) < 60);
    shows_time(p, !m, ts[1], false);
    pair_remove_tree(pair_path(p, m, "set"));
}

/* The same of a file, and of writing, appending and cutting it. */
static void file_times_set(struct pair *p)
{
    int setter = (int)pair_random(p, 2), m = (int)pair_random(p, 2);
    struct timespec ts[2] = {{time(NULL) + 7200, 5}, {time(NULL) + 3600, 5}};
    unsigned how = p->round % 3;
    struct stat st;
    int fd;

    fs_put(pair_path(p, !setter, "dated"), "content", 7);
    fd = pair_open(pair_path(p, m, "dated"), O_RDWR | (how == 1 ? O_APPEND : 0));
    OK(utimensat(AT_FDCWD, pair_path(p, setter, "dated"), ts, 0));
    for (int side = 0; side < 2; side++) {
        OK(stat(pair_path(p, side, "dated"), &st));
        CHECK(pair_same_time(st.st_mtim, ts[1]) && pair_same_time(st.st_atim, ts[0]));
    }
    if (how == 2)
        OK(ftruncate(fd, 3));
    else
        EQUAL(1, write(fd, "x", 1));
    OK(fstat(fd, &st));
    CHECK(labs(st.st_mtim.tv_sec - time(NULL)) < 60);
    OK(close(fd));
    for (int side = 0; side < 2; side++) {
        OK(stat(pair_path(p, side, "dated"), &st));
        CHECK(labs(st.st_mtim.tv_sec - time(NULL)) < 60);
        CHECK(labs(st.st_ctim.tv_sec - time(NULL)) < 60);
    }
    OK(unlink(pair_path(p, m, "dated")));
}

/* A listing brings the kernel what is in a directory that the other mount has moved, under its new
 * name. What is changed through a descriptor from before (by the same kernel, which takes it for
 * another directory) shows there at once. Found by two_mounts_model, --seed 1795686202. */
static void listed_elsewhere(struct pair *p)
{
    int a = (int)pair_random(p, 2), fd;
    const char *from = p->round % 2 ? "two" : "one", *to = p->round % 2 ? "one" : "two";
    struct stat st;

    if (p->round == 0)
        OK(mkdir(pair_path(p, a, "one"), 0755));
    fs_put(pair_path(p, a, "%s/file", from), "x", 1);
    OK(symlink("nowhere", pair_path(p, a, "%s/link", from)));
    fd = pair_open(pair_path(p, a, "%s", from), O_RDONLY | O_DIRECTORY);
    OK(rename(pair_path(p, !a, "%s", from), pair_path(p, !a, "%s", to)));
    EQUAL(1, pair_listed(pair_path(p, a, "%s", to), "file", NULL));
    OK(renameat2(fd, "file", fd, "link", RENAME_EXCHANGE));
    OK(lstat(pair_path(p, a, "%s/file", to), &st));
    CHECK(S_ISLNK(st.st_mode));
    EQUAL(1, pair_listed(pair_path(p, a, "%s", to), "link", NULL));
    OK(unlinkat(fd, "link", 0));
    pair_absent(pair_path(p, a, "%s/link", to));
    OK(unlinkat(fd, "file", 0));
    OK(close(fd));
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"remade", .script = remade},
        {"removed_held", .script = removed_held, .cost = 100},
        {"moved", .script = moved},
        {"held_moved", .script = held_moved},
        {"over_directory", .script = over_directory},
        {"listed_elsewhere", .script = listed_elsewhere, .cost = 10},
        {"parent", .script = parent, .cost = 10},
        {"times_set", .script = times_set, .cost = 30},
        {"file_times_set", .script = file_times_set},
        {NULL},
    };

    if (geteuid()) {
        printf("SKIP: must be root\n");
        return 77;
    }
    return pair_main(argc, argv, scenarios);
}
