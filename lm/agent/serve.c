/* The node's figures: /metrics over HTTP, and to cm those of clients that it shows. */
#include "lm/agent/agent_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "http/exposition.h"
#include "http/httpd.h"
#include "net/address.h"

#define AREA        "metrics"
#define PORTS       16U /* that are tried, where nodes share an address */
#define LABELS_MOST (4 * MFS_PATH_MAX)

/* ---- a node's and its partitions' ------------------------------------------------------------ */

struct figure {
    const char *name, *help;
    enum mfs_metric_kind kind;
    uint64_t value;
};

static void put_figures(struct mfs_exposition *e, const struct figure *f, size_t n,
                        const char *labels, bool known)
{
    for (size_t i = 0; i < n; i++) {
        mfs_exposition_family(e, f[i].name, f[i].kind, f[i].help);
        if (known)
            mfs_exposition_number(e, f[i].name, labels, (double)f[i].value);
    }
}

static void put_node(struct mfs_exposition *e, const struct mfs_agent *a, const char *labels)
{
    const struct mfs_instances_sample *s = &a->measured.sample;
    const struct figure own[] = {
        {"memefs_lm_memory_limit_bytes", "What all of the node's processes may take.",
         MFS_METRIC_GAUGE, a->memory},
        {"memefs_lm_connected_to_cm", "1 while cm is connected and has taken the node.",
         MFS_METRIC_GAUGE, a->link.joined},
        {"memefs_lm_table_epoch", "Epoch of the partition table that the node has.",
         MFS_METRIC_GAUGE, a->table ? a->table->epoch : 0}};
    const struct figure measured[] = {
        {"memefs_lm_memory_capacity_bytes", "Of that, what data may take.", MFS_METRIC_GAUGE,
         s->capacity},
        {"memefs_lm_memory_used_bytes", "What data take, as partitions count.", MFS_METRIC_GAUGE,
         s->used},
        {"memefs_lm_memory_resident_bytes", "Resident memory of the partitions' processes.",
         MFS_METRIC_GAUGE, s->rss},
        {"memefs_lm_received_bytes_total", "Bytes that the node's link has received.",
         MFS_METRIC_COUNTER, a->measured.meter.last.in},
        {"memefs_lm_sent_bytes_total", "Bytes that the node's link has sent.", MFS_METRIC_COUNTER,
         a->measured.meter.last.out}};

    put_figures(e, own, sizeof own / sizeof *own, labels, true);
    put_figures(e, measured, sizeof measured / sizeof *measured, labels, a->measured.meter.started);
}

static void put_partition_figure(struct mfs_exposition *e, const struct mfs_agent *a,
                                 const struct figure *f, size_t offset)
{
    char labels[256];

    mfs_exposition_family(e, f->name, f->kind, f->help);
    for (size_t i = 0; i < a->measured.sample.n; i++) {
        const struct mfs_instances_part *p = &a->measured.sample.part[i];
        uint64_t value;

        if (!p->told)
            continue;
        memcpy(&value, (const char *)p + offset, sizeof value);
        snprintf(labels, sizeof labels, "node=\"node-%u\",partition=\"%u\",role=\"%s\"",
                 a->opts.node, p->part, p->incoming ? "copy" : "serving");
        mfs_exposition_number(e, f->name, labels, (double)value);
    }
}

/* As cm is told, at the last look at each. */
static void put_answers(struct mfs_exposition *e, const struct mfs_agent *a)
{
    char labels[256];

    mfs_exposition_family(e, "memefs_partition_up", MFS_METRIC_GAUGE,
                          "1 while the partition's process answers its Local Manager.");
    for (size_t i = 0; i < a->measured.sample.n; i++) {
        const struct mfs_instances_part *p = &a->measured.sample.part[i];

        snprintf(labels, sizeof labels, "node=\"node-%u\",partition=\"%u\",role=\"%s\"",
                 a->opts.node, p->part, p->incoming ? "copy" : "serving");
        mfs_exposition_number(e, "memefs_partition_up", labels, p->told && !p->silent);
    }
}

