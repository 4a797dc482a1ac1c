#include "data/workers/links.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/store.h"

#define PART_STRIPES 2U            /* on the way to one process: it is busy with one */
#define STUCK_NEW    (5 * MFS_SEC) /* without an answer, where nothing is known of the link; */
#define STUCK        (1 * MFS_SEC) /* … else, and … */
#define STUCK_TIMES  4.0           /* … as many times what is usual */
#define WIDTH_TIMES  4U            /* from the least width to the most */
#define SLOW_TIMES   2.0           /* the median, is slow */
#define MEDIAN_STEP  1.05
#define FAST         (5 * MFS_MSEC) /* a stripe: then it is processors that are busy, not links */
#define RENEW        (20 * MFS_SEC)
/* Stripes on one link: one that is carried and one that follows at once. More from the start would
 * have the first one from a slow node come as late as the last of them. */
#define LINK_LOWEST 2U
#define LINK_MOST   8U
#define LOOK_EVERY  (50 * MFS_MSEC) /* for partitions that are stuck */

static_assert(LOOK_EVERY < STUCK && STUCK < STUCK_NEW && STUCK_NEW < RENEW, "found in time");
static_assert(LINK_LOWEST <= LINK_MOST, "a range");

struct part_at_node {
    uint32_t node, part;
};

