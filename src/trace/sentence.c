/* What is to be seen in a profile. Causes are tried in this order; the first that explains enough
 * is told. All that is said of shares is of the time that requests have taken together. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/shown.h"
#include "trace/profile_impl.h"

#define ENOUGH     0.4    /* of the time: that is what it is */
#define HANGS      1000.0 /* ms without an answer */
#define LITTLE     0.02   /* of the time that went by, by each process */
#define FAR_TIMES  4.0    /* slower than the quickest other node … */
#define FAR_LEAST  1.0    /* … and by so many ms: that is the way there */
#define BUSY_TIMES 4.0    /* longer than the shortest round trip there: queues */

static double share(const struct mfs_profile *p, double ms)
{
    return p->all.t.all > 0 ? ms / p->all.t.all : 0;
}

static int percent(const struct mfs_profile *p, double ms)
{
    return (int)(share(p, ms) * 100 + 0.5);
}

static struct mfs_profile_sum *longest(struct mfs_profile_sum *table)
{
    struct mfs_profile_sum *s, *next, *most = table;

    HASH_ITER(hh, table, s, next)
    if (s->t.all > most->t.all)
        most = s;
    return most;
}

static struct mfs_profile_sum *most_often(struct mfs_profile_sum *table)
{
    struct mfs_profile_sum *s, *next, *most = table;

    HASH_ITER(hh, table, s, next)
    if (s->requests > most->requests)
        most = s;
    return most;
}

static int put_path(const char *path, struct mfs_buf *to)
{
    if (path[0] == '\0')
        return mfs_buf_printf(to, "paths that are not known");
    return strcmp(path, ".") == 0 ? mfs_buf_printf(to, "the mount itself")
                                  : mfs_shown_shell(to, path);
}

/* ---- causes: 1: told; 0: it is not that; or -ENOMEM --------------------------------------------
 */

static int told(int rc)
{
    return rc < 0 ? rc : 1;
}

static int nothing(struct mfs_profile *p, double seconds, struct mfs_buf *to)
{
    int rc;

    if (p->all.requests > 0)
        return 0;
    rc = mfs_buf_printf(to, "nothing happened: no request in %.3g s below ", seconds);
    if (rc == 0)
        rc = put_path(p->below, to);
    if (rc == 0)
        rc = mfs_buf_printf(to, " (what the kernel has in its pages already it does not ask for)");
    return told(rc);
}

static int hangs(struct mfs_profile *p, struct mfs_buf *to)
{
    const struct mfs_profile_node *worst = NULL;

    for (uint32_t i = 0; i < p->nnodes; i++)
        if (p->node[i].hanging_ms >= HANGS &&
            (worst == NULL || p->node[i].hanging_ms > worst->hanging_ms))
            worst = &p->node[i];
    if (worst == NULL)
        return 0;
    return told(mfs_buf_printf(to,
                               "partition %u on node %u does not answer: %" PRIu64
                               " request%s for it, for %.1f s so far",
                               worst->partition, worst->node, worst->hanging,
                               worst->hanging == 1 ? " waits" : "s wait", worst->hanging_ms / 1e3));
}

/* The nodes that had no memory: by requests, else as the client saw it. */
static int put_full_nodes(struct mfs_profile *p, double seconds, struct mfs_buf *to)
{
    bool by_requests = false;
    unsigned n = 0;
    int rc = 0;

    for (uint32_t i = 0; i < p->nnodes; i++)
        by_requests = by_requests || p->node[i].full > 0;
    for (uint32_t i = 0; i < p->nnodes && rc == 0; i++) {
        const struct mfs_profile_node *x = &p->node[i];
        bool full =
            by_requests ? x->full > 0 : x->seen.full_s_ago > 0 && x->seen.full_s_ago <= seconds + 1;

        if (full)
            rc = mfs_buf_printf(to, "%s%u", n++ == 0 ? "node " : ", node ", x->node);
    }
    if (rc == 0 && n == 0)
        rc = mfs_buf_printf(to, "a node");
    return rc < 0 ? rc : mfs_buf_printf(to, n > 1 ? " are full" : " is full");
}

