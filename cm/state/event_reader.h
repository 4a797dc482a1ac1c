/* Reads a deployment's events, oldest first, and goes on with what is added later, through a change
 * of the file. Blocks as reading files does; one thread. */
#ifndef MFS_CM_STATE_EVENT_READER_H
#define MFS_CM_STATE_EVENT_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "args/paths.h"
#include "cm/state/events.h"

struct mfs_event_reader;

/* The paths are copied. 0, or a negative errno: -ENOENT when there are no events. */
int mfs_event_reader_open(const struct mfs_paths *p, struct mfs_event_reader **out);
void mfs_event_reader_close(struct mfs_event_reader *r); /* takes NULL */

/* 1: an event; 0: there is none more just now; or a negative errno. */
int mfs_event_reader_next(struct mfs_event_reader *r, struct mfs_event *e);

/* Were there lines that are no events, as a crash on a full disk leaves them? */
bool mfs_event_reader_torn(const struct mfs_event_reader *r);

/* Has the file that is being read been removed, with none in its place? */
bool mfs_event_reader_gone(const struct mfs_event_reader *r);

/* The last events, at most n, that `match` takes, oldest first into out[n]. Their number, or a
 * negative errno. */
int mfs_event_last(const struct mfs_paths *p, bool (*match)(void *arg, const struct mfs_event *e),
                   void *arg, struct mfs_event *out, uint32_t n);

/* When it was, s since 1970; below 0: what it has is no time. */
int64_t mfs_event_seconds(const struct mfs_event *e);

#endif
