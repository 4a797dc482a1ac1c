/* Names: directories, renames of every kind, special files, listings that stay true. */
#include "fs_check.h"
#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/sysmacros.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE  (1 << 1)
#endif

static void directories(void)
{
    OK(mkdir("d", 0750));
    EQUAL(0750, fs_stat("d").st_mode & 07777);
    EQUAL(2, fs_stat("d").st_nlink);
    FAILS(EEXIST, mkdir("d", 0755));
    FAILS(ENOENT, mkdir("no/d", 0755));
    OK(mkdir("d/e", 0755));
    EQUAL(3, fs_stat("d").st_nlink);
    FAILS(ENOTEMPTY, rmdir("d"));
    FAILS(EISDIR, unlink("d"));
    fs_put("d/f", "x", 1);
    FAILS(ENOTDIR, rmdir("d/f"));
    OK(rmdir("d/e"));
    EQUAL(2, fs_stat("d").st_nlink);
    FAILS(ENOTEMPTY, rmdir("d"));
    OK(unlink("d/f"));
    OK(rmdir("d"));
    FAILS(ENOENT, rmdir("d"));
}

static void long_names(void)
{
    char name[257];

    memset(name, 'n', sizeof name);
    name[255] = 0;
    fs_put(name, "long", 4);
    fs_expect(name, "long", 4);
    OK(unlink(name));
    name[255] = 'n';
    name[256] = 0;
    FAILS(ENAMETOOLONG, open(name, O_CREAT | O_WRONLY, 0644));
}

static void rename_files(void)
{
    fs_put("a", "A", 1);
    OK(rename("a", "b"));
    CHECK(!fs_exists("a"));
    fs_expect("b", "A", 1);
    fs_put("c", "C", 1);
    OK(rename("b", "c"));
    CHECK(!fs_exists("b"));
    fs_expect("c", "A", 1);
    OK(rename("c", "c"));
    FAILS(ENOENT, rename("absent", "c"));

    fs_put("d", "D", 1);
    FAILS(EEXIST, renameat2(AT_FDCWD, "c", AT_FDCWD, "d", RENAME_NOREPLACE));
    OK(renameat2(AT_FDCWD, "c", AT_FDCWD, "d", RENAME_EXCHANGE));
    fs_expect("c", "D", 1);
    fs_expect("d", "A", 1);
    OK(renameat2(AT_FDCWD, "c", AT_FDCWD, "e", RENAME_NOREPLACE));
    fs_expect("e", "D", 1);

    OK(link("e", "e2"));
    OK(rename("e", "e2")); /* the same file: nothing happens */
    CHECK(fs_exists("e") && fs_exists("e2"));
    OK(unlink("e"));
    OK(unlink("e2"));
    OK(unlink("d"));
}

static void rename_directories(void)
{
    OK(mkdir("x", 0755));
    OK(mkdir("x/y", 0755));
    OK(mkdir("z", 0755));
    fs_put("x/y/f", "deep", 4);
    FAILS(EINVAL, rename("x", "x/y/sub"));
    OK(rename("x/y", "z/y"));
    fs_expect("z/y/f", "deep", 4);
    EQUAL(2, fs_stat("x").st_nlink);
    EQUAL(3, fs_stat("z").st_nlink);
    OK(rename("z", "x")); /* over an empty directory */
    fs_expect("x/y/f", "deep", 4);
    OK(mkdir("w", 0755));
    FAILS(ENOTEMPTY, rename("w", "x"));
    fs_put("file", "", 0);
    FAILS(EISDIR, rename("file", "w"));
    FAILS(ENOTDIR, rename("w", "file"));
    OK(renameat2(AT_FDCWD, "file", AT_FDCWD, "w", RENAME_EXCHANGE));
    CHECK(S_ISDIR(fs_stat("file").st_mode) && S_ISREG(fs_stat("w").st_mode));
    OK(unlink("w"));
    OK(rmdir("file"));
    OK(unlink("x/y/f"));
    OK(rmdir("x/y"));
    OK(rmdir("x"));
}

