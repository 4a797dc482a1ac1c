/* Memory for secrets and keys. Its pages are left out of core dumps and, as far as RLIMIT_MEMLOCK
 * allows, out of swap; what is freed is wiped. It is libcrypto's secure heap, which libcrypto then
 * also uses for the private keys that it makes itself. It is made at the first allocation; a child
 * of fork() has a copy that is left out of core dumps, but not locked. Safe in all threads. */
#ifndef MFS_BASE_CRYPTO_SECURE_H
#define MFS_BASE_CRYPTO_SECURE_H

#include <stddef.h>

/* n bytes, zeroed; NULL: ENOMEM. When the secure heap is full they come from the ordinary one: a
 * deployment with too many connections goes on. */
void *mfs_secure_alloc(size_t n);
void mfs_secure_free(void *p, size_t n); /* wipes the n bytes that p has; NULL is fine */

/* For a library, before anything else of libcrypto is used: libcrypto does not clean up at exit(3),
 * which would be beside threads of the library that go on, and before connections that a handler of
 * the program's own ends. When the library goes, what libcrypto has for the calling thread goes. */
void mfs_secure_outlives_exit(void);
void mfs_secure_thread_over(void);

/* For a daemon: a warning in its log when pages could not be locked. */
void mfs_secure_warn(void);

#endif
