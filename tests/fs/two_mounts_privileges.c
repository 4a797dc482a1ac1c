/* ctest: nodes=2
 *
 * A user has a file open on one mount when root makes it set-user-ID there, set-group-ID or gives
 * it capabilities, on the other: what the user writes must not run as root. And who was the owner
 * has no say once the other mount's chown has returned, be it through a descriptor that was open
 * before. Shown by a program of five lines (open, wait for root's chmod, one pwrite, exec) that
 * became root. */
#include "fs_check.h"

#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

enum { USER = 12345, GROUP = 12345, SMALL = 5000, LARGE = 1500000 };

static char a[4096], b[4096]; /* the file, on the mount of root and on that of the user */
static char bytes[LARGE], source[4096];

static const unsigned char caps[20] = {0, 0, 0, 2, 0, 32};

/* --- who -------------------------------------------------------------------------------------- */

static void be_user(void)
{
    OK(setegid(GROUP));
    OK(seteuid(USER));
}

static void be_root(void)
{
    OK(seteuid(0));
    OK(setegid(0));
}

static void be_user_with(int capability)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct caps_[2];

    be_user();
    OK(syscall(SYS_capget, &head, caps_));
    caps_[0].effective |= 1U << capability;
    OK(syscall(SYS_capset, &head, caps_));
}

/* --- what root gives -------------------------------------------------------------------------- */

static void give_uid(void)
{
    OK(chown(a, 0, 0));
    OK(chmod(a, 04755));
}

static void give_gid(void)
{
    OK(chown(a, 0, 0));
    OK(chmod(a, 02755));
}

/* It may be executed by its group only from now on. */
static void give_gid_by_execute(void)
{
    OK(chown(a, 0, 0));
    OK(chmod(a, 02705));
    OK(chmod(a, 02715));
}

static void give_caps(void)
{
    OK(chown(a, 0, 0));
    OK(setxattr(a, "security.capability", caps, sizeof caps, 0));
}

static const struct gift {
    const char *name;
    void (*give)(void);
} gifts[] = {{"set-user-ID", give_uid},
             {"set-group-ID", give_gid},
             {"set-group-ID by execute", give_gid_by_execute},
             {"capabilities", give_caps}};

static bool is_privileged(const char *path)
{
    char value[64];
    mode_t mode = fs_stat(path).st_mode;

    return (mode & S_ISUID) || (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) ||
           getxattr(path, "security.capability", value, sizeof value) >= 0;
}

/* --- what the user does ----------------------------------------------------------------------- */

static void overwrite(int fd)
{
    fs_write_at(fd, bytes, 100, 0);
}

/* More than a commit carries. */
static void overwrite_much(int fd)
{
    fs_write_at(fd, bytes, LARGE, 0);
}

static void append(int fd)
{
    CHECK(write(fd, bytes, 100) == 100);
}

static void cut(int fd)
{
    OK(ftruncate(fd, 10));
}

static void lengthen(int fd)
{
    OK(ftruncate(fd, LARGE + 10));
}

static void allocate(int fd)
{
    OK(fallocate(fd, 0, 0, LARGE + 10));
}

static void punch(int fd)
{
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
}

static void copy(int fd)
{
    int in = open(source, O_RDONLY);

    OK(in);
    EQUAL(100, copy_file_range(in, NULL, fd, NULL, 100, 0));
    OK(close(in));
}

static void store(int fd)
{
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    CHECK(map != MAP_FAILED);
    map[1] ^= 1;
    OK(munmap(map, 4096));
}

static void open_empty(int fd)
{
    (void)fd;
    OK(fd = open(b, O_WRONLY | O_TRUNC));
    OK(close(fd));
}

static const struct change {
    const char *name;
    int flags;
    void (*make)(int fd);
    bool later; /* known to others when the file is closed, at the latest */
} changes[] = {{"pwrite", O_WRONLY, overwrite, true},
               {"pwrite of much", O_WRONLY, overwrite_much, true},
               {"pwrite with O_SYNC", O_WRONLY | O_SYNC, overwrite, false},
               {"append", O_WRONLY | O_APPEND, append, false},
               {"ftruncate", O_WRONLY, cut, false},
               {"ftruncate beyond the end", O_WRONLY, lengthen, false},
               {"fallocate", O_WRONLY, allocate, false},
               {"punched hole", O_RDWR, punch, false},
               {"copy_file_range", O_WRONLY, copy, true},
               {"mmap", O_RDWR, store, false}}; /* munmap(2) has the kernel write it */
enum { GIFTS = sizeof gifts / sizeof *gifts, CHANGES = sizeof changes / sizeof *changes };

/* --- the tests -------------------------------------------------------------------------------- */

