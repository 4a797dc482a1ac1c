/* journald, spoken to without libsystemd (docs/design/decisions/0035-logs.md). */
#ifndef MFS_BASE_LOG_JOURNAL_H
#define MFS_BASE_LOG_JOURNAL_H

#include <stdbool.h>

#include "base/log_line.h"

/* Is that descriptor the journal's, as $JOURNAL_STREAM says (systemd.exec(5))? */
bool mfs_log_journal_is(int fd);

/* One datagram. Any thread. 0 or a negative errno: then nothing is written. Does not block. */
int mfs_log_journal_send(const struct mfs_log_entry *e);

/* A line to the descriptor that is the journal's, for what can't be sent as a datagram: only the
 * priority goes along. Any thread. 0 or a negative errno. Does not block, as a journald that stands
 * still is not to stop its services: the line is lost then. */
int mfs_log_journal_stream(int fd, const struct mfs_log_entry *e);

#endif
