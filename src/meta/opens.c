/* Which inodes this client has open, has closed but not told of it, and may have locked: what a new
 * session has to register again, and what the end of a session has to give back. */
#include "meta/internal.h"

#include <stdlib.h>
#include <sys/queue.h>
#include <uthash.h>

#include "meta/opens.h"

struct open {
    uint64_t ino;
    uint32_t count;
    uint32_t closed; /* besides: registered, but open no more */
    bool locked;
    UT_hash_handle hh;
    TAILQ_ENTRY(open) later; /* in closed */
};

struct mfs_opens {
    pthread_mutex_t mutex; /* guards what follows; a leaf */
    struct open *opens;
    TAILQ_HEAD(, open) closed; /* those of which some are; the oldest first */
};

struct mfs_opens *mfs_opens_create(void)
{
    struct mfs_opens *o = calloc(1, sizeof *o);

    if (o) {
        pthread_mutex_init(&o->mutex, NULL);
        TAILQ_INIT(&o->closed);
    }
    return o;
}

void mfs_opens_destroy(struct mfs_opens *o)
{
    struct open *e, *next;

    if (!o)
        return;
    HASH_ITER(hh, o->opens, e, next)
    {
        HASH_DEL(o->opens, e);
        free(e);
    }
    pthread_mutex_destroy(&o->mutex);
    free(o);
}

static struct open *find(struct mfs_opens *o, uint64_t ino)
{
    struct open *e;

    HASH_FIND(hh, o->opens, &ino, sizeof ino, e);
    return e;
}

static struct open *find_or_add(struct mfs_opens *o, uint64_t ino)
{
    struct open *e = find(o, ino);

    if (e)
        return e;
    e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->ino = ino;
    HASH_ADD(hh, o->opens, ino, sizeof e->ino, e);
    return e;
}

void mfs_opens_register(struct mfs_meta *meta, uint64_t ino, uint64_t sid, uint32_t count)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), who = mfs_ino_arg(sid);
    struct mfs_call c;

    mfs_call_function(&c, "mfs_reopen");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, who.b, sizeof who.b);
    mfs_args_int(&c.args, count);
    mfs_call_post(meta, &c, mfs_placement_home(ino));
}

void mfs_opens_added(struct mfs_meta *meta, uint64_t ino, uint64_t sid)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;
    uint64_t current;

    pthread_mutex_lock(&o->mutex);
    e = find_or_add(o, ino);
    if (e)
        e->count++;
    current = meta->sid;
    pthread_mutex_unlock(&o->mutex);
    if (current != sid)
        mfs_opens_register(meta, ino, current, 1);
}

static void drop_if_unused(struct mfs_opens *o, struct open *e)
{
    if (e->count || e->closed || e->locked)
        return;
    HASH_DEL(o->opens, e);
    free(e);
}

bool mfs_opens_closed(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;
    bool counted;

    pthread_mutex_lock(&o->mutex);
    e = find(o, ino);
    counted = e && e->count;
    if (counted) {
        e->count--;
        if (!e->closed++)
            TAILQ_INSERT_TAIL(&o->closed, e, later);
    }
    pthread_mutex_unlock(&o->mutex);
    return counted;
}

/* Under mutex. */
static struct mfs_closed take_closed(struct mfs_opens *o, struct open *e)
{
    struct mfs_closed c = {e->ino, e->closed};

    if (e->closed)
        TAILQ_REMOVE(&o->closed, e, later);
    e->closed = 0;
    drop_if_unused(o, e);
    return c;
}

uint32_t mfs_opens_take_closed_of(struct mfs_meta *meta, uint64_t ino, uint64_t *sid)
{
    struct mfs_opens *o = meta->opens;
    uint32_t count = 0;
    struct open *e;

    pthread_mutex_lock(&o->mutex);
    e = find(o, ino);
    if (e)
        count = take_closed(o, e).count;
    *sid = meta->sid;
    pthread_mutex_unlock(&o->mutex);
    return count;
}

size_t mfs_opens_take_closed(struct mfs_meta *meta, struct mfs_closed *list, size_t most,
                             uint64_t *sid)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;
    size_t n = 0;

    pthread_mutex_lock(&o->mutex);
    while (n < most && (e = TAILQ_FIRST(&o->closed)))
        list[n++] = take_closed(o, e);
    *sid = meta->sid;
    pthread_mutex_unlock(&o->mutex);
    return n;
}

void mfs_opens_locked(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_opens *o = meta->opens;
    struct open *e;

    pthread_mutex_lock(&o->mutex);
    e = find_or_add(o, ino);
    if (e)
        e->locked = true;
    pthread_mutex_unlock(&o->mutex);
}

size_t mfs_opens_renew(struct mfs_meta *meta, uint64_t sid, struct mfs_open_state **list)
{
    struct mfs_opens *o = meta->opens;
    struct open *e, *next;
    size_t n = 0;

    pthread_mutex_lock(&o->mutex);
    *list = calloc(HASH_COUNT(o->opens) + 1, sizeof **list);
    HASH_ITER(hh, o->opens, e, next)
    {
        if (*list && (e->count || e->locked))
            (*list)[n++] = (struct mfs_open_state){e->ino, e->count, e->locked};
        e->locked = false;
        take_closed(o, e);
    }
    meta->sid = sid;
    pthread_mutex_unlock(&o->mutex);
    return n;
}
