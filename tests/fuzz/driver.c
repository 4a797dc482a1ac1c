/* Feeds a parser with bytes: files named on the command line, or, without any, inputs grown from a
 * seed by random changes for a few seconds. Under a fuzzing compiler
 * (-fsanitize=fuzzer) this file is left out. MFS_SEED repeats a run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define INPUT_MAX 4096
#define RUN_NS    (2 * MFS_SEC)

static uint64_t state;

static uint32_t dice(uint32_t n)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(state >> 33) % n;
}

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *p = malloc(1 << 20);
    size_t n = f && p ? fread(p, 1, 1 << 20, f) : 0;

    if (!f || !p)
        perror(path);
    else
        LLVMFuzzerTestOneInput(p, n);
    if (f)
        fclose(f);
    free(p);
    return !f;
}

/* Changes the input a little; exact allocations let a sanitizer see the first byte too far. */
static size_t mutate(uint8_t *p, size_t n)
{
    for (uint32_t i = dice(8); i > 0 && n; i--)
        p[dice((uint32_t)n)] = dice(4) ? (uint8_t)dice(256) : (uint8_t)(dice(2) ? 0xff : 0);
    switch (dice(6)) {
    case 0:
        return n ? dice((uint32_t)n) : 0;
    case 1:
        while (n < INPUT_MAX && dice(8))
            p[n++] = (uint8_t)dice(256);
        return n;
    case 2:
        return dice(INPUT_MAX);
    default:
        return n;
    }
}

static void run_random(void)
{
    int64_t until = mfs_clock_mono() + RUN_NS;
    static uint8_t input[INPUT_MAX];
    size_t n = 0;
    unsigned long runs = 0;

    for (; mfs_clock_mono() < until; runs++) {
        uint8_t *exact;

        if (dice(64) == 0) {
            memset(input, 0, sizeof input);
            input[0] = 1; /* the format byte of all that we store */
            n = dice(256);
        }
        n = mutate(input, n);
        exact = malloc(n ? n : 1);
        if (!exact)
            return;
        memcpy(exact, input, n);
        LLVMFuzzerTestOneInput(exact, n);
        free(exact);
    }
    printf("%lu inputs\n", runs);
}

int main(int argc, char **argv)
{
    const char *seed = getenv("MFS_SEED");
    int rc = 0;

    for (int i = 1; i < argc; i++)
        rc |= run_file(argv[i]);
    if (argc > 1)
        return rc;
    state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("MFS_SEED=%llu\n", (unsigned long long)state);
    fflush(stdout);
    run_random();
    return 0;
}
