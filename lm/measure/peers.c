/* Which node waits for which; see the header. A look lists the connections to partitions (`door`),
 * each under the node at its other end (`peer`); samples between two looks ask for the active ones
 * whether they wait. A connection is known from one look to the next by its cookie. */
#include "lm/measure/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

#define QUEUE_US    200   /* a round trip that is so much longer may be the processors' doing */
#define ACTIVE      32768 /* bytes from one look to the next that make a connection worth asking */
#define TWO         2     /* segments that a receiver acknowledges together */
#define FEW_SAMPLES 5     /* with less, TCP's own count of busy time has to do */

/* The ends at which partitions listen, sorted; `peer` is an index of peer[], OWN for this node's.
 */
struct door {
    struct mfs_sock_end end;
    uint32_t peer;
};

#define OWN UINT32_MAX

struct peer {
    uint32_t node;
    struct in6_addr address;
    unsigned samples, waits; /* since the last look; of all samples, in how many it was waited */
    unsigned asked;          /* in the present sample */
    bool hit;                /* likewise */
    bool waits_now;          /* in the present look */
    double carried, longest; /* in the present look: bytes; of the time, by TCP's count */
    struct mfs_report_peer report;
    bool known; /* `report` is something */
};

struct sock {
    struct mfs_sock last; /* by the last look, or a later sample */
    uint64_t acked;       /* by the last look */
    uint64_t busy_us, window_us;
    uint32_t peer;
    bool active, waits;
    bool asked; /* in the present sample */
};

struct mfs_peers {
    struct peer *peer;
    size_t npeers;
    struct door *door;
    size_t ndoors;
    struct sock *sock; /* of the last look, sorted by cookie */
    size_t nsocks;
    struct sock *fresh; /* of the present one */
    size_t nfresh;
    int64_t looked, now;
};

struct mfs_peers *mfs_peers_create(void)
{
    struct mfs_peers *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->sock = calloc(MFS_PEERS_SOCKETS_MAX, sizeof *p->sock);
    p->fresh = calloc(MFS_PEERS_SOCKETS_MAX, sizeof *p->fresh);
    if (!p->sock || !p->fresh) {
        mfs_peers_destroy(p);
        return NULL;
    }
    return p;
}

void mfs_peers_destroy(struct mfs_peers *p)
{
    if (!p)
        return;
    free(p->peer);
    free(p->door);
    free(p->sock);
    free(p->fresh);
    free(p);
}

/* ---- whose connections count ----------------------------------------------------------------- */

static int compare_ends(const struct mfs_sock_end *a, const struct mfs_sock_end *b)
{
    int c = memcmp(&a->address, &b->address, sizeof a->address);

    return c ? c : (a->port > b->port) - (a->port < b->port);
}

static int compare_doors(const void *a, const void *b)
{
    return compare_ends(&((const struct door *)a)->end, &((const struct door *)b)->end);
}

static struct peer *find_peer(const struct mfs_peers *p, uint32_t node)
{
    for (size_t i = 0; i < p->npeers; i++) {
        if (p->peer[i].node == node)
            return &p->peer[i];
    }
    return NULL;
}

static struct peer *peer_at(const struct mfs_peers *p, const struct in6_addr *address)
{
    for (size_t i = 0; i < p->npeers; i++) {
        if (!memcmp(&p->peer[i].address, address, sizeof *address))
            return &p->peer[i];
    }
    return NULL;
}

/* peer[] has room for one more. */
static struct peer *make_peer(struct mfs_peers *p, const struct mfs_partition *part,
                              bool (*near)(const char *address))
{
    struct peer *peer = &p->peer[p->npeers];

    *peer = (struct peer){.node = part->node, .report.node = part->node};
    if (mfs_sock_address(part->host, &peer->address) || (near && near(part->host)))
        return NULL;
    p->npeers++;
    return peer;
}

static void add_partition(struct mfs_peers *p, const struct mfs_partition *part, uint32_t self,
                          bool (*near)(const char *address))
{
    struct door *d = &p->door[p->ndoors];
    struct peer *peer = find_peer(p, part->node);

    if (!part->port || mfs_sock_address(part->host, &d->end.address))
        return;
    if (!peer && part->node != self)
        peer = make_peer(p, part, near);
    if (!peer && part->node != self)
        return;
    d->end.port = part->port;
    d->peer = part->node == self ? OWN : (uint32_t)(peer - p->peer);
    p->ndoors++;
}

