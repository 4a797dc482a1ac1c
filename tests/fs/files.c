/* Regular files: reading, writing, sizes, holes, append, mmap, links. */
#include "fs_check.h"
#include <linux/falloc.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <sys/wait.h>

static void create_and_read(void)
{
    struct stat st;
    char buf[16];
    int fd = open("a", O_RDWR | O_CREAT | O_EXCL, 0640);

    OK(fd);
    FAILS(EEXIST, open("a", O_RDWR | O_CREAT | O_EXCL, 0640));
    EQUAL(0, read(fd, buf, sizeof buf));
    fs_write_at(fd, "hello", 5, 0);
    EQUAL(5, pread(fd, buf, sizeof buf, 0));
    CHECK(!memcmp(buf, "hello", 5));
    EQUAL(0, pread(fd, buf, sizeof buf, 5));
    OK(fstat(fd, &st));
    EQUAL(5, st.st_size);
    EQUAL(0640, st.st_mode & 07777);
    EQUAL(1, st.st_nlink);
    OK(close(fd));
    fs_expect("a", "hello", 5);

    fd = open("a", O_WRONLY | O_TRUNC);
    OK(fd);
    OK(fstat(fd, &st));
    EQUAL(0, st.st_size);
    FAILS(EBADF, read(fd, buf, 1));
    OK(close(fd));
    FAILS(ENOENT, open("absent", O_RDONLY));
    FAILS(ENOTDIR, open("a/b", O_RDONLY));
    FAILS(EISDIR, open(".", O_WRONLY));
    OK(unlink("a"));
    FAILS(ENOENT, unlink("a"));
}

/* Who may write a file can empty it by an open for reading alone. */
static void emptied_by_reader(void)
{
    char byte;
    int fd;

    fs_put("e", "hello", 5);
    fd = open("e", O_RDONLY | O_TRUNC);
    OK(fd);
    EQUAL(0, fs_stat("e").st_size);
    EQUAL(0, read(fd, &byte, 1));
    OK(close(fd));
    EQUAL(0, fs_stat("e").st_size);
    fs_expect("e", "", 0);
    OK(unlink("e"));
}

/* Sizes around pages, requests of the kernel and stripes, with and without alignment. */
static void sizes_and_offsets(void)
{
    static const size_t sizes[] = {1,       4095,    4096,    4097,    131072,  1044479,
                                   1044480, 1044481, 1048576, 1048577, 3000001, 9437184};
    const size_t max = 9437184;
    unsigned char *buf = malloc(max);

    CHECK(buf);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int fd = open("s", O_RDWR | O_CREAT | O_TRUNC, 0644);

        OK(fd);
        fs_fill(buf, sizes[i], 0, i);
        fs_write_at(fd, buf, sizes[i], 0);
        OK(close(fd));
        fd = open("s", O_RDONLY);
        OK(fd);
        memset(buf, 0, sizes[i]);
        fs_read_at(fd, buf, sizes[i], 0);
        fs_expect_pattern(buf, sizes[i], 0, i);
        EQUAL(0, pread(fd, buf, 1, (off_t)sizes[i]));
        OK(close(fd));
    }
    free(buf);
    OK(unlink("s"));
}

static void overwrite_parts(void)
{
    const size_t size = 5 << 20;
    unsigned char *buf = malloc(size), *got = malloc(size);
    unsigned seed = 7;
    int fd = open("o", O_RDWR | O_CREAT, 0644);

    OK(fd);
    CHECK(buf && got);
    fs_fill(buf, size, 0, 1);
    fs_write_at(fd, buf, size, 0);
    for (int i = 0; i < 300; i++) {
        size_t off = (size_t)rand_r(&seed) % size, len = (size_t)rand_r(&seed) % 70000;

        if (len > size - off)
            len = size - off;
        fs_fill(buf + off, len, off, (uint64_t)i + 2);
        fs_write_at(fd, buf + off, len, (off_t)off);
        if (i % 10 == 0) {
            fs_read_at(fd, got, size, 0);
            CHECK(!memcmp(got, buf, size));
        }
    }
    OK(fsync(fd));
    OK(close(fd));
    fs_expect("o", buf, size);
    free(buf);
    free(got);
    OK(unlink("o"));
}

static void truncate_both_ways(void)
{
    static const off_t sizes[] = {10, 5000, 1044480, 1048576 + 3, 3 << 20, 100, 0, 7 << 20, 4097};
    unsigned char *zeros = calloc(1, 7 << 20), *got = malloc(7 << 20);
    int fd = open("t", O_RDWR | O_CREAT, 0644);
    off_t data = 0; /* below it there may be data, above there must be zeros */

    OK(fd);
    CHECK(zeros && got);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        OK(i % 2 ? ftruncate(fd, sizes[i]) : truncate("t", sizes[i]));
        EQUAL(sizes[i], fs_stat("t").st_size);
        EQUAL(sizes[i], pread(fd, got, 7 << 20, 0));
        if (data > sizes[i])
            data = sizes[i];
        fs_expect_pattern(got, (size_t)data, 0, 1);
        CHECK(!memcmp(got + data, zeros, (size_t)(sizes[i] - data)));
        fs_fill(got, (size_t)sizes[i], 0, 1);
        fs_write_at(fd, got, (size_t)sizes[i], 0);
        data = sizes[i];
    }
    FAILS(EINVAL, ftruncate(fd, -1));
    OK(close(fd));
    FAILS(EISDIR, truncate(".", 0));
    free(zeros);
    free(got);
    OK(unlink("t"));
}

