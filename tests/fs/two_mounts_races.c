/* ctest: timeout=180 threaded
 *
 * Races between two mounts: both do a thing at the same moment, and the outcome must be one of
 * those that some order of the two could have had. */
#include "fs_pair.h"

#include <pthread.h>
#include <sys/utsname.h>

/* Both sides note how their call ended; after the next meeting each can judge both. */
enum { RC = 0, DATA = 2 };

static void note(struct pair *p, int rc)
{
    atomic_store(&p->shared->value[RC + p->side], rc < 0 ? -errno : 0);
}

static int noted(struct pair *p, int side)
{
    return (int)atomic_load(&p->shared->value[RC + side]);
}

/* After the race: exactly one side succeeded, the other failed with that error. Gives back the
 * winner. */
static int one_winner(struct pair *p, int loser_error)
{
    int winner;

    pair_meet(p);
    winner = noted(p, 0) == 0 ? 0 : 1;
    EQUAL(0, noted(p, winner));
    EQUAL(-loser_error, noted(p, !winner));
    return winner;
}

/* Sometimes the sides do not start quite together: every overlap is to be tried. */
static void stagger(struct pair *p)
{
    unsigned spins = pair_own_random(p, 4) ? 0 : pair_own_random(p, 20000);

    for (volatile unsigned i = 0; i < spins; i++)
        ;
}

/* Prepares as side 0, then both start. */
static void start(struct pair *p)
{
    pair_meet(p);
    stagger(p);
}

static void exclusive_create(struct pair *p)
{
    char text[32];
    int fd, winner;

    start(p);
    fd = open(pair_mine(p, "file"), O_RDWR | O_CREAT | O_EXCL, 0644);
    note(p, fd);
    if (fd >= 0) {
        snprintf(text, sizeof text, "by %d in %u", p->side, p->round);
        CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        OK(close(fd));
    }
    winner = one_winner(p, EEXIST);
    snprintf(text, sizeof text, "by %d in %u", winner, p->round);
    fs_expect(pair_mine(p, "file"), text, strlen(text));
    pair_meet(p);
    if (p->side == (int)pair_random(p, 2))
        OK(unlink(pair_mine(p, "file")));
}

/* Without O_EXCL both get the same file, and neither loses what the other one wrote into it. */
static void shared_create(struct pair *p)
{
    struct stat st;
    int fd;

    start(p);
    fd = open(pair_mine(p, "file"), O_RDWR | O_CREAT, 0644);
    OK(fd);
    OK(fstat(fd, &st));
    atomic_store(&p->shared->value[DATA + p->side], (int64_t)st.st_ino);
    CHECK(pwrite(fd, p->side ? "1" : "0", 1, p->side) == 1);
    OK(close(fd));
    pair_meet(p);
    EQUAL(atomic_load(&p->shared->value[DATA]), atomic_load(&p->shared->value[DATA + 1]));
    fs_expect(pair_mine(p, "file"), "01", 2);
    pair_meet(p);
    if (p->side == 0)
        OK(unlink(pair_mine(p, "file")));
}

/* mkdir, symlink, mkfifo, link, rename with NOREPLACE: one name, one winner. */
static void one_name(struct pair *p)
{
    unsigned what = pair_random(p, 5);
    int rc;

    fs_put(pair_mine(p, "own%d", p->side), "x", 1);
    start(p);
    if (what == 0)
        rc = mkdir(pair_mine(p, "name"), 0755);
    else if (what == 1)
        rc = symlink(p->side ? "1" : "0", pair_mine(p, "name"));
    else if (what == 2)
        rc = mkfifo(pair_mine(p, "name"), 0644);
    else if (what == 3)
        rc = link(pair_mine(p, "own%d", p->side), pair_mine(p, "name"));
    else
        rc = renameat2(AT_FDCWD, pair_mine(p, "own%d", p->side), AT_FDCWD, pair_mine(p, "name"),
                       RENAME_NOREPLACE);
    note(p, rc);
    one_winner(p, EEXIST);
    if (what == 3)
        EQUAL(rc == 0 ? 2 : 1, fs_stat(pair_mine(p, "own%d", p->side)).st_nlink);
    EQUAL(1, pair_listed(p->dir[p->side], "name", NULL));
    pair_meet(p);
    if (p->side == 0) {
        OK(remove(pair_mine(p, "name")));
        for (int i = 0; i < 2; i++)
            if (unlink(pair_mine(p, "own%d", i)) < 0)
                EQUAL(ENOENT, errno);
    }
}

