/* ctest: timeout=120
 *
 * Whatever way a file is written, who opens or reads it afterwards sees the bytes, though others
 * read it through the page cache all the time, by read(2) and by mmap(2), here and on another
 * mount: data bases and virtual machines (io_submit, io_uring with O_DIRECT) beside a backup's
 * readers; xfstests generic/451. A page that is filled while a write passes it by must not stay. By
 * hand also: page_bypass DIRECTORY OTHER-MOUNT SECONDS-FOR-EACH [WAY]. */
#include <signal.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "fs_check.h"
#include "page_bypass.h"

enum {
    BLOCK = 4096,
    BLOCKS = 160,
    SIZE = BLOCKS * BLOCK, /* of the file, as a rule */
    MOST = 2 * SIZE,
    READERS = 3, /* on each mount */
};

/* What a write is to change. */
struct change {
    int fd;
    size_t off, len; /* whole blocks, below SIZE */
    unsigned char *bytes;
};

static char *dir[2], *path[2]; /* and the file in it, by each mount */
static int mounts;
static unsigned char model[MOST], *buffer, *map[2];
static size_t size;
static aio_context_t aio;
static struct ring {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *sqe;
    struct io_uring_cqe *cqe;
} ring;

/* --- ways to write: the count of bytes, or -1 ------------------------------------------------ */

static ssize_t plain(const struct change *c)
{
    return pwrite(c->fd, c->bytes, c->len, (off_t)c->off);
}

static ssize_t by_aio(const struct change *c)
{
    struct iocb iocb = {.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = (uint32_t)c->fd};
    struct iocb *list = &iocb;
    struct io_event event;

    iocb.aio_buf = (uintptr_t)c->bytes;
    iocb.aio_nbytes = c->len;
    iocb.aio_offset = (int64_t)c->off;
    EQUAL(1, syscall(SYS_io_submit, aio, 1, &list));
    EQUAL(1, syscall(SYS_io_getevents, aio, 1, 1, &event, NULL));
    return (ssize_t)event.res;
}

static ssize_t by_ring(const struct change *c)
{
    unsigned tail = *ring.sq_tail, at = tail & *ring.sq_mask;
    ssize_t n;

    ring.sqe[at] = (struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = c->fd};
    ring.sqe[at].addr = (uintptr_t)c->bytes;
    ring.sqe[at].len = (uint32_t)c->len;
    ring.sqe[at].off = c->off;
    ring.sq_array[at] = at;
    __atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
    EQUAL(1, syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
    CHECK(__atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE) != *ring.cq_head);
    n = ring.cqe[*ring.cq_head & *ring.cq_mask].res;
    __atomic_store_n(ring.cq_head, *ring.cq_head + 1, __ATOMIC_RELEASE);
    return n;
}

static ssize_t by_copy(const struct change *c)
{
    loff_t from = 0, to = (loff_t)c->off;
    size_t done = 0;
    int fd = open("source", O_RDWR | O_CREAT | O_TRUNC, 0644);

    OK(fd);
    fs_write_at(fd, c->bytes, c->len, 0);
    while (done < c->len) {
        ssize_t n = copy_file_range(fd, &from, c->fd, &to, c->len - done, 0);

        CHECK(n > 0);
        done += (size_t)n;
    }
    OK(close(fd));
    return (ssize_t)done;
}

static ssize_t zeroed(const struct change *c, int mode)
{
    memset(c->bytes, 0, c->len);
    return fallocate(c->fd, mode, (off_t)c->off, (off_t)c->len) < 0 ? -1 : (ssize_t)c->len;
}

