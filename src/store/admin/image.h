/* A partition's content as one stream of bytes, as of one moment: what redis gives to a replica
 * that wants a whole copy and nothing after it. The process forks at that moment; its child writes,
 * and the process passes on what it writes. Belongs to one thread at a time. */
#ifndef MFS_STORE_ADMIN_IMAGE_H
#define MFS_STORE_ADMIN_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct mfs_image;

/* Connects as MFS_REDIS_ADMIN, and asks for nothing yet. Blocks, at most for timeout_ns. */
int mfs_image_open(struct mfs_image **image, const char *unix_path, const char *password,
                   int64_t timeout_ns, struct mfs_err *err);
/* The process stops writing when it notices. NULL is fine. */
void mfs_image_close(struct mfs_image *image);

/* Asks for the image; does not wait. */
int mfs_image_ask(struct mfs_image *image, struct mfs_err *err);

/* Waits until the process has forked, at most until that moment (mfs_clock_mono): what it executes
 * for a client that acts after this return is not in the image. -ETIMEDOUT: not yet; it may still
 * come. */
int mfs_image_await(struct mfs_image *image, int64_t until, struct mfs_err *err);

int mfs_image_fd(const struct mfs_image *image); /* readable when there is something to take */

/* What has come: *n bytes at *p, until the next call; *n is 0 when nothing has. Does not wait. 0 or
 * a negative errno with the reason. */
int mfs_image_take(struct mfs_image *image, const char **p, size_t *n, struct mfs_err *err);
bool mfs_image_whole(const struct mfs_image *image); /* everything has been taken */

#endif
