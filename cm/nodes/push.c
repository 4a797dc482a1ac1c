/* Pushing a table, and counting the nodes and clients that have it. */
#include "cm/nodes/push.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/state/events.h"
#include "cm/nodes/tables.h"
#include "cm/nodes/trust.h"
#include "proto/times.h"

#define PUSH_TIME (20 * MFS_SEC)

static_assert(MFS_CLIENT_ACK_TIME < PUSH_TIME, "a Local Manager names the client that is late");

struct push {
    struct mfs_cm *cm;
    uint64_t epoch;
    int64_t began, last; /* call, and the newest answer that it is there */
    uint32_t pending, missing;
    void (*done)(void *arg, int64_t took, uint32_t missing);
    void *arg;
};

/* A node or a client that is to have it. */
struct target {
    struct push *push;
    struct mfs_node *node; /* NULL: a client of cm's own */
    char name[MFS_NAME_MAX];
};

static void settle(struct push *p)
{
    if (--p->pending)
        return;
    p->done(p->arg, p->last - p->began, p->missing);
    free(p);
}

/* No node and no client is connected. */
static void settle_at_once(void *arg)
{
    struct push *p = arg;

    p->pending = 1;
    settle(p);
}

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct target *t = arg;
    struct push *p = t->push;

    (void)reply;
    if (!err) {
        p->last = mfs_clock_mono();
        if (t->node)
            mfs_trust_has(t->node, p->epoch);
    } else {
        p->missing++;
        /* One that has gone gets the table when it comes back. */
        if (err->code != -ECONNABORTED && !mfs_cm_in_phase(p->cm, MFS_PHASE_STOPPING))
            mfs_event_add(p->cm->paths->events, t->name, "table-refused", "epoch %llu: %s",
                          (unsigned long long)p->epoch, err->msg);
    }
    free(t);
    settle(p);
}

static void send_to(struct push *p, struct mfs_node *node, struct mfs_cm_subscriber *client)
{
    const char *name = node ? node->record->name : "client";
    struct target *t = malloc(sizeof *t);
    int rc = t ? 0 : -ENOMEM;

    if (!rc) {
        t->push = p;
        t->node = node;
        memccpy(t->name, name, '\0', sizeof t->name - 1);
        t->name[sizeof t->name - 1] = '\0';
        rc = node ? mfs_tables_ask(node, PUSH_TIME, answered, t)
                  : mfs_tables_ask_client(p->cm, client, PUSH_TIME, answered, t);
    }
    if (!rc) {
        p->pending++;
        return;
    }
    free(t);
    p->missing++;
    mfs_warn("push", "%s: cannot send table %llu: %s", name, (unsigned long long)p->epoch,
             strerror(-rc));
}

int mfs_push_table(struct mfs_cm *cm, void (*done)(void *arg, int64_t took, uint32_t missing),
                   void *arg)
{
    struct push *p = malloc(sizeof *p);
    int rc;

    if (!p)
        return -ENOMEM;
    *p = (struct push){.cm = cm, .epoch = cm->state.table->epoch, .done = done, .arg = arg};
    p->began = p->last = mfs_clock_mono();
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->nodes[i]->conn)
            send_to(p, cm->nodes[i], NULL);
    for (struct mfs_cm_subscriber *s = cm->subscribers; s; s = s->next)
        send_to(p, NULL, s);
    rc = p->pending ? 0 : mfs_loop_post(cm->loop, settle_at_once, p);
    if (rc)
        free(p);
    return rc;
}