static void expect_zeros(int fd, off_t off, size_t len)
{
    unsigned char *buf = malloc(len);

    CHECK(buf);
    fs_read_at(fd, buf, len, off);
    for (size_t i = 0; i < len; i++)
        EQUAL(0, buf[i]);
    free(buf);
}

static bool on_tmpfs(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

static void holes(void)
{
    unsigned char page[4096];
    off_t at, size, far = (off_t)6 << 20;
    int fd = open("h", O_RDWR | O_CREAT, 0644);

    OK(fd);
    fs_fill(page, sizeof page, 0, 3);
    fs_write_at(fd, page, sizeof page, far);
    EQUAL(far + 4096, fs_stat("h").st_size);
    expect_zeros(fd, 0, 4 << 20);
    at = lseek(fd, 0, SEEK_DATA);
    CHECK(at >= 0 && at <= far);
    EQUAL(0, lseek(fd, 0, SEEK_HOLE));
    at = lseek(fd, far, SEEK_HOLE);
    CHECK(at >= far + 4096 - 4096 && at <= far + 4096);
    FAILS(ENXIO, lseek(fd, far + 4096, SEEK_DATA));
    FAILS(ENXIO, lseek(fd, far + 4096, SEEK_HOLE));

    fs_write_at(fd, page, sizeof page, 0);
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, far, 2048));
    EQUAL(far + 4096, fs_stat("h").st_size);
    expect_zeros(fd, far, 2048);
    fs_read_at(fd, page, 2048, far + 2048);
    fs_expect_pattern(page, 2048, 2048, 3);
    OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, far));
    expect_zeros(fd, 0, 8192);

    if (!on_tmpfs(fd)) { /* which cannot do it */
        OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, far + 2048, 4096));
        EQUAL(far + 6144, fs_stat("h").st_size);
        expect_zeros(fd, far, 6144);
    }
    size = fs_stat("h").st_size;
    OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, far * 2));
    EQUAL(size, fs_stat("h").st_size);
    OK(fallocate(fd, 0, 0, far * 2));
    EQUAL(far * 2, fs_stat("h").st_size);
    OK(close(fd));
    OK(unlink("h"));
}

static void append(void)
{
    enum { writers = 4, records = 200, size = 64 };
    char record[size + 1];
    int fd = open("p", O_WRONLY | O_CREAT | O_APPEND, 0644), seen[writers] = {0};
    FILE *in;

    OK(fd);
    for (int w = 0; w < writers; w++) {
        pid_t pid = fork();

        OK(pid);
        if (pid)
            continue;
        for (int i = 0; i < records; i++) {
            snprintf(record, sizeof record, "%d %-*d\n", w, size - 3, i);
            if (write(fd, record, size) != size)
                _exit(1);
        }
        _exit(0);
    }
    for (int w = 0; w < writers; w++) {
        int status;

        OK(wait(&status));
        EQUAL(0, status);
    }
    OK(close(fd));
    EQUAL(writers * records * size, fs_stat("p").st_size);
    in = fopen("p", "r");
    CHECK(in);
    for (int i = 0; i < writers * records; i++) {
        int w, n;

        CHECK(fgets(record, sizeof record, in));
        EQUAL(2, sscanf(record, "%d %d", &w, &n));
        CHECK(w >= 0 && w < writers);
        EQUAL(seen[w]++, n);
    }
    CHECK(fclose(in) == 0);
    OK(unlink("p"));
}

static void mapped(void)
{
    const size_t size = 3 << 20;
    unsigned char *map, *buf = malloc(size);
    int fd = open("m", O_RDWR | O_CREAT, 0644);

    OK(fd);
    CHECK(buf);
    OK(ftruncate(fd, (off_t)size));
    map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    fs_fill(map, size, 0, 9);
    OK(msync(map, size, MS_SYNC));
    fs_read_at(fd, buf, size, 0);
    fs_expect_pattern(buf, size, 0, 9);
    fs_write_at(fd, "xyz", 3, 1 << 20);
    CHECK(!memcmp(map + (1 << 20), "xyz", 3));
    map[0] = 'm';
    OK(munmap(map, size));
    OK(close(fd));
    fd = open("m", O_RDONLY);
    OK(fd);
    fs_read_at(fd, buf, 1, 0);
    EQUAL('m', buf[0]);
    OK(close(fd));
    free(buf);
    OK(unlink("m"));
}

