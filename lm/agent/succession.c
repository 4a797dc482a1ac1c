/* Which cm the node follows. Each cm that begins on another machine has a higher term than all
 * before it; an lm that follows one takes no cm of a lower term any more. What it hears of
 *
 *   state     the copy of what cm knows, which the next cm goes on from: node-ID/cm.json
 *   vote      of `cm start --adopt`: may a cm of the next term begin? Not while the present one
 *             answers. In one term only one candidate gets the vote, ever, and none in another term
 *             for VOTE_HOLDS; meanwhile the lm joins no cm, as the new one goes on from the copy
 *   follow    of that cm, when it listens; of the present one before it hands over (that is a vote)
 *
 * The last two come to a TCP port of the node's own ("control"), where the secret is proved as
 * anywhere; lms whose cm can only be on this machine have none. */
#include "lm/agent/agent_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "host/proc.h"
#include "net/loop.h"
#include "net/address.h"

#define AREA        "cm"
#define COPY_MOST   (64U << 20)
#define CONNECTIONS 64U
#define VOTE_HOLDS  (6 * MFS_SEC) /* for its cm to begin, and to say where it is */
#define ALIVE_TIME  (2 * MFS_SEC) /* for a cm to answer, before another one may begin */
#define SAID_MOST   300U          /* bytes of what `cm start --adopt` has said */

static_assert(ALIVE_TIME < VOTE_HOLDS, "the last vote comes while the first one holds");

/* ---- the copy -------------------------------------------------------------------------------- */

/* What stands in the copy, of which the rest is cm's matter. */
struct head {
    uint64_t term, revision;
    uint32_t candidate;
};

static const struct mfs_schema head_schema = {
    "cm.json", sizeof(struct head),
    (const struct mfs_field[]){
        {.name = "term", MFS_FIELD(U64, struct head, term)}, /* not there: 0 */
        {.name = "revision", .required = true, MFS_FIELD(U64, struct head, revision)},
        {.name = "candidate", MFS_FIELD(U32, struct head, candidate)},
        {0}}};

static int read_copy(const struct mfs_agent *a, struct mfs_buf *b)
{
    int rc = mfs_trusted_read(a->path.copy, COPY_MOST, b);

    return rc ? rc : mfs_buf_append(b, "", 1);
}

/* There is, or was, such a cm. */
static void know(struct mfs_agent *a, uint64_t term, uint32_t candidate)
{
    struct mfs_agent_succession *s = &a->succession;

    if (term <= s->term)
        return;
    s->term = term;
    s->candidate = candidate;
}

/* What an lm before this one has left. */
static void look_at_copy(struct mfs_agent *a)
{
    struct mfs_buf b;
    struct head h;
    struct mfs_err err;

    mfs_buf_init(&b);
    if (!read_copy(a, &b) &&
        !mfs_schema_decode(&head_schema, mfs_buf_data(&b), mfs_buf_len(&b) - 1, &h, &err)) {
        a->succession.copy_term = h.term;
        a->succession.copy_revision = h.revision;
        know(a, h.term, h.candidate);
    }
    mfs_buf_fini(&b);
}

/* One that has voted, or knows of a higher term, keeps nothing of a lower one any more: the cm of
 * that could act on it, and the other one does not know of it. Nor one of a cm that has begun from
 * less than what is here. 0 or a negative errno with the reason. */
static int check_copy(const struct mfs_agent *a, const struct mfs_msg_state *m, struct mfs_err *err)
{
    const struct mfs_agent_succession *s = &a->succession;

    if (a->phase == MFS_AGENT_ENDED)
        return mfs_err_set(err, -ESHUTDOWN, "node %u: it has ended", a->opts.node);
    if (m->term < s->term || (m->term && m->term == s->term && m->candidate != s->candidate) ||
        (m->term > s->copy_term && m->base < s->copy_term))
        return mfs_err_set(err, -ESTALE, "node %u: follows the cm of term %llu", a->opts.node,
                           (unsigned long long)s->term);
    if (m->term < s->vote_term ||
        (m->term && m->term == s->vote_term && m->candidate != s->vote_for))
        return mfs_err_set(err, -EBUSY, "node %u: has voted for a cm of term %llu", a->opts.node,
                           (unsigned long long)s->vote_term);
    return 0;
}

