/* Partitions of nodes that are dead for good, and have no replica, begin empty on other nodes:
 *
 *     assign ──► mark ──► publish ──► (the dead nodes go)
 *        └─────────┴──► (given up: all is as before)
 *
 * assign: their new nodes start processes for them, with passwords that nobody else knows. mark:
 * `memefs renew` looks through all other partitions and marks in the new ones what is lost, so that
 * nobody ever reads zeros for it. publish: one save makes them the partitions, and the table goes
 * out. Up to there the state's partitions and the table are as they were, so a cm that is killed
 * begins at the first step again, with the same passwords (state.renewal): each may be repeated. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/change/scale/impl.h"
#include "cm/nodes/metrics.h"
#include "cm/nodes/push.h"
#include "cm/nodes/quorum.h"
#include "cm/partitions/replicas.h"
#include "cm/provider/run.h"
#include "cm/state/events.h"

#define SECRET_BYTES 32
#define LOOK         (200 * MFS_MSEC)
#define ASSIGN_TIME  (60 * MFS_SEC)
#define WAIT_MOST    (120 * MFS_SEC) /* for the new nodes to have done it */
#define MARK_TIME    (1800 * MFS_SEC)
#define MARKS_MOST   3
#define AGAIN        (2 * MFS_SEC)
#define RELEASE_TIME (30 * MFS_SEC)

static_assert(ASSIGN_TIME < WAIT_MOST, "one that was refused is asked again");

struct mfs_renew {
    struct mfs_scale *s;
    struct mfs_assigned_part *assigned; /* of each renewal; port 0: not yet */
    bool *asked;                        /* of each renewal */
    struct mfs_run *run;                /* what marks; NULL: it does not run */
    unsigned marks;
    int64_t until, again_at;
};

/* ---- which, and where ------------------------------------------------------------------------ */

/* Of the nodes that stay the one with the fewest for its memory. */
static const struct mfs_cm_node *choose_node(const struct mfs_cm *cm,
                                             const struct mfs_scale_draft *d, uint32_t part)
{
    const struct mfs_cm_node *best = NULL;
    double least = 0;

    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_cm_node *n = &cm->state.node[i];
        double load = mfs_cm_state_count(&cm->state, n->id);

        if (!mfs_scale_is_there(cm->nodes[i]) || mfs_scale_leaves(d, n) ||
            (cm->state.part[part].replica_step[0] && cm->state.part[part].replica_node == n->id))
            continue;
        for (uint32_t k = 0; k < d->nrenewals; k++)
            load += d->renewal[k].to == n->id;
        load /= (double)n->memory;
        if (!best || load < least) {
            best = n;
            least = load;
        }
    }
    return best;
}

static int add(const struct mfs_cm *cm, struct mfs_scale_draft *d, uint32_t part,
               struct mfs_err *err)
{
    const struct mfs_cm_node *n = choose_node(cm, d, part);
    struct mfs_cm_renewal *r = &d->renewal[d->nrenewals];
    int rc;

    if (!n)
        return mfs_err_set(err, -ENODEV, "no other node can take partition %u", part);
    r->part = part;
    r->to = n->id;
    rc = mfs_random_hex(r->password, SECRET_BYTES);
    if (!rc)
        rc = mfs_random_hex(r->admin_password, SECRET_BYTES);
    if (rc)
        return mfs_err_set(err, rc, "random numbers: %s", strerror(-rc));
    d->nrenewals++;
    d->lost_bytes += cm->part_bytes[part];
    return 0;
}

static bool is_lost(const struct mfs_cm *cm, const struct mfs_scale_draft *d, uint32_t part)
{
    const struct mfs_cm_node *n = mfs_cm_state_node(&cm->state, cm->state.part[part].node);

    return !n || mfs_scale_leaves(d, n);
}

/* What other nodes that are away have is needed to tell what is lost. */
static int check_others(const struct mfs_cm *cm, const struct mfs_scale_draft *d,
                        struct mfs_err *err)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_cm_node *n = &cm->state.node[i];

        if (!mfs_scale_is_there(cm->nodes[i]) && !mfs_scale_leaves(d, n) &&
            mfs_cm_state_count(&cm->state, n->id))
            return mfs_err_set(err, -ENODEV,
                               "%s is not whole, either: without it nothing can tell what is lost; "
                               "forget both in one call if it will not come back",
                               n->name);
    }
    return 0;
}

