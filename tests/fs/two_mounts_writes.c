/* ctest: timeout=180 races long=40
 *
 * Both mounts write one file at once: appended records stay whole, parts written by one never undo
 * parts written by the other, and a reader never sees anything that nobody wrote. */
#include <sched.h>

#include "fs_pair.h"

enum { BLOB = 6 << 20 };

static unsigned char blob[BLOB];

/* --- records that can be recognised wherever they lie ---------------------------------------- */

struct record {
    uint32_t magic, side, number, len; /* len counts the bytes after this head */
};

/* The kernel hands a file system in user space at most 256 pages at once; only that much stays
 * whole, less a page if the buffer begins in the middle of one. */
enum { RECORD_MAGIC = 0x6d656673, RECORD_MAX = 255 * 4096 - sizeof(struct record) };

static size_t draw_length(struct pair *p)
{
    switch (pair_own_random(p, 12)) {
    case 0:
        return pair_own_random(p, RECORD_MAX);
    case 1:
    case 2:
        return pair_own_random(p, 130000);
    case 3:
    case 4:
        return 4096 - sizeof(struct record);
    default:
        return pair_own_random(p, 300);
    }
}

static size_t make_record(unsigned char *to, int side, unsigned number, size_t len)
{
    struct record head = {RECORD_MAGIC, (uint32_t)side, number, (uint32_t)len};

    memcpy(to, &head, sizeof head);
    fs_fill(to + sizeof head, len, number, (uint64_t)side);
    return sizeof head + len;
}

/* The file consists of whole records, each side's in order and none missing. */
static void check_records(const char *path, unsigned count)
{
    static unsigned char *all;
    size_t size, at = 0;
    unsigned next[2] = {0, 0};
    struct record head;
    int fd = pair_open(path, O_RDONLY);

    size = (size_t)fs_stat(path).st_size;
    all = malloc(size + 1);
    CHECK(all);
    for (size_t got = 0; got < size;) {
        ssize_t n = read(fd, all + got, size - got);

        if (n <= 0)
            fs_fail(__FILE__, __LINE__, "read at %zu of %zu says %zd", got, size, n);
        got += (size_t)n;
    }
    OK(close(fd));
    while (at < size) {
        CHECK(size - at >= sizeof head);
        memcpy(&head, all + at, sizeof head);
        if (head.magic != RECORD_MAGIC || head.side > 1 || head.len > size - at - sizeof head)
            fs_fail(__FILE__, __LINE__, "no record at %zu of %zu, after %u and %u", at, size,
                    next[0], next[1]);
        EQUAL(next[head.side], head.number);
        fs_expect_pattern(all + at + sizeof head, head.len, head.number, head.side);
        next[head.side]++;
        at += sizeof head + head.len;
    }
    EQUAL(count, next[0]);
    EQUAL(count, next[1]);
    free(all);
}

/* O_APPEND from both: nothing overwritten, nothing torn. */
static void append(struct pair *p)
{
    unsigned count = 10 + pair_random(p, 30);
    bool reopen = pair_random(p, 3) == 0;
    int fd = pair_open(pair_mine(p, "log"), O_WRONLY | O_CREAT | O_APPEND);

    pair_meet(p);
    for (unsigned i = 0; i < count; i++) {
        size_t len = make_record(blob, p->side, i, draw_length(p));

        CHECK(write(fd, blob, len) == (ssize_t)len);
        if (reopen) {
            OK(close(fd));
            fd = pair_open(pair_mine(p, "log"), O_WRONLY | O_APPEND);
        }
    }
    OK(close(fd));
    pair_meet(p);
    check_records(pair_mine(p, "log"), count);
    pair_meet(p);
    if (p->side == 0)
        OK(unlink(pair_mine(p, "log")));
}

/* --- regions ---------------------------------------------------------------------------------- */

static void write_regions(struct pair *p, int fd, size_t region, unsigned regions, uint64_t seed)
{
    unsigned order = pair_own_random(p, 2);

    for (unsigned i = 0; i < regions; i++) {
        unsigned n = order ? i : regions - 1 - i;

        if ((int)(n % 2) != p->side)
            continue;
        fs_fill(blob, region, n * region, seed + n % 2);
        fs_write_at(fd, blob, region, (off_t)(n * region));
        if (pair_own_random(p, 40) == 0)
            OK(fsync(fd));
    }
}

