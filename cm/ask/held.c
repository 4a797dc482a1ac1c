/* What a deployment holds, asked of its partitions and of its cm. */
#include "cm/ask/held.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/capacity.h"
#include "cluster/table.h"
#include "cm/ask/client.h"
#include "cm/state/node_copy.h"
#include "store/args.h"
#include "store/reply.h"

#define ASK_TIME (3 * MFS_SEC)

static uint64_t number(const struct mfs_cmd *cmd)
{
    size_t len;
    const char *text = mfs_reply_str(cmd->reply, &len);

    return text ? strtoull(text, NULL, 10) : 0;
}

/* Inodes that were made, less those that were freed (docs/design/metadata.md). */
static bool count_files(struct mfs_store *store, uint64_t *files)
{
    static const char *const names[2] = {"#seq", "#freed"};
    uint32_t n = mfs_store_nparts(store);
    struct mfs_cmd *cmds = calloc(2 * (size_t)n, sizeof *cmds);
    struct mfs_args args[2];
    int rc;

    *files = 0;
    if (!cmds)
        return false;
    for (int k = 0; k < 2; k++) {
        mfs_args_init(&args[k], "GET");
        mfs_args_str(&args[k], names[k]);
    }
    for (size_t i = 0; i < 2 * (size_t)n; i++) {
        cmds[i] = mfs_args_cmd(&args[i % 2], (uint32_t)(i / 2));
        cmds[i].idempotent = true;
    }
    rc = mfs_store_exec(store, cmds, 2 * (size_t)n);
    for (size_t i = 0; i < n && !rc; i++) {
        uint64_t made = number(&cmds[2 * i]), freed = number(&cmds[2 * i + 1]);

        *files += made > freed ? made - freed : 0;
    }
    if (*files)
        --*files; /* the root */
    mfs_cmds_fini(cmds, 2 * (size_t)n);
    free(cmds);
    return !rc;
}

static bool ask_partitions(const struct mfs_table *table, uint64_t *files)
{
    const struct mfs_store_opts opts = {.node = MFS_NO_NODE, .io_timeout = ASK_TIME};
    struct mfs_table *copy = mfs_table_dup(table);
    struct mfs_store *store;
    bool counted;

    if (!copy || mfs_store_create(&store, copy, &opts))
        return false;
    counted = count_files(store, files);
    mfs_store_destroy(store);
    return counted;
}

/* What partitions use beyond what empty ones do. */
static uint64_t ask_bytes(const struct mfs_paths *p)
{
    struct mfs_status s = {0};
    uint64_t used, capacity, empty;
    struct mfs_err err;

    if (mfs_client_call(p, MFS_MSG_STATUS, NULL, ASK_TIME, &s, &err))
        return 0;
    mfs_status_memory(&s, &used, &capacity);
    empty = (uint64_t)s.partitions * MFS_CAPACITY_EMPTY;
    mfs_schema_clear(&mfs_status_schema, &s);
    return used > empty ? used - empty : 0;
}

bool mfs_held_look(const struct mfs_paths *p, struct mfs_held *h)
{
    struct mfs_cm_state st;
    struct mfs_err err;
    bool runs;

    *h = (struct mfs_held){0};
    if (mfs_cm_state_load(&st, p->state, &err) && mfs_node_copy_find(p, &st, NULL, &err))
        return false;
    runs = !strcmp(st.phase, MFS_PHASE_RUNNING) && st.table;
    if (runs) {
        h->counted = ask_partitions(st.table, &h->files);
        h->bytes = ask_bytes(p);
    }
    mfs_cm_state_clear(&st);
    return runs;
}
