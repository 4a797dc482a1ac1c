/* The log. The descriptor's number never changes once a file is open: reopening dup2s over it, so
 * that writers in other threads need no lock. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define LINE_MAX_BYTES 4096

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static atomic_int log_fd = STDERR_FILENO;
static atomic_int log_level = MFS_LOG_INFO;
static _Atomic(const char *) log_program = "memefs";
static char log_path[PATH_MAX]; /* written by mfs_log_open only */
static atomic_bool torn;        /* the file ends with half a line, as a full disk leaves it */

static bool ends_torn(int fd)
{
    struct stat st;
    char last = '\n';

    return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
           pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

static int open_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0640);

    if (fd < 0)
        return -errno;
    atomic_store(&torn, ends_torn(fd));
    return fd;
}

int mfs_log_open(const char *program, const char *path, enum mfs_log_level level)
{
    int fd = STDERR_FILENO, old;

    if (path) {
        if (strlen(path) >= sizeof log_path)
            return -ENAMETOOLONG;
        fd = open_file(path);
        if (fd < 0)
            return fd;
    }
    mfs_text_copy(log_path, sizeof log_path, path ? path : "");
    atomic_store(&log_program, program);
    atomic_store(&log_level, (int)level);
    old = atomic_exchange(&log_fd, fd);
    if (old != STDERR_FILENO)
        close(old);
    return 0;
}

int mfs_log_reopen(void)
{
    int fd, rc = 0;

    if (!log_path[0])
        return 0;
    fd = open_file(log_path);
    if (fd < 0)
        return fd;
    if (dup3(fd, atomic_load(&log_fd), O_CLOEXEC) < 0)
        rc = -errno;
    close(fd);
    return rc;
}

void mfs_log_set_level(enum mfs_log_level level)
{
    atomic_store(&log_level, (int)level);
}

bool mfs_log_wants(enum mfs_log_level level)
{
    return (int)level <= atomic_load(&log_level);
}

int mfs_log_level_parse(const char *text, enum mfs_log_level *level)
{
    for (int i = MFS_LOG_ERROR; i <= MFS_LOG_DEBUG; i++) {
        if (!strcmp(text, level_names[i])) {
            *level = (enum mfs_log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

static size_t line_head(char *line, size_t size, enum mfs_log_level level, const char *area)
{
    char thread[16] = "", when[32];
    struct timespec now;
    struct tm tm;
    int n;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    pthread_getname_np(pthread_self(), thread, sizeof thread);
    n = snprintf(line, size, "%s.%06ldZ %s %s[%d] [%s] %s: ", when, now.tv_nsec / 1000,
                 level_names[level], atomic_load(&log_program), (int)getpid(), thread, area);
    return n < 0 ? 0 : (size_t)n;
}

/* Behind half a line a new one begins. */
static void put(const char *line, size_t len)
{
    int fd = atomic_load(&log_fd);
    ssize_t n;

    if (atomic_load(&torn) && write(fd, "\n", 1) == 1)
        atomic_store(&torn, false);
    do
        n = write(fd, line, len);
    while (n < 0 && errno == EINTR);
    if (n > 0 && (size_t)n < len)
        atomic_store(&torn, true);
}

void mfs_log_write(enum mfs_log_level level, const char *area, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    int saved = errno, n;
    size_t len;
    va_list ap;

    if (!mfs_log_wants(level))
        return;
    len = line_head(line, sizeof line, level, area);
    va_start(ap, fmt);
    errno = saved; /* for %m */
    n = vsnprintf(line + len, sizeof line - len - 1, fmt, ap);
    va_end(ap);
    if (n > 0)
        len += (size_t)n < sizeof line - len - 1 ? (size_t)n : sizeof line - len - 2;
    for (size_t i = 0; i < len; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    line[len++] = '\n';
    put(line, len);
    errno = saved;
}