/* Which socket is whose is found anew at the next look; what nodes that stay were told to be
 * remains. */
static void carry_over(struct mfs_peers *p, const struct mfs_peers *old)
{
    for (size_t i = 0; i < p->npeers; i++) {
        const struct peer *was = find_peer(old, p->peer[i].node);

        if (was && !memcmp(&was->address, &p->peer[i].address, sizeof was->address))
            p->peer[i] = *was;
    }
    for (size_t i = 0; i < p->nsocks; i++) {
        const struct peer *peer = peer_at(p, &p->sock[i].last.remote.address);

        p->sock[i].active = p->sock[i].active && peer;
        p->sock[i].peer = peer ? (uint32_t)(peer - p->peer) : 0;
    }
}

int mfs_peers_know(struct mfs_peers *p, const struct mfs_table *t, uint32_t self,
                   bool (*near)(const char *address))
{
    struct mfs_peers old = *p;

    p->peer = calloc(t->nparts + 1, sizeof *p->peer);
    p->door = calloc(t->nparts + 1, sizeof *p->door);
    p->npeers = p->ndoors = 0;
    if (!p->peer || !p->door) {
        free(p->peer);
        free(p->door);
        *p = old;
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < t->nparts; i++)
        add_partition(p, &t->part[i], self, near);
    qsort(p->door, p->ndoors, sizeof *p->door, compare_doors);
    carry_over(p, &old);
    free(old.peer);
    free(old.door);
    return 0;
}

bool mfs_peers_any(const struct mfs_peers *p)
{
    return p->npeers > 0;
}

bool mfs_peers_family(const struct mfs_peers *p, int family)
{
    for (size_t i = 0; i < p->npeers; i++) {
        if (IN6_IS_ADDR_V4MAPPED(&p->peer[i].address) == (family == AF_INET))
            return true;
    }
    return false;
}

static const struct door *find_door(const struct mfs_peers *p, const struct mfs_sock_end *end)
{
    struct door key = {.end = *end};

    return bsearch(&key, p->door, p->ndoors, sizeof *p->door, compare_doors);
}

/* A client here and a partition there, or the other way round. */
static struct peer *peer_of(const struct mfs_peers *p, const struct mfs_sock *s)
{
    const struct door *there = find_door(p, &s->remote), *here = find_door(p, &s->local);

    if (there && there->peer != OWN)
        return &p->peer[there->peer];
    return here && here->peer == OWN ? peer_at(p, &s->remote.address) : NULL;
}

/* ---- looks ----------------------------------------------------------------------------------- */

static uint64_t grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

static bool waits_for_network(const struct mfs_sock *before, const struct mfs_sock *now)
{
    uint64_t busy = grown(before->busy_us, now->busy_us);

    if (now->queued <= TWO * now->segment)
        return false;
    if (TWO * grown(before->window_us, now->window_us) > busy)
        return false;
    return now->unsent || now->repeating || now->rtt_us > 2ULL * now->min_us + QUEUE_US;
}

static int compare_socks(const void *a, const void *b)
{
    uint64_t x = ((const struct sock *)a)->last.cookie, y = ((const struct sock *)b)->last.cookie;

    return (x > y) - (x < y);
}

void mfs_peers_look_begin(struct mfs_peers *p, int64_t now)
{
    p->now = now;
    p->nfresh = 0;
    for (size_t i = 0; i < p->npeers; i++) {
        struct peer *peer = &p->peer[i];

        peer->carried = peer->longest = 0;
        peer->waits_now = peer->known = false;
    }
}

static double part_of(uint64_t us, int64_t ns)
{
    double part = ns > 0 ? (double)us * 1e3 / (double)ns : 0;

    return part < 1 ? part : 1;
}

static void count(const struct mfs_peers *p, struct peer *peer, const struct sock *before,
                  struct sock *s)
{
    uint64_t busy = grown(before->busy_us, s->busy_us);
    uint64_t window = grown(before->window_us, s->window_us);
    double part = part_of(grown(window, busy), p->now - p->looked);
    uint64_t carried = grown(before->acked, s->acked);

