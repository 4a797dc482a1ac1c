#include "meta/session/unregistered_opens.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/log.h"
#include "base/threads/thread.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/internal.h"
#include "meta/session/opens.h"
#include "partition/protocol.h"

#define REGISTER_AFTER MFS_SEC          /* far below what is left of a lease in its partition */
#define SCAN_INTERVAL  (200 * MFS_MSEC) /* for those that have lasted longer */
#define REMOVED_LATELY (100 * MFS_MSEC) /* a client that removes files registers all it creates */
#define POLL           (50 * MFS_MSEC / 1000)
#define AT_ONCE        MFS_CALLS_MAX

static_assert(50 * (REGISTER_AFTER + SCAN_INTERVAL) < MFS_LEASE_MS * MFS_MSEC,
              "opens are registered long before their partition forgets the lease");

/* A caller of mfs_unregistered_when_done: answered when the inode's opens are registered, or can't
 * be registered. */
struct waiting {
    uint64_t ino, newest; /* files whose creation began later are others */
    mfs_unregistered_done_fn *fn;
    void *arg;
    struct waiting *prev, *next;
};

struct mfs_unregistered {
    struct mfs_meta *meta;
    atomic_uint removing;       /* calls under way that may take a file's last name */
    _Atomic int64_t removed_at; /* mono: the last one has ended */
    atomic_bool work;           /* set under mutex: something may be due; else the thread rests */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool stop; /* under mutex, as is what follows */
    struct waiting *list;
    TAILQ_HEAD(, mfs_unregistered_creation) creations; /* under way */
    uint64_t ncreations;                               /* ever */
};

/* --- registering ---------------------------------------------------------------------------- */

/* No notice of what other clients changed between two sessions has come here. */
static void drop_reopened(struct mfs_meta *meta, const struct mfs_open_count *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i].registered && list[i].reopened && meta->opts.changed)
            meta->opts.changed(meta->opts.arg, list[i].ino, 0, NULL, NULL);
    }
}

/* Registers them, which are of one partition, for the session, and waits; 0 or the first error. */
static int register_opens(struct mfs_meta *meta, uint64_t session, struct mfs_open_count *list,
                          size_t n)
{
    struct mfs_ino_arg sid = mfs_ino_arg(session), ino[AT_ONCE];
    struct mfs_calls calls;
    int rc;

    calls.n = 0;
    for (size_t i = 0; i < n; i++) {
        struct mfs_call *c = mfs_calls_add(&calls, "mfs_reopen", mfs_placement_home(list[i].ino));

        ino[i] = mfs_ino_arg(list[i].ino);
        mfs_args_bin(&c->args, ino[i].b, sizeof ino[i].b);
        mfs_args_bin(&c->args, sid.b, sizeof sid.b);
        mfs_args_int(&c->args, list[i].count);
        mfs_args_int(&c->args, (int64_t)list[i].number);
        c->cmd.idempotent = true;
    }
    rc = mfs_calls_run(meta, &calls);
    for (size_t i = 0; i < n; i++)
        list[i].registered = calls.call[i].cmd.rc == 0;
    mfs_calls_fini(&calls);
    mfs_opens_end_registering(meta, list, n);
    drop_reopened(meta, list, n);
    if (rc)
        mfs_warn("meta", "partition %u may not know of files that are open: %s",
                 mfs_placement_home(list[0].ino), strerror(-rc));
    return rc;
}

/* Those of the inode, unless it was tried in vain a moment ago. */
static void register_inode(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_open_count c;
    uint64_t sid;

    if (mfs_opens_take_unregistered_of(meta, ino, mfs_clock_mono() - REGISTER_AFTER, &c, &sid))
        register_opens(meta, sid, &c, 1);
}

/* Those that have been open, or were last tried, since before then: each once. */
static void register_older(struct mfs_meta *meta, int64_t before)
{
    struct mfs_open_count list[AT_ONCE];
    uint64_t sid;
    size_t n;

    while ((n = mfs_opens_take_unregistered(meta, MFS_OPENS_ANY, before, list, AT_ONCE, &sid)) > 0)
        register_opens(meta, sid, list, n);
}

