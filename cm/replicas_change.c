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

struct mfs_replica_shown {
    struct mfs_replica *r; /* NULL: it is of no interest any more */
};

static void pushed(void *arg, int64_t took, uint32_t missing)
{
    struct mfs_replica_shown *shown = arg;
    struct mfs_replica *r = shown ? shown->r : NULL;

    (void)took;
    (void)missing; /* who has not got it gets it on joining */
    free(shown);
    if (!r)
        return;
    r->shown = NULL;
    if (mfs_cm_in_phase(r->cm, MFS_PHASE_RUNNING))
        mfs_replica_known(r);
}

static int push(struct mfs_cm *cm, struct mfs_replica_shown *shown)
{
    int rc = mfs_push_table(cm, pushed, shown);

    if (rc)
        mfs_error("replica", "cannot push the table: %s", strerror(-rc));
    return rc;
}

void mfs_replica_forget_shown(struct mfs_replica *r)
{
    if (r->shown)
        r->shown->r = NULL;
    r->shown = NULL;
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

static void save(struct mfs_cm *cm)
{
    int rc = mfs_cm_state_note(&cm->state, cm->paths->state);

    if (rc)
        mfs_error("replica", "%s: %s", cm->paths->state, strerror(-rc));
}

/* Changes what the table says, and tells everybody. */
static int change(struct mfs_replica *r, bool replica, struct mfs_replica_shown *shown)
{
    struct mfs_partition *p = next_table(r->cm, r->part);

    if (!p)
        return -ENOMEM;
    p->replica = replica;
    save(r->cm);
    return push(r->cm, shown);
}

int mfs_replica_show(struct mfs_replica *r)
{
    struct mfs_replica_shown *shown = calloc(1, sizeof *shown);
    int rc = shown ? change(r, true, shown) : -ENOMEM;

    mfs_replica_forget_shown(r);
    if (rc) {
        free(shown);
        return rc;
    }
    shown->r = r;
    r->shown = shown;
    return 0;
}

int mfs_replica_hide(struct mfs_replica *r)
{
    int rc = 0;

    mfs_replica_forget_shown(r);
    if (r->cm->state.table->part[r->part].replica)
        rc = change(r, false, NULL);
    return rc == -ENOMEM ? rc : 0; /* who was not told gets it on joining */
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
    struct mfs_replica_shown *shown = calloc(1, sizeof *shown);
    struct mfs_cm *cm = r->cm;

    mfs_replica_forget_shown(r);
    if (!shown || !next_table(cm, r->part)) {
        free(shown);
        return -ENOMEM;
    }
    cm->state.table->failovers++;
    save(cm);
    r->took = *t;
    r->told_epoch = cm->state.table->epoch;
    r->told_at = mfs_clock_mono();
    if (push(cm, shown)) {
        free(shown); /* time will do */
    } else {
        shown->r = r;
        r->shown = shown;
    }
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
    mfs_replica_forget_shown(r); /* who has not got that table yet is waited for no more */
    shown->node = p->node;
    shown->port = (uint16_t)t.port;
    memcpy(shown->host, node->address, sizeof shown->host);
    memcpy(shown->unix_path, t.unix_path, sizeof shown->unix_path);
    memcpy(shown->password, p->password, sizeof shown->password);
    shown->era = p->era;
    shown->replica = false;
    save(cm);
    push(cm, NULL);
    return 0;
}
