/* A growable byte buffer: bytes [start, end) are its content. Not thread-safe. */
#ifndef MFS_BASE_BUF_H
#define MFS_BASE_BUF_H

#include <stddef.h>

struct mfs_buf {
    char *mem;
    size_t start, end, cap;
};

void mfs_buf_init(struct mfs_buf *b);
void mfs_buf_fini(struct mfs_buf *b);
/* The same, and overwrites what it holds: a secret. (Memory that it grew out of is not.) */
void mfs_buf_wipe(struct mfs_buf *b);

/* Makes room for n more bytes behind the content and returns where they go, or NULL (ENOMEM). */
char *mfs_buf_reserve(struct mfs_buf *b, size_t n);
void mfs_buf_commit(struct mfs_buf *b, size_t n); /* n reserved bytes are now content */
int mfs_buf_append(struct mfs_buf *b, const void *p, size_t n); /* 0 or -ENOMEM */
int mfs_buf_printf(struct mfs_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Drops n bytes of the front; one that is empty then gives memory back when that is much. */
void mfs_buf_consume(struct mfs_buf *b, size_t n);
void mfs_buf_clear(struct mfs_buf *b); /* likewise */

/* Where the content is; NULL while no room was ever needed. */
static inline char *mfs_buf_data(const struct mfs_buf *b)
{
    return b->mem ? b->mem + b->start : NULL;
}

static inline size_t mfs_buf_len(const struct mfs_buf *b)
{
    return b->end - b->start;
}

#endif
