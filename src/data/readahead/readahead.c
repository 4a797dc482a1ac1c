/* One reader's read-ahead: is it reading in sequence, which stripes will it want next, and which
 * bytes of a read are here already.
 *
 * The kernel sends the reads of one program from several threads, so "in sequence" means near the
 * furthest read so far. The window (stripes ahead) starts at one and doubles with each stripe that
 * the reader has got through. Stripes of slow nodes are asked for earlier: bandwidth × delay, in
 * stripes of this reader. Reads that are not in sequence, the first one of a small file, and those
 * of a sequence that leaves most of the file out, go to the stripes directly and ask for just their
 * bytes; whole stripes wait until their link has room. (The kernel reads so itself: of a file that
 * was written in parts that do not end with a page, it has all pages but those.) */
#include "data/readahead/readahead_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/phases.h"
#include "base/threads/thread.h"
#include "cluster/placement.h"
#include "data/stripes/geometry.h"
#include "data/stripes/stripe_io.h"

#define EAGER_BYTES 65536U          /* a first read at 0 of this size is the start of a sequence */
#define WAIT_MAX    (180 * MFS_SEC) /* for a fetch on its way, which the store ends earlier */
#define TURN_MAX    (1 * MFS_SEC)   /* for room on a link: its processes may hang */
#define TURN_LOOK   (30 * MFS_MSEC) /* for it again, while nothing ends */
#define PIECES      32              /* of a read that are looked at in one go */
#define BEHIND      3U              /* stripes behind the furthest read that are kept */
#define TIMES_MOST  4U              /* the window, of small stripes */
#define STEP_OF     4               /* the last step is so much of what counts as the step */
#define DEEP        64U             /* stripes ahead at most, on slow links */
#define SPARSE      8U  /* less than this part of a sequence is read: no stripe is fetched for it */
#define RECENT      16U /* stripes of a sequence that tell whether it is sparse */

static_assert(TURN_LOOK < TURN_MAX && TURN_MAX < WAIT_MAX, "looks come in time");

/* How many reads the kernel has under way does not depend on the file's stripes: of smaller ones
 * than the deployment's some more are fetched ahead, and kept. */
static void set_stripe_size(struct mfs_readahead *ra)
{
    const struct mfs_readahead_pool *pool = ra->pool;
    uint32_t times;

    ra->stripe_size = mfs_store_stripe_of(pool->store, ra->ino);
    ra->near = ra->stripe_size > pool->stripe_size ? ra->stripe_size : pool->stripe_size;
    times = ra->near / ra->stripe_size;
    ra->most = pool->opts.window * (times < TIMES_MOST ? times : TIMES_MOST);
}

int mfs_readahead_create(struct mfs_readahead **out, struct mfs_readahead_pool *pool, uint64_t ino)
{
    struct mfs_readahead *ra = calloc(1, sizeof *ra);

    *out = ra;
    if (!ra)
        return -ENOMEM;
    ra->pool = pool;
    ra->ino = ino;
    set_stripe_size(ra);
    TAILQ_INIT(&ra->fetches);
    return 0;
}

void mfs_fetches_drop(struct mfs_readahead *ra, uint64_t first, uint64_t last)
{
    struct mfs_fetch *f, *next;

    for (f = TAILQ_FIRST(&ra->fetches); f; f = next) {
        next = TAILQ_NEXT(f, in_ra);
        if (f->stripe >= first && f->stripe <= last)
            mfs_fetch_drop(f);
    }
}

void mfs_readahead_destroy(struct mfs_readahead *ra)
{
    if (!ra)
        return;
    pthread_mutex_lock(&ra->pool->lock);
    mfs_fetches_drop(ra, 0, UINT64_MAX);
    pthread_mutex_unlock(&ra->pool->lock);
    free(ra);
}

void mfs_readahead_drop(struct mfs_readahead *ra, uint64_t off, uint64_t len)
{
    uint32_t size = ra->stripe_size;
    uint64_t end = len < UINT64_MAX - off ? off + len : UINT64_MAX;

    if (!len)
        return;
    pthread_mutex_lock(&ra->pool->lock);
    mfs_fetches_drop(ra, off / size, (end - 1) / size);
    pthread_mutex_unlock(&ra->pool->lock);
}

