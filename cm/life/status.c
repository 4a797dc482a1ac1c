/* What `cm status` tells. */
#include "cm/life/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "cluster/y0.h"
#include "cm/change/departures.h"
#include "cm/nodes/copies.h"
#include "cm/nodes/metrics.h"
#include "cm/partitions/migrate.h"
#include "cm/partitions/replicas.h"
#include "cm/change/scale/scale.h"
#include "cm/state/weights.h"

#define ADOPT_TIME (20 * MFS_SEC) /* that Local Managers may take to find a new cm */

static bool answers(const struct mfs_node *node)
{
    return node->conn && node->reported;
}

/* What a node has, by one pass over the partitions, as watchers ask each second. */
struct tally {
    uint32_t id;
    uint32_t serves, replicas;
    bool answers;
    const struct mfs_cm_node *node;
};

static int by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct tally *)a)->id, y = ((const struct tally *)b)->id;

    return (x > y) - (x < y);
}

/* NULL: there is no such node. */
static struct tally *find(struct tally *t, uint32_t n, uint32_t id)
{
    const struct tally key = {.id = id};

    return bsearch(&key, t, n, sizeof *t, by_id);
}

/* By the nodes' ids; NULL: out of memory. */
static struct tally *count_up(const struct mfs_cm *cm)
{
    const struct mfs_cm_state *st = &cm->state;
    struct tally *t = calloc(st->nnodes + 1, sizeof *t), *of;

    if (!t)
        return NULL;
    for (uint32_t i = 0; i < st->nnodes; i++)
        t[i] = (struct tally){
            .id = st->node[i].id, .node = &st->node[i], .answers = answers(cm->nodes[i])};
    qsort(t, st->nnodes, sizeof *t, by_id);
    for (uint32_t i = 0; i < st->nparts; i++) {
        of = find(t, st->nnodes, st->part[i].node);
        if (of)
            of->serves++;
        of = mfs_replicas_ready(st, i) ? find(t, st->nnodes, st->part[i].replica_node) : NULL;
        if (of)
            of->replicas++;
    }
    return t;
}

static uint64_t capacity(const struct mfs_node *node, uint32_t partitions)
{
    return node->last.memory_capacity ? node->last.memory_capacity
                                      : mfs_capacity_used(node->record->memory, partitions);
}

static const char *node_state(const struct mfs_cm *cm, const struct mfs_node *n)
{
    if (!strcmp(n->record->transition, MFS_NODE_COMING))
        return MFS_PHASE_STARTING;
    if (n->conn && n->record->leave_by)
        return MFS_NODE_LEAVING;
    if (n->conn || mfs_nodes_goes(n))
        return *n->record->transition ? n->record->transition : "up";
    return cm->step == MFS_STEP_DONE && cm->settled ? "lost" : MFS_PHASE_STARTING;
}

static const char *deployment_state(const struct mfs_cm *cm)
{
    bool whole = true, there = true;

    if (!mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        return cm->state.phase;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_node *n = cm->nodes[i];

        there &= n->conn || mfs_nodes_goes(n) || !strcmp(n->record->transition, MFS_NODE_COMING);
        whole &= !mfs_nodes_lacks(n);
    }
    if (!there && !cm->settled && mfs_clock_mono() - cm->began < ADOPT_TIME)
        return MFS_PHASE_STARTING;
    if (!there || !whole)
        return "degraded";
    return mfs_cm_changing(cm) ? "scaling" : MFS_PHASE_RUNNING;
}

