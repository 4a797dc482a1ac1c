/* What the kernel makes of notices and flags that libfuse does not hand on: a file system of one
 * file, which says at all times that it ends with its first page. Another process maps the file:
 * pages that are dirty when a process ends have to find somebody who serves them. And of one slow
 * name: with FUSE_PARALLEL_DIROPS looking it up must not hold up look-ups of other names (20 of 1 s
 * each kept a quick one waiting for 19 s).
 * ctest: threaded timeout=60 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "fuse/mount/device.h"

#define PAGE     4096U
#define SLOW     "slow"
#define PATIENCE 5 /* s that the look-up of SLOW takes, unless it is released */
#define FILE_INO 2

static struct fuse_session *session;
static struct mfs_fuse served; /* as much of it as fuse/mount/device.h looks at */
static pthread_t server;
static pid_t user;
static int orders = -1; /* to the user */
static char mountpoint[] = "/tmp/memefs_device.XXXXXX";
static sem_t slow_began, slow_release;

static void fill(struct stat *st, fuse_ino_t ino)
{
    *st = (struct stat){.st_ino = ino, .st_nlink = 1};
    st->st_mode = ino == FILE_INO ? S_IFREG | 0644 : S_IFDIR | 0755;
    st->st_size = ino == FILE_INO ? PAGE : 0;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param e = {.ino = FILE_INO, .attr_timeout = 1000, .entry_timeout = 1000};

    (void)parent;
    if (strcmp(name, SLOW) == 0) {
        struct timespec until;

        sem_post(&slow_began);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PATIENCE;
        if (sem_timedwait(&slow_release, &until) < 0) {
            fuse_reply_err(req, ETIMEDOUT);
            return;
        }
    }
    fill(&e.attr, FILE_INO);
    fuse_reply_entry(req, &e);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st;

    (void)fi;
    fill(&st, ino);
    fuse_reply_attr(req, &st, 1000);
}

/* More than it says to have. */
static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    char *buf = malloc(size);

    (void)ino;
    (void)off;
    (void)fi;
    memset(buf, 'r', size);
    fuse_reply_buf(req, buf, size);
    free(buf);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
    (void)ino;
    (void)buf;
    (void)off;
    (void)fi;
    fuse_reply_write(req, size);
}

/* Stores `put`, unless it is 0, and answers with the byte; 0: it is behind the end that the kernel
 * believes in. */
struct order {
    size_t at;
    char put;
};

static void use_file(int fd)
{
    char path[sizeof mountpoint + 2];
    struct order o;
    char *map;
    int file;

    snprintf(path, sizeof path, "%s/f", mountpoint);
    file = open(path, O_RDWR);
    map = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    while (map != MAP_FAILED && recv(fd, &o, sizeof o, 0) == sizeof o) {
        if (o.put != 0)
            map[o.at] = o.put;
        if (send(fd, map + o.at, 1, 0) < 0 && errno == EFAULT)
            send(fd, "", 1, 0);
    }
}

static void start_user(void)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    user = fork();
    assert_true(user >= 0);
    if (user == 0) {
        close(fuse_session_fd(session)); /* so that the mount ends with who serves it */
        close(pair[0]);
        use_file(pair[1]);
        _exit(0);
    }
    close(pair[1]);
    orders = pair[0];
}

static char byte_at(size_t at, char put)
{
    struct order o = {at, put};
    char byte;

    assert_int_equal(send(orders, &o, sizeof o, MSG_NOSIGNAL), sizeof o);
    assert_int_equal(recv(orders, &byte, 1, 0), 1);
    return byte;
}

static void *serve(void *arg)
{
    mfs_workers_run(arg);
    return NULL;
}

