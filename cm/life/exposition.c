/* /metrics of cm: its own figures, and what it knows of nodes and mounts. Names that lms serve,
 * too, it never uses: who reads both would count twice. */
#include "cm/life/serve.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cluster/capacity.h"
#include "cm/change/autoscale.h"
#include "cm/life/status.h"
#include "cm/nodes/mounts.h"
#include "cm/state/events.h"

#define LABELS_MOST (4 * MFS_PATH_MAX)
#define EACH_MOST   4000U /* mounts whose operations are told apart */

/* ---- the deployment -------------------------------------------------------------------------- */

static const char *const node_states[] = {"starting", "up", "leaving", "lost"};
static const char *const states[] = {"starting", "running", "scaling", "degraded", "stopping"};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void put_states(struct mfs_exposition *e, const struct mfs_status *s)
{
    char labels[64];

    mfs_exposition_family(e, "memefs_cm_state", MFS_METRIC_GAUGE,
                          "1 for the state that the deployment is in.");
    for (size_t i = 0; i < COUNT(states); i++) {
        snprintf(labels, sizeof labels, "state=\"%s\"", states[i]);
        mfs_exposition_number(e, "memefs_cm_state", labels, !strcmp(s->state, states[i]));
    }
    mfs_exposition_family(e, "memefs_cm_nodes", MFS_METRIC_GAUGE, "Nodes, by their state.");
    for (size_t i = 0; i < COUNT(node_states); i++) {
        uint32_t n = 0;

        for (uint32_t k = 0; k < s->nnodes; k++)
            n += !strcmp(s->node[k].state, node_states[i]);
        snprintf(labels, sizeof labels, "state=\"%s\"", node_states[i]);
        mfs_exposition_number(e, "memefs_cm_nodes", labels, n);
    }
}

static void put_policy(struct mfs_exposition *e, const struct mfs_cm *cm)
{
    char labels[64] = "";
    double out_at, in_at;

    mfs_exposition_label(labels, sizeof labels, "policy", cm->state.policy);
    mfs_exposition_family(e, "memefs_cm_policy_info", MFS_METRIC_GAUGE, "The policy's name.");
    mfs_exposition_number(e, "memefs_cm_policy_info", labels, 1);
    if (!mfs_autoscale_thresholds(cm, &out_at, &in_at))
        return;
    mfs_exposition_family(e, "memefs_cm_policy_threshold_ratio", MFS_METRIC_GAUGE,
                          "Utilization at which the policy acts; 0 where it never does.");
    mfs_exposition_number(e, "memefs_cm_policy_threshold_ratio", "action=\"scale_out\"", out_at);
    mfs_exposition_number(e, "memefs_cm_policy_threshold_ratio", "action=\"scale_in\"", in_at);
}

static void put_events(struct mfs_exposition *e)
{
    const struct mfs_event_count *c;
    unsigned n;

    c = mfs_event_counts(&n);
    mfs_exposition_family(e, "memefs_cm_events_total", MFS_METRIC_COUNTER,
                          "Events since cm began, by their word.");
    for (unsigned i = 0; i < n; i++) {
        char labels[128] = "";

        if (!mfs_exposition_label(labels, sizeof labels, "event", c[i].what))
            mfs_exposition_number(e, "memefs_cm_events_total", labels, (double)c[i].n);
    }
}

static double told(uint64_t v)
{
    return v == MFS_UNKNOWN_U64 ? NAN : (double)v;
}

