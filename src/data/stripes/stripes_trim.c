/* Taking content away: the tail of a file, or a hole in it. The stripes that go wholly are named
 * one by one when they are few, and searched for when the range could hold more stripes than there
 * are keys; the one or two at its edges are edited in place. */
#include "data/stripes/stripes.h"

#include <errno.h>
#include <stdlib.h>

#include "data/stripes/geometry.h"
#include "data/stripes/stripe_keys.h"

#define NAMES_AT_ONCE 8192U

struct removal {
    struct mfs_store *store;
    uint64_t ino;
    uint64_t first, end; /* whole stripes [first, end) go */
    struct mfs_stripe_edit edits[MFS_STRIPE_EDITS_MAX];
    size_t nedits;
    int64_t grown;
};

static void add_edit(struct removal *r, const char *command, uint32_t stripe, uint32_t a,
                     uint32_t b)
{
    r->edits[r->nedits++] = (struct mfs_stripe_edit){command, stripe, a, b};
}

static int remove_found(void *arg, const uint32_t *stripes, size_t n)
{
    struct removal *r = arg;
    uint32_t *mine = malloc(n * sizeof *mine);
    size_t count = 0;
    int rc;

    if (!mine)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (stripes[i] >= r->first && stripes[i] < r->end)
            mine[count++] = stripes[i];
    rc = count ? mfs_stripe_delete(r->store, r->ino, NULL, 0, mine, count, &r->grown) : 0;
    free(mine);
    return rc;
}

static int remove_named(struct removal *r)
{
    uint64_t left = r->end - r->first;
    size_t cap = left < NAMES_AT_ONCE ? (size_t)left : NAMES_AT_ONCE;
    uint32_t *names = malloc((cap + 1) * sizeof *names);
    uint64_t next = r->first;
    int rc = names ? 0 : -ENOMEM;

    while (!rc && (next < r->end || r->nedits)) {
        size_t n = 0;

        while (n < cap && next < r->end)
            names[n++] = (uint32_t)next++;
        rc = mfs_stripe_delete(r->store, r->ino, r->edits, r->nedits, names, n, &r->grown);
        r->nedits = 0;
    }
    free(names);
    return rc;
}

static int run(struct removal *r, int64_t *alloc)
{
    bool scan;
    int rc;

    if (r->end < r->first)
        r->end = r->first;
    rc = mfs_stripe_scan_pays(r->store, r->end - r->first, &scan);
    if (rc)
        return rc;
    if (scan) {
        rc = mfs_stripe_delete(r->store, r->ino, r->edits, r->nedits, NULL, 0, &r->grown);
        if (!rc)
            rc = mfs_stripe_scan(r->store, r->ino, remove_found, r);
    } else {
        rc = remove_named(r);
    }
    if (alloc)
        *alloc += r->grown;
    return rc;
}

int mfs_stripes_trim(struct mfs_store *store, uint64_t ino, uint64_t from, uint64_t data_end,
                     bool first, int64_t *alloc)
{
    uint32_t size = mfs_store_stripe_of(store, ino);
    struct removal r = {.store = store, .ino = ino};
    uint32_t keep = (uint32_t)(from % size);

    if (from >= data_end)
        return 0;
    r.first = from / size + (keep != 0);
    r.end = mfs_geometry_stripes(data_end, size);
    if (!first && r.first == 0)
        r.first = 1;
    if (keep && (first || from >= size))
        add_edit(&r, "mfs_strim", (uint32_t)(from / size), keep, 0);
    return run(&r, alloc);
}

int mfs_stripes_punch(struct mfs_store *store, uint64_t ino, uint64_t off, uint64_t len,
                      uint64_t data_end, int64_t *alloc)
{
    uint32_t size = mfs_store_stripe_of(store, ino);
    struct removal r = {.store = store, .ino = ino};
    struct mfs_piece head;
    uint64_t end;

    if (off >= data_end || !len)
        return 0;
    end = len < data_end - off ? off + len : data_end;
    head = mfs_geometry_piece(off, end - off, size);
    r.first = off / size;
    r.end = end / size;
    if (head.len < size) {
        add_edit(&r, "mfs_szero", head.stripe, head.off, head.len);
        r.first++;
    }
    if (end % size && end / size > head.stripe)
        add_edit(&r, "mfs_szero", (uint32_t)(end / size), 0, (uint32_t)(end % size));
    return run(&r, alloc);
}
