/* Tables for people: columns as wide as what is in them. */
#include "cm/cli/render.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "show/figures.h"
#include "show/json.h"

#define CELL 64

enum column { NODE, ADDRESS, STATE, PARTS, USED, CAPACITY, USE, IN, OUT, LINK, SHARE, COLUMNS };

static const struct {
    const char *title;
    bool right; /* aligned */
} columns[COLUMNS] = {
    [NODE] = {"NODE", false},  [ADDRESS] = {"ADDRESS", false}, [STATE] = {"STATE", false},
    [PARTS] = {"PARTS", true}, [USED] = {"USED", true},        [CAPACITY] = {"CAPACITY", true},
    [USE] = {"USE", true},     [IN] = {"IN/s", true},          [OUT] = {"OUT/s", true},
    [LINK] = {"LINK/s", true}, [SHARE] = {"SHARE", true},
};

struct row {
    char cell[COLUMNS][CELL];
    const char *mount;
};

/* What the link carries each way, and how that is known. */
static void fill_link(struct row *r, const struct mfs_status_node *n)
{
    if (n->bandwidth_capacity > 0)
        snprintf(r->cell[LINK], CELL, "%s %s", MFS_TEXT_BYTES((uint64_t)n->bandwidth_capacity),
                 n->bandwidth_from);
    else
        snprintf(r->cell[LINK], CELL, "-");
}

static void fill(struct row *r, const struct mfs_status_node *n)
{
    snprintf(r->cell[NODE], CELL, "%.60s", n->name);
    snprintf(r->cell[ADDRESS], CELL, "%.60s", n->address);
    snprintf(r->cell[STATE], CELL, "%s", n->state);
    snprintf(r->cell[PARTS], CELL, "%u", n->partitions);
    mfs_text_bytes(n->memory_used, r->cell[USED], CELL);
    mfs_text_bytes(n->memory_capacity, r->cell[CAPACITY], CELL);
    mfs_show_share(n->memory_used, n->memory_capacity, 1, r->cell[USE]);
    mfs_show_rate(n->bandwidth_in, r->cell[IN]);
    mfs_show_rate(n->bandwidth_out, r->cell[OUT]);
    fill_link(r, n);
    snprintf(r->cell[SHARE], CELL, "%.2f", n->share);
    r->mount = *n->mount ? n->mount : "-";
}

static int put_row(const struct row *r, const int *width, struct mfs_buf *out)
{
    int rc = 0;

    for (int c = 0; c < COLUMNS && !rc; c++)
        rc = mfs_buf_printf(out, columns[c].right ? "%*s  " : "%-*s  ", width[c], r->cell[c]);
    return rc ? rc : mfs_buf_printf(out, "%s\n", r->mount);
}

static int put_table(const struct mfs_status *s, struct mfs_buf *out)
{
    struct row *rows = calloc(s->nnodes + 1, sizeof *rows);
    int width[COLUMNS] = {0}, rc = 0;

    if (!rows)
        return -ENOMEM;
    for (int c = 0; c < COLUMNS; c++)
        snprintf(rows[0].cell[c], CELL, "%s", columns[c].title);
    rows[0].mount = "MOUNT";
    for (uint32_t i = 0; i < s->nnodes; i++)
        fill(&rows[i + 1], &s->node[i]);
    for (uint32_t i = 0; i <= s->nnodes; i++)
        for (int c = 0; c < COLUMNS; c++)
            if ((int)strlen(rows[i].cell[c]) > width[c])
                width[c] = (int)strlen(rows[i].cell[c]);
    for (uint32_t i = 0; i <= s->nnodes && !rc; i++)
        rc = put_row(&rows[i], width, out);
    free(rows);
    return rc;
}

static int put_queue(const struct mfs_status *s, struct mfs_buf *out)
{
    int rc = 0;

    for (uint32_t i = 0; i < s->nnodes && !rc; i++)
        if (s->node[i].waits_for[0])
            rc = mfs_buf_printf(out, "%s waits: %s\n", s->node[i].name, s->node[i].waits_for);
    return rc;
}

