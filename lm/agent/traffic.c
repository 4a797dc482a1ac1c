/* What the node's link carries: bytes in and out of its interface, and, for each other node, what
 * goes there and how long the network was waited for (peers.h). */
#include "lm/agent/agent_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "lm/measure/peers.h"
#include "host/sockdiag.h"

#define AREA      "traffic"
#define SAMPLE_NS (50 * MFS_MSEC)
#define LOOK_MAX  (4UL * MFS_PEERS_SOCKETS_MAX) /* sockets, of whomever */

struct mfs_agent_traffic {
    int diag; /* netlink */
    struct mfs_peers *peers;
    struct mfs_timer *sampler; /* while there is traffic */
};

static int create(struct mfs_agent_traffic **out)
{
    struct mfs_agent_traffic *t;
    int diag = mfs_sockdiag_open();

    if (diag < 0)
        return diag;
    t = calloc(1, sizeof *t);
    if (t)
        *t = (struct mfs_agent_traffic){.diag = diag, .peers = mfs_peers_create()};
    if (t && t->peers) {
        *out = t;
        return 0;
    }
    close(diag);
    free(t);
    return -ENOMEM;
}

static int choose_iface(struct mfs_agent *a)
{
    struct mfs_meter_count count;
    int rc;

    if (!a->opts.iface)
        return mfs_meters_iface(a->opts.address, a->measured.iface);
    rc = mfs_meters_read(a->opts.iface, &count);
    if (rc)
        mfs_warn(AREA, "the interface %s can't be measured: %s", a->opts.iface, strerror(-rc));
    return rc ? rc : mfs_text_copy(a->measured.iface, sizeof a->measured.iface, a->opts.iface);
}

/* Nodes on loopback addresses have no links that could differ. */
void mfs_agent_traffic_begin(struct mfs_agent *a)
{
    int rc;

    if (choose_iface(a)) {
        a->measured.iface[0] = '\0';
        return;
    }
    rc = create(&a->measured.traffic);
    if (rc)
        mfs_warn(AREA, "can't see who waits for whom: %s", strerror(-rc));
}

void mfs_agent_traffic_end(struct mfs_agent *a)
{
    if (!a->measured.traffic)
        return;
    mfs_timer_cancel(a->measured.traffic->sampler);
    mfs_peers_destroy(a->measured.traffic->peers);
    close(a->measured.traffic->diag);
    free(a->measured.traffic);
    a->measured.traffic = NULL;
}

static bool on_this_machine(const char *address)
{
    char iface[MFS_METERS_IFACE_MAX];

    return !mfs_meters_iface(address, iface);
}

void mfs_agent_traffic_table(struct mfs_agent *a)
{
    if (a->measured.traffic &&
        mfs_peers_know(a->measured.traffic->peers, a->table, a->opts.node, on_this_machine))
        mfs_warn(AREA, "out of memory: goes by an older partition table");
}

/* ---- samples --------------------------------------------------------------------------------- */

static int ask(void *arg, const struct mfs_sock *which, struct mfs_sock *now)
{
    const struct mfs_agent_traffic *t = arg;

    return mfs_sockdiag_again(t->diag, which, now);
}

static void sample(void *arg)
{
    struct mfs_agent_traffic *t = arg;

    mfs_peers_sample(t->peers, ask, t);
}

static void see(void *arg, const struct mfs_sock *s)
{
    mfs_peers_see(arg, s);
}

static int look(struct mfs_agent_traffic *t)
{
    static const int families[] = {AF_INET, AF_INET6};
    int rc = 0;

    mfs_peers_look_begin(t->peers, mfs_clock_mono());
    for (size_t i = 0; i < sizeof families / sizeof *families && !rc; i++) {
        if (mfs_peers_family(t->peers, families[i]))
            rc = mfs_sockdiag_list(t->diag, families[i], LOOK_MAX, see, t->peers);
    }
    mfs_peers_look_end(t->peers);
    return rc;
}

/* An idle node is not woken for nothing. */
static void sample_while_active(struct mfs_agent *a)
{
    struct mfs_agent_traffic *t = a->measured.traffic;
    bool active = mfs_peers_active(t->peers);

    if (active && !t->sampler)
        t->sampler = mfs_loop_timer(a->loop, SAMPLE_NS, SAMPLE_NS, sample, t);
    if (!active && t->sampler) {
        mfs_timer_cancel(t->sampler);
        t->sampler = NULL;
    }
}

static void log_peers(const struct mfs_agent *a)
{
    uint32_t n;
    struct mfs_report_peer *peer = mfs_agent_traffic_peers(a, &n);

    for (uint32_t i = 0; i < n; i++) {
        if (peer[i].rate > 0 || peer[i].busy > 0)
            mfs_debug(AREA, "to node %u: %.0f bytes/s, busy %.2f", peer[i].node, peer[i].rate,
                      peer[i].busy);
    }
    free(peer);
}

static void measure_peers(struct mfs_agent *a)
{
    int rc = look(a->measured.traffic);

    if (rc == -ENOENT || rc == -EPERM || rc == -EOPNOTSUPP) {
        mfs_warn(AREA, "the kernel does not tell who waits for whom: %s", strerror(-rc));
        mfs_agent_traffic_end(a);
        return;
    }
    if (rc)
        mfs_debug(AREA, "sockets: %s", strerror(-rc));
    if (mfs_log_wants(MFS_LOG_DEBUG))
        log_peers(a);
    sample_while_active(a);
}

void mfs_agent_traffic_measure(struct mfs_agent *a)
{
    struct mfs_meter_count count = {a->measured.sample.net_in, a->measured.sample.net_out};
    int rc = a->measured.iface[0] ? mfs_meters_read(a->measured.iface, &count) : 0;

    if (!rc)
        mfs_meter_update(&a->measured.meter, mfs_clock_mono(), &count);
    if (a->measured.traffic && mfs_peers_any(a->measured.traffic->peers))
        measure_peers(a);
}

struct mfs_report_peer *mfs_agent_traffic_peers(const struct mfs_agent *a, uint32_t *n)
{
    size_t most = a->measured.traffic ? mfs_peers_list(a->measured.traffic->peers, NULL) : 0;
    struct mfs_report_peer *peer = most ? calloc(most, sizeof *peer) : NULL;

    *n = peer ? (uint32_t)mfs_peers_list(a->measured.traffic->peers, peer) : 0;
    return peer;
}
