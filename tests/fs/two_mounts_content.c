/* ctest: release timeout=180 long=50
 *
 * Content, size and times of a file, as another mount sees them once close or fsync has returned on
 * the first, with whatever the other mount had cached: pages, attributes, an open file. */
#include "fs_pair.h"
#include <sys/uio.h>

enum { IMAGE_MAX = 3 * PAIR_STRIPE + 77777 };

/* What the file must hold: kept by the process itself, so that no mount is trusted. */
static unsigned char image[IMAGE_MAX];
static size_t image_size;

static unsigned char scratch[IMAGE_MAX + 1];

/* Sizes that matter: nothing, small, about a page, about a read-ahead, about a stripe, several. */
static size_t draw_size(struct pair *p)
{
    switch (pair_random(p, 12)) {
    case 0:
        return 0;
    case 1:
    case 2:
    case 3:
        return pair_random(p, 300);
    case 4:
    case 5:
        return 4090 + pair_random(p, 13);
    case 6:
    case 7:
        return pair_random(p, 20000);
    case 8:
        return 131072 - 2 + pair_random(p, 5);
    case 9:
        return PAIR_STRIPE - 2 + pair_random(p, 5);
    case 10:
        return PAIR_STRIPE + pair_random(p, PAIR_STRIPE);
    default:
        return IMAGE_MAX - pair_random(p, 100000);
    }
}

static void image_write(size_t off, size_t len, uint64_t seed)
{
    if (off > image_size)
        memset(image + image_size, 0, off - image_size);
    fs_fill(image + off, len, off, seed);
    if (off + len > image_size)
        image_size = off + len;
}

static void image_truncate(size_t size)
{
    if (size > image_size)
        memset(image + image_size, 0, size - image_size);
    image_size = size;
}

static void same_bytes(const unsigned char *got, size_t off, size_t len, const char *where)
{
    for (size_t i = 0; i < len; i++)
        if (got[i] != image[off + i])
            fs_fail(__FILE__, __LINE__, "%s: byte %zu of %zu is %02x, not %02x", where, off + i,
                    image_size, got[i], image[off + i]);
}

/* Reads by an open file: all of it, or pieces at random. */
static void verify_fd(struct pair *p, int fd, const char *where)
{
    if (pair_random(p, 3)) {
        EQUAL(image_size, pread(fd, scratch, image_size + 1, 0));
        same_bytes(scratch, 0, image_size, where);
        return;
    }
    for (unsigned i = 0; i < 8 && image_size; i++) {
        size_t off = pair_random(p, (unsigned)image_size), len = pair_random(p, 70000);
        size_t want = len < image_size - off ? len : image_size - off;

        EQUAL(want, pread(fd, scratch, len, (off_t)off));
        same_bytes(scratch, off, want, where);
    }
}

