/* The bytes in flight to and from each partition and each node. Partitions of one node share
 * its link, so how much may be in flight is bounded per node, by what its link carries (pace.h),
 * and per partition, as each is one process.
 *
 * How much may be in flight to all of them together is a matter of this node's own link: when a
 * stripe takes longer than those that share its link with it explain, it waits for that. More on
 * the way would only take from those that go to slow nodes what their links could carry.
 *
 * A partition from which nothing has come back for much longer than is usual is stuck: it hangs, or
 * is being moved. Its bytes count for itself alone then, so that it does not keep the others of
 * its node from their link.
 *
 * Follows the table as partitions move. The caller's lock guards all of it. Internal to src/data.
 */
#ifndef MFS_DATA_WORKERS_LINKS_H
#define MFS_DATA_WORKERS_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/workers/pace.h"

struct mfs_store;

struct mfs_link {
    uint32_t node;
    size_t in_flight;  /* bytes of those of its partitions that are not stuck */
    int64_t looked_at; /* for partitions that are */
    struct mfs_pace pace;
};

struct mfs_link_part {
    uint32_t link;    /* index: the first partition of the same node */
    size_t in_flight; /* bytes */
    int64_t since;    /* something has come back, or nothing was on the way */
    bool stuck;
};

struct mfs_links {
    struct mfs_store *store;
    uint64_t epoch; /* of the table that this follows */
    uint32_t nparts, stripe_size;
    struct mfs_link_part *part;
    struct mfs_link *link; /* nparts */
    size_t in_flight;      /* to all of them */
    struct mfs_pace own;   /* of this node's link */
    double median;         /* ns that a stripe takes */
    int64_t renewed_at;    /* when all paces were */
};

/* `width`: stripes on the way to all together, at least; four times as many at most. 0 or -ENOMEM.
 */
int mfs_links_init(struct mfs_links *links, struct mfs_store *store, uint32_t width);
void mfs_links_fini(struct mfs_links *links);

/* Looks whether there is a new table. */
void mfs_links_follow(struct mfs_links *links);

/* Bytes to or from the partition are in flight, or no more. */
void mfs_links_begin(struct mfs_links *links, uint32_t part, size_t bytes, int64_t now);
void mfs_links_end(struct mfs_links *links, uint32_t part, size_t bytes, int64_t now);

/* May the partition itself have more in flight? And does its link carry more? */
bool mfs_links_part_room(const struct mfs_links *links, uint32_t part);
bool mfs_links_room(struct mfs_links *links, uint32_t part, int64_t now);

/* May a stripe that is waited for be asked for? Also where stripes take next to nothing: no link is
 * in the way then. */
bool mfs_links_front_room(struct mfs_links *links, uint32_t part, int64_t now);

/* Stripes that may be on the way to all together. */
static inline uint32_t mfs_links_width(const struct mfs_links *links)
{
    return mfs_pace_window(&links->own);
}

static inline const struct mfs_pace *mfs_links_pace(const struct mfs_links *links, uint32_t part)
{
    return &links->link[links->part[part].link].pace;
}

/* Does its link take much longer than others for the same, or is nothing known of it? Then it
 * should never have to wait for what it is to carry. */
bool mfs_links_is_slow(const struct mfs_links *links, uint32_t part);

/* A stripe of the partition took so many ns; called before it lands. */
void mfs_links_took(struct mfs_links *links, uint32_t part, int64_t ns, int64_t now);

#endif
