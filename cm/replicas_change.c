/* What changes with a replica in the state and in the table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/push.h"
#include "cm/replicas_impl.h"
#include "cm/trust.h"

/* Who has not got it gets it on joining; who may rely on an older one is known by other means. */
static void pushed(void *arg, int64_t took, uint32_t missing)
{
    struct mfs_cm *cm = arg;

    (void)took;
    (void)missing;
    if (cm->replicas && mfs_cm_in_phase(cm, MFS_PHASE_RUNNING))
        mfs_replicas_heard(cm->replicas);
}

/* With a new epoch, in place of the state's. */
static struct mfs_partition *next_table(struct mfs_cm *cm, uint32_t part)
{
    struct mfs_table *t = mfs_table_dup(cm->state.table);

    if (!t)
        return NULL;
    free(cm->state.table);
    cm->state.table = t;
    t->epoch++;
    return &t->part[part];
}

/* The state's table is another: keeps it, and tells everybody. */
static void publish(struct mfs_cm *cm)
{
    int rc = mfs_cm_state_note(&cm->state, cm->paths->state);

    if (rc)
        mfs_error("replica", "%s: %s", cm->paths->state, strerror(-rc));
    rc = mfs_push_table(cm, pushed, cm);
    if (rc)
        mfs_error("replica", "cannot push the table: %s", strerror(-rc));
}

int mfs_replica_show(struct mfs_replica *r, bool shown)
{
    struct mfs_partition *p;

    if (r->cm->state.table->part[r->part].replica == shown)
        return 0;
    p = next_table(r->cm, r->part);
    if (!p)
        return -ENOMEM;
    p->replica = shown;
    publish(r->cm);
    return 0;
}

int mfs_replica_grave(struct mfs_cm *cm, uint32_t node, uint32_t part, const char *password)
{
    struct mfs_cm_state *s = &cm->state;
    struct mfs_cm_grave *more = reallocarray(s->grave, s->ngraves + 1, sizeof *more);

    if (!more)
        return -ENOMEM;
    s->grave = more;
    more[s->ngraves] = (struct mfs_cm_grave){.node = node, .part = part};
    mfs_text_copy(more[s->ngraves].password, sizeof more->password, password);
    s->ngraves++;
    return 0;
}

int mfs_replica_tell(struct mfs_replica *r, const struct mfs_msg_take_reply *t)
{
    struct mfs_cm *cm = r->cm;

    if (!next_table(cm, r->part))
        return -ENOMEM;
    cm->state.table->failovers++;
    r->took = *t;
    r->told_epoch = cm->state.table->epoch;
    publish(cm);
    r->told_at = mfs_clock_mono();
    return 0;
}

bool mfs_replica_told(const struct mfs_replica *r, int64_t now)
{
    return r->took.port && mfs_trust_over(r->cm, r->told_epoch, r->told_at, now);
}

int mfs_replica_promote(struct mfs_replica *r)
{
    const struct mfs_msg_take_reply t = r->took;
    struct mfs_cm *cm = r->cm;
    struct mfs_cm_part *p = mfs_replica_state(r);
    const struct mfs_cm_node *node = mfs_cm_state_node(&cm->state, p->replica_node);
    struct mfs_partition *shown;

    if (mfs_replica_grave(cm, p->node, r->part, p->password))
        return -ENOMEM;
    shown = next_table(cm, r->part);
    if (!shown) {
        cm->state.ngraves--;
        return -ENOMEM;
    }
    p->node = p->replica_node;
    memcpy(p->password, p->replica_password, sizeof p->password);
    memcpy(p->admin_password, p->replica_admin_password, sizeof p->admin_password);
    p->era++;
    p->replica_step[0] = '\0';
    r->took.port = 0;
    shown->node = p->node;
    shown->port = (uint16_t)t.port;
    memcpy(shown->host, node->address, sizeof shown->host);
    memcpy(shown->unix_path, t.unix_path, sizeof shown->unix_path);
    memcpy(shown->password, p->password, sizeof shown->password);
    shown->era = p->era;
    shown->replica = false;
    publish(cm);
    return 0;
}
