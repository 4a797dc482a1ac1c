/* Large files: far offsets, sparse files of TiB, more than 4 GiB, each costing only what was
 * written. */
#include "fs_check.h"

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

int main(int argc, char **argv)
{
    fs_enter(argc, argv);
    islands();
    borders();
    fs_leave();
    return 0;
}