/* Open on the user's mount, as the user's own file of `size` bytes. */
static int open_users(size_t size, int flags)
{
    int fd;

    be_user();
    fs_put(b, bytes, size);
    OK(chmod(b, 0755));
    OK(fd = open(b, flags));
    be_root();
    return fd;
}

static void none(const char *gift, const char *change, const char *when)
{
    if (is_privileged(a) || is_privileged(b))
        fs_fail(__FILE__, __LINE__, "%s, %s %s: %o on root's mount, %o on the user's", gift, change,
                when, fs_stat(a).st_mode, fs_stat(b).st_mode);
}

/* First the gift. There is no moment at which the file is privileged and has what the user wrote.
 */
static void changed_after(const struct gift *g, const struct change *c, size_t size)
{
    int fd = open_users(size, c->flags);

    g->give();
    if (!is_privileged(a)) /* nobody looks on the other mount */
        fs_fail(__FILE__, __LINE__, "%s: not given", g->name);
    be_user();
    c->make(fd);
    be_root();
    if (c->make != store) /* the kernel tells nobody of what is stored in a mapping */
        none(g->name, c->name, "after it");
    OK(close(fd));
    none(g->name, c->name, "after it, closed");
    OK(unlink(a));
}

/* First the change; what is not known to others yet root can't have seen. */
static void changed_before(const struct gift *g, const struct change *c, size_t size)
{
    int fd = open_users(size, c->flags);

    be_user();
    c->make(fd);
    be_root();
    g->give();
    if (c->later)
        none(g->name, c->name, "before it");
    else if (!is_privileged(a) || !is_privileged(b))
        fs_fail(__FILE__, __LINE__, "%s before %s: not given", c->name, g->name);
    OK(close(fd));
    if (c->later)
        none(g->name, c->name, "before it, closed");
    OK(unlink(a));
}

/* A mapping that stays is looked at when the gift is made. */
static void mapped_before(const struct gift *g)
{
    int fd = open_users(LARGE, O_RDWR);
    char *map = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    CHECK(map != MAP_FAILED);
    map[1] ^= 1;
    map[LARGE - 1] ^= 1;
    g->give();
    none(g->name, "a mapping", "after it");
    g->give();
    CHECK(is_privileged(a));
    map[1] ^= 1;
    OK(munmap(map, LARGE));
    OK(close(fd));
    none(g->name, "a mapping", "before it");
    OK(unlink(a));
}

static void user_writes(void)
{
    for (unsigned i = 0; i < GIFTS * CHANGES; i++) {
        const struct gift *g = &gifts[i % GIFTS];
        const struct change *c = &changes[i / GIFTS];

        changed_after(g, c, SMALL);
        changed_after(g, c, LARGE);
        changed_before(g, c, SMALL);
        changed_before(g, c, LARGE);
    }
}

static void opened_empty(const struct gift *g)
{
    int fd = open_users(SMALL, O_RDONLY);

    g->give();
    OK(chmod(a, fs_stat(a).st_mode | 022));
    be_user();
    open_empty(fd);
    be_root();
    none(g->name, "O_TRUNC", "after it");
    OK(close(fd));
    OK(unlink(a));
}

/* Who may keep set-user-ID does, on whichever mount, as write(2) and fallocate(2) have it. */
static void root_writes(const struct change *c)
{
    int fd = open_users(LARGE, c->flags);

    give_uid();
    c->make(fd);
    OK(close(fd));
    EQUAL(c->make == store ? 0755 : 04755, fs_stat(a).st_mode & 07777);
    EQUAL(fs_stat(a).st_mode, fs_stat(b).st_mode);
    OK(unlink(a));
}

/* Capabilities do, without being root or the owner. */
static void capable(void)
{
    int fd = open_users(SMALL, O_WRONLY);

    give_uid();
    be_user_with(CAP_FSETID);
    allocate(fd);
    copy(fd);
    be_root();
    EQUAL(04755, fs_stat(a).st_mode & 07777);
    be_user_with(CAP_FOWNER);
    OK(fchmod(fd, 04711));
    FAILS(EPERM, fchown(fd, USER, (gid_t)-1));
    be_root();
    be_user_with(CAP_CHOWN);
    OK(fchown(fd, 1, 1));
    be_root();
    EQUAL(0711, fs_stat(a).st_mode & 07777);
    EQUAL(1, fs_stat(a).st_uid);
    OK(close(fd));
    OK(unlink(a));
}

/* Those of a user namespace of one's own are none here. */
static void capable_elsewhere(void)
{
    int fd = open_users(SMALL, O_WRONLY), status;
    pid_t child;

    give_uid();
    OK(child = fork());
    if (child == 0) {
        OK(setresgid(GROUP, GROUP, GROUP));
        OK(setresuid(USER, USER, USER));
        if (unshare(CLONE_NEWUSER) == 0)
            punch(fd);
        else
            overwrite(fd); /* not allowed here */
        _exit(0);
    }
    EQUAL(child, waitpid(child, &status, 0));
    EQUAL(0, status);
    none("set-user-ID", "a user namespace", "after it");
    OK(close(fd));
    OK(unlink(a));
}

