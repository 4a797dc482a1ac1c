/* A cm begins on another machine than the present one. Either that hands over what it knows, and
 * ends; or it does not answer, and more than half of the nodes must vote for the new one: then no
 * other one can begin in this term, and the old one has lost them (lm/agent/succession.c). Of their
 * copies the newest is what the new cm goes on from. */
#include "cm/cli/adopt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/ask/vote.h"
#include "cm/state/node_copy.h"
#include "net/call.h"
#include "net/address.h"

#define HANDOVER_TIME (6 * MFS_SEC)
#define VOTE_TIME     (5 * MFS_SEC)
#define ROUNDS        6
#define PAUSE_LEAST   MFS_SEC       /* after a round that another candidate was in, … */
#define PAUSE_MORE    (4 * MFS_SEC) /* … and up to so much more: one of them is first then */
#define EPOCHS        (1ULL << 20)  /* more than an old cm that is cut off will ever make */

struct adopt {
    const struct mfs_paths *paths;
    bool yes; /* fewer than half of the nodes are enough */
    uint32_t node;
    struct mfs_secret secret;
    struct mfs_cm_state *state;
};

static int take_text(struct adopt *a, const char *text, struct mfs_err *err)
{
    struct mfs_cm_state st;
    int rc = mfs_cm_state_parse(&st, text, strlen(text), "the state that was handed over", err);

    if (rc)
        return rc;
    mfs_cm_state_clear(a->state);
    *a->state = st;
    return 0;
}

/* What nodes have of any term before, and these voters have not, was never held. */
static void begin_term(const struct adopt *a, uint64_t term)
{
    a->state->base = term - 1;
    a->state->raised = false;
    a->state->term = term;
}

/* ---- the present cm hands over ----------------------------------------------------------------
 */

/* What it says itself, and not the connection to it. */
static bool is_refusal(int rc)
{
    return rc == -EBUSY || rc == -EAGAIN || rc == -EOPNOTSUPP || rc == -EPERM;
}

/* 1: it does not answer. */
static int ask_cm(struct adopt *a, struct mfs_err *err)
{
    struct mfs_msg_handover m = {.candidate = a->node};
    struct mfs_msg_state reply = {0};
    char cm[MFS_ADDRESS_MAX];
    int rc;

    memcpy(cm, a->state->cm, sizeof cm);
    rc = mfs_call(cm, &a->secret, "cli", MFS_MSG_HANDOVER, &m, HANDOVER_TIME, &reply, err);
    if (!rc)
        rc = take_text(a, reply.text, err);
    else if (is_refusal(rc))
        mfs_err_prefix(err, "cm at %s", cm);
    else
        rc = 1;
    if (!rc)
        begin_term(a, reply.term + 1);
    mfs_schema_clear(mfs_messages[MFS_MSG_HANDOVER].reply, &reply);
    return rc;
}

/* ---- or the nodes vote ------------------------------------------------------------------------
 */

/* Where the operator says that all others are gone, those that are there are the voters. */
static bool is_elected(const struct adopt *a, const struct mfs_ballot *b)
{
    if (mfs_ballot_won(b))
        return true;
    if (!a->yes || !b->granted || b->refused)
        return false;
    for (uint32_t i = 0; i < a->state->nnodes; i++)
        a->state->node[i].votes = b->granted_by[i] ? MFS_VOTES_ALWAYS : 0;
    return true;
}

static int not_elected(const struct mfs_ballot *b, struct mfs_err *err)
{
    if (b->refused)
        return *err = b->refusal, err->code;
    if (!b->granted)
        return mfs_err_set(err, -EHOSTUNREACH, "no node answers: %s",
                           b->silent.code ? b->silent.msg : "no way to them is known");
    return mfs_err_set(
        err, -EHOSTUNREACH,
        "only %u of %u nodes answer, and cm may live on with the others. If it can't, "
        "as their machines are gone: --adopt --yes",
        b->now.all ? b->now.granted : b->granted, b->now.all ? b->now.all : b->asked);
}

static void pause_by_chance(void)
{
    uint32_t chance = 0;

    mfs_random(&chance, sizeof chance);
    mfs_clock_sleep(PAUSE_LEAST + (int64_t)((double)chance / UINT32_MAX * PAUSE_MORE));
}

