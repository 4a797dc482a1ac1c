/* What has happened: one JSON object per line in events.jsonl. */
#ifndef MFS_CM_STATE_EVENTS_H
#define MFS_CM_STATE_EVENTS_H

#include "proto/messages.h"

/* Bounds what the file and the one before it have together, bytes; 0 (the default): no bound. With
 * half of them the file is renamed (args/paths.h, old_events), and what was named so goes. Before
 * any other thread is there. */
void mfs_event_bound(uint64_t bytes);

/* Appends the event to the file and logs it. A failure to write is logged. */
void mfs_event_add(const char *path, const char *who, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The last events, oldest first: since cm began, and before that what the end of the file has
 * (mfs_event_recall). Their number. The loop's thread. */
unsigned mfs_event_recent(struct mfs_event out[MFS_EVENTS_RECENT]);
void mfs_event_recall(const char *path);

/* How often each word has come since the program began: at most 128 of them, the others are counted
 * as "other". The loop's thread. */
struct mfs_event_count {
    char what[32];
    uint64_t n;
};
const struct mfs_event_count *mfs_event_counts(unsigned *n);

#endif
