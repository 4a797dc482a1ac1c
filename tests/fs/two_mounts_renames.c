/* ctest: timeout=180 races long=30
 *
 * Renames of two mounts at the same moment: what is renamed has one name at any time, and the
 * outcome is one of those that some order of the two could have had. */
#include "fs_race.h"

#include <pthread.h>
#include <sys/utsname.h>

/* Two files renamed to one name: one of them is there afterwards, the other is gone for good. */
static void rename_same_target(struct pair *p)
{
    struct stat mine, target;
    int fd;

    fs_put(pair_mine(p, "from%d", p->side), p->side ? "1" : "0", 1);
    fd = pair_open(pair_mine(p, "from%d", p->side), O_RDONLY);
    start(p);
    OK(rename(pair_mine(p, "from%d", p->side), pair_mine(p, "to")));
    pair_meet(p);
    OK(fstat(fd, &mine));
    OK(stat(pair_mine(p, "to"), &target));
    EQUAL(mine.st_ino == target.st_ino, mine.st_nlink);
    EQUAL(1, target.st_nlink);
    atomic_store(&p->shared->value[DATA + p->side], (int64_t)mine.st_nlink);
    pair_meet(p);
    EQUAL(1, atomic_load(&p->shared->value[DATA]) + atomic_load(&p->shared->value[DATA + 1]));
    pair_absent(pair_mine(p, "from%d", p->side));
    OK(close(fd));
    pair_meet(p);
    if (p->side == 0)
        OK(unlink(pair_mine(p, "to")));
}

/* Two exchanges of the same names: whatever their order, both files keep one name each. (That the
 * two cancel each other cannot be asked for: where a kernel finds one inode behind both names, as
 * the other mount has exchanged them between its two look-ups, it calls that done by itself.) */
static void double_exchange(struct pair *p)
{
    char left[2] = "", right[2] = "";
    int fd[2];

    if (p->side == 0) {
        fs_put(pair_mine(p, "left"), "L", 1);
        fs_put(pair_mine(p, "right"), "R", 1);
    }
    start(p);
    OK(renameat2(AT_FDCWD, pair_mine(p, "left"), AT_FDCWD, pair_mine(p, "right"), RENAME_EXCHANGE));
    pair_meet(p);
    fd[0] = pair_open(pair_mine(p, "left"), O_RDONLY);
    fd[1] = pair_open(pair_mine(p, "right"), O_RDONLY);
    fs_read_at(fd[0], left, 1, 0);
    fs_read_at(fd[1], right, 1, 0);
    CHECK((left[0] == 'L' && right[0] == 'R') || (left[0] == 'R' && right[0] == 'L'));
    OK(close(fd[0]));
    OK(close(fd[1]));
    EQUAL(1, fs_stat(pair_mine(p, "left")).st_nlink);
    EQUAL(1, fs_stat(pair_mine(p, "right")).st_nlink);
}

/* Two directories moved into each other: one succeeds, or none; never a loop cut off from the rest.
 */
static void directory_loop(struct pair *p)
{
    static const char *const from[2] = {"a", "b"}, *const to[2] = {"b/deep/a", "a/deep/b"};
    int rc;

    if (p->side == 0) {
        for (int i = 0; i < 2; i++) {
            OK(mkdir(pair_mine(p, "%s", from[i]), 0755));
            OK(mkdir(pair_mine(p, "%s/deep", from[i]), 0755));
        }
    }
    start(p);
    rc = rename(pair_mine(p, "%s", from[p->side]), pair_mine(p, "%s", to[p->side]));
    note(p, rc);
    if (rc < 0)
        CHECK(errno == EINVAL || errno == ENOENT);
    pair_meet(p);
    EQUAL(1, (noted(p, 0) == 0) + (noted(p, 1) == 0));
    rc = noted(p, 0) == 0 ? 0 : 1;
    CHECK(S_ISDIR(fs_stat(pair_mine(p, "%s/deep", to[rc])).st_mode));
    pair_absent(pair_mine(p, "%s", from[rc]));
    EQUAL(3, fs_stat(pair_mine(p, "%s", from[!rc])).st_nlink);
    pair_meet(p);
    if (p->side == 0)
        pair_remove_tree(pair_mine(p, "%s", from[!rc]));
}

/* Can the kernel forget names while a rename has their parent locked? */
static bool kernel_forgets_at_once(void)
{
    struct utsname u;
    int major = 0, minor = 0;

    OK(uname(&u));
    return sscanf(u.release, "%d.%d", &major, &minor) == 2 && major * 1000 + minor >= 6016;
}

/* Looks the other side's old name up until it has renamed it, and then once more. */
static void *look_on(void *arg)
{
    struct pair *p = arg;
    char old[PAIR_PATH + 16];
    struct stat st;

    snprintf(old, sizeof old, "%s/old%d", p->dir[p->side], !p->side);
    while (!atomic_load(&p->shared->value[DATA + !p->side]))
        if (lstat(old, &st) < 0)
            EQUAL(ENOENT, errno);
    if (!kernel_forgets_at_once())
        return NULL;
    if (lstat(old, &st) == 0)
        fs_fail(__FILE__, __LINE__, "%s is still there", old);
    EQUAL(ENOENT, errno);
    return NULL;
}

