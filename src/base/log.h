/* The log: one line per event, "time level program[pid] [thread] area: what: why" or a JSON object,
 * to a file or to stderr; where that is journald's, an entry with fields instead.
 *
 * Thread-safe. A line is written with one write(2), so lines of several processes that share a
 * file never mix. errno is preserved. */
#ifndef MFS_BASE_LOG_H
#define MFS_BASE_LOG_H

#include <stdbool.h>

enum mfs_log_level {
    MFS_LOG_NONE = -1, /* of a log that takes nothing; no line has it */
    MFS_LOG_ERROR,
    MFS_LOG_WARN,
    MFS_LOG_INFO,
    MFS_LOG_DEBUG
};

/* Directs the log to path (created 0640, appended to) or, when path is NULL, to stderr. `program`
 * must outlive the log. Returns 0 or a negative errno, leaving the log where it was. */
int mfs_log_open(const char *program, const char *path, enum mfs_log_level level);

/* Reopens the file, for log rotation. 0, 1: there is none, or a negative errno.
 * Async-signal-unsafe: call it from a loop, not a handler. */
int mfs_log_reopen(void);

void mfs_log_set_level(enum mfs_log_level level);

/* Are lines of that level written? For those that cost something to make. */
bool mfs_log_wants(enum mfs_log_level level);

/* "error", "warn", "info", "debug" → level; returns -EINVAL for anything else. */
int mfs_log_level_parse(const char *text, enum mfs_log_level *level);

/* The words of --log-format, for tables of options; lines are text until one is set. */
#define MFS_LOG_FORMATS "text|json"
void mfs_log_set_format(const char *word);

#define mfs_log_write(level, area, ...)                                                            \
    mfs_log_write_at(level, area, __FILE_NAME__, __LINE__, __func__, __VA_ARGS__)

void mfs_log_write_at(enum mfs_log_level level, const char *area, const char *file, int line,
                      const char *function, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

#define mfs_error(area, ...) mfs_log_write(MFS_LOG_ERROR, area, __VA_ARGS__)
#define mfs_warn(area, ...)  mfs_log_write(MFS_LOG_WARN, area, __VA_ARGS__)
#define mfs_info(area, ...)  mfs_log_write(MFS_LOG_INFO, area, __VA_ARGS__)
#define mfs_debug(area, ...) mfs_log_write(MFS_LOG_DEBUG, area, __VA_ARGS__)

#endif
