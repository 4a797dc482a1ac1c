/* The state file. */
#include "cm/state/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/trusted_dir.h"
#include "cluster/placement.h"

#define SIZE_MOST (256U << 20)
#define LOAD_SLOW (2ULL << 20) /* bytes/s */
#define FIELDS    (const struct mfs_field[])

static const struct mfs_schema node_schema = {
    "node", sizeof(struct mfs_cm_node),
    FIELDS{{.name = "id", .required = true, MFS_FIELD(U32, struct mfs_cm_node, id)},
           {.name = "slot", MFS_FIELD(U32, struct mfs_cm_node, slot)},
           {.name = "turn", MFS_FIELD(STR, struct mfs_cm_node, transition)},
           {.name = "name", .required = true, MFS_FIELD(STR, struct mfs_cm_node, name)},
           {.name = "address", .required = true, MFS_FIELD(STR, struct mfs_cm_node, address)},
           {.name = "handle", MFS_FIELD(STR, struct mfs_cm_node, handle)},
           {.name = "mount", MFS_FIELD(STR, struct mfs_cm_node, mount)},
           {.name = "memory", .required = true, MFS_FIELD(U64, struct mfs_cm_node, memory)},
           {.name = "bandwidth", MFS_FIELD(F64, struct mfs_cm_node, bandwidth)},
           {.name = "bandwidth_from", MFS_FIELD(STR, struct mfs_cm_node, bandwidth_from)},
           {.name = "bandwidth_seen", MFS_FIELD(F64, struct mfs_cm_node, bandwidth_seen)},
           {.name = "leave_by", MFS_FIELD(U64, struct mfs_cm_node, leave_by)},
           {.name = "votes", .max = MFS_VOTES_ALWAYS, MFS_FIELD(U32, struct mfs_cm_node, votes)},
           {.name = "control", .max = 65535, MFS_FIELD(U32, struct mfs_cm_node, control)},
           {.name = "metrics", .max = 65535, MFS_FIELD(U32, struct mfs_cm_node, metrics)},
           {0}}};

static const struct mfs_schema provider_option_schema = {
    "option", sizeof(struct mfs_provider_option),
    FIELDS{{.name = "key", .required = true, MFS_FIELD(STR, struct mfs_provider_option, key)},
           {.name = "value", .required = true, MFS_FIELD(STR, struct mfs_provider_option, value)},
           {0}}};

static const struct mfs_schema part_schema = {
    "part", sizeof(struct mfs_cm_part),
    FIELDS{{.name = "node", .required = true, MFS_FIELD(U32, struct mfs_cm_part, node)},
           {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_cm_part, password)},
           {.name = "admin_password",
            .required = true,
            MFS_FIELD(STR, struct mfs_cm_part, admin_password)},
           {.name = "era", MFS_FIELD(U32, struct mfs_cm_part, era)},
           {.name = "replica_step", MFS_FIELD(STR, struct mfs_cm_part, replica_step)},
           {.name = "replica_node", MFS_FIELD(U32, struct mfs_cm_part, replica_node)},
           {.name = "replica_password", MFS_FIELD(STR, struct mfs_cm_part, replica_password)},
           {.name = "replica_admin_password",
            MFS_FIELD(STR, struct mfs_cm_part, replica_admin_password)},
           {0}}};

static const struct mfs_schema stale_schema = {
    "grave", sizeof(struct mfs_cm_stale),
    FIELDS{{.name = "node", .required = true, MFS_FIELD(U32, struct mfs_cm_stale, node)},
           {.name = "part", .required = true, MFS_FIELD(U32, struct mfs_cm_stale, part)},
           {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_cm_stale, password)},
           {0}}};

static const struct mfs_schema renewal_schema = {
    "renewal", sizeof(struct mfs_cm_renewal),
    FIELDS{{.name = "part", .required = true, MFS_FIELD(U32, struct mfs_cm_renewal, part)},
           {.name = "to", .required = true, MFS_FIELD(U32, struct mfs_cm_renewal, to)},
           {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_cm_renewal, password)},
           {.name = "admin_password",
            .required = true,
            MFS_FIELD(STR, struct mfs_cm_renewal, admin_password)},
           {0}}};

static const struct mfs_schema move_schema = {
    "move", sizeof(struct mfs_cm_move),
    FIELDS{{.name = "part", .required = true, MFS_FIELD(U32, struct mfs_cm_move, part)},
           {.name = "from", .required = true, MFS_FIELD(U32, struct mfs_cm_move, from)},
           {.name = "to", .required = true, MFS_FIELD(U32, struct mfs_cm_move, to)},
           {.name = "step", .required = true, MFS_FIELD(STR, struct mfs_cm_move, step)},
           {.name = "cold", MFS_FIELD(BOOL, struct mfs_cm_move, cold)},
           {.name = "diskless", MFS_FIELD(BOOL, struct mfs_cm_move, diskless)},
           {.name = "rate", MFS_FIELD(U64, struct mfs_cm_move, rate)},
           {.name = "password", .required = true, MFS_FIELD(STR, struct mfs_cm_move, password)},
           {.name = "admin_password",
            .required = true,
            MFS_FIELD(STR, struct mfs_cm_move, admin_password)},
           {.name = "bytes", MFS_FIELD(U64, struct mfs_cm_move, bytes)},
           {0}}};