/* unlink, rmdir and rename of one name by both: it can go only once. */
static void removed_once(struct pair *p)
{
    unsigned what = pair_random(p, 3);
    int rc;

    if (p->side == 0) {
        if (what == 1)
            OK(mkdir(pair_mine(p, "victim"), 0755));
        else
            fs_put(pair_mine(p, "victim"), "x", 1);
    }
    start(p);
    if (what == 0)
        rc = unlink(pair_mine(p, "victim"));
    else if (what == 1)
        rc = rmdir(pair_mine(p, "victim"));
    else
        rc = rename(pair_mine(p, "victim"), pair_mine(p, "moved by %d", p->side));
    note(p, rc);
    rc = one_winner(p, ENOENT);
    pair_absent(pair_mine(p, "victim"));
    if (what == 2) {
        EQUAL(1, fs_stat(pair_mine(p, "moved by %d", rc)).st_nlink);
        pair_absent(pair_mine(p, "moved by %d", !rc));
        pair_meet(p);
        if (p->side == rc)
            OK(unlink(pair_mine(p, "moved by %d", rc)));
    }
}

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

/* link against unlink of the only name: a link is made, or there is nothing left to link to. */
static void link_or_gone(struct pair *p)
{
    if (p->side == 0)
        fs_put(pair_mine(p, "only"), "x", 1);
    start(p);
    if (p->side == 0)
        note(p, unlink(pair_mine(p, "only")));
    else
        note(p, link(pair_mine(p, "only"), pair_mine(p, "second")));
    pair_meet(p);
    EQUAL(0, noted(p, 0));
    pair_absent(pair_mine(p, "only"));
    if (noted(p, 1) == 0) {
        EQUAL(1, fs_stat(pair_mine(p, "second")).st_nlink);
        fs_expect(pair_mine(p, "second"), "x", 1);
        pair_meet(p);
        if (p->side == 1)
            OK(unlink(pair_mine(p, "second")));
    } else {
        EQUAL(-ENOENT, noted(p, 1));
        pair_absent(pair_mine(p, "second"));
    }
}

/* Puts an entry into a directory, in one of four ways. */
static int put_entry(struct pair *p, unsigned how)
{
    int fd;

    if (how == 0) {
        fd = open(pair_mine(p, "dir/entry"), O_RDWR | O_CREAT, 0644);
        return fd < 0 ? -1 : close(fd);
    }
    if (how == 1)
        return mkdir(pair_mine(p, "dir/entry"), 0755);
    if (how == 2)
        return link(pair_mine(p, "source"), pair_mine(p, "dir/entry"));
    return rename(pair_mine(p, "source"), pair_mine(p, "dir/entry"));
}

