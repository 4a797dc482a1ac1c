/* ctest: threaded timeout=120
 *
 * put and get, single and many, beside a mount and a second connection: what is put is there whole
 * and at once, and what was there before stays with those who have it open. */
#include <pthread.h>
#include <stdatomic.h>

#include "lib_check.h"

#define MANY 600

static struct memefs *fs, *other;
static char big[3 << 20], got[4 << 20];

static void put_and_compare(const char *path, size_t len)
{
    char mounted[64];
    struct stat st;
    int fd;

    GOOD(memefs_put(fs, path, big, len, 0));
    memset(got, 1, len);
    EQUAL(len, memefs_get(other, path, got, sizeof got));
    CHECK(memcmp(big, got, len) == 0);
    EQUAL(len, memefs_get(fs, path, got, sizeof got));
    CHECK(memcmp(big, got, len) == 0);
    snprintf(mounted, sizeof mounted, ".%s", path);
    OK(stat(mounted, &st));
    EQUAL(len, st.st_size);
    EQUAL((len + 4095) / 4096 * 8, st.st_blocks);
    OK(fd = open(mounted, O_RDONLY));
    EQUAL(len, read(fd, got, sizeof got));
    CHECK(memcmp(big, got, len) == 0);
    OK(close(fd));
}

static void test_sizes(void)
{
    static const size_t sizes[] = {0, 1, 4096, 4097, 65536, 65537, 1 << 20, sizeof big};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        put_and_compare("/o/sizes", sizes[i]);
    for (size_t i = sizeof sizes / sizeof *sizes; i-- > 0;)
        put_and_compare("/o/sizes", sizes[i]);
}

static void test_replaces(void)
{
    struct memefs_file *old;
    struct stat st, now;
    int fd;

    GOOD(memefs_put(fs, "/o/r", "old", 3, 0));
    OK(stat("o/r", &st));
    OK(fd = open("o/r", O_RDONLY));
    GOOD(memefs_open(other, "/o/r", O_RDONLY, 0, &old));
    GOOD(memefs_put(fs, "/o/r", "newer", 5, 0));
    OK(stat("o/r", &now));
    CHECK(now.st_ino != st.st_ino);
    EQUAL(5, now.st_size);
    EQUAL(3, pread(fd, got, 10, 0));
    CHECK(memcmp(got, "old", 3) == 0);
    EQUAL(3, memefs_pread(old, got, 10, 0));
    CHECK(memcmp(got, "old", 3) == 0);
    OK(fstat(fd, &st));
    EQUAL(0, st.st_nlink);
    OK(close(fd));
    GOOD(memefs_close(old));
    EQUAL(5, memefs_get(other, "/o/r", got, 2));
    EQUAL(-EEXIST, memefs_put(other, "/o/r", "", 0, MEMEFS_PUT_EXCL));
    EQUAL(-EEXIST, memefs_put(other, "/o/r", big, 1 << 20, MEMEFS_PUT_EXCL));
}