static int put_moves(const struct mfs_status *s, struct mfs_buf *out)
{
    int rc = s->nmoves ? mfs_buf_printf(out, "\nmoving:\n") : 0;

    for (uint32_t i = 0; i < s->nmoves && !rc; i++)
        rc = mfs_buf_printf(out, "  partition %-5u  node-%u -> node-%u  %-8s  %s of %s\n",
                            s->move[i].partition, s->move[i].from, s->move[i].to, s->move[i].step,
                            MFS_TEXT_BYTES(s->move[i].bytes),
                            MFS_TEXT_BYTES(s->move[i].bytes_total));
    return rc;
}

/* By node, then by the replica's; partitions in order. */
static int by_nodes(const void *a, const void *b)
{
    const struct mfs_status_place *x = *(const struct mfs_status_place *const *)a;
    const struct mfs_status_place *y = *(const struct mfs_status_place *const *)b;
    int rc = strverscmp(x->node, y->node);

    if (!rc)
        rc = strverscmp(x->replica, y->replica);
    return rc ? rc : (x->partition > y->partition) - (x->partition < y->partition);
}

static bool same_nodes(const struct mfs_status_place *x, const struct mfs_status_place *y)
{
    return !strcmp(x->node, y->node) && !strcmp(x->replica, y->replica);
}

/* A line for each pair of nodes, with the partitions of the one that have their replica on the
 * other. */
static int put_places(const struct mfs_status *s, struct mfs_buf *out)
{
    const struct mfs_status_place **p = calloc(s->nplaces + 1, sizeof(struct mfs_status_place *));
    int rc = p ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < s->nplaces && !rc; i++)
        p[i] = &s->place[i];
    if (!rc)
        qsort(p, s->nplaces, sizeof *p, by_nodes);
    for (uint32_t i = 0; i < s->nplaces && !rc; i++) {
        if (!i || !same_nodes(p[i], p[i - 1]))
            rc = mfs_buf_printf(out, "%s  %s, %s%s:", i ? "\n" : "", p[i]->node,
                                p[i]->replica[0] ? "replica on " : "no replica", p[i]->replica);
        if (!rc)
            rc = mfs_buf_printf(out, " %u", p[i]->partition);
    }
    free(p);
    return rc || !s->nplaces ? rc : mfs_buf_printf(out, "\n\n");
}

/* Whose figures are old, or missing in the sums. */
static int put_silent(const struct mfs_status *s, struct mfs_buf *out)
{
    if (!s->silent_nodes && !s->silent_partitions)
        return 0;
    return mfs_buf_printf(out,
                          "no answer: %s, %s; figures are as told last, and nothing is known of "
                          "%s\n\n",
                          MFS_TEXT_COUNT(s->silent_nodes, "node"),
                          MFS_TEXT_COUNT(s->silent_partitions, "partition"),
                          MFS_TEXT_COUNT(s->unknown_partitions, "partition"));
}

int mfs_render_status(const struct mfs_status *s, struct mfs_buf *out)
{
    uint64_t used, capacity;
    int rc;

    mfs_status_memory(s, &used, &capacity);
    rc = mfs_buf_printf(
        out,
        "%s: %s, %s, %s (beta %g), epoch %llu\n"
        "memory: %s of %s used (%s), %s; policy %s, migration %s, weights "
        "%s%s\n\n",
        s->name, s->state, MFS_TEXT_COUNT(s->nnodes, "node"),
        MFS_TEXT_COUNT(s->partitions, "partition"), s->beta, (unsigned long long)s->epoch,
        capacity ? MFS_TEXT_BYTES(used) : "-", capacity ? MFS_TEXT_BYTES(capacity) : "-",
        isnan(s->utilization) ? "-" : MFS_SHOW_SHARE(used, capacity, 1),
        s->inodes == MFS_UNKNOWN_U64 ? "- inodes" : MFS_TEXT_COUNT(s->inodes, "inode"), s->policy,
        s->migration, s->weights,
        strcmp(s->weights, "auto") ? ""
        : s->by_bandwidth          ? " (bandwidth)"
                                   : " (memory)");
    if (!rc)
        rc = put_silent(s, out);
    if (!rc && s->will_lose)
        rc = mfs_buf_printf(out,
                            "will lose: %s of nodes that end, for which others have no room; cm "
                            "checkpoint DIR saves it\n\n",
                            MFS_TEXT_BYTES(s->will_lose));
    if (!rc && s->replicas)
        rc = mfs_buf_printf(out, "replicas: %u; %u of %u partitions have none just now\n",
                            s->replicas, s->unprotected, s->partitions);
    if (!rc && s->replicas)
        rc = put_places(s, out);
    if (!rc)
        rc = put_table(s, out);
    if (!rc && s->checkpoint_dir[0])
        rc = mfs_buf_printf(out, "\nlast checkpoint: %s, %s\n", s->checkpoint_time,
                            s->checkpoint_dir);
    if (!rc)
        rc = put_queue(s, out);
    return rc ? rc : put_moves(s, out);
}

