/* SEEK_DATA and SEEK_HOLE: where the values of the stripes begin and end, in blocks as programs
 * know it from other file systems: what follows a stripe's last byte in its block counts as data.
 * Stripes are asked for in growing batches; a long search for data in an otherwise empty file goes
 * through the keys. */
#include "data/stripes/stripes.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/stripes/geometry.h"
#include "data/stripes/stripe_keys.h"

#define BATCH_FIRST 16U
#define BATCH_MAX   4096U
#define BLOCK       4096U

struct seek {
    struct mfs_store *store;
    uint64_t ino;
    bool data;         /* looking for data, else for a hole */
    uint32_t size;     /* of a stripe */
    uint64_t off, end; /* [off, end) may hold data */
    uint32_t next;     /* stripe to look at */
    uint64_t found;    /* UINT64_MAX: not yet */
};

static uint64_t round_up(uint64_t n)
{
    return (n + BLOCK - 1) / BLOCK * BLOCK;
}

/* The value of stripe s->next is len bytes long: is what we look for in it, at or behind s->off? */
static bool look(struct seek *s, uint32_t len)
{
    uint64_t base = (uint64_t)s->next * s->size, from = base > s->off ? base : s->off;
    uint64_t blocks = round_up(len), data_end = base + (blocks < s->size ? blocks : s->size);

    if (s->data && from < data_end)
        s->found = from;
    if (!s->data && data_end < base + s->size)
        s->found = from > data_end ? from : data_end;
    s->next++;
    return s->found != UINT64_MAX;
}

static int look_batch(struct seek *s, size_t n)
{
    uint32_t *lengths = malloc(n * sizeof *lengths);
    int rc = lengths ? mfs_stripe_lengths(s->store, s->ino, s->next, n, lengths) : -ENOMEM;

    for (size_t i = 0; i < n && !rc; i++)
        if (look(s, lengths[i]))
            break;
    free(lengths);
    return rc;
}

struct nearest {
    uint32_t from;
    uint64_t stripe; /* UINT64_MAX: none */
};

static int take_nearest(void *arg, const uint32_t *stripes, size_t n)
{
    struct nearest *near = arg;

    for (size_t i = 0; i < n; i++)
        if (stripes[i] >= near->from && stripes[i] < near->stripe)
            near->stripe = stripes[i];
    return 0;
}

/* Moves s->next to the next stripe that exists, or to the end. */
static int skip_empty(struct seek *s, uint32_t stripes)
{
    struct nearest near = {s->next, UINT64_MAX};
    int rc = mfs_stripe_scan(s->store, s->ino, take_nearest, &near);

    if (!rc)
        s->next = near.stripe < stripes ? (uint32_t)near.stripe : stripes;
    return rc;
}

static int search(struct seek *s)
{
    uint32_t stripes = mfs_geometry_stripes(s->end, s->size), first = s->next;
    size_t batch = BATCH_FIRST;
    int rc = 0;

    while (s->next < stripes && s->found == UINT64_MAX && !rc) {
        bool scan = false;

        if (s->data && s->next - first >= BATCH_MAX)
            rc = mfs_stripe_scan_pays(s->store, stripes - s->next, &scan);
        if (!rc && scan) {
            rc = skip_empty(s, stripes);
            first = s->next;
            batch = BATCH_FIRST;
            continue;
        }
        if (batch > stripes - s->next)
            batch = stripes - s->next;
        if (!rc)
            rc = look_batch(s, batch);
        batch = batch * 4 < BATCH_MAX ? batch * 4 : BATCH_MAX;
    }
    return rc;
}

int mfs_stripes_seek(struct mfs_store *store, uint64_t ino, uint64_t off, int whence, uint64_t size,
                     uint64_t data_end, uint64_t *result)
{
    struct seek s = {.store = store,
                     .ino = ino,
                     .data = whence == SEEK_DATA,
                     .size = mfs_store_stripe_of(store, ino),
                     .off = off,
                     .end = size < data_end ? size : round_up(data_end),
                     .found = UINT64_MAX};
    int rc;

    if (whence != SEEK_DATA && whence != SEEK_HOLE)
        return -EINVAL;
    if (off >= size)
        return -ENXIO;
    if (s.end > size)
        s.end = size;
    s.next = (uint32_t)(off / s.size);
    rc = search(&s);
    if (rc)
        return rc;
    if (s.data && s.found >= s.end)
        return -ENXIO;
    if (s.found > s.end) /* no hole below: what is behind data_end is one */
        s.found = off > s.end ? off : s.end;
    *result = s.found < size ? s.found : size;
    return 0;
}
