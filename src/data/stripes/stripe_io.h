/* Reads and writes of single stripes, many per round trip: what the calls of stripes.h, the senders
 * of write-behind and the fetchers of read-ahead have in common. Internal to src/data. Any thread;
 * each call is one mfs_store_exec. */
#ifndef MFS_DATA_STRIPES_STRIPE_IO_H
#define MFS_DATA_STRIPES_STRIPE_IO_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct mfs_span { /* bytes for one stripe */
    uint32_t off, len;
    const void *p;
};

struct mfs_stripe_put {
    uint64_t ino;
    uint32_t stripe;
    const struct mfs_span *spans; /* ascending, apart from each other; at least one */
    size_t nspans;

    int rc;        /* of this stripe; when it failed, some spans may have been written */
    int64_t grown; /* bytes by which the stripe's value became longer */
    int64_t was;   /* its length before, at least: from there on all of it is of this call */
};

/* Writes the spans of all stripes; 0 or the first rc that is not. A whole stripe is replaced, else
 * only the bytes of the spans change. Spans of 16 KiB and more are sent from where they are. The
 * caller waits itself where there is no memory, or is `patient` (mfs_store_full_wait). */
int mfs_stripe_put(struct mfs_store *store, struct mfs_stripe_put *puts, size_t n, bool patient);

struct mfs_stripe_get {
    uint64_t ino;
    uint32_t stripe;
    uint32_t off, len; /* in the stripe */
    void *into;        /* len bytes; what the stripe does not hold becomes zeros */

    int rc;
};

int mfs_stripe_get(struct mfs_store *store, struct mfs_stripe_get *gets, size_t n);

#endif
