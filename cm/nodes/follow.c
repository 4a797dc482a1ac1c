/* One connection at a time to each Local Manager that is not connected; it is closed when the
 * answer has come, or the time is over. */
#include "cm/nodes/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/state/events.h"
#include "net/conn.h"
#include "net/address.h"

#define FIRST     (10 * MFS_MSEC) /* so that what has been opened after us is there */
#define STEP      MFS_SEC
#define TELL_TIME (3 * MFS_SEC)

struct mfs_follow {
    struct mfs_node *node;
    struct mfs_conn *conn;
};

void mfs_superseded(struct mfs_cm *cm, const char *why)
{
    if (cm->superseded)
        return;
    cm->superseded = true;
    mfs_event_add(cm->paths->events, "cm", "superseded", "this cm is of term %llu and ends: %s",
                  (unsigned long long)cm->state.term, why);
    mfs_loop_stop(cm->loop);
}

static void end(struct mfs_follow *f)
{
    struct mfs_conn *c = f->conn;

    f->node->follow = NULL;
    if (c)
        mfs_conn_close(c); /* `told` hears of that */
    free(f);
}

static void told(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_follow *f = arg;

    (void)reply;
    if (err && err->code == -ESTALE)
        mfs_superseded(f->node->cm, err->msg);
}

static void up(struct mfs_conn *c, void *arg)
{
    struct mfs_follow *f = arg;
    const struct mfs_cm *cm = f->node->cm;
    struct mfs_msg_follow m = {.term = cm->state.term, .candidate = cm->state.candidate};

    mfs_text_copy(m.cm, sizeof m.cm, cm->address);
    mfs_conn_request(c, MFS_MSG_FOLLOW, &m, TELL_TIME, told, f);
}

static void down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct mfs_follow *f = arg;

    (void)c;
    (void)why;
    f->conn = NULL;
    end(f);
}

static const struct mfs_service service = {NULL, up, down};

static void tell(struct mfs_node *n)
{
    struct mfs_follow *f = calloc(1, sizeof *f);
    char address[MFS_ADDRESS_MAX];
    struct mfs_err err;

    if (!f)
        return;
    f->node = n;
    if (!mfs_address_join(n->record->address, n->record->control, address, sizeof address))
        f->conn = mfs_conn_connect(n->cm->loop, address, &n->cm->secret, "cm", TELL_TIME, &service,
                                   f, &err);
    if (f->conn)
        n->follow = f;
    else
        free(f);
}

/* What was begun a step ago has had the time for an answer. */
static void look(void *arg)
{
    struct mfs_cm *cm = arg;

    for (uint32_t i = 0; i < cm->state.nnodes && !cm->superseded; i++) {
        struct mfs_node *n = cm->nodes[i];

        if (n->follow)
            end(n->follow);
        else if (!n->conn && n->record->control)
            tell(n);
    }
}

int mfs_follow_begin(struct mfs_cm *cm)
{
    if (cm->provider->traits->sees_processes)
        return 0;
    cm->following = mfs_loop_timer(cm->loop, FIRST, STEP, look, cm);
    return cm->following ? 0 : -ENOMEM;
}

static void end_of(struct mfs_node *n)
{
    if (n->follow)
        end(n->follow);
}

void mfs_follow_fini(struct mfs_cm *cm)
{
    mfs_timer_cancel(cm->following);
    cm->following = NULL;
    for (uint32_t i = 0; cm->nodes && i < cm->state.nnodes; i++)
        end_of(cm->nodes[i]);
    for (struct mfs_node *n = cm->left; n; n = n->next_left)
        end_of(n);
}
