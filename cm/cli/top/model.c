#include "cm/cli/top/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/cli/render.h"
#include "show/clients.h"
#include "show/figures.h"

#define OPS_EACH (1900 * MFS_MSEC)
#define SILENT                                                                                     \
    (10 * MFS_SEC)            /* a client that has not told anything new for so long does nothing  \
                               */
#define NEWS (100 * MFS_MSEC) /* by so much what a client tells is newer, at least */

const char *const mfs_top_order_names[MFS_TOP_ORDERS] = {"name", "memory", "in", "out",
                                                         "operations"};

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

static const struct mfs_schema mount_schema = {
    "mount", sizeof(struct mfs_top_mount),
    (const struct mfs_field[]){
        {.name = "path", MFS_FIELD(STR, struct mfs_top_mount, path)},
        {.name = "node", MFS_FIELD(STR, struct mfs_top_mount, node)},
        {.name = "pid", MFS_FIELD(U32, struct mfs_top_mount, pid)},
        {.name = "operations", MFS_FIELD(U64, struct mfs_top_mount, operations)},
        {.name = "errors", MFS_FIELD(U64, struct mfs_top_mount, errors)},
        {.name = "read_bytes", MFS_FIELD(U64, struct mfs_top_mount, read_bytes)},
        {.name = "written_bytes", MFS_FIELD(U64, struct mfs_top_mount, written_bytes)},
        {.name = "operations_rate", MFS_FIELD(F64, struct mfs_top_mount, operations_rate)},
        {.name = "errors_rate", MFS_FIELD(F64, struct mfs_top_mount, errors_rate)},
        {.name = "read_rate", MFS_FIELD(F64, struct mfs_top_mount, read_rate)},
        {.name = "written_rate", MFS_FIELD(F64, struct mfs_top_mount, written_rate)},
        {.name = "sent_bytes", MFS_FIELD(U64, struct mfs_top_mount, sent_bytes)},
        {.name = "received_bytes", MFS_FIELD(U64, struct mfs_top_mount, received_bytes)},
        {.name = "sent_rate", MFS_FIELD(F64, struct mfs_top_mount, sent_rate)},
        {.name = "received_rate", MFS_FIELD(F64, struct mfs_top_mount, received_rate)},
        {.name = "p50", MFS_FIELD(F64, struct mfs_top_mount, p50)},
        {.name = "p99", MFS_FIELD(F64, struct mfs_top_mount, p99)},
        {.name = "max", MFS_FIELD(F64, struct mfs_top_mount, max)},
        {0}}};

static const struct mfs_schema op_schema = {
    "operation", sizeof(struct mfs_top_op),
    (const struct mfs_field[]){
        {.name = "name", MFS_FIELD(STR, struct mfs_top_op, name)},
        {.name = "operations", MFS_FIELD(U64, struct mfs_top_op, operations)},
        {.name = "errors", MFS_FIELD(U64, struct mfs_top_op, errors)},
        {.name = "seconds", MFS_FIELD(F64, struct mfs_top_op, seconds)},
        {.name = "max", MFS_FIELD(F64, struct mfs_top_op, max)},
        {.name = "operations_rate", MFS_FIELD(F64, struct mfs_top_op, operations_rate)},
        {.name = "errors_rate", MFS_FIELD(F64, struct mfs_top_op, errors_rate)},
        {.name = "mean", MFS_FIELD(F64, struct mfs_top_op, mean)},
        {0}}};