static const struct mfs_schema scale_schema = {
    "scale", sizeof(struct mfs_cm_scale),
    FIELDS{{.name = "step", MFS_FIELD(STR, struct mfs_cm_scale, step)},
           {.name = "who", MFS_FIELD(STR, struct mfs_cm_scale, who)},
           {.name = "from", MFS_FIELD(U32, struct mfs_cm_scale, from)},
           {.name = "to", MFS_FIELD(U32, struct mfs_cm_scale, to)},
           {.name = "cold", MFS_FIELD(BOOL, struct mfs_cm_scale, cold)},
           {.name = "at_once", MFS_FIELD(BOOL, struct mfs_cm_scale, at_once)},
           {.name = "drain", MFS_FIELD(BOOL, struct mfs_cm_scale, drain)},
           {.name = "forget", MFS_FIELD(BOOL, struct mfs_cm_scale, forget)},
           {.name = "urgent", MFS_FIELD(BOOL, struct mfs_cm_scale, urgent)},
           {.name = "by_bytes", MFS_FIELD(BOOL, struct mfs_cm_scale, by_bytes)},
           {.name = "rate", MFS_FIELD(U64, struct mfs_cm_scale, rate)},
           {.name = "began", MFS_FIELD(U64, struct mfs_cm_scale, began)},
           {.name = "lost", MFS_FIELD(U32, struct mfs_cm_scale, lost)},
           {.name = "lost_bytes", MFS_FIELD(U64, struct mfs_cm_scale, lost_bytes)},
           {.name = "moved", MFS_FIELD(U32, struct mfs_cm_scale, moved)},
           {.name = "bytes", MFS_FIELD(U64, struct mfs_cm_scale, bytes)},
           {.name = "bound_ms", MFS_FIELD(F64, struct mfs_cm_scale, lower_bound_ms)},
           {.name = "blocked_ms_max", MFS_FIELD(F64, struct mfs_cm_scale, blocked_ms_max)},
           {.name = "blocked_ms_total", MFS_FIELD(F64, struct mfs_cm_scale, blocked_ms_total)},
           {0}}};