static void put_partitions(struct mfs_exposition *e, const struct mfs_agent *a)
{
#define FIELD(member) offsetof(struct mfs_instances_part, member)
    static const struct {
        struct figure f;
        size_t offset;
    } figures[] = {
        {{"memefs_partition_memory_used_bytes", "What the partition's data take.", MFS_METRIC_GAUGE,
          0},
         FIELD(used)},
        {{"memefs_partition_memory_limit_bytes", "What they may take just now.", MFS_METRIC_GAUGE,
          0},
         FIELD(limit)},
        {{"memefs_partition_keys", "Keys in the partition.", MFS_METRIC_GAUGE, 0}, FIELD(keys)},
        {{"memefs_partition_inodes", "Inodes that have their home in the partition.",
          MFS_METRIC_GAUGE, 0},
         FIELD(inodes)},
        {{"memefs_partition_lost_stripes", "Stripes of it whose bytes were ever lost.",
          MFS_METRIC_GAUGE, 0},
         FIELD(losses)},
        {{"memefs_partition_commands_total", "Commands that its process has executed.",
          MFS_METRIC_COUNTER, 0},
         FIELD(commands)},
        {{"memefs_partition_errors_total", "Commands that it has answered with an error.",
          MFS_METRIC_COUNTER, 0},
         FIELD(errors)},
        {{"memefs_partition_out_of_memory_total", "Commands refused as its memory was full.",
          MFS_METRIC_COUNTER, 0},
         FIELD(out_of_memory)},
        {{"memefs_partition_received_bytes_total", "Bytes that its process has received.",
          MFS_METRIC_COUNTER, 0},
         FIELD(net_in)},
        {{"memefs_partition_sent_bytes_total", "Bytes that its process has sent.",
          MFS_METRIC_COUNTER, 0},
         FIELD(net_out)}};
#undef FIELD

    if (a->measured.sample.n)
        put_answers(e, a);
    for (size_t i = 0; a->measured.sample.n && i < sizeof figures / sizeof *figures; i++)
        put_partition_figure(e, a, &figures[i].f, figures[i].offset);
}

/* ---- what programs tell ---------------------------------------------------------------------- */

struct clients_memory {
    const struct mfs_agent *agent;
    struct mfs_exposition *to;
};

struct sources {
    const struct mfs_agent *agent;
    struct mfs_exposition_source *list;
    char (*labels)[LABELS_MOST];
    uint32_t n, most;
};

static void count_one(void *arg, const struct mfs_client *client,
                      const struct mfs_metric_snapshot *figures, const struct mfs_hot *hot,
                      int64_t age)
{
    uint32_t *n = arg;

    (void)client;
    (void)hot;
    (void)age;
    *n += figures != NULL;
}

static void put_client(void *arg, const struct mfs_client *client,
                       const struct mfs_metric_snapshot *figures, const struct mfs_hot *hot,
                       int64_t age)
{
    struct sources *s = arg;
    char *labels = s->labels[s->n], name[MFS_SESSION_TEXT + 16];

    (void)hot;
    (void)age;
    if (!figures || s->n == s->most)
        return;
    snprintf(labels, LABELS_MOST, "node=\"node-%u\"", s->agent->opts.node);
    if (client->proc.pid)
        snprintf(name, sizeof name, "%d", (int)client->proc.pid);
    else
        mfs_text_copy(name, sizeof name, client->session);
    if (mfs_exposition_label(labels, LABELS_MOST, "mount", client->mount) ||
        mfs_exposition_label(labels, LABELS_MOST, "client", name))
        return;
    s->list[s->n++] = (struct mfs_exposition_source){labels, figures};
}

static void put_memory(void *arg, const struct mfs_client *client,
                       const struct mfs_metric_snapshot *figures, const struct mfs_hot *hot,
                       int64_t age)
{
    struct clients_memory *m = arg;
    char labels[LABELS_MOST], pid[16];

    (void)figures;
    (void)hot;
    (void)age;
    if (!client->proc.pid)
        return;
    snprintf(labels, sizeof labels, "node=\"node-%u\"", m->agent->opts.node);
    snprintf(pid, sizeof pid, "%d", (int)client->proc.pid);
    if (!mfs_exposition_label(labels, sizeof labels, "mount", client->mount) &&
        !mfs_exposition_label(labels, sizeof labels, "client", pid))
        mfs_exposition_number(m->to, "memefs_client_memory_bytes", labels,
                              (double)mfs_proc_anonymous(&client->proc));
}

