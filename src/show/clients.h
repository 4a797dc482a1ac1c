/* What a deployment tells of itself, as tables for people: its clients, and what has happened. */
#ifndef MFS_SHOW_CLIENTS_H
#define MFS_SHOW_CLIENTS_H

#include <stddef.h>

#include "base/buf.h"
#include "proto/messages.h"

/* Puts the user's name, or leaves what is there. */
typedef void mfs_show_user(uint32_t uid, char *out, size_t size);

/* Append to `out`: 0 or -ENOMEM. `user` NULL: numbers are shown. */
int mfs_show_clients(const struct mfs_mounts *list, mfs_show_user *user, struct mfs_buf *out);
int mfs_show_event(const struct mfs_event *e, struct mfs_buf *out);
/* A line, where the answer is not of now. */
int mfs_show_told(const struct mfs_told *t, struct mfs_buf *out);

#endif
