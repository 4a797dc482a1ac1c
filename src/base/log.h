/* The log: one line per event, "time level [thread] area: what: why", to a file or to stderr.
 *
 * Thread-safe. A line is written with one write(2), so lines of several processes that share a
 * file never mix. errno is preserved. */
#ifndef MFS_BASE_LOG_H
#define MFS_BASE_LOG_H

#include <stdbool.h>

enum mfs_log_level { MFS_LOG_ERROR, MFS_LOG_WARN, MFS_LOG_INFO, MFS_LOG_DEBUG };

/* Directs the log to path (created 0640, appended to) or, when path is NULL, to stderr. `program`
 * must outlive the log. Returns 0 or a negative errno, leaving the log where it was. */
int mfs_log_open(const char *program, const char *path, enum mfs_log_level level);

/* Reopens the file, for log rotation. Async-signal-unsafe: call it from a loop, not a handler. */
int mfs_log_reopen(void);

void mfs_log_set_level(enum mfs_log_level level);

/* Are lines of that level written? For those that cost something to make. */
bool mfs_log_wants(enum mfs_log_level level);

/* "error", "warn", "info", "debug" → level; returns -EINVAL for anything else. */
int mfs_log_level_parse(const char *text, enum mfs_log_level *level);

void mfs_log_write(enum mfs_log_level level, const char *area, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define mfs_error(area, ...) mfs_log_write(MFS_LOG_ERROR, area, __VA_ARGS__)
#define mfs_warn(area, ...)  mfs_log_write(MFS_LOG_WARN, area, __VA_ARGS__)
#define mfs_info(area, ...)  mfs_log_write(MFS_LOG_INFO, area, __VA_ARGS__)
#define mfs_debug(area, ...) mfs_log_write(MFS_LOG_DEBUG, area, __VA_ARGS__)

#endif