/* What is under the name may be anything but a directory. */
static void test_kinds(void)
{
    struct memefs_item item = {.path = "/o/dirlink", .buf = got, .len = 1};
    struct stat st;
    void *buf;

    EQUAL(-EISDIR, memefs_put(fs, "/o", "x", 1, 0));
    EQUAL(-EISDIR, memefs_put(fs, "/", "x", 1, 0));
    EQUAL(-EISDIR, memefs_put(fs, "/o/", "x", 1, 0));
    EQUAL(-ENOENT, memefs_put(fs, "/o/none/x", "x", 1, 0));
    EQUAL(-ENOTDIR, memefs_put(fs, "/o/r/x", "x", 1, 0));
    GOOD(memefs_put(fs, "/o/made/by/put", "x", 1, MEMEFS_PUT_PARENTS));
    EQUAL(1, memefs_get(other, "/o/made/by/put", got, 9));
    OK(symlink("made/by/put", "o/link"));
    EQUAL(1, memefs_get(fs, "/o/link", got, 9));
    GOOD(memefs_put(fs, "/o/link", "yy", 2, 0)); /* in place of the link, as rename(2) */
    OK(lstat("o/link", &st));
    CHECK(S_ISREG(st.st_mode));
    EQUAL(-EISDIR, memefs_get(fs, "/o", got, 1));
    EQUAL(-ENOENT, memefs_get(fs, "/o/none", got, 1));
    OK(symlink("made/by", "o/dirlink"));
    EQUAL(-EISDIR, memefs_get(fs, "/o/dirlink", got, 1));
    EQUAL(-EISDIR, memefs_get_alloc(fs, "/o/dirlink", &buf));
    CHECK(buf == NULL);
    EQUAL(1, memefs_mget(fs, &item, 1));
    EQUAL(-EISDIR, item.result);
    /* A file that was renamed has its inode in another partition. */
    for (int i = 0; i < 20; i++) {
        char from[32], to[32], path[32];

        snprintf(from, sizeof from, "o/from%d", i);
        snprintf(to, sizeof to, "o/to%d", i);
        snprintf(path, sizeof path, "/o/to%d", i);
        OK(close(open(from, O_CREAT | O_WRONLY, 0644)));
        OK(rename(from, to));
        GOOD(memefs_put(other, path, from, sizeof from, 0));
        EQUAL(sizeof from, memefs_get(fs, path, got, sizeof got));
        CHECK(strcmp(from, got) == 0);
    }
    CHECK(access("o/from3", F_OK) == -1);
}

static void test_alloc(void)
{
    void *buf;

    EQUAL(5, memefs_get_alloc(fs, "/o/r", &buf));
    CHECK(memcmp(buf, "newer", 5) == 0);
    memefs_free(buf);
    GOOD(memefs_put(fs, "/o/big", big, sizeof big, 0));
    EQUAL(sizeof big, memefs_get_alloc(other, "/o/big", &buf));
    CHECK(memcmp(buf, big, sizeof big) == 0);
    memefs_free(buf);
    EQUAL(-ENOENT, memefs_get_alloc(fs, "/o/none", &buf));
    CHECK(buf == NULL);
}

static void test_many(void)
{
    static struct memefs_item items[MANY];
    static char path[MANY][32], data[MANY][64];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            snprintf(path[i], sizeof path[i], "/o/many/d%d/f%d", i % 3, i);
            items[i] = (struct memefs_item){.path = path[i], .buf = data[i]};
            items[i].len =
                (size_t)snprintf(data[i], sizeof data[i], "object %d, round %d", i, round);
        }
        items[7].buf = big;
        items[7].len = 1 << 20;
        EQUAL(0, memefs_mput(fs, items, MANY, MEMEFS_PUT_PARENTS));
        for (int i = 0; i < MANY; i++) {
            items[i].buf = i % 2 ? NULL : got + (size_t)i * 64;
            items[i].len = i % 2 ? 0 : 64;
        }
        EQUAL(0, memefs_mget(other, items, MANY));
        for (int i = 0; i < MANY; i++) {
            EQUAL(i == 7 ? 1 << 20 : (long long)strlen(data[i]), items[i].result);
            CHECK(i == 7 || memcmp(items[i].buf, data[i], strlen(data[i])) == 0);
            if (i % 2)
                memefs_free(items[i].buf);
        }
    }
    items[0].path = "/o/none";
    items[1].path = NULL;
    items[2].path = "/o";
    items[0].buf = items[1].buf = items[2].buf = got;
    EQUAL(3, memefs_mget(fs, items, 3));
    EQUAL(-ENOENT, items[0].result);
    EQUAL(-EINVAL, items[1].result);
    EQUAL(-EISDIR, items[2].result);
    items[0].path = "/o/many/d0/f0";
    items[0].len = 1;
    EQUAL(1, memefs_mput(fs, items, 1, MEMEFS_PUT_EXCL));
    EQUAL(-EEXIST, items[0].result);
}

/* --- a batch of anything ---------------------------------------------------------------------- */

