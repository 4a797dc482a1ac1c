/* What the machine must offer, whatever runs on it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cm/doctor/impl.h"
#include "cm/state/spec.h"
#include "cm/provider/traits.h"

#define MEMORY_LEAST                                                                               \
    (32ULL << 20)         /* a node takes half of what is available, and 16 MiB at least           \
                           */
#define REDIS_FILES  4128 /* maxclients of lm/redis/redis_conf.c, and what redis keeps back */
#define PART_FILES   10   /* a client's connections to a partition, idle and in use */
#define OWN_FILES    256
#define FIRST_TIME   1704067200 /* 2024: no clock that is right shows less */
#define CONNECT_TIME 500        /* ms, on loopback */
#define MISC_MAJOR   10         /* of /dev/fuse: admin-guide/devices.txt of the kernel */
#define FUSE_MINOR   229
#define IN_CONTAINER "in a container: --device /dev/fuse --cap-add SYS_ADMIN"

/* The file's text without the end of its line. 0 or a negative errno. */
static int read_line(const char *path, char *out, size_t n)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_file_read(path, n - 1, &b);
    if (!rc)
        rc = mfs_text_format(out, n, "%.*s", (int)mfs_buf_len(&b), mfs_buf_data(&b));
    mfs_buf_fini(&b);
    if (!rc)
        out[strcspn(out, "\n")] = '\0';
    return rc;
}

/* ---- FUSE ------------------------------------------------------------------------------------ */

/* 0 or a negative errno; -ENODEV also for something else of that name. */
static int try_device(void)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), rc = 0;
    struct stat st;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st))
        rc = -errno;
    else if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(MISC_MAJOR, FUSE_MINOR))
        rc = -ENODEV;
    close(fd);
    return rc;
}

static void check_device(struct mfs_doctor *d)
{
    int rc = try_device();

    if (!rc) {
        mfs_doctor_add(d, MFS_DOCTOR_OK, "/dev/fuse", "opens");
        return;
    }
    mfs_doctor_add(d, MFS_DOCTOR_FAIL, "/dev/fuse", "cannot be opened: %s", strerror(-rc));
    if (rc == -EACCES)
        mfs_doctor_advise(d, "be root, or chmod 666 /dev/fuse");
    else
        mfs_doctor_advise(d, "modprobe fuse; " IN_CONTAINER);
}

/* FUSE over io_uring, which a mount uses with uring=on. */
static void check_uring(struct mfs_doctor *d)
{
    static const char check[] = "FUSE io_uring",
                      path[] = "/sys/module/fuse/parameters/enable_uring";
    char enabled[8], forbidden[8];

    if (read_line(path, enabled, sizeof enabled))
        mfs_doctor_add(d, MFS_DOCTOR_OK, check, "not in this kernel, which takes Linux 6.14");
    else if (strcmp(enabled, "Y"))
        mfs_doctor_add(d, MFS_DOCTOR_OK, check,
                       "off: for mounts with -o uring=on, before them: echo Y >%s", path);
    else if (!read_line("/proc/sys/kernel/io_uring_disabled", forbidden, sizeof forbidden) &&
             strcmp(forbidden, "0"))
        mfs_doctor_add(
            d, MFS_DOCTOR_OK, check,
            "offered, but kernel.io_uring_disabled is %s: sysctl kernel.io_uring_disabled=0",
            forbidden);
    else
        mfs_doctor_add(d, MFS_DOCTOR_OK, check, "offered: mounts with -o uring=on use it");
}