/* 0; -ENODATA when the copy is not the one that the edits are of, or a negative errno. */
static int edit_copy(const struct mfs_agent *a, const struct mfs_msg_state *m, struct mfs_buf *b)
{
    char digest[MFS_TABLE_DIGEST_TEXT];
    int rc = mfs_trusted_read(a->path.copy, COPY_MOST, b);

    if (rc)
        return rc == -ENOMEM ? rc : -ENODATA;
    mfs_table_digest_text(mfs_hash64(mfs_buf_data(b), mfs_buf_len(b), 0), digest);
    if (strcmp(digest, m->of) != 0)
        return -ENODATA;
    rc = mfs_edits_apply(b, m->edit, m->nedits);
    return rc == -EINVAL ? -ENODATA : rc;
}

/* The whole, or what has changed in it. */
static int keep_copy(const struct mfs_agent *a, const struct mfs_msg_state *m)
{
    struct mfs_buf b;
    int rc;

    if (!m->of[0])
        return mfs_file_note(a->path.copy, m->text ? m->text : "", m->text ? strlen(m->text) : 0,
                             0600);
    mfs_buf_init(&b);
    rc = edit_copy(a, m, &b);
    if (!rc)
        rc = mfs_file_note(a->path.copy, mfs_buf_data(&b), mfs_buf_len(&b), 0600);
    mfs_buf_wipe(&b); /* it has passwords */
    return rc;
}

int mfs_agent_take_copy(struct mfs_agent *a, const struct mfs_msg_state *m, struct mfs_err *err)
{
    struct mfs_agent_succession *s = &a->succession;
    int rc = check_copy(a, m, err);

    if (rc)
        return rc;
    rc = keep_copy(a, m);
    if (rc == -ENODATA)
        return mfs_err_set(err, rc, "node %u: has another copy", a->opts.node);
    if (rc && s->copied)
        mfs_agent_event(a, "state-unwritable", "%s: %s", a->path.copy, strerror(-rc));
    s->copied = !rc;
    know(a, m->term, m->candidate);
    if (rc)
        return mfs_err_set(err, rc, "node %u: %s: %s", a->opts.node, a->path.copy, strerror(-rc));
    s->copy_term = m->term;
    s->copy_revision = m->revision;
    return 0;
}

/* ---- votes ----------------------------------------------------------------------------------- */

/* A vote that waits for the present cm's answer. */
struct voter {
    struct mfs_agent *agent;
    struct mfs_deferred from;
    struct mfs_msg_vote vote;
};

static const char *followed(const struct mfs_agent *a)
{
    const char *cm = mfs_uplink_address(a->link.uplink);

    return strncmp(cm, "file:", 5) ? cm : "this machine";
}

static void answer_vote(struct mfs_agent *a, struct mfs_deferred *from)
{
    const struct mfs_agent_succession *s = &a->succession;
    struct mfs_msg_vote_reply r = {.term = s->term > s->vote_term ? s->term : s->vote_term};
    struct mfs_buf b;

    mfs_text_copy(r.cm, sizeof r.cm, followed(a));
    mfs_buf_init(&b);
    if (s->copy_revision && !read_copy(a, &b))
        r.copy = (struct mfs_msg_state){.term = s->copy_term,
                                        .revision = s->copy_revision,
                                        .candidate = s->candidate,
                                        .text = (char *)mfs_buf_data(&b)};
    mfs_deferred_reply(from, MFS_MSG_VOTE, &r);
    mfs_buf_fini(&b);
}

static bool holds(const struct mfs_agent_succession *s)
{
    return s->voted && mfs_clock_mono() - s->voted < VOTE_HOLDS;
}

int64_t mfs_agent_vote_left(const struct mfs_agent *a)
{
    return holds(&a->succession) ? a->succession.voted + VOTE_HOLDS - mfs_clock_mono() : 0;
}

/* May it have the vote? 0 or a negative errno with the reason. */
static int check_vote(const struct mfs_agent *a, uint64_t term, uint32_t candidate,
                      struct mfs_err *err)
{
    const struct mfs_agent_succession *s = &a->succession;

    if (s->voted && term == s->vote_term && candidate == s->vote_for)
        return 0;
    if (holds(s))
        return mfs_err_set(err, -EBUSY, "node %u: another cm is about to begin, at node-%u",
                           a->opts.node, s->vote_for);
    if (term <= s->term || term <= s->vote_term)
        return mfs_err_set(
            err, -ESTALE, "node %u: knows of term %llu already, cm is at %s", a->opts.node,
            (unsigned long long)(s->term > s->vote_term ? s->term : s->vote_term), followed(a));
    return 0;
}

static int take_vote(struct mfs_agent *a, uint64_t term, uint32_t candidate, struct mfs_err *err)
{
    struct mfs_agent_succession before = a->succession;
    int rc = check_vote(a, term, candidate, err);

    if (rc)
        return rc;
    a->succession.vote_term = term;
    a->succession.vote_for = candidate;
    a->succession.voted = mfs_clock_mono();
    rc = mfs_agent_must_save(a, err);
    if (rc)
        a->succession = before;
    else
        mfs_info(AREA, "votes for a cm of term %llu at node-%u", (unsigned long long)term,
                 candidate);
    return rc;
}

