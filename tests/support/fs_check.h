/* What the programs in tests/fs share: checks that say where and why, and a few helpers.
 *
 * Such a program is given a directory (argv[1]) and perhaps a second path to the same file system
 * (argv[2]). It works in a fresh directory below the first and leaves nothing. A failed check
 * prints and exits with 1; a program that cannot run here exits with 77. */
#ifndef MFS_TESTS_FS_CHECK_H
#define MFS_TESTS_FS_CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

__attribute__((noreturn, format(printf, 3, 4))) static inline void
fs_fail(const char *file, int line, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;

    fprintf(stderr, "%s:%d: ", file, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, " (errno %d: %s)\n", saved, strerror(saved));
    exit(1);
}

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            fs_fail(__FILE__, __LINE__, "failed: %s", #cond);                                      \
    } while (0)

/* The call must succeed, that is, not return -1. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) == -1)                                                                          \
            fs_fail(__FILE__, __LINE__, "failed: %s", #call);                                      \
    } while (0)

/* The call must return -1 with that errno. */
#define FAILS(want, call)                                                                          \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if ((call) != -1)                                                                          \
            fs_fail(__FILE__, __LINE__, "succeeded, should fail with %s: %s", #want, #call);       \
        if (errno != (want))                                                                       \
            fs_fail(__FILE__, __LINE__, "should fail with %s: %s", #want, #call);                  \
    } while (0)

/* Two integers must be equal; prints both. */
#define EQUAL(want, got)                                                                           \
    do {                                                                                           \
        long long w_ = (long long)(want), g_ = (long long)(got);                                   \
        if (w_ != g_)                                                                              \
            fs_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #got, g_, w_);                     \
    } while (0)

__attribute__((noreturn, format(printf, 1, 2))) static inline void fs_skip(const char *fmt, ...)
{
    va_list ap;

    printf("SKIP: ");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    exit(77);
}

/* Makes a fresh directory below argv[1] and goes there. */
static inline void fs_enter(int argc, char **argv)
{
    char path[4096];

    if (argc < 2) {
        fprintf(stderr, "usage: %s DIRECTORY [SAME-DIRECTORY-ON-ANOTHER-MOUNT]\n", argv[0]);
        exit(2);
    }
    snprintf(path, sizeof path, "%s/fs.XXXXXX", argv[1]);
    CHECK(mkdtemp(path));
    OK(chdir(path));
    umask(022);
}

/* Removes the directory of fs_enter, which must be empty. */
static inline void fs_leave(void)
{
    char path[4096];

    CHECK(getcwd(path, sizeof path));
    OK(chdir("/"));
    OK(rmdir(path));
    printf("ok\n");
}

static inline void fs_write_at(int fd, const void *buf, size_t len, off_t off)
{
    CHECK(pwrite(fd, buf, len, off) == (ssize_t)len);
}

static inline void fs_read_at(int fd, void *buf, size_t len, off_t off)
{
    CHECK(pread(fd, buf, len, off) == (ssize_t)len);
}

/* Creates (or replaces) a file with that content. */
static inline void fs_put(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    OK(fd);
    CHECK(write(fd, data, len) == (ssize_t)len);
    OK(close(fd));
}

/* The file must have exactly that content. */
static inline void fs_expect(const char *path, const void *data, size_t len)
{
    int fd = open(path, O_RDONLY);
    char *buf = malloc(len + 1);

    OK(fd);
    CHECK(buf);
    EQUAL(len, read(fd, buf, len + 1));
    CHECK(!memcmp(buf, data, len));
    OK(close(fd));
    free(buf);
}

static inline bool fs_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static inline struct stat fs_stat(const char *path)
{
    struct stat st;

    OK(lstat(path, &st));
    return st;
}

/* A byte that depends on the offset and a seed, so that misplaced data show. */
static inline unsigned char fs_pattern(uint64_t off, uint64_t seed)
{
    uint64_t x = (off >> 3) + seed * 0x9e3779b97f4a7c15ULL;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 27;
    return (unsigned char)(x >> ((off & 7) * 8));
}

static inline void fs_fill(unsigned char *buf, size_t len, uint64_t off, uint64_t seed)
{
    for (size_t i = 0; i < len; i++)
        buf[i] = fs_pattern(off + i, seed);
}

static inline void fs_expect_pattern(const unsigned char *buf, size_t len, uint64_t off,
                                     uint64_t seed)
{
    for (size_t i = 0; i < len; i++)
        if (buf[i] != fs_pattern(off + i, seed))
            fs_fail(__FILE__, __LINE__, "byte %llu is %02x, not %02x (seed %llu)",
                    (unsigned long long)(off + i), buf[i], fs_pattern(off + i, seed),
                    (unsigned long long)seed);
}

#endif
