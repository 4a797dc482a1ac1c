/* Requests that wait are copied by their schema. Their connections are held on to, so that one that
 * is closed meanwhile answers -ENOTCONN. */
#include "cm/nodes/quorum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cluster/trust.h"
#include "cm/nodes/copies.h"
#include "cm/state/events.h"

#define ALONE      (5 * MFS_SEC)  /* without enough nodes before an event says so */
#define VOTELESS   (10 * MFS_SEC) /* without a word: it loses its vote */
#define RAISED     0x80000000U    /* candidate of a term that a cm has raised; no node's id */
#define TERMS_MOST 0x7fffffffU
#define EACH_SET(s)                                                                                \
    uint32_t s = MFS_VOTES_NOW;                                                                    \
    s <= MFS_VOTES_BEFORE;                                                                         \
    s <<= 1

struct request {
    struct request *next;
    struct mfs_node *node; /* NULL: a client's */
    struct mfs_conn *conn;
    uint64_t revision; /* that is to be held */
    enum mfs_msg type;
    void *body; /* NULL: none */
    int64_t until;
    void (*done)(void *arg, const struct mfs_err *err, const void *reply);
    void *arg;
};

struct mfs_quorum {
    struct request *first, **last;
    uint64_t changed;    /* revision in which the voters, or the term, changed last */
    uint64_t voted_term; /* the highest that nodes which have joined have voted in */
    uint64_t look;       /* at the requests that wait: the number of this one */
    uint64_t is_held;    /* in this look: up to this revision all are; … */
    uint64_t is_not;     /* … and from this one on none is. 0: not known */
    bool alone;          /* too few voters are in contact, and an event has said so */
};

/* ---- who has what --------------------------------------------------------------------------- */

static bool has_enough(const struct mfs_cm *cm, uint32_t have, uint32_t all)
{
    return cm->state.raised ? 2 * have > all : 2 * have >= all;
}

bool mfs_quorum_has(const struct mfs_cm *cm, uint64_t revision)
{
    for (EACH_SET(set)) {
        uint32_t all = 0, have = 0;

        for (uint32_t i = 0; i < cm->state.nnodes; i++) {
            const struct mfs_node *n = cm->nodes[i];
            bool votes = n->record->votes & set;

            all += votes;
            have += votes && !n->forgetful && n->copy_held >= revision;
        }
        if (all && !has_enough(cm, have, all))
            return false;
    }
    return true;
}

/* Voters that are connected, and were heard of so lately. */
static bool are_there(const struct mfs_cm *cm, int64_t now, int64_t silence, bool more_than_half)
{
    for (EACH_SET(set)) {
        uint32_t all = 0, there = 0;

        for (uint32_t i = 0; cm->quorum && i < cm->state.nnodes; i++) {
            const struct mfs_node *n = cm->nodes[i];
            bool votes = n->record->votes & set;

            all += votes;
            there += votes && n->conn && now - n->last_contact < silence;
        }
        if (2 * there < all + more_than_half)
            return false;
    }
    return true;
}

bool mfs_quorum_in_contact(const struct mfs_cm *cm, int64_t now)
{
    return are_there(cm, now, MFS_TRUST_LOST, false);
}

/* ---- requests that wait ---------------------------------------------------------------------- */

/* What can't be taken back by a cm that does not know of it. */
static bool must_be_held(enum mfs_msg type, const void *body)
{
    switch (type) {
    case MFS_MSG_TABLE:
    case MFS_MSG_ASSIGN:
    case MFS_MSG_TAKE:
    case MFS_MSG_FENCE:
    case MFS_MSG_RELEASE:
    case MFS_MSG_STOP:
        return true;
    case MFS_MSG_TERM:
        return !((const struct mfs_msg_term *)body)->on;
    default:
        return false;
    }
}

/* Of a node also when it is one of a connection before. */
static bool any_waits(const struct mfs_cm *cm, const struct mfs_node *n, const struct mfs_conn *c)
{
    if (n)
        return n->waiting > 0;
    for (const struct request *r = cm->quorum->first; r; r = r->next)
        if (r->conn == c)
            return true;
    return false;
}

/* Whom to ask is decided by an operator, and what another cm begins with by the nodes. */
static bool overtakes(enum mfs_msg type)
{
    return type == MFS_MSG_FOLLOW || type == MFS_MSG_ADOPT;
}

/* Many wait for the same revision, and whoever has a later one has that. */
static bool is_held(const struct mfs_cm *cm, uint64_t revision)
{
    struct mfs_quorum *q = cm->quorum;

    if (revision <= q->is_held)
        return true;
    if (q->is_not && revision >= q->is_not)
        return false;
    if (mfs_quorum_has(cm, revision))
        q->is_held = revision;
    else
        q->is_not = revision;
    return revision <= q->is_held;
}

static void begin_look(struct mfs_quorum *q)
{
    q->look++;
    q->is_held = q->is_not = 0;
}

