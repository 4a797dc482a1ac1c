#include "cm/cli/describe.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cm/cli/render.h"
#include "show/clients.h"
#include "show/figures.h"

const struct mfs_schema mfs_description_schema = {
    "description", sizeof(struct mfs_description),
    (const struct mfs_field[]){
        {.name = "kind", MFS_FIELD(STR, struct mfs_description, kind)},
        {.name = "name", MFS_FIELD(STR, struct mfs_description, name)},
        {.name = "nodes",
         MFS_FIELD_LIST(struct mfs_description, node, nnodes, &mfs_status_node_schema)},
        {.name = "partitions",
         MFS_FIELD_LIST(struct mfs_description, place, nplaces, &mfs_status_place_schema)},
        {.name = "replicas",
         MFS_FIELD_LIST(struct mfs_description, replica, nreplicas, &mfs_status_place_schema)},
        {.name = "clients",
         MFS_FIELD_LIST(struct mfs_description, client, nclients, &mfs_mount_schema)},
        {.name = "moves",
         MFS_FIELD_LIST(struct mfs_description, move, nmoves, &mfs_status_move_schema)},
        {.name = "events",
         MFS_FIELD_LIST(struct mfs_description, event, nevents, &mfs_event_schema)},
        {0}}};

/* ---- what belongs to it ---------------------------------------------------------------------- */

static const struct mfs_status_node *find_node(const struct mfs_status *s, const char *name)
{
    for (uint32_t i = 0; i < s->nnodes; i++)
        if (!strcmp(s->node[i].name, name))
            return &s->node[i];
    return NULL;
}

/* Is the path mounted there, by its lm or by hand? */
static bool has_mount(const struct mfs_status *s, const struct mfs_status_node *n, const char *path)
{
    for (uint32_t i = 0; i < s->nmounts; i++)
        if (!strcmp(s->mount[i].path, path) && !strcmp(s->mount[i].node, n->name))
            return true;
    return n->mount[0] && !strcmp(n->mount, path);
}

static bool is_mount(const struct mfs_status *s, const char *path)
{
    for (uint32_t i = 0; i < s->nnodes; i++)
        if (has_mount(s, &s->node[i], path))
            return true;
    return false;
}

static const struct mfs_status_place *find_place(const struct mfs_status *s, uint64_t partition)
{
    for (uint32_t i = 0; i < s->nplaces; i++)
        if (s->place[i].partition == partition)
            return &s->place[i];
    return NULL;
}

static int make_room(const struct mfs_status *s, struct mfs_description *d)
{
    d->node = calloc(s->nnodes + 2, sizeof *d->node);
    d->place = calloc(s->nplaces + 1, sizeof *d->place);
    d->replica = calloc(s->nplaces + 1, sizeof *d->replica);
    d->client = calloc(s->nmounts + 1, sizeof *d->client);
    d->move = calloc(s->nmoves + 1, sizeof *d->move);
    d->event = calloc(MFS_DESCRIBE_EVENTS, sizeof *d->event);
    return d->node && d->place && d->replica && d->client && d->move && d->event ? 0 : -ENOMEM;
}

static void add_node(struct mfs_description *d, const struct mfs_status_node *n)
{
    if (n)
        d->node[d->nnodes++] = *n;
}

static void take_clients(const struct mfs_status *s, const struct mfs_status_node *n,
                         const char *path, struct mfs_description *d)
{
    for (uint32_t i = 0; i < s->nmounts; i++)
        if (!strcmp(s->mount[i].node, n->name) && (!path || !strcmp(s->mount[i].path, path)))
            d->client[d->nclients++] = s->mount[i];
}

static void take_node(const struct mfs_status *s, const struct mfs_status_node *n,
                      struct mfs_description *d)
{
    add_node(d, n);
    take_clients(s, n, NULL, d);
    for (uint32_t i = 0; i < s->nplaces; i++) {
        if (!strcmp(s->place[i].node, n->name))
            d->place[d->nplaces++] = s->place[i];
        if (!strcmp(s->place[i].replica, n->name))
            d->replica[d->nreplicas++] = s->place[i];
    }
    for (uint32_t i = 0; i < s->nmoves; i++)
        if (s->move[i].from == n->id || s->move[i].to == n->id)
            d->move[d->nmoves++] = s->move[i];
}

/* Nodes on machines of their own have theirs at the same path. */
static void take_mount(const struct mfs_status *s, struct mfs_description *d)
{
    for (uint32_t i = 0; i < s->nnodes; i++) {
        if (has_mount(s, &s->node[i], d->name)) {
            add_node(d, &s->node[i]);
            take_clients(s, &s->node[i], d->name, d);
        }
    }
}