/* Those of the partition; 0 or the first error, with which it stops. */
static int register_partition(struct mfs_meta *meta, uint32_t part)
{
    struct mfs_open_count list[AT_ONCE];
    uint64_t sid;
    int rc = 0;
    size_t n;

    while (!rc && (n = mfs_opens_take_unregistered(meta, part, INT64_MAX, list, AT_ONCE, &sid)) > 0)
        rc = register_opens(meta, sid, list, n);
    return rc;
}

/* --- opening, creating and removing -----------------------------------------------------------
 * Each side says what it is about to do before it looks what the other one does. */

static void remove_creation(struct mfs_unregistered *u, struct mfs_unregistered_creation *creation)
{
    pthread_mutex_lock(&u->mutex);
    TAILQ_REMOVE(&u->creations, creation, among);
    pthread_mutex_unlock(&u->mutex);
}

/* Is a file of the partition yet to be counted whose creation is no younger? */
static bool being_created(struct mfs_unregistered *u, uint64_t number, uint32_t part)
{
    struct mfs_unregistered_creation *b;
    bool found = false;

    pthread_mutex_lock(&u->mutex);
    TAILQ_FOREACH(b, &u->creations, among)
    {
        found = found || (b->number <= number && b->part == part);
    }
    pthread_mutex_unlock(&u->mutex);
    return found;
}

bool mfs_unregistered_creating(struct mfs_unregistered *u,
                               struct mfs_unregistered_creation *creation, uint32_t part)
{
    int64_t removed = atomic_load(&u->removed_at);

    if (removed && mfs_clock_mono() - removed < REMOVED_LATELY)
        return false;
    creation->part = part;
    pthread_mutex_lock(&u->mutex);
    creation->number = ++u->ncreations;
    TAILQ_INSERT_TAIL(&u->creations, creation, among);
    pthread_mutex_unlock(&u->mutex);
    if (atomic_load(&u->removing) == 0)
        return true;
    remove_creation(u, creation);
    return false;
}

void mfs_unregistered_created(struct mfs_unregistered *u,
                              struct mfs_unregistered_creation *creation, uint64_t ino)
{
    if (ino)
        mfs_opens_add_unregistered(u->meta, ino);
    remove_creation(u, creation);
}

bool mfs_unregistered_open(struct mfs_unregistered *u, uint64_t ino, struct mfs_attr *attr)
{
    if (!mfs_opens_add_unregistered(u->meta, ino))
        return false;
    if (atomic_load(&u->removing) == 0 && mfs_leases_attr(u->meta, ino, attr))
        return true;
    mfs_meta_close(u->meta, ino, false);
    return false;
}

void mfs_unregistered_removing(struct mfs_unregistered *u)
{
    atomic_fetch_add(&u->removing, 1);
}

int mfs_unregistered_register(struct mfs_unregistered *u, uint32_t part)
{
    uint64_t newest;
    int rc;

    pthread_mutex_lock(&u->mutex);
    newest = u->ncreations;
    pthread_mutex_unlock(&u->mutex);
    /* Other threads wait for no longer than we would, as a creation does not wait for memory, and
     * what they try in vain is ours then. */
    while (being_created(u, newest, part))
        mfs_clock_sleep(POLL);
    while (!(rc = register_partition(u->meta, part)) && mfs_opens_any_unregistered(u->meta, part))
        mfs_clock_sleep(POLL);
    return rc;
}

void mfs_unregistered_removed(struct mfs_unregistered *u)
{
    atomic_store(&u->removed_at, mfs_clock_mono());
    atomic_fetch_sub(&u->removing, 1);
}

/* --- notices of other clients' changes ------------------------------------------------------- */

bool mfs_unregistered_none(struct mfs_unregistered *u, uint64_t ino)
{
    return !being_created(u, UINT64_MAX, mfs_placement_home(ino)) &&
           mfs_opens_registration(u->meta, ino) == MFS_OPENS_REGISTERED;
}

bool mfs_unregistered_when_done(struct mfs_unregistered *u, uint64_t ino,
                                mfs_unregistered_done_fn *fn, void *arg)
{
    struct waiting *w;

    if (mfs_unregistered_none(u, ino)) {
        fn(arg, true);
        return true;
    }
    w = malloc(sizeof *w);
    if (!w)
        return false;
    *w = (struct waiting){.ino = ino, .fn = fn, .arg = arg};
    pthread_mutex_lock(&u->mutex);
    w->newest = u->ncreations;
    DL_APPEND(u->list, w);
    pthread_cond_signal(&u->cond);
    pthread_mutex_unlock(&u->mutex);
    return true;
}

