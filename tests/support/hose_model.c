/* The model of links and clients; see the header. */
#include "hose_model.h"

#include <math.h>
#include <string.h>

#define FLOWS      (2 * HOSE_NODES * HOSE_NODES + 1)
#define MOVE       (FLOWS - 1)
#define LINKS      (2 * HOSE_NODES)
#define TRIES      64
#define PER_SECOND 50
#define REWEIGH    0.3 /* of the flows, each second */
#define FULL       1e-9

void hose_init(struct hose *h, uint64_t seed, uint32_t n, double stripe)
{
    memset(h, 0, sizeof *h);
    h->seed = seed;
    h->n = n;
    h->stripe = stripe;
    for (uint32_t i = 0; i < n; i++)
        h->node[i] = (struct hose_node){.capacity = 1e7, .share = 1, .window = 16};
}

double hose_random(struct hose *h)
{
    h->seed = h->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(h->seed >> 11) / 9007199254740992.0;
}

static bool reads(const struct hose *h, uint32_t client)
{
    return h->node[client].mode == HOSE_READ;
}

/* Of a client with a node's partitions. */
static struct hose_flow *flow_of(struct hose *h, uint32_t client, uint32_t node)
{
    return &h->flow[(reads(h, client) ? HOSE_NODES * HOSE_NODES : 0) + client * HOSE_NODES + node];
}

void hose_change(struct hose *h)
{
    for (uint32_t i = 0; i < FLOWS; i++)
        h->flow[i].backlog = 0;
}

/* ---- clients --------------------------------------------------------------------------------- */

static uint32_t choose(struct hose *h)
{
    double all = 0, at;
    uint32_t i;

    for (i = 0; i < h->n; i++)
        all += h->node[i].share;
    at = hose_random(h) * all;
    for (i = 0; i + 1 < h->n && at >= h->node[i].share; i++)
        at -= h->node[i].share;
    return i;
}

static double under_way(struct hose *h, uint32_t client)
{
    double sum = 0;

    for (uint32_t i = 0; i < h->n; i++)
        sum += flow_of(h, client, i)->backlog;
    return sum;
}

static void begin_stripe(struct hose *h, uint32_t client)
{
    uint32_t node = choose(h);
    struct hose_flow *f = flow_of(h, client, node);

    if (node == client)
        return; /* by a UNIX socket, at once */
    f->from = reads(h, client) ? node : client;
    f->to = reads(h, client) ? client : node;
    f->most = h->node[node].served / (double)(h->n - 1);
    f->backlog += h->stripe;
}

static void work(struct hose *h, uint32_t client)
{
    struct hose_node *c = &h->node[client];
    double *tokens = &h->tokens[client];

    if (c->mode == HOSE_IDLE)
        return;
    *tokens = fmin(*tokens + c->limit * HOSE_STEP, 2 * h->stripe);
    for (unsigned i = 0; i < TRIES; i++) {
        if (under_way(h, client) + h->stripe > c->window * h->stripe ||
            (c->limit > 0 && *tokens < h->stripe))
            return;
        *tokens -= h->stripe;
        begin_stripe(h, client);
    }
}

static void weigh(struct hose *h)
{
    for (uint32_t i = 0; i < FLOWS; i++)
        if (h->flow[i].weight <= 0 || hose_random(h) < REWEIGH)
            h->flow[i].weight = h->unfair > 1 ? pow(h->unfair, -hose_random(h)) : 1;
}

static void migrate(struct hose *h)
{
    struct hose_flow *f = &h->flow[MOVE];

    f->from = h->move.from;
    f->to = h->move.to;
    f->most = h->move.rate;
    f->backlog = h->move.rate > 0 ? 1e12 : 0;
}

/* ---- links ----------------------------------------------------------------------------------- */

static double capacity(const struct hose *h, uint32_t link)
{
    return h->node[link % HOSE_NODES].capacity;
}

/* The most by which all flows that are not fixed yet can grow. */
static double headroom(const struct hose *h, const bool *fixed, const double *left)
{
    double users[LINKS] = {0};
    double most = INFINITY;

    for (uint32_t i = 0; i < FLOWS; i++) {
        const struct hose_flow *f = &h->flow[i];

        if (fixed[i])
            continue;
        users[f->from] += f->weight;
        users[HOSE_NODES + f->to] += f->weight;
        if (f->most > 0)
            most = fmin(most, (f->most - f->rate) / f->weight);
    }
    for (uint32_t i = 0; i < LINKS; i++)
        if (users[i] > 0)
            most = fmin(most, left[i] / users[i]);
    return most;
}