static void fill_node(const struct mfs_cm *cm, const struct mfs_node *node, const struct tally *t,
                      struct mfs_status_node *n)
{
    n->id = node->record->id;
    n->partitions = t->serves;
    n->replicas = t->replicas;
    n->memory_capacity = capacity(node, t->serves);
    n->memory_used = node->reported ? node->last.memory_used : MFS_UNKNOWN_U64;
    n->bandwidth_in = answers(node) ? node->last.bandwidth_in : MFS_UNKNOWN_F64;
    n->bandwidth_out = answers(node) ? node->last.bandwidth_out : MFS_UNKNOWN_F64;
    n->bandwidth_capacity = node->record->bandwidth;
    memcpy(n->bandwidth_from, node->record->bandwidth_from, sizeof n->bandwidth_from);
    n->epoch = node->last.epoch;
    n->clients_behind = answers(node) ? node->behind : MFS_UNKNOWN_U32;
    n->votes = node->record->votes & MFS_VOTES_NOW;
    n->copy_behind_ms = mfs_copies_behind(node, mfs_clock_mono());
    memcpy(n->name, node->record->name, sizeof n->name);
    memcpy(n->address, node->record->address, sizeof n->address);
    memcpy(n->mount, node->mount, sizeof n->mount);
    mfs_text_copy(n->state, sizeof n->state, node_state(cm, node));
    mfs_text_copy(n->waits_for, sizeof n->waits_for, node->waits_for);
}

/* What each has against what its weight says. */
static int put_shares(const struct mfs_cm *cm, struct mfs_status *s)
{
    const struct mfs_cm_state *st = &cm->state;
    const struct mfs_cm_node **node = calloc(st->nnodes, sizeof(const struct mfs_cm_node *));
    struct mfs_status_node **shown = calloc(st->nnodes, sizeof(struct mfs_status_node *));
    double *weight = calloc(st->nnodes, sizeof *weight), sum = 0;
    int rc = node && shown && weight ? 0 : -ENOMEM;
    uint64_t used = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < st->nnodes && !rc; i++) {
        used += cm->nodes[i]->last.memory_used;
        if (!strcmp(st->node[i].transition, MFS_NODE_COMING))
            continue;
        shown[n] = &s->node[i];
        node[n++] = &st->node[i];
    }
    if (!rc)
        s->by_bandwidth = mfs_weights_make(st, node, n, used, weight);
    for (uint32_t i = 0; i < n && !rc; i++)
        sum += weight[i];
    for (uint32_t i = 0; i < n && !rc; i++)
        shown[i]->share = mfs_y0_share(shown[i]->partitions, st->nparts, weight[i], sum);
    free(node);
    free(shown);
    free(weight);
    return rc;
}

static void put_time(time_t seconds, char out[32])
{
    struct tm t;

    if (gmtime_r(&seconds, &t))
        strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &t);
}

/* Sums are of what has been told. */
static void put_counts(const struct mfs_cm *cm, struct tally *t, struct mfs_status *s)
{
    const struct mfs_cm_state *st = &cm->state;

    for (uint32_t i = 0; i < st->nnodes; i++)
        s->silent_nodes += !answers(cm->nodes[i]);
    for (uint32_t i = 0; i < st->nparts; i++) {
        const struct mfs_part_counts *c = &cm->part_counts[i];
        const struct tally *at = find(t, st->nnodes, st->part[i].node);

        s->silent_partitions += c->silent || !c->told || !at || !at->answers;
        s->unknown_partitions += !c->told;
        s->inodes += c->told ? c->inodes : 0;
        s->lost_stripes += c->told ? c->lost_stripes : 0;
    }
    if (s->unknown_partitions == st->nparts)
        s->inodes = s->lost_stripes = MFS_UNKNOWN_U64;
}

static void put_counters(const struct mfs_cm *cm, struct mfs_status *s)
{
    put_time(mfs_clock_real().tv_sec, s->timestamp);
    mfs_text_copy(s->version, sizeof s->version, MEMEFS_VERSION);
    s->uptime_s = (double)(mfs_clock_mono() - cm->began) / (double)MFS_SEC;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        s->restarts += cm->nodes[i]->last.deaths;
        s->out_of_memory += cm->nodes[i]->last.out_of_memory;
    }
    if (!cm->figures)
        return;
    s->failovers = mfs_metric_sum(cm->figures, MFS_CM_FAILOVERS);
    s->lost_partitions = mfs_metric_sum(cm->figures, MFS_CM_LOST_PARTITIONS);
    s->lost_bytes = mfs_metric_sum(cm->figures, MFS_CM_LOST_BYTES);
}