/* A node that votes ends only when the others know that it does not any more. */
static bool is_due(const struct mfs_cm *cm, const struct request *r)
{
    return !mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) ||
           (is_held(cm, r->revision) &&
            !(r->node && r->type == MFS_MSG_STOP && r->node->record->votes));
}

static int copy_body(struct request *r, const void *body)
{
    const struct mfs_schema *schema = mfs_messages[r->type].body;
    struct mfs_err err;
    struct mfs_buf b;
    int rc;

    if (!body)
        return 0;
    mfs_buf_init(&b);
    r->body = calloc(1, schema->size);
    rc = r->body ? mfs_schema_encode(schema, body, false, &b) : -ENOMEM;
    if (!rc)
        rc = mfs_schema_decode(schema, mfs_buf_data(&b), mfs_buf_len(&b), r->body, &err);
    if (rc) {
        free(r->body);
        r->body = NULL;
    }
    mfs_buf_fini(&b);
    return rc;
}

static void free_request(struct request *r)
{
    if (r->body)
        mfs_schema_clear(mfs_messages[r->type].body, r->body);
    free(r->body);
    mfs_conn_put(r->conn);
    free(r);
}

static void send(const struct mfs_cm *cm, struct request *r)
{
    int64_t left = r->until - mfs_clock_mono();
    struct mfs_err err;
    int rc = -ECONNABORTED;

    if (!cm->superseded && mfs_conn_is_up(r->conn))
        rc = left <= 0 ? -ETIMEDOUT
                       : mfs_conn_request(r->conn, r->type, r->body, left, r->done, r->arg);
    if (rc) {
        mfs_err_set(&err, rc, "%s: %s", mfs_messages[r->type].name,
                    rc == -ETIMEDOUT ? "too few nodes answer for it to be decided here"
                                     : strerror(-rc));
        r->done(r->arg, &err, NULL);
    }
    free_request(r);
}

/* One to the same peer waits before it. */
static bool is_behind(const struct mfs_quorum *q, const struct request *r)
{
    const struct request *before = q->first;

    if (r->node)
        return r->node->waits_in == q->look;
    while (before != r && before->conn != r->conn)
        before = before->next;
    return before != r;
}

/* The next one that is due, late or void, and before which none to the same peer waits. */
static struct request *take_due(struct mfs_cm *cm, int64_t now)
{
    struct mfs_quorum *q = cm->quorum;

    begin_look(q);
    for (struct request **at = &q->first; *at; at = &(*at)->next) {
        struct request *r = *at;

        if (is_behind(q, r) || (!is_due(cm, r) && now < r->until && mfs_conn_is_up(r->conn))) {
            if (r->node)
                r->node->waits_in = q->look;
            continue;
        }
        *at = r->next;
        if (!r->next)
            q->last = at;
        if (r->node)
            r->node->waiting--;
        return r;
    }
    return NULL;
}

static int wait_for_it(struct mfs_cm *cm, const struct request *what, const void *body)
{
    struct mfs_quorum *q = cm->quorum;
    struct request *r = malloc(sizeof *r);
    int rc;

    if (!r)
        return -ENOMEM;
    *r = *what;
    rc = copy_body(r, body);
    if (rc) {
        free(r);
        return rc;
    }
    mfs_conn_get(r->conn);
    if (r->node)
        r->node->waiting++;
    *q->last = r;
    q->last = &r->next;
    mfs_copies_hurry(cm);
    return 0;
}

static int ask(struct mfs_cm *cm, struct request *r, const void *body, int64_t timeout)
{
    bool due;

    if (cm->quorum)
        begin_look(cm->quorum);
    due = !cm->quorum || !must_be_held(r->type, body) || is_due(cm, r);
    if (due && (!cm->quorum || overtakes(r->type) || !any_waits(cm, r->node, r->conn)))
        return mfs_conn_request(r->conn, r->type, body, timeout, r->done, r->arg);
    r->until = mfs_clock_mono() + timeout;
    return wait_for_it(cm, r, body);
}

int mfs_node_ask(struct mfs_node *n, enum mfs_msg type, const void *body, int64_t timeout,
                 void (*done)(void *arg, const struct mfs_err *err, const void *reply), void *arg)
{
    struct mfs_cm *cm = n->cm;
    struct request r = {.node = n,
                        .conn = n->conn,
                        .revision = cm->state.revision,
                        .type = type,
                        .done = done,
                        .arg = arg};

    mfs_copies_to(n);
    return ask(cm, &r, body, timeout);
}

int mfs_client_ask(struct mfs_cm *cm, struct mfs_conn *c, enum mfs_msg type, const void *body,
                   int64_t timeout,
                   void (*done)(void *arg, const struct mfs_err *err, const void *reply), void *arg)
{
    struct request r = {
        .conn = c, .revision = cm->state.revision, .type = type, .done = done, .arg = arg};

    return ask(cm, &r, body, timeout);
}

/* ---- voters ---------------------------------------------------------------------------------- */

