/* Asking cm whether it is there, for it to know that this node is, and for the clients to know how
 * long they may rely on what they have learned (cluster/trust.h). Only with replicas. */
#include "lm/agent/agent_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/trust.h"

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    const struct mfs_msg_beat_reply *m = reply;
    struct mfs_agent *a = arg;

    a->link.heartbeat_open = false;
    if (err || m->epoch > a->table->epoch)
        return;
    free(a->link.lost);
    a->link.lost = m->nlost ? calloc(m->nlost, sizeof *a->link.lost) : NULL;
    a->link.nlost =
        a->link.lost ? m->nlost : 0; /* without memory clients do not get to know them */
    if (a->link.lost)
        memcpy(a->link.lost, m->lost, m->nlost * sizeof *a->link.lost);
    a->link.last_heartbeat = a->link.asked; /* when it was answered is not known */
}

/* Not before it has joined: then all tables that cm has sent have come before the answer. */
static void send_heartbeat(void *arg)
{
    struct mfs_agent *a = arg;
    struct mfs_conn *conn =
        a->link.uplink && a->link.joined ? mfs_uplink_conn(a->link.uplink) : NULL;

    if (!conn || a->link.heartbeat_open)
        return;
    a->link.asked = mfs_clock_mono();
    a->link.heartbeat_open =
        !mfs_conn_request(conn, MFS_MSG_BEAT, NULL, MFS_TRUST_OVER, answered, a);
}

void mfs_agent_heartbeat_follow(struct mfs_agent *a)
{
    bool wanted = a->table && a->table->replicated;

    if (wanted && !a->link.heartbeat) {
        a->link.heartbeat =
            mfs_loop_timer(a->loop, MFS_TRUST_HEARTBEAT, MFS_TRUST_HEARTBEAT, send_heartbeat, a);
    } else if (!wanted) {
        mfs_timer_cancel(a->link.heartbeat);
        a->link.heartbeat = NULL;
    }
}