static void put_checkpoint(const struct mfs_cm_state *st, struct mfs_status *s)
{
    if (!st->checkpoint_dir[0])
        return;
    memcpy(s->checkpoint_dir, st->checkpoint_dir, sizeof s->checkpoint_dir);
    put_time((time_t)st->checkpoint_time, s->checkpoint_time);
}

static void put_name(struct tally *t, uint32_t n, uint32_t id, char *out, size_t size)
{
    const struct tally *of = find(t, n, id);

    if (of)
        mfs_text_copy(out, size, of->node->name);
}

/* Where each partition is, and its replica. */
static int put_places(const struct mfs_cm *cm, struct tally *t, struct mfs_status *s)
{
    const struct mfs_cm_state *st = &cm->state;

    s->place = calloc(st->nparts, sizeof *s->place);
    if (!s->place)
        return -ENOMEM;
    s->nplaces = st->nparts;
    for (uint32_t i = 0; i < st->nparts; i++) {
        struct mfs_status_place *p = &s->place[i];

        p->partition = i;
        p->bytes = cm->part_counts[i].told ? cm->part_bytes[i] : MFS_UNKNOWN_U64;
        put_name(t, st->nnodes, st->part[i].node, p->node, sizeof p->node);
        if (mfs_replicas_ready(st, i))
            put_name(t, st->nnodes, st->part[i].replica_node, p->replica, sizeof p->replica);
    }
    return 0;
}

/* Nodes that are still to come do not count for the whole. */
static int put_nodes(const struct mfs_cm *cm, struct tally *t, struct mfs_status *s)
{
    const struct mfs_cm_state *st = &cm->state;
    double sum = 0, used = 0;

    s->node = calloc(st->nnodes, sizeof *s->node);
    if (!s->node)
        return -ENOMEM;
    for (uint32_t i = 0; i < st->nnodes; i++) {
        fill_node(cm, cm->nodes[i], find(t, st->nnodes, st->node[i].id), &s->node[i]);
        if (!strcmp(st->node[i].transition, MFS_NODE_COMING))
            continue;
        if (!cm->nodes[i]->reported)
            continue;
        sum += (double)s->node[i].memory_capacity;
        used += (double)s->node[i].memory_used;
    }
    s->utilization = sum > 0 ? used / sum : MFS_UNKNOWN_F64;
    return 0;
}

int mfs_status_make(const struct mfs_cm *cm, struct mfs_status *s)
{
    const struct mfs_cm_state *st = &cm->state;
    struct tally *t = count_up(cm);
    int rc;

    *s = (struct mfs_status){.partitions = st->nparts, .beta = st->beta, .nnodes = st->nnodes};
    if (!t || put_nodes(cm, t, s)) {
        free(t);
        return -ENOMEM;
    }
    s->replicas = st->replicas;
    s->unprotected = mfs_replicas_missing(cm);
    s->epoch = st->table ? st->table->epoch : 0;
    s->term = st->term;
    s->will_lose = mfs_departures_will_lose(cm);
    memcpy(s->name, st->name, sizeof s->name);
    memcpy(s->policy, st->policy, sizeof s->policy);
    memcpy(s->migration, st->migration, sizeof s->migration);
    memcpy(s->weights, st->weights, sizeof s->weights);
    mfs_text_copy(s->state, sizeof s->state, deployment_state(cm));
    put_checkpoint(st, s);
    put_counts(cm, t, s);
    put_counters(cm, s);
    rc = put_shares(cm, s);
    if (!rc)
        rc = put_places(cm, t, s);
    free(t);
    if (!rc)
        rc = mfs_migrate_status(cm, s);
    if (rc)
        mfs_schema_clear(&mfs_status_schema, s);
    return rc;
}
