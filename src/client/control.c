/* One thread with an event loop. Tables come as messages: the newest waits in `table` until the
 * client takes it; from then on each is handed to `fn`, under `lock`, before it is acknowledged.
 * Four times a second, when the newest table says that there are replicas, cm is asked for a sign
 * of life, one question at a time; an answer counts from when it was asked, and only if no newer
 * table is on its way. */
#include "client/control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/crypto/secure.h"
#include "base/text.h"
#include "base/threads/thread.h"
#include "cluster/trust.h"
#include "net/uplink.h"
#include "proto/times.h"

#define REQUEST_TIMEOUT (5 * MFS_SEC)
/* Figures go out one message at a time: to a manager that hangs there is only ever one. */
#define METRICS_TIMEOUT (3600 * MFS_SEC)

struct mfs_control {
    const struct mfs_control_config *config;
    struct mfs_secret secret;
    struct mfs_loop *loop;
    struct mfs_uplink *uplink;
    struct mfs_timer *heartbeat; /* while partitions have replicas; of the thread */
    bool heartbeat_open;         /* of the thread: a question whether cm is there is open … */
    int64_t asked;               /* … since then */
    struct {                     /* figures; of the thread */
        uint64_t digest;         /* of those sent last on this connection; 0: none yet */
        bool open;               /* they are not answered */
        bool refused;            /* the other end takes none */
    } metrics;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* guards what follows; a leaf, but for the call of fn */
    pthread_cond_t changed;
    struct mfs_table *table; /* the newest, until it is taken */
    struct mfs_table *held;  /* a copy of the newest, of which the next one may be a change; of the
                                thread */
    uint64_t epoch;          /* of the newest that came */
    mfs_control_table_fn *fn;
    mfs_control_contact_fn *contact;
    bool replicated; /* says the newest table */
    void *arg;
    mfs_control_hot_fn *hot;
    void *hot_arg;
    char why[512];       /* there is no connection, or the other end refuses it; "": it does not */
    uint64_t session_id; /* 0: none yet */
    uint64_t since;      /* when it was made, seconds since 1970; never changes */
    bool ready;
};

static void request_done(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)arg;
    (void)reply;
    if (err != NULL)
        mfs_warn("control", "request refused: %s", err->msg);
}

static void request(struct mfs_control *c, struct mfs_conn *conn, enum mfs_msg type,
                    const void *body,
                    void (*done)(void *arg, const struct mfs_err *err, const void *reply))
{
    int rc = mfs_conn_request(conn, type, body, REQUEST_TIMEOUT, done, c);

    if (rc < 0)
        mfs_warn("control", "request not sent: %s", strerror(-rc));
}

static void note_failure(void *arg, const char *why)
{
    struct mfs_control *c = arg;

    pthread_mutex_lock(&c->lock);
    snprintf(c->why, sizeof c->why, "%s", why);
    pthread_mutex_unlock(&c->lock);
}

static void hello_done(void *arg, const struct mfs_err *err, const void *reply)
{
    request_done(arg, err, reply);
    note_failure(arg, err != NULL ? err->msg : "");
}

static void fill_hello(struct mfs_control *c, struct mfs_msg_client_hello *m)
{
    *m = (struct mfs_msg_client_hello){.version = MFS_PROTOCOL_VERSION,
                                       .pid = (uint32_t)getpid(),
                                       .since = c->since,
                                       .instance = c->config->instance};
    pthread_mutex_lock(&c->lock);
    m->epoch = c->epoch;
    if (c->session_id != 0)
        snprintf(m->session, sizeof m->session, "%016" PRIx64, c->session_id);
    pthread_mutex_unlock(&c->lock);
    mfs_text_copy(m->mount, sizeof m->mount, c->config->mount);
    mfs_text_copy(m->program, sizeof m->program, MEMEFS_VERSION);
}

static void say_hello(struct mfs_control *c, struct mfs_conn *conn)
{
    struct mfs_msg_client_hello m;
    bool ready;

    fill_hello(c, &m);
    pthread_mutex_lock(&c->lock);
    ready = c->ready;
    pthread_mutex_unlock(&c->lock);
    request(c, conn, MFS_MSG_CLIENT_HELLO, &m, hello_done);
    if (ready)
        request(c, conn, MFS_MSG_CLIENT_READY, NULL, request_done);
}

static void heartbeat(void *arg);