static void put_clients_memory(struct mfs_exposition *e, const struct mfs_agent *a)
{
    struct clients_memory m = {a, e};

    mfs_exposition_family(e, "memefs_client_memory_bytes", MFS_METRIC_GAUGE,
                          "Resident memory of the client's process, without pages of files.");
    if (a->clients)
        mfs_clients_each(a->clients, put_memory, &m);
}

static int put_programs(struct mfs_exposition *e, const struct mfs_agent *a, const char *labels)
{
    struct sources s = {.agent = a, .most = 1};
    struct mfs_metric_snapshot own;
    int rc = mfs_metrics_read(a->metrics, &own);

    if (rc)
        return rc;
    if (a->clients)
        mfs_clients_each(a->clients, count_one, &s.most);
    s.list = calloc(s.most, sizeof *s.list);
    s.labels = calloc(s.most, sizeof *s.labels);
    rc = s.list && s.labels ? 0 : -ENOMEM;
    if (!rc) {
        s.list[s.n++] = (struct mfs_exposition_source){labels, &own};
        if (a->clients)
            mfs_clients_each(a->clients, put_client, &s);
        mfs_exposition_sources(e, s.list, s.n);
    }
    free(s.list);
    free(s.labels);
    mfs_metric_snapshot_free(&own);
    return rc;
}

static int make_metrics(void *arg, bool other, struct mfs_httpd_answer *answer)
{
    const struct mfs_agent *a = arg;
    struct mfs_exposition e = {.out = &answer->out, .open = other};
    char labels[64];
    int rc;

    answer->type = other ? MFS_EXPOSITION_OPEN1 : MFS_EXPOSITION_PLAIN;
    mfs_exposition_family(&e, "memefs_build_info", MFS_METRIC_GAUGE, "The program's version.");
    snprintf(labels, sizeof labels, "node=\"node-%u\",version=\"%s\"", a->opts.node,
             MEMEFS_VERSION);
    mfs_exposition_number(&e, "memefs_build_info", labels, 1);
    snprintf(labels, sizeof labels, "node=\"node-%u\"", a->opts.node);
    put_node(&e, a, labels);
    put_partitions(&e, a);
    put_clients_memory(&e, a);
    rc = put_programs(&e, a, labels);
    mfs_exposition_end(&e);
    return rc ? rc : e.rc;
}

static const struct mfs_httpd_page pages[] = {
    {.path = "/metrics", .alternative = MFS_EXPOSITION_OPEN, .make = make_metrics}, {0}};

void mfs_agent_serve_begin(struct mfs_agent *a)
{
    char token[MFS_HTTPD_TOKEN_TEXT], address[MFS_ADDRESS_MAX];
    struct mfs_err err = {0};
    int rc = a->opts.metrics ? mfs_httpd_token(&a->secret, token) : -ENOENT;

    for (uint32_t i = 0; !rc && i < PORTS && !a->http; i++) {
        if (a->opts.metrics + i > 65535 ||
            mfs_address_join(a->opts.address, a->opts.metrics + i, address, sizeof address))
            break;
        a->http = mfs_httpd_create(a->loop, address, token, NULL, pages, a, &err);
        if (!a->http && err.code != -EADDRINUSE)
            break;
    }
    explicit_bzero(token, sizeof token);
    if (a->http) {
        mfs_httpd_address(a->http, address, sizeof address);
        mfs_info(AREA, "figures are served at http://%s/metrics", address);
    } else if (a->opts.metrics) {
        mfs_agent_event(a, "metrics-failed", "%s", err.code ? err.msg : "no port is free");
    }
}

uint32_t mfs_agent_serve_port(const struct mfs_agent *a)
{
    char address[MFS_ADDRESS_MAX] = "";
    uint64_t port = 0;
    const char *colon;

    if (a->http)
        mfs_httpd_address(a->http, address, sizeof address);
    colon = strrchr(address, ':');
    return colon && !mfs_text_u64(colon + 1, &port) ? (uint32_t)port : 0;
}