static void take_partition(const struct mfs_status *s, const struct mfs_status_place *p,
                           struct mfs_description *d)
{
    d->place[d->nplaces++] = *p;
    add_node(d, find_node(s, p->node));
    add_node(d, find_node(s, p->replica));
    for (uint32_t i = 0; i < s->nmoves; i++)
        if (s->move[i].partition == p->partition)
            d->move[d->nmoves++] = s->move[i];
}

static int say_none(const struct mfs_status *s, const char *what, struct mfs_err *err)
{
    if (what[0] == '/')
        return mfs_err_set(err, -ENOENT, "%s is no mount of a node; cm clients lists them", what);
    if (isdigit((unsigned char)what[0]) && s->partitions)
        return mfs_err_set(err, -ENOENT, "there is no partition %s; there are 0 to %u", what,
                           s->partitions - 1);
    return mfs_err_set(err, -ENOENT,
                       "there is no node %s; give one as cm status names it, a partition's number, "
                       "or the path of a mount",
                       what);
}

int mfs_describe(const struct mfs_status *s, const char *what, struct mfs_description *d,
                 struct mfs_err *err)
{
    const struct mfs_status_node *node = find_node(s, what);
    const struct mfs_status_place *place = NULL;
    bool mount = is_mount(s, what);
    uint64_t n;

    *d = (struct mfs_description){0};
    if (!mfs_text_u64(what, &n))
        place = find_place(s, n);
    if (!node && !mount && !place)
        return say_none(s, what, err);
    if (make_room(s, d)) {
        mfs_schema_clear(&mfs_description_schema, d);
        return mfs_err_set(err, -ENOMEM, "out of memory");
    }
    mfs_text_copy(d->name, sizeof d->name, what);
    mfs_text_copy(d->kind, sizeof d->kind, node ? "node" : mount ? "mount" : "partition");
    if (place)
        take_partition(s, place, d);
    else if (node)
        take_node(s, node, d);
    else
        take_mount(s, d);
    return 0;
}

/* ---- its events ------------------------------------------------------------------------------ */

/* Is that path in the text, and no path that is longer or below it? */
static bool has_path(const char *text, const char *path)
{
    size_t len = strlen(path);

    for (const char *at = strstr(text, path); at; at = strstr(at + 1, path))
        if ((at == text || strchr(" (\"'", at[-1])) && strchr(" ,:;)\"'", at[len]))
            return true; /* a NUL, too, ends it */
    return false;
}

/* Is that word in the text, with no letter or digit beside it? */
static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[len]))
            return true;
    return false;
}

bool mfs_describe_event(void *arg, const struct mfs_event *e)
{
    const struct mfs_description *d = arg;
    char words[32];

    if (!strcmp(d->kind, "node"))
        return !strcmp(e->who, d->name) || has_word(e->text, d->name);
    if (!strcmp(d->kind, "mount"))
        return has_path(e->text, d->name);
    snprintf(words, sizeof words, "partition %u", d->place[0].partition);
    return has_word(e->text, words);
}

/* ---- for people ------------------------------------------------------------------------------ */

#define LINE "%-14s"

static void put_partitions(const char *title, const struct mfs_status_place *p, uint32_t n,
                           struct mfs_buf *out)
{
    uint64_t bytes = 0;
    bool unknown = false;

    for (uint32_t i = 0; i < n; i++)
        if (p[i].bytes == MFS_UNKNOWN_U64)
            unknown = true;
        else
            bytes += p[i].bytes;
    mfs_buf_printf(out, LINE "%s, %s", title, MFS_TEXT_COUNT(n, "partition"),
                   unknown ? "-" : MFS_TEXT_BYTES(bytes));
    for (uint32_t i = 0; i < n; i++)
        mfs_buf_printf(out, "%s %u", i ? "" : ":", p[i].partition);
    mfs_buf_printf(out, "\n");
}

