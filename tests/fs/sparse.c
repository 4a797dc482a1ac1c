/* Large files: far offsets, sparse files of TiB, more than 4 GiB, each costing only what was
 * written. And holes as cp, tar -S, qemu-img and databases find them by SEEK_DATA and st_blocks on
 * other file systems, in blocks of 4 KiB, on both mounts when there are two. */
#include "fs_check.h"
#include <linux/falloc.h>

static const off_t gib = 1LL << 30;

/* Islands of data in a file of 3 TiB. */
static void islands(void)
{
    const off_t size = 3072 * gib, step = 100 * gib + 12345;
    unsigned char buf[10000];
    off_t pos = 0, n = 0;
    int fd = open("islands", O_RDWR | O_CREAT, 0644);

    OK(fd);
    OK(ftruncate(fd, size));
    for (off_t off = 0; off < size - (off_t)sizeof buf; off += step) {
        fs_fill(buf, sizeof buf, (uint64_t)off, 1);
        fs_write_at(fd, buf, sizeof buf, off);
    }
    OK(fsync(fd));
    EQUAL(size, fs_stat("islands").st_size);
    CHECK(fs_stat("islands").st_blocks * 512 < gib);
    for (off_t off = 0; off < size - (off_t)sizeof buf; off += step) {
        fs_read_at(fd, buf, sizeof buf, off);
        fs_expect_pattern(buf, sizeof buf, (uint64_t)off, 1);
        fs_read_at(fd, buf, sizeof buf, off + 50 * gib);
        for (size_t i = 0; i < sizeof buf; i++)
            EQUAL(0, buf[i]);
        n++;
    }
    OK(close(fd));
    fd = open("islands", O_RDONLY);
    OK(fd);
    /* From island to island; each is found at or before its place and not missed. */
    for (off_t i = 0; i < 3; i++) {
        off_t data = lseek(fd, pos, SEEK_DATA), hole;

        OK(data);
        CHECK(data <= i * step && data > i * step - 4 * (1 << 20));
        hole = lseek(fd, data, SEEK_HOLE);
        CHECK(hole >= i * step + (off_t)sizeof buf && hole < i * step + 4 * (1 << 20));
        pos = hole;
    }
    OK(close(fd));
    OK(truncate("islands", gib));
    EQUAL(gib, fs_stat("islands").st_size);
    OK(unlink("islands"));
    CHECK(n > 30);
}

/* Data across the 2 and 4 GiB borders. */
static void borders(void)
{
    const size_t len = 2 << 20;
    unsigned char *buf = malloc(len);
    int fd = open("borders", O_RDWR | O_CREAT, 0644);

    OK(fd);
    CHECK(buf);
    for (int g = 2; g <= 4; g += 2) {
        off_t off = g * gib - (off_t)len / 2;

        fs_fill(buf, len, (uint64_t)off, 2);
        fs_write_at(fd, buf, len, off);
    }
    OK(close(fd));
    fd = open("borders", O_RDONLY);
    OK(fd);
    for (int g = 2; g <= 4; g += 2) {
        off_t off = g * gib - (off_t)len / 2;

        fs_read_at(fd, buf, len, off);
        fs_expect_pattern(buf, len, (uint64_t)off, 2);
    }
    EQUAL(4 * gib + (off_t)len / 2, fs_stat("borders").st_size);
    OK(close(fd));
    OK(unlink("borders"));
    free(buf);
}

/* --- holes -------------------------------------------------------------------------------------
 */

enum { BLOCK = 4096, BLOCKS = 600 }; /* more than two stripes */

/* What the file has by the rules of ext4 and tmpfs. */
static struct {
    unsigned char bytes[BLOCKS * BLOCK];
    bool data[BLOCKS], room[BLOCKS]; /* written; asked for by fallocate */
    off_t size;
} model;

static uint32_t dice(uint32_t n)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(state >> 33) % n;
}

static off_t blocks_of(off_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK;
}

/* The stretches of data and holes that lseek finds are the model's. */
static void expect_map(int fd)
{
    off_t at = 0, last = blocks_of(model.size);

    while (at < last) {
        off_t data = at, hole;

        while (data < last && !model.data[data])
            data++;
        if (data == last) {
            FAILS(ENXIO, lseek(fd, at * BLOCK, SEEK_DATA));
            break;
        }
        EQUAL(data * BLOCK, lseek(fd, at * BLOCK, SEEK_DATA));
        for (hole = data; hole < last && model.data[hole];)
            hole++;
        EQUAL(hole * BLOCK < model.size ? hole * BLOCK : model.size,
              lseek(fd, data * BLOCK, SEEK_HOLE));
        if (data > at)
            EQUAL(at * BLOCK + 1, lseek(fd, at * BLOCK + 1, SEEK_HOLE));
        at = hole;
    }
}

static void expect_blocks(int fd)
{
    off_t blocks = 0;
    struct stat st;

    for (unsigned b = 0; b < BLOCKS; b++)
        blocks += model.data[b] || model.room[b];
    OK(fstat(fd, &st));
    EQUAL(model.size, st.st_size);
    EQUAL(blocks * (BLOCK / 512), st.st_blocks);
}

