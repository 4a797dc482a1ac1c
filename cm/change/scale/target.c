/* What a change of nodes aims at: how many there will be, which come, and which leave. The request
 * is checked against the nodes as they are; nothing is changed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/inet.h"
#include "base/text.h"
#include "cluster/trust.h"
#include "cm/change/scale/impl.h"
#include "cm/state/spec.h"

/* A node whose connection is there, and which says nothing for so long, is taken for dead. */
#define FORGET_SILENCE (30 * MFS_SEC)

/* ---- nodes that come ------------------------------------------------------------------------- */

static bool slot_taken(const struct mfs_cm *cm, const struct mfs_scale_draft *d, uint32_t n,
                       uint32_t slot)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->state.node[i].slot == slot)
            return true;
    for (uint32_t i = 0; i < n; i++)
        if (d->coming[i].slot == slot)
            return true;
    return false;
}

/* A node at the least place that is free, but rather not at one that the provider avoids. */
static int place_coming(const struct mfs_cm *cm, struct mfs_scale_draft *d, uint32_t i,
                        struct mfs_err *err)
{
    bool (*avoids)(const void *state, uint32_t slot) = cm->provider->avoids;
    uint32_t slot = 0;
    int rc;

    while (slot_taken(cm, d, i, slot) || (avoids && avoids(cm->provider_state, slot)))
        slot++;
    rc = mfs_spec_node(&cm->state, cm->state.next_node + i, slot, &d->coming[i], err);
    if (!rc || !avoids)
        return rc;
    for (slot = 0; slot_taken(cm, d, i, slot); slot++)
        ;
    return mfs_spec_node(&cm->state, cm->state.next_node + i, slot, &d->coming[i], err);
}

static int make_coming(const struct mfs_cm *cm, struct mfs_scale_draft *d, struct mfs_err *err)
{
    int rc = 0;

    d->coming = calloc(d->ncoming + 1, sizeof *d->coming);
    if (!d->coming)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < d->ncoming && !rc; i++) {
        rc = place_coming(cm, d, i, err);
        mfs_text_copy(d->coming[i].transition, sizeof d->coming[i].transition, MFS_NODE_COMING);
    }
    return rc;
}

/* The least place of that machine's that is free. */
static int find_place_on(const struct mfs_cm *cm, const struct mfs_scale_draft *d, const char *host,
                         uint32_t *slot, struct mfs_err *err)
{
    char name[MFS_HOSTLIST_NAME] = "";
    bool known = false;

    for (*slot = 0; !mfs_spec_host(&cm->state, *slot, name, err) && *name; ++*slot) {
        if (!mfs_inet_same(name, host))
            continue;
        if (!slot_taken(cm, d, 0, *slot))
            return 0;
        known = true;
    }
    if (known)
        return mfs_err_set(err, -EBUSY, "%s has a node at each of its places", host);
    if (!*slot)
        return mfs_err_set(err, -EINVAL,
                           "%s: the provider %s chooses the machine itself (with ssh: one that cm "
                           "start --hosts names)",
                           host, cm->state.provider);
    return mfs_err_set(err, -ENOENT, "%s is no machine that cm start --hosts has named", host);
}

/* The one node that comes, on that machine. */
static int make_coming_on(const struct mfs_cm *cm, const char *host, struct mfs_scale_draft *d,
                          struct mfs_err *err)
{
    uint32_t slot;
    int rc = find_place_on(cm, d, host, &slot, err);

    if (rc)
        return rc;
    d->coming = calloc(1, sizeof *d->coming);
    if (!d->coming)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = mfs_spec_node(&cm->state, cm->state.next_node, slot, d->coming, err);
    mfs_text_copy(d->coming->transition, sizeof d->coming->transition, MFS_NODE_COMING);
    return rc;
}

/* ---- nodes that leave ------------------------------------------------------------------------ */

static bool is_named(const struct mfs_cm_state *st, const struct mfs_cm_node *n, const char *name)
{
    char host[MFS_HOSTLIST_NAME];
    struct mfs_err err;

    return !strcmp(n->name, name) || mfs_inet_same(n->address, name) ||
           (!mfs_spec_host(st, n->slot, host, &err) && *host && mfs_inet_same(host, name));
}

static bool is_asked_for(const struct mfs_cm_state *st, const struct mfs_cm_node *n,
                         const struct mfs_msg_scale *what)
{
    for (uint32_t i = 0; i < what->nnodes; i++)
        if (is_named(st, n, what->node[i].name))
            return true;
    return false;
}

static int check_names(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                       struct mfs_err *err)
{
    for (uint32_t i = 0; i < what->nnodes; i++) {
        const char *name = what->node[i].name;
        uint32_t k = 0;

        while (k < cm->state.nnodes && !is_named(&cm->state, &cm->state.node[k], name))
            k++;
        if (k == cm->state.nnodes)
            return mfs_err_set(err, -ESRCH,
                               "no node has the name or address \"%s\" (see cm status)", name);
    }
    return what->nnodes ? 0 : mfs_err_set(err, -EINVAL, "which nodes?");
}

