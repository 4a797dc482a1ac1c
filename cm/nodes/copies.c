/* What each lm has of the state is known by its JOIN and by what was sent since; a connection that
 * breaks loses the rest, and the next JOIN tells. The text is made once for each revision. */
#include "cm/nodes/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm/nodes/follow.h"
#include "cm/nodes/quorum.h"

#define SEND_STEP    (50 * MFS_MSEC)
#define SEND_MOST    MFS_SEC /* between two rounds, where there is much to send … */
#define KEEP_TIME    (10 * MFS_SEC)
#define FAILED_PAUSE MFS_SEC
#define SEND_RATE    (50U << 20) /* … as no more than so many bytes/s are to be */

struct mfs_copies {
    struct mfs_timer *timer;
    struct mfs_buf text; /* with its NUL */
    uint64_t revision;   /* of the text; 0: there is none */
    int64_t next_at;     /* of the next round, mono */
    bool complained;     /* that it can't be sent */
};

static int make_text(struct mfs_cm *cm)
{
    struct mfs_copies *k = cm->copies;
    int rc;

    if (k->revision == cm->state.revision)
        return 0;
    k->revision = 0;
    mfs_buf_clear(&k->text);
    rc = mfs_schema_encode(&mfs_cm_state_schema, &cm->state, false, &k->text);
    if (!rc)
        rc = mfs_buf_append(&k->text, "", 1);
    if (!rc)
        k->revision = cm->state.revision;
    return rc;
}

const char *mfs_copies_text(struct mfs_cm *cm)
{
    return make_text(cm) ? NULL : mfs_buf_data(&cm->copies->text);
}

/* A copy on its way. */
struct sent {
    struct mfs_node *node;
    const struct mfs_conn *conn;
    uint64_t term, revision;
};

static void kept(void *arg, const struct mfs_err *err, const void *reply)
{
    struct sent *s = arg;
    struct mfs_node *n = s->node;
    struct mfs_cm *cm = n->cm;
    bool ours = n->conn == s->conn && s->term == cm->state.term;
    uint64_t revision = s->revision;

    (void)reply;
    free(s);
    if (!ours || cm->superseded)
        return;
    if (err && err->code == -ESTALE) {
        mfs_superseded(cm, err->msg);
    } else if (err) {
        n->copy_failed = mfs_clock_mono();
        n->copy_revision = n->copy_held;
    } else {
        n->copy_failed = 0;
        if (revision > n->copy_held)
            n->copy_held = revision;
        mfs_quorum_look(cm);
    }
}

static int request(struct mfs_node *n)
{
    struct mfs_cm *cm = n->cm;
    struct mfs_msg_state m = {.term = cm->state.term,
                              .revision = cm->state.revision,
                              .candidate = cm->state.candidate,
                              .base = cm->state.base,
                              .text = (char *)mfs_buf_data(&cm->copies->text)};
    struct sent *s = malloc(sizeof *s);
    int rc;

    if (!s)
        return -ENOMEM;
    *s = (struct sent){n, n->conn, m.term, m.revision};
    rc = mfs_conn_request(n->conn, MFS_MSG_STATE, &m, KEEP_TIME, kept, s);
    if (rc)
        free(s);
    return rc;
}

/* One that can't be sent leaves the lm with the copy that it has. */
void mfs_copies_to(struct mfs_node *n)
{
    struct mfs_cm *cm = n->cm;
    int rc;

    if (!cm->copies || n->copy_revision == cm->state.revision ||
        (n->copy_failed && mfs_clock_mono() - n->copy_failed < FAILED_PAUSE))
        return;
    rc = make_text(cm);
    if (!rc)
        rc = request(n);
    if (!rc)
        n->copy_revision = cm->state.revision;
    else if (!cm->copies->complained)
        mfs_warn("copies", "%s: cannot send what is in cm.json: %s", n->record->name,
                 strerror(-rc));
    cm->copies->complained = rc != 0;
}

void mfs_copies_send(struct mfs_cm *cm)
{
    if (!cm->copies)
        return;
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->nodes[i]->conn)
            mfs_copies_to(cm->nodes[i]);
}

void mfs_copies_hurry(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        if (cm->nodes[i]->conn && cm->nodes[i]->copy_revision == cm->nodes[i]->copy_held)
            mfs_copies_to(cm->nodes[i]);
}

void mfs_copies_anew(struct mfs_cm *cm)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        cm->nodes[i]->copy_revision = cm->nodes[i]->copy_held = 0;
}

void mfs_copies_joined(struct mfs_node *n, const struct mfs_msg_join *m)
{
    n->copy_held = m->copy_term == n->cm->state.term ? m->copy_revision : 0;
    n->copy_revision = n->copy_held;
    n->copy_failed = 0;
}

static void note_behind(struct mfs_cm *cm, int64_t now)
{
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        struct mfs_node *n = cm->nodes[i];

        if (n->conn && n->copy_held == cm->state.revision)
            n->copy_behind = 0;
        else if (!n->copy_behind)
            n->copy_behind = now;
    }
}

uint64_t mfs_copies_behind(const struct mfs_node *n, int64_t now)
{
    return n->copy_behind ? (uint64_t)((now - n->copy_behind) / MFS_MSEC) : 0;
}

static void tick(void *arg)
{
    struct mfs_cm *cm = arg;
    struct mfs_copies *k = cm->copies;
    int64_t now = mfs_clock_mono(), pause;

    mfs_quorum_look(cm);
    note_behind(cm, now);
    if (now < k->next_at)
        return;
    mfs_copies_send(cm);
    pause = (int64_t)(mfs_buf_len(&k->text) * cm->state.nnodes * 1000 / SEND_RATE) * MFS_MSEC;
    k->next_at = now + (pause < SEND_MOST ? pause : SEND_MOST);
}

int mfs_copies_init(struct mfs_cm *cm)
{
    if (cm->provider->traits->sees_processes)
        return 0;
    cm->copies = calloc(1, sizeof *cm->copies);
    if (!cm->copies)
        return -ENOMEM;
    mfs_buf_init(&cm->copies->text);
    cm->copies->timer = mfs_loop_timer(cm->loop, SEND_STEP, SEND_STEP, tick, cm);
    return cm->copies->timer ? 0 : -ENOMEM;
}

void mfs_copies_fini(struct mfs_cm *cm)
{
    if (!cm->copies)
        return;
    mfs_timer_cancel(cm->copies->timer);
    mfs_buf_fini(&cm->copies->text); /* it has passwords, as cm.json has */
    free(cm->copies);
    cm->copies = NULL;
}
