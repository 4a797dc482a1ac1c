/* `last` is a copy of the newest table that was sent, `step` what each of the last ones changed: so
 * what a node lacks that has the table of some epoch is what all steps since have changed, as it is
 * now. A whole table is written for each node that gets it, and stays in cm's memory until the
 * node has taken it; hence not for all nodes at a time. */
#include "cm/nodes/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cm/nodes/quorum.h"

#define STEPS       512U         /* remembered */
#define WHOLE_BYTES (256U << 20) /* of whole tables on their way, … */
#define PART_BYTES  256U         /* … by so many for each partition, at most */
#define WHOLE_LEAST 4U           /* nodes */

/* A change from one table to the next. */
struct step {
    uint64_t from;
    uint64_t digest; /* of the table before */
    uint32_t n;
    uint32_t *index; /* n partitions, ascending */
};

struct send {
    struct mfs_cm *cm;
    struct mfs_node *node;
    struct mfs_cm_subscriber *client; /* or this; NULL for both: it has hung up */
    struct mfs_conn *conn;            /* with a reference */
    bool whole;                       /* counts among those on their way */
    uint64_t before;                  /* what was sent last before this */
    int64_t timeout;
    void (*done)(void *arg, const struct mfs_err *err, const void *reply);
    void *arg;
    struct send *next; /* of those that wait */
};

struct mfs_tables {
    struct mfs_table *last; /* NULL: none was sent */
    uint64_t digest;
    struct step step[STEPS]; /* the newest at nsteps - 1, modulo STEPS */
    uint64_t nsteps;
    struct mfs_table_change change; /* made last, from change.base to the newest; base 0: none */
    struct send *first, **end;      /* that wait for their turn to have the whole */
    uint32_t whole;                 /* on their way */
    bool ends;
};

/* ---- what has changed ------------------------------------------------------------------------ */

static void forget_change(struct mfs_tables *t)
{
    free(t->change.patch);
    t->change = (struct mfs_table_change){0};
}

static void forget_steps(struct mfs_tables *t)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        free(t->step[i].index);
        t->step[i] = (struct step){0};
    }
    t->nsteps = 0;
    forget_change(t);
}

static int note_step(struct mfs_tables *t, const struct mfs_table *now)
{
    struct step *s = &t->step[t->nsteps % STEPS];
    uint32_t n = 0, *index;

    for (uint32_t i = 0; i < now->nparts; i++)
        n += !mfs_partition_equal(&t->last->part[i], &now->part[i]);
    index = calloc(n + 1, sizeof *index);
    if (!index)
        return -ENOMEM;
    free(s->index);
    *s = (struct step){.from = t->last->epoch, .digest = t->digest, .index = index};
    for (uint32_t i = 0; i < now->nparts; i++)
        if (!mfs_partition_equal(&t->last->part[i], &now->part[i])) {
            t->last->part[i] = now->part[i];
            index[s->n++] = i;
        }
    t->nsteps++;
    return 0;
}

/* Without memory the steps are forgotten, and all get the whole. */
static void note(struct mfs_tables *t, const struct mfs_table *now)
{
    if (t->last && t->last->epoch == now->epoch)
        return;
    forget_change(t);
    if (!t->last || t->last->nparts != now->nparts || note_step(t, now)) {
        forget_steps(t);
        free(t->last);
        t->last = mfs_table_dup(now);
        if (!t->last)
            return;
    }
    t->last->epoch = now->epoch;
    t->last->growing = now->growing;
    t->last->replicated = now->replicated;
    t->last->failovers = now->failovers;
    t->digest = mfs_table_digest(t->last);
}

static int by_index(const void *a, const void *b)
{
    uint32_t x = ((const struct mfs_table_patch *)a)->index,
             y = ((const struct mfs_table_patch *)b)->index;

    return (x > y) - (x < y);
}