/* Those that are asked for, or the last so many. */
static int make_leaving(const struct mfs_cm *cm, const struct mfs_msg_scale *what, uint32_t last,
                        struct mfs_scale_draft *d, struct mfs_err *err)
{
    const struct mfs_cm_state *st = &cm->state;

    d->leaving = calloc(st->nnodes, sizeof *d->leaving);
    if (!d->leaving)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < st->nnodes; i++)
        if (what->nnodes ? is_asked_for(st, &st->node[i], what) : i + last >= st->nnodes)
            d->leaving[d->nleaving++] = st->node[i].id;
    return 0;
}

bool mfs_scale_leaves(const struct mfs_scale_draft *d, const struct mfs_cm_node *n)
{
    for (uint32_t i = 0; i < d->nleaving; i++)
        if (d->leaving[i] == n->id)
            return true;
    return !strcmp(n->transition, MFS_NODE_LEAVING);
}

bool mfs_scale_drains(const struct mfs_cm *cm, const struct mfs_msg_scale *what)
{
    const struct mfs_cm_state *st = &cm->state;
    bool replace = !strcmp(what->how, MFS_SCALE_REPLACE);

    for (uint32_t i = 0; i < st->nnodes; i++)
        if (is_asked_for(st, &st->node[i], what) &&
            strcmp(st->node[i].transition, MFS_NODE_LEAVING))
            return false;
    if (!st->scale.drain || replace != (st->scale.from == st->scale.to))
        return false;
    return replace || st->scale.forget == !strcmp(what->how, "forget");
}

/* ---- how many -------------------------------------------------------------------------------- */

static int check_number(const struct mfs_cm *cm, uint64_t to, struct mfs_err *err)
{
    if (!to)
        return mfs_err_set(err, -EINVAL, "at least 1 of the %s must stay",
                           MFS_TEXT_COUNT(cm->state.nnodes, "node"));
    if (to > cm->state.nparts)
        return mfs_err_set(err, -EINVAL,
                           "%llu nodes need as many partitions, and this deployment has %u for "
                           "ever (cm start --max-nodes)",
                           (unsigned long long)to, cm->state.nparts);
    return 0;
}

static int number(const struct mfs_cm *cm, const struct mfs_msg_scale *what, uint64_t *to,
                  struct mfs_err *err)
{
    uint32_t from = cm->state.nnodes;

    if (!strcmp(what->how, "to"))
        *to = what->n;
    else if (!strcmp(what->how, "out"))
        *to = (uint64_t)from + what->n;
    else if (!strcmp(what->how, "in"))
        *to = what->n < from ? from - what->n : 0;
    else if (!strcmp(what->how, "rebalance") || !strcmp(what->how, MFS_SCALE_RELIEVE))
        *to = from;
    else
        return mfs_err_set(err, -EINVAL, "\"%s\" is no way of scaling", what->how);
    return check_number(cm, *to, err);
}

static int target_drain(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                        struct mfs_scale_draft *d, struct mfs_err *err)
{
    int rc = check_names(cm, what, err);

    d->drain = true;
    if (!rc)
        rc = make_leaving(cm, what, 0, d, err);
    if (!rc)
        rc = check_number(cm, d->from - d->nleaving, err);
    d->to = d->from - d->nleaving;
    return rc;
}

static int refuse_node(const struct mfs_node *n, struct mfs_err *err)
{
    if (!n->conn)
        return mfs_err_set(err, -ENODEV,
                           "%s is not there: its lm is not connected (see cm events; cm forget %s "
                           "if it will not come back)",
                           n->record->name, n->record->name);
    return mfs_err_set(err, -ENODEV,
                       "%s runs %u of its %u partitions; what the others held is lost "
                       "(see cm events). Only a new deployment has all of them: save what is left "
                       "before you make one",
                       n->record->name, n->parts_seen,
                       mfs_cm_state_count(&n->cm->state, n->record->id));
}

static bool may_take_over(const struct mfs_cm *cm, const struct mfs_cm_part *p)
{
    const struct mfs_node *n = mfs_nodes_find(cm, p->replica_node);

    return n && n->conn &&
           (!strcmp(p->replica_step, MFS_REPLICA_READY) ||
            !strcmp(p->replica_step, MFS_REPLICA_TAKE));
}