static int check_consent(const struct mfs_msg_scale *what, const struct mfs_scale_draft *d,
                         struct mfs_err *err)
{
    if (!d->nrenewals || what->yes || what->dry_run)
        return 0;
    return mfs_err_set(err, -EOWNERDEAD,
                       "%s, last known to hold %s, %s no replica: what they hold would be lost, "
                       "and they begin empty on the other nodes; with --yes that is done",
                       MFS_TEXT_COUNT(d->nrenewals, "partition"), MFS_TEXT_BYTES(d->lost_bytes),
                       d->nrenewals == 1 ? "has" : "have");
}

int mfs_renew_choose(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                     struct mfs_scale_draft *d, struct mfs_err *err)
{
    int rc = 0;

    d->renewal = calloc(cm->state.nparts, sizeof *d->renewal);
    if (!d->renewal)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < cm->state.nparts && !rc; i++)
        if (is_lost(cm, d, i))
            rc = add(cm, d, i, err);
    if (!rc && d->nrenewals)
        rc = check_others(cm, d, err);
    return rc ? rc : check_consent(what, d, err);
}

/* ---- the end --------------------------------------------------------------------------------- */

void mfs_renew_fini(struct mfs_scale *s)
{
    struct mfs_renew *r = s->renew;

    if (!r)
        return;
    s->renew = NULL;
    mfs_run_drop(r->run);
    free(r->assigned);
    free(r->asked);
    free(r);
}

static void clear(struct mfs_cm_state *st)
{
    free(st->renewal);
    st->renewal = NULL;
    st->nrenewals = 0;
}

static void end_step(struct mfs_renew *r)
{
    struct mfs_scale *s = r->s;

    mfs_timer_cancel(s->timer);
    s->timer = NULL;
    mfs_renew_fini(s);
    mfs_scale_renewed(s);
}

static void released(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)arg;
    (void)err;
    (void)reply;
}

/* The processes that were started for it end. */
static void give_up(struct mfs_renew *r, int code, const char *why)
{
    struct mfs_cm *cm = r->s->cm;

    for (uint32_t i = 0; i < cm->state.nrenewals; i++) {
        const struct mfs_cm_renewal *one = &cm->state.renewal[i];
        struct mfs_node *n = mfs_nodes_find(cm, one->to);
        struct mfs_msg_release m = {.index = one->part};

        memcpy(m.password, one->password, sizeof m.password);
        if (n && n->conn)
            mfs_node_ask(n, MFS_MSG_RELEASE, &m, RELEASE_TIME, released, NULL);
    }
    clear(&cm->state);
    mfs_scale_failed(r->s, code, "%s", why);
    end_step(r);
}

/* ---- publish --------------------------------------------------------------------------------- */

static void pushed(void *arg, int64_t took, uint32_t missing)
{
    (void)arg;
    (void)took;
    (void)missing;
}

static void become(struct mfs_cm *cm, const struct mfs_cm_renewal *one,
                   const struct mfs_assigned_part *at, struct mfs_table *t, bool final)
{
    const struct mfs_cm_node *n = mfs_cm_state_node(&cm->state, one->to);
    struct mfs_partition *shown = &t->part[one->part];

    shown->node = one->to;
    shown->port = (uint16_t)at->port;
    mfs_text_copy(shown->host, sizeof shown->host, n->address);
    memcpy(shown->unix_path, at->unix_path, sizeof shown->unix_path);
    memcpy(shown->password, one->password, sizeof shown->password);
    shown->era = cm->state.part[one->part].era + 1;
    shown->replica = false;
    if (!final)
        return;
    mfs_replicas_renew(cm, one->part);
    cm->state.part[one->part].node = one->to;
    cm->state.part[one->part].era = shown->era;
    memcpy(cm->state.part[one->part].password, one->password, sizeof one->password);
    memcpy(cm->state.part[one->part].admin_password, one->admin_password,
           sizeof one->admin_password);
    cm->part_bytes[one->part] = 0;
    cm->part_counts[one->part] = (struct mfs_part_counts){0};
}

