#include "cm/cli/top/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/cli/render.h"

const char *const mfs_top_order_names[MFS_TOP_ORDERS] = {"name", "memory", "in", "out"};

static const struct mfs_schema move_schema = {
    "move", sizeof(struct mfs_top_move),
    (const struct mfs_field[]){
        {.name = "partition", MFS_FIELD(U32, struct mfs_top_move, partition)},
        {.name = "from", MFS_FIELD(STR, struct mfs_top_move, from)},
        {.name = "to", MFS_FIELD(STR, struct mfs_top_move, to)},
        {.name = "step", MFS_FIELD(STR, struct mfs_top_move, step)},
        {.name = "bytes", MFS_FIELD(U64, struct mfs_top_move, bytes)},
        {.name = "bytes_total", MFS_FIELD(U64, struct mfs_top_move, bytes_total)},
        {.name = "rate", MFS_FIELD(F64, struct mfs_top_move, rate)},
        {.name = "left_seconds", MFS_FIELD(F64, struct mfs_top_move, left_seconds)},
        {0}}};

const struct mfs_schema mfs_top_schema = {
    "top", sizeof(struct mfs_top_sample),
    (const struct mfs_field[]){
        {.name = "status",
         MFS_FIELD(OBJECT, struct mfs_top_sample, status),
         .sub = &mfs_status_schema},
        {.name = "moves", MFS_FIELD_LIST(struct mfs_top_sample, move, nmoves, &move_schema)},
        {.name = "events",
         MFS_FIELD_LIST(struct mfs_top_sample, event, nevents, &mfs_event_schema)},
        {0}}};

void mfs_top_clear(struct mfs_top_sample *s)
{
    mfs_schema_clear(&mfs_top_schema, s);
    *s = (struct mfs_top_sample){0};
}

/* ---- moves ----------------------------------------------------------------------------------- */

static void name_node(const struct mfs_status *s, uint32_t id, char out[MFS_NAME_MAX])
{
    snprintf(out, MFS_NAME_MAX, "node-%u", id);
    for (uint32_t i = 0; i < s->nnodes; i++)
        if (s->node[i].id == id)
            mfs_text_copy(out, MFS_NAME_MAX, s->node[i].name);
}

static const struct mfs_top_move *same_move(const struct mfs_top_sample *s,
                                            const struct mfs_top_move *m)
{
    for (uint32_t i = 0; s && i < s->nmoves; i++)
        if (s->move[i].partition == m->partition && !strcmp(s->move[i].from, m->from) &&
            !strcmp(s->move[i].to, m->to))
            return &s->move[i];
    return NULL;
}

/* Those that wait for others come last. */
static int moving_first(const void *a, const void *b)
{
    const struct mfs_top_move *x = a, *y = b;
    bool waits_x = !strcmp(x->step, "waiting"), waits_y = !strcmp(y->step, "waiting");

    if (waits_x != waits_y)
        return waits_x - waits_y;
    return (x->partition > y->partition) - (x->partition < y->partition);
}

/* A copy that was begun anew has fewer bytes than before: its rate is not known yet. */
static void take_rate(struct mfs_top_move *m, const struct mfs_top_move *was, int64_t elapsed)
{
    m->left_seconds = -1;
    if (!was || elapsed <= 0 || m->bytes < was->bytes)
        return;
    m->rate = (double)(m->bytes - was->bytes) / ((double)elapsed / MFS_SEC);
    if (m->rate > 0 && m->bytes_total >= m->bytes)
        m->left_seconds = (double)(m->bytes_total - m->bytes) / m->rate;
}

int mfs_top_make(struct mfs_top_sample *s, int64_t when, struct mfs_status *status,
                 const struct mfs_top_sample *before)
{
    *s = (struct mfs_top_sample){.when = when, .status = *status};
    *status = (struct mfs_status){0};
    s->move = calloc(s->status.nmoves + 1, sizeof *s->move);
    s->event = calloc(MFS_TOP_EVENTS, sizeof *s->event);
    if (!s->move || !s->event) {
        mfs_top_clear(s);
        return -ENOMEM;
    }
    s->nmoves = s->status.nmoves;
    for (uint32_t i = 0; i < s->nmoves; i++) {
        const struct mfs_status_move *from = &s->status.move[i];
        struct mfs_top_move *m = &s->move[i];

        m->partition = from->partition;
        name_node(&s->status, from->from, m->from);
        name_node(&s->status, from->to, m->to);
        memcpy(m->step, from->step, sizeof m->step);
        m->bytes = from->bytes;
        m->bytes_total = from->bytes_total;
        take_rate(m, same_move(before, m), before ? when - before->when : 0);
    }
    qsort(s->move, s->nmoves, sizeof *s->move, moving_first);
    return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct sorting {
    const struct mfs_status *s;
    enum mfs_top_order order;
};

static double value(const struct mfs_status_node *n, enum mfs_top_order order)
{
    switch (order) {
    case MFS_TOP_BY_MEMORY:
        return n->memory_capacity ? (double)n->memory_used / (double)n->memory_capacity : 0;
    case MFS_TOP_BY_IN:
        return n->bandwidth_in;
    case MFS_TOP_BY_OUT:
        return n->bandwidth_out;
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct sorting *of = arg;
    const struct mfs_status_node *x = &of->s->node[*(const uint32_t *)a];
    const struct mfs_status_node *y = &of->s->node[*(const uint32_t *)b];
    double vx = value(x, of->order), vy = value(y, of->order);

    if (vx > vy || vx < vy)
        return vx > vy ? -1 : 1;
    return strverscmp(x->name, y->name);
}

void mfs_top_sort(const struct mfs_status *s, enum mfs_top_order order, uint32_t *out)
{
    struct sorting of = {s, order};

    for (uint32_t i = 0; i < s->nnodes; i++)
        out[i] = i;
    if (s->nnodes)
        qsort_r(out, s->nnodes, sizeof *out, compare, &of);
}

/* ---- figures --------------------------------------------------------------------------------- */

int mfs_top_cells(double part, double whole, int width)
{
    double cells = whole > 0 ? part / whole * width : 0;

    if (!(part > 0) || !(cells > 0) || width <= 0)
        return 0;
    if (cells >= width)
        return width;
    return cells < 1 ? 1 : (int)lround(cells);
}

const char *mfs_top_left(double seconds, char out[16])
{
    unsigned s = seconds < 0 || seconds > 1e7 ? 0 : (unsigned)ceil(seconds);

    if (seconds < 0 || seconds > 1e7)
        snprintf(out, 16, "-");
    else if (s < 60)
        snprintf(out, 16, "%u s", s);
    else if (s < 3600)
        snprintf(out, 16, "%u:%02u", s / 60, s % 60);
    else
        snprintf(out, 16, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
    return out;
}

int mfs_top_render(const struct mfs_top_sample *s, struct mfs_buf *out)
{
    int rc = mfs_render_status(&s->status, out);

    for (uint32_t i = 0; i < s->nmoves && !rc; i++) {
        const struct mfs_top_move *m = &s->move[i];
        char left[16];

        if (m->rate > 0)
            rc = mfs_buf_printf(out, "  partition %u: %s/s, %s left\n", m->partition,
                                MFS_TEXT_BYTES((uint64_t)m->rate),
                                mfs_top_left(m->left_seconds, left));
    }
    if (!rc && s->nevents)
        rc = mfs_buf_printf(out, "\n");
    for (uint32_t i = s->nevents > 10 ? s->nevents - 10 : 0; i < s->nevents && !rc; i++)
        rc = mfs_render_event(&s->event[i], out);
    return rc;
}