#define KINDS 16
#define HEAVY 320 /* of 60,000 bytes: more than one answer of a partition has room for */

static void write_at(const char *path, const char *text, off_t off)
{
    struct memefs_file *f;

    GOOD(memefs_open(fs, path, O_CREAT | O_WRONLY, 0644, &f));
    EQUAL(strlen(text), memefs_pwrite(f, text, strlen(text), off));
    GOOD(memefs_close(f));
}

static void make_kinds(void)
{
    GOOD(memefs_makedirs(fs, "/o/k/dir", 0755));
    GOOD(memefs_put(fs, "/o/k/plain", "plain", 5, 0));
    GOOD(memefs_put(fs, "/o/k/empty", NULL, 0, 0));
    GOOD(memefs_put(fs, "/o/k/most", big, MEMEFS_PUT_SMALL, 0));
    GOOD(memefs_put(fs, "/o/k/more", big, MEMEFS_PUT_SMALL + 1, 0));
    GOOD(memefs_put(fs, "/o/k/large", big, sizeof big, 0));
    write_at("/o/k/hole", "behind a hole", 9000);
    write_at("/o/k/sparse", "begin", 0);
    GOOD(memefs_truncate(fs, "/o/k/sparse", 30000));
    write_at("/o/k/cut", "this is cut off", 0);
    GOOD(memefs_truncate(fs, "/o/k/cut", 4));
    GOOD(memefs_truncate(fs, "/o/k/cut", 9));
    GOOD(memefs_symlink(fs, "plain", "/o/k/symlink"));
    GOOD(memefs_link(fs, "/o/k/plain", "/o/k/dir/link"));
    GOOD(memefs_put(fs, "/o/k/before", "moved", 5, 0));
    GOOD(memefs_rename(fs, "/o/k/before", "/o/k/moved", 0));
    GOOD(memefs_put(fs, "/o/k/secret", "secret", 6, 0));
    GOOD(memefs_chmod(fs, "/o/k/secret", 0600));
}

static const char *const kinds[KINDS] = {
    "/o/k/plain",  "/o/k/empty", "/o/k/most",    "/o/k/more",     "/o/k/large", "/o/k/hole",
    "/o/k/sparse", "/o/k/cut",   "/o/k/symlink", "/o/k/dir/link", "/o/k/moved", "/o/k/secret",
    "/o/k/dir",    "/o/k/none",  "/o/k/open",    "/o/k/append"};

/* What the batch gets is what a call of its own gets. */
static void compare_kind(struct memefs *single, const struct memefs_item *item)
{
    void *buf = NULL;
    ssize_t n = memefs_get_alloc(single, item->path, &buf);

    if (n != item->result)
        fs_fail(__FILE__, __LINE__, "%s: %zd, mget %lld", item->path, n, (long long)item->result);
    CHECK(n < 0 || memcmp(buf, item->buf, (size_t)n) == 0);
    memefs_free(buf);
}

static void get_kinds(struct memefs *batch, struct memefs *single)
{
    struct memefs_item items[KINDS] = {0};

    for (int i = 0; i < KINDS; i++)
        items[i].path = kinds[i];
    memefs_mget(batch, items, KINDS);
    for (int i = 0; i < KINDS; i++) {
        compare_kind(single, &items[i]);
        if (items[i].result >= 0)
            memefs_free(items[i].buf);
    }
}

/* With a file that the connection itself has open and has written, and one whose end the mount,
 * which appends to it, has leased. */
