/* `cm start` for a deployment that runs: what was unmounted on purpose is mounted again. An
 * operator's MOUNT is passed on to all nodes that should have a mount, and answered when all have.
 * Each lm knows best whether there is something to do. Nodes that are coming or leaving are the
 * affair of the change under way: one that comes may not have an lm yet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cm/nodes/quorum.h"
#include "cm/life/remount.h"

struct remount {
    struct mfs_deferred from;
    uint32_t awaited;   /* nodes that have not answered, and 1 while they are being asked */
    struct mfs_err err; /* of the first that failed; code 0: none */
};

/* One node's part of it. */
struct asked {
    struct remount *of;
    char node[MFS_NAME_MAX];
    bool reported; /* its last report has the mount in its place */
};

static void one_less(struct remount *r)
{
    if (--r->awaited)
        return;
    if (r->err.code)
        mfs_deferred_fail(&r->from, r->err.code, "%s", r->err.msg);
    else
        mfs_deferred_reply(&r->from, MFS_MSG_MOUNT, NULL);
    free(r);
}

static void fail(struct remount *r, const char *node, const struct mfs_err *why)
{
    if (!r->err.code)
        mfs_err_set(&r->err, why->code, "%s: %s", node, why->msg);
}

/* Where the mount was reported, lm has nothing to do or, when a user mounted it there by hand, can
 * do nothing. */
static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct asked *a = arg;

    (void)reply;
    if (err && !(a->reported && err->code == -EBUSY))
        fail(a->of, a->node, err);
    one_less(a->of);
    free(a);
}

static void ask(const struct mfs_cm *cm, struct mfs_node *n, struct remount *r)
{
    struct asked *a = calloc(1, sizeof *a);
    struct mfs_msg_mount m = {0};
    struct mfs_err err;
    int rc = a ? -ENOTCONN : -ENOMEM;

    mfs_text_copy(m.path, sizeof m.path, n->record->mount);
    mfs_text_copy(m.options, sizeof m.options, cm->state.mount_options);
    if (a && n->conn) {
        *a = (struct asked){.of = r, .reported = !strcmp(n->mount, n->record->mount)};
        mfs_text_copy(a->node, sizeof a->node, n->record->name);
        rc = mfs_node_ask(n, MFS_MSG_MOUNT, &m, MFS_MOUNT_TIME, answered, a);
    }
    if (!rc) {
        r->awaited++;
        return;
    }
    free(a);
    mfs_err_set(&err, rc, "cannot mount %s: its lm: %s", m.path, strerror(-rc));
    fail(r, n->record->name, &err);
}

void mfs_remount(struct mfs_cm *cm, struct mfs_conn *c, uint64_t id)
{
    struct remount *r = calloc(1, sizeof *r);

    if (!r) {
        mfs_conn_fail(c, id, -ENOMEM, "out of memory");
        return;
    }
    *r = (struct remount){.from = mfs_reply_later(c, id), .awaited = 1};
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->nodes[i]->record->mount[0] && !cm->nodes[i]->record->transition[0])
            ask(cm, cm->nodes[i], r);
    one_less(r);
}