/* One round. 0: elected, and the state is the newest; 1: another round may tell more; or a negative
 * errno. */
static int hold_round(struct adopt *a, uint64_t *term, struct mfs_err *err)
{
    struct mfs_msg_vote vote = {.term = *term, .candidate = a->node};
    struct mfs_ballot b;
    bool more = false;
    int rc = mfs_vote_ask(a->state, &a->secret, &vote, VOTE_TIME, &b, err);

    if (!rc && b.newest.text) {
        more = !take_text(a, b.newest.text, err); /* it may know of other nodes: they vote, too */
        if (!more)
            mfs_warn("adopt", "a copy makes no sense: %s", err->msg);
    }
    if (!rc && !more && !is_elected(a, &b))
        rc = not_elected(&b, err);
    if (rc == -EBUSY) {
        pause_by_chance();
        more = true;
    }
    if (b.term > *term || rc == -ESTALE || rc == -EBUSY) {
        *term = (b.term > *term ? b.term : *term) + 1;
        more = true;
    }
    mfs_ballot_clear(&b);
    return more ? 1 : rc;
}

static int elect(struct adopt *a, struct mfs_err *err)
{
    uint64_t term = a->state->term + 1;
    int rc = 1;

    for (int i = 0; i < ROUNDS && rc > 0; i++)
        rc = hold_round(a, &term, err);
    if (rc > 0) /* what the last round said */
        rc = err->code ? err->code : mfs_err_set(err, -EAGAIN, "the nodes do not agree");
    if (!rc)
        begin_term(a, term);
    if (!rc && a->state->table)
        a->state->table->epoch += EPOCHS;
    return rc;
}

/* ---- the state here ---------------------------------------------------------------------------
 */

static int check(const struct adopt *a, struct mfs_err *err)
{
    const struct mfs_cm_state *s = a->state;

    if (mfs_provider_traits(s->provider)->sees_processes)
        return mfs_err_set(
            err, -EINVAL,
            "adopt: all nodes of %s are on one machine, where cm start starts cm again", s->name);
    if (strcmp(s->phase, MFS_PHASE_RUNNING) != 0)
        return mfs_err_set(err, -EBUSY, "deployment %s is %s, as far as is known here", s->name,
                           s->phase);
    if (!mfs_cm_state_node(s, a->node))
        return mfs_err_set(err, -ENOENT, "node-%u has left deployment %s", a->node, s->name);
    return 0;
}

/* Where the nodes reach this one is where they reach its cm. */
static int settle_here(const struct adopt *a, struct mfs_err *err)
{
    const struct mfs_cm_node *n = mfs_cm_state_node(a->state, a->node);
    struct mfs_cm_state *s = a->state;
    int rc;

    if (!n)
        return mfs_err_set(err, -ENOENT, "node-%u has left deployment %s", a->node, s->name);
    s->candidate = a->node;
    s->cm[0] = '\0';
    rc = mfs_address_join(n->address, 0, s->listen, sizeof s->listen);
    unlink(a->paths->address);
    unlink(a->paths->failure);
    if (!rc)
        rc = mfs_cm_state_save(s, a->paths->state);
    return rc ? mfs_err_set(err, rc, "%s: %s", a->paths->state, strerror(-rc)) : 0;
}

static int take_over(struct adopt *a, struct mfs_err *err)
{
    int rc = check(a, err);

    if (!rc)
        rc = mfs_secret_load(a->paths->secret, &a->secret, err);
    if (rc)
        return rc;
    rc = ask_cm(a, err);
    if (rc > 0)
        rc = elect(a, err);
    if (!rc)
        rc = settle_here(a, err);
    mfs_secret_free(&a->secret);
    return rc;
}

int mfs_adopt(const struct mfs_verb_call *call, struct mfs_cm_state *st, struct mfs_err *err)
{
    struct adopt a = {.paths = &call->paths, .yes = mfs_conf_flag(call->conf, "yes"), .state = st};
    int rc = mfs_node_copy_find(a.paths, st, &a.node, err);

    if (rc)
        return rc;
    rc = take_over(&a, err);
    if (rc)
        mfs_cm_state_clear(st);
    return rc;
}