static void put_deployment(struct mfs_exposition *e, const struct mfs_cm *cm,
                           const struct mfs_status *s)
{
    const struct {
        const char *name, *help;
        double value;
    } gauges[] = {
        {"memefs_cm_uptime_seconds", "Time since cm began.",
         (double)(mfs_clock_mono() - cm->began) / (double)MFS_SEC},
        {"memefs_cm_table_epoch", "Epoch of the partition table.", (double)s->epoch},
        {"memefs_cm_term", "Term of cm: each that begins elsewhere has a higher one.",
         (double)s->term},
        {"memefs_cm_utilization_ratio", "Used of what data may take on all nodes.", s->utilization},
        {"memefs_cm_partitions", "Partitions of the deployment.", s->partitions},
        {"memefs_cm_unprotected_partitions", "Partitions that lack the replica they should have.",
         s->unprotected},
        {"memefs_cm_moves", "Partitions that are being moved.", s->nmoves},
        {"memefs_cm_changing", "1 while a change of the nodes is under way.", mfs_cm_changing(cm)},
        {"memefs_cm_inodes", "Files, directories and all else, as last reported.", told(s->inodes)},
        {"memefs_cm_lost_stripes", "Stripes of files whose bytes were ever lost, as last reported.",
         told(s->lost_stripes)},
        {"memefs_cm_silent_nodes", "Nodes that do not answer.", s->silent_nodes},
        {"memefs_cm_silent_partitions", "Partitions that do not answer, or whose node does not.",
         s->silent_partitions},
        {"memefs_cm_unknown_partitions",
         "Of these, what no sum has: nothing has been told of them.", s->unknown_partitions},
        {"memefs_cm_will_lose_bytes", "Bytes of nodes told to end that fit on no other node.",
         (double)s->will_lose}};
    char labels[96] = "";

    mfs_exposition_family(e, "memefs_build_info", MFS_METRIC_GAUGE, "The program's version.");
    mfs_exposition_label(labels, sizeof labels, "version", MEMEFS_VERSION);
    mfs_exposition_number(e, "memefs_build_info", labels, 1);
    for (size_t i = 0; i < COUNT(gauges); i++)
        if (!isnan(gauges[i].value))
            mfs_exposition_one(e, gauges[i].name, MFS_METRIC_GAUGE, gauges[i].help,
                               gauges[i].value);
    put_states(e, s);
    put_policy(e, cm);
    put_events(e);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* A family of which each node has a sample, but one of which it is not known: NAN. */
struct node_figure {
    const char *name, *help;
    enum mfs_metric_kind kind;
    const char *label; /* one more, "" for none */
    double (*value)(const struct mfs_node *n, const struct mfs_status_node *s);
};

#define VALUE(function, expression)                                                                \
    static double function(const struct mfs_node *n, const struct mfs_status_node *s)              \
    {                                                                                              \
        (void)n;                                                                                   \
        (void)s;                                                                                   \
        return (double)(expression);                                                               \
    }

/* What it has not told this cm is not 0: a counter would begin anew where cm does. */
#define TOLD(function, expression) VALUE(function, n->reported ? (double)(expression) : NAN)

VALUE(is_up, n->conn != NULL)
VALUE(partitions, s->partitions)
VALUE(replicas, s->replicas)
VALUE(share, s->share)
VALUE(limit, n->record->memory)
VALUE(capacity, s->memory_capacity)
VALUE(for_client, mfs_capacity_client(n->record->memory))
TOLD(used, s->memory_used)
TOLD(resident, n->last.rss)
VALUE(rate_in, s->bandwidth_in)
VALUE(rate_out, s->bandwidth_out)
VALUE(link_rate, s->bandwidth_capacity)
TOLD(bytes_in, n->last.bytes_in)
TOLD(bytes_out, n->last.bytes_out)
TOLD(commands, n->last.commands)
TOLD(refused, n->last.out_of_memory)
TOLD(deaths, n->last.deaths)
TOLD(revivals, n->last.revivals)
VALUE(behind, s->clients_behind == MFS_UNKNOWN_U32 ? NAN : s->clients_behind)
VALUE(clients, n->mounts_at ? n->mounts.n : NAN)

static double overhead(const struct mfs_node *n, const struct mfs_status_node *s)
{
    double rest = limit(n, s) - capacity(n, s) - for_client(n, s);

    return rest > 0 ? rest : 0;
}

/* Figures of one name follow each other. */
static const struct node_figure node_figures[] = {
    {"memefs_node_up", "1 while the node's Local Manager is connected.", MFS_METRIC_GAUGE, "",
     is_up},
    {"memefs_node_partitions", "Partitions that the node serves, or is to.", MFS_METRIC_GAUGE, "",
     partitions},
    {"memefs_node_replicas", "Whole replicas of others' partitions.", MFS_METRIC_GAUGE, "",
     replicas},
    {"memefs_node_share_ratio", "Partitions against what its weight says; ideal 1.",
     MFS_METRIC_GAUGE, "", share},
    {"memefs_node_memory_limit_bytes", "What the node gives.", MFS_METRIC_GAUGE, "", limit},
    {"memefs_node_memory_allocated_bytes", "What that is divided into.", MFS_METRIC_GAUGE,
     "kind=\"data\"", capacity},
    {"memefs_node_memory_allocated_bytes", "", MFS_METRIC_GAUGE, "kind=\"client\"", for_client},
    {"memefs_node_memory_allocated_bytes", "", MFS_METRIC_GAUGE, "kind=\"overhead\"", overhead},
    {"memefs_node_memory_capacity_bytes", "What data may take on the node.", MFS_METRIC_GAUGE, "",
     capacity},
    {"memefs_node_memory_used_bytes", "What data take on the node.", MFS_METRIC_GAUGE, "", used},
    {"memefs_node_memory_resident_bytes", "Resident memory of its partitions' processes.",
     MFS_METRIC_GAUGE, "", resident},
    {"memefs_node_bandwidth_bytes_per_second", "Traffic over the last interval.", MFS_METRIC_GAUGE,
     "direction=\"in\"", rate_in},
    {"memefs_node_bandwidth_bytes_per_second", "", MFS_METRIC_GAUGE, "direction=\"out\"", rate_out},
    {"memefs_node_link_bytes_per_second", "What its link carries each way; 0: unknown.",
     MFS_METRIC_GAUGE, "", link_rate},
    {"memefs_node_received_bytes_total", "Bytes that its link has received.", MFS_METRIC_COUNTER,
     "", bytes_in},
    {"memefs_node_sent_bytes_total", "Bytes that its link has sent.", MFS_METRIC_COUNTER, "",
     bytes_out},
    {"memefs_node_commands_total", "Commands that its partitions have executed.",
     MFS_METRIC_COUNTER, "", commands},
    {"memefs_node_out_of_memory_total", "Commands refused as a partition was full.",
     MFS_METRIC_COUNTER, "", refused},
    {"memefs_node_partition_deaths_total", "Ends of its partitions' processes, unasked for.",
     MFS_METRIC_COUNTER, "", deaths},
    {"memefs_node_partition_revivals_total", "Processes started in their place.",
     MFS_METRIC_COUNTER, "", revivals},
    {"memefs_node_clients", "Clients of its Local Manager.", MFS_METRIC_GAUGE, "", clients},
    {"memefs_node_clients_behind", "Of these, with an older partition table than it has.",
     MFS_METRIC_GAUGE, "", behind}};

static void put_nodes(struct mfs_exposition *e, const struct mfs_cm *cm, const struct mfs_status *s)
{
    char labels[MFS_NAME_MAX + MFS_HOST_MAX + MFS_STATE_MAX + 64];

    for (size_t i = 0; i < COUNT(node_figures); i++) {
        const struct node_figure *f = &node_figures[i];

        if (!i || strcmp(f->name, f[-1].name) != 0)
            mfs_exposition_family(e, f->name, f->kind, f->help);
        for (uint32_t k = 0; k < s->nnodes; k++) {
            double value = f->value(cm->nodes[k], &s->node[k]);

            if (isnan(value))
                continue;
            snprintf(labels, sizeof labels, "node=\"%s\"%s%s", s->node[k].name,
                     f->label[0] ? "," : "", f->label);
            mfs_exposition_number(e, f->name, labels, value);
        }
    }
    mfs_exposition_family(e, "memefs_node_info", MFS_METRIC_GAUGE,
                          "Where the node is, and the state that it is in.");
    for (uint32_t k = 0; k < s->nnodes; k++) {
        snprintf(labels, sizeof labels, "node=\"%s\",address=\"%s\",state=\"%s\"", s->node[k].name,
                 s->node[k].address, s->node[k].state);
        mfs_exposition_number(e, "memefs_node_info", labels, 1);
    }
}

/* ---- mounts ---------------------------------------------------------------------------------- */

/* What a family of mounts is made of: the figure that the client tells. */
struct mount_figure {
    const char *name, *help, *of;
    bool seconds; /* of a histogram the sum, else the number */
};

static const struct mount_figure mount_figures[] = {
    {"memefs_mount_operations_total", "Requests that were answered.",
     "memefs_operation_duration_seconds", false},
    {"memefs_mount_operation_seconds_total", "Time that these took.",
     "memefs_operation_duration_seconds", true},
    {"memefs_mount_operation_errors_total", "Requests that were answered with an error.",
     "memefs_operation_errors_total", false},
    {"memefs_mount_read_bytes_total", "Bytes read.", "memefs_read_bytes_total", false},
    {"memefs_mount_written_bytes_total", "Bytes written.", "memefs_written_bytes_total", false},
    {"memefs_mount_no_space_total", "Requests answered with ENOSPC.", "memefs_no_space_total",
     false},
    {"memefs_mount_data_errors_total", "Requests answered with EIO.", "memefs_data_errors_total",
     false},
    {"memefs_mount_write_back_failures_total", "Times that written data could not be stored.",
     "memefs_write_back_failures_total", false},
    {"memefs_mount_write_back_lost_bytes_total", "Bytes written that could not be stored.",
     "memefs_write_back_lost_bytes_total", false}};

static void put_mount(struct mfs_exposition *e, const struct mount_figure *f,
                      const struct mfs_mount *m, const char *labels, bool each)
{
    char all[LABELS_MOST + MFS_METRIC_LABELS_MAX + 2];
    double sum = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->figures.n; i++) {
        const struct mfs_metric_sample *s = &m->figures.sample[i];
        double value = f->seconds ? s->sum : (double)s->value;

        if (strcmp(s->name, f->of) != 0)
            continue;
        n++;
        sum += value;
        if (!each)
            continue;
        snprintf(all, sizeof all, "%s%s%s", labels, s->labels[0] ? "," : "", s->labels);
        mfs_exposition_number(e, f->name, all, value);
    }
    if (n && !each)
        mfs_exposition_number(e, f->name, labels, sum);
}