/* ---- changes of the nodes -------------------------------------------------------------------- */

int mfs_render_progress(const struct mfs_progress *p, struct mfs_buf *out)
{
    int rc = 0;

    if (p->what[0])
        rc = mfs_buf_printf(out, "%s", p->what);
    if (!rc && p->bytes_total)
        rc = mfs_buf_printf(out, ": %s of %s", MFS_TEXT_BYTES(p->bytes),
                            MFS_TEXT_BYTES(p->bytes_total));
    if (!rc && p->partitions_total)
        rc = mfs_buf_printf(out, " (%u of %u partitions)", p->partitions, p->partitions_total);
    if (!rc && p->bytes_total)
        rc = mfs_buf_printf(out, ", %s/s", MFS_TEXT_BYTES((uint64_t)p->rate));
    if (!rc && p->eta_ms > 0)
        rc = mfs_buf_printf(out, ", %.0f s left", p->eta_ms / 1e3);
    return rc;
}

static int put_plan(const char *name, const struct mfs_scale_report *r, struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "%s: would go from %u to %s and move %s, %s\n", name, r->from,
                            MFS_TEXT_COUNT(r->to, "node"),
                            MFS_TEXT_COUNT(r->partitions_moved, "partition"),
                            MFS_TEXT_BYTES(r->bytes_moved));

    for (uint32_t i = 0; i < r->nmoves && !rc; i++)
        rc = mfs_buf_printf(out, "  partition %-5u  node-%u -> node-%u  %s\n", r->move[i].index,
                            r->move[i].from, r->move[i].to, MFS_TEXT_BYTES(r->move[i].bytes));
    return rc;
}

int mfs_render_scale(const char *name, const struct mfs_scale_report *r, bool dry_run,
                     struct mfs_buf *out)
{
    int rc;

    if (dry_run)
        rc = put_plan(name, r, out);
    else
        rc = mfs_buf_printf(out,
                            "%s: %u -> %s in %.2f s; %s moved, %s; blocked %.1f ms "
                            "at most, %.1f ms in all\n",
                            name, r->from, MFS_TEXT_COUNT(r->to, "node"), r->duration_ms / 1e3,
                            MFS_TEXT_COUNT(r->partitions_moved, "partition"),
                            MFS_TEXT_BYTES(r->bytes_moved), r->blocked_ms_max, r->blocked_ms_total);
    if (!rc && r->partitions_lost)
        rc = mfs_buf_printf(out, "%s: %s, last known to hold %s, %s empty\n", name,
                            MFS_TEXT_COUNT(r->partitions_lost, "partition"),
                            MFS_TEXT_BYTES(r->bytes_lost), dry_run ? "would begin" : "have begun");
    if (!rc && r->lower_bound_ms > 0)
        rc = mfs_buf_printf(out, "%s: no way of copying takes less than %.2f s over these links\n",
                            name, r->lower_bound_ms / 1e3);
    return rc;
}

/* ---- what may be shown ----------------------------------------------------------------------- */

int mfs_render_json(const struct mfs_schema *schema, const void *what, struct mfs_buf *out)
{
    return mfs_show_json(schema, what, false, out);
}

void mfs_render_tame(struct mfs_buf *text)
{
    char *at = mfs_buf_data(text), *end = at + mfs_buf_len(text);
    size_t n;

    for (; at + 1 < end; at += n) {
        n = mfs_show_plain(at);
        if (n)
            continue;
        *at = '?';
        n = 1;
    }
}

int mfs_render_print(int rc, struct mfs_buf *b, struct mfs_err *err)
{
    if (!rc)
        rc = mfs_buf_append(b, "", 1);
    if (rc) {
        mfs_err_set(err, rc, "out of memory");
    } else {
        mfs_render_tame(b);
        fwrite(mfs_buf_data(b), 1, mfs_buf_len(b) - 1, stdout);
    }
    mfs_buf_fini(b);
    return rc;
}
