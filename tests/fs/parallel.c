/* Threads and processes at once: each works on files of its own and on shared ones, and finds what
 * it wrote. ctest: threaded timeout=200 */
#include "fs_check.h"
#include <pthread.h>
#include <stdatomic.h>

enum { threads = 8, rounds = 30, block = 70000, blocks = 40 };

static int shared_fd;

/* Create, write, rename, read, remove: the life of an intermediate file. */
static void own_files(int me, unsigned *seed)
{
    char name[64], renamed[64];
    size_t len = (size_t)rand_r(seed) % 300000;
    unsigned char *buf = malloc(len + 1);
    int fd;

    CHECK(buf);
    snprintf(name, sizeof name, "own-%d", me);
    snprintf(renamed, sizeof renamed, "renamed-%d", me);
    fs_fill(buf, len, 0, (uint64_t)me);
    fs_put(name, buf, len);
    OK(rename(name, renamed));
    fd = open(renamed, O_RDONLY);
    OK(fd);
    memset(buf, 0, len);
    fs_read_at(fd, buf, len, 0);
    fs_expect_pattern(buf, len, 0, (uint64_t)me);
    OK(close(fd));
    OK(unlink(renamed));
    free(buf);
}

/* Blocks of one file, interleaved over the threads, unaligned to anything. */
static void own_blocks(int me)
{
    static _Thread_local unsigned char buf[block];

    for (int b = me; b < blocks; b += threads) {
        off_t off = (off_t)b * block;

        fs_fill(buf, block, (uint64_t)off, 77);
        fs_write_at(shared_fd, buf, block, off);
    }
    for (int b = me; b < blocks; b += threads) {
        off_t off = (off_t)b * block;

        fs_read_at(shared_fd, buf, block, off);
        fs_expect_pattern(buf, block, (uint64_t)off, 77);
    }
}

/* Over each other, by descriptors that bypass the kernel's pages, below the end of the file: writes
 * that the kernel hands on at once. No page is of two of them. */
enum { page = 4096, pages = 64, pages_at_once = 8 };

static int open_direct(int flags)
{
    int fd = open("direct", O_RDWR | O_DIRECT | flags, 0644);

    OK(fd);
    return fd;
}

static void make_direct(void)
{
    int fd = open_direct(O_CREAT);

    OK(ftruncate(fd, pages * page));
    OK(close(fd));
}

static void over_each_other(int fd, int me, unsigned *seed)
{
    static _Thread_local _Alignas(page) unsigned char buf[pages_at_once * page];
    off_t first = rand_r(seed) % (pages - pages_at_once + 1);

    memset(buf, me + 1, sizeof buf);
    EQUAL(sizeof buf, pwrite(fd, buf, sizeof buf, first * page));
    EQUAL(sizeof buf, pread(fd, buf, sizeof buf, first * page));
    for (int i = 0; i < pages_at_once * page; i++)
        CHECK(buf[i] == buf[i / page * page] && buf[i] > 0 && buf[i] <= threads);
}

/* Exactly one of all who try makes the directory. */
static atomic_int made[rounds];

static void one_maker(int round)
{
    char name[64];

    snprintf(name, sizeof name, "race-%d", round);
    if (mkdir(name, 0755) == 0)
        atomic_fetch_add(&made[round], 1);
    else
        CHECK(errno == EEXIST);
}

static void *work(void *arg)
{
    int me = (int)(intptr_t)arg;
    unsigned seed = (unsigned)me + 1;
    int direct = open_direct(0);

    for (int r = 0; r < rounds; r++) {
        own_files(me, &seed);
        for (int i = 0; i < 10; i++)
            over_each_other(direct, me, &seed);
        if (r % 10 == 0)
            own_blocks(me);
        one_maker(r);
    }
    OK(close(direct));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[threads];
    char name[64];

    fs_enter(argc, argv);
    shared_fd = open("shared", O_RDWR | O_CREAT, 0644);
    OK(shared_fd);
    make_direct();
    for (intptr_t i = 0; i < threads; i++)
        CHECK(pthread_create(&thread[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < threads; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    for (int r = 0; r < rounds; r++) {
        EQUAL(1, made[r]);
        snprintf(name, sizeof name, "race-%d", r);
        OK(rmdir(name));
    }
    EQUAL((off_t)blocks * block, fs_stat("shared").st_size);
    OK(close(shared_fd));
    OK(unlink("shared"));
    OK(unlink("direct"));
    fs_leave();
    return 0;
}