static void vote(struct mfs_agent *a, struct mfs_deferred *from, const struct mfs_msg_vote *v)
{
    struct mfs_err err;
    int rc = v->term ? take_vote(a, v->term, v->candidate, &err) : 0;

    if (rc)
        mfs_deferred_fail(from, rc, "%s", err.msg);
    else
        answer_vote(a, from);
}

/* An answer that says no is one, too. */
static void cm_answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct voter *v = arg;
    struct mfs_agent *a = v->agent;
    bool lives = !err || (err->code != -ETIMEDOUT && err->code != -ECONNABORTED);

    (void)reply;
    if (a->phase != MFS_AGENT_RUNNING) {
        mfs_deferred_fail(&v->from, -ESHUTDOWN, "node %u: it is stopping", a->opts.node);
    } else if (lives) {
        mfs_deferred_fail(&v->from, -EADDRINUSE, "node %u: its cm at %s answers", a->opts.node,
                          followed(a));
    } else {
        if (err->code == -ETIMEDOUT && mfs_uplink_conn(a->link.uplink))
            mfs_uplink_again(a->link.uplink);
        vote(a, &v->from, &v->vote);
    }
    free(v);
}

static void handle_vote(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_vote *m = body;
    struct mfs_agent *a = arg; /* in which nothing is written any more when all has ended */
    struct mfs_conn *cm = a->link.joined && m->term ? mfs_uplink_conn(a->link.uplink) : NULL;
    struct mfs_deferred from;
    struct voter *v;

    if (a->phase >= MFS_AGENT_ENDING) {
        mfs_conn_fail(conn, id, -ESHUTDOWN, "node %u: it is stopping", a->opts.node);
        return;
    }
    if (!cm) {
        from = mfs_reply_later(conn, id);
        vote(a, &from, m);
        return;
    }
    v = calloc(1, sizeof *v);
    if (v)
        *v = (struct voter){a, mfs_reply_later(conn, id), *m};
    if (v && !mfs_conn_request(cm, MFS_MSG_BEAT, NULL, ALIVE_TIME, cm_answered, v))
        return;
    if (v)
        mfs_deferred_drop(&v->from);
    free(v);
    mfs_conn_fail(conn, id, -ENOMEM, "node %u: cannot ask its cm", a->opts.node);
}

/* ---- following ------------------------------------------------------------------------------- */

/* A cm that this lm has voted for, and which is late, goes on from what may be no news any more. */
static int check_follow(const struct mfs_agent *a, const struct mfs_msg_follow *m,
                        struct mfs_err *err)
{
    const struct mfs_agent_succession *s = &a->succession;

    if (m->term < s->term || (m->term && m->term == s->term && m->candidate != s->candidate))
        return mfs_err_set(err, -ESTALE, "node %u: follows the cm of term %llu at %s", a->opts.node,
                           (unsigned long long)s->term, followed(a));
    if (m->term > s->term && m->term == s->vote_term && (!s->voted || m->candidate != s->vote_for))
        return mfs_err_set(err, -ESTALE, "node %u: has not heard of it in time", a->opts.node);
    return 0;
}

static void follow(struct mfs_agent *a, const struct mfs_msg_follow *m)
{
    know(a, m->term, m->candidate);
    a->succession.voted = 0;
    mfs_agent_save(a);
    if (!strcmp(m->cm, mfs_uplink_address(a->link.uplink)) && a->link.joined)
        return;
    mfs_info(AREA, "follows the cm of term %llu at %s", (unsigned long long)m->term, m->cm);
    mfs_uplink_redirect(a->link.uplink, m->cm);
}

static void handle_follow(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_follow *m = body;
    struct mfs_agent *a = arg;
    struct mfs_err err;
    int rc = !m->cm[0]                      ? mfs_err_set(&err, -EINVAL, "no address")
             : a->phase >= MFS_AGENT_ENDING ? mfs_err_set(&err, -ESHUTDOWN, "it is stopping")
                                            : check_follow(a, m, &err);

    if (rc) {
        mfs_conn_fail(conn, id, rc, "%s", err.msg);
        return;
    }
    mfs_conn_reply(conn, MFS_MSG_FOLLOW, id, NULL);
    follow(a, m);
}

