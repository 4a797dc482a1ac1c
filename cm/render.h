/* Status and events for people. Pure. */
#ifndef MFS_CM_RENDER_H
#define MFS_CM_RENDER_H

#include "base/buf.h"
#include "cm/events.h"
#include "wire/messages.h"

int mfs_render_status(const struct mfs_status *s, struct mfs_buf *out); /* 0 or -ENOMEM */
int mfs_render_event(const struct mfs_event *e, struct mfs_buf *out);

#endif
