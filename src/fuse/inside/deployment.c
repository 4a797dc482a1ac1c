/* clients and events: what cm knows, asked of it at each open. The last answer stays here, as text,
 * for the time when there is none. */
#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/waits.h"
#include "client/client.h"
#include "fuse/inside/inside_impl.h"
#include "fuse/inside/texts.h"
#include "show/clients.h"
#include "show/json.h"

#define LIMIT (2 * MFS_SEC) /* the Local Manager waits for cm for 1 s */

/* They begin alike, with how old they are. */
union answer {
    struct mfs_told told;
    struct mfs_mounts clients;
    struct mfs_events events;
};

struct asking {
    struct mfs_inside *i;
    enum mfs_msg type;
    struct mfs_inside_told *told;
};

/* In the control thread. */
static void take(void *arg, const void *reply)
{
    struct asking *a = arg;
    struct mfs_buf b;

    mfs_buf_init(&b);
    if (mfs_schema_encode(mfs_messages[a->type].reply, reply, false, &b) < 0) {
        mfs_buf_fini(&b);
        return;
    }
    pthread_mutex_lock(&a->i->lock);
    mfs_buf_fini(&a->told->text);
    a->told->text = b;
    a->told->at = mfs_clock_mono();
    pthread_mutex_unlock(&a->i->lock);
}

/* *to is to be cleared when it is 0. */
static int take_last(struct asking *a, bool stale, union answer *to)
{
    struct mfs_err err;
    uint64_t age;
    int rc = 0;

    *to = (union answer){.told = {.nothing = true}};
    pthread_mutex_lock(&a->i->lock);
    age = (uint64_t)((mfs_clock_mono() - a->told->at) / MFS_MSEC);
    if (a->told->at != 0)
        rc = mfs_schema_decode(mfs_messages[a->type].reply, mfs_buf_data(&a->told->text),
                               mfs_buf_len(&a->told->text), to, &err);
    if (a->told->at == 0)
        age = 0;
    pthread_mutex_unlock(&a->i->lock);
    if (rc < 0 || !stale)
        return rc;
    to->told.stale = true;
    to->told.age_ms += age;
    for (uint32_t k = 0; a->type == MFS_MSG_CLIENTS && k < to->clients.n; k++)
        to->clients.mount[k].age_ms += to->clients.mount[k].operations > 0 ? age : 0;
    return 0;
}

static int put_text(enum mfs_msg type, const union answer *a, struct mfs_buf *to)
{
    int rc = mfs_show_told(&a->told, to);

    if (a->told.nothing || rc < 0)
        return rc;
    if (type == MFS_MSG_CLIENTS)
        return mfs_show_clients(&a->clients, NULL, to);
    for (uint32_t i = 0; i < a->events.n && rc == 0; i++)
        rc = mfs_show_event(&a->events.event[i], to);
    return rc;
}

static int put(struct mfs_fuse *m, struct asking *a, bool json, struct mfs_buf *to)
{
    const struct mfs_schema *schema = mfs_messages[a->type].reply;
    union answer answer;
    int rc;

    mfs_waits_begin();
    rc = mfs_client_ask(m->client, a->type, LIMIT, take, a);
    mfs_waits_end();
    rc = take_last(a, rc < 0, &answer);
    if (rc < 0)
        return rc;
    rc = json ? mfs_show_json(schema, &answer, true, to) : put_text(a->type, &answer, to);
    mfs_schema_clear(schema, &answer);
    return rc;
}

int mfs_text_of_clients(struct mfs_fuse *m, bool json, struct mfs_buf *to)
{
    struct asking a = {m->inside, MFS_MSG_CLIENTS, &m->inside->clients};

    return put(m, &a, json, to);
}

int mfs_text_of_events(struct mfs_fuse *m, bool json, struct mfs_buf *to)
{
    struct asking a = {m->inside, MFS_MSG_EVENTS, &m->inside->events};

    return put(m, &a, json, to);
}