static bool in_path(const char *name)
{
    const char *at = getenv("PATH");
    char path[PATH_MAX];

    while (at && *at) {
        int len = (int)strcspn(at, ":");

        if (!mfs_text_format(path, sizeof path, "%.*s/%s", len, at, name) && !access(path, X_OK))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

static void check_rights(struct mfs_doctor *d)
{
    static const char check[] = "rights";

    if (mfs_proc_capable(CAP_SYS_ADMIN)) {
        mfs_doctor_add(d, MFS_DOCTOR_OK, check, "may mount");
    } else if (!geteuid()) {
        mfs_doctor_add(d, MFS_DOCTOR_FAIL, check,
                       "root, but without CAP_SYS_ADMIN: nothing can be mounted");
        mfs_doctor_advise(d, IN_CONTAINER);
    } else if (!in_path("fusermount3")) {
        mfs_doctor_add(d, MFS_DOCTOR_FAIL, check, "not root, and there is no fusermount3");
        mfs_doctor_advise(d, "be root, or apt install fuse3");
    } else if (access("/etc/mtab", F_OK)) {
        mfs_doctor_add(
            d, MFS_DOCTOR_FAIL, check,
            "not root, and there is no /etc/mtab: fusermount3 mounts, but can't unmount, "
            "and mounts stay");
        mfs_doctor_advise(d, "as root: ln -s /proc/self/mounts /etc/mtab");
    } else {
        mfs_doctor_add(d, MFS_DOCTOR_WARN, check,
                       "not root: fusermount3 mounts, and what it mounts is for this user alone");
        mfs_doctor_advise(d, "be root where others are to use the mounts");
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void check_memory(struct mfs_doctor *d)
{
    uint64_t free_now = mfs_spec_meminfo("MemAvailable"), total = mfs_spec_meminfo("MemTotal");

    if (free_now >= MEMORY_LEAST) {
        mfs_doctor_add(d, MFS_DOCTOR_OK, "memory", "%s of %s available", MFS_TEXT_BYTES(free_now),
                       MFS_TEXT_BYTES(total));
        return;
    }
    mfs_doctor_add(d, MFS_DOCTOR_FAIL, "memory", "only %s of %s available",
                   MFS_TEXT_BYTES(free_now), MFS_TEXT_BYTES(total));
    mfs_doctor_advise(d, "end programs: a node needs %s at least", MFS_TEXT_BYTES(MEMORY_LEAST));
}

/* A hot move forks the partition's process; its pages are shared, but count twice for mode 2. */
static void check_overcommit(struct mfs_doctor *d)
{
    static const char path[] = "/proc/sys/vm/overcommit_memory";
    char mode[32];

    if (read_line(path, mode, sizeof mode))
        return;
    if (strcmp(mode, "2")) {
        mfs_doctor_add(d, MFS_DOCTOR_OK, "overcommit", "vm.overcommit_memory is %s", mode);
        return;
    }
    mfs_doctor_add(d, MFS_DOCTOR_WARN, "overcommit",
                   "vm.overcommit_memory is 2: partitions that are half full cannot be moved");
    mfs_doctor_advise(d, "sysctl vm.overcommit_memory=0");
}

static void check_huge_pages(struct mfs_doctor *d)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    const char *asked = getenv("MALLOC_CONF");
    char modes[64];

    if (read_line(path, modes, sizeof modes))
        mfs_text_copy(modes, sizeof modes, "[never]");
    if (asked && strstr(asked, "thp:always") && strstr(modes, "[never]")) {
        mfs_doctor_add(d, MFS_DOCTOR_WARN, "huge pages",
                       "MALLOC_CONF asks for them, and the kernel gives none");
        mfs_doctor_advise(d, "echo madvise >%s", path);
        return;
    }
    mfs_doctor_add(d, MFS_DOCTOR_OK, "huge pages", "%s; see docs/how-to/tune.md", modes);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* cm raises the soft limit to the hard one, which all of its processes inherit. */
static void check_files(struct mfs_doctor_case *c)
{
    uint64_t want = OWN_FILES + (uint64_t)PART_FILES * c->state.nparts;
    struct rlimit r;

    if (want < REDIS_FILES)
        want = REDIS_FILES;
    if (getrlimit(RLIMIT_NOFILE, &r))
        return;
    if (r.rlim_max == RLIM_INFINITY || r.rlim_max >= want) {
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, "open files", "up to %llu for each process",
                       (unsigned long long)r.rlim_max);
        return;
    }
    mfs_doctor_add(c->d, MFS_DOCTOR_WARN, "open files",
                   "up to %llu for each process; clients and partitions may want %llu",
                   (unsigned long long)r.rlim_max, (unsigned long long)want);
    mfs_doctor_advise(c->d, "ulimit -n %llu before cm start, or LimitNOFILE= in the unit",
                      (unsigned long long)want);
}

/* Times to live are points in time (docs/design/architecture.md), so nodes must agree on them. */
static void check_clock(struct mfs_doctor_case *c)
{
    struct timespec now = mfs_clock_real();
    bool alone = !c->recorded || mfs_provider_traits(c->state.provider)->one_machine;
    struct timex t = {0};
    bool kept = adjtimex(&t) >= 0 && !(t.status & STA_UNSYNC);

    if (now.tv_sec < FIRST_TIME) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, "clock", "it is years late (%lld s since 1970)",
                       (long long)now.tv_sec);
        mfs_doctor_advise(c->d, "set it: date, or chronyd, or systemd-timesyncd");
    } else if (kept || alone) {
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, "clock", "%s",
                       kept ? "synchronised" : "not synchronised; one machine alone need not be");
    } else {
        mfs_doctor_add(c->d, MFS_DOCTOR_WARN, "clock",
                       "not synchronised, and there are nodes on other machines");
        mfs_doctor_advise(c->d, "run chronyd or systemd-timesyncd on all: clocks that differ by "
                                "seconds end sessions, and locks with them");
    }
}