/* The histograms of a mount's operations; buckets stay the mount's. */
static int take_histograms(const struct mfs_mount *m, struct mfs_metric_snapshot *to)
{
    to->sample = calloc(m->figures.n + 1, sizeof *to->sample);
    if (!to->sample)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->figures.n; i++) {
        struct mfs_metric_sample *s = &to->sample[to->n];

        *s = m->figures.sample[i];
        if (strcmp(s->name, "memefs_operation_duration_seconds") != 0 || !s->nbuckets)
            continue;
        mfs_text_copy(s->name, sizeof s->name, "memefs_mount_operation_duration_seconds");
        mfs_text_copy(s->help, sizeof s->help, "Time from a request's arrival to its answer.");
        to->n++;
    }
    return 0;
}

/* Of a few mounts alone: a mount has up to 46 operations, of each of which there are 29 lines. */
static int put_histograms(struct mfs_exposition *e, const struct mfs_mounts *list,
                          char (*labels)[LABELS_MOST])
{
    struct mfs_exposition_source sources[MFS_MOUNTS_FEW];
    struct mfs_metric_snapshot figures[MFS_MOUNTS_FEW] = {{0}};
    uint32_t n = 0;
    int rc = 0;

    for (uint32_t i = 0; i < list->n && list->n <= MFS_MOUNTS_FEW && !rc; i++) {
        if (!labels[i][0])
            continue;
        rc = take_histograms(&list->mount[i], &figures[n]);
        sources[n] = (struct mfs_exposition_source){labels[i], &figures[n]};
        n++;
    }
    if (!rc && n)
        mfs_exposition_sources(e, sources, n);
    for (uint32_t i = 0; i < MFS_MOUNTS_FEW; i++)
        free(figures[i].sample);
    return rc;
}