static void verify_mapped(int fd, const char *where)
{
    unsigned char *map;

    if (!image_size)
        return;
    map = mmap(NULL, image_size, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    same_bytes(map, 0, image_size, where);
    OK(munmap(map, image_size));
}

/* Everything that another mount can look at, in an order that changes. */
static void verify(struct pair *p, const char *path, const struct stat *writers)
{
    struct stat st;
    int fd;

    if (pair_random(p, 2)) {
        OK(stat(path, &st));
        EQUAL(image_size, st.st_size);
        if (writers)
            pair_same_attributes(writers, &st);
    }
    fd = pair_open(path, O_RDONLY);
    OK(fstat(fd, &st));
    EQUAL(image_size, st.st_size);
    if (pair_random(p, 6) == 0)
        verify_mapped(fd, "mapped");
    verify_fd(p, fd, "read");
    OK(close(fd));
    OK(stat(path, &st));
    EQUAL(image_size, st.st_size);
    if (writers)
        pair_same_attributes(writers, &st);
}

/* Writes the image to a file, in one piece or several. */
static void put_image(struct pair *p, int fd)
{
    size_t piece = pair_random(p, 2) ? image_size : 1 + pair_random(p, 200000);

    for (size_t off = 0; off < image_size; off += piece) {
        size_t len = piece < image_size - off ? piece : image_size - off;

        CHECK(write(fd, image + off, len) == (ssize_t)len);
    }
}

/* A file written whole, in turn by the one and the other mount; each has the former content cached.
 */
static void whole(struct pair *p)
{
    int a = (int)pair_random(p, 2), fd;
    struct stat st;

    image_size = 0;
    image_write(0, draw_size(p), pair_draw(&p->random));
    if (pair_random(p, 4) == 0 && p->round)
        OK(unlink(pair_path(p, a, "whole")));
    fd = pair_open(pair_path(p, a, "whole"), O_WRONLY | O_CREAT | O_TRUNC);
    put_image(p, fd);
    OK(close(fd));
    if (pair_random(p, 2)) {
        OK(stat(pair_path(p, a, "whole"), &st));
        verify(p, pair_path(p, !a, "whole"), &st);
    } else {
        verify(p, pair_path(p, !a, "whole"), NULL);
    }
}

/* One change of the file's content by pwrite; some go over a border of stripes. */
static void overwrite(struct pair *p, int fd)
{
    size_t off = pair_random(p, (unsigned)image_size + 5000), len = 1 + draw_size(p) / 4;
    size_t border = (image_size / 2 / PAIR_STRIPE + 1) * PAIR_STRIPE;
    uint64_t seed = pair_draw(&p->random);

    if (image_size > PAIR_STRIPE / 2 && pair_random(p, 4) == 0)
        off = border - (len + 1) / 2;
    else if (pair_random(p, 3) == 0)
        off &= ~(size_t)4095;
    if (off + len > IMAGE_MAX)
        off = IMAGE_MAX - len;
    image_write(off, len, seed);
    fs_write_at(fd, image + off, len, (off_t)off);
}

/* Parts overwritten, from either mount in turn; each has most of it cached. */
static void partial(struct pair *p)
{
    int a = (int)pair_random(p, 2), fd;
    struct stat st;

    if (p->round % 50 == 0) {
        image_truncate(0);
        image_write(0, draw_size(p), pair_draw(&p->random));
        fs_put(pair_path(p, a, "partial"), image, image_size);
    }
    fd = pair_open(pair_path(p, a, "partial"), pair_random(p, 2) ? O_RDWR : O_WRONLY);
    for (unsigned n = 1 + pair_random(p, 4); n; n--)
        overwrite(p, fd);
    OK(close(fd));
    OK(stat(pair_path(p, a, "partial"), &st));
    verify(p, pair_path(p, !a, "partial"), &st);
    if (pair_random(p, 2))
        verify(p, pair_path(p, a, "partial"), &st);
}

/* fsync is enough: the writer's file stays open, and so does the reader's. */
static void synced(struct pair *p)
{
    static int fd[2] = {-1, -1};
    int a = (int)pair_random(p, 2);
    struct stat st;

    if (p->round % 100 == 0) {
        image_truncate(0);
        for (int i = 0; i < 2; i++) {
            if (fd[i] >= 0)
                OK(close(fd[i]));
            fd[i] = pair_open(pair_path(p, i, "synced"), O_RDWR | O_CREAT | (i ? 0 : O_TRUNC));
        }
    }
    overwrite(p, fd[a]);
    OK(pair_random(p, 2) ? fsync(fd[a]) : fdatasync(fd[a]));
    OK(stat(pair_path(p, !a, "synced"), &st));
    EQUAL(image_size, st.st_size);
    if (pair_random(p, 2))
        verify(p, pair_path(p, !a, "synced"), NULL);
    else
        verify_fd(p, fd[!a], "read by a file open before");
}

/* A write that is to be synchronous is enough by itself, also where it bypasses the kernel's pages.
 */
static void synced_direct(struct pair *p)
{
    static const int around[] = {O_DIRECT, O_APPEND}, synced[] = {O_SYNC, O_DSYNC, 0};
    int a = (int)pair_random(p, 2), how = around[pair_random(p, 2)], sync = synced[p->round % 3];
    struct iovec page;
    int fd;

    image_truncate(0);
    fs_put(pair_path(p, a, "direct"), "", 0);
    fd = open(pair_path(p, a, "direct"), O_WRONLY | how | sync);
    if (fd < 0 && errno == EINVAL) /* a file system without O_DIRECT */
        return;
    OK(fd);
    page.iov_len = 4096 * (1 + pair_random(p, 8));
    page.iov_base =
        mmap(NULL, page.iov_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page.iov_base != MAP_FAILED);
    for (unsigned n = 1 + pair_random(p, 3); n; n--) {
        off_t off = (off_t)image_size;

        verify(p, pair_path(p, !a, "direct"), NULL);
        image_write(image_size, page.iov_len, pair_draw(&p->random));
        memcpy(page.iov_base, image + off, page.iov_len);
        EQUAL(page.iov_len, pwritev2(fd, &page, 1, off, sync ? 0 : RWF_DSYNC));
    }
    verify(p, pair_path(p, !a, "direct"), NULL);
    OK(close(fd));
    OK(munmap(page.iov_base, page.iov_len));
}

/* A file that stays open on the other mount sees what was written and closed here. */
static void open_reader(struct pair *p)
{
    static int reader[2] = {-1, -1};
    int a = (int)pair_random(p, 2), fd;
    struct stat st;

    if (p->round % 60 == 0) {
        image_truncate(0);
        fs_put(pair_path(p, a, "read"), "", 0);
        for (int i = 0; i < 2; i++) {
            if (reader[i] >= 0)
                OK(close(reader[i]));
            reader[i] = pair_open(pair_path(p, i, "read"), O_RDONLY);
        }
    }
    fd = pair_open(pair_path(p, a, "read"), O_WRONLY);
    overwrite(p, fd);
    OK(close(fd));
    if (pair_random(p, 2)) {
        OK(fstat(reader[!a], &st));
        EQUAL(image_size, st.st_size);
    }
    verify_fd(p, reader[!a], "read by a file open before");
    if (pair_random(p, 2))
        verify_fd(p, reader[a], "read by the writer's neighbour");
}

/* truncate by path or by file: the size shows at once, and what was cut off comes back as zeros. */
static void truncated(struct pair *p)
{
    int a = (int)pair_random(p, 2), fd;
    size_t size = draw_size(p);
    struct stat st;

    if (p->round % 20 == 0) {
        image_truncate(0);
        image_write(0, draw_size(p), pair_draw(&p->random));
        fs_put(pair_path(p, a, "cut"), image, image_size);
        verify(p, pair_path(p, !a, "cut"), NULL);
    }
    image_truncate(size);
    if (pair_random(p, 2)) {
        OK(truncate(pair_path(p, a, "cut"), (off_t)size));
        OK(stat(pair_path(p, !a, "cut"), &st));
    } else {
        fd = pair_open(pair_path(p, a, "cut"), O_RDWR);
        OK(ftruncate(fd, (off_t)size));
        OK(stat(pair_path(p, !a, "cut"), &st));
        OK(close(fd));
    }
    EQUAL(image_size, st.st_size);
    verify(p, pair_path(p, !a, "cut"), NULL);
    if (pair_random(p, 3) == 0) {
        fd = pair_open(pair_path(p, !a, "cut"), O_RDWR);
        overwrite(p, fd);
        OK(close(fd));
        verify(p, pair_path(p, a, "cut"), NULL);
    }
}

/* Written by a shared mapping; msync, or munmap and close. */
static void mapped(struct pair *p)
{
    int a = (int)pair_random(p, 2), fd;
    size_t off, len;
    unsigned char *map;

    if (p->round % 30 == 0) {
        image_truncate(0);
        image_write(0, 1 + draw_size(p), pair_draw(&p->random));
        fs_put(pair_path(p, a, "mapped"), image, image_size);
    }
    fd = pair_open(pair_path(p, a, "mapped"), O_RDWR);
    map = mmap(NULL, image_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    if (pair_random(p, 2))
        same_bytes(map, 0, image_size, "mapped before");
    off = pair_random(p, (unsigned)image_size);
    len = 1 + pair_random(p, (unsigned)(image_size - off));
    image_write(off, len, pair_draw(&p->random));
    memcpy(map + off, image + off, len);
    if (pair_random(p, 2)) {
        OK(msync(map, image_size, MS_SYNC));
        verify(p, pair_path(p, !a, "mapped"), NULL);
    }
    OK(munmap(map, image_size));
    OK(close(fd));
    verify(p, pair_path(p, !a, "mapped"), NULL);
}

/* Holes and zeros made by fallocate, and ranges copied by the file system. */
static void ranges(struct pair *p)
{
    int a = (int)pair_random(p, 2), fd, what = (int)pair_random(p, 3);
    off_t off, len, to;

    if (p->round % 20 == 0) {
        image_truncate(0);
        image_write(0, 20000 + draw_size(p) / 2, pair_draw(&p->random));
        fs_put(pair_path(p, a, "ranges"), image, image_size);
    }
    off = pair_random(p, (unsigned)image_size);
    len = 1 + pair_random(p, (unsigned)image_size);
    fd = pair_open(pair_path(p, a, "ranges"), O_RDWR);
    if (off + len > (off_t)image_size)
        len = (off_t)image_size - off;
    if (what == 0) {
        OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len));
        memset(image + off, 0, (size_t)len);
    } else if (what == 1) {
        OK(fallocate(fd, 0, off, len + 100));
        if (off + len + 100 > (off_t)image_size)
            image_truncate((size_t)(off + len + 100));
    } else {
        to = off + len;
        if (to + len > IMAGE_MAX)
            len = IMAGE_MAX - to;
        for (off_t in = off, out = to, left = len; left;) {
            ssize_t n = copy_file_range(fd, &in, fd, &out, (size_t)left, 0);

            if (n <= 0)
                fs_fail(__FILE__, __LINE__, "copy_file_range says %zd", n);
            left -= n;
        }
        if (len && to + len > (off_t)image_size)
            image_truncate((size_t)(to + len));
        memcpy(image + to, image + off, (size_t)len);
    }
    OK(close(fd));
    if (image_size > IMAGE_MAX - 100000) {
        OK(truncate(pair_path(p, a, "ranges"), 20000));
        image_truncate(20000);
    }
    verify(p, pair_path(p, !a, "ranges"), NULL);
}