/* The table in which they are the partitions; final: the state says so, too. NULL: ENOMEM. */
static struct mfs_table *make_table(struct mfs_renew *r, bool final)
{
    struct mfs_cm *cm = r->s->cm;
    struct mfs_table *t = mfs_table_dup(cm->state.table);

    if (!t)
        return NULL;
    t->epoch++;
    t->failovers++; /* what clients know under leases counts no more */
    for (uint32_t i = 0; i < cm->state.nrenewals; i++)
        become(cm, &cm->state.renewal[i], &r->assigned[i], t, final);
    return t;
}

/* From here on there is no way back. */
static void publish(struct mfs_renew *r)
{
    struct mfs_cm *cm = r->s->cm;
    struct mfs_table *t = make_table(r, true);
    int rc;

    if (!t) {
        give_up(r, -ENOMEM, "out of memory");
        return;
    }
    free(cm->state.table);
    cm->state.table = t;
    cm->state.scale.lost = cm->state.nrenewals;
    mfs_metric_add(cm->figures, MFS_CM_LOST_PARTITIONS, 0, cm->state.nrenewals);
    mfs_metric_add(cm->figures, MFS_CM_LOST_BYTES, 0, cm->state.scale.lost_bytes);
    mfs_event_add(cm->paths->events, "cm", "renewed",
                  "%s begin empty, as their nodes are dead; memefs lost lists the files with lost "
                  "bytes, memefs fsck --repair mends names that led there",
                  MFS_TEXT_COUNT(cm->state.nrenewals, "partition"));
    clear(&cm->state);
    rc = mfs_cm_state_save(&cm->state, cm->paths->state);
    if (!rc)
        rc = mfs_push_table(cm, pushed, NULL);
    if (rc)
        mfs_error("renew", "%s", strerror(-rc));
    end_step(r);
}

/* ---- mark ------------------------------------------------------------------------------------ */

static int write_file(struct mfs_renew *r, const char *path)
{
    struct mfs_cm *cm = r->s->cm;
    struct mfs_renewal m = {.table = make_table(r, false), .nparts = cm->state.nrenewals};
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    m.part = calloc(m.nparts, sizeof *m.part);
    rc = m.part && m.table ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < m.nparts && !rc; i++)
        m.part[i].index = cm->state.renewal[i].part;
    if (!rc)
        rc = mfs_schema_encode(&mfs_renewal_schema, &m, true, &b);
    if (!rc)
        rc = mfs_file_note(path, mfs_buf_data(&b), mfs_buf_len(&b), 0600);
    mfs_buf_fini(&b);
    free(m.part);
    free(m.table);
    return rc;
}

static int renewal_path(const struct mfs_cm *cm, char path[PATH_MAX])
{
    return mfs_text_format(path, PATH_MAX, "%s/renewal", cm->paths->dir);
}

static void marked(void *arg, const struct mfs_err *why, const char *output)
{
    struct mfs_renew *r = arg;
    char path[PATH_MAX], text[MFS_ERR_MSG_MAX];

    (void)output; /* in cm.log */
    r->run = NULL;
    if (!renewal_path(r->s->cm, path))
        unlink(path);
    if (!mfs_scale_in(r->s->cm, MFS_SCALE_RENEW))
        return;
    if (!why) {
        publish(r);
    } else if (r->marks < MARKS_MOST) {
        r->again_at = mfs_clock_mono() + AGAIN;
    } else {
        mfs_text_format(text, sizeof text, "what is lost can't be told: memefs renew %s (see %s)",
                        why->msg, r->s->cm->paths->log);
        give_up(r, why->code, text);
    }
}

static void mark(struct mfs_renew *r)
{
    struct mfs_cm *cm = r->s->cm;
    char program[PATH_MAX], path[PATH_MAX];
    const char *argv[] = {program, "renew", path, NULL};
    const struct mfs_run_options options = {.limit = MARK_TIME};
    struct mfs_err err;
    int rc = mfs_run_sibling("memefs", program, sizeof program);

    r->marks++;
    if (!rc)
        rc = renewal_path(cm, path);
    if (!rc)
        rc = write_file(r, path);
    if (rc) {
        give_up(r, rc, strerror(-rc));
        return;
    }
    r->run = mfs_run_begin(&cm->provider_context, argv, &options, marked, r, &err);
    if (!r->run)
        give_up(r, err.code, err.msg);
}