static int full(struct mfs_profile *p, double seconds, struct mfs_buf *to)
{
    double room = p->all.t.phase[MFS_PHASE_ROOM];
    int rc;

    if (p->no_space == 0 && share(p, room) < ENOUGH)
        return 0;
    rc = put_full_nodes(p, seconds, to);
    if (rc == 0 && room > 0)
        rc = mfs_buf_printf(to, ": writes wait for room (%d %% of the time)", percent(p, room));
    if (rc == 0 && p->no_space > 0)
        rc = mfs_buf_printf(to, "%s %" PRIu64 " request%s failed with ENOSPC", room > 0 ? ";" : ":",
                            p->no_space, p->no_space == 1 ? "" : "s");
    return told(rc);
}

static int put_holder(const struct mfs_profile_sum *l, struct mfs_buf *to)
{
    int rc = mfs_buf_append(to, " that ", 6);

    if (rc == 0)
        rc = mfs_trace_process_text(l->holder_pid, l->holder, to);
    return rc < 0 ? rc
                  : mfs_buf_printf(to, "%s holds, or held last",
                                   l->elsewhere ? " on another mount" : "");
}

static int locks(struct mfs_profile *p, struct mfs_buf *to)
{
    const struct mfs_profile_sum *l = longest(p->lock);
    int rc;

    if (l == NULL || share(p, p->all.t.phase[MFS_PHASE_LOCK]) < ENOUGH)
        return 0;
    rc = mfs_buf_printf(to, "%d %% of the time: waiting for locks on ",
                        percent(p, p->all.t.phase[MFS_PHASE_LOCK]));
    if (rc == 0)
        rc = put_path(l->key, to);
    if (rc == 0 && l->holder_pid != 0)
        rc = put_holder(l, to);
    return told(rc);
}

static int missing(struct mfs_profile *p, struct mfs_buf *to)
{
    const struct mfs_profile_sum *d = most_often(p->missing);
    bool much = (double)p->none.requests > ENOUGH * (double)p->all.requests;
    int rc;

    if (d == NULL || (share(p, p->none.t.all) < ENOUGH && !much))
        return 0;
    rc =
        mfs_buf_printf(to,
                       "%d %% of the time and %d %% of the requests: look-ups of names that do not "
                       "exist, below ",
                       percent(p, p->none.t.all),
                       (int)(100.0 * (double)p->none.requests / (double)p->all.requests + 0.5));
    return told(rc < 0 ? rc : put_path(d->key, to));
}

/* What tells of a phase by its share of the time alone. */
static int of_phase(struct mfs_profile *p, struct mfs_buf *to, enum mfs_phase phase,
                    const char *what)
{
    double ms = p->all.t.phase[phase];

    if (share(p, ms) < ENOUGH)
        return 0;
    return told(mfs_buf_printf(to, "%d %% of the time: %s", percent(p, ms), what));
}

static int window(struct mfs_profile *p, struct mfs_buf *to)
{
    return of_phase(p, to, MFS_PHASE_WINDOW,
                    "writers wait for room in the write window, as data are written faster than "
                    "partitions take them");
}

static int moves(struct mfs_profile *p, struct mfs_buf *to)
{
    return of_phase(p, to, MFS_PHASE_MOVE,
                    "waiting for partitions that are being moved, or can't be reached (cm events "
                    "tells which)");
}

static int mounts(struct mfs_profile *p, struct mfs_buf *to)
{
    return of_phase(p, to, MFS_PHASE_MOUNTS,
                    "waiting until other mounts have dropped what they knew of files and "
                    "directories that are changed here");
}

/* The least of the other nodes' shortest round trips; 0: there is none. */
static double least_of_others(const struct mfs_profile *p, const struct mfs_profile_node *n)
{
    double least = 0;

    for (uint32_t i = 0; i < p->nnodes; i++) {
        const struct mfs_profile_node *o = &p->node[i];
        double ms = o->least_ms > 0 ? o->least_ms : o->seen.shortest_ms;

        if (o != n && ms > 0 && (least <= 0 || ms < least))
            least = ms;
    }
    return least;
}

/* How a node makes requests wait. Its shortest round trip is taken for the way there and back. */
static int put_reason(const struct mfs_profile *p, const struct mfs_profile_node *n,
                      struct mfs_buf *to)
{
    double others = least_of_others(p, n), mean = n->trips > 0 ? n->ms / (double)n->trips : 0;

    if (others > 0 && n->least_ms > FAR_TIMES * others && n->least_ms > others + FAR_LEAST)
        return mfs_buf_printf(to,
                              " (slow link: %.1f ms per round trip at least, where others take "
                              "%.2f)",
                              n->least_ms, others);
    if (mean > BUSY_TIMES * n->least_ms)
        return mfs_buf_printf(to,
                              " (its partitions or its link are busy: %.2f ms per round trip, "
                              "where the quickest took %.2f)",
                              mean, n->least_ms);
    return mfs_buf_printf(to, " (%" PRIu64 " round trips of %.2f ms)", n->trips, mean);
}

