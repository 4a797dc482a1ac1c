/* Is the image that a redis process is to begin with the one that was written? */
#ifndef MFS_LM_REDIS_IMAGE_VERIFY_H
#define MFS_LM_REDIS_IMAGE_VERIFY_H

#include <stdint.h>

#include "base/err.h"

/* The file, of an absolute path, must be as it was written, and where no other user can change it.
 * Reads all of it; blocks. 0, -EIO when it is not, or another negative errno, with the reason. */
int mfs_image_verify(const char *path, uint64_t bytes, const char *sum, struct mfs_err *err);

#endif