/* ---- to cm ----------------------------------------------------------------------------------- */

static bool is_shown(const char *name)
{
    for (int i = 0; mfs_mount_figures[i]; i++)
        if (!strcmp(name, mfs_mount_figures[i]))
            return true;
    return false;
}

static void copy_buckets(struct mfs_metric_sample *to, const struct mfs_metric_sample *from)
{
    to->bucket = calloc(from->nbuckets + 1, sizeof *to->bucket);
    if (!to->bucket)
        return;
    if (from->nbuckets)
        memcpy(to->bucket, from->bucket, from->nbuckets * sizeof *to->bucket);
    to->nbuckets = from->nbuckets;
}

/* Of all nodes' mounts cm has them all: buckets of each operation it wants only of a few. */
static int take_figures(struct mfs_mount *m, const struct mfs_metric_snapshot *figures,
                        bool buckets)
{
    struct mfs_metric_bucket *list = calloc(MFS_METRIC_BUCKETS, sizeof *list);
    struct mfs_metric_sample *to = calloc(figures->n + 1, sizeof *to);

    m->figures.sample = to;
    if (!list || !to) {
        free(list);
        return -ENOMEM;
    }
    mfs_mount_sum_up(m, figures);
    for (uint32_t i = 0; i < figures->n; i++) {
        if (!is_shown(figures->sample[i].name))
            continue;
        *to = figures->sample[i];
        to->help[0] = '\0';
        to->bucket = NULL;
        to->nbuckets = 0;
        if (buckets)
            copy_buckets(to, &figures->sample[i]);
        m->figures.n++;
        to++;
    }
    mfs_mount_durations(figures, to, list);
    m->figures.n++;
    return 0;
}

struct list {
    struct mfs_mounts mounts;
    uint32_t most;
    bool buckets;
    int rc;
};

static void count_all(void *arg, const struct mfs_client *client,
                      const struct mfs_metric_snapshot *figures, const struct mfs_hot *hot,
                      int64_t age)
{
    struct list *l = arg;

    (void)client;
    (void)figures;
    (void)hot;
    (void)age;
    l->most++;
}

static void put_mount(void *arg, const struct mfs_client *client,
                      const struct mfs_metric_snapshot *figures, const struct mfs_hot *hot,
                      int64_t age)
{
    struct list *l = arg;
    struct mfs_mount *m = l->mounts.mount ? &l->mounts.mount[l->mounts.n] : NULL;

    if (!m || l->mounts.n == l->most || l->rc)
        return;
    *m = (struct mfs_mount){.pid = (uint32_t)client->proc.pid,
                            .uid = client->uid,
                            .connected = client->connected,
                            .ready = client->ready,
                            .since = client->since};
    mfs_text_copy(m->path, sizeof m->path, client->mount);
    mfs_text_copy(m->session, sizeof m->session, client->session);
    mfs_text_copy(m->version, sizeof m->version, client->version);
    if (figures) {
        m->age_ms = (uint64_t)(age / MFS_MSEC);
        l->rc = take_figures(m, figures, l->buckets);
        m->hot = *hot; /* stays the list's */
    }
    l->mounts.n++;
}

void mfs_agent_mounts(struct mfs_agent *a, const struct mfs_msg_mounts *m, struct mfs_conn *conn,
                      uint64_t id)
{
    struct list l = {.buckets = m->buckets};

    if (a->clients)
        mfs_clients_each(a->clients, count_all, &l);
    l.mounts.mount = calloc(l.most + 1, sizeof *l.mounts.mount);
    if (!l.mounts.mount)
        l.rc = -ENOMEM;
    else if (a->clients)
        mfs_clients_each(a->clients, put_mount, &l);
    if (l.rc)
        mfs_agent_refuse(a, conn, id, l.rc, "out of memory");
    else
        mfs_conn_reply(conn, MFS_MSG_MOUNTS, id, &l.mounts);
    for (uint32_t i = 0; l.mounts.mount && i < l.mounts.n; i++)
        mfs_metric_snapshot_free(&l.mounts.mount[i].figures);
    free(l.mounts.mount);
}
