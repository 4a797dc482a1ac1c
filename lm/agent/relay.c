/* What clients ask and cm alone knows: one question of a kind is open to cm, whose answer all get
 * who have asked meanwhile, and the next ones for a second: many readers on a node are one to cm.
 * What it told last stays here, as text, for the time when it does not answer. */
#include "lm/agent/agent_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LIMIT   (1 * MFS_SEC) /* cm itself waits 0.3 s for other nodes */
#define FRESH   (1 * MFS_SEC)
#define WAITING 64U

struct question {
    struct mfs_agent *agent;
    enum mfs_msg type;
    bool open;
    struct mfs_deferred waits[WAITING];
    unsigned nwaits;
    struct mfs_buf last; /* JSON of the reply's schema */
    int64_t at;          /* that came then, mono; 0: none has */
};

struct mfs_agent_relay {
    struct question clients, events;
};

/* ---- answers --------------------------------------------------------------------------------- */

/* A reply; CLIENTS and EVENTS begin alike, with how old it is. */
union answer {
    struct mfs_told told;
    struct mfs_mounts clients;
    struct mfs_events events;
};

static void grow_old(enum mfs_msg type, union answer *a, uint64_t age_ms)
{
    a->told.age_ms += age_ms;
    for (uint32_t i = 0; type == MFS_MSG_CLIENTS && i < a->clients.n; i++)
        a->clients.mount[i].age_ms += a->clients.mount[i].operations ? age_ms : 0;
}

static void answer(struct question *q, struct mfs_deferred *to, bool stale)
{
    const struct mfs_schema *schema = mfs_messages[q->type].reply;
    union answer a = {.told = {.nothing = true}};
    struct mfs_err err;

    if (q->at &&
        mfs_schema_decode(schema, mfs_buf_data(&q->last), mfs_buf_len(&q->last), &a, &err)) {
        mfs_deferred_fail(to, err.code, "%s", err.msg);
        return;
    }
    if (q->at)
        grow_old(q->type, &a, (uint64_t)((mfs_clock_mono() - q->at) / MFS_MSEC));
    a.told.stale |= stale;
    mfs_deferred_reply(to, q->type, &a);
    mfs_schema_clear(schema, &a);
}

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct question *q = arg;
    struct mfs_buf b;

    q->open = false;
    mfs_buf_init(&b);
    if (!err && !mfs_schema_encode(mfs_messages[q->type].reply, reply, false, &b)) {
        mfs_buf_fini(&q->last);
        q->last = b;
        q->at = mfs_clock_mono();
    } else {
        mfs_buf_fini(&b);
    }
    while (q->nwaits)
        answer(q, &q->waits[--q->nwaits], err != NULL);
}

/* ---- questions ------------------------------------------------------------------------------- */

static void ask(struct question *q)
{
    const struct mfs_agent *a = q->agent;
    struct mfs_msg_clients m = {.most = MFS_CLIENTS_TOLD};
    struct mfs_conn *conn = a->link.joined ? mfs_uplink_conn(a->link.uplink) : NULL;

    q->open = conn && !mfs_conn_request(conn, q->type, q->type == MFS_MSG_CLIENTS ? &m : NULL,
                                        LIMIT, answered, q);
}

static struct question *question(struct mfs_agent *a, enum mfs_msg type)
{
    struct mfs_agent_relay *r = a->relay ? a->relay : calloc(1, sizeof *r);

    if (!r)
        return NULL;
    if (!a->relay) {
        r->clients = (struct question){.agent = a, .type = MFS_MSG_CLIENTS};
        r->events = (struct question){.agent = a, .type = MFS_MSG_EVENTS};
        mfs_buf_init(&r->clients.last);
        mfs_buf_init(&r->events.last);
        a->relay = r;
    }
    return type == MFS_MSG_CLIENTS ? &r->clients : &r->events;
}

void mfs_agent_relay(void *agent, enum mfs_msg type, struct mfs_conn *conn, uint64_t id)
{
    struct mfs_agent *a = agent;
    struct question *q = question(a, type);
    struct mfs_deferred to = mfs_reply_later(conn, id);

    if (!q) {
        mfs_deferred_fail(&to, -ENOMEM, "out of memory");
        return;
    }
    if (q->at && mfs_clock_mono() - q->at < FRESH && a->link.joined) {
        answer(q, &to, false);
        return;
    }
    if (!q->open)
        ask(q);
    if (q->open && q->nwaits < WAITING)
        q->waits[q->nwaits++] = to;
    else
        answer(q, &to, true);
}

void mfs_agent_relay_end(struct mfs_agent *a)
{
    struct mfs_agent_relay *r = a->relay;

    if (!r)
        return;
    for (struct question *q = &r->clients; q; q = q == &r->clients ? &r->events : NULL) {
        while (q->nwaits)
            mfs_deferred_drop(&q->waits[--q->nwaits]);
        mfs_buf_fini(&q->last);
    }
    free(r);
    a->relay = NULL;
}