const struct mfs_schema mfs_cm_state_schema = {
    "cm.json", sizeof(struct mfs_cm_state),
    FIELDS{
        {.name = "name", .required = true, MFS_FIELD(STR, struct mfs_cm_state, name)},
        {.name = "term", MFS_FIELD(U64, struct mfs_cm_state, term)},
        {.name = "candidate", MFS_FIELD(U32, struct mfs_cm_state, candidate)},
        {.name = "base", MFS_FIELD(U64, struct mfs_cm_state, base)},
        {.name = "raised", MFS_FIELD(BOOL, struct mfs_cm_state, raised)},
        {.name = "revision", MFS_FIELD(U64, struct mfs_cm_state, revision)},
        {.name = "cm", MFS_FIELD(STR, struct mfs_cm_state, cm)},
        {.name = "phase", .required = true, MFS_FIELD(STR, struct mfs_cm_state, phase)},
        {.name = "provider", MFS_FIELD(STR, struct mfs_cm_state, provider)},
        {.name = "first_address", MFS_FIELD(STR, struct mfs_cm_state, first_address)},
        {.name = "provider_options",
         MFS_FIELD_LIST(struct mfs_cm_state, provider_option, nprovider_options,
                        &provider_option_schema)},
        {.name = "policy", MFS_FIELD(STR, struct mfs_cm_state, policy)},
        {.name = "migration", MFS_FIELD(STR, struct mfs_cm_state, migration)},
        {.name = "scaling",
         MFS_FIELD(OBJECT, struct mfs_cm_state, scaling),
         .sub = &mfs_policy_settings_schema},
        {.name = "balancing",
         MFS_FIELD(OBJECT, struct mfs_cm_state, balancing),
         .sub = &mfs_rebalance_settings_schema},
        {.name = "network", MFS_FIELD(STR, struct mfs_cm_state, network)},
        {.name = "interface", MFS_FIELD(STR, struct mfs_cm_state, interface)},
        {.name = "probe", MFS_FIELD(BOOL, struct mfs_cm_state, probe)},
        {.name = "weights", MFS_FIELD(STR, struct mfs_cm_state, weights)},
        {.name = "bandwidth", MFS_FIELD(STR, struct mfs_cm_state, bandwidth)},
        {.name = "log_level", MFS_FIELD(STR, struct mfs_cm_state, log_level)},
        {.name = "log_format", MFS_FIELD(STR, struct mfs_cm_state, log_format)},
        {.name = "events_size", MFS_FIELD(U64, struct mfs_cm_state, events_size)},
        {.name = "node_dir", MFS_FIELD(STR, struct mfs_cm_state, node_dir)},
        {.name = "listen", MFS_FIELD(STR, struct mfs_cm_state, listen)},
        {.name = "ui", MFS_FIELD(STR, struct mfs_cm_state, ui)},
        {.name = "ui_write", MFS_FIELD(BOOL, struct mfs_cm_state, ui_write)},
        {.name = "metrics", MFS_FIELD(STR, struct mfs_cm_state, metrics)},
        {.name = "node_metrics", .max = 65535, MFS_FIELD(U32, struct mfs_cm_state, node_metrics)},
        {.name = "mount", MFS_FIELD(STR, struct mfs_cm_state, mount)},
        {.name = "mount_options", MFS_FIELD(STR, struct mfs_cm_state, mount_options)},
        {.name = "beta", MFS_FIELD(F64, struct mfs_cm_state, beta)},
        {.name = "memory", MFS_FIELD(U64, struct mfs_cm_state, memory)},
        {.name = "rate", MFS_FIELD(U64, struct mfs_cm_state, rate)},
        {.name = "link_rate", MFS_FIELD(U64, struct mfs_cm_state, link_rate)},
        {.name = "replicas", MFS_FIELD(U32, struct mfs_cm_state, replicas)},
        {.name = "grace", MFS_FIELD(U32, struct mfs_cm_state, grace)},
        {.name = "on_end", MFS_FIELD(STR, struct mfs_cm_state, on_end)},
        {.name = "auto_forget", MFS_FIELD(U32, struct mfs_cm_state, auto_forget)},
        {.name = "stripe_size", MFS_FIELD(U32, struct mfs_cm_state, stripe_size)},
        {.name = "started_with", MFS_FIELD(U32, struct mfs_cm_state, started_with)},
        {.name = "next_node", MFS_FIELD(U32, struct mfs_cm_state, next_node)},
        {.name = "nodes",
         .required = true,
         MFS_FIELD_LIST(struct mfs_cm_state, node, nnodes, &node_schema)},
        {.name = "parts",
         .required = true,
         MFS_FIELD_LIST(struct mfs_cm_state, part, nparts, &part_schema)},
        {.name = "table", MFS_FIELD(TABLE, struct mfs_cm_state, table)},
        {.name = "scale", MFS_FIELD(OBJECT, struct mfs_cm_state, scale), .sub = &scale_schema},
        {.name = "moves", MFS_FIELD_LIST(struct mfs_cm_state, move, nmoves, &move_schema)},
        {.name = "restored", MFS_FIELD(STR, struct mfs_cm_state, restored)},
        {.name = "image_dir", MFS_FIELD(STR, struct mfs_cm_state, image_dir)},
        {.name = "image_epoch", MFS_FIELD(U64, struct mfs_cm_state, image_epoch)},
        {.name = "images",
         MFS_FIELD_LIST(struct mfs_cm_state, image, nimages, &mfs_image_part_schema)},
        {.name = "checkpoint_dir", MFS_FIELD(STR, struct mfs_cm_state, checkpoint_dir)},
        {.name = "checkpoint_time", MFS_FIELD(U64, struct mfs_cm_state, checkpoint_time)},
        {.name = "renewals",
         MFS_FIELD_LIST(struct mfs_cm_state, renewal, nrenewals, &renewal_schema)},
        {.name = "graves", MFS_FIELD_LIST(struct mfs_cm_state, stale, nstale, &stale_schema)},
        {0}}};

int mfs_cm_state_save(struct mfs_cm_state *s, const char *path)
{
    struct mfs_buf b;
    int rc;

    s->revision++;
    mfs_buf_init(&b);
    rc = mfs_schema_encode(&mfs_cm_state_schema, s, true, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "\n", 1);
    if (!rc)
        rc = mfs_file_write(path, mfs_buf_data(&b), mfs_buf_len(&b), 0600);
    mfs_buf_fini(&b);
    return rc;
}

int mfs_cm_state_note(struct mfs_cm_state *s, const char *path)
{
    struct mfs_buf b;
    int rc;

    s->revision++;
    mfs_buf_init(&b);
    rc = mfs_schema_encode(&mfs_cm_state_schema, s, true, &b);
    if (!rc)
        rc = mfs_file_note(path, mfs_buf_data(&b), mfs_buf_len(&b), 0600);
    mfs_buf_fini(&b);
    return rc;
}