/* ".." of a moved directory leads to its new parent, also for who stands in it. */
static void parent_of_moved(void)
{
    struct stat here;
    ino_t want;

    OK(mkdir("p", 0755));
    OK(mkdir("q", 0755));
    OK(mkdir("p/m", 0755));
    want = fs_stat("q").st_ino;
    OK(chdir("p/m"));
    OK(rename("../../p/m", "../../q/m"));
    OK(stat("..", &here));
    EQUAL(want, here.st_ino);
    OK(chdir("../.."));
    OK(rmdir("q/m"));
    OK(rmdir("q"));
    OK(rmdir("p"));
}

static void special_files(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = "sock"};
    char buf[4];
    int fd, s = socket(AF_UNIX, SOCK_STREAM, 0);

    OK(mkfifo("fifo", 0600));
    CHECK(S_ISFIFO(fs_stat("fifo").st_mode));
    fd = open("fifo", O_RDWR);
    OK(fd);
    EQUAL(3, write(fd, "abc", 3));
    EQUAL(3, read(fd, buf, 3));
    OK(close(fd));
    OK(unlink("fifo"));

    OK(s);
    OK(bind(s, (struct sockaddr *)&addr, sizeof addr));
    CHECK(S_ISSOCK(fs_stat("sock").st_mode));
    OK(close(s));
    OK(unlink("sock"));

    if (geteuid() == 0) {
        OK(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
        CHECK(S_ISCHR(fs_stat("null").st_mode));
        EQUAL(makedev(1, 3), fs_stat("null").st_rdev);
        OK(unlink("null"));
    }
}

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;

    CHECK(dir);
    while (readdir(dir))
        n++;
    OK(closedir(dir));
    return n;
}

/* Every name that is there all the time is listed exactly once while others come and go. */
static void listing_during_changes(void)
{
    enum { stable = 500 };
    char name[64], seen[stable] = {0};
    struct dirent *entry;
    DIR *dir;
    int step = 0;

    OK(mkdir("list", 0755));
    for (int i = 0; i < stable; i++) {
        snprintf(name, sizeof name, "list/stable%d", i);
        fs_put(name, "", 0);
        snprintf(name, sizeof name, "list/gone%d", i);
        fs_put(name, "", 0);
    }
    dir = opendir("list");
    CHECK(dir);
    while ((entry = readdir(dir))) {
        int i;

        if (sscanf(entry->d_name, "stable%d", &i) == 1) {
            CHECK(i >= 0 && i < stable && !seen[i]);
            seen[i] = 1;
        }
        if (step < stable) {
            snprintf(name, sizeof name, "list/gone%d", step);
            OK(unlink(name));
            snprintf(name, sizeof name, "list/new%d", step);
            fs_put(name, "", 0);
        }
        step++;
    }
    OK(closedir(dir));
    for (int i = 0; i < stable; i++)
        EQUAL(1, seen[i]);
    EQUAL(2 * stable + 2, count_entries("list"));
}

/* A position of telldir leads back to the same entry, also after others were removed. */
static void listing_positions(void)
{
    enum { max = 1200 };
    long where[max];
    char names[max][32];
    struct dirent *entry;
    DIR *dir = opendir("list");
    int n = 0;

    CHECK(dir);
    for (;;) {
        CHECK(n < max);
        where[n] = telldir(dir);
        entry = readdir(dir);
        if (!entry)
            break;
        snprintf(names[n++], sizeof names[0], "%.31s", entry->d_name);
    }
    EQUAL(1002, n);
    for (int i = n - 1; i >= 0; i -= 37) {
        seekdir(dir, where[i]);
        entry = readdir(dir);
        CHECK(entry && !strcmp(entry->d_name, names[i]));
    }
    for (int i = 0; i < n / 2; i++) {
        if (names[i][0] != '.')
            OK(unlinkat(dirfd(dir), names[i], 0));
    }
    seekdir(dir, where[n / 2]);
    entry = readdir(dir);
    CHECK(entry && !strcmp(entry->d_name, names[n / 2]));
    for (int i = n / 2; i < n; i++) {
        if (names[i][0] != '.')
            OK(unlinkat(dirfd(dir), names[i], 0));
    }
    rewinddir(dir);
    n = 0;
    while (readdir(dir))
        n++;
    EQUAL(2, n);
    OK(closedir(dir));
    OK(rmdir("list"));
}

int main(int argc, char **argv)
{
    fs_enter(argc, argv);
    directories();
    long_names();
    rename_files();
    rename_directories();
    parent_of_moved();
    special_files();
    listing_during_changes();
    listing_positions();
    fs_leave();
    return 0;
}