const struct mfs_schema mfs_top_schema = {
    "top", sizeof(struct mfs_top_sample),
    (const struct mfs_field[]){
        {.name = "status",
         MFS_FIELD(OBJECT, struct mfs_top_sample, status),
         .sub = &mfs_status_schema},
        {.name = "moves", MFS_FIELD_LIST(struct mfs_top_sample, move, nmoves, &move_schema)},
        {.name = "mounts", MFS_FIELD_LIST(struct mfs_top_sample, mount, nmounts, &mount_schema)},
        {.name = "operations", MFS_FIELD_LIST(struct mfs_top_sample, op, nops, &op_schema)},
        {.name = "files",
         MFS_FIELD_LIST(struct mfs_top_sample, file, nfiles, &mfs_mounts_hot_schema)},
        {.name = "directories",
         MFS_FIELD_LIST(struct mfs_top_sample, dir, ndirs, &mfs_mounts_hot_schema)},
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

static void take_moves(struct mfs_top_sample *s, const struct mfs_top_sample *before)
{
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
        take_rate(m, same_move(before, m), before ? s->when - before->when : 0);
    }
    qsort(s->move, s->nmoves, sizeof *s->move, moving_first);
}

/* ---- mounts ---------------------------------------------------------------------------------- */

static const struct mfs_top_mount *same_mount(const struct mfs_top_sample *s,
                                              const struct mfs_top_mount *m)
{
    for (uint32_t i = 0; s && i < s->nmounts; i++)
        if (s->mount[i].pid == m->pid && !strcmp(s->mount[i].path, m->path) &&
            !strcmp(s->mount[i].node, m->node))
            return &s->mount[i];
    return NULL;
}

static double rate(uint64_t now, uint64_t was, int64_t elapsed)
{
    return now > was && elapsed > 0 ? (double)(now - was) / ((double)elapsed / MFS_SEC) : 0;
}

/* A client tells now and then: what it has told before is not news of now. */
static void take_rates(struct mfs_top_mount *m, const struct mfs_top_mount *was, int64_t when)
{
    int64_t elapsed = was ? m->at - was->at : 0;

    if (!was || when - m->at >= SILENT)
        return;
    if (elapsed < NEWS) {
        m->at = was->at;
        m->operations_rate = was->operations_rate;
        m->errors_rate = was->errors_rate;
        m->read_rate = was->read_rate;
        m->written_rate = was->written_rate;
        m->sent_rate = was->sent_rate;
        m->received_rate = was->received_rate;
        return;
    }
    m->operations_rate = rate(m->operations, was->operations, elapsed);
    m->errors_rate = rate(m->errors, was->errors, elapsed);
    m->read_rate = rate(m->read_bytes, was->read_bytes, elapsed);
    m->written_rate = rate(m->written_bytes, was->written_bytes, elapsed);
    m->sent_rate = rate(m->sent_bytes, was->sent_bytes, elapsed);
    m->received_rate = rate(m->received_bytes, was->received_bytes, elapsed);
}

static int by_path(const void *a, const void *b)
{
    const struct mfs_top_mount *x = a, *y = b;
    int rc = strverscmp(x->path, y->path);

    return rc ? rc : strverscmp(x->node, y->node);
}

static void take_mounts(struct mfs_top_sample *s, const struct mfs_mounts *mounts,
                        const struct mfs_top_sample *before)
{
    for (uint32_t i = 0; mounts && i < mounts->n; i++) {
        const struct mfs_mount *from = &mounts->mount[i];
        struct mfs_top_mount *m = &s->mount[s->nmounts++];

        memcpy(m->path, from->path, sizeof m->path);
        memcpy(m->node, from->node, sizeof m->node);
        m->pid = from->pid;
        m->at = s->when - (int64_t)from->age_ms * MFS_MSEC;
        m->operations = from->operations;
        m->errors = from->errors;
        m->read_bytes = from->read_bytes;
        m->written_bytes = from->written_bytes;
        m->sent_bytes = from->sent_bytes;
        m->received_bytes = from->received_bytes;
        m->p50 = from->p50;
        m->p99 = from->p99;
        m->max = from->max;
        take_rates(m, same_mount(before, m), s->when);
    }
    if (s->nmounts)
        qsort(s->mount, s->nmounts, sizeof *s->mount, by_path);
}

/* ---- operations ------------------------------------------------------------------------------ */

static const struct mfs_top_op *same_op(const struct mfs_top_sample *s, const char *name)
{
    for (uint32_t i = 0; s && i < s->nops; i++)
        if (!strcmp(s->op[i].name, name))
            return &s->op[i];
    return NULL;
}

static int by_op_rate(const void *a, const void *b)
{
    const struct mfs_top_op *x = a, *y = b;

    if (x->operations_rate > y->operations_rate || x->operations_rate < y->operations_rate)
        return x->operations_rate > y->operations_rate ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* When a client last told anything: its age counts, not the sample's time, as what cm and the nodes
 * answer may be some seconds old, now more and now less. 0: none has. */
static int64_t last_told(const struct mfs_top_sample *s)
{
    int64_t last = 0;

    for (uint32_t i = 0; i < s->nmounts; i++)
        if (s->mount[i].operations && s->mount[i].at > last)
            last = s->mount[i].at;
    return last;
}

/* Clients tell every 2 s: within less not each has told anew, which says nothing. A client that is
 * gone takes what it has done along. */
static void take_op_rates(struct mfs_top_op *op, const struct mfs_top_op *was, bool old,
                          int64_t elapsed)
{
    if (!was)
        return;
    if (old) {
        op->operations = was->operations;
        op->errors = was->errors;
        op->seconds = was->seconds;
        op->operations_rate = was->operations_rate;
        op->errors_rate = was->errors_rate;
        op->mean = was->mean;
        return;
    }
    op->operations_rate = rate(op->operations, was->operations, elapsed);
    op->errors_rate = rate(op->errors, was->errors, elapsed);
    if (op->operations > was->operations && op->seconds > was->seconds)
        op->mean = (op->seconds - was->seconds) / (double)(op->operations - was->operations);
}

static int take_ops(struct mfs_top_sample *s, const struct mfs_mounts *mounts,
                    const struct mfs_top_sample *before)
{
    int64_t told = last_told(s), elapsed = before ? told - before->ops_at : 0;
    bool old = before && before->nops && elapsed < OPS_EACH && s->when - told < SILENT;
    uint32_t n = mounts ? mounts->nops : 0;

    s->op = calloc(n + 1, sizeof *s->op);
    if (!s->op)
        return -ENOMEM;
    s->ops_at = old ? before->ops_at : told;
    for (uint32_t i = 0; i < n; i++) {
        const struct mfs_mounts_op *from = &mounts->op[i];
        struct mfs_top_op *op = &s->op[s->nops++];

        memcpy(op->name, from->name, sizeof op->name);
        op->operations = from->operations;
        op->errors = from->errors;
        op->seconds = from->seconds;
        op->max = from->max;
        take_op_rates(op, same_op(before, op->name), old, elapsed);
    }
    if (s->nops)
        qsort(s->op, s->nops, sizeof *s->op, by_op_rate);
    return 0;
}

static int take_hot(struct mfs_mounts_hot **to, uint32_t *count, const struct mfs_mounts_hot *from,
                    uint32_t n)
{
    *to = calloc(n + 1, sizeof **to);
    if (!*to)
        return -ENOMEM;
    if (n)
        memcpy(*to, from, n * sizeof **to);
    *count = n;
    return 0;
}

int mfs_top_make(struct mfs_top_sample *s, int64_t when, struct mfs_status *status,
                 const struct mfs_mounts *mounts, const struct mfs_top_sample *before)
{
    *s = (struct mfs_top_sample){.when = when, .status = *status};
    *status = (struct mfs_status){0};
    s->move = calloc(s->status.nmoves + 1, sizeof *s->move);
    s->mount = calloc((mounts ? mounts->n : 0) + 1, sizeof *s->mount);
    s->event = calloc(MFS_TOP_EVENTS, sizeof *s->event);
    if (s->move && s->mount)
        take_mounts(s, mounts, before); /* operations' rates need when these told */
    if (!s->move || !s->mount || !s->event || take_ops(s, mounts, before) ||
        take_hot(&s->file, &s->nfiles, mounts ? mounts->file : NULL, mounts ? mounts->nfiles : 0) ||
        take_hot(&s->dir, &s->ndirs, mounts ? mounts->dir : NULL, mounts ? mounts->ndirs : 0)) {
        mfs_top_clear(s);
        return -ENOMEM;
    }
    take_moves(s, before);
    return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct sorting {
    const struct mfs_top_sample *s;
    enum mfs_top_order order;
};

static double operations_at(const struct mfs_top_sample *s, const char *node)
{
    double sum = 0;

    for (uint32_t i = 0; i < s->nmounts; i++)
        if (!strcmp(s->mount[i].node, node))
            sum += s->mount[i].operations_rate;
    return sum;
}

static double value(const struct sorting *of, const struct mfs_status_node *n)
{
    switch (of->order) {
    case MFS_TOP_BY_MEMORY:
        return n->memory_capacity && n->memory_used != MFS_UNKNOWN_U64
                   ? (double)n->memory_used / (double)n->memory_capacity
                   : 0;
    case MFS_TOP_BY_IN:
        return isnan(n->bandwidth_in) ? 0 : n->bandwidth_in;
    case MFS_TOP_BY_OUT:
        return isnan(n->bandwidth_out) ? 0 : n->bandwidth_out;
    case MFS_TOP_BY_OPERATIONS:
        return operations_at(of->s, n->name);
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct sorting *of = arg;
    const struct mfs_status_node *x = &of->s->status.node[*(const uint32_t *)a];
    const struct mfs_status_node *y = &of->s->status.node[*(const uint32_t *)b];
    double vx = value(of, x), vy = value(of, y);

    if (vx > vy || vx < vy)
        return vx > vy ? -1 : 1;
    return strverscmp(x->name, y->name);
}

static int compare_mounts(const void *a, const void *b, void *arg)
{
    const struct sorting *of = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    double vx = of->s->mount[x].operations_rate, vy = of->s->mount[y].operations_rate;

    if (of->order == MFS_TOP_BY_OPERATIONS && (vx > vy || vx < vy))
        return vx > vy ? -1 : 1;
    return (x > y) - (x < y);
}

static void sort(const struct mfs_top_sample *s, enum mfs_top_order order, uint32_t *out,
                 uint32_t n, int (*by)(const void *a, const void *b, void *arg))
{
    struct sorting of = {s, order};

    for (uint32_t i = 0; i < n; i++)
        out[i] = i;
    if (n)
        qsort_r(out, n, sizeof *out, by, &of);
}

void mfs_top_sort(const struct mfs_top_sample *s, enum mfs_top_order order, uint32_t *out)
{
    sort(s, order, out, s->status.nnodes, compare);
}

void mfs_top_sort_mounts(const struct mfs_top_sample *s, enum mfs_top_order order, uint32_t *out)
{
    sort(s, order, out, s->nmounts, compare_mounts);
}

/* ---- figures --------------------------------------------------------------------------------- */

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

static int render_mounts(const struct mfs_top_sample *s, struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "\nmounts:\n");

    for (uint32_t i = 0; i < s->nmounts && !rc; i++) {
        const struct mfs_top_mount *m = &s->mount[i];
        char p50[16], p99[16];

        rc = mfs_buf_printf(out,
                            "  %s at %s: %.0f operations/s, reads %s/s, writes %s/s; half within "
                            "%s, 99%% within %s\n",
                            m->path, m->node, m->operations_rate,
                            MFS_TEXT_BYTES((uint64_t)m->read_rate),
                            MFS_TEXT_BYTES((uint64_t)m->written_rate),
                            mfs_show_duration(m->p50, p50), mfs_show_duration(m->p99, p99));
    }
    return rc;
}

static int render_work(const struct mfs_top_sample *s, struct mfs_buf *out)
{
    char mean[16];
    int rc = mfs_buf_printf(out, "\noperations:\n");

    for (uint32_t i = 0; i < s->nops && !rc && s->op[i].operations_rate > 0; i++)
        rc = mfs_buf_printf(out, "  %s: %.0f/s, %.0f errors/s, %s on average\n", s->op[i].name,
                            s->op[i].operations_rate, s->op[i].errors_rate,
                            mfs_show_duration(s->op[i].mean, mean));
    if (!rc && s->nfiles)
        rc = mfs_buf_printf(out, "\nfiles and directories, by samples:\n");
    for (uint32_t i = 0; i < s->nfiles && !rc; i++)
        rc = mfs_buf_printf(out, "  %s: %.0f operations/s on %s\n", s->file[i].name,
                            s->file[i].rate, MFS_TEXT_COUNT(s->file[i].mounts, "mount"));
    for (uint32_t i = 0; i < s->ndirs && !rc; i++)
        rc = mfs_buf_printf(out, "  %s/: %.0f operations/s on %s\n", s->dir[i].name, s->dir[i].rate,
                            MFS_TEXT_COUNT(s->dir[i].mounts, "mount"));
    return rc;
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
    if (!rc && s->nmounts)
        rc = render_mounts(s, out);
    if (!rc && s->nops)
        rc = render_work(s, out);
    if (!rc && s->nevents)
        rc = mfs_buf_printf(out, "\n");
    for (uint32_t i = s->nevents > 10 ? s->nevents - 10 : 0; i < s->nevents && !rc; i++)
        rc = mfs_show_event(&s->event[i], out);
    return rc;
}