static void check_regions(const char *path, size_t region, unsigned regions, uint64_t seed)
{
    int fd = pair_open(path, O_RDONLY);

    EQUAL(region * regions, fs_stat(path).st_size);
    for (unsigned n = 0; n < regions; n++) {
        fs_read_at(fd, blob, region, (off_t)(n * region));
        fs_expect_pattern(blob, region, n * region, seed + n % 2);
    }
    OK(close(fd));
}

/* Every other piece by each side: pieces that share pages, share stripes, or go over several. */
static void interleaved(struct pair *p)
{
    static const size_t region_size[] = {
        1,           17,
        512,         1000,
        4096,        5000,
        65536,       131072,
        300000,      PAIR_STRIPE - 1000,
        PAIR_STRIPE, PAIR_STRIPE + 1000,
    };
    size_t region = region_size[pair_random(p, sizeof region_size / sizeof region_size[0])];
    unsigned most = (unsigned)(BLOB / region),
             regions = 2 + pair_random(p, most < 60 ? most - 2 : 58);
    uint64_t seed = pair_draw(&p->random);
    bool fresh = pair_random(p, 2);
    int fd;

    if (p->side == 0 && fresh && unlink(pair_mine(p, "pieces")) < 0)
        EQUAL(ENOENT, errno);
    if (p->side == 0)
        OK(close(pair_open(pair_mine(p, "pieces"), O_WRONLY | O_CREAT | O_TRUNC)));
    pair_meet(p);
    fd = pair_open(pair_mine(p, "pieces"), pair_own_random(p, 2) ? O_RDWR : O_WRONLY);
    pair_meet(p);
    write_regions(p, fd, region, regions, seed);
    OK(close(fd));
    pair_meet(p);
    check_regions(pair_mine(p, "pieces"), region, regions, seed);
}

/* Both write the same bytes: the result is one of the two in each unit, never a mixture from
 * before. */
static void same_bytes(struct pair *p)
{
    size_t len = pair_random(p, 2) ? 4096 : 1 + pair_random(p, 200000);
    int fd;

    if (p->side == 0) {
        memset(blob, 'o', len);
        fs_put(pair_mine(p, "same"), blob, len);
    }
    pair_meet(p);
    fd = pair_open(pair_mine(p, "same"), O_RDWR);
    memset(blob, 'A' + p->side, len);
    fs_write_at(fd, blob, len, 0);
    OK(close(fd));
    pair_meet(p);
    fd = pair_open(pair_mine(p, "same"), O_RDONLY);
    fs_read_at(fd, blob, len, 0);
    OK(close(fd));
    for (size_t i = 0; i < len; i++)
        CHECK(blob[i] == 'A' || blob[i] == 'B');
    /* Both mounts must have the same idea of it. */
    for (size_t i = 0, sum = 0; i < len; i++) {
        sum = sum * 31 + blob[i];
        atomic_store(&p->shared->value[p->side], (int64_t)sum);
    }
    pair_meet(p);
    EQUAL(atomic_load(&p->shared->value[0]), atomic_load(&p->shared->value[1]));
}

/* --- a reader beside a writer ------------------------------------------------------------------
 */

/* The writer goes over the file with ever newer bytes; a reader meets only bytes that were written,
 * and from the moment that a generation is complete none that are older. */
static void reader_beside(struct pair *p)
{
    size_t len = pair_random(p, 2) ? 3000 : PAIR_STRIPE + 200000;
    int fd, generations = len < 4000 ? 60 : 8;

    if (p->side == 0) {
        memset(blob, 1, len);
        fs_put(pair_mine(p, "waves"), blob, len);
        atomic_store(&p->shared->value[0], 1);
    }
    pair_meet(p);
    for (int g = 2; p->side == 0 && g < generations; g++) {
        fd = pair_open(pair_mine(p, "waves"), O_WRONLY);
        memset(blob, g, len);
        fs_write_at(fd, blob, len, 0);
        OK(close(fd));
        atomic_store(&p->shared->value[0], g);
    }
    if (p->side == 0)
        atomic_store(&p->shared->value[1], 1);
    while (p->side == 1 && !atomic_load(&p->shared->value[1])) {
        int64_t complete = atomic_load(&p->shared->value[0]), latest;

        fd = pair_open(pair_mine(p, "waves"), O_RDONLY);
        EQUAL(len, pread(fd, blob, len + 1, 0));
        OK(close(fd));
        latest = atomic_load(&p->shared->value[0]) + 1;
        for (size_t i = 0; i < len; i++)
            if (blob[i] < complete || blob[i] > latest)
                fs_fail(__FILE__, __LINE__, "byte %zu of %zu is of generation %d, not %lld to %lld",
                        i, len, blob[i], (long long)complete, (long long)latest);
    }
}

