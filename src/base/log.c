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

#include "base/log_journal.h"
#include "base/log_line.h"
#include "base/text.h"

static atomic_int log_fd = STDERR_FILENO;
static atomic_int log_level = MFS_LOG_INFO;
static atomic_bool as_json;
static atomic_bool journal; /* stderr is journald's, and takes fields */
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
    atomic_store(&journal, !path && mfs_log_journal_is(STDERR_FILENO));
    old = atomic_exchange(&log_fd, fd);
    if (old != STDERR_FILENO)
        close(old);
    return 0;
}

int mfs_log_reopen(void)
{
    int fd, rc = 0;

    if (!log_path[0])
        return 1;
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

void mfs_log_set_format(const char *word)
{
    atomic_store(&as_json, !strcmp(word, "json"));
}

int mfs_log_level_parse(const char *text, enum mfs_log_level *level)
{
    for (int i = MFS_LOG_ERROR; i <= MFS_LOG_DEBUG; i++) {
        if (!strcmp(text, mfs_log_level_name((enum mfs_log_level)i))) {
            *level = (enum mfs_log_level)i;
            return 0;
        }
    }
    return -EINVAL;
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

static void put_entry(const struct mfs_log_entry *e)
{
    char line[MFS_LOG_LINE_MAX];

    if (!atomic_load(&journal))
        put(line, atomic_load(&as_json) ? mfs_log_line_json(e, line) : mfs_log_line_text(e, line));
    else if (mfs_log_journal_send(e))
        mfs_log_journal_stream(atomic_load(&log_fd), e);
}

void mfs_log_write_at(enum mfs_log_level level, const char *area, const char *file, int line,
                      const char *function, const char *fmt, ...)
{
    char message[MFS_LOG_LINE_MAX], thread[16] = "";
    struct mfs_log_entry e = {.level = level,
                              .area = area,
                              .thread = thread,
                              .message = message,
                              .file = file,
                              .line = line,
                              .function = function};
    int saved = errno;
    va_list ap;

    if (!mfs_log_wants(level))
        return;
    va_start(ap, fmt);
    if (vsnprintf(message, sizeof message, fmt, ap) < 0)
        message[0] = '\0';
    va_end(ap);
    e.program = atomic_load(&log_program);
    e.pid = getpid();
    clock_gettime(CLOCK_REALTIME, &e.when);
    pthread_getname_np(pthread_self(), thread, sizeof thread);
    put_entry(&e);
    errno = saved;
}