static void without_doubles(struct mfs_table_change *c)
{
    uint32_t n = 0;

    qsort(c->patch, c->npatches, sizeof *c->patch, by_index);
    for (uint32_t i = 0; i < c->npatches; i++)
        if (!n || c->patch[n - 1].index != c->patch[i].index)
            c->patch[n++] = c->patch[i];
    c->npatches = n;
}

/* From steps [first, nsteps). */
static int make_change(struct mfs_tables *t, uint64_t first)
{
    struct mfs_table_change c = {.epoch = t->last->epoch,
                                 .growing = t->last->growing,
                                 .replicated = t->last->replicated,
                                 .failovers = t->last->failovers};
    uint64_t n = 0, digest = t->digest;

    c.base = t->last->epoch;
    for (uint64_t i = first; i < t->nsteps; i++)
        n += t->step[i % STEPS].n;
    if (first < t->nsteps) {
        c.base = t->step[first % STEPS].from;
        digest = t->step[first % STEPS].digest;
    }
    if (n > t->last->nparts / MFS_TABLE_WHOLE_FROM)
        return -E2BIG;
    c.patch = calloc(n + 1, sizeof *c.patch);
    if (!c.patch)
        return -ENOMEM;
    for (uint64_t i = first; i < t->nsteps; i++)
        for (uint32_t k = 0; k < t->step[i % STEPS].n; k++) {
            uint32_t index = t->step[i % STEPS].index[k];

            c.patch[c.npatches++] = (struct mfs_table_patch){index, t->last->part[index]};
        }
    without_doubles(&c);
    mfs_table_digest_text(digest, c.digest);
    forget_change(t);
    t->change = c;
    return 0;
}

/* What one lacks that has the table of that epoch; NULL: it has to have the whole. */
static const struct mfs_table_change *change_since(struct mfs_tables *t, uint64_t epoch)
{
    uint64_t kept = t->nsteps < STEPS ? t->nsteps : STEPS, at = t->nsteps;

    if (!epoch || !t->last || t->last->epoch < epoch)
        return NULL;
    if (t->change.base == epoch)
        return &t->change;
    while (t->nsteps - at < kept && t->last->epoch != epoch &&
           t->step[(at - 1) % STEPS].from >= epoch)
        at--;
    if (t->last->epoch != epoch && (at == t->nsteps || t->step[at % STEPS].from != epoch))
        return NULL;
    return make_change(t, at) ? NULL : &t->change;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void send_waiting(struct mfs_cm *cm);

static void free_send(struct send *s)
{
    mfs_conn_put(s->conn);
    free(s);
}

static void fail(struct send *s, int rc)
{
    struct mfs_err err;

    mfs_err_set(&err, rc, "table: %s", strerror(-rc));
    s->done(s->arg, &err, NULL);
    free_send(s);
}

static uint64_t *sent_to(struct send *s)
{
    return s->node ? &s->node->sent : &s->client->sent;
}

/* Its connection is the one that it was asked for on. */
static bool is_there(const struct send *s)
{
    if (!mfs_conn_is_up(s->conn))
        return false;
    if (s->node)
        return s->node->conn == s->conn;
    for (const struct mfs_cm_subscriber *c = s->cm->subscribers; c; c = c->next)
        if (c == s->client && c->conn == s->conn)
            return true;
    return false;
}

static void wait_for_turn(struct send *s)
{
    struct mfs_tables *t = s->cm->tables;

    s->next = NULL;
    *t->end = s;
    t->end = &s->next;
}

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct send *s = arg;
    struct mfs_cm *cm = s->cm;
    struct mfs_tables *t = cm->tables;
    bool again = err && err->code == -ESTALE && !s->whole && !t->ends && is_there(s);

    (void)reply;
    if (s->whole)
        t->whole--;
    s->whole = false;
    if (err && is_there(s) && *sent_to(s) > s->before)
        *sent_to(s) = err->code == -ESTALE ? 0 : s->before; /* it may never have been sent */
    if (again) {
        wait_for_turn(s);
    } else {
        s->done(s->arg, err, NULL);
        free_send(s);
    }
    send_waiting(cm);
}