/* Reads on from `seen` until at least `at_least` bytes were seen, or nothing more comes for a
 * second: a read that races with one more change of the size may end at the size before it. */
static size_t read_tail(int fd, size_t seen, size_t at_least, size_t end, uint64_t seed)
{
    double start = pair_now();

    do {
        ssize_t n = pread(fd, blob, end - seen, (off_t)seen);

        OK(n);
        fs_expect_pattern(blob, (size_t)n, seen, seed);
        seen += (size_t)n;
    } while (seen < at_least && pair_now() - start < 1);
    return seen;
}

/* A file grows by appends; what a reader sees of it is always a beginning of what it will be. */
static void growing(struct pair *p)
{
    enum { PIECES = 60 };
    size_t piece = 1 + pair_random(p, pair_random(p, 4) ? 3000 : 70000);
    uint64_t seed = pair_draw(&p->random);
    int fd = pair_open(pair_mine(p, "tail"), O_RDWR | O_CREAT | (p->side ? 0 : O_APPEND));
    size_t seen = 0;

    pair_meet(p);
    for (size_t i = 0; p->side == 0 && i < PIECES; i++) {
        fs_fill(blob, piece, i * piece, seed);
        CHECK(write(fd, blob, piece) == (ssize_t)piece);
        OK(fsync(fd));
        atomic_store(&p->shared->value[0], (int64_t)((i + 1) * piece));
    }
    while (p->side == 1 && seen < PIECES * piece) {
        size_t at_least = (size_t)atomic_load(&p->shared->value[0]);

        seen = read_tail(fd, seen, at_least, PIECES * piece, seed);
        if (seen < at_least)
            fs_fail(__FILE__, __LINE__, "%zu bytes were fsynced, only %zu can be read", at_least,
                    seen);
    }
    OK(close(fd));
    pair_meet(p);
    if (p->side == 0)
        OK(unlink(pair_mine(p, "tail")));
}

/* Both keep the file open, and mapped, and change it by turns, by write or by the mapping: each
 * sees what the other has synced. */
static void turns(struct pair *p)
{
    enum { TURNS = 12 };
    size_t len = pair_random(p, 2) ? 20000 : PAIR_STRIPE + 300000;
    unsigned char *map;
    int fd;

    if (p->side == 0) {
        memset(blob, 0, len);
        fs_put(pair_mine(p, "turns"), blob, len);
    }
    pair_meet(p);
    fd = pair_open(pair_mine(p, "turns"), O_RDWR);
    map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    memset(blob, 0, len);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        size_t off = pair_random(p, (unsigned)len);
        size_t n =
            1 + pair_random(p, (unsigned)(len - off) < 30000 ? (unsigned)(len - off) : 30000);
        unsigned how = pair_random(p, 3);

        if (len > PAIR_STRIPE && pair_random(p, 3) == 0)
            off = PAIR_STRIPE - (n + 1) / 2; /* in two stripes */
        memset(blob + off, (int)(turn + 1 + p->round % 200), n);
        if ((int)(turn % 2) == p->side && how == 0) {
            memcpy(map + off, blob + off, n);
            OK(msync(map, len, MS_SYNC));
        } else if ((int)(turn % 2) == p->side) {
            fs_write_at(fd, blob + off, n, (off_t)off);
            OK(how == 1 ? fsync(fd) : close(dup(fd)));
        }
        pair_meet(p);
        if ((int)(turn % 2) != p->side && memcmp(map, blob, len))
            fs_fail(__FILE__, __LINE__, "turn %u (%u): the mapping of %zu bytes is old", turn, how,
                    len);
        if ((int)(turn % 2) != p->side) {
            unsigned char *got = malloc(len);

            CHECK(got);
            fs_read_at(fd, got, len, 0);
            if (memcmp(got, blob, len))
                fs_fail(__FILE__, __LINE__, "turn %u (%u): the file of %zu bytes is old", turn, how,
                        len);
            free(got);
        }
        pair_meet(p);
    }
    OK(munmap(map, len));
    OK(close(fd));
}

