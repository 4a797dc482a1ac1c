/* See the header. A round asks every node that is connected and has answered before; those that do
 * not are waited for no longer than it takes to show the others. */
#include "cm/nodes/mounts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "net/deferred.h"

#define EACH   (5 * MFS_SEC)
#define WANTED (60 * MFS_SEC)
#define FRESH  (2 * MFS_SEC)    /* as often as clients tell */
#define NEWS   (500 * MFS_MSEC) /* by so much what a client tells is newer, at least */
#define LIMIT  (5 * MFS_SEC)    /* of a question */
#define WAIT   (300 * MFS_MSEC) /* of who wants to know */

struct waiter {
    struct mfs_cm_mounts *owner;
    void (*done)(void *arg);
    void *arg;
    struct mfs_timer *limit;
    struct waiter *next;
};

struct mfs_cm_mounts {
    struct mfs_cm *cm;
    struct mfs_timer *timer;
    bool always;
    int64_t wanted; /* until then, mono */
    int64_t asked;  /* the last round */
    uint64_t round;
    uint32_t open; /* questions of it */
    struct mfs_mounts_done done;
    struct waiter *waiters;
};

/* ---- what a node has told -------------------------------------------------------------------- */

static void free_list(struct mfs_mounts *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        mfs_mount_free(&m->mount[i]);
    free(m->mount);
    *m = (struct mfs_mounts){0};
}

void mfs_mounts_forget(struct mfs_node *n)
{
    free_list(&n->mounts);
    n->mounts_at = 0;
}

static void add_durations(const struct mfs_mount *m, uint64_t bucket[MFS_METRIC_BUCKETS])
{
    for (uint32_t i = 0; i < m->figures.n; i++) {
        const struct mfs_metric_sample *s = &m->figures.sample[i];

        for (uint32_t k = 0; k < s->nbuckets && !strcmp(s->name, MFS_MOUNT_DURATIONS); k++)
            bucket[s->bucket[k].index] += s->bucket[k].count;
    }
}

static bool same_client(const struct mfs_mount *a, const struct mfs_mount *b)
{
    return a->pid == b->pid && !strcmp(a->session, b->session) && !strcmp(a->path, b->path);
}

/* Most often each is where it was. */
static const struct mfs_mount *find(const struct mfs_mounts *list, const struct mfs_mount *m,
                                    uint32_t at)
{
    if (at < list->n && same_client(&list->mount[at], m))
        return &list->mount[at];
    for (uint32_t i = 0; i < list->n; i++)
        if (same_client(&list->mount[i], m))
            return &list->mount[i];
    return NULL;
}

/* Two times are far enough apart for a rate when a client has told anew. */
static void take_rate(struct mfs_mount *m, const struct mfs_mount *before, int64_t now)
{
    m->at = m->operations ? now - (int64_t)m->age_ms * MFS_MSEC : 0;
    if (!before || !before->at || !m->at)
        return;
    if (m->at - before->at < NEWS) {
        m->at = before->at;
        m->rate = before->rate;
    } else if (m->operations >= before->operations) {
        m->rate =
            (double)(m->operations - before->operations) / ((double)(m->at - before->at) / MFS_SEC);
    }
}

static void take_rates(const struct mfs_mounts *was, struct mfs_mounts *list)
{
    int64_t now = mfs_clock_mono();

    for (uint32_t i = 0; i < list->n; i++)
        take_rate(&list->mount[i], find(was, &list->mount[i], i), now);
}

static uint64_t grown(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

/* Only who has told before has done the rest since then: after its lm began anew a client is known
 * for a while before it tells. */
static void count_done(struct mfs_mounts_done *done, const struct mfs_mounts *was,
                       const struct mfs_mounts *told)
{
    done->when = mfs_clock_mono();
    for (uint32_t i = 0; i < told->n; i++) {
        const struct mfs_mount *before = find(was, &told->mount[i], i);
        uint64_t old[MFS_METRIC_BUCKETS] = {0}, now[MFS_METRIC_BUCKETS] = {0};

        if (!before || !before->figures.n)
            continue;
        done->read += grown(before->read_bytes, told->mount[i].read_bytes);
        done->written += grown(before->written_bytes, told->mount[i].written_bytes);
        add_durations(before, old);
        add_durations(&told->mount[i], now);
        for (uint32_t k = 0; k < MFS_METRIC_BUCKETS; k++)
            done->bucket[k] += grown(old[k], now[k]);
    }
}

const struct mfs_mounts_done *mfs_mounts_done(const struct mfs_cm *cm)
{
    return &cm->mounts->done;
}

static void take(struct mfs_node *n, const struct mfs_mounts *told)
{
    struct mfs_mounts list = {.mount = calloc(told->n + 1, sizeof *list.mount)};

    for (uint32_t i = 0; list.mount && i < told->n; i++) {
        if (mfs_mount_copy(&list.mount[i], &told->mount[i])) {
            free_list(&list);
            return;
        }
        list.n++;
    }
    if (!list.mount)
        return; /* what it told before stays */
    if (n->cm->mounts)
        count_done(&n->cm->mounts->done, &n->mounts, &list);
    take_rates(&n->mounts, &list);
    free_list(&n->mounts);
    n->mounts = list;
    n->mounts_at = mfs_clock_mono();
}

/* ---- who waits ------------------------------------------------------------------------------- */

static void serve(struct waiter *w)
{
    struct waiter **at = &w->owner->waiters;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    mfs_timer_cancel(w->limit);
    w->done(w->arg);
    free(w);
}

static void serve_all(struct mfs_cm_mounts *m)
{
    while (m->waiters)
        serve(m->waiters);
}

static void waited(void *arg)
{
    struct waiter *w = arg;

    w->limit = NULL;
    serve(w);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct mfs_node *n = arg;
    struct mfs_cm_mounts *m = n->cm->mounts;

    n->mounts_asked = false;
    if (!err)
        take(n, reply);
    if (m && n->mounts_round == m->round && m->open && !--m->open)
        serve_all(m);
}

static uint32_t count_mounts(const struct mfs_cm *cm)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < cm->state.nnodes; i++)
        n += cm->nodes[i]->mounts.n;
    return n;
}