/* A descriptor that bypasses the kernel's pages sees what a mapping has changed, is seen by it, and
 * can be mapped itself. */
static void mapped_around(int flags)
{
    enum { PAGE = 4096 };
    void *whole = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *buf = whole, *map, *own;
    int plain = open("m", O_RDWR | O_CREAT, 0644), fd = open("m", O_RDWR | flags);

    CHECK(whole != MAP_FAILED);
    OK(plain);
    OK(fd);
    memset(buf, 'a', PAGE);
    EQUAL(PAGE, write(fd, buf, PAGE));
    map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, plain, 0);
    own = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (own == MAP_FAILED && errno == ENODEV && (flags & O_APPEND))
        own = map; /* Linux before 6.6 */
    CHECK(map != MAP_FAILED && own != MAP_FAILED);
    map[1] = 'b';
    own[2] = 'c';
    EQUAL(PAGE, pread(fd, buf, PAGE, 0));
    CHECK(!memcmp(buf, "abca", 4));
    if (flags & O_DIRECT) {
        memset(buf, 'd', PAGE);
        EQUAL(PAGE, pwrite(fd, buf, PAGE, 0));
        CHECK(map[1] == 'd' && own[2] == 'd');
    }
    OK(munmap(map, PAGE));
    if (own != map)
        OK(munmap(own, PAGE));
    OK(munmap(buf, PAGE));
    OK(close(plain));
    OK(close(fd));
    OK(unlink("m"));
}

static void links(void)
{
    char buf[64];
    struct stat a, b;

    fs_put("l1", "data", 4);
    OK(link("l1", "l2"));
    a = fs_stat("l1");
    b = fs_stat("l2");
    EQUAL(a.st_ino, b.st_ino);
    EQUAL(2, a.st_nlink);
    EQUAL(2, b.st_nlink);
    FAILS(EEXIST, link("l1", "l2"));
    OK(unlink("l1"));
    fs_expect("l2", "data", 4);
    EQUAL(1, fs_stat("l2").st_nlink);

    OK(symlink("l2", "sym"));
    EQUAL(2, readlink("sym", buf, sizeof buf));
    CHECK(S_ISLNK(fs_stat("sym").st_mode));
    EQUAL(2, fs_stat("sym").st_size);
    fs_expect("sym", "data", 4);
    OK(symlink("sym2", "sym2"));
    FAILS(ELOOP, open("sym2", O_RDONLY));
    FAILS(EINVAL, readlink("l2", buf, sizeof buf));
    OK(unlink("sym2"));
    OK(unlink("sym"));
    OK(unlink("l2"));
}

static void unlinked_while_open(void)
{
    char buf[8] = "";
    struct stat st;
    int fd = open("u", O_RDWR | O_CREAT, 0644);

    OK(fd);
    fs_write_at(fd, "before", 6, 0);
    OK(unlink("u"));
    FAILS(ENOENT, open("u", O_RDONLY));
    fs_write_at(fd, "B", 1, 0);
    fs_read_at(fd, buf, 6, 0);
    CHECK(!strcmp(buf, "Before"));
    OK(fstat(fd, &st));
    EQUAL(0, st.st_nlink);
    EQUAL(6, st.st_size);
    fs_put("u", "another", 7);
    fs_read_at(fd, buf, 6, 0);
    CHECK(!strcmp(buf, "Before"));
    OK(close(fd));
    fs_expect("u", "another", 7);
    OK(unlink("u"));
}

static void copy_range(void)
{
    const size_t size = 2500000;
    unsigned char *buf = malloc(size);
    off_t in = 100, out = 4096;
    size_t left = size - 100;
    int from = open("c1", O_RDWR | O_CREAT, 0644), to = open("c2", O_RDWR | O_CREAT, 0644);

    OK(from);
    OK(to);
    CHECK(buf);
    fs_fill(buf, size, 0, 5);
    fs_write_at(from, buf, size, 0);
    while (left) {
        ssize_t n = copy_file_range(from, &in, to, &out, left, 0);

        CHECK(n > 0);
        left -= (size_t)n;
    }
    EQUAL(size - 100 + 4096, fs_stat("c2").st_size);
    fs_read_at(to, buf, size - 100, 4096);
    fs_expect_pattern(buf, size - 100, 100, 5);
    OK(close(from));
    OK(close(to));
    free(buf);
    OK(unlink("c1"));
    OK(unlink("c2"));
}

int main(int argc, char **argv)
{
    fs_enter(argc, argv);
    create_and_read();
    emptied_by_reader();
    sizes_and_offsets();
    overwrite_parts();
    truncate_both_ways();
    holes();
    append();
    mapped();
    mapped_around(O_DIRECT);
    mapped_around(O_APPEND);
    links();
    unlinked_while_open();
    copy_range();
    fs_leave();
    return 0;
}