/* Truncation against reading: only what was there, or the zeros of a file made longer again. */
static void truncate_beside(struct pair *p)
{
    size_t len = 100000;
    int fd;

    if (p->side == 0) {
        memset(blob, 7, len);
        fs_put(pair_mine(p, "cut"), blob, len);
    }
    pair_meet(p);
    for (unsigned i = 0; p->side == 0 && i < 20; i++) {
        OK(truncate(pair_mine(p, "cut"), (off_t)(i * 100)));
        OK(truncate(pair_mine(p, "cut"), (off_t)len));
        fd = pair_open(pair_mine(p, "cut"), O_WRONLY);
        fs_write_at(fd, blob, len, 0);
        OK(close(fd));
    }
    if (p->side == 0)
        atomic_store(&p->shared->value[1], 1);
    while (p->side == 1 && !atomic_load(&p->shared->value[1])) {
        ssize_t n;

        fd = pair_open(pair_mine(p, "cut"), O_RDONLY);
        n = pread(fd, blob, len + 1, 0);
        OK(n);
        CHECK(n <= (ssize_t)len);
        for (ssize_t i = 0; i < n; i++)
            CHECK(blob[i] == 7 || blob[i] == 0);
        OK(close(fd));
    }
}

/* A file that the reader knows is cut, and goes on being written while he opens it: whatever comes
 * in the way of what his kernel is told, it ends where it was cut. */
static void opened_after_cut(struct pair *p)
{
    enum { LONG = 20000, SHORT = 3000, TIMES = 4 };
    int fd;

    if (p->side == 0) {
        memset(blob, 1, LONG);
        fs_put(pair_mine(p, "shorter"), blob, LONG);
    }
    pair_meet(p);
    fd = pair_open(pair_mine(p, "shorter"), O_RDONLY);
    EQUAL(LONG, pread(fd, blob, LONG + 1, 0));
    pair_meet(p);
    if (p->side == 1)
        OK(close(fd));
    if (p->side == 0) {
        fs_put(pair_mine(p, "shorter"), blob, SHORT);
        atomic_store(&p->shared->value[0], 1);
        for (unsigned i = 0; i < TIMES; i++) {
            int again = pair_open(pair_mine(p, "shorter"), O_WRONLY);

            fs_write_at(again, blob, SHORT, 0);
            OK(close(again));
        }
        OK(close(fd));
        atomic_store(&p->shared->value[1], 1);
    }
    while (p->side == 1 && !atomic_load(&p->shared->value[0]))
        sched_yield();
    while (p->side == 1 && !atomic_load(&p->shared->value[1])) {
        fd = pair_open(pair_mine(p, "shorter"), O_RDONLY);
        EQUAL(SHORT, pread(fd, blob, LONG, 0));
        OK(close(fd));
    }
}

/* A mapping's last byte is changed by the one mount alone, while the other changes the file's first
 * page: whatever notices say of the file, the byte is never older than it was. */
static void last_page(struct pair *p)
{
    enum { LAST = 3 * 4096 - 100, TIMES = 40 };
    volatile unsigned char *map;
    unsigned char value = 1;
    int fd;

    if (p->side == 0) {
        memset(blob, value, LAST + 1);
        fs_put(pair_mine(p, "last"), blob, LAST + 1);
    }
    pair_meet(p);
    fd = pair_open(pair_mine(p, "last"), O_RDWR);
    map = mmap(NULL, LAST + 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    pair_meet(p);
    for (unsigned i = 0; p->side == 1 && i < TIMES; i++) {
        fs_write_at(fd, blob, 4096, 0);
        OK(close(dup(fd)));
    }
    if (p->side == 1)
        atomic_store(&p->shared->value[0], 1);
    while (p->side == 0 && !atomic_load(&p->shared->value[0])) {
        map[LAST] = ++value;
        for (unsigned spin = pair_own_random(p, 20000); spin; spin--)
            if (map[LAST] != value)
                fs_fail(__FILE__, __LINE__, "the last byte is %u again, not %u", map[LAST], value);
    }
    OK(msync((void *)map, LAST + 1, MS_SYNC));
    atomic_store(&p->shared->value[1 + p->side], value);
    pair_meet(p);
    value = (unsigned char)atomic_load(&p->shared->value[1]);
    CHECK(map[LAST] == value);
    OK(munmap((void *)map, LAST + 1));
    fs_read_at(fd, blob, 1, LAST);
    EQUAL(value, blob[0]);
    OK(close(fd));
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"append", .race = append, .cost = 10},
        {"interleaved", .race = interleaved, .cost = 2},
        {"same_bytes", .race = same_bytes},
        {"reader_beside", .race = reader_beside, .cost = 10},
        {"growing", .race = growing, .cost = 10},
        {"turns", .race = turns, .cost = 10},
        {"truncate_beside", .race = truncate_beside, .cost = 10},
        {"opened_after_cut", .race = opened_after_cut, .cost = 2},
        {"last_page", .race = last_page, .cost = 10},
        {NULL},
    };

    return pair_main(argc, argv, scenarios);
}
