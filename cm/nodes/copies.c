/* What each lm has of the state is known by its JOIN and by what was sent since; a connection that
 * breaks loses the rest, and the next JOIN tells. The text is made once for each revision, and so
 * is what makes it of the one before: what is sent to a node that has some revision are all edits
 * since. One that has none of them, or another text than it should, gets the whole: some nodes at a
 * time, as these are megabytes. */
#include "cm/nodes/copies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/edits.h"
#include "base/hash.h"
#include "base/log.h"
#include "cm/nodes/follow.h"
#include "cm/nodes/quorum.h"

#define SEND_STEP    (50 * MFS_MSEC)
#define SEND_MOST    MFS_SEC /* between two rounds, where there is much to send … */
#define KEEP_TIME    (10 * MFS_SEC)
#define FAILED_PAUSE MFS_SEC
#define SEND_RATE    (50U << 20)  /* … as no more than so many bytes/s are to be */
#define WHOLE_BYTES  (256U << 20) /* of whole ones on their way, … */
#define WHOLE_LEAST  4U           /* … or so many of them */
#define STEPS        256U         /* remembered */

/* From one text to the next. */
struct step {
    uint64_t from; /* revision */
    uint64_t of;   /* XXH64 of that text */
    struct mfs_edit *edit;
    uint32_t nedits;
};

struct mfs_copies {
    struct mfs_timer *timer;
    struct mfs_buf text;     /* with its NUL */
    uint64_t revision;       /* of the text; 0: there is none */
    uint64_t digest;         /* of it, without the NUL */
    struct step step[STEPS]; /* the newest at nsteps - 1, modulo STEPS */
    uint64_t nsteps;
    uint32_t whole;  /* on their way */
    int64_t next_at; /* of the next round, mono */
    bool looks;      /* what waits for copies to be kept is looked at soon */
    bool complained; /* that it can't be sent */
};

/* ---- the text, and what makes it of those before --------------------------------------------- */

static struct mfs_buf without_nul(const struct mfs_buf *b)
{
    struct mfs_buf text = *b;

    text.end -= text.end > text.start;
    return text;
}

static void free_step(struct step *s)
{
    mfs_edits_free(s->edit, s->nedits);
    *s = (struct step){0};
}

static void forget_steps(struct mfs_copies *k)
{
    for (uint32_t i = 0; i < STEPS; i++)
        free_step(&k->step[i]);
    k->nsteps = 0;
}

/* Without memory, or when it is another text altogether, all get the whole. */
static void note_step(struct mfs_copies *k, const struct mfs_buf *next)
{
    struct step *s = &k->step[k->nsteps % STEPS];
    struct mfs_buf from = without_nul(&k->text), to = without_nul(next);

    free_step(s);
    if (!k->revision || mfs_edits_make(&from, &to, &s->edit, &s->nedits)) {
        forget_steps(k);
        return;
    }
    s->from = k->revision;
    s->of = k->digest;
    k->nsteps++;
    if (mfs_edits_size(s->edit, s->nedits) > mfs_buf_len(next) / 4)
        forget_steps(k);
}

static int make_text(struct mfs_cm *cm)
{
    struct mfs_copies *k = cm->copies;
    struct mfs_buf next, text;
    int rc;

    if (k->revision == cm->state.revision)
        return 0;
    mfs_buf_init(&next);
    rc = mfs_schema_encode_lines(&mfs_cm_state_schema, &cm->state, &next);
    if (!rc)
        rc = mfs_buf_append(&next, "", 1);
    if (rc) {
        mfs_buf_fini(&next);
        return rc;
    }
    note_step(k, &next);
    mfs_buf_fini(&k->text);
    k->text = next;
    k->revision = cm->state.revision;
    text = without_nul(&k->text);
    k->digest = mfs_hash64(mfs_buf_data(&text), mfs_buf_len(&text), 0);
    return 0;
}

const char *mfs_copies_text(struct mfs_cm *cm)
{
    return make_text(cm) ? NULL : mfs_buf_data(&cm->copies->text);
}

/* The first step from that revision on; nsteps: there is none. */
static uint64_t step_from(const struct mfs_copies *k, uint64_t revision)
{
    uint64_t kept = k->nsteps < STEPS ? k->nsteps : STEPS;

    for (uint64_t i = k->nsteps - kept; revision && i < k->nsteps; i++)
        if (k->step[i % STEPS].from == revision)
            return i;
    return k->nsteps;
}

