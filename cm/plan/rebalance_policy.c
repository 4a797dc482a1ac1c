/* States of the network, and what a plan is worth. */
#include "cm/plan/rebalance_policy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define AT      0.2
#define WINDOW  5
#define HORIZON 60
#define FACTOR  1.5

#define SAMPLES 5    /* of a window; medians are over as many */
#define EARLY   0.2  /* of the time between two samples: timers are not exact */
#define IDLE    0.05 /* of what links carry: so much is reckoned with even when nothing goes on */
#define BLOCKED 0.01 /* s that a partition stands still when it moves */
#define STOPPED 60   /* s, at most, of all that leaves a full link: clients wait for 120 */

#define FIELD(kind, member) MFS_FIELD(kind, struct mfs_rebalance_settings, member)

const struct mfs_schema mfs_rebalance_settings_schema = {
    "rebalance settings", sizeof(struct mfs_rebalance_settings),
    (const struct mfs_field[]){{.name = "off", FIELD(BOOL, off)},
                               {.name = "at", FIELD(F64, at)},
                               {.name = "window", FIELD(F64, window)},
                               {.name = "horizon", FIELD(F64, horizon)},
                               {.name = "factor", FIELD(F64, factor)},
                               {0}}};

struct seen {
    uint32_t id;
    double sample[SAMPLES]; /* bytes/s, a ring */
    double part;            /* of all bandwidth, by the medians */
    double mean;            /* its part since the present state began */
    double planned;         /* that, of the state that was last planned for; 0: none */
    double rate;            /* bytes/s, the median */
    double was;             /* that, when the present state began */
    bool known, was_known;  /* its limit is; was then */
    bool ever;              /* it had been, by then */
};

struct mfs_rebalance_policy {
    struct seen *node;
    size_t n;
    uint32_t taken;  /* samples, ever since the nodes are these */
    uint32_t lasted; /* samples of the present state */
    bool planned;    /* it was planned for */
    double sampled;  /* when */
    double since;    /* the present state began */
    double previous; /* how long the one before it lasted */
    double agreed;   /* when it last was like what was planned for */
};

struct mfs_rebalance_settings mfs_rebalance_settle(const struct mfs_rebalance_settings *given)
{
    struct mfs_rebalance_settings s = *given;

    s.at = s.at > 0 ? s.at : AT;
    s.window = s.window > 0 ? s.window : WINDOW;
    s.horizon = s.horizon > 0 ? s.horizon : HORIZON;
    s.factor = s.factor > 0 ? s.factor : FACTOR;
    return s;
}

struct mfs_rebalance_policy *mfs_rebalance_policy_create(void)
{
    return calloc(1, sizeof(struct mfs_rebalance_policy));
}

void mfs_rebalance_policy_destroy(struct mfs_rebalance_policy *r)
{
    if (r)
        free(r->node);
    free(r);
}

/* ---- samples --------------------------------------------------------------------------------- */

static bool same_nodes(const struct mfs_rebalance_policy *r, const struct mfs_rebalance_view *v)
{
    if (r->n != v->n)
        return false;
    for (size_t i = 0; i < v->n; i++)
        if (r->node[i].id != v->id[i])
            return false;
    return true;
}

