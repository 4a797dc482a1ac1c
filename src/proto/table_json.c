/* The partition table to and from JSON: a head, and its partitions in order. */
#include "proto/encode.h"
#include "proto/json.h"

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
    struct part *part;
};

struct part {
    uint32_t node, port, era;
    bool replica;
    char host[MFS_HOST_MAX];
    char unix_path[MFS_UNIXPATH_MAX];
    char password[MFS_SECRET_MAX];
};

static const struct mfs_schema part_schema = {
    "partition", sizeof(struct part),
    (const struct mfs_field[]){
        {.name = "node", .required = true, MFS_FIELD(U32, struct part, node)},
        {.name = "host", .required = true, MFS_FIELD(STR, struct part, host)},
        {.name = "port", .max = 65535, MFS_FIELD(U32, struct part, port)},
        {.name = "unix", MFS_FIELD(STR, struct part, unix_path)},
        {.name = "password", MFS_FIELD(STR, struct part, password)},
        {.name = "era", MFS_FIELD(U32, struct part, era)},
        {.name = "replica", MFS_FIELD(BOOL, struct part, replica)},
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
    int rc;

    if (!t)
        return mfs_buf_append(out, "null", 4);
    h = (struct head){.epoch = t->epoch,
                      .stripe_size = t->stripe_size,
                      .growing = t->growing,
                      .replicated = t->replicated,
                      .failovers = t->failovers,
                      .nparts = t->nparts};
    memcpy(h.name, t->name, sizeof h.name);
    h.part = calloc(t->nparts ? t->nparts : 1, sizeof *h.part);
    if (!h.part)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->nparts; i++) {
        h.part[i].node = t->part[i].node;
        h.part[i].port = t->part[i].port;
        h.part[i].era = t->part[i].era;
        h.part[i].replica = t->part[i].replica;
        memcpy(h.part[i].host, t->part[i].host, sizeof h.part[i].host);
        memcpy(h.part[i].unix_path, t->part[i].unix_path, sizeof h.part[i].unix_path);
        memcpy(h.part[i].password, t->part[i].password, sizeof h.part[i].password);
    }
    rc = mfs_schema_put(&head_schema, &h, layout, depth, out);
    free(h.part);
    return rc;
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
    for (uint32_t i = 0; i < h.nparts; i++) {
        t->part[i].node = h.part[i].node;
        t->part[i].port = (uint16_t)h.part[i].port;
        t->part[i].era = h.part[i].era;
        t->part[i].replica = h.part[i].replica;
        memcpy(t->part[i].host, h.part[i].host, sizeof t->part[i].host);
        memcpy(t->part[i].unix_path, h.part[i].unix_path, sizeof t->part[i].unix_path);
        memcpy(t->part[i].password, h.part[i].password, sizeof t->part[i].password);
    }
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
