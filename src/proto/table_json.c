/* The partition table to and from JSON: a head, and its partitions in order; changes of it; and
 * which table a message brings. */
#include "proto/encode.h"
#include "proto/json.h"
#include "proto/messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/placement.h"

struct head {
    char name[MFS_NAME_MAX];
    uint64_t epoch;
    uint32_t stripe_size;
    bool growing, replicated;
    uint64_t failovers;
    uint32_t nparts;
    struct mfs_partition *part;
};

static const struct mfs_schema part_schema = {
    "partition", sizeof(struct mfs_partition),
    (const struct mfs_field[]){
        {.name = "node", .required = true, MFS_FIELD(U32, struct mfs_partition, node)},
        {.name = "host", .required = true, MFS_FIELD(STR, struct mfs_partition, host)},
        {.name = "port", .max = 65535, MFS_FIELD(U32, struct mfs_partition, port)},
        {.name = "unix", MFS_FIELD(STR, struct mfs_partition, unix_path)},
        {.name = "password", MFS_FIELD(STR, struct mfs_partition, password)},
        {.name = "era", MFS_FIELD(U32, struct mfs_partition, era)},
        {.name = "replica", MFS_FIELD(BOOL, struct mfs_partition, replica)},
        {0}}};

static const struct mfs_schema patch_schema = {
    "partition", sizeof(struct mfs_table_patch),
    (const struct mfs_field[]){
        {.name = "index", .required = true, MFS_FIELD(U32, struct mfs_table_patch, index)},
        {.name = "part",
         .required = true,
         MFS_FIELD(OBJECT, struct mfs_table_patch, part),
         .sub = &part_schema},
        {0}}};

const struct mfs_schema mfs_table_change_schema = {
    "change", sizeof(struct mfs_table_change),
    (const struct mfs_field[]){
        {.name = "base", MFS_FIELD(U64, struct mfs_table_change, base)},
        {.name = "digest", MFS_FIELD(STR, struct mfs_table_change, digest)},
        {.name = "epoch", MFS_FIELD(U64, struct mfs_table_change, epoch)},
        {.name = "growing", MFS_FIELD(BOOL, struct mfs_table_change, growing)},
        {.name = "replicated", MFS_FIELD(BOOL, struct mfs_table_change, replicated)},
        {.name = "failovers", MFS_FIELD(U64, struct mfs_table_change, failovers)},
        {.name = "partitions",
         .max = MFS_PARTITIONS_MAX,
         MFS_FIELD_LIST(struct mfs_table_change, patch, npatches, &patch_schema)},
        {0}}};

static const struct mfs_schema head_schema = {
    "table", sizeof(struct head),
    (const struct mfs_field[]){
        {.name = "name", .required = true, MFS_FIELD(STR, struct head, name)},
        {.name = "epoch", .required = true, MFS_FIELD(U64, struct head, epoch)},
        {.name = "stripe_size", .required = true, MFS_FIELD(U32, struct head, stripe_size)},
        {.name = "growing", MFS_FIELD(BOOL, struct head, growing)},
        {.name = "replicated", MFS_FIELD(BOOL, struct head, replicated)},
        {.name = "failovers", MFS_FIELD(U64, struct head, failovers)},
        {.name = "partitions",
         .required = true,
         .max = MFS_PARTITIONS_MAX,
         MFS_FIELD_LIST(struct head, part, nparts, &part_schema)},
        {0}}};

int mfs_table_encode(const struct mfs_table *t, enum mfs_layout layout, unsigned depth,
                     struct mfs_buf *out)
{
    struct head h;

    if (!t)
        return mfs_buf_append(out, "null", 4);
    h = (struct head){.epoch = t->epoch,
                      .stripe_size = t->stripe_size,
                      .growing = t->growing,
                      .replicated = t->replicated,
                      .failovers = t->failovers,
                      .nparts = t->nparts};
    memcpy(h.name, t->name, sizeof h.name);
    memcpy(&h.part, &(const struct mfs_partition *){t->part}, sizeof h.part); /* only read */
    return mfs_schema_put(&head_schema, &h, layout, depth, out);
}

int mfs_table_from_json(const cJSON *json, struct mfs_table **to, struct mfs_err *err)
{
    struct mfs_table *t;
    struct head h;
    int rc;

    *to = NULL;
    if (cJSON_IsNull(json))
        return 0;
    rc = mfs_schema_from_json(&head_schema, json, &h, err);
    if (rc)
        return rc;
    t = mfs_table_new(h.nparts);
    if (!t) {
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
        goto out;
    }
    memcpy(t->name, h.name, sizeof t->name);
    t->epoch = h.epoch;
    t->stripe_size = h.stripe_size;
    t->growing = h.growing;
    t->replicated = h.replicated;
    t->failovers = h.failovers;
    if (h.nparts)
        memcpy(t->part, h.part, h.nparts * sizeof *h.part);
    if (mfs_table_check(t)) {
        rc = mfs_err_set(err, -EINVAL, "table: epoch, stripe size or an address is missing");
        free(t);
        goto out;
    }
    *to = t;
out:
    mfs_schema_clear(&head_schema, &h);
    return rc;
}

int mfs_table_of_message(const struct mfs_msg_table *m, const struct mfs_table *held,
                         struct mfs_table **out, struct mfs_err *err)
{
    int rc = 0;

    *out = NULL;
    if (m->table && held && m->table->epoch <= held->epoch)
        return 0;
    if (!m->table && m->change.base && held && m->change.epoch <= held->epoch)
        return 0;
    if (m->table) {
        *out = mfs_table_dup(m->table); /* it was checked when it was decoded */
        rc = *out ? 0 : -ENOMEM;
    } else {
        rc = m->change.base ? mfs_table_apply(held, &m->change, out) : -EINVAL;
    }
    if (rc)
        mfs_err_set(err, rc, "%s",
                    rc == -ESTALE   ? "the change is of another table"
                    : rc == -ENOMEM ? "out of memory"
                                    : "not a valid table");
    return rc;
}