/* --- the sequence: the pool's lock is held --- */

static void stop_sequence(struct mfs_readahead *ra)
{
    struct mfs_fetch *f, *next;

    ra->run = 0;
    ra->window = ra->looked = 0;
    ra->step = ra->stepped_at = 0;
    for (f = TAILQ_FIRST(&ra->fetches); f; f = next) {
        next = TAILQ_NEXT(f, in_ra);
        if (f->queued && !f->straight) /* which a call waits for, maybe another thread's */
            mfs_fetch_drop(f);
    }
}

/* How fast the reader gets on; what it waits for counts, too. */
static void notice_step(struct mfs_readahead *ra, uint64_t stripes)
{
    int64_t now = mfs_clock_mono(), step = (now - ra->stepped_at) / (int64_t)stripes;

    if (ra->stepped_at)
        ra->step += (step - ra->step) / (ra->step ? STEP_OF : 1);
    ra->stepped_at = now;
}

/* What is long ago counts less and less. */
static void forget_beginning(struct mfs_readahead *ra)
{
    uint64_t span = ra->next - ra->begin;

    if (span < RECENT * (uint64_t)ra->stripe_size)
        return;
    ra->begin += span / 2;
    ra->asked /= 2;
}

/* Is so little of the sequence read that most of what is fetched for it would be for nothing? */
static bool is_sparse(const struct mfs_readahead *ra)
{
    uint64_t span = ra->next - ra->begin;

    return span >= 2 * (uint64_t)ra->stripe_size && ra->asked < span / SPARSE;
}

static void notice(struct mfs_readahead *ra, uint64_t off, size_t len)
{
    uint32_t stripe_size = ra->stripe_size, max = ra->most;
    uint64_t end = off + len;

    if (ra->run && off + BEHIND * (uint64_t)ra->near >= ra->next && off <= ra->next + ra->near) {
        ra->run++;
    } else {
        stop_sequence(ra);
        ra->run = 1;
        ra->next = ra->begin = off;
        ra->asked = 0;
    }
    ra->asked += len;
    if (end / stripe_size > ra->next / stripe_size)
        notice_step(ra, end / stripe_size - ra->next / stripe_size);
    if (!ra->window && (ra->run > 1 || (off == 0 && len >= EAGER_BYTES)))
        ra->window = 1;
    else if (end / stripe_size > ra->next / stripe_size)
        ra->window = ra->window * 2 < max ? ra->window * 2 : max;
    if (end > ra->next)
        ra->next = end;
    forget_beginning(ra);
    if (is_sparse(ra))
        ra->window = 0;
}

static struct mfs_fetch *find(struct mfs_readahead *ra, uint32_t stripe)
{
    struct mfs_fetch *f;

    TAILQ_FOREACH(f, &ra->fetches, in_ra)
    {
        if (f->stripe == stripe && !f->straight)
            return f;
    }
    return NULL;
}

/* How much of the stripe there is below the end of the file. */
static uint32_t stripe_len(const struct mfs_readahead *ra, uint32_t stripe, uint64_t size)
{
    uint64_t begin = (uint64_t)stripe * ra->stripe_size;

    if (begin >= size)
        return 0;
    return size - begin < ra->stripe_size ? (uint32_t)(size - begin) : ra->stripe_size;
}

/* Drops what the reader has left far behind: not what others still read or wait for, as the kernel
 * goes on to ask for what comes behind a stripe that is late. */
static void drop_behind(struct mfs_readahead *ra)
{
    struct mfs_fetch *f, *next;

    for (f = TAILQ_FIRST(&ra->fetches); f; f = next) {
        next = TAILQ_NEXT(f, in_ra);
        if ((uint64_t)f->stripe * ra->stripe_size + BEHIND * (uint64_t)ra->near <= ra->next &&
            f->state == MFS_FETCH_READY && f->refs == 1)
            mfs_fetch_drop(f);
    }
}