static void test_kinds_in_a_batch(void)
{
    struct memefs *nobody = lib_connect_as(65534, 65534), *fresh = lib_connect();
    struct memefs_file *f;
    int fd;

    make_kinds();
    GOOD(memefs_put(fs, "/o/k/open", "before", 6, 0));
    GOOD(memefs_open(other, "/o/k/open", O_RDWR, 0, &f));
    OK(fd = open("o/k/append", O_CREAT | O_WRONLY | O_APPEND, 0644));
    for (int round = 0; round < 3; round++) { /* asked, asked again, and remembered */
        EQUAL(5, memefs_pwrite(f, "dirty", 5, 3 + round));
        EQUAL(6, write(fd, "append", 6));
        OK(fsync(fd));
        get_kinds(other, other);
    }
    GOOD(memefs_close(f));
    for (int round = 0; round < 3; round++) {
        EQUAL(6, write(fd, "append", 6));
        OK(fsync(fd));
        get_kinds(fresh, fs);
        get_kinds(nobody, nobody);
    }
    OK(close(fd));
    GOOD(memefs_disconnect(fresh));
    GOOD(memefs_disconnect(nobody));
}

static void test_heavy_batch(void)
{
    static struct memefs_item items[HEAVY];
    static char path[HEAVY][32];
    struct memefs *fresh = lib_connect();

    for (int i = 0; i < HEAVY; i++) {
        snprintf(path[i], sizeof path[i], "/o/heavy/%d", i);
        items[i] = (struct memefs_item){.path = path[i], .buf = big + i, .len = 60000};
    }
    EQUAL(0, memefs_mput(fs, items, HEAVY, MEMEFS_PUT_PARENTS));
    for (int i = 0; i < HEAVY; i++)
        items[i].buf = NULL;
    EQUAL(0, memefs_mget(fresh, items, HEAVY));
    for (int i = 0; i < HEAVY; i++) {
        CHECK(items[i].result == 60000 && memcmp(items[i].buf, big + i, 60000) == 0);
        memefs_free(items[i].buf);
    }
    GOOD(memefs_disconnect(fresh));
}

/* --- whole, at any time ----------------------------------------------------------------------- */

static atomic_int stop;
static char data[2][60000]; /* what the putters put; filled before they start */

static void *keep_putting(void *arg)
{
    struct memefs *mine = arg;

    for (int i = 0; !atomic_load(&stop); i++)
        GOOD(memefs_put(mine, "/o/whole", data[i % 2], sizeof data[0] - (size_t)(i % 7), 0));
    return NULL;
}

static void look_whole(const char *bytes, ssize_t n)
{
    CHECK(n >= 59994 && n <= 60000);
    for (ssize_t i = 1; i < n; i++)
        CHECK(bytes[i] == bytes[0]);
}

/* Is it there, for as long as it takes to tell that it has been read? */
static bool stays(const char *mounted)
{
    struct stat st;

    for (int i = 0; i < 10; i++) {
        if (stat(mounted, &st) < 0)
            return false;
        usleep(100000);
    }
    return true;
}

static void expect_gone(const char *mounted)
{
    struct stat st;

    for (int i = 0; i < 600 && stat(mounted, &st) == 0; i++)
        usleep(100000);
    CHECK(stat(mounted, &st) < 0);
}

/* A get of all of it is a reading, also in a batch. */
static void test_reads(void)
{
    static const char *const mounted[] = {"o/reads/small", "o/reads/large", "o/reads/a",
                                          "o/reads/b"};
    struct memefs_item items[] = {{.path = "/o/reads/a"}, {.path = "/o/reads/b"}};
    void *buf;

    GOOD(memefs_mkdir(fs, "/o/reads", 0755));
    GOOD(memefs_setxattr(fs, "/o/reads", "user.memefs.delete-after-reads", "2", 1, 0));
    GOOD(memefs_put(fs, "/o/reads/small", "small", 5, 0));
    GOOD(memefs_put(fs, "/o/reads/large", big, sizeof big, 0));
    GOOD(memefs_put(fs, "/o/reads/a", "a", 1, 0));
    GOOD(memefs_put(fs, "/o/reads/b", "b", 1, 0));
    EQUAL(5, memefs_get(fs, "/o/reads/small", got, sizeof got));
    EQUAL(sizeof big, memefs_get_alloc(fs, "/o/reads/large", &buf));
    free(buf);
    for (int i = 0; i < 3; i++) { /* not all of it */
        EQUAL(5, memefs_get(other, "/o/reads/small", got, 4));
        EQUAL(sizeof big, memefs_get(other, "/o/reads/large", got, 100));
    }
    EQUAL(0, memefs_mget(other, items, 2));
    for (size_t i = 0; i < 2; i++) {
        free(items[i].buf);
        items[i].buf = NULL;
    }
    for (size_t i = 0; i < sizeof mounted / sizeof *mounted; i++)
        CHECK(stays(mounted[i]));
    EQUAL(5, memefs_get(other, "/o/reads/small", got, sizeof got));
    EQUAL(sizeof big, memefs_get(other, "/o/reads/large", got, sizeof got));
    CHECK(memcmp(big, got, sizeof big) == 0);
    EQUAL(0, memefs_mget(fs, items, 2));
    for (size_t i = 0; i < 2; i++)
        free(items[i].buf);
    for (size_t i = 0; i < sizeof mounted / sizeof *mounted; i++)
        expect_gone(mounted[i]);
}