/* Both rename a directory of one parent at once, and each mount has used the other's name: whoever
 * looks for a name after the call that took it away finds it no more, also on the mount whose own
 * rename is still under way. */
static void crossed_renames(struct pair *p)
{
    pthread_t looker;

    OK(mkdir(pair_mine(p, "old%d", p->side), 0755));
    pair_meet(p);
    if (pair_random(p, 2))
        CHECK(S_ISDIR(fs_stat(pair_mine(p, "old%d", !p->side)).st_mode));
    EQUAL(0, pthread_create(&looker, NULL, look_on, p));
    start(p);
    OK(rename(pair_mine(p, "old%d", p->side), pair_mine(p, "new%d", p->side)));
    atomic_store(&p->shared->value[DATA + p->side], 1);
    EQUAL(0, pthread_join(looker, NULL));
    CHECK(S_ISDIR(fs_stat(pair_mine(p, "new%d", !p->side)).st_mode));
    pair_meet(p);
    OK(rmdir(pair_mine(p, "new%d", p->side)));
}

/* Opens what is being replaced all the time. A kernel looks the name up, opens the inode, and when
 * that has been replaced meanwhile tries just once again: ESTALE is the answer to two misses in a
 * row. */
static int open_replaced(struct pair *p)
{
    int fd = -1;

    for (unsigned tries = 0; fd < 0 && tries < 50; tries++) {
        fd = open(pair_mine(p, "target"), O_RDONLY);
        if (fd < 0)
            EQUAL(ESTALE, errno);
    }
    OK(fd);
    return fd;
}

/* One side replaces a file by rename again and again; the other always finds it, and whole. */
static void never_absent(struct pair *p)
{
    unsigned char buf[5000];
    int fd;

    if (p->side == 0) {
        memset(buf, 1, sizeof buf);
        fs_put(pair_mine(p, "target"), buf, sizeof buf);
    }
    pair_meet(p);
    for (unsigned i = 2; p->side == 0 && i < 40; i++) {
        memset(buf, (int)i, sizeof buf);
        fs_put(pair_mine(p, "new"), buf, sizeof buf);
        OK(rename(pair_mine(p, "new"), pair_mine(p, "target")));
    }
    if (p->side == 0)
        atomic_store(&p->shared->value[DATA], 1);
    while (p->side == 1 && !atomic_load(&p->shared->value[DATA])) {
        fd = open_replaced(p);
        EQUAL(sizeof buf, read(fd, buf, sizeof buf));
        for (size_t i = 1; i < sizeof buf; i++)
            EQUAL(buf[0], buf[i]);
        OK(close(fd));
        CHECK(S_ISREG(fs_stat(pair_mine(p, "target")).st_mode));
    }
}

/* A file goes back and forth between two directories: a look in both, twice, finds it. */
static void never_nowhere(struct pair *p)
{
    static const char *const name[2] = {"p/file", "q/file"};
    struct stat st;

    if (p->side == 0) {
        if (mkdir(pair_mine(p, "p"), 0755) == 0) {
            OK(mkdir(pair_mine(p, "q"), 0755));
            fs_put(pair_mine(p, "p/file"), "x", 1);
        }
    }
    pair_meet(p);
    for (unsigned i = 0; p->side == 0 && i < 40; i++) {
        OK(rename(pair_mine(p, "%s", name[i % 2]), pair_mine(p, "%s", name[1 - i % 2])));
        atomic_store(&p->shared->value[DATA], i + 1);
    }
    if (p->side == 0)
        atomic_store(&p->shared->value[DATA], 1000);
    while (p->side == 1 && atomic_load(&p->shared->value[DATA]) < 1000) {
        int64_t before = atomic_load(&p->shared->value[DATA]);
        bool in_p = lstat(pair_mine(p, "p/file"), &st) == 0;
        bool in_q = lstat(pair_mine(p, "q/file"), &st) == 0;

        /* The mover counts after it has moved: it may have begun one more move than it counted. */
        if (!in_p && !in_q && atomic_load(&p->shared->value[DATA]) == before) {
            in_p = lstat(pair_mine(p, "p/file"), &st) == 0;
            if (!in_p && atomic_load(&p->shared->value[DATA]) == before)
                fs_fail(__FILE__, __LINE__, "the file has no name after move %lld",
                        (long long)before);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"rename_same_target", .race = rename_same_target},
        {"double_exchange", .race = double_exchange},
        {"directory_loop", .race = directory_loop},
        {"crossed_renames", .race = crossed_renames},
        {"never_absent", .race = never_absent, .cost = 20},
        {"never_nowhere", .race = never_nowhere, .cost = 20},
        {NULL},
    };

    return pair_main(argc, argv, scenarios);
}