static void expect_bytes(int fd)
{
    static unsigned char buf[sizeof model.bytes];

    EQUAL(model.size, pread(fd, buf, sizeof buf, 0));
    CHECK(memcmp(buf, model.bytes, (size_t)model.size) == 0);
}

/* Not of what was only asked for: on other file systems that is data when it has been read. */
static void expect_data(int fd)
{
    unsigned char buf[BLOCK];

    for (off_t b = 0; b < BLOCKS; b++) {
        off_t left = model.size - b * BLOCK, n = left < BLOCK ? left : BLOCK;

        if (!model.data[b] || n <= 0)
            continue;
        fs_read_at(fd, buf, (size_t)n, b * BLOCK);
        CHECK(memcmp(buf, model.bytes + b * BLOCK, (size_t)n) == 0);
    }
}

static void write_some(int fd, off_t off, size_t len)
{
    for (size_t i = 0; i < len; i++)
        model.bytes[(size_t)off + i] = (unsigned char)(dice(255) + 1);
    fs_write_at(fd, model.bytes + off, len, off);
    for (off_t b = off / BLOCK; b < blocks_of(off + (off_t)len); b++)
        model.data[b] = true;
    if (off + (off_t)len > model.size)
        model.size = off + (off_t)len;
}

static void cut(int fd, off_t size)
{
    OK(ftruncate(fd, size));
    for (off_t b = blocks_of(size); size <= model.size && b < BLOCKS; b++)
        model.data[b] = model.room[b] = false;
    memset(model.bytes + size, 0, sizeof model.bytes - (size_t)size);
    model.size = size;
}

static void allocate(int fd, int mode, off_t off, off_t len)
{
    bool zero = mode & FALLOC_FL_ZERO_RANGE, punch = mode & FALLOC_FL_PUNCH_HOLE;
    int rc = fallocate(fd, mode, off, len);

    if (rc == -1 && errno == EOPNOTSUPP && zero) /* tmpfs */
        return;
    OK(rc);
    if (zero || punch)
        memset(model.bytes + off, 0, (size_t)len);
    for (off_t b = off / BLOCK; b < blocks_of(off + len); b++) {
        bool whole = b * BLOCK >= off && (b + 1) * BLOCK <= off + len;

        if ((zero || punch) && whole)
            model.data[b] = false;
        if (!punch || whole)
            model.room[b] = !punch;
    }
    if (!(mode & FALLOC_FL_KEEP_SIZE) && off + len > model.size)
        model.size = off + len;
}

static void change(int fd)
{
    static const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
    off_t most = dice(3) ? 3 * BLOCK : (off_t)sizeof model.bytes / 2;
    off_t off = dice(sizeof model.bytes), len = 1 + dice((uint32_t)most), end;

    if (off + len > (off_t)sizeof model.bytes)
        len = (off_t)sizeof model.bytes - off;
    switch (dice(8)) {
    case 0:
        cut(fd, off);
        break;
    case 1:
    case 2:
    case 3: /* in part only of blocks with data: else file systems differ */
        end = blocks_of(off + len) * BLOCK;
        off -= model.data[off / BLOCK] ? 0 : off % BLOCK;
        allocate(fd, modes[dice(5)], off, end - off);
        break;
    default:
        write_some(fd, off, (size_t)len);
    }
}

static void holes(int argc, char **argv)
{
    char cwd[4096], path[8300];
    int fd[2];

    CHECK(getcwd(cwd, sizeof cwd));
    snprintf(path, sizeof path, "%s%s/holes", argv[argc > 2 ? 2 : 1], strrchr(cwd, '/'));
    fd[0] = open("holes", O_RDWR | O_CREAT, 0644);
    OK(fd[0]);
    fd[1] = open(path, O_RDWR);
    OK(fd[1]);
    for (unsigned step = 0; step < 250; step++) {
        int one = (int)dice(2);

        change(fd[one]);
        expect_map(fd[one]); /* what is not flushed counts on its own mount */
        expect_blocks(fd[one]);
        OK(fsync(fd[one]));
        expect_map(fd[!one]);
        expect_blocks(fd[!one]);
        if (step % 10 == 0)
            expect_data(fd[!one]);
    }
    expect_bytes(fd[0]);
    expect_bytes(fd[1]);
    OK(close(fd[0]));
    OK(close(fd[1]));
    OK(unlink("holes"));
}

/* Before anything of it is stored a file does not look empty, which some take for "all hole". */
static void fresh(void)
{
    int fd = open("fresh", O_RDWR | O_CREAT, 0644);
    struct stat st;

    OK(fd);
    OK(ftruncate(fd, 4 << 20));
    fs_write_at(fd, "x", 1, 3 << 20);
    OK(fstat(fd, &st));
    EQUAL(BLOCK / 512, st.st_blocks);
    CHECK(st.st_blksize % BLOCK == 0);
    OK(close(fd));
    OK(unlink("fresh"));
}

int main(int argc, char **argv)
{
    fs_enter(argc, argv);
    islands();
    borders();
    fresh();
    holes(argc, argv);
    fs_leave();
    return 0;
}