/* All edits since: *list is to be freed, what is in it is not. False: the whole has to go. */
static bool edits_since(const struct mfs_copies *k, uint64_t revision, struct mfs_msg_state *m)
{
    uint64_t first = step_from(k, revision);
    size_t bytes = 0, n = 0;

    for (uint64_t i = first; i < k->nsteps; i++) {
        n += k->step[i % STEPS].nedits;
        bytes += mfs_edits_size(k->step[i % STEPS].edit, k->step[i % STEPS].nedits);
    }
    m->edit = first < k->nsteps && bytes < mfs_buf_len(&k->text) / 2
                  ? calloc(n + 1, sizeof *m->edit)
                  : NULL;
    if (!m->edit)
        return false;
    for (uint64_t i = first; i < k->nsteps; i++) {
        const struct step *s = &k->step[i % STEPS];

        for (uint32_t e = 0; e < s->nedits; e++)
            m->edit[m->nedits++] = s->edit[e];
    }
    mfs_table_digest_text(k->step[first % STEPS].of, m->of);
    return true;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* A copy on its way. */
struct sent {
    struct mfs_node *node;
    const struct mfs_conn *conn;
    uint64_t term, revision;
    bool whole;
};

static void look(void *arg)
{
    struct mfs_cm *cm = arg;

    cm->copies->looks = false;
    mfs_quorum_look(cm);
}

/* Once for all that have answered by then: it takes a look at all nodes. */
static void look_soon(struct mfs_cm *cm)
{
    if (!cm->copies->looks && !mfs_loop_post(cm->loop, look, cm))
        cm->copies->looks = true;
}

static void kept(void *arg, const struct mfs_err *err, const void *reply)
{
    struct sent *s = arg;
    struct mfs_node *n = s->node;
    struct mfs_cm *cm = n->cm;
    bool ours = cm->copies && n->conn == s->conn && s->term == cm->state.term;
    uint64_t revision = s->revision;

    (void)reply;
    if (cm->copies && s->whole)
        cm->copies->whole--;
    free(s);
    if (!ours || cm->superseded)
        return;
    if (err && err->code == -ESTALE) {
        mfs_superseded(cm, err->msg);
    } else if (err && err->code == -ENODATA && revision <= n->copy_whole) {
        return; /* the whole is on its way already */
    } else if (err && err->code == -ENODATA) {
        n->copy_revision = n->copy_held = 0;
        mfs_copies_to(n);
    } else if (err) {
        n->copy_failed = mfs_clock_mono();
        n->copy_revision = n->copy_held;
    } else {
        n->copy_failed = 0;
        if (revision > n->copy_held)
            n->copy_held = revision;
        look_soon(cm);
    }
}

static uint32_t whole_most(const struct mfs_copies *k)
{
    uint32_t n = (uint32_t)(WHOLE_BYTES / (mfs_buf_len(&k->text) + 1));

    return n > WHOLE_LEAST ? n : WHOLE_LEAST;
}

/* -EAGAIN: others have to have taken theirs before. */
static int request(struct mfs_node *n)
{
    struct mfs_cm *cm = n->cm;
    struct mfs_msg_state m = {.term = cm->state.term,
                              .revision = cm->state.revision,
                              .candidate = cm->state.candidate,
                              .base = cm->state.base};
    struct sent *s = malloc(sizeof *s);
    int rc;

    if (!s)
        return -ENOMEM;
    *s = (struct sent){n, n->conn, m.term, m.revision,
                       !edits_since(cm->copies, n->copy_revision, &m)};
    if (s->whole)
        m.text = mfs_buf_data(&cm->copies->text);
    if (s->whole && cm->copies->whole >= whole_most(cm->copies)) {
        free(s);
        return -EAGAIN;
    }
    rc = mfs_conn_request(n->conn, MFS_MSG_STATE, &m, KEEP_TIME, kept, s);
    free(m.edit);
    if (rc) {
        free(s);
    } else if (s->whole) {
        cm->copies->whole++;
        n->copy_whole = m.revision;
    }
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
    if (rc == -EAGAIN)
        return; /* the tick, or what is decided next, sends it */
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
    if (n->copy_held > n->cm->state.revision)
        n->copy_held = 0; /* of a cm that knew more than this one was left by it */
    n->copy_whole = 0;
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
    forget_steps(cm->copies);
    mfs_buf_fini(&cm->copies->text); /* it has passwords, as cm.json has */
    free(cm->copies);
    cm->copies = NULL;
}