static int partitions(struct mfs_profile *p, struct mfs_buf *to)
{
    double ms = p->all.t.phase[MFS_PHASE_PARTITION];
    const struct mfs_profile_node *n = NULL;
    unsigned nodes = 0;
    double all = 0;
    int rc;

    for (uint32_t i = 0; i < p->nnodes; i++) {
        nodes += p->node[i].trips > 0;
        all += p->node[i].ms;
        if (n == NULL || p->node[i].ms > n->ms)
            n = &p->node[i];
    }
    if (n == NULL || all <= 0 || share(p, ms) < ENOUGH)
        return 0;
    if (n->ms < 0.6 * all)
        return told(mfs_buf_printf(to,
                                   "%d %% of the time: round trips to partitions of %u nodes, most "
                                   "of them %s",
                                   percent(p, ms), nodes, most_often(p->op)->key));
    rc = mfs_buf_printf(to, "%d %%: waiting for node %u", percent(p, ms * n->ms / all), n->node);
    return told(rc < 0 ? rc : put_reason(p, n, to));
}

/* Senders and fetchers: the node that kept them waiting, by what the client saw of all. */
static int data(struct mfs_profile *p, struct mfs_buf *to)
{
    double ms = p->all.t.phase[MFS_PHASE_DATA], others;
    const struct mfs_profile_node *n = NULL;
    int rc;

    if (share(p, ms) < ENOUGH)
        return 0;
    for (uint32_t i = 0; i < p->nnodes; i++)
        if (p->node[i].has_seen && (n == NULL || p->node[i].seen.ms > n->seen.ms))
            n = &p->node[i];
    rc = mfs_buf_printf(to, "%d %% of the time: waiting until data are stored or fetched",
                        percent(p, ms));
    if (rc < 0 || n == NULL || n->seen.round_trips == 0)
        return told(rc);
    others = least_of_others(p, n);
    rc = mfs_buf_printf(to, ", for the most part by node %u (%.1f ms per round trip", n->node,
                        n->seen.ms / (double)n->seen.round_trips);
    if (rc == 0 && others > 0 && n->seen.shortest_ms > FAR_TIMES * others &&
        n->seen.shortest_ms > others + FAR_LEAST)
        rc = mfs_buf_printf(to, "; slow link: %.1f at least, where others take %.1f",
                            n->seen.shortest_ms, others);
    return told(rc < 0 ? rc : mfs_buf_printf(to, ")"));
}

static int client(struct mfs_profile *p, struct mfs_buf *to)
{
    const struct mfs_profile_sum *op = longest(p->op);
    int rc = mfs_buf_printf(to, "%d %% of the time in the client itself, for the most part ",
                            percent(p, p->all.t.client));

    return told(rc < 0 ? rc
                       : mfs_buf_printf(to, "%s: %" PRIu64 " of %.3f ms", op->key, op->requests,
                                        op->t.all / (double)op->requests));
}

/* The programs had next to no time to wait for in here; of one whose request has not ended that is
 * not known. */
static int put_little(struct mfs_profile *p, double seconds, struct mfs_buf *to)
{
    const struct mfs_profile_sum *s = longest(p->process);

    if (s == NULL || s->t.all > LITTLE * seconds * 1e3 || p->no_space > 0 || p->all.open > 0)
        return 0;
    return mfs_buf_printf(to,
                          "; but no process waited here for more than %.2f of %.0f s: the file "
                          "system is not what makes them slow",
                          s->t.all / 1e3, seconds);
}

int mfs_profile_sentence(struct mfs_profile *p, double seconds, struct mfs_buf *to)
{
    static int (*const causes[])(struct mfs_profile * p, struct mfs_buf * to) = {
        locks, missing, window, moves, mounts, partitions, data, client};
    int rc = nothing(p, seconds, to);

    if (rc == 0)
        rc = hangs(p, to);
    if (rc == 0)
        rc = full(p, seconds, to);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    for (unsigned i = 0; i < sizeof causes / sizeof *causes && rc == 0; i++)
        rc = causes[i](p, to);
    return rc < 0 ? rc : put_little(p, seconds, to);
}
