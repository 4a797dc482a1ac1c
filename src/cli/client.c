#include "cli/client.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

#define TABLE_WAIT (10 * MFS_SEC)
#define LOST_WAIT  (5 * MFS_SEC)   /* for the table, when a partition is not where it was */
#define MOVE_WAIT  (120 * MFS_SEC) /* for a partition that is being moved */

static void new_table(void *arg, struct mfs_table *table)
{
    struct mfs_verb_client *c = arg;

    mfs_store_set_table(c->store, table);
}

int mfs_verb_join(struct mfs_verb_client *c, const struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_store_opts opts = {.table_wait = LOST_WAIT, .fence_wait = MOVE_WAIT};
    struct mfs_table *table = NULL;
    int rc =
        mfs_text_format(c->address, sizeof c->address, "unix:%s/node-0/lm.sock", call->paths.dir);

    if (rc < 0)
        return mfs_err_set(err, rc, "state-dir: %s", strerror(-rc));
    rc = mfs_paths_check(&call->paths, err);
    if (rc < 0)
        return rc;
    c->config = (struct mfs_control_config){c->address, call->paths.secret, call->verb->name};
    rc = mfs_control_create(&c->control, &c->config, err);
    if (rc == 0)
        rc = mfs_control_wait_table(c->control, TABLE_WAIT, &table, err);
    if (rc < 0)
        return rc;
    rc = mfs_store_create(&c->store, table, &opts);
    if (rc < 0)
        return mfs_err_set(err, rc, "partition table: %s", strerror(-rc));
    mfs_control_on_table(c->control, new_table, NULL, c);
    return 0;
}

void mfs_verb_leave(struct mfs_verb_client *c)
{
    mfs_control_destroy(c->control); /* its thread uses the store */
    mfs_store_destroy(c->store);
}