static int label_mount(const struct mfs_mount *m, char labels[LABELS_MOST])
{
    char pid[16];
    int rc;

    snprintf(pid, sizeof pid, "%u", m->pid);
    labels[0] = '\0';
    rc = mfs_exposition_label(labels, LABELS_MOST, "node", m->node);
    if (!rc)
        rc = mfs_exposition_label(labels, LABELS_MOST, "mount", m->path);
    if (!rc)
        rc = mfs_exposition_label(labels, LABELS_MOST, "client", m->pid ? pid : m->session);
    return rc;
}

static int put_mounts(struct mfs_exposition *e, const struct mfs_cm *cm)
{
    struct mfs_mounts list;
    char(*labels)[LABELS_MOST];
    int rc = mfs_mounts_list(cm, &list);

    if (rc)
        return rc;
    labels = calloc(list.n + 1, sizeof *labels);
    for (uint32_t i = 0; labels && i < list.n; i++)
        if (label_mount(&list.mount[i], labels[i]))
            labels[i][0] = '\0'; /* is not shown */
    for (size_t i = 0; labels && i < COUNT(mount_figures); i++) {
        mfs_exposition_family(e, mount_figures[i].name, MFS_METRIC_COUNTER, mount_figures[i].help);
        for (uint32_t k = 0; k < list.n; k++)
            if (labels[k][0])
                put_mount(e, &mount_figures[i], &list.mount[k], labels[k], list.n <= EACH_MOST);
    }
    if (labels)
        rc = put_histograms(e, &list, labels);
    mfs_exposition_one(e, "memefs_cm_mounts", MFS_METRIC_GAUGE, "Clients of all nodes.", list.n);
    free(list.mount);
    rc = labels ? rc : -ENOMEM;
    free(labels);
    return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

int mfs_serve_figures(const struct mfs_cm *cm, struct mfs_exposition *e)
{
    struct mfs_metric_snapshot own;
    char all[2 * MFS_NAME_MAX + 16] = "";
    struct mfs_status s;
    int rc = mfs_status_make(cm, &s);

    if (rc)
        return rc;
    mfs_exposition_label(all, sizeof all, "deployment", cm->state.name);
    e->all = all;
    put_deployment(e, cm, &s);
    put_nodes(e, cm, &s);
    rc = put_mounts(e, cm);
    if (!rc)
        rc = mfs_metrics_read(cm->metrics, &own);
    if (!rc) {
        mfs_exposition_sources(e, &(struct mfs_exposition_source){"", &own}, 1);
        mfs_metric_snapshot_free(&own);
    }
    mfs_exposition_end(e);
    e->all = NULL;
    mfs_schema_clear(&mfs_status_schema, &s);
    return rc ? rc : e->rc;
}
