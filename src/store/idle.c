/* Connections that wait for the next call, by partition. A client has them to the partitions that
 * it uses now, not to all that it ever used: one that has waited for opts.idle_time is closed, and
 * of more than opts.idle_most the oldest ones of the partitions in turn. So a client of a
 * deployment with more partitions than a process may have descriptors goes on. */
#include "store/internal.h"

#include <assert.h>

#define LOOKS 4 /* for those that are due, in the time after which they are */

struct mfs_channel *mfs_idle_pop(struct mfs_store *store, struct mfs_part *part)
{
    struct mfs_channel *conn = part->idle;

    if (conn) {
        part->idle = conn->next;
        assert(part->nidle > 0 && store->nidle > 0);
        part->nidle--;
        store->nidle--;
    }
    return conn;
}

struct mfs_channel *mfs_idle_take(struct mfs_store *store, struct mfs_part *part)
{
    struct mfs_channel *all = part->idle;

    assert(store->nidle >= part->nidle);
    store->nidle -= part->nidle;
    part->idle = NULL;
    part->nidle = 0;
    return all;
}

/* Moves those that the partition has not used since `since` to the list: the end of its own. */
static void take_older(struct mfs_store *store, struct mfs_part *part, int64_t since,
                       struct mfs_channel **list)
{
    struct mfs_channel **at = &part->idle;

    while (*at && (*at)->idle_since >= since)
        at = &(*at)->next;
    while (*at) {
        struct mfs_channel *conn = *at;

        *at = conn->next;
        conn->next = *list;
        *list = conn;
        part->nidle--;
        store->nidle--;
    }
}

/* The oldest one of the next partition that has any: not of all, which it would take a search to
 * find. */
struct mfs_channel *mfs_idle_give_up(struct mfs_store *store)
{
    struct mfs_channel **at, *conn;
    struct mfs_part *part;

    if (store->nidle == 0 || store->nparts == 0)
        return NULL;
    do {
        store->hand = (store->hand + 1) % store->nparts;
        part = &store->part[store->hand];
    } while (!part->idle);
    at = &part->idle;
    while ((*at)->next)
        at = &(*at)->next;
    conn = *at;
    *at = NULL;
    part->nidle--;
    store->nidle--;
    return conn;
}

struct mfs_channel *mfs_idle_push(struct mfs_store *store, struct mfs_part *part,
                                  struct mfs_channel *conn, int64_t now)
{
    struct mfs_channel *drop = NULL;

    if (now >= store->idle_look) {
        store->idle_look = now + store->opts.idle_time / LOOKS;
        for (uint32_t i = 0; i < store->nparts; i++)
            take_older(store, &store->part[i], now - store->opts.idle_time, &drop);
    }
    if (store->nidle >= store->opts.idle_most) {
        struct mfs_channel *oldest = mfs_idle_give_up(store);

        oldest->next = drop;
        drop = oldest;
    }
    conn->idle_since = now;
    conn->next = part->idle;
    part->idle = conn;
    part->nidle++;
    store->nidle++;
    return drop;
}