static void put_node(const struct mfs_status_node *n, struct mfs_buf *out)
{
    mfs_buf_printf(out, LINE "%s, epoch %llu%s\n", "State:", n->state, (unsigned long long)n->epoch,
                   n->votes ? ", votes on where cm is" : "");
    if (n->waits_for[0])
        mfs_buf_printf(out, LINE "%s\n", "Waits for:", n->waits_for);
    mfs_buf_printf(out, LINE "%s\n", "Address:", n->address);
    mfs_buf_printf(out, LINE "%s of %s (%s)\n", "Memory:", MFS_TEXT_BYTES(n->memory_used),
                   MFS_TEXT_BYTES(n->memory_capacity),
                   MFS_SHOW_SHARE(n->memory_used, n->memory_capacity, 1));
    mfs_buf_printf(out, LINE "in %s/s, out %s/s", "Link:", MFS_SHOW_RATE(n->bandwidth_in),
                   MFS_SHOW_RATE(n->bandwidth_out));
    if (n->bandwidth_capacity > 0)
        mfs_buf_printf(out, ", carries %s/s (%s)", MFS_TEXT_BYTES((uint64_t)n->bandwidth_capacity),
                       n->bandwidth_from);
    mfs_buf_printf(out, "\n" LINE "%.2f\n", "Share:", n->share);
    mfs_buf_printf(out, LINE "%s\n", "Mount:", n->mount[0] ? n->mount : "none");
    if (mfs_status_clients_behind(n))
        mfs_buf_printf(out, LINE "%u with an older table\n", "Clients:", n->clients_behind);
    if (n->copy_behind_ms)
        mfs_buf_printf(out, LINE "cm's state, old for %.1f s\n",
                       "Copy:", (double)n->copy_behind_ms / 1e3);
}

static void put_place(const struct mfs_description *d, struct mfs_buf *out)
{
    const struct mfs_status_place *p = d->place;

    bool replica = false;

    for (uint32_t i = 0; i < d->nnodes; i++) {
        bool is = !strcmp(d->node[i].name, p->replica);

        mfs_buf_printf(out, LINE "%s (%s), %s\n", is ? "Replica:" : "Node:", d->node[i].name,
                       d->node[i].address, d->node[i].state);
        replica |= is;
    }
    if (!replica)
        mfs_buf_printf(out, LINE "none\n", "Replica:");
    mfs_buf_printf(out, LINE "%s\n", "Holds:", MFS_TEXT_BYTES(p->bytes));
}

static void put_clients(const struct mfs_description *d, const struct mfs_status_node *n,
                        struct mfs_buf *out)
{
    for (uint32_t i = 0; i < d->nclients; i++) {
        const struct mfs_mount *m = &d->client[i];

        if (strcmp(m->node, n->name) != 0)
            continue;
        mfs_buf_printf(out, LINE "%s, process %u of user %u, version %s, %s\n", "Client:", m->path,
                       m->pid, m->uid, m->version, m->connected ? "connected" : "not connected");
        mfs_buf_printf(out, LINE "%llu, %llu of them failed; read %s, written %s\n",
                       "Operations:", (unsigned long long)m->operations,
                       (unsigned long long)m->errors, MFS_TEXT_BYTES(m->read_bytes),
                       MFS_TEXT_BYTES(m->written_bytes));
        mfs_buf_printf(out, LINE "half within %.3f ms, 99%% within %.3f ms, the longest %.3f ms\n",
                       "", m->p50 * 1e3, m->p99 * 1e3, m->max * 1e3);
    }
}

static void put_rest(const struct mfs_description *d, struct mfs_buf *out)
{
    for (uint32_t i = 0; i < d->nmoves; i++)
        mfs_buf_printf(out, LINE "partition %u, node-%u -> node-%u, %s, %s of %s\n",
                       i ? "" : "Moves:", d->move[i].partition, d->move[i].from, d->move[i].to,
                       d->move[i].step, MFS_TEXT_BYTES(d->move[i].bytes),
                       MFS_TEXT_BYTES(d->move[i].bytes_total));
    mfs_buf_printf(out, d->nevents ? "Events:\n" : LINE "none\n", "Events:");
    for (uint32_t i = 0; i < d->nevents; i++) {
        mfs_buf_printf(out, "  ");
        mfs_show_event(&d->event[i], out);
    }
}

/* With what is at it; nodes that have a mount follow each other. */
static void put_one_node(const struct mfs_description *d, const struct mfs_status_node *n,
                         bool is_node, struct mfs_buf *out)
{
    if (!is_node)
        mfs_buf_printf(out, LINE "%s\n", "Node:", n->name);
    put_node(n, out);
    if (is_node)
        put_partitions("Serves:", d->place, d->nplaces, out);
    if (is_node && d->nreplicas)
        put_partitions("Replicas of:", d->replica, d->nreplicas, out);
    put_clients(d, n, out);
}

int mfs_describe_render(const struct mfs_description *d, struct mfs_buf *out)
{
    bool is_node = !strcmp(d->kind, "node");
    char title[MFS_STATE_MAX + 1];

    snprintf(title, sizeof title, "%s:", d->kind);
    title[0] = (char)toupper((unsigned char)title[0]);
    mfs_buf_printf(out, LINE "%s\n", title, d->name);
    if (!strcmp(d->kind, "partition"))
        put_place(d, out);
    else
        for (uint32_t i = 0; i < d->nnodes; i++)
            put_one_node(d, &d->node[i], is_node, out);
    put_rest(d, out);
    return mfs_buf_printf(out, "%s", "");
}
