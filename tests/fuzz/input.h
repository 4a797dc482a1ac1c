/* What fuzz targets share: taking their input apart, checks, and how much memory was asked for. */
#ifndef MFS_FUZZ_INPUT_H
#define MFS_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Says what is not as it should be, and aborts: a finding. */
#define FUZZ_CHECK(cond)                                                                           \
    do {                                                                                           \
        if (!(cond))                                                                               \
            fuzz_fail(__FILE__, __LINE__, #cond);                                                  \
    } while (0)
__attribute__((noreturn)) void fuzz_fail(const char *file, int line, const char *what);

/* What is left of the input. */
struct fuzz_input {
    const uint8_t *p;
    size_t n;
};

/* The next bytes; zeros where it has ended. */
uint8_t fuzz_u8(struct fuzz_input *in);
uint32_t fuzz_u16(struct fuzz_input *in);
uint64_t fuzz_u64(struct fuzz_input *in);
/* The next n bytes, or as many as there are. */
struct fuzz_input fuzz_take(struct fuzz_input *in, size_t n);
/* A copy that ends with NUL. Freed by the caller. */
char *fuzz_text(struct fuzz_input text);

/* A file with that content, to be read by its path until fuzz_file_close. */
struct fuzz_file {
    int fd;
    char path[32];
};
void fuzz_file_open(struct fuzz_file *f, const void *p, size_t n);
void fuzz_file_close(struct fuzz_file *f);

/* Whether both hold the same bytes. */
bool fuzz_same(const struct mfs_buf *a, const struct mfs_buf *b);

/* The most bytes that this thread had allocated at one time since fuzz_heap_begin; 0 in builds
 * without a sanitizer, where nobody counts. */
void fuzz_heap_begin(void);
size_t fuzz_heap_end(void);

/* No log: what targets provoke would fill it. Errors that are logged are formatted all the same. */
void fuzz_quiet(void);

#endif