/* What was written on the same mount before was before. */
static void written_here(void)
{
    int fd;

    OK(fd = open(a, O_RDWR | O_CREAT, 0755));
    store((fs_write_at(fd, bytes, SMALL, 0), fd));
    OK(fchmod(fd, 04755));
    OK(fsetxattr(fd, "security.capability", caps, sizeof caps, 0));
    OK(close(fd));
    EQUAL(04755, fs_stat(b).st_mode & 07777);
    CHECK(getxattr(b, "security.capability", NULL, 0) == sizeof caps);
    OK(unlink(a));
}

/* The kernel of the user's mount takes the user for the owner still. */
static void owned_before(void)
{
    static const unsigned char acl[] = {2,   0,   0, 0, 1,   0,   7,   0,   255, 255,
                                        255, 255, 4, 0, 7,   0,   255, 255, 255, 255,
                                        32,  0,   7, 0, 255, 255, 255, 255};
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    int fd = open_users(SMALL, O_RDWR);

    OK(chown(a, 0, 0));
    be_user();
    FAILS(EPERM, fchmod(fd, 04777));
    FAILS(EPERM, fchown(fd, (uid_t)-1, GROUP));
    FAILS(EPERM, fsetxattr(fd, "system.posix_acl_access", acl, sizeof acl, 0));
    FAILS(EPERM, fremovexattr(fd, "system.posix_acl_access"));
    FAILS(EPERM, futimens(fd, times));
    be_root();
    EQUAL(0755, fs_stat(a).st_mode & 07777);
    EQUAL(0, fs_stat(a).st_gid);
    OK(fchmod(fd, 04755));
    OK(close(fd));
    OK(unlink(a));
}

/* Nor does a former member of its group give it the group's rights. */
static void in_group_before(void)
{
    int fd = open_users(SMALL, O_RDWR);

    OK(chown(a, (uid_t)-1, 0));
    be_user();
    OK(fchmod(fd, 02755));
    be_root();
    EQUAL(0755, fs_stat(a).st_mode & 07777);
    OK(close(fd));
    OK(unlink(a));
}

/* The kernel of the user's mount knows the file, and that it had no ACL; it comes to the name that
 * the file has got since for the first time. */
static void refused_since(void)
{
    static const unsigned char acl[] = {
        2, 0,          0,         0,   1,   0,   6,  0, 255, 255, 255, 255, 2,   0,  0,
        0, USER & 255, USER >> 8, 0,   0,   4,   0,  6, 0,   255, 255, 255, 255, 16, 0,
        7, 0,          255,       255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};
    char was[4200], is[4200];
    int fd;

    snprintf(was, sizeof was, "%s-renamed", a);
    snprintf(is, sizeof is, "%s-renamed", b);
    OK(fd = open(a, O_RDWR | O_CREAT, 0660));
    OK(close(fd));
    OK(chown(a, 0, GROUP));
    OK(chmod(a, 0660));
    be_user();
    OK(fd = open(b, O_RDONLY));
    be_root();
    sleep(2); /* what it was shown then is not recalled any more */
    OK(setxattr(a, "system.posix_acl_access", acl, sizeof acl, 0));
    OK(rename(a, was));
    be_user();
    FAILS(EACCES, open(is, O_RDONLY));
    be_root();
    OK(close(fd));
    OK(unlink(was));
}

int main(int argc, char **argv)
{
    char cwd[2048];

    if (argc > 2 && geteuid() != 0)
        fs_skip("not root");
    fs_enter(argc, argv);
    CHECK(getcwd(cwd, sizeof cwd) && argc > 2);
    OK(chmod(".", 0777));
    OK(setgroups(0, NULL));
    snprintf(a, sizeof a, "%s/tool", cwd);
    snprintf(b, sizeof b, "%s/%s/tool", argv[2], strrchr(cwd, '/') + 1);
    snprintf(source, sizeof source, "%s/%s/source", argv[2], strrchr(cwd, '/') + 1);
    fs_put(source, bytes, 100);
    user_writes();
    for (unsigned i = 0; i < GIFTS; i++) {
        opened_empty(&gifts[i]);
        mapped_before(&gifts[i]);
    }
    for (unsigned i = 0; i < CHANGES; i++)
        root_writes(&changes[i]);
    capable();
    capable_elsewhere();
    written_here();
    owned_before();
    in_group_before();
    refused_since();
    OK(unlink(source));
    fs_leave();
    return 0;
}