static int ask(struct send *s, const struct mfs_table_change *change)
{
    struct mfs_msg_table m = {0};
    int rc;

    if (change)
        m.change = *change;
    else
        m.table = s->cm->state.table;
    rc = s->node ? mfs_node_ask(s->node, MFS_MSG_TABLE, &m, s->timeout, answered, s)
                 : mfs_client_ask(s->cm, s->conn, MFS_MSG_TABLE, &m, s->timeout, answered, s);
    if (!rc) {
        s->before = *sent_to(s);
        *sent_to(s) = s->cm->state.table->epoch;
        s->whole = !change;
        s->cm->tables->whole += s->whole;
    }
    return rc;
}

static uint32_t whole_most(const struct mfs_cm *cm)
{
    uint32_t n = WHOLE_BYTES / (PART_BYTES * cm->state.nparts + 1);

    return n > WHOLE_LEAST ? n : WHOLE_LEAST;
}

/* A change may have become enough meanwhile. */
static void send_waiting(struct mfs_cm *cm)
{
    struct mfs_tables *t = cm->tables;

    while (t->first && !t->ends && t->whole < whole_most(cm)) {
        struct send *s = t->first;
        int rc = -ECONNABORTED;

        t->first = s->next;
        if (!t->first)
            t->end = &t->first;
        if (is_there(s)) {
            note(t, cm->state.table);
            rc = ask(s, change_since(t, *sent_to(s)));
        }
        if (rc)
            fail(s, rc);
    }
}

static int begin(struct send *what)
{
    struct mfs_tables *t = what->cm->tables;
    struct send *s = malloc(sizeof *s);
    const struct mfs_table_change *change;
    int rc = 0;

    if (!s)
        return -ENOMEM;
    *s = *what;
    mfs_conn_get(s->conn);
    note(t, s->cm->state.table);
    change = change_since(t, *sent_to(s));
    if (change || (!t->first && t->whole < whole_most(s->cm)))
        rc = ask(s, change);
    else
        wait_for_turn(s);
    if (rc)
        free_send(s);
    return rc;
}

int mfs_tables_ask(struct mfs_node *n, int64_t timeout,
                   void (*done)(void *arg, const struct mfs_err *err, const void *reply), void *arg)
{
    struct send s = {
        .cm = n->cm, .node = n, .conn = n->conn, .timeout = timeout, .done = done, .arg = arg};

    return begin(&s);
}

int mfs_tables_ask_client(struct mfs_cm *cm, struct mfs_cm_subscriber *c, int64_t timeout,
                          void (*done)(void *arg, const struct mfs_err *err, const void *reply),
                          void *arg)
{
    struct send s = {
        .cm = cm, .client = c, .conn = c->conn, .timeout = timeout, .done = done, .arg = arg};

    return begin(&s);
}

/* ---- life ------------------------------------------------------------------------------------ */

int mfs_tables_init(struct mfs_cm *cm)
{
    cm->tables = calloc(1, sizeof *cm->tables);
    if (!cm->tables)
        return -ENOMEM;
    cm->tables->end = &cm->tables->first;
    return 0;
}

void mfs_tables_end(struct mfs_cm *cm)
{
    struct mfs_tables *t = cm->tables;

    if (!t)
        return;
    t->ends = true;
    while (t->first) {
        struct send *s = t->first;

        t->first = s->next;
        if (!t->first)
            t->end = &t->first; /* failing it may push again */
        fail(s, -ECONNABORTED);
    }
}

void mfs_tables_fini(struct mfs_cm *cm)
{
    if (!cm->tables)
        return;
    mfs_tables_end(cm);
    forget_steps(cm->tables);
    free(cm->tables->last);
    free(cm->tables);
    cm->tables = NULL;
}
