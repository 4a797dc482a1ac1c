/* A growable byte buffer. Consumed bytes at the front are reclaimed when room is needed, so a
 * buffer that is drained as fast as it is filled never grows. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_LEAST 256
#define BUF_KEPT  (256U << 10) /* by one that is empty: cm has two for each of a thousand nodes */

void mfs_buf_init(struct mfs_buf *b)
{
    *b = (struct mfs_buf){0};
}

void mfs_buf_fini(struct mfs_buf *b)
{
    free(b->mem);
    mfs_buf_init(b);
}

void mfs_buf_wipe(struct mfs_buf *b)
{
    if (b->mem)
        explicit_bzero(b->mem, b->cap);
    mfs_buf_fini(b);
}

char *mfs_buf_reserve(struct mfs_buf *b, size_t n)
{
    size_t len = b->end - b->start, cap = b->cap ? b->cap : BUF_LEAST;
    char *mem;

    if (b->mem && b->cap - b->end >= n)
        return b->mem + b->end;
    if (n > SIZE_MAX / 2 - len) {
        errno = ENOMEM;
        return NULL;
    }
    if (b->mem && b->start) {
        memmove(b->mem, b->mem + b->start, len);
        b->start = 0;
        b->end = len;
    }
    while (cap - len < n)
        cap *= 2;
    if (cap > b->cap) {
        mem = realloc(b->mem, cap);
        if (!mem)
            return NULL;
        b->mem = mem;
        b->cap = cap;
    }
    return b->mem + b->end;
}

void mfs_buf_commit(struct mfs_buf *b, size_t n)
{
    b->end += n;
}

int mfs_buf_append(struct mfs_buf *b, const void *p, size_t n)
{
    char *to = mfs_buf_reserve(b, n);

    if (!to)
        return -ENOMEM;
    if (n)
        memcpy(to, p, n);
    b->end += n;
    return 0;
}

int mfs_buf_printf(struct mfs_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    char *to;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    to = n < 0 ? NULL : mfs_buf_reserve(b, (size_t)n + 1);
    if (to) {
        vsnprintf(to, (size_t)n + 1, fmt, again);
        b->end += (size_t)n;
    }
    va_end(again);
    return to ? 0 : -ENOMEM;
}

void mfs_buf_consume(struct mfs_buf *b, size_t n)
{
    b->start += n;
    if (b->start == b->end)
        mfs_buf_clear(b);
}

void mfs_buf_clear(struct mfs_buf *b)
{
    if (b->cap > BUF_KEPT)
        mfs_buf_fini(b);
    b->start = b->end = 0;
}
