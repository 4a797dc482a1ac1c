/* Feeds a parser with bytes, in builds without a fuzzing compiler (which brings a main of its own):
 *
 *   fuzz_NAME             inputs grown by random changes for a few seconds
 *   fuzz_NAME DIRECTORY   each file in it, then inputs grown from these
 *   fuzz_NAME FILE …      these only
 *
 * Always the same ones on a machine of the same speed; MFS_SEED gives others. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define INPUT_MAX 4096
#define FILE_MAX  (1U << 20)
#define SEEDS_MAX 64
#define RUN_NS    (1 * MFS_SEC)

/* What the directory held. */
static struct {
    struct mfs_buf seed[SEEDS_MAX];
    uint32_t n;
} corpus;

static uint64_t state;

static uint32_t dice(uint32_t n)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(state >> 33) % n;
}

/* Allocated exactly, so that a sanitizer sees the first byte too far. */
static void run_exact(const void *p, size_t n)
{
    uint8_t *exact = malloc(n ? n : 1);

    if (!exact)
        return;
    if (n)
        memcpy(exact, p, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

static int run_file(const char *path)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_file_read(path, FILE_MAX, &b);
    if (rc) {
        fprintf(stderr, "%s: %s\n", path, strerror(-rc));
    } else {
        printf("%s\n", path);
        fflush(stdout);
        run_exact(mfs_buf_data(&b), mfs_buf_len(&b));
    }
    if (!rc && corpus.n < SEEDS_MAX)
        corpus.seed[corpus.n++] = b;
    else
        mfs_buf_fini(&b);
    return rc ? 1 : 0;
}

static int run_directory(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    char file[4096];
    int rc = 0;

    if (!dir) {
        perror(path);
        return 1;
    }
    while ((e = readdir(dir)))
        if (e->d_name[0] != '.' && !mfs_text_format(file, sizeof file, "%s/%s", path, e->d_name))
            rc |= run_file(file);
    closedir(dir);
    return rc;
}

static bool is_directory(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Changes the input a little. */
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

/* Begins anew, mostly from something meaningful. */
static size_t begin(uint8_t *input)
{
    const struct mfs_buf *seed = corpus.n && dice(8) ? &corpus.seed[dice(corpus.n)] : NULL;
    size_t n = seed ? mfs_buf_len(seed) : dice(256);

    n = n < INPUT_MAX ? n : INPUT_MAX;
    if (seed && n)
        memcpy(input, mfs_buf_data(seed), n);
    else
        memset(input, 0, n);
    if (!seed)
        input[0] = 1; /* the format byte of all that we store */
    return n;
}

static void run_random(void)
{
    int64_t until = mfs_clock_mono() + RUN_NS;
    static uint8_t input[INPUT_MAX];
    size_t n = 0;
    unsigned long runs = 0;

    for (; mfs_clock_mono() < until; runs++) {
        if (dice(corpus.n ? 8 : 64) == 0)
            n = begin(input);
        n = mutate(input, n);
        run_exact(input, n);
    }
    printf("%lu inputs\n", runs);
}

static void fini(void)
{
    while (corpus.n)
        mfs_buf_fini(&corpus.seed[--corpus.n]);
}

int main(int argc, char **argv)
{
    const char *seed = getenv("MFS_SEED");
    bool grow = argc == 1;
    int rc = 0;

    for (int i = 1; i < argc; i++) {
        if (is_directory(argv[i])) {
            rc |= run_directory(argv[i]);
            grow = true;
        } else {
            rc |= run_file(argv[i]);
        }
    }
    state = seed ? strtoull(seed, NULL, 10) : 1;
    if (grow) {
        printf("MFS_SEED=%llu\n", (unsigned long long)state);
        fflush(stdout);
        run_random();
    }
    fini();
    return rc;
}