/* The way editors save: a new file renamed over the old one, which a reader may still have open. */
static void replaced(struct pair *p)
{
    int a = (int)pair_random(p, 2), old = -1;
    static unsigned char before[20000];
    ssize_t before_size = 0;

    if (p->round) {
        old = pair_open(pair_path(p, !a, "target"), O_RDONLY);
        before_size = pread(old, before, sizeof before, 0);
        OK(before_size);
    }
    image_truncate(0);
    image_write(0, pair_random(p, 20000), pair_draw(&p->random));
    fs_put(pair_path(p, a, "temporary"), image, image_size);
    OK(rename(pair_path(p, a, "temporary"), pair_path(p, a, "target")));
    verify(p, pair_path(p, !a, "target"), NULL);
    if (old >= 0) {
        EQUAL(before_size, pread(old, scratch, sizeof before, 0));
        CHECK(!memcmp(scratch, before, (size_t)before_size));
        OK(close(old));
    }
}

/* Open here, unlinked there: the data stay readable and writable until the last close. */
static void unlinked(struct pair *p)
{
    int a = (int)pair_random(p, 2), fd;
    struct stat st;

    image_truncate(0);
    image_write(0, draw_size(p), pair_draw(&p->random));
    fs_put(pair_path(p, a, "doomed"), image, image_size);
    fd = pair_open(pair_path(p, a, "doomed"), O_RDWR);
    if (pair_random(p, 2))
        overwrite(p, fd);
    OK(unlink(pair_path(p, !a, "doomed")));
    pair_absent(pair_path(p, a, "doomed"));
    verify_fd(p, fd, "unlinked");
    overwrite(p, fd);
    if (pair_random(p, 2))
        OK(fsync(fd));
    if (pair_random(p, 3) == 0)
        fs_put(pair_path(p, a, "doomed"), "another", 7);
    verify_fd(p, fd, "unlinked and written");
    OK(fstat(fd, &st));
    EQUAL(0, st.st_nlink);
    EQUAL(image_size, st.st_size);
    OK(close(fd));
    if (unlink(pair_path(p, !a, "doomed")) < 0)
        EQUAL(ENOENT, errno);
}

/* Appends by turns, each by a file opened afresh: nobody writes at an old end. */
static void append_turns(struct pair *p)
{
    int a = (int)pair_random(p, 2), fd;
    size_t len = 1 + draw_size(p) / 16;

    if (p->round == 0 || image_size + len > IMAGE_MAX) {
        image_truncate(0);
        fs_put(pair_path(p, a, "appended"), "", 0);
    }
    fd = pair_open(pair_path(p, a, "appended"), O_WRONLY | O_APPEND);
    image_write(image_size, len, pair_draw(&p->random));
    CHECK(write(fd, image + image_size - len, len) == (ssize_t)len);
    OK(close(fd));
    verify(p, pair_path(p, !a, "appended"), NULL);
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"whole", .script = whole},
        {"partial", .script = partial},
        {"synced", .script = synced},
        {"synced_direct", .script = synced_direct},
        {"open_reader", .script = open_reader},
        {"truncated", .script = truncated},
        {"mapped", .script = mapped},
        {"ranges", .script = ranges},
        {"replaced", .script = replaced},
        {"unlinked", .script = unlinked},
        {"append_turns", .script = append_turns},
        {NULL},
    };

    return pair_main(argc, argv, scenarios);
}
