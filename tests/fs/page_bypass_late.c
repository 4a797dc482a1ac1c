/* A write(2) of two pages whose second one is missing in memory: Linux has put the first one into
 * the page cache, and has let it go, when the second one is asked for (userfaultfd). Meanwhile the
 * other mount changes the file elsewhere, and the first page is read here once more. What the write
 * returns for must be seen nevertheless. */
#include "page_bypass.h"

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "fs_check.h"

enum { BLOCK = 4096, BLOCKS = 32 };

static char here[5000], elsewhere[5000]; /* the file */
static char *source;                     /* what is written: a page, and one that is missing */
static int faults;

static void *disturb(void *arg)
{
    static char bytes[BLOCK] __attribute__((aligned(BLOCK)));
    struct uffdio_copy copy = {(uintptr_t)source + BLOCK, (uintptr_t)bytes, BLOCK, 0, 0};
    struct uffd_msg fault;
    int fd;

    (void)arg;
    EQUAL(sizeof fault, read(faults, &fault, sizeof fault));
    fd = open(elsewhere, O_WRONLY);
    OK(fd);
    fs_write_at(fd, "x", 1, (BLOCKS - 1) * BLOCK);
    OK(fsync(fd));
    OK(close(fd));
    fd = open(here, O_RDONLY);
    OK(fd);
    EQUAL(BLOCK, pread(fd, bytes, BLOCK, 0));
    OK(close(fd));
    memset(bytes, 'n', BLOCK);
    OK(ioctl(faults, UFFDIO_COPY, &copy));
    return NULL;
}

static void expect_new(int fd, size_t len, const char *when)
{
    char got[2 * BLOCK];

    EQUAL(len, pread(fd, got, len, 0));
    for (size_t at = 0; at < len; at++)
        if (got[at] != 'n')
            fs_fail(__FILE__, __LINE__, "late write: stale at %zu of %zu %s", at, len, when);
}

static void write_late(size_t len)
{
    int fd = open(here, O_RDWR), other;
    pthread_t thread;

    OK(fd);
    EQUAL(0, pthread_create(&thread, NULL, disturb, NULL));
    EQUAL(len, pwrite(fd, source, len, 0));
    EQUAL(0, pthread_join(thread, NULL));
    expect_new(fd, len / BLOCK * BLOCK, "when it has returned");
    OK(fsync(fd));
    other = open(here, O_RDONLY);
    OK(other);
    expect_new(other, len, "after fsync");
    OK(close(other));
    OK(close(fd));
}

static void run(size_t len)
{
    static const char old[BLOCKS * BLOCK];
    struct uffdio_register missing = {.mode = UFFDIO_REGISTER_MODE_MISSING};

    source =
        mmap(NULL, (size_t)2 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(source != MAP_FAILED);
    missing.range = (struct uffdio_range){(uintptr_t)source + BLOCK, BLOCK};
    OK(ioctl(faults, UFFDIO_REGISTER, &missing));
    memset(source, 'n', BLOCK);
    fs_put(here, old, sizeof old);
    write_late(len);
    OK(unlink(here));
    OK(munmap(source, (size_t)2 * BLOCK));
}

void late_write(const char *dir, const char *other_dir)
{
    struct uffdio_api api = {.api = UFFD_API};

    snprintf(here, sizeof here, "%s/late", dir);
    snprintf(elsewhere, sizeof elsewhere, "%s/late", other_dir);
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) < 0) {
        printf("skipped  late write: no userfaultfd\n");
        return;
    }
    run((size_t)2 * BLOCK);
    run(BLOCK + 100);
    OK(close(faults));
    printf("ok       late write\n");
}