/* A replica that may take a partition over does so first. */
static int check_forgettable(const struct mfs_cm *cm, const struct mfs_node *n, struct mfs_err *err)
{
    const char *name = n->record->name;
    int64_t silence = mfs_clock_mono() - n->last_contact;

    if (n->conn && silence < FORGET_SILENCE)
        return mfs_nodes_lacks(n)
                   ? refuse_node(n, err)
                   : mfs_err_set(err, -EBUSY, "%s is there: cm drain %s takes it out", name, name);
    if (silence < MFS_TRUST_LOST)
        return mfs_err_set(err, -EAGAIN, "%s was there a moment ago", name);
    for (uint32_t i = 0; i < cm->state.nparts; i++)
        if (cm->state.part[i].node == n->record->id && may_take_over(cm, &cm->state.part[i]))
            return mfs_err_set(err, -EAGAIN, "the replica of partition %u is about to take over",
                               i);
    return 0;
}

static int target_forget(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                         struct mfs_scale_draft *d, struct mfs_err *err)
{
    int rc = target_drain(cm, what, d, err);

    d->forget = true;
    for (uint32_t i = 0; i < d->nleaving && !rc; i++)
        rc = check_forgettable(cm, mfs_nodes_find(cm, d->leaving[i]), err);
    return rc ? rc : mfs_renew_choose(cm, what, d, err);
}

/* ---- one node in the place of another -------------------------------------------------------- */

/* Of one that is dead nothing can move: all that it had must be elsewhere already. */
static int check_replaceable(const struct mfs_cm *cm, const struct mfs_node *n, struct mfs_err *err)
{
    const char *name = n->record->name;
    uint32_t alone = mfs_cm_state_count(&cm->state, n->record->id);
    int rc = check_forgettable(cm, n, err);

    if (rc || !alone)
        return rc;
    return mfs_err_set(err, -ENODEV,
                       "%s is not there, and nothing else has what is in %s: that comes "
                       "back with its lm (see cm events; cm forget %s if it will not)",
                       name, MFS_TEXT_COUNT(alone, "partition"), name);
}

/* A node comes, then the other one leaves: as by a drain, or, when it is dead, as one that is
 * forgotten. */
static int target_replace(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                          struct mfs_scale_draft *d, struct mfs_err *err)
{
    const struct mfs_node *n;
    int rc = check_names(cm, what, err);

    d->drain = true;
    d->to = d->from;
    d->ncoming = 1;
    if (!rc)
        rc = make_leaving(cm, what, 0, d, err);
    if (!rc && d->nleaving != 1)
        rc = mfs_err_set(err, -EINVAL, "\"%s\" is %u nodes: one is replaced at a time",
                         what->node[0].name, d->nleaving);
    if (rc)
        return rc;
    n = mfs_nodes_find(cm, d->leaving[0]);
    d->forget = !n->conn || mfs_clock_mono() - n->last_contact >= FORGET_SILENCE;
    if (d->forget)
        rc = check_replaceable(cm, n, err);
    if (rc)
        return rc;
    return what->host[0] ? make_coming_on(cm, what->host, d, err) : make_coming(cm, d, err);
}

int mfs_scale_target(const struct mfs_cm *cm, const struct mfs_msg_scale *what,
                     struct mfs_scale_draft *d, struct mfs_err *err)
{
    uint64_t to = 0;
    int rc;

    d->from = cm->state.nnodes;
    d->urgent = what->urgent;
    if (!strcmp(what->how, "drain"))
        return target_drain(cm, what, d, err);
    if (!strcmp(what->how, "forget"))
        return target_forget(cm, what, d, err);
    if (!strcmp(what->how, MFS_SCALE_REPLACE))
        return target_replace(cm, what, d, err);
    rc = number(cm, what, &to, err);
    if (rc)
        return rc;
    d->to = (uint32_t)to;
    d->by_bytes = !strcmp(what->how, MFS_SCALE_RELIEVE);
    d->ncoming = d->to > d->from ? d->to - d->from : 0;
    rc = make_leaving(cm, what, d->to < d->from ? d->from - d->to : 0, d, err);
    return rc ? rc : make_coming(cm, d, err);
}

/* ---- are they there? ------------------------------------------------------------------------- */

bool mfs_scale_is_there(const struct mfs_node *n)
{
    return n->conn && !mfs_nodes_lacks(n);
}

/* Nothing is moved to or from a node that is not there. */
int mfs_scale_check_nodes(const struct mfs_cm *cm, const struct mfs_scale_draft *d,
                          struct mfs_err *err)
{
    bool staying = false;

    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_node *n = cm->nodes[i];

        if (d->forget && mfs_scale_leaves(d, n->record))
            continue;
        if (!mfs_scale_is_there(n) && (!d->drain || mfs_scale_leaves(d, n->record)))
            return refuse_node(n, err);
        if (n->conn && !n->reported)
            return mfs_err_set(err, -EAGAIN, "%s has told no figures yet", n->record->name);
        staying |= mfs_scale_is_there(n) && !mfs_scale_leaves(d, n->record);
    }
    return staying ? 0 : mfs_err_set(err, -ENODEV, "no node that stays is there (see cm status)");
}