/* ---- addresses ------------------------------------------------------------------------------- */

static int connect_to(const struct sockaddr_in *a)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc = 0, cause = 0;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t len = sizeof cause;

    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)a, sizeof *a) && errno != EINPROGRESS)
        rc = -errno;
    else if (poll(&p, 1, CONNECT_TIME) != 1)
        rc = -ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &len) || cause)
        rc = cause ? -cause : -errno;
    close(fd);
    return rc;
}

/* Can a process listen there, and be reached? */
static int try_address(const char *address)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

    if (fd < 0)
        return -errno;
    if (!inet_aton(address, &a.sin_addr))
        rc = -EINVAL;
    else if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 1) ||
             getsockname(fd, (struct sockaddr *)&a, &len))
        rc = -errno;
    else
        rc = connect_to(&a);
    close(fd);
    return rc;
}

static void check_address(struct mfs_doctor *d, const char *address)
{
    int rc = try_address(address);

    if (!rc) {
        mfs_doctor_add(d, MFS_DOCTOR_OK, "address", "%s can be listened at and reached", address);
        return;
    }
    mfs_doctor_add(d, MFS_DOCTOR_FAIL, "address", "%s: %s", address, strerror(-rc));
    mfs_doctor_advise(d, "ip link set lo up; let a firewall pass all of 127.0.0.0/8");
}

/* Of local nodes, the first and the last; those of other machines can't be judged from here. */
static void check_addresses(struct mfs_doctor_case *c)
{
    if (!c->recorded) {
        check_address(c->d, "127.0.0.1");
        check_address(c->d, "127.0.0.2");
    } else if (mfs_provider_traits(c->state.provider)->one_machine) {
        check_address(c->d, c->state.node[0].address);
        if (c->state.nnodes > 1)
            check_address(c->d, c->state.node[c->state.nnodes - 1].address);
    }
}

void mfs_doctor_machine(struct mfs_doctor_case *c)
{
    check_device(c->d);
    check_uring(c->d);
    check_rights(c->d);
    check_memory(c->d);
    check_overcommit(c->d);
    check_huge_pages(c->d);
    check_files(c);
    check_clock(c);
    check_addresses(c);
}