static ssize_t by_punch(const struct change *c)
{
    return zeroed(c, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

static ssize_t by_zero_range(const struct change *c)
{
    return zeroed(c, FALLOC_FL_ZERO_RANGE);
}

static ssize_t by_cut(const struct change *c)
{
    memset(c->bytes, 0, SIZE - c->off);
    memset(model + c->off, 0, SIZE - c->off);
    return ftruncate(c->fd, (off_t)c->off) < 0 || ftruncate(c->fd, SIZE) < 0 ? -1 : (ssize_t)c->len;
}

static ssize_t by_map(const struct change *c)
{
    unsigned char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);

    CHECK(p != MAP_FAILED);
    memcpy(p + c->off, c->bytes, c->len);
    OK(msync(p, SIZE, MS_SYNC));
    OK(munmap(p, SIZE));
    return (ssize_t)c->len;
}

/* `later`: set by fcntl(2) when the file is open. */
static const struct kind {
    const char *name;
    int flags, later;
    ssize_t (*write)(const struct change *c);
} kinds[] = {
    {"pwrite", 0, 0, plain},
    {"pwrite O_SYNC", O_SYNC, 0, plain},
    {"pwrite O_DIRECT", O_DIRECT, 0, plain},
    {"io_submit O_DIRECT", O_DIRECT, 0, by_aio},
    {"io_submit F_SETFL O_DIRECT", 0, O_DIRECT, by_aio},
    {"io_submit", 0, 0, by_aio},
    {"io_uring O_DIRECT", O_DIRECT, 0, by_ring},
    {"io_uring O_DIRECT O_DSYNC", O_DIRECT | O_DSYNC, 0, by_ring},
    {"write O_APPEND", O_APPEND, 0, plain},
    {"io_submit O_APPEND", O_APPEND, 0, by_aio},
    {"io_submit O_APPEND O_DIRECT", O_APPEND | O_DIRECT, 0, by_aio},
    {"copy_file_range", 0, 0, by_copy},
    {"punch hole", 0, 0, by_punch},
    {"zero range", 0, 0, by_zero_range},
    {"ftruncate", 0, 0, by_cut},
    {"msync", 0, 0, by_map},
};

/* --- who reads ------------------------------------------------------------------------------- */

static void read_for_ever(const char *name)
{
    static unsigned char bytes[MOST];

    for (;;) {
        int fd = open(name, O_RDONLY);

        if (fd < 0 || pread(fd, bytes, sizeof bytes, 0) < 0 || close(fd) < 0)
            fs_fail(__FILE__, __LINE__, "a reader of %s", name);
    }
}

static void touch_for_ever(const volatile unsigned char *mapped)
{
    for (;; usleep(100))
        for (size_t at = 0; at < SIZE / 2; at += BLOCK) /* what is never cut off */
            (void)mapped[at];
}

static void start_readers(pid_t *reader, unsigned n)
{
    fflush(NULL);
    for (unsigned i = 0; i < n; i++) {
        unsigned mount = i % (unsigned)mounts;

        reader[i] = fork();
        OK(reader[i]);
        if (reader[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (i < (unsigned)mounts)
                touch_for_ever(map[mount]);
            read_for_ever(path[mount]);
        }
    }
}

static void stop_readers(const pid_t *reader, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        int status;

        OK(kill(reader[i], SIGKILL));
        OK(waitpid(reader[i], &status, 0));
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
}

static void expect(const struct kind *k, unsigned round, const char *where, const void *got)
{
    const unsigned char *bytes = got;

    for (size_t at = 0; at < size; at++)
        if (bytes[at] != model[at])
            fs_fail(__FILE__, __LINE__, "%s, round %u: %s is stale at %zu of %zu", k->name, round,
                    where, at, size);
}

static void check(const struct kind *k, unsigned round, int mount)
{
    static unsigned char bytes[MOST];
    int fd = open(path[mount], O_RDONLY);

    OK(fd);
    EQUAL(size, read(fd, bytes, sizeof bytes));
    OK(close(fd));
    expect(k, round, mount ? "a read on the other mount" : "a read", bytes);
    expect(k, round, mount ? "the other mount's map" : "the map", map[mount]);
}

/* --- rounds ---------------------------------------------------------------------------------- */

static struct change draw(int fd, const struct kind *k)
{
    struct change c = {fd, 0, SIZE, buffer};

    if (rand() % 2) {
        c.off = (size_t)(rand() % BLOCKS) * BLOCK;
        c.len = BLOCK * (1 + (size_t)rand() % (BLOCKS - c.off / BLOCK));
    }
    if (k->write == by_cut)
        c.off = SIZE / 2 + c.off / 2;
    if (k->write == by_cut)
        c.len = SIZE - c.off;
    if (k->flags & O_APPEND) {
        c.off = size;
        c.len = k->flags & O_DIRECT ? BLOCK : 100;
    }
    memset(c.bytes, 1 + rand() % 255, c.len);
    return c;
}

/* False: not to be had here. */
static bool write_once(int fd, const struct kind *k, unsigned round)
{
    struct change c = draw(fd, k);
    ssize_t n;

    if (c.off + c.len > MOST) { /* appended enough */
        OK(ftruncate(fd, SIZE));
        size = SIZE;
        return true;
    }
    n = k->write(&c);
    if (n < 0 && (errno == EOPNOTSUPP || errno == EINVAL) && round == 0)
        return false;
    EQUAL(c.len, n);
    memcpy(model + c.off, c.bytes, c.len);
    if (c.off + c.len > size)
        size = c.off + c.len;
    return true;
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void run(const struct kind *k, double seconds)
{
    int fd = open(path[0], O_RDWR | k->flags);
    double until = now() + seconds;
    unsigned round = 0;

    if (fd < 0 || (k->later && fcntl(fd, F_SETFL, k->flags | k->later) < 0) ||
        (k->write == by_ring && ring.fd < 0)) {
        printf("skipped  %s\n", k->name);
        if (fd >= 0)
            close(fd);
        return;
    }
    for (; now() < until; round++) {
        if (!write_once(fd, k, round))
            break;
        check(k, round, 0);
        if (mounts == 2) {
            OK(fsync(fd));
            check(k, round, 1);
        }
    }
    OK(ftruncate(fd, SIZE));
    size = SIZE;
    OK(close(fd));
    printf("%s%s: %u rounds\n", round ? "ok       " : "skipped  ", k->name, round);
}

/* --- the file, and the rings ------------------------------------------------------------------ */

static void make_ring(void)
{
    struct io_uring_params p = {0};
    unsigned char *sq, *cq;

    ring.fd = (int)syscall(SYS_io_uring_setup, 1, &p);
    if (ring.fd < 0)
        return;
    sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned), PROT_READ | PROT_WRITE,
              MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof *ring.cqe, PROT_READ | PROT_WRITE,
              MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
    ring.sqe = mmap(NULL, p.sq_entries * sizeof *ring.sqe, PROT_READ | PROT_WRITE, MAP_SHARED,
                    ring.fd, IORING_OFF_SQES);
    CHECK(sq != MAP_FAILED && cq != MAP_FAILED && ring.sqe != MAP_FAILED);
    ring.sq_tail = (unsigned *)(void *)(sq + p.sq_off.tail);
    ring.sq_mask = (unsigned *)(void *)(sq + p.sq_off.ring_mask);
    ring.sq_array = (unsigned *)(void *)(sq + p.sq_off.array);
    ring.cq_head = (unsigned *)(void *)(cq + p.cq_off.head);
    ring.cq_tail = (unsigned *)(void *)(cq + p.cq_off.tail);
    ring.cq_mask = (unsigned *)(void *)(cq + p.cq_off.ring_mask);
    ring.cqe = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
}

static void make_file(int argc, char **argv)
{
    fs_enter(argc, argv);
    dir[0] = getcwd(NULL, 0);
    CHECK(dir[0]);
    mounts = argc > 2 ? 2 : 1;
    if (mounts == 2)
        CHECK(asprintf(&dir[1], "%s%s", argv[2], strrchr(dir[0], '/')) > 0);
    for (int i = 0; i < mounts; i++)
        CHECK(asprintf(&path[i], "%s/file", dir[i]) > 0);
    size = SIZE;
    fs_put(path[0], model, SIZE);
    for (int i = 0; i < mounts; i++) {
        int fd = open(path[i], O_RDONLY);

        OK(fd);
        map[i] = mmap(NULL, MOST, PROT_READ, MAP_SHARED, fd, 0);
        CHECK(map[i] != MAP_FAILED);
        OK(close(fd));
    }
}

int main(int argc, char **argv)
{
    pid_t reader[2 * READERS];
    unsigned n;

    CHECK(posix_memalign((void **)&buffer, BLOCK, MOST) == 0);
    OK(syscall(SYS_io_setup, 1, &aio));
    make_ring();
    make_file(argc, argv);
    n = READERS * (unsigned)mounts;
    start_readers(reader, n);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (argc < 5 || strcmp(argv[4], kinds[i].name) == 0)
            run(&kinds[i], argc > 3 ? atof(argv[3]) : 0.3);
    stop_readers(reader, n);
    if (mounts == 2)
        late_write(dir[0], dir[1]);
    unlink("source");
    OK(unlink(path[0]));
    fs_leave();
    return 0;
}
