/* Layer 1 of placement. What is hashed is fixed for ever by the byte order below: another order
 * would look for data where it is not. */
#include "cluster/placement.h"

#include <assert.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "base/hash.h"

#define STEP_RANGE 16U /* around the golden ratio: some P have no good step next to it */

uint32_t mfs_placement_entry(uint64_t parent, const char *name, size_t len, uint32_t nparts)
{
    return (uint32_t)(mfs_hash64(name, len, parent) % nparts);
}

/* The sum of the partial quotients of step / nparts as a continued fraction: the less, the more
 * evenly multiples of step lie (Kuipers and Niederreiter, "Uniform distribution of sequences",
 * chapter 2.3). UINT32_MAX when the two have a divisor in common. */
static uint32_t unevenness(uint32_t step, uint32_t nparts)
{
    uint32_t a = nparts, b = step, sum = 0;

    while (b) {
        uint32_t rest = a % b;

        sum += a / b;
        a = b;
        b = rest;
    }
    return a == 1 ? sum : UINT32_MAX;
}

/* In whole numbers, as all programs must come to the same. */
static uint32_t find_step(uint32_t nparts)
{
    uint32_t golden = (uint32_t)((uint64_t)nparts * 618034 / 1000000);
    uint32_t best = 1, least = nparts;

    for (uint32_t g = golden > STEP_RANGE ? golden - STEP_RANGE : 1;
         g < nparts && g <= golden + STEP_RANGE; g++) {
        uint32_t u = unevenness(g, nparts);

        if (u < least) {
            best = g;
            least = u;
        }
    }
    assert(nparts <= 2 || best < nparts);
    return best;
}

/* A process works with one P for most of the time, if not always. */
uint32_t mfs_placement_step(uint32_t nparts)
{
    static _Atomic uint64_t found; /* P << 32 | its step */
    uint64_t memo = atomic_load_explicit(&found, memory_order_relaxed);

    if (memo >> 32 != nparts) {
        memo = (uint64_t)nparts << 32 | find_step(nparts);
        atomic_store_explicit(&found, memo, memory_order_relaxed);
    }
    return (uint32_t)memo;
}

static uint32_t shift_of(uint64_t ino, uint32_t block, uint32_t nparts)
{
    unsigned char key[12];

    if (block == 0)
        return 0;
    mfs_put_be64(key, ino);
    mfs_put_be32(key + 8, block);
    return (uint32_t)(mfs_hash64(key, sizeof key, 0) % nparts);
}

uint32_t mfs_placement_stripe(uint64_t ino, uint32_t n, uint32_t nparts)
{
    uint64_t at = mfs_placement_home(ino);

    if (n == 0 || (ino & MFS_INO_TOGETHER))
        return (uint32_t)at;
    at += shift_of(ino, n / nparts, nparts) + (uint64_t)mfs_placement_step(nparts) * (n % nparts);
    return (uint32_t)(at % nparts);
}