/* rmdir against an entry being made in it: never does the entry get lost with the directory. */
static void rmdir_or_create(struct pair *p)
{
    unsigned how = pair_random(p, 4);
    bool over = pair_random(p, 3) == 0; /* the directory goes by a rename over it */

    if (p->side == 0) {
        OK(mkdir(pair_mine(p, "dir"), 0755));
        OK(mkdir(pair_mine(p, "other"), 0755));
        fs_put(pair_mine(p, "source"), "x", 1);
    }
    pair_meet(p);
    if (pair_random(p, 2))
        pair_listed(pair_mine(p, "dir"), "", NULL);
    start(p);
    if (p->side == 0)
        note(p, over ? rename(pair_mine(p, "other"), pair_mine(p, "dir"))
                     : rmdir(pair_mine(p, "dir")));
    else
        note(p, put_entry(p, how));
    pair_meet(p);
    if (noted(p, 1) < 0) {
        EQUAL(-ENOENT, noted(p, 1));
        EQUAL(0, noted(p, 0));
    } else if (noted(p, 0) < 0) {
        EQUAL(-ENOTEMPTY, noted(p, 0));
    } else if (!over) {
        fs_fail(__FILE__, __LINE__, "both the rmdir and what made an entry (%u) succeeded", how);
    }
    /* Over: both may succeed when the entry came into the directory that took the name. */
    if (noted(p, 1) == 0)
        EQUAL(1, pair_listed(pair_mine(p, "dir"), "entry", NULL));
    pair_meet(p);
    if (p->side == 0) {
        pair_remove_tree(pair_mine(p, "dir"));
        pair_remove_tree(pair_mine(p, "other"));
        pair_remove_tree(pair_mine(p, "source"));
    }
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

/* Both make and remove their own names in one directory; nothing gets lost or left over. */
static void neighbours(struct pair *p)
{
    unsigned total;

    if (p->side == 0)
        OK(mkdir(pair_mine(p, "shared"), 0755));
    start(p);
    for (unsigned i = 0; i < 20; i++)
        fs_put(pair_mine(p, "shared/%d-%u", p->side, i), "x", 1);
    pair_meet(p);
    pair_listed(pair_mine(p, "shared"), "", &total);
    EQUAL(40, total);
    pair_meet(p);
    for (unsigned i = 0; i < 20; i++)
        OK(unlink(pair_mine(p, "shared/%d-%u", !p->side, i)));
    pair_meet(p);
    pair_listed(pair_mine(p, "shared"), "", &total);
    EQUAL(0, total);
    pair_meet(p);
    if (p->side == 0)
        OK(rmdir(pair_mine(p, "shared")));
}

/* mkdir -p and rm -r of the same tree by both: only errors that a race explains, nothing left. */
static void trees(struct pair *p)
{
    static const char *const level[] = {"t", "t/u", "t/u/v", "t/u/v/w"};

    start(p);
    for (unsigned i = 0; i < 4; i++)
        if (mkdir(pair_mine(p, "%s", level[i]), 0755) < 0)
            CHECK(errno == EEXIST || errno == ENOENT);
    for (unsigned i = 4; i-- > 0;)
        if (rmdir(pair_mine(p, "%s", level[i])) < 0)
            CHECK(errno == ENOTEMPTY || errno == ENOENT);
    pair_meet(p);
    for (unsigned i = 4; p->side == 0 && i-- > 0;)
        if (rmdir(pair_mine(p, "%s", level[i])) < 0)
            EQUAL(ENOENT, errno);
    pair_meet(p);
    pair_absent(pair_mine(p, "t"));
    FAILS(ENOENT, open(pair_mine(p, "t/file"), O_CREAT | O_WRONLY, 0644));
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"exclusive_create", .race = exclusive_create},
        {"shared_create", .race = shared_create},
        {"one_name", .race = one_name},
        {"removed_once", .race = removed_once},
        {"rename_same_target", .race = rename_same_target},
        {"double_exchange", .race = double_exchange},
        {"link_or_gone", .race = link_or_gone},
        {"rmdir_or_create", .race = rmdir_or_create},
        {"directory_loop", .race = directory_loop},
        {"crossed_renames", .race = crossed_renames},
        {"never_absent", .race = never_absent, .cost = 20},
        {"never_nowhere", .race = never_nowhere, .cost = 20},
        {"neighbours", .race = neighbours, .cost = 10},
        {"trees", .race = trees},
        {NULL},
    };

    return pair_main(argc, argv, scenarios);
}
