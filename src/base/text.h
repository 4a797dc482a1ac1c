/* Small texts: sizes with units, numbers that must be wholly numbers, hexadecimal, likeness. Pure.
 */
#ifndef MFS_BASE_TEXT_H
#define MFS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "4G", "512MiB", "1.5g", "4096": bytes; K M G T P are powers of 1024, case and "iB"/"B" do not
 * matter. Returns 0, -EINVAL for anything else, -ERANGE when it does not fit. */
int mfs_text_size(const char *text, uint64_t *bytes);

/* Decimal only, no blanks, no rest. 0, -EINVAL or -ERANGE. */
int mfs_text_u64(const char *text, uint64_t *value);
int mfs_text_f64(const char *text, double *value); /* finite values only */

/* "yes/no", "true/false", "on/off", "1/0". 0 or -EINVAL. */
int mfs_text_bool(const char *text, bool *value);

/* "3.2 GiB" into out[n], "-" of UINT64_MAX: unknown; returns out. 16 bytes suffice. */
const char *mfs_text_bytes(uint64_t bytes, char *out, size_t n);
#define MFS_TEXT_BYTES(bytes) mfs_text_bytes(bytes, (char[24]){0}, 24)

/* "1 node", "4 nodes" into out[n]; returns out. The noun takes an s. */
const char *mfs_text_count(uint64_t count, const char *noun, char *out, size_t n);
#define MFS_TEXT_COUNT(count, noun) mfs_text_count(count, noun, (char[48]){0}, 48)

/* 2·n lower-case digits and a NUL into out. */
void mfs_text_hex(const void *p, size_t n, char *out);
/* Exactly 2·n digits into n bytes. 0 or -EINVAL. */
int mfs_text_unhex(const char *text, void *out, size_t n);

/* Copies into a fixed field, always terminated. 0 or -ENAMETOOLONG (then out is ""). */
int mfs_text_copy(char *out, size_t n, const char *text);

/* Formats into a fixed field. 0 or -ENAMETOOLONG (then out is ""). */
int mfs_text_format(char *out, size_t n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The word as sh(1) reads it: itself where that is plain, else in single quotes. 0 or -ENAMETOOLONG
 * (then out is ""). */
int mfs_text_quote(char *out, size_t n, const char *word);

/* The length of the character in UTF-8 that begins there (RFC 3629); 0: none does. Reads no further
 * than a NUL. */
size_t mfs_text_utf8(const char *text);

/* Copies what fits, in whole characters, always terminated: a control character, or a byte that is
 * no UTF-8, becomes \xNN. */
void mfs_text_plain(char *out, size_t n, const char *text);

/* Edit distance, for "did you mean". Texts beyond 63 bytes count as wholly different (64). */
unsigned mfs_text_distance(const char *a, const char *b);

#endif