static void test_whole(void)
{
    pthread_t putters[2];
    static char bytes[70000];
    int fd;

    memset(data[0], 'a', sizeof data[0]);
    memset(data[1], 'b', sizeof data[1]);
    GOOD(memefs_put(fs, "/o/whole", memset(bytes, 'c', 60000), 60000, 0));
    pthread_create(&putters[0], NULL, keep_putting, fs);
    pthread_create(&putters[1], NULL, keep_putting, other);
    for (int i = 0; i < 300; i++) {
        look_whole(bytes, memefs_get(i % 2 ? fs : other, "/o/whole", bytes, sizeof bytes));
        OK(fd = open("o/whole", O_RDONLY));
        look_whole(bytes, read(fd, bytes, sizeof bytes));
        OK(close(fd));
    }
    atomic_store(&stop, 1);
    pthread_join(putters[0], NULL);
    pthread_join(putters[1], NULL);
}

static void test_rights(void)
{
    struct memefs *nobody = lib_connect_as(65534, 65534);
    struct stat st;

    EQUAL(-EACCES, memefs_put(nobody, "/o/n", "x", 1, 0));
    GOOD(memefs_mkdir(fs, "/o/tmp", 0777));
    GOOD(memefs_chmod(fs, "/o/tmp", 01777));
    GOOD(memefs_put(fs, "/o/tmp/root", "x", 1, 0));
    EQUAL(-EPERM, memefs_put(nobody, "/o/tmp/root", "x", 1, 0));
    GOOD(memefs_put(nobody, "/o/tmp/own", "x", 1, 0));
    OK(stat("o/tmp/own", &st));
    EQUAL(65534, st.st_uid);
    EQUAL(S_IFREG | 0644, st.st_mode);
    for (int round = 0; round < 2; round++) { /* the second one replaces the first */
        GOOD(memefs_put(nobody, "/o/tmp/large", big, sizeof big, 0));
        OK(stat("o/tmp/large", &st));
        EQUAL(65534, st.st_uid);
        EQUAL(S_IFREG | 0644, st.st_mode);
        EQUAL(1, st.st_nlink);
    }
    GOOD(memefs_chmod(fs, "/o/tmp/root", 0600));
    EQUAL(-EACCES, memefs_get(nobody, "/o/tmp/root", got, 1));
    GOOD(memefs_chmod(fs, "/o", 0700));
    EQUAL(-EACCES, memefs_get(nobody, "/o/r", got, 1));
    GOOD(memefs_disconnect(nobody));
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    OK(chdir(argv[1]));
    umask(022);
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * 31 + i / 4096);
    fs = lib_connect();
    other = lib_connect();
    GOOD(memefs_mkdir(fs, "/o", 0755));
    test_sizes();
    test_replaces();
    test_kinds();
    test_alloc();
    test_many();
    test_kinds_in_a_batch();
    test_heavy_batch();
    test_whole();
    test_reads();
    test_rights();
    GOOD(memefs_disconnect(other));
    GOOD(memefs_disconnect(fs));
    return 0;
}