/* ---- assign ---------------------------------------------------------------------------------- */

static void take_ports(struct mfs_renew *r, const struct mfs_node *n,
                       const struct mfs_msg_assign_reply *m)
{
    const struct mfs_cm_state *st = &n->cm->state;

    for (uint32_t i = 0; i < st->nrenewals; i++)
        for (uint32_t k = 0; k < m->nassigned; k++)
            if (st->renewal[i].to == n->record->id && m->assigned[k].index == st->renewal[i].part)
                r->assigned[i] = m->assigned[k];
}

static void assigned(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_node *n = arg;
    struct mfs_renew *r = n->cm->scale ? n->cm->scale->renew : NULL;

    if (!r || !mfs_scale_in(n->cm, MFS_SCALE_RENEW))
        return;
    if (!err) {
        take_ports(r, n, reply);
        return;
    }
    if (err->code != -ECONNABORTED)
        mfs_warn("renew", "%s: %s", n->record->name, err->msg);
    for (uint32_t i = 0; i < n->cm->state.nrenewals; i++)
        if (n->cm->state.renewal[i].to == n->record->id)
            r->asked[i] = false;
    r->again_at = mfs_clock_mono() + AGAIN;
}

/* Of all that are to be there. */
static void assign(struct mfs_renew *r, struct mfs_node *n)
{
    const struct mfs_cm_state *st = &n->cm->state;
    struct mfs_msg_assign m = {.nparts = st->nparts,
                               .stripe_size = st->stripe_size,
                               .memory = n->record->memory,
                               .assigned = calloc(st->nrenewals, sizeof *m.assigned)};

    for (uint32_t i = 0; i < st->nrenewals && m.assigned; i++) {
        struct mfs_assign_part *p = &m.assigned[m.nassigned];

        if (st->renewal[i].to != n->record->id)
            continue;
        r->asked[i] = true;
        p->index = st->renewal[i].part;
        p->format = true;
        memcpy(p->password, st->renewal[i].password, sizeof p->password);
        memcpy(p->admin_password, st->renewal[i].admin_password, sizeof p->admin_password);
        m.nassigned++;
    }
    if (m.assigned)
        mfs_node_ask(n, MFS_MSG_ASSIGN, &m, ASSIGN_TIME, assigned, n);
    free(m.assigned);
}

static bool all_assigned(struct mfs_renew *r)
{
    const struct mfs_cm *cm = r->s->cm;
    bool all = true;

    for (uint32_t i = 0; i < cm->state.nrenewals; i++) {
        struct mfs_node *n = mfs_nodes_find(cm, cm->state.renewal[i].to);

        if (r->assigned[i].port)
            continue;
        all = false;
        if (n && n->conn && !r->asked[i])
            assign(r, n);
    }
    return all;
}

static void look(void *arg)
{
    struct mfs_scale *s = arg;
    struct mfs_renew *r = s->renew;
    int64_t now = mfs_clock_mono();

    if (!mfs_scale_in(s->cm, MFS_SCALE_RENEW) || r->run || now < r->again_at)
        return;
    if (all_assigned(r))
        mark(r);
    else if (now >= r->until)
        give_up(r, -ETIMEDOUT, "the nodes that stay have not started the partitions in time");
}

void mfs_renew_begin(struct mfs_scale *s)
{
    struct mfs_renew *r = s->renew = calloc(1, sizeof *r);

    if (r) {
        r->s = s;
        r->until = mfs_clock_mono() + WAIT_MOST;
        r->assigned = calloc(s->cm->state.nrenewals + 1, sizeof *r->assigned);
        r->asked = calloc(s->cm->state.nrenewals + 1, sizeof *r->asked);
    }
    if (r && r->assigned && r->asked)
        s->timer = mfs_loop_timer(s->cm->loop, LOOK, LOOK, look, s);
    if (!s->timer) /* the step stays noted; the next cm goes on with it */
        mfs_error("renew", "out of memory");
}