void mfs_agent_succeeded(struct mfs_agent *a, const struct mfs_msg_follow *m)
{
    struct mfs_err err;

    if (take_vote(a, m->term, m->candidate, &err))
        mfs_warn(AREA, "%s", err.msg);
}

void mfs_agent_has_joined(struct mfs_agent *a)
{
    a->succession.voted = 0;
}

/* ---- a cm here ------------------------------------------------------------------------------- */

static void answer_adopt(struct mfs_agent *a, const struct mfs_err *err)
{
    if (err) {
        mfs_agent_event(a, "adopt-failed", "%s", err->msg);
        mfs_deferred_fail(&a->succession.adopter, err->code, "node %u: %s", a->opts.node, err->msg);
    } else {
        mfs_deferred_reply(&a->succession.adopter, MFS_MSG_ADOPT, NULL);
    }
}

static void adopted(void *arg, pid_t pid, int status)
{
    struct mfs_agent *a = arg;
    struct mfs_err err;
    struct mfs_buf b;

    (void)pid;
    a->succession.adopting = NULL;
    if (WIFEXITED(status) && !WEXITSTATUS(status)) {
        answer_adopt(a, NULL);
        return;
    }
    mfs_buf_init(&b);
    mfs_file_read(a->path.adopt_log, COPY_MOST, &b);
    mfs_err_set(&err, -ECHILD, "cm start --adopt: %.*s",
                (int)(mfs_buf_len(&b) < SAID_MOST ? mfs_buf_len(&b) : SAID_MOST),
                mfs_buf_len(&b) ? mfs_buf_data(&b) : "failed");
    err.msg[strcspn(err.msg, "\n")] = '\0';
    mfs_buf_fini(&b);
    answer_adopt(a, &err);
}

static int start_adopting(struct mfs_agent *a)
{
    char cm[PATH_MAX];
    const char *argv[] = {cm,           "start",       "--adopt",         "--name",
                          a->opts.name, "--state-dir", a->opts.state_dir, NULL};
    int rc = mfs_proc_sibling("cm", cm, sizeof cm);
    pid_t pid;

    unlink(a->path.adopt_log);
    pid = rc ? rc : mfs_proc_spawn(argv, a->path.adopt_log);
    if (pid < 0)
        return (int)pid;
    a->succession.adopting = mfs_loop_process(a->loop, pid, adopted, a);
    return a->succession.adopting ? 0 : -errno;
}

void mfs_agent_adopt(struct mfs_agent *a, struct mfs_conn *conn, uint64_t id)
{
    struct mfs_err err;
    int rc;

    mfs_deferred_replace(&a->succession.adopter, conn, id);
    if (a->succession.adopting)
        return;
    rc = start_adopting(a);
    if (!rc)
        return;
    mfs_err_set(&err, rc, "cm start --adopt: %s", strerror(-rc));
    answer_adopt(a, &err);
}

/* ---- its life -------------------------------------------------------------------------------- */

static const struct mfs_handler handlers[] = {
    {MFS_MSG_VOTE, handle_vote}, {MFS_MSG_FOLLOW, handle_follow}, {0, NULL}};
static const struct mfs_service service = {handlers, NULL, NULL};

static struct mfs_listener *listen_at(struct mfs_agent *a, uint32_t port, struct mfs_err *err)
{
    char at[MFS_ADDRESS_MAX];

    if (mfs_address_join(a->opts.address, port, at, sizeof at)) {
        mfs_err_set(err, -ENAMETOOLONG, "%s: too long", a->opts.address);
        return NULL;
    }
    return mfs_listener_create(a->loop, at, &a->secret, CONNECTIONS, &service, a, err);
}

void mfs_agent_succession_begin(struct mfs_agent *a)
{
    struct mfs_agent_succession *s = &a->succession;
    char at[MFS_ADDRESS_MAX];
    struct mfs_err err;
    const char *port;

    look_at_copy(a);
    if (!a->opts.control)
        return;
    if (s->port) /* others know it */
        s->listener = listen_at(a, s->port, &err);
    if (!s->listener)
        s->listener = listen_at(a, 0, &err);
    if (!s->listener) { /* its redis processes can't either, but cm says first what is wrong */
        mfs_warn(AREA, "no cm on another machine can take this node over: %s", err.msg);
        s->port = 0;
        return;
    }
    mfs_listener_address(s->listener, at);
    port = strrchr(at, ':');
    s->port = port ? (uint32_t)strtoul(port + 1, NULL, 10) : 0;
}

void mfs_agent_succession_end(struct mfs_agent *a)
{
    mfs_watch_remove(a->succession.adopting);
    mfs_deferred_drop(&a->succession.adopter);
    mfs_listener_destroy(a->succession.listener);
}