/* Is stripe n, so far beyond the window, to be asked for already? It is when its link takes so long
 * for it, and for what comes before it there, that it would be late otherwise. What only might be
 * wanted must not take the place of what others have fetched. */
static bool is_due(const struct mfs_readahead *ra, uint32_t n, uint32_t ahead)
{
    const struct mfs_readahead_pool *pool = ra->pool;
    const struct mfs_link_part *parts = pool->links.part;
    uint32_t part = mfs_placement_stripe(ra->ino, n, pool->links.nparts), before = 0;
    const struct mfs_fetch *f;

    if (!mfs_links_is_slow(&pool->links, part) ||
        pool->bytes + ra->stripe_size > pool->opts.max_bytes / 4 * 3)
        return false;
    TAILQ_FOREACH(f, &ra->fetches, in_ra)
    {
        before += f->state <= MFS_FETCH_COMING && parts[f->part].link == parts[part].link;
    }
    return ahead <= mfs_pace_reach(mfs_links_pace(&pool->links, part), before, ra->step, DEEP);
}

/* Has a stripe fetched in the background; false: there is none, or no memory. */
static bool fetch_ahead(struct mfs_readahead *ra, uint32_t n, uint64_t size)
{
    uint32_t len = stripe_len(ra, n, size);
    struct mfs_fetch *f = len ? mfs_fetch_new(ra, n, len) : NULL;

    if (!f)
        return false;
    mfs_fetch_queue(f);
    mfs_fetch_put(f);
    return true;
}

/* Has the stripes fetched that come after the one that holds byte end − 1, of slow links also such
 * as are beyond the window, and drops those that the reader left far behind. */
static void look_ahead(struct mfs_readahead *ra, uint64_t end, uint64_t size)
{
    uint32_t stripe_size = ra->stripe_size;
    uint32_t next = (uint32_t)((end - 1) / stripe_size) + 1;

    drop_behind(ra);
    for (uint32_t n = next; n < next + ra->window; n++)
        if (!find(ra, n) && !fetch_ahead(ra, n, size))
            return;
    if (ra->window < ra->most || next == ra->looked)
        return;
    ra->looked = next;
    for (uint32_t n = next + ra->window; n < next + DEEP && stripe_len(ra, n, size); n++)
        if (!find(ra, n) && is_due(ra, n, n - next + 1) && !fetch_ahead(ra, n, size))
            return;
}

/* --- a read --- */

struct part { /* of a read, within one stripe */
    struct mfs_piece piece;
    char *to;
    struct mfs_fetch *f; /* where it comes from, with a reference; NULL: from the stripe */
    bool here;           /* it was READY when it was found: true at that time */
    bool mine;           /* it was made for this part, … */
    int failed;          /* … which so has its error, -errno, and does not ask again */
};

/* A small read in a sequence is worth the whole stripe, if more of it will be wanted. */
static bool wants_stripe(const struct mfs_readahead *ra, const struct mfs_piece *p, uint64_t size)
{
    return ra->window && p->len <= ra->stripe_size / 2 &&
           p->off + p->len < stripe_len(ra, p->stripe, size);
}

/* All of a stripe is wanted at once, and is a matter of its link: many that are asked for at the
 * same time would be lost where they meet, and sent again. */
static bool takes_turn(const struct mfs_readahead *ra, const struct mfs_piece *p, uint64_t size)
{
    return p->len > ra->stripe_size / 2 && p->len == stripe_len(ra, p->stripe, size);
}

/* A fetch that comes when its link has room: straight to the reader's buffer, or, so that a view
 * can hold it, to one of its own, if others' that were fetched can stay. Fetchers run it, too,
 * unless the reader can at once: `several` it can run but one after the other. */
static struct mfs_fetch *fetch_in_turn(struct mfs_readahead *ra, const struct part *part,
                                       bool straight, bool several)
{
    const struct mfs_piece *p = &part->piece;
    struct mfs_readahead_pool *pool = ra->pool;
    struct mfs_fetch *f = NULL;

    if (straight)
        f = mfs_fetch_new_straight(ra, p->stripe, p->len, part->to);
    else if (pool->bytes + ra->stripe_size <= pool->opts.max_bytes)
        f = mfs_fetch_new(ra, p->stripe, p->len);
    if (!f)
        return NULL;
    f->in_turn = true;
    mfs_links_follow(&pool->links);
    if (several || !mfs_links_front_room(&pool->links, f->part, mfs_clock_mono()))
        mfs_fetch_queue(f);
    return f;
}

