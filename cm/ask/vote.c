#include "cm/ask/vote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "host/proc.h"
#include "net/conn.h"
#include "net/address.h"

struct round;

struct ask {
    struct round *of;
    const struct mfs_cm_node *node;
    struct mfs_conn *conn;
    bool over;
};

struct round {
    const struct mfs_cm_state *state;
    const struct mfs_msg_vote *vote;
    struct mfs_ballot *out;
    struct mfs_loop *loop;
    struct ask *ask;
    uint32_t open;
    int64_t timeout;
};

static void take_copy(struct round *r, struct mfs_msg_state *copy)
{
    struct mfs_ballot *b = r->out;
    uint64_t term = b->newest.text ? b->newest.term : r->state->term;
    uint64_t revision = b->newest.text ? b->newest.revision : r->state->revision;

    if (!copy->revision || !copy->text ||
        !mfs_cm_state_newer(copy->term, copy->revision, term, revision))
        return;
    free(b->newest.text);
    b->newest = *copy;
    copy->text = NULL; /* it is ours now */
}

static bool graver(int code, int than)
{
    return !than || (code == -EADDRINUSE && than != -EADDRINUSE);
}

static void over(struct ask *a)
{
    if (a->over)
        return;
    a->over = true;
    if (!--a->of->open)
        mfs_loop_stop(a->of->loop);
}

static void count_granted(const struct ask *a)
{
    struct mfs_ballot *b = a->of->out;

    b->granted++;
    b->now.granted += (a->node->votes & MFS_VOTES_NOW) != 0;
    b->before.granted += (a->node->votes & MFS_VOTES_BEFORE) != 0;
    b->granted_by[a->node - a->of->state->node] = true;
}

/* -ECONNABORTED and the like: `down` tells. */
static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct ask *a = arg;
    struct mfs_ballot *b = a->of->out;

    if (a->over)
        return;
    if (!err) {
        struct mfs_msg_vote_reply *m = (void *)reply;

        count_granted(a);
        if (m->term > b->term || !b->cm[0])
            memcpy(b->cm, m->cm, sizeof b->cm);
        if (m->term > b->term)
            b->term = m->term;
        take_copy(a->of, &m->copy);
    } else if (err->code == -ETIMEDOUT || err->code == -ECONNABORTED) {
        b->silent = *err;
    } else {
        b->refused++;
        if (graver(err->code, b->refusal.code))
            b->refusal = *err;
    }
    over(a);
}

static void up(struct mfs_conn *c, void *arg)
{
    struct ask *a = arg;

    if (mfs_conn_request(c, MFS_MSG_VOTE, a->of->vote, a->of->timeout, answered, a))
        over(a);
}

static void down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct ask *a = arg;

    (void)c;
    a->conn = NULL;
    if (!a->over)
        a->of->out->silent = *why;
    over(a);
}

static const struct mfs_service service = {NULL, up, down};

static void begin(struct round *r, struct ask *a, const struct mfs_secret *secret)
{
    char address[MFS_ADDRESS_MAX];
    int rc = a->node->control
                 ? mfs_address_join(a->node->address, a->node->control, address, sizeof address)
                 : -ENOENT;

    if (!rc)
        a->conn = mfs_conn_connect(r->loop, address, secret, "cli", r->timeout, &service, a,
                                   &r->out->silent);
    if (!a->conn)
        over(a);
}

static void too_late(void *arg)
{
    struct round *r = arg;

    mfs_loop_stop(r->loop);
}

static int hold(struct round *r, const struct mfs_secret *secret)
{
    uint32_t n = r->state->nnodes;

    r->loop = mfs_loop_create();
    r->ask = calloc(n, sizeof *r->ask);
    r->out->granted_by = calloc(n, sizeof *r->out->granted_by);
    if (!r->loop || !r->ask || !r->out->granted_by ||
        !mfs_loop_timer(r->loop, r->timeout, 0, too_late, r))
        return -ENOMEM;
    r->open = n;
    for (uint32_t i = 0; i < n; i++) {
        r->out->asked += r->state->node[i].control != 0;
        r->out->now.all += (r->state->node[i].votes & MFS_VOTES_NOW) != 0;
        r->out->before.all += (r->state->node[i].votes & MFS_VOTES_BEFORE) != 0;
        r->ask[i] = (struct ask){.of = r, .node = &r->state->node[i]};
        begin(r, &r->ask[i], secret);
    }
    return r->open ? mfs_loop_run(r->loop) : 0;
}

int mfs_vote_ask(const struct mfs_cm_state *s, const struct mfs_secret *secret,
                 const struct mfs_msg_vote *vote, int64_t timeout, struct mfs_ballot *out,
                 struct mfs_err *err)
{
    struct round r = {.state = s, .vote = vote, .out = out, .timeout = timeout};
    int rc;

    *out = (struct mfs_ballot){0};
    mfs_proc_raise_files();
    rc = hold(&r, secret);
    for (uint32_t i = 0; r.ask && i < s->nnodes; i++) {
        r.ask[i].over = true;
        if (r.ask[i].conn)
            mfs_conn_close(r.ask[i].conn);
    }
    mfs_loop_destroy(r.loop);
    free(r.ask);
    return rc ? mfs_err_set(err, rc, "cannot ask the nodes: %s", strerror(-rc)) : 0;
}

void mfs_ballot_clear(struct mfs_ballot *b)
{
    free(b->newest.text);
    b->newest.text = NULL;
    free(b->granted_by);
    b->granted_by = NULL;
}

static bool is_majority(const struct mfs_voters *v)
{
    return 2 * v->granted > v->all;
}

bool mfs_ballot_won(const struct mfs_ballot *b)
{
    return is_majority(&b->now) && (!b->before.all || is_majority(&b->before));
}