static int by_node(const void *a, const void *b)
{
    const struct part_at_node *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

static struct part_at_node *sorted_by_node(struct mfs_links *links)
{
    struct part_at_node *places = calloc(links->nparts, sizeof *places);
    uint32_t *nodes = calloc(links->nparts, sizeof *nodes);

    if (places && nodes) {
        links->epoch = mfs_store_nodes(links->store, nodes);
        for (uint32_t i = 0; i < links->nparts; i++)
            places[i] = (struct part_at_node){nodes[i], i};
        qsort(places, links->nparts, sizeof *places, by_node);
    } else {
        free(places);
        places = NULL;
    }
    free(nodes);
    return places;
}

static void settle_link(struct mfs_link *link, uint32_t node)
{
    link->in_flight = 0;
    if (link->node == node)
        return;
    link->node = node;
    mfs_pace_init(&link->pace, LINK_LOWEST, LINK_LOWEST, LINK_MOST);
}

/* Without memory all stays as it was, until the next look. */
static int regroup(struct mfs_links *links)
{
    struct part_at_node *places = sorted_by_node(links);
    uint32_t first = 0;

    if (!places)
        return -ENOMEM;
    for (uint32_t i = 0; i < links->nparts; i++) {
        struct mfs_link_part *p = &links->part[places[i].part];

        if (i == 0 || places[i].node != places[i - 1].node) {
            first = places[i].part;
            settle_link(&links->link[first], places[i].node);
        }
        p->link = first;
        links->link[first].in_flight += p->stuck ? 0 : p->in_flight;
    }
    free(places);
    return 0;
}

int mfs_links_init(struct mfs_links *links, struct mfs_store *store, uint32_t width)
{
    *links = (struct mfs_links){.store = store,
                                .nparts = mfs_store_nparts(store),
                                .stripe_size = mfs_store_stripe_size(store)};
    links->part = calloc(links->nparts, sizeof *links->part);
    links->link = calloc(links->nparts, sizeof *links->link);
    if (!links->part || !links->link)
        return -ENOMEM;
    for (uint32_t i = 0; i < links->nparts; i++)
        links->link[i].node = UINT32_MAX;
    mfs_pace_init(&links->own, width, width, width * WIDTH_TIMES);
    return regroup(links);
}

void mfs_links_fini(struct mfs_links *links)
{
    free(links->part);
    free(links->link);
}

void mfs_links_follow(struct mfs_links *links)
{
    if (mfs_store_epoch(links->store) != links->epoch)
        (void)regroup(links);
}

static struct mfs_link *link_of(const struct mfs_links *links, uint32_t part)
{
    return &links->link[links->part[part].link];
}

void mfs_links_begin(struct mfs_links *links, uint32_t part, size_t bytes, int64_t now)
{
    struct mfs_link_part *p = &links->part[part];

    if (!p->in_flight)
        p->since = now;
    p->in_flight += bytes;
    links->in_flight += bytes;
    if (!p->stuck)
        link_of(links, part)->in_flight += bytes;
}

void mfs_links_end(struct mfs_links *links, uint32_t part, size_t bytes, int64_t now)
{
    struct mfs_link_part *p = &links->part[part];

    if (p->stuck)
        link_of(links, part)->in_flight += p->in_flight;
    p->stuck = false;
    p->since = now;
    assert(bytes <= p->in_flight && p->in_flight <= links->in_flight);
    p->in_flight -= bytes;
    links->in_flight -= bytes;
    link_of(links, part)->in_flight -= bytes;
}

bool mfs_links_part_room(const struct mfs_links *links, uint32_t part)
{
    return links->part[part].in_flight < PART_STRIPES * (size_t)links->stripe_size;
}

static bool has_room(const struct mfs_links *links, const struct mfs_link *link)
{
    return link->in_flight < mfs_pace_window(&link->pace) * (size_t)links->stripe_size;
}

/* Takes what is stuck out of the link's account. */
static void find_stuck(struct mfs_links *links, struct mfs_link *link, int64_t now)
{
    int64_t limit =
        link->pace.usual > 0 ? STUCK + (int64_t)(STUCK_TIMES * link->pace.usual) : STUCK_NEW;

    link->looked_at = now;
    for (uint32_t i = 0; i < links->nparts; i++) {
        struct mfs_link_part *p = &links->part[i];

        if (link_of(links, i) != link || p->stuck || !p->in_flight || now - p->since < limit)
            continue;
        p->stuck = true;
        link->in_flight -= p->in_flight;
    }
}

bool mfs_links_room(struct mfs_links *links, uint32_t part, int64_t now)
{
    struct mfs_link *link = link_of(links, part);

    if (!mfs_links_part_room(links, part))
        return false;
    if (!has_room(links, link) && now - link->looked_at >= LOOK_EVERY)
        find_stuck(links, link, now);
    return has_room(links, link);
}

bool mfs_links_front_room(struct mfs_links *links, uint32_t part, int64_t now)
{
    double usual = mfs_links_pace(links, part)->usual;

    return (usual > 0 && usual < FAST) || mfs_links_room(links, part, now);
}

/* The least times are found anew with little on the way, or each time would pass for the least that
 * can be had with what was on the way before. */
static void renew(struct mfs_links *links, int64_t now)
{
    for (uint32_t i = 0; i < links->nparts; i++)
        mfs_pace_renew(&links->link[i].pace);
    links->own.window = links->own.lowest;
    links->renewed_at = now;
}

/* Half of all stripes take longer, as far as the last ones tell. A mean would be what the few take
 * that go to slow nodes. */
static void learn_median(struct mfs_links *links, double ns)
{
    if (!(links->median > 0))
        links->median = ns;
    links->median *= ns > links->median ? MEDIAN_STEP : 1 / MEDIAN_STEP;
}

/* Where a stripe takes next to nothing no link is in its way: then nothing need be held back for
 * one, and more at once would only keep processors busy. */
void mfs_links_took(struct mfs_links *links, uint32_t part, int64_t ns, int64_t now)
{
    struct mfs_link *link = link_of(links, part);
    double beside = (double)link->in_flight / links->stripe_size;
    double all = (double)links->in_flight / links->stripe_size, least;

    if (now - links->renewed_at > RENEW)
        renew(links, now);
    learn_median(links, (double)ns);
    least = (double)mfs_pace_least(&link->pace, ns);
    mfs_pace_took(&link->pace, beside, ns, ns < FAST ? (double)ns : least);
    mfs_pace_took(&links->own, all, ns, ns < FAST ? 0 : least * (beside > 1 ? beside : 1));
}

bool mfs_links_is_slow(const struct mfs_links *links, uint32_t part)
{
    double usual = mfs_links_pace(links, part)->usual;

    return !(usual > 0) || (usual > FAST && usual > SLOW_TIMES * links->median);
}