/* Finds the source of a part of a read of so many bytes; the pool's lock is held. */
static void find_source(struct mfs_readahead *ra, struct part *part, uint64_t size, size_t whole,
                        bool straight)
{
    struct mfs_fetch *f = find(ra, part->piece.stripe);

    part->f = NULL;
    part->here = false;
    part->mine = false;
    part->failed = 0;
    if (f && part->piece.off + part->piece.len <= f->len) {
        f->refs++;
        part->f = f;
        part->here = f->state == MFS_FETCH_READY;
    } else if (!f && wants_stripe(ra, &part->piece, size)) {
        part->f = mfs_fetch_new(ra, part->piece.stripe, stripe_len(ra, part->piece.stripe, size));
    } else if (!f && takes_turn(ra, &part->piece, size)) {
        part->f = fetch_in_turn(ra, part, straight, whole >= 2 * (size_t)part->piece.len);
        part->mine = part->f != NULL;
    }
}

static int read_direct(struct mfs_readahead *ra, struct part *parts, size_t n)
{
    struct mfs_stripe_get gets[PIECES];
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        if (!parts[i].f)
            gets[count++] = (struct mfs_stripe_get){
                ra->ino, parts[i].piece.stripe, parts[i].piece.off, parts[i].piece.len, parts[i].to,
                0};
    return count ? mfs_stripe_get(ra->pool->store, gets, count) : 0;
}

/* Has its turn come, or been waited for too long? */
static bool may_run(const struct mfs_fetch *f, int64_t since)
{
    int64_t now = mfs_clock_mono();

    return !f->in_turn || now - since >= TURN_MAX ||
           mfs_links_front_room(&f->pool->links, f->part, now);
}

static void wait_for_fetch(struct mfs_readahead_pool *pool, int64_t ns)
{
    mfs_phase_wait(MFS_PHASE_DATA);
    mfs_cond_wait(&pool->ended, &pool->lock, ns);
    mfs_phase_over();
}

/* Waits until the fetch has ended, or runs it; false when it can't be used. The pool's lock is
 * held. */
static bool await(struct mfs_fetch *f)
{
    struct mfs_readahead_pool *pool = f->pool;
    int64_t since = mfs_clock_mono();

    while (f->ra && (f->state == MFS_FETCH_WAITING || f->state == MFS_FETCH_COMING)) {
        int64_t left = since + WAIT_MAX - mfs_clock_mono();

        if (f->state == MFS_FETCH_WAITING && may_run(f, since))
            mfs_fetch_run(f);
        else if (f->state == MFS_FETCH_WAITING)
            wait_for_fetch(pool, TURN_LOOK);
        else if (left <= 0)
            return false;
        else
            wait_for_fetch(pool, left);
    }
    return f->ra && f->state == MFS_FETCH_READY;
}

/* The reader goes on, with or without what was fetched: nothing may come to its buffer any more.
 * The store bounds how long that takes. The pool's lock is held. */
static void end_straight(struct mfs_fetch *f)
{
    if (!f->straight)
        return;
    while (f->state == MFS_FETCH_COMING)
        wait_for_fetch(f->pool, WAIT_MAX);
    mfs_fetch_drop(f);
}

/* Has the view hold bytes of a fetch, with the caller's reference. The last place is for what is
 * copied once there is no other: from there on all of it, which lies in one piece. */
static bool view_hold(struct mfs_view *view, char *p, size_t len, struct mfs_fetch *f)
{
    if (!view || view->n + 1 >= (int)MFS_VIEW_MAX)
        return false;
    view->iov[view->n++] = (struct iovec){p, len};
    view->held[view->nheld++] = f;
    return true;
}