/* What is mounted there is seen in this namespace alone. In a chroot, "/" may be no mount. */
static int keep_mountpoint_private(void)
{
    if (!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return 0;
    return mount(mountpoint, mountpoint, NULL, MS_BIND, NULL) ||
           mount(NULL, mountpoint, NULL, MS_PRIVATE, NULL);
}

/* In a namespace of its own, so that the mount goes whatever happens. */
static int setup(void **state)
{
    static const struct fuse_lowlevel_ops ops = {
        .lookup = op_lookup, .getattr = op_getattr, .read = op_read, .write = op_write};
    char program[] = "test_fuse_device", *argv[] = {program, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);

    *state = NULL;
    if (unshare(CLONE_NEWNS) < 0 || access("/dev/fuse", R_OK | W_OK) < 0)
        return 0;
    memcpy(mountpoint + sizeof mountpoint - 7, "XXXXXX", 6); /* again, for each test */
    assert_non_null(mkdtemp(mountpoint));
    assert_int_equal(keep_mountpoint_private(), 0);
    assert_int_equal(sem_init(&slow_began, 0, 0), 0);
    assert_int_equal(sem_init(&slow_release, 0, 0), 0);
    served.admission = mfs_admission_create(1);
    assert_non_null(served.admission);
    session = fuse_session_new(&args, &ops, sizeof ops, &served);
    fuse_opt_free_args(&args);
    assert_non_null(session);
    assert_int_equal(fuse_session_mount(session, mountpoint), 0);
    assert_int_equal(mfs_device_attach(session, 1U << 20), 0);
    served.se = session;
    assert_int_equal(mfs_workers_create(&served.workers, 4, 1U << 20, &mfs_device_source, &served),
                     0);
    start_user();
    assert_int_equal(pthread_create(&server, NULL, serve, served.workers), 0);
    *state = session;
    return 0;
}

static int teardown(void **state)
{
    if (*state == NULL)
        return 0;
    close(orders);
    assert_int_equal(waitpid(user, NULL, 0), user);
    assert_int_equal(umount2(mountpoint, 0), 0);
    assert_int_equal(pthread_join(server, NULL), 0);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    mfs_workers_destroy(served.workers);
    mfs_admission_destroy(served.admission);
    umount2(mountpoint, 0); /* of itself, in a chroot */
    assert_int_equal(rmdir(mountpoint), 0);
    return 0;
}

/* It grows, and what a mapping has stored in its pages stays. */
static void test_growth_leaves_pages(void **state)
{
    if (*state == NULL)
        skip(); /* may not mount here */
    assert_int_equal(byte_at(PAGE - 1, 'm'), 'm');
    assert_int_equal(byte_at(2 * PAGE, 0), 0);
    assert_int_equal(mfs_device_grow(session, FILE_INO, PAGE), 0);
    assert_int_equal(byte_at(PAGE - 1, 0), 'm');
    assert_int_equal(byte_at(PAGE, 0), 0);
    assert_int_equal(mfs_device_grow(session, FILE_INO, 2 * PAGE + 1), 0);
    assert_int_equal(byte_at(PAGE - 1, 0), 'm');
    assert_int_equal(byte_at(2 * PAGE, 0), 'r');
    assert_int_equal(byte_at(PAGE, 0), 'r');
    assert_int_equal(byte_at(2 * PAGE, 'm'), 'm');
    assert_int_equal(mfs_device_grow(session, FILE_INO, 2 * PAGE + 1), 0);
    assert_int_equal(byte_at(2 * PAGE, 0), 'm');
    assert_int_equal(mfs_device_grow(session, FILE_INO + 1, PAGE), -ENOENT);
}

static int look_up(const char *name)
{
    char path[sizeof mountpoint + 8];
    struct stat st;

    snprintf(path, sizeof path, "%s/%s", mountpoint, name);
    return stat(path, &st) < 0 ? -errno : 0;
}

static void *look_up_slowly(void *arg)
{
    *(int *)arg = look_up(SLOW);
    return NULL;
}

/* Were the quick one kept waiting, the slow one would end with an error before. */
static void test_look_ups_side_by_side(void **state)
{
    pthread_t other;
    int rc = -1;

    if (*state == NULL)
        skip(); /* may not mount here */
    assert_int_equal(pthread_create(&other, NULL, look_up_slowly, &rc), 0);
    assert_int_equal(sem_wait(&slow_began), 0);
    assert_int_equal(look_up("quick"), 0);
    assert_int_equal(sem_post(&slow_release), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_look_ups_side_by_side, setup, teardown),
        cmocka_unit_test_setup_teardown(test_growth_leaves_pages, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
