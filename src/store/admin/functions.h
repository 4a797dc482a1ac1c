/* The Redis Functions library, embedded at build time from functions/NAME.lua. */
#ifndef MFS_STORE_ADMIN_FUNCTIONS_H
#define MFS_STORE_ADMIN_FUNCTIONS_H

#include <stddef.h>

extern const unsigned char mfs_functions_text[]; /* ends with NUL, which len does not count */
extern const size_t mfs_functions_len;

#endif