void mfs_view_copied(struct mfs_view *view, char *p, size_t len)
{
    struct iovec *last = view && view->n ? &view->iov[view->n - 1] : NULL;

    if (last && (char *)last->iov_base + last->iov_len == p)
        last->iov_len += len;
    else if (view)
        view->iov[view->n++] = (struct iovec){p, len};
}

void mfs_view_release(struct mfs_view *view)
{
    struct mfs_readahead_pool *pool = view->nheld ? view->held[0]->pool : NULL;

    view->n = 0;
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    while (view->nheld)
        mfs_fetch_put(view->held[--view->nheld]);
    pthread_mutex_unlock(&pool->lock);
}

/* Takes a part from its fetch, whose reference goes; false when that can't be. */
static bool take_part(struct mfs_readahead *ra, struct part *part, struct mfs_view *view)
{
    struct mfs_readahead_pool *pool = ra->pool;
    struct mfs_fetch *f = part->f;
    bool good, held = false;

    pthread_mutex_lock(&pool->lock);
    good = part->here || await(f);
    end_straight(f);
    if (!good && part->mine)
        part->failed = f->rc;
    pthread_mutex_unlock(&pool->lock);
    if (good && !f->straight)
        held = view_hold(view, f->mem + part->piece.off, part->piece.len, f);
    if (good && !held && !f->straight) {
        memcpy(part->to, f->mem + part->piece.off, part->piece.len);
        mfs_view_copied(view, part->to, part->piece.len);
    }
    pthread_mutex_lock(&pool->lock);
    f->served += good ? part->piece.len : 0;
    if (f->served >= f->len)
        mfs_fetch_drop(f);
    if (!held)
        mfs_fetch_put(f);
    pthread_mutex_unlock(&pool->lock);
    part->f = NULL;
    return good;
}

/* The read has failed: no caller waits for the part any more, nor does a thread that would run it
 * when it is not queued. */
static void leave_part(struct mfs_readahead *ra, struct part *part)
{
    pthread_mutex_lock(&ra->pool->lock);
    if (part->f->state == MFS_FETCH_WAITING && (part->mine || !part->f->queued))
        mfs_fetch_drop(part->f);
    end_straight(part->f);
    mfs_fetch_put(part->f);
    pthread_mutex_unlock(&ra->pool->lock);
    part->f = NULL;
}

/* What is not here is asked for while the rest arrives. */
static int read_parts(struct mfs_readahead *ra, struct part *parts, size_t n, struct mfs_view *view)
{
    int rc = read_direct(ra, parts, n);

    for (size_t i = 0; i < n; i++) {
        bool fetched = parts[i].f != NULL;

        if (fetched && rc) {
            leave_part(ra, &parts[i]);
            continue;
        }
        if (fetched && take_part(ra, &parts[i], view))
            continue;
        if (fetched)
            rc = parts[i].failed ? parts[i].failed : read_direct(ra, &parts[i], 1);
        mfs_view_copied(view, parts[i].to, parts[i].piece.len);
    }
    return rc;
}

int mfs_readahead_read(struct mfs_readahead *ra, uint64_t off, size_t len, uint64_t size, void *buf,
                       struct mfs_view *view)
{
    struct mfs_readahead_pool *pool = ra->pool;
    size_t whole = len;
    char *to = buf;
    int rc = 0;

    if (!len)
        return 0;
    pthread_mutex_lock(&pool->lock);
    notice(ra, off, len);
    pthread_mutex_unlock(&pool->lock);
    while (len && !rc) {
        struct part parts[PIECES];
        size_t n = 0;

        pthread_mutex_lock(&pool->lock);
        for (; len && n < PIECES; n++) {
            parts[n].piece = mfs_geometry_piece(off, len, ra->stripe_size);
            parts[n].to = to;
            find_source(ra, &parts[n], size, whole, !view);
            off += parts[n].piece.len;
            to += parts[n].piece.len;
            len -= parts[n].piece.len;
        }
        if (ra->window && (view || !len)) /* what is left comes straight */
            look_ahead(ra, off, size);
        pthread_mutex_unlock(&pool->lock);
        rc = read_parts(ra, parts, n, view);
    }
    if (rc && view)
        mfs_view_release(view);
    return rc;
}
