/* Contact with the deployment: what this client knows under leases, what it has open, and what the
 * kernel keeps of both, is true only as long as other clients' notices of changes reach it. Three
 * things can end that without a notice:
 *
 *  - a replica takes over (cluster/trust.h): it has all that was answered as done, but perhaps not
 *    the last notes of which client relies on what;
 *  - this client has had no contact with cm for a while: clients that changed something may not
 * have waited for it;
 *  - this client was silent for so long, as it was stopped, say, that others take its session for
 *    dead.
 *
 * All are found by the clock, in each place where something is relied on: a client that was stopped
 * answers the calls that wait for it before any of its threads has had the time to look. After that
 * nothing counts until the notices of its new session are subscribed to. */
#include "meta/cache/contents.h"
#include "meta/internal.h"

#include <stdlib.h>

#include "base/threads/gate.h"
#include "cluster/trust.h"
#include "meta/coherence/leases.h"
#include "meta/session/session.h"

void mfs_contact_check(struct mfs_meta *meta)
{
    uint64_t now = mfs_store_resets(meta->store), failovers = mfs_store_failovers(meta->store);

    if (atomic_load(&meta->forgotten.resets) == now)
        return;
    mfs_leases_forget(meta); /* before any thread may find that it has been */
    if (atomic_load(&meta->forgotten.failovers) != failovers) {
        mfs_contents_clear(meta->contents);
        if (meta->opts.replaced)
            meta->opts.replaced(meta->opts.arg);
        atomic_store(&meta->forgotten.failovers, failovers);
    }
    atomic_store(&meta->forgotten.resets, now);
}

bool mfs_contact_leases(struct mfs_meta *meta, int64_t within)
{
    bool in = mfs_session_gets_notices(meta) && mfs_store_in_contact(meta->store, within);

    mfs_contact_check(meta); /* after that, see mfs_store_resets */
    return in;
}

/* The kernel counts from when it gets the answer, which may be long after its session was. */
bool mfs_contact_grants(struct mfs_meta *meta, int64_t asked)
{
    return mfs_contact_leases(meta, MFS_TRUST_KEPT) &&
           mfs_clock_mono() - asked < meta->opts.session_ttl / 4;
}

/* Until the kernel has dropped what it keeps, what is open here is as it was before. */
bool mfs_meta_in_contact(struct mfs_meta *meta)
{
    return mfs_session_gets_notices(meta) && mfs_store_in_contact(meta->store, MFS_TRUST) &&
           atomic_load(&meta->forgotten.resets_reported) == mfs_store_resets(meta->store);
}

/* All that the kernel keeps, being dropped. */
struct drop {
    struct mfs_meta *meta;
    atomic_uint left; /* of names and content */
    uint64_t resets;  /* that it is for */
    struct mfs_gate *gate;
};

static void dropped(void *arg)
{
    struct drop *d = arg;
    struct mfs_meta *meta = d->meta;
    uint64_t told = atomic_load(&meta->forgotten.resets_reported);

    if (atomic_fetch_sub(&d->left, 1) > 1)
        return;
    while (told < d->resets &&
           !atomic_compare_exchange_weak(&meta->forgotten.resets_reported, &told, d->resets))
        ;
    if (d->gate)
        mfs_gate_open(d->gate);
    atomic_fetch_sub(&meta->forgotten.drops, 1);
    free(d);
}

/* Takes the opener's use of the gate, which may be NULL. */
static void drop_kernel_copies(struct mfs_meta *meta, struct mfs_gate *gate)
{
    struct drop *d = malloc(sizeof *d);

    if (!d) {
        if (gate)
            mfs_gate_open(gate);
        return; /* the next tick tries again */
    }
    *d = (struct drop){meta, 2, mfs_store_resets(meta->store), gate};
    mfs_contact_check(meta);
    atomic_fetch_add(&meta->forgotten.drops, 1);
    if (!meta->opts.revoked || meta->opts.revoked(meta->opts.arg, 0, true, false, dropped, d))
        dropped(d);
    if (meta->opts.changed)
        meta->opts.changed(meta->opts.arg, 0, 0, dropped, d);
    else
        dropped(d);
}

/* The kernel does not ask whether it may still show what it keeps. While this client may miss a
 * failover the kernel is to keep nothing for longer than until the next tick; one more time when
 * that is over, as answers may have been on their way. A thread of its own: one that waits for
 * partitions may wait long just then. In contact it rests until the contact may be over, unless it
 * is told of a new table, a lapse or a session without notices. */
void mfs_contact_tick(void *arg)
{
    struct mfs_meta *meta = arg;
    int64_t left = mfs_store_contact_left(meta->store, MFS_TRUST_KEPT);
    bool out = atomic_load(&meta->forgotten.resets_reported) != mfs_store_resets(meta->store) ||
               left <= 0 || meta->unsubscribed;

    if ((out || meta->was_out) && !atomic_load(&meta->forgotten.drops)) {
        drop_kernel_copies(meta, NULL);
        meta->was_out = out;
    }
    if (out || meta->was_out)
        mfs_ticker_work(&meta->contact_ticker);
    else if (left < INT64_MAX)
        mfs_ticker_again(&meta->contact_ticker, left);
}

/* A node's partitions fail over one right after the other: when the first of these drops was not
 * done in time the next ones are not waited for, as they wait for the same. */
void mfs_meta_failed_over(struct mfs_meta *meta, int64_t most)
{
    struct mfs_gate *gate;

    if (atomic_load(&meta->forgotten.resets_reported) == mfs_store_resets(meta->store))
        return;
    gate = meta->forgotten.stuck && atomic_load(&meta->forgotten.drops) ? NULL : mfs_gate_create();
    drop_kernel_copies(meta, gate);
    if (gate)
        meta->forgotten.stuck = !mfs_gate_wait(gate, most);
}