    s->waits = waits_for_network(&before->last, &s->last);
    s->active = carried >= ACTIVE || s->waits;
    peer->carried += (double)carried;
    peer->known = true;
    peer->waits_now |= s->waits;
    if (s->waits && part > peer->longest)
        peer->longest = part;
}

void mfs_peers_see(struct mfs_peers *p, const struct mfs_sock *now)
{
    struct peer *peer = p->nfresh < MFS_PEERS_SOCKETS_MAX ? peer_of(p, now) : NULL;
    const struct sock *before;
    struct sock *s;

    if (!peer)
        return;
    s = &p->fresh[p->nfresh++];
    *s = (struct sock){.last = *now,
                       .acked = now->acked,
                       .busy_us = now->busy_us,
                       .window_us = now->window_us,
                       .peer = (uint32_t)(peer - p->peer)};
    before = bsearch(s, p->sock, p->nsocks, sizeof *p->sock, compare_socks);
    if (before)
        count(p, peer, before, s);
}

static void conclude(struct peer *peer, double seconds)
{
    unsigned samples = peer->samples + 1, waits = peer->waits + peer->waits_now;

    peer->report.rate = seconds > 0 ? peer->carried / seconds : 0;
    peer->report.busy = samples >= FEW_SAMPLES ? (double)waits / samples
                        : peer->waits_now      ? peer->longest
                                               : 0;
    peer->samples = peer->waits = 0;
}

void mfs_peers_look_end(struct mfs_peers *p)
{
    double seconds = (double)(p->now - p->looked) / (double)MFS_SEC;
    struct sock *old = p->sock;

    for (size_t i = 0; i < p->npeers; i++)
        conclude(&p->peer[i], p->looked ? seconds : 0);
    qsort(p->fresh, p->nfresh, sizeof *p->fresh, compare_socks);
    p->sock = p->fresh;
    p->nsocks = p->nfresh;
    p->fresh = old;
    p->nfresh = 0;
    p->looked = p->now;
}

/* ---- samples --------------------------------------------------------------------------------- */

bool mfs_peers_active(const struct mfs_peers *p)
{
    for (size_t i = 0; i < p->nsocks; i++) {
        if (p->sock[i].active)
            return true;
    }
    return false;
}

static void sample_one(struct peer *peer, struct sock *s,
                       int (*ask)(void *arg, const struct mfs_sock *which, struct mfs_sock *now),
                       void *arg)
{
    struct mfs_sock now;

    peer->asked++;
    s->asked = true;
    if (ask(arg, &s->last, &now)) {
        s->active = false;
        return;
    }
    s->waits = waits_for_network(&s->last, &now);
    s->last = now;
    peer->hit |= s->waits;
}

static void sample_those(struct mfs_peers *p, bool waited,
                         int (*ask)(void *arg, const struct mfs_sock *which, struct mfs_sock *now),
                         void *arg)
{
    for (size_t i = 0; i < p->nsocks; i++) {
        struct sock *s = &p->sock[i];
        struct peer *peer = &p->peer[s->peer];

        if (s->active && s->waits == waited && !s->asked && !peer->hit &&
            peer->asked < MFS_PEERS_ASKED_MAX)
            sample_one(peer, s, ask, arg);
    }
}

void mfs_peers_sample(struct mfs_peers *p,
                      int (*ask)(void *arg, const struct mfs_sock *which, struct mfs_sock *now),
                      void *arg)
{
    for (size_t i = 0; i < p->npeers; i++) {
        p->peer[i].asked = 0;
        p->peer[i].hit = false;
    }
    for (size_t i = 0; i < p->nsocks; i++)
        p->sock[i].asked = false;
    sample_those(p, true, ask, arg);
    sample_those(p, false, ask, arg);
    for (size_t i = 0; i < p->npeers; i++) {
        p->peer[i].samples++;
        p->peer[i].waits += p->peer[i].hit;
    }
}

size_t mfs_peers_list(const struct mfs_peers *p, struct mfs_report_peer *out)
{
    size_t n = 0;

    for (size_t i = 0; i < p->npeers; i++) {
        if (p->peer[i].known && out)
            out[n] = p->peer[i].report;
        n += p->peer[i].known;
    }
    return n;
}