/* All grow alike until a link is full, then those that do not use it, and so on. */
static void share_links(struct hose *h)
{
    bool fixed[FLOWS];
    double left[LINKS];
    unsigned open = 0;

    for (uint32_t i = 0; i < LINKS; i++)
        left[i] = capacity(h, i);
    for (uint32_t i = 0; i < FLOWS; i++) {
        h->flow[i].rate = 0;
        fixed[i] = h->flow[i].backlog <= 0;
        open += !fixed[i];
    }
    while (open) {
        double more = headroom(h, fixed, left);

        for (uint32_t i = 0; i < FLOWS; i++) {
            if (fixed[i])
                continue;
            h->flow[i].rate += more * h->flow[i].weight;
            left[h->flow[i].from] -= more * h->flow[i].weight;
            left[HOSE_NODES + h->flow[i].to] -= more * h->flow[i].weight;
        }
        for (uint32_t i = 0; i < FLOWS; i++) {
            const struct hose_flow *f = &h->flow[i];

            if (fixed[i] || (left[f->from] > FULL * capacity(h, f->from) &&
                             left[HOSE_NODES + f->to] > FULL * capacity(h, f->to) &&
                             (f->most <= 0 || f->rate < f->most * (1 - FULL))))
                continue;
            fixed[i] = true;
            open--;
        }
    }
}

/* What a flow that has its own limit holds up is not the network. */
static bool waits(const struct hose_flow *f)
{
    return f->most <= 0 || f->rate < f->most * (1 - 1e-6);
}

static void advance(struct hose *h)
{
    double busy[HOSE_NODES][HOSE_NODES] = {{0}};

    for (uint32_t i = 0; i < h->n; i++)
        h->node[i].load_in = h->node[i].load_out = 0;
    for (uint32_t i = 0; i < FLOWS; i++) {
        struct hose_flow *f = &h->flow[i];
        double bytes, part;

        if (f->backlog <= 0)
            continue;
        bytes = fmin(f->backlog, f->rate * HOSE_STEP);
        part = waits(f) ? bytes / (f->rate * HOSE_STEP) : 0;
        busy[f->from][f->to] = fmax(busy[f->from][f->to], part);
        f->backlog -= bytes;
        h->node[f->from].load_out += bytes / HOSE_STEP;
        h->node[f->to].load_in += bytes / HOSE_STEP;
        h->figures[f->from].out += bytes;
        h->figures[f->to].in += bytes;
        h->figures[f->from].sent[f->to] += bytes;
    }
    for (uint32_t i = 0; i < h->n; i++)
        for (uint32_t j = 0; j < h->n; j++)
            h->figures[i].busy[j] += busy[i][j] * HOSE_STEP;
}

/* ---- reports --------------------------------------------------------------------------------- */

static double noisy(struct hose *h, double rate)
{
    return rate * (1 + h->rate_noise * (2 * hose_random(h) - 1));
}

static double noisy_part(struct hose *h, double part)
{
    return fmin(1, fmax(0, part + h->busy_noise * (2 * hose_random(h) - 1)));
}

static void report(struct hose *h, uint32_t node, hose_on_report *on_report, void *arg)
{
    struct hose_figures *g = &h->figures[node];
    struct mfs_report_peer peer[HOSE_NODES];
    double took = h->now - g->since;
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->n; i++) {
        if (i == node || g->sent[i] <= 0)
            continue;
        peer[n++] = (struct mfs_report_peer){.node = i,
                                             .rate = noisy(h, g->sent[i] / took),
                                             .busy = noisy_part(h, g->busy[i] / took)};
    }
    if (hose_random(h) >= h->lost)
        on_report(arg, h->now, node, noisy(h, g->in / took), noisy(h, g->out / took), peer, n);
    *g = (struct hose_figures){.since = h->now};
}

void hose_second(struct hose *h, hose_on_report *on_report, void *arg)
{
    weigh(h);
    for (unsigned s = 0; s < PER_SECOND; s++) {
        for (uint32_t i = 0; i < h->n; i++)
            work(h, i);
        migrate(h);
        share_links(h);
        advance(h);
        h->now = (double)++h->steps * HOSE_STEP;
        for (uint32_t i = 0; i < h->n; i++)
            if (s == i * PER_SECOND / h->n)
                report(h, i, on_report, arg);
    }
}