static bool begin_anew(struct mfs_rebalance_policy *r, const struct mfs_rebalance_view *v)
{
    struct seen *node = calloc(v->n + 1, sizeof *node);

    free(r->node);
    *r = (struct mfs_rebalance_policy){.node = node, .previous = INFINITY, .agreed = v->now};
    if (!node)
        return false;
    r->n = v->n;
    for (size_t i = 0; i < v->n; i++)
        node[i].id = v->id[i];
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *sample, uint32_t n)
{
    double sorted[SAMPLES];

    memcpy(sorted, sample, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static void take(struct mfs_rebalance_policy *r, const struct mfs_rebalance_view *v)
{
    uint32_t at = r->taken++ % SAMPLES, have = r->taken < SAMPLES ? r->taken : SAMPLES;
    double sum = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct seen *s = &r->node[i];

        s->sample[at] = v->bandwidth[i];
        s->rate = median(s->sample, have);
        s->known = v->known[i];
        sum += s->rate;
    }
    for (size_t i = 0; i < r->n; i++)
        r->node[i].part = r->node[i].rate / sum;
    r->sampled = v->now;
}

/* ---- states ---------------------------------------------------------------------------------- */

static double apart(double a, double b)
{
    return a > 0 && b > 0 ? fmax(a / b, b / a) - 1 : INFINITY;
}

static bool left_state(const struct mfs_rebalance_policy *r, double at)
{
    for (size_t i = 0; i < r->n; i++)
        if (apart(r->node[i].part, r->node[i].mean) > at)
            return true;
    return false;
}

/* The longer a state lasts the better it is known: also what was planned for it. */
static void sharpen(struct mfs_rebalance_policy *r)
{
    r->lasted++;
    for (size_t i = 0; i < r->n; i++) {
        struct seen *s = &r->node[i];

        s->mean += (s->part - s->mean) / r->lasted;
        if (r->planned)
            s->planned = s->mean;
    }
}

/* A state that has lasted, and is the one planned for after all: what was known of that when it was
 * planned was not sharp yet. */
static bool is_planned(const struct mfs_rebalance_policy *r, double at)
{
    for (size_t i = 0; i < r->n; i++)
        if (apart(r->node[i].mean, r->node[i].planned) > at)
            return false;
    return r->lasted >= 2 * SAMPLES;
}

/* Or is it only that more is known, or seen, of nodes of which nothing was known before? */
static bool links_changed(const struct mfs_rebalance_policy *r, double at)
{
    bool learned = false;

    for (size_t i = 0; i < r->n; i++) {
        const struct seen *s = &r->node[i];

        if (!s->ever || (!s->known && !s->was_known))
            learned |= s->rate != s->was;
        else if (s->known != s->was_known || apart(s->rate, s->was) > at)
            return true;
    }
    return !learned;
}

static void begin_state(struct mfs_rebalance_policy *r, double now)
{
    r->since = now;
    r->lasted = 0;
    r->planned = false;
    for (size_t i = 0; i < r->n; i++) {
        struct seen *s = &r->node[i];

        s->was = s->rate;
        s->was_known = s->known;
        s->ever |= s->known;
    }
}

static void follow(struct mfs_rebalance_policy *r, double now, double at)
{
    if (!r->lasted || left_state(r, at)) {
        if (r->lasted && links_changed(r, at))
            r->previous = now - r->since;
        begin_state(r, now);
    }
    sharpen(r);
    r->planned |= is_planned(r, at);
}

static bool differs(const struct mfs_rebalance_policy *r, double at)
{
    for (size_t i = 0; i < r->n; i++)
        if (apart(r->node[i].part, r->node[i].planned) > at)
            return true;
    return false;
}

/* That the present state must have lasted. */
static double patience(const struct mfs_rebalance_policy *r, const struct mfs_rebalance_settings *s)
{
    if (r->previous >= s->horizon)
        return s->window;
    return fmax(s->window, fmin(2 * r->previous, s->horizon));
}

bool mfs_rebalance_policy_watch(struct mfs_rebalance_policy *r,
                                const struct mfs_rebalance_settings *s,
                                const struct mfs_rebalance_view *v)
{
    if (!same_nodes(r, v) && !begin_anew(r, v))
        return false;
    if (!r->taken || v->now - r->sampled >= s->window / SAMPLES * (1 - EARLY)) {
        take(r, v);
        follow(r, v->now, s->at);
    }
    if (!differs(r, s->at))
        r->agreed = v->now;
    return v->now - r->agreed >= s->window && v->now - r->since >= patience(r, s);
}

void mfs_rebalance_policy_planned(struct mfs_rebalance_policy *r)
{
    for (size_t i = 0; i < r->n; i++)
        r->node[i].planned = r->node[i].mean;
    r->agreed = r->sampled;
    r->planned = true;
}

void mfs_rebalance_policy_failed(struct mfs_rebalance_policy *r)
{
    for (size_t i = 0; i < r->n; i++)
        r->node[i].planned = 0;
    r->planned = false;
}

bool mfs_rebalance_policy_changed(const struct mfs_rebalance_policy *r, uint32_t *id, double *times)
{
    double most = -1;

    for (size_t i = 0; i < r->n && r->node[i].planned > 0; i++) {
        const struct seen *n = &r->node[i];

        if (apart(n->part, n->planned) <= most)
            continue;
        most = apart(n->part, n->planned);
        *id = n->id;
        *times = n->part / n->planned;
    }
    return most >= 0;
}

/* ---- worth ----------------------------------------------------------------------------------- */

size_t mfs_rebalance_last(const uint32_t *count, const double *bandwidth, size_t n)
{
    size_t last = 0;

    for (size_t i = 1; i < n; i++)
        if (count[i] / bandwidth[i] > count[last] / bandwidth[last])
            last = i;
    return last;
}

double mfs_rebalance_pace(const uint32_t *count, const double *bandwidth, size_t n, uint32_t parts)
{
    size_t last = mfs_rebalance_last(count, bandwidth, n);

    return (double)count[last] / parts / bandwidth[last];
}

/* A link can't have been busier than wholly; and a file system that stands idle will be used, so
 * what costs next to nothing is done ahead. When that link is full all that waits for it waits,
 * also what has nothing to do with its partitions, such as its own node's tasks. */
static double expected(const struct mfs_rebalance_figures *f)
{
    if (f->full)
        return 1 / f->before;
    return fmin(fmax(f->traffic, IDLE / f->before), 1 / f->before);
}

void mfs_rebalance_weigh(const struct mfs_rebalance_settings *s,
                         const struct mfs_rebalance_figures *f, struct mfs_rebalance_verdict *v)
{
    double saved = f->before - f->after, gain = expected(f) * saved * s->horizon,
           cost = f->busiest * (f->cold && !f->full ? 2 : 1) + BLOCKED * f->moves;
    bool too_long = f->full && cost > STOPPED;

    v->better = f->moves && f->before > f->after * (1 + s->at);
    v->worth = v->better && gain > cost * s->factor && !too_long;
    snprintf(
        v->why, sizeof v->why,
        "%.2f times the pace for %u partitions, %s: at %s/s that is %.1f s in %g s, for %.1f s "
        "of the busiest link%s%s",
        f->after > 0 ? f->before / f->after : 1, f->moves, MFS_TEXT_BYTES(f->bytes),
        MFS_TEXT_BYTES((uint64_t)expected(f)), gain, s->horizon, cost,
        f->full ? ", which is full" : "",
        v->worth   ? ""
        : too_long ? ", too long to wait for"
                   : ", too little");
}
