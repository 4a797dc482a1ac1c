/* The secure heap. libcrypto locks all of it when it is made, whatever is used, but pages take
 * memory only once they are touched (MLOCK_ONFAULT). */
#include "base/crypto/secure.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/log.h"

/* The keys of as many connections as cm takes, 2 * 8192 of 32 bytes, fill an eighth. */
#define HEAP  (4U << 20)
#define LEAST 32 /* bytes of the shortest allocation */

/* Kept for libcrypto, whose own allocations fail when the secure heap is full. */
#define RESERVE (HEAP / 2)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool locked;

static void make(void)
{
    /* 2: it is there, but pages could not be locked or left out of core dumps. */
    locked = CRYPTO_secure_malloc_init(HEAP, LEAST) == 1;
}

void *mfs_secure_alloc(size_t n)
{
    void *p = NULL;

    pthread_once(&once, make);
    if (n <= RESERVE && CRYPTO_secure_used() <= HEAP - RESERVE - n)
        p = OPENSSL_secure_zalloc(n);
    return p ? p : OPENSSL_zalloc(n);
}

void mfs_secure_free(void *p, size_t n)
{
    OPENSSL_secure_clear_free(p, n);
}

void mfs_secure_outlives_exit(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

void mfs_secure_thread_over(void)
{
    OPENSSL_thread_stop();
}

void mfs_secure_warn(void)
{
    pthread_once(&once, make);
    if (!locked)
        mfs_warn("secure",
                 "pages with the secret can't be locked and may get into swap: "
                 "RLIMIT_MEMLOCK (ulimit -l) is below %u KiB",
                 (HEAP >> 10) + 64);
}
