/* Policies: two lines, two steps, one window. */
#include "cm/plan/policy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define OUT_AT     0.95
#define IN_TO      0.85
#define WINDOW     45
#define SETTLE     3
#define SKEW       0.97 /* a node may be so much fuller than it should before it counts for all */
#define SAME       1.01 /* used / used before, still no growth */
#define ALL_FILLED 1e-9

static const struct {
    const char *name;
    double step;
    bool of_start; /* else of the nodes there are */
} outs[] = {{"none", 0, false}, {"cso", 0.5, true}, {"nso", 1, true}, {"aso", 1, false}};

static const struct {
    const char *name;
    double at, step;
} ins[] = {{"none", 0, 0}, {"csi", 0.75, 0.25}, {"asi", 0.5, 0.5}};

#define FIELD(kind, member) .max = 0, MFS_FIELD(kind, struct mfs_policy_settings, member)

const struct mfs_schema mfs_policy_settings_schema = {
    "policy settings", sizeof(struct mfs_policy_settings),
    (const struct mfs_field[]){{.name = "min_nodes", FIELD(U32, min_nodes)},
                               {.name = "max_nodes", FIELD(U32, max_nodes)},
                               {.name = "out_at", FIELD(F64, out_at)},
                               {.name = "out_step", FIELD(F64, out_step)},
                               {.name = "in_at", FIELD(F64, in_at)},
                               {.name = "in_step", FIELD(F64, in_step)},
                               {.name = "in_to", FIELD(F64, in_to)},
                               {.name = "window", FIELD(F64, window)},
                               {.name = "settle", FIELD(F64, settle)},
                               {0}}};

/* ---- names and numbers ----------------------------------------------------------------------- */

int mfs_policy_parse(const char *name, struct mfs_policy *p, struct mfs_err *err)
{
    size_t len = strcspn(name, "+");
    bool out = false, in = !name[len];

    *p = (struct mfs_policy){MFS_OUT_NONE, MFS_IN_NONE};
    for (unsigned i = 0; i < sizeof outs / sizeof *outs; i++) {
        if (strlen(outs[i].name) != len || strncmp(outs[i].name, name, len) != 0)
            continue;
        p->out = (enum mfs_policy_out)i;
        out = i != MFS_OUT_NONE || !name[len];
    }
    for (unsigned i = 1; i < sizeof ins / sizeof *ins && name[len]; i++) {
        if (strcmp(ins[i].name, name + len + 1) != 0)
            continue;
        p->in = (enum mfs_policy_in)i;
        in = true;
    }
    if (out && in)
        return 0;
    return mfs_err_set(err, -EINVAL,
                       "\"%s\" is no policy; there are none, cso, nso, aso, each of these "
                       "three also with +csi or +asi",
                       name);
}

static double or_else(double given, double otherwise)
{
    return given > 0 ? given : otherwise;
}

static int check(const struct mfs_policy_settings *s, uint32_t parts, struct mfs_err *err)
{
    if (s->min_nodes > s->max_nodes)
        return mfs_err_set(err, -EINVAL, "min-nodes: %u is more than max-nodes, %u", s->min_nodes,
                           s->max_nodes);
    if (s->max_nodes > parts)
        return mfs_err_set(err, -EINVAL,
                           "max-nodes: %u partitions suffice for as many nodes at most", parts);
    if (s->in_to >= s->out_at)
        return mfs_err_set(err, -EINVAL,
                           "scale-in-to: %g %% is not below scale-out-at, %g %%: it would shrink "
                           "and grow in turn",
                           100 * s->in_to, 100 * s->out_at);
    return 0;
}

int mfs_policy_settle(const struct mfs_policy *p, const struct mfs_policy_settings *given,
                      uint32_t nodes_at_start, uint32_t parts, struct mfs_policy_settings *out,
                      struct mfs_err *err)
{
    *out = *given;
    if (!out->max_nodes)
        out->max_nodes = parts;
    if (!out->min_nodes)
        out->min_nodes = nodes_at_start < out->max_nodes ? nodes_at_start : out->max_nodes;
    out->out_at = or_else(given->out_at, OUT_AT);
    out->out_step = or_else(given->out_step, outs[p->out].step);
    out->in_at = or_else(given->in_at, ins[p->in].at);
    out->in_step = or_else(given->in_step, ins[p->in].step);
    out->in_to = or_else(given->in_to, IN_TO);
    out->window = or_else(given->window, WINDOW);
    out->settle = or_else(given->settle, SETTLE);
    return check(out, parts, err);
}