/* Of cm's presence is asked only where somebody relies on it. In the loop's thread. */
static void heartbeat_if_wanted(struct mfs_control *c, bool wanted)
{
    if (wanted && c->heartbeat == NULL) { /* NULL, without memory: at the next table or hello */
        c->heartbeat = mfs_loop_timer(c->loop, 0, MFS_TRUST_HEARTBEAT, heartbeat, c);
    } else if (!wanted) {
        mfs_timer_cancel(c->heartbeat);
        c->heartbeat = NULL;
    }
}

static void up(struct mfs_conn *conn, void *arg)
{
    struct mfs_control *c = arg;
    bool replicated;

    c->metrics.digest = 0;
    c->metrics.refused = false;
    say_hello(c, conn);
    pthread_mutex_lock(&c->lock);
    replicated = c->replicated;
    pthread_mutex_unlock(&c->lock);
    heartbeat_if_wanted(c, replicated);
}

/* Takes over `table`. */
static void take_table(struct mfs_control *c, struct mfs_table *table)
{
    pthread_mutex_lock(&c->lock);
    if (table->epoch > c->epoch) {
        c->epoch = table->epoch;
        c->replicated = table->replicated;
        if (c->fn != NULL) {
            c->fn(c->arg, table);
        } else {
            free(c->table);
            c->table = table;
        }
        table = NULL;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    free(table);
}

static void on_table(struct mfs_conn *conn, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_table *m = body;
    struct mfs_control *c = arg;
    struct mfs_table *table, *copy;
    struct mfs_msg_epoch reply;
    struct mfs_err err;
    bool replicated;
    int rc = mfs_table_of_message(m, c->held, &table, &err);

    if (rc < 0) {
        mfs_conn_fail(conn, id, rc, "%s", err.msg);
        return;
    }
    copy = table != NULL ? mfs_table_dup(table) : NULL;
    if (table != NULL) {
        free(c->held);
        c->held = copy; /* without memory: NULL, and the next one comes whole */
        take_table(c, table);
    }
    pthread_mutex_lock(&c->lock);
    reply.epoch = c->epoch;
    replicated = c->replicated;
    pthread_mutex_unlock(&c->lock);
    heartbeat_if_wanted(c, replicated);
    mfs_conn_reply(conn, MFS_MSG_TABLE, id, &reply);
}

/* ---- is cm there? ---------------------------------------------------------------------------- */

static void heartbeat_answered(void *arg, const struct mfs_err *err, const void *reply)
{
    const struct mfs_msg_beat_reply *m = reply;
    struct mfs_control *c = arg;
    mfs_control_contact_fn *contact;
    void *contact_arg;

    c->heartbeat_open = false;
    if (err != NULL || m->age_ms > MFS_TRUST / MFS_MSEC)
        return;
    pthread_mutex_lock(&c->lock);
    contact = m->epoch <= c->epoch ? c->contact : NULL; /* a table got lost on its way here */
    contact_arg = c->arg;
    pthread_mutex_unlock(&c->lock);
    /* It was so before the answer was given, hence before that question at the latest. */
    if (contact != NULL)
        contact(contact_arg, c->asked - (int64_t)m->age_ms * MFS_MSEC, m->lost, m->nlost);
}

static void heartbeat(void *arg)
{
    struct mfs_control *c = arg;
    struct mfs_conn *conn = c->uplink != NULL ? mfs_uplink_conn(c->uplink) : NULL;
    bool wanted;

    pthread_mutex_lock(&c->lock);
    wanted = c->replicated && c->contact != NULL;
    pthread_mutex_unlock(&c->lock);
    if (conn == NULL || !wanted || c->heartbeat_open)
        return;
    c->asked = mfs_clock_mono();
    c->heartbeat_open =
        mfs_conn_request(conn, MFS_MSG_BEAT, NULL, MFS_TRUST_OVER, heartbeat_answered, c) == 0;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void send_hot(struct mfs_control *c)
{
    struct mfs_conn *conn = mfs_uplink_conn(c->uplink);
    mfs_control_hot_fn *hot;
    struct mfs_hot told;
    void *arg;

    pthread_mutex_lock(&c->lock);
    hot = c->hot;
    arg = c->hot_arg;
    pthread_mutex_unlock(&c->lock);
    if (conn == NULL || hot == NULL || !hot(arg, &told))
        return;
    mfs_conn_notify(conn, MFS_MSG_HOT, &told);
    mfs_schema_clear(&mfs_hot_schema, &told);
}

static void metrics_answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_control *c = arg;

    (void)reply;
    c->metrics.open = false;
    c->metrics.refused = err != NULL && err->code == -EOPNOTSUPP; /* cm itself wants none */
    if (err != NULL)
        c->metrics.digest = 0;
    else
        send_hot(c);
}

static void send_metrics(void *arg)
{
    struct mfs_control *c = arg;
    struct mfs_conn *conn = c->uplink != NULL ? mfs_uplink_conn(c->uplink) : NULL;
    struct mfs_metric_snapshot s;
    uint64_t digest;

    if (conn == NULL || c->metrics.open || c->metrics.refused)
        return;
    digest = mfs_metrics_digest(c->config->metrics);
    if (digest == c->metrics.digest || mfs_metrics_read(c->config->metrics, &s) < 0)
        return;
    c->metrics.digest = digest;
    c->metrics.open =
        mfs_conn_request(conn, MFS_MSG_METRICS, &s, METRICS_TIMEOUT, metrics_answered, c) == 0;
    mfs_metric_snapshot_free(&s);
}

static const struct mfs_handler handlers[] = {{MFS_MSG_TABLE, on_table}, {0, NULL}};
static const struct mfs_service service = {handlers, up, NULL};

static void *run(void *arg)
{
    struct mfs_control *c = arg;
    int rc = mfs_loop_run(c->loop);

    if (rc < 0)
        mfs_error("control", "event loop: %s", strerror(-rc));
    return NULL;
}

static int start(struct mfs_control *c, struct mfs_err *err)
{
    int rc = mfs_secret_load(c->config->secret, &c->secret, err);

    if (rc < 0)
        return rc;
    mfs_secure_warn();
    c->loop = mfs_loop_create();
    if (c->loop == NULL)
        return mfs_err_set(err, -errno, "event loop: %s", strerror(errno));
    c->uplink =
        mfs_uplink_create(c->loop, c->config->address, &c->secret, "client", &service, c, err);
    if (c->uplink == NULL)
        return err->code;
    mfs_uplink_on_failure(c->uplink, note_failure);
    if (c->config->metrics != NULL &&
        mfs_loop_timer(c->loop, MFS_METRICS_EACH, MFS_METRICS_EACH, send_metrics, c) == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = mfs_thread_start(&c->thread, "control", run, c);
    if (rc < 0)
        return mfs_err_set(err, rc, "thread: %s", strerror(-rc));
    c->started = true;
    return 0;
}

int mfs_control_create(struct mfs_control **out, const struct mfs_control_config *config,
                       struct mfs_err *err)
{
    struct mfs_control *c = calloc(1, sizeof *c);
    int rc;

    *out = NULL;
    if (c == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    c->config = config;
    c->since = (uint64_t)mfs_clock_real().tv_sec;
    pthread_mutex_init(&c->lock, NULL);
    mfs_cond_init(&c->changed);
    rc = start(c, err);
    if (rc < 0)
        mfs_control_destroy(c);
    else
        *out = c;
    return rc;
}

static void parted(void *arg, const struct mfs_err *err, const void *reply)
{
    (void)arg;
    (void)err;
    (void)reply;
}

/* The loop has ended: what does not go out at once is lost, and the manager sees the end of the
 * process only. */
static void say_goodbye(struct mfs_control *c)
{
    struct mfs_conn *conn = c->uplink != NULL ? mfs_uplink_conn(c->uplink) : NULL;
    struct mfs_msg_client_hello m;

    if (conn == NULL || c->config->instance == 0)
        return;
    fill_hello(c, &m);
    m.leaves = true;
    mfs_conn_request(conn, MFS_MSG_CLIENT_HELLO, &m, REQUEST_TIMEOUT, parted, c);
}

void mfs_control_destroy(struct mfs_control *c)
{
    if (c == NULL)
        return;
    if (c->started) {
        mfs_loop_stop(c->loop);
        pthread_join(c->thread, NULL);
        say_goodbye(c);
    }
    mfs_uplink_destroy(c->uplink);
    mfs_loop_destroy(c->loop);
    mfs_secret_free(&c->secret);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c->table);
    free(c->held);
    free(c);
}

int mfs_control_wait_table(struct mfs_control *c, int64_t ns, struct mfs_table **table,
                           struct mfs_err *err)
{
    int64_t end = mfs_clock_mono() + ns, left = ns;

    pthread_mutex_lock(&c->lock);
    while (c->table == NULL && left > 0) {
        mfs_cond_wait(&c->changed, &c->lock, left);
        left = end - mfs_clock_mono();
    }
    *table = c->table;
    c->table = NULL;
    if (*table == NULL)
        mfs_err_set(err, -ETIMEDOUT,
                    c->why[0] != '\0' ? "no partition table (is the deployment running?): %s"
                                      : "no partition table from %s: is the deployment running?",
                    c->why[0] != '\0' ? c->why : c->config->address);
    pthread_mutex_unlock(&c->lock);
    return *table != NULL ? 0 : -ETIMEDOUT;
}

void mfs_control_on_table(struct mfs_control *c, mfs_control_table_fn *fn,
                          mfs_control_contact_fn *contact, void *arg)
{
    struct mfs_table *waiting;

    pthread_mutex_lock(&c->lock);
    c->fn = fn;
    c->contact = contact;
    c->arg = arg;
    waiting = c->table;
    c->table = NULL;
    if (waiting != NULL)
        fn(arg, waiting);
    pthread_mutex_unlock(&c->lock);
}

void mfs_control_on_hot(struct mfs_control *c, mfs_control_hot_fn *hot, void *arg)
{
    pthread_mutex_lock(&c->lock);
    c->hot = hot;
    c->hot_arg = arg;
    pthread_mutex_unlock(&c->lock);
}

/* In the control thread. */
static void announce(void *arg)
{
    struct mfs_control *c = arg;
    struct mfs_conn *conn = mfs_uplink_conn(c->uplink);

    if (conn != NULL)
        say_hello(c, conn);
}

void mfs_control_ready(struct mfs_control *c, uint64_t session)
{
    pthread_mutex_lock(&c->lock);
    c->session_id = session;
    c->ready = true;
    pthread_mutex_unlock(&c->lock);
    mfs_loop_post(c->loop, announce, c);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Belongs to the thread that asks and to the control thread: the later one frees it. */
struct question {
    struct mfs_control *c;
    enum mfs_msg type;
    const void *body; /* the asker's, as is `take`'s argument: until it has gone */
    int64_t limit;
    void (*take)(void *arg, const void *reply);
    void *arg;
    /* guarded by the control's lock */
    bool done, gone; /* answered; not waited for */
    int rc;
};

static void question_ends(struct question *q, int rc, const void *reply)
{
    struct mfs_control *c = q->c;
    bool gone;

    pthread_mutex_lock(&c->lock);
    gone = q->gone;
    if (!gone && rc == 0)
        q->take(q->arg, reply);
    q->rc = rc;
    q->done = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (gone)
        free(q);
}

static void question_answered(void *arg, const struct mfs_err *err, const void *reply)
{
    question_ends(arg, err != NULL ? err->code : 0, reply);
}

static void question_sent(void *arg)
{
    struct question *q = arg;
    struct mfs_conn *conn = mfs_uplink_conn(q->c->uplink);
    int rc = -ENOTCONN;
    bool gone;

    pthread_mutex_lock(&q->c->lock);
    gone = q->gone;
    if (!gone && conn != NULL)
        rc = mfs_conn_request(conn, q->type, q->body, q->limit, question_answered, q);
    pthread_mutex_unlock(&q->c->lock);
    if (rc < 0)
        question_ends(q, rc, NULL);
}

int mfs_control_ask(struct mfs_control *c, enum mfs_msg type, const void *body, int64_t ns,
                    void (*take)(void *arg, const void *reply), void *arg)
{
    struct question *q = calloc(1, sizeof *q);
    int64_t end = mfs_clock_mono() + ns, left = ns;
    int rc;

    if (q == NULL)
        return -ENOMEM;
    *q = (struct question){
        .c = c, .type = type, .body = body, .limit = ns, .take = take, .arg = arg};
    rc = mfs_loop_post(c->loop, question_sent, q);
    if (rc < 0) {
        free(q);
        return rc;
    }
    pthread_mutex_lock(&c->lock);
    while (!q->done && left > 0) {
        mfs_cond_wait(&c->changed, &c->lock, left);
        left = end - mfs_clock_mono();
    }
    rc = q->done ? q->rc : -ETIMEDOUT;
    q->gone = !q->done;
    if (q->gone)
        q = NULL; /* the control thread's */
    pthread_mutex_unlock(&c->lock);
    free(q);
    return rc;
}