static void begin_round(struct mfs_cm_mounts *m)
{
    struct mfs_msg_mounts ask = {.buckets = m->always && count_mounts(m->cm) <= MFS_MOUNTS_FEW};

    m->asked = mfs_clock_mono();
    m->round++;
    m->open = 0;
    for (uint32_t i = 0; i < m->cm->state.nnodes; i++) {
        struct mfs_node *n = m->cm->nodes[i];

        if (!n->conn || n->mounts_asked ||
            mfs_conn_request(n->conn, MFS_MSG_MOUNTS, &ask, LIMIT, answered, n))
            continue;
        n->mounts_asked = true;
        n->mounts_round = m->round;
        m->open++;
    }
}

static void tick(void *arg)
{
    struct mfs_cm_mounts *m = arg;

    if (m->always || mfs_clock_mono() < m->wanted)
        begin_round(m);
}

void mfs_mounts_always(struct mfs_cm *cm)
{
    cm->mounts->always = true;
    begin_round(cm->mounts);
}

int mfs_mounts_fresh(struct mfs_cm *cm, void (*done)(void *arg), void *arg)
{
    struct mfs_cm_mounts *m = cm->mounts;
    int64_t now = mfs_clock_mono();
    struct waiter *w = calloc(1, sizeof *w);

    if (!w)
        return -ENOMEM;
    m->wanted = now + WANTED;
    if (now - m->asked >= FRESH)
        begin_round(m);
    *w = (struct waiter){.owner = m, .done = done, .arg = arg, .next = m->waiters};
    w->limit = m->open ? mfs_loop_timer(cm->loop, WAIT, 0, waited, w) : NULL;
    m->waiters = w;
    if (!w->limit)
        serve(w);
    return 0;
}

/* ---- what all have told ---------------------------------------------------------------------- */

int mfs_mounts_list(const struct mfs_cm *cm, struct mfs_mounts *list)
{
    *list = (struct mfs_mounts){.mount = calloc(count_mounts(cm) + 1, sizeof *list->mount)};
    if (!list->mount)
        return -ENOMEM;
    for (uint32_t i = 0; i < cm->state.nnodes; i++) {
        const struct mfs_node *node = cm->nodes[i];
        uint64_t age = (uint64_t)((mfs_clock_mono() - node->mounts_at) / MFS_MSEC);

        for (uint32_t k = 0; k < node->mounts.n; k++) {
            struct mfs_mount *m = &list->mount[list->n++];

            *m = node->mounts.mount[k];
            m->age_ms += m->operations ? age : 0;
            mfs_text_copy(m->node, sizeof m->node, node->record->name);
            mfs_text_copy(m->host, sizeof m->host, node->record->address);
        }
    }
    return 0;
}

struct asker {
    struct mfs_cm *cm;
    struct mfs_deferred from;
    uint32_t most;
};

static void tell(void *arg)
{
    struct asker *a = arg;
    struct mfs_mounts list;

    if (mfs_mounts_list(a->cm, &list) || mfs_mounts_sum_up(&list)) {
        mfs_mounts_list_free(&list);
        mfs_deferred_fail(&a->from, -ENOMEM, "out of memory");
    } else {
        if (a->most && list.n > a->most) {
            list.left_out = list.n - a->most;
            list.n = a->most;
        }
        mfs_deferred_reply(&a->from, MFS_MSG_CLIENTS, &list);
        mfs_mounts_list_free(&list);
    }
    free(a);
}

void mfs_mounts_on_clients(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_clients *m = body;
    struct asker *a = calloc(1, sizeof *a);

    if (!a) {
        mfs_conn_fail(c, id, -ENOMEM, "out of memory");
        return;
    }
    *a = (struct asker){arg, mfs_reply_later(c, id), m->most};
    if (mfs_mounts_fresh(arg, tell, a)) {
        mfs_deferred_fail(&a->from, -ENOMEM, "out of memory");
        free(a);
    }
}

/* ---- its life -------------------------------------------------------------------------------- */

int mfs_mounts_init(struct mfs_cm *cm)
{
    struct mfs_cm_mounts *m = calloc(1, sizeof *m);

    if (!m)
        return -ENOMEM;
    m->cm = cm;
    m->timer = mfs_loop_timer(cm->loop, EACH, EACH, tick, m);
    if (!m->timer) {
        free(m);
        return -ENOMEM;
    }
    cm->mounts = m;
    return 0;
}

void mfs_mounts_fini(struct mfs_cm *cm)
{
    if (!cm->mounts)
        return;
    serve_all(cm->mounts);
    mfs_timer_cancel(cm->mounts->timer);
    free(cm->mounts);
    cm->mounts = NULL;
}
