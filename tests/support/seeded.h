/* Random numbers for property tests. The seed is printed; MFS_SEED repeats a run. Include after
 * cmocka.h. */
#ifndef MFS_TESTS_SEEDED_H
#define MFS_TESTS_SEEDED_H

#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"

static uint64_t seed;

static inline uint32_t below(uint32_t n)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return n ? (uint32_t)((seed >> 33) % n) : 0;
}

/* A cmocka setup function. */
static inline int choose_seed(void **state)
{
    const char *given = getenv("MFS_SEED");

    (void)state;
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)mfs_clock_mono();
    print_message("MFS_SEED=%llu\n", (unsigned long long)seed);
    return 0;
}

#endif