bool mfs_policy_can_grow(const struct mfs_policy *p, const struct mfs_policy_settings *s,
                         uint32_t nodes)
{
    return p->out != MFS_OUT_NONE && nodes < s->max_nodes;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint32_t at(const struct mfs_policy_memory *m, uint32_t i)
{
    return (m->first + i) % MFS_POLICY_SAMPLES;
}

/* Samples are so far apart that the ring spans more than the window. */
static void remember(struct mfs_policy_memory *m, const struct mfs_policy_view *v, double window)
{
    uint32_t last = at(m, m->n ? m->n - 1 : 0);

    if (m->n && v->now - m->sample[last].time < window / (MFS_POLICY_SAMPLES - 2)) {
        if (v->used > m->sample[last].used)
            m->sample[last].used = v->used;
        return;
    }
    if (m->n == MFS_POLICY_SAMPLES) {
        m->first = at(m, 1);
        m->n--;
    }
    last = at(m, m->n++);
    m->sample[last].time = v->now;
    m->sample[last].used = v->used;
}

/* The most that was used over the window, 0 when it was not watched that long; *before: at its
 * beginning. */
static uint64_t most_used(const struct mfs_policy_memory *m, double since, uint64_t *before)
{
    uint64_t most = 0;

    if (!m->n || m->sample[m->first].time > since)
        return 0;
    for (uint32_t i = m->n; i-- > 0;) {
        *before = m->sample[at(m, i)].used;
        most = *before > most ? *before : most;
        if (m->sample[at(m, i)].time <= since)
            break;
    }
    return most;
}

/* ---- decisions ------------------------------------------------------------------------------- */

static double all_of(uint64_t used, const struct mfs_policy_view *v)
{
    return (double)used / (double)v->capacity;
}

/* Of n equal nodes the one with most partitions has so many times what it would have if they could
 * be divided evenly. */
static double rounding(uint32_t parts, uint32_t n)
{
    return ceil((double)parts / n) * n / parts;
}

/* How full everything and the fullest node would be with `n` nodes: larger of both, as they count
 * against the lines. The fullest node stays as unlucky as it is, beyond what rounding explains. */
static double fill_with(const struct mfs_policy_view *v, uint64_t used, uint32_t n)
{
    double now = all_of(v->used, v), luck = 1, then = all_of(used, v) * v->nodes / n;

    if (now > 0)
        luck = fmax(1, v->fullest / (now * rounding(v->partitions, v->nodes)));
    return fmax(then, then * rounding(v->partitions, n) * luck * SKEW);
}

/* From so many nodes on no node has as many partitions as the fullest node may have now; 0: more
 * nodes are of no use to it, as it has but one: all may have, or it has given the others away. */
static uint32_t relieving(const struct mfs_policy_view *v)
{
    double most = ceil((double)v->partitions / v->nodes);

    return most > 1 && v->fullest_parts != 1 ? (uint32_t)ceil(v->partitions / (most - 1)) : 0;
}

static void out(const struct mfs_policy *p, const struct mfs_policy_settings *s, uint32_t start,
                const struct mfs_policy_view *v, struct mfs_policy_decision *d)
{
    double all = all_of(v->used, v), of = outs[p->out].of_start ? start : v->nodes;
    uint32_t more = (uint32_t)fmax(1, ceil(s->out_step * of - ALL_FILLED)),
             room = s->max_nodes > v->nodes ? s->max_nodes - v->nodes : 0,
             target = v->nodes + (more < room ? more : room);
    uint32_t relief = v->fullest * SKEW > s->out_at ? relieving(v) : 0;

    if (p->out == MFS_OUT_NONE || !room || !(all > s->out_at || relief))
        return;
    if (target < relief)
        target = relief < s->max_nodes ? relief : s->max_nodes;
    d->target = target;
    snprintf(d->why, sizeof d->why,
             "%s: %s of %s used (%.1f %%, the fullest node %.1f %%), above %g %%: %u to %s%s",
             outs[p->out].name, MFS_TEXT_BYTES(v->used), MFS_TEXT_BYTES(v->capacity), 100 * all,
             100 * v->fullest, 100 * s->out_at, v->nodes, MFS_TEXT_COUNT(target, "node"),
             more > room ? ", the most allowed" : "");
}

/* With how few nodes, down to `least`, is the deployment filled to in_to at most? */
static uint32_t fewest(const struct mfs_policy_settings *s, const struct mfs_policy_view *v,
                       uint64_t used, uint32_t least)
{
    uint32_t n = least > s->min_nodes ? least : s->min_nodes;

    while (n < v->nodes && fill_with(v, used, n) > s->in_to + ALL_FILLED)
        n++;
    return n < v->nodes ? n : v->nodes;
}

static void in(const struct mfs_policy *p, const struct mfs_policy_settings *s,
               const struct mfs_policy_memory *m, const struct mfs_policy_view *v,
               struct mfs_policy_decision *d)
{
    uint64_t before = 0, most = most_used(m, v->now - s->window, &before);
    uint32_t step = (uint32_t)fmax(1, floor(s->in_step * v->nodes + ALL_FILLED)), n;
    double all = all_of(most, v);

    if (p->in == MFS_IN_NONE || v->nodes < 2 || !before || all >= s->in_at ||
        (double)v->used > (double)before * SAME)
        return;
    n = fewest(s, v, most, v->nodes > step ? v->nodes - step : 1);
    if (n == v->nodes)
        return;
    d->target = n;
    snprintf(d->why, sizeof d->why,
             "%s: at most %s of %s used for %g s (%.1f %%), below %g %%: %u to %u nodes, of which "
             "the fullest will be at %.1f %%",
             ins[p->in].name, MFS_TEXT_BYTES(most), MFS_TEXT_BYTES(v->capacity), s->window,
             100 * all, 100 * s->in_at, v->nodes, n, 100 * fill_with(v, most, n));
}

void mfs_policy_decide(const struct mfs_policy *p, const struct mfs_policy_settings *s,
                       uint32_t nodes_at_start, struct mfs_policy_memory *m,
                       const struct mfs_policy_view *v, struct mfs_policy_decision *d)
{
    *d = (struct mfs_policy_decision){.target = v->nodes};
    if (v->changing || m->changing || !m->begun || v->nodes != m->nodes) {
        m->changed = v->now;
        m->n = 0;
        m->begun = true;
        m->changing = v->changing;
        m->nodes = v->nodes;
    }
    if (v->changing || !v->capacity)
        return;
    remember(m, v, s->window);
    if (v->now - m->changed >= s->settle)
        out(p, s, nodes_at_start, v, d);
    if (d->target == v->nodes)
        in(p, s, m, v, d);
}
