#include "meta/cache/contents.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "meta/meta.h"

#define MOST_DEFAULT (128U << 20) /* bytes of all files */
#define LOOKUP_MAX   (16U << 10)  /* bytes that a look-up brings */
#define CREDIT_MAX   16

struct content {
    uint64_t ino, version;
    size_t n;
    UT_hash_handle hh;
    char bytes[];
};

struct mfs_contents {
    pthread_mutex_t mutex;
    struct content *table; /* under mutex, as is what follows; in the order of its age */
    size_t bytes;
    size_t most; /* constant */
    /* Look-ups bring content while this is above 0: it grows when content is wanted for reading and
     * falls with all that is brought. */
    atomic_int credit;
};

struct mfs_contents *mfs_contents_create(size_t most)
{
    struct mfs_contents *c = calloc(1, sizeof *c);

    if (c) {
        pthread_mutex_init(&c->mutex, NULL);
        c->most = most ? most : MOST_DEFAULT;
    }
    return c;
}

static void drop(struct mfs_contents *c, struct content *e)
{
    HASH_DEL(c->table, e);
    assert(c->bytes >= sizeof *e + e->n);
    c->bytes -= sizeof *e + e->n;
    free(e);
}

void mfs_contents_clear(struct mfs_contents *c)
{
    pthread_mutex_lock(&c->mutex);
    while (c->table)
        drop(c, c->table);
    pthread_mutex_unlock(&c->mutex);
}

void mfs_contents_destroy(struct mfs_contents *c)
{
    if (!c)
        return;
    mfs_contents_clear(c);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

void mfs_contents_put(struct mfs_contents *c, uint64_t ino, uint64_t version, const void *p,
                      size_t n)
{
    struct content *e = n <= MFS_META_CONTENT ? malloc(sizeof *e + n) : NULL, *old;

    if (!e)
        return;
    e->ino = ino;
    e->version = version;
    e->n = n;
    if (n) /* p may be NULL */
        memcpy(e->bytes, p, n);
    pthread_mutex_lock(&c->mutex);
    HASH_FIND(hh, c->table, &ino, sizeof ino, old);
    if (old)
        drop(c, old);
    HASH_ADD(hh, c->table, ino, sizeof e->ino, e);
    if (e->hh.tbl)
        c->bytes += sizeof *e + n;
    else
        free(e);
    while (c->table && c->bytes > c->most)
        drop(c, c->table);
    pthread_mutex_unlock(&c->mutex);
}

bool mfs_contents_get(struct mfs_contents *c, uint64_t ino, uint64_t version, uint64_t off,
                      size_t len, void *buf)
{
    struct content *e;
    size_t stored;
    bool kept;

    pthread_mutex_lock(&c->mutex);
    HASH_FIND(hh, c->table, &ino, sizeof ino, e);
    kept = e && e->version == version;
    if (kept) {
        stored = off < e->n ? e->n - (size_t)off : 0;
        stored = stored < len ? stored : len;
        if (stored)
            memcpy(buf, e->bytes + off, stored);
        memset((char *)buf + stored, 0, len - stored);
    }
    pthread_mutex_unlock(&c->mutex);
    mfs_contents_want(c);
    return kept;
}

ssize_t mfs_contents_whole(struct mfs_contents *c, uint64_t ino, uint64_t version, void *buf,
                           size_t cap)
{
    struct content *e;
    ssize_t n = -1;

    pthread_mutex_lock(&c->mutex);
    HASH_FIND(hh, c->table, &ino, sizeof ino, e);
    if (e && e->version == version) {
        n = (ssize_t)(e->n < cap ? e->n : cap);
        memcpy(buf, e->bytes, (size_t)n);
    }
    pthread_mutex_unlock(&c->mutex);
    return n;
}

size_t mfs_contents_wanted(struct mfs_contents *c)
{
    return atomic_load(&c->credit) > 0 ? LOOKUP_MAX : 0;
}

void mfs_contents_want(struct mfs_contents *c)
{
    if (atomic_load(&c->credit) < CREDIT_MAX)
        atomic_fetch_add(&c->credit, 2);
}

void mfs_contents_brought(struct mfs_contents *c)
{
    atomic_fetch_sub(&c->credit, 1);
}
