#include "input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

void fuzz_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

/* ---- input ----------------------------------------------------------------------------------- */

uint8_t fuzz_u8(struct fuzz_input *in)
{
    if (!in->n)
        return 0;
    in->n--;
    return *in->p++;
}

uint32_t fuzz_u16(struct fuzz_input *in)
{
    uint32_t high = fuzz_u8(in);

    return high << 8 | fuzz_u8(in);
}

uint64_t fuzz_u64(struct fuzz_input *in)
{
    uint64_t v = 0;

    for (int i = 0; i < 8; i++)
        v = v << 8 | fuzz_u8(in);
    return v;
}

struct fuzz_input fuzz_take(struct fuzz_input *in, size_t n)
{
    struct fuzz_input taken = {in->p, n < in->n ? n : in->n};

    in->p += taken.n;
    in->n -= taken.n;
    return taken;
}

char *fuzz_text(struct fuzz_input text)
{
    char *copy = malloc(text.n + 1);

    FUZZ_CHECK(copy);
    if (text.n)
        memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    return copy;
}

/* ---- files ----------------------------------------------------------------------------------- */

void fuzz_file_open(struct fuzz_file *f, const void *p, size_t n)
{
    snprintf(f->path, sizeof f->path, "/dev/shm/fuzz.XXXXXX");
    f->fd = mkstemp(f->path);
    FUZZ_CHECK(f->fd >= 0 && !mfs_file_write_all(f->fd, p, n));
}

void fuzz_file_close(struct fuzz_file *f)
{
    unlink(f->path);
    close(f->fd);
}

bool fuzz_same(const struct mfs_buf *a, const struct mfs_buf *b)
{
    return mfs_buf_len(a) == mfs_buf_len(b) &&
           (!mfs_buf_len(a) || !memcmp(mfs_buf_data(a), mfs_buf_data(b), mfs_buf_len(a)));
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Of the sanitizers; absent without one. */
__attribute__((weak)) int
__sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
                                          void (*freed)(const volatile void *));
__attribute__((weak)) size_t __sanitizer_get_allocated_size(const volatile void *p);

static _Thread_local struct {
    bool counting;
    int64_t now, most; /* less than nothing when older memory is freed */
} heap;

static void allocated(const volatile void *p, size_t n)
{
    (void)p;
    if (!heap.counting)
        return;
    heap.now += (int64_t)n;
    if (heap.now > heap.most)
        heap.most = heap.now;
}

static void freed(const volatile void *p)
{
    if (heap.counting && p)
        heap.now -= (int64_t)__sanitizer_get_allocated_size(p);
}

void fuzz_heap_begin(void)
{
    static bool installed;

    if (!installed && __sanitizer_install_malloc_and_free_hooks && __sanitizer_get_allocated_size)
        __sanitizer_install_malloc_and_free_hooks(allocated, freed);
    installed = true;
    heap.now = heap.most = 0;
    heap.counting = true;
}

size_t fuzz_heap_end(void)
{
    heap.counting = false;
    return (size_t)heap.most;
}

void fuzz_quiet(void)
{
    static bool quiet;

    if (!quiet)
        FUZZ_CHECK(!mfs_log_open("fuzz", "/dev/null", MFS_LOG_DEBUG));
    quiet = true;
}
