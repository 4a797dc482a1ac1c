/* How a line of the log looks: for people, for programs (JSON), and for journald. Pure. */
#ifndef MFS_BASE_LOG_LINE_H
#define MFS_BASE_LOG_LINE_H

#include <stddef.h>
#include <time.h>

#include "base/log.h"

#define MFS_LOG_LINE_MAX 4096 /* bytes, with its end: a pipe takes as much at once */

struct mfs_log_entry {
    struct timespec when; /* since 1970 */
    enum mfs_log_level level;
    const char *program, *thread, *area, *message; /* any bytes */
    int pid;
    const char *file, *function; /* that say so, and where */
    int line;
};

const char *mfs_log_level_name(enum mfs_log_level level);

/* The line into out[MFS_LOG_LINE_MAX], its end of line included; what does not fit is cut off. Its
 * length. JSON is valid whatever bytes the texts have: one that is no UTF-8 is told as \xNN. */
size_t mfs_log_line_text(const struct mfs_log_entry *e, char *out);
size_t mfs_log_line_json(const struct mfs_log_entry *e, char *out);

/* As text, behind its priority as a stream to journald has it: "<4>…" (sd-daemon(3)). */
size_t mfs_log_line_stream(const struct mfs_log_entry *e, char *out);

/* Fields of journald's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL) into
 * out[MFS_LOG_LINE_MAX]. Their length. */
size_t mfs_log_line_journal(const struct mfs_log_entry *e, char *out);

#endif
