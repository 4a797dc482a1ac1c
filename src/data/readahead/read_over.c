/* What a reader sees of a file that this mount may write as well: what is content of the stripes,
 * zeros elsewhere, and dirty bytes over it. */
#include <string.h>

#include "data/readahead/readahead_impl.h"
#include "data/writeback/writeback.h"

#define TRIES 4 /* of a read that a writer gets ahead of */

/* Drops what was fetched of stripes that dirty bytes have left for since; returns the mark. */
static uint64_t catch_up(struct mfs_readahead *ra, struct mfs_dirty *d)
{
    uint32_t stripes[MFS_DIRTY_LEFT_MAX];
    uint64_t mark;
    size_t n;

    pthread_mutex_lock(&ra->pool->lock);
    n = mfs_dirty_left(d, ra->mark, stripes, &mark);
    if (n == SIZE_MAX)
        mfs_fetches_drop(ra, 0, UINT64_MAX);
    else
        for (size_t i = 0; i < n; i++)
            mfs_fetches_drop(ra, stripes[i], stripes[i]);
    ra->mark = mark;
    pthread_mutex_unlock(&ra->pool->lock);
    return mark;
}

static bool overtaken(struct mfs_readahead *ra, struct mfs_dirty *d, uint64_t mark, uint64_t off,
                      size_t len)
{
    uint32_t stripes[MFS_DIRTY_LEFT_MAX], size = ra->stripe_size;
    uint64_t now;
    size_t n = mfs_dirty_left(d, mark, stripes, &now);

    if (n == SIZE_MAX)
        return true;
    for (size_t i = 0; i < n; i++)
        if (stripes[i] >= off / size && stripes[i] <= (off + len - 1) / size)
            return true;
    return false;
}

/* What is stored by this client is asked for first: what is committed in between is in the
 * metadata. */
static int find_content(struct mfs_dirty *d, mfs_content_fn *fn, void *arg, uint64_t off,
                        size_t len, struct mfs_ranges *content)
{
    struct mfs_ranges stored;
    int rc = 0;

    if (!fn)
        return mfs_ranges_add(content, 0, len);
    mfs_ranges_init(&stored);
    if (d)
        rc = mfs_dirty_stored(d, off, len, &stored);
    if (!rc)
        rc = fn(arg, off, len, content);
    for (uint32_t i = 0; i < stored.n && !rc; i++)
        rc = mfs_ranges_add(content, stored.v[i].lo, stored.v[i].hi);
    mfs_ranges_fini(&stored);
    return rc;
}

static void blank(const struct mfs_ranges *content, size_t len, char *buf)
{
    size_t at = 0;

    for (uint32_t i = 0; i < content->n; i++) {
        memset(buf + at, 0, content->v[i].lo - at);
        at = content->v[i].hi;
    }
    memset(buf + at, 0, len - at);
}

/* One attempt. What is not as the stripes have it can only be put right in a copy. */
static int read_content(struct mfs_readahead *ra, struct mfs_dirty *d,
                        const struct mfs_ranges *content, uint64_t off, size_t len, uint64_t size,
                        void *buf, struct mfs_view *view)
{
    bool whole = mfs_ranges_covers(content, 0, len);
    struct mfs_view *where = whole && !(d && mfs_dirty_any(d)) ? view : NULL;
    int rc = content->n ? mfs_readahead_read(ra, off, len, size, buf, where) : 0;

    if (rc || where)
        return rc;
    if (!whole)
        blank(content, len, buf);
    if (d)
        mfs_dirty_overlay(d, off, len, buf);
    mfs_view_copied(view, buf, len);
    return 0;
}

int mfs_readahead_read_over(struct mfs_readahead *ra, struct mfs_dirty *d, mfs_content_fn *fn,
                            void *arg, uint64_t off, size_t len, uint64_t size, void *buf,
                            struct mfs_view *view)
{
    bool again = true;
    int rc = 0;

    for (unsigned i = 0; len && again && i <= TRIES && !rc; i++) {
        struct mfs_ranges content;
        uint64_t mark = 0;

        if (view)
            mfs_view_release(view);
        /* With everything from before this call stored, whatever is read is new enough. */
        if (d && i == TRIES)
            mfs_dirty_store_range(d, off, len);
        if (d)
            mark = catch_up(ra, d);
        mfs_ranges_init(&content);
        rc = find_content(d, fn, arg, off, len, &content);
        if (!rc)
            rc = read_content(ra, d, &content, off, len, size, buf, view);
        mfs_ranges_fini(&content);
        again = d && !rc && overtaken(ra, d, mark, off, len);
    }
    return rc;
}