static int note_change(struct mfs_cm *cm)
{
    int rc = mfs_cm_state_save(&cm->state, cm->paths->state);

    cm->quorum->changed = cm->state.revision;
    if (rc)
        mfs_error("quorum", "%s: %s", cm->paths->state, strerror(-rc));
    mfs_copies_hurry(cm);
    return rc;
}

static bool is_to_vote(const struct mfs_node *n, int64_t now)
{
    const struct mfs_cm_node *r = n->record;

    if (!r->control || r->transition[0] || r->leave_by || n->stop_sent || n->forgetful)
        return false;
    return (n->conn || (r->votes & MFS_VOTES_NOW)) && now - n->last_contact < VOTELESS;
}

/* The set before is that of now, which is held. */
static bool settle(struct mfs_cm *cm)
{
    bool news = cm->state.raised;

    cm->state.raised = false;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_cm_node *r = cm->nodes[i]->record;
        uint32_t votes = r->votes & MFS_VOTES_NOW ? MFS_VOTES_ALWAYS : 0;

        news |= votes != r->votes;
        r->votes = votes;
    }
    return news;
}

static bool choose(struct mfs_cm *cm, int64_t now)
{
    bool news = false;

    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];
        uint32_t votes = n->record->votes & MFS_VOTES_BEFORE;

        if (is_to_vote(n, now))
            votes |= MFS_VOTES_NOW;
        news |= votes != n->record->votes;
        n->record->votes = votes;
        if (!votes)
            n->forgetful = false;
    }
    return news;
}

/* There is one cm of each term, and so one that raises it from there. Only where it can be held: a
 * cm that is cut off would depose the one that was elected. */
void mfs_quorum_raise(struct mfs_cm *cm, uint64_t above)
{
    struct mfs_cm_state *s = &cm->state;

    if (!cm->quorum || above >= TERMS_MOST)
        return;
    if (!s->raised)
        s->base = s->term;
    s->raised = true;
    s->term = above + 1;
    s->candidate = RAISED | (uint32_t)s->base;
    mfs_copies_anew(cm);
    note_change(cm);
    mfs_event_add(cm->paths->events, "cm", "term-raised",
                  "to %llu: nodes have voted for a cm that has not begun",
                  (unsigned long long)s->term);
}

static void look_at_voters(struct mfs_cm *cm, int64_t now)
{
    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING) || cm->step != MFS_STEP_DONE || cm->superseded)
        return;
    if (cm->quorum->voted_term > cm->state.term && are_there(cm, now, ALONE, true))
        mfs_quorum_raise(cm, cm->quorum->voted_term);
    if (mfs_quorum_has(cm, cm->quorum->changed) && (settle(cm) || choose(cm, now)))
        note_change(cm);
}

static void tell_contact(struct mfs_cm *cm, int64_t now)
{
    bool alone = now - cm->began > ALONE && !are_there(cm, now, ALONE, false);

    if (alone == cm->quorum->alone || !mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        return;
    cm->quorum->alone = alone;
    if (alone)
        mfs_event_add(cm->paths->events, "cm", "cut-off",
                      "fewer than half of the nodes answer: until they do no replica takes over, "
                      "and nothing moves");
    else
        mfs_event_add(cm->paths->events, "cm", "in-contact", "enough nodes answer again");
}

void mfs_quorum_look(struct mfs_cm *cm)
{
    int64_t now = mfs_clock_mono();
    struct request *r;

    if (!cm->quorum)
        return;
    look_at_voters(cm, now);
    tell_contact(cm, now);
    while ((r = take_due(cm, now)))
        send(cm, r);
    if (cm->quorum->first)
        mfs_copies_hurry(cm);
}

/* One without any copy has lost what it had promised: it votes again when that is forgotten. */
void mfs_quorum_joined(struct mfs_node *n, const struct mfs_msg_join *m)
{
    if (!n->cm->quorum)
        return;
    if (!m->copy_revision && n->record->votes)
        n->forgetful = true;
    if (m->vote_term > n->cm->quorum->voted_term)
        n->cm->quorum->voted_term = m->vote_term;
}

/* ---- life ------------------------------------------------------------------------------------ */

int mfs_quorum_init(struct mfs_cm *cm)
{
    if (!cm->copies)
        return 0;
    cm->quorum = calloc(1, sizeof *cm->quorum);
    if (!cm->quorum)
        return -ENOMEM;
    cm->quorum->last = &cm->quorum->first;
    cm->quorum->changed = cm->state.revision;
    return 0;
}

void mfs_quorum_fini(struct mfs_cm *cm)
{
    struct mfs_quorum *q = cm->quorum;

    while (q && q->first) {
        struct request *r = q->first;
        struct mfs_err err;

        q->first = r->next;
        if (r->node)
            r->node->waiting--;
        mfs_err_set(&err, -ECONNABORTED, "cm ends");
        r->done(r->arg, &err, NULL);
        free_request(r);
    }
    free(q);
    cm->quorum = NULL;
}