/* With the mutex held, but not while it is at it. */
static void answer_first(struct mfs_unregistered *u)
{
    struct waiting *w = u->list;
    enum mfs_opens_registration state;
    bool over;

    DL_DELETE(u->list, w);
    pthread_mutex_unlock(&u->mutex);
    over = !being_created(u, w->newest, mfs_placement_home(w->ino));
    register_inode(u->meta, w->ino);
    state = mfs_opens_registration(u->meta, w->ino);
    over = over && state != MFS_OPENS_BUSY;
    if (over) {
        w->fn(w->arg, state == MFS_OPENS_REGISTERED);
        free(w);
    } else { /* another thread is at it */
        mfs_clock_sleep(POLL);
    }
    pthread_mutex_lock(&u->mutex);
    if (!over)
        DL_APPEND(u->list, w);
}

/* Without the mutex: whoever finds `work` set did so before the next scan. */
void mfs_unregistered_work(struct mfs_unregistered *u)
{
    if (!u || atomic_load(&u->work))
        return;
    pthread_mutex_lock(&u->mutex);
    atomic_store(&u->work, true);
    pthread_cond_signal(&u->cond);
    pthread_mutex_unlock(&u->mutex);
}

/* With the mutex held, but not while it is at it. */
static void scan(struct mfs_unregistered *u, int64_t now)
{
    bool left;

    atomic_store(&u->work, false);
    pthread_mutex_unlock(&u->mutex);
    register_older(u->meta, now - REGISTER_AFTER);
    left = mfs_opens_any_to_register(u->meta);
    pthread_mutex_lock(&u->mutex);
    if (left)
        atomic_store(&u->work, true);
}

static void *run(void *arg)
{
    struct mfs_unregistered *u = arg;
    /* However many callers there are to be answered. */
    int64_t now, next = mfs_clock_mono() + SCAN_INTERVAL;

    pthread_mutex_lock(&u->mutex);
    while (!u->stop) {
        now = mfs_clock_mono();
        if (now >= next && atomic_load(&u->work)) {
            scan(u, now);
            next = now + SCAN_INTERVAL;
        } else if (u->list) {
            answer_first(u);
        } else if (!atomic_load(&u->work)) {
            pthread_cond_wait(&u->cond, &u->mutex);
            next = mfs_clock_mono() + SCAN_INTERVAL;
        } else {
            mfs_cond_wait(&u->cond, &u->mutex, next - now);
        }
    }
    pthread_mutex_unlock(&u->mutex);
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------ */

int mfs_unregistered_create(struct mfs_unregistered **unregistered, struct mfs_meta *meta)
{
    struct mfs_unregistered *u = calloc(1, sizeof *u);
    int rc;

    *unregistered = NULL;
    if (!u)
        return -ENOMEM;
    u->meta = meta;
    atomic_init(&u->work, true);
    TAILQ_INIT(&u->creations);
    pthread_mutex_init(&u->mutex, NULL);
    rc = mfs_cond_init(&u->cond);
    if (!rc) {
        rc = mfs_thread_start(&u->thread, "meta-opens", run, u);
        if (rc)
            pthread_cond_destroy(&u->cond);
    }
    if (rc) {
        pthread_mutex_destroy(&u->mutex);
        free(u);
        return rc;
    }
    *unregistered = u;
    return 0;
}

void mfs_unregistered_destroy(struct mfs_unregistered *u)
{
    if (!u)
        return;
    pthread_mutex_lock(&u->mutex);
    u->stop = true;
    pthread_cond_signal(&u->cond);
    pthread_mutex_unlock(&u->mutex);
    pthread_join(u->thread, NULL);
    while (u->list) {
        struct waiting *w = u->list;

        DL_DELETE(u->list, w);
        w->fn(w->arg, false);
        free(w);
    }
    pthread_cond_destroy(&u->cond);
    pthread_mutex_destroy(&u->mutex);
    free(u);
}