static int check(const struct mfs_cm_state *s, struct mfs_err *err)
{
    if (!s->nnodes || !s->nparts || s->nparts > MFS_PARTITIONS_MAX ||
        (s->table && s->table->nparts != s->nparts))
        return mfs_err_set(err, -EINVAL, "its numbers of nodes and partitions make no sense");
    for (uint32_t i = 0; i < s->nparts; i++)
        if (!mfs_cm_state_node(s, s->part[i].node))
            return mfs_err_set(err, -EINVAL, "partition %u is on a node that is not there", i);
    if (s->nimages && s->nimages != s->nparts)
        return mfs_err_set(err, -EINVAL, "it begins with %u images for %u partitions", s->nimages,
                           s->nparts);
    for (uint32_t i = 0; i < s->nmoves; i++)
        if (s->move[i].part >= s->nparts)
            return mfs_err_set(err, -EINVAL, "move %u is of a partition that is not there", i);
    for (uint32_t i = 0; i < s->nrenewals; i++)
        if (s->renewal[i].part >= s->nparts)
            return mfs_err_set(err, -EINVAL, "renewal %u is of a partition that is not there", i);
    for (uint32_t i = 0; i < s->nstale; i++)
        if (s->stale[i].part >= s->nparts)
            return mfs_err_set(err, -EINVAL, "grave %u is of a partition that is not there", i);
    return 0;
}

/* A node that hung may have been removed while a move still waited for it to end a process. */
static void drop_void_moves(struct mfs_cm_state *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->nmoves; i++)
        if (mfs_cm_state_node(s, s->move[i].from) && mfs_cm_state_node(s, s->move[i].to))
            s->move[n++] = s->move[i];
    s->nmoves = n;
}

int mfs_cm_state_parse(struct mfs_cm_state *s, const char *text, size_t len, const char *name,
                       struct mfs_err *err)
{
    int rc = mfs_schema_decode(&mfs_cm_state_schema, text, len, s, err);

    if (!rc) {
        rc = check(s, err);
        if (rc)
            mfs_cm_state_clear(s);
        else
            drop_void_moves(s);
    }
    if (rc)
        mfs_err_prefix(err, "%s", name);
    return rc;
}

int mfs_cm_state_load(struct mfs_cm_state *s, const char *path, struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    memset(s, 0, sizeof *s);
    mfs_buf_init(&b);
    rc = mfs_trusted_read(path, SIZE_MOST, &b);
    if (!rc)
        rc = mfs_cm_state_parse(s, mfs_buf_data(&b), mfs_buf_len(&b), path, err);
    else
        mfs_err_set(err, rc, "%s: %s", path, rc == -EPERM ? MFS_TRUSTED_NO_FILE : strerror(-rc));
    mfs_buf_fini(&b);
    return rc;
}

bool mfs_cm_state_newer(uint64_t term, uint64_t revision, uint64_t than_term,
                        uint64_t than_revision)
{
    return term > than_term || (term == than_term && revision > than_revision);
}

void mfs_cm_state_clear(struct mfs_cm_state *s)
{
    mfs_schema_clear(&mfs_cm_state_schema, s);
}

const struct mfs_cm_node *mfs_cm_state_node(const struct mfs_cm_state *s, uint32_t id)
{
    for (uint32_t i = 0; i < s->nnodes; i++)
        if (s->node[i].id == id)
            return &s->node[i];
    return NULL;
}

uint32_t mfs_cm_state_count(const struct mfs_cm_state *s, uint32_t node)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->nparts; i++)
        n += s->part[i].node == node;
    return n;
}

int64_t mfs_cm_state_load_time(const struct mfs_cm_state *s)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < s->nimages; i++)
        bytes += s->image[i].bytes;
    return (int64_t)(bytes / LOAD_SLOW) * MFS_SEC;
}

void mfs_cm_state_loaded(struct mfs_cm_state *s)
{
    free(s->image);
    s->image = NULL;
    s->nimages = 0;
    s->image_dir[0] = '\0';
}

int mfs_cm_state_add(struct mfs_cm_state *s, const struct mfs_cm_node *n)
{
    struct mfs_cm_node *more = reallocarray(s->node, s->nnodes + 1, sizeof *more);

    if (!more)
        return -ENOMEM;
    s->node = more;
    s->node[s->nnodes++] = *n;
    return 0;
}

void mfs_cm_state_drop(struct mfs_cm_state *s, uint32_t id)
{
    for (uint32_t i = 0; i < s->nnodes; i++) {
        if (s->node[i].id != id)
            continue;
        memmove(&s->node[i], &s->node[i + 1], (s->nnodes - i - 1) * sizeof *s->node);
        s->nnodes--;
        return;
    }
}
