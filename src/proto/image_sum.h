/* The checksum of a checkpoint's image: AES-256-GMAC under a random key that no other image has.
 * Both together are the text that a manifest has of the image: without knowing it no other bytes
 * can be made that it is right for, which anybody can make for a checksum without a key, and no
 * image of another partition, checkpoint or deployment is taken for this one. The manifest is to be
 * kept as a secret therefore (docs/design/checkpoint.md). The fastest MAC that there is: an image
 * is as large as a partition. */
#ifndef MFS_PROTO_IMAGE_SUM_H
#define MFS_PROTO_IMAGE_SUM_H

#include <stdbool.h>
#include <stddef.h>

#define MFS_IMAGE_SUM_TEXT 97 /* key and MAC in hexadecimal, and the NUL */

struct mfs_image_sum;

/* With a new key, or with that of a text. NULL: there is no memory, or (EINVAL) it is no such text;
 * errno says. */
struct mfs_image_sum *mfs_image_sum_create(const char *text);
void mfs_image_sum_destroy(struct mfs_image_sum *s); /* NULL is fine */

/* The next bytes. 0 or -EIO. */
int mfs_image_sum_add(struct mfs_image_sum *s, const void *p, size_t n);

/* Of all bytes; nothing may be added any more. 0 or -EIO. */
int mfs_image_sum_text(struct mfs_image_sum *s, char out[MFS_IMAGE_SUM_TEXT]);

bool mfs_image_sum_valid(const char *text);                 /* is it such a text? */
bool mfs_image_sum_equal(const char *one, const char *two); /* in constant time */

#endif
