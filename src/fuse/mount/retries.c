/* An entry per thread that tries again. It is free; or it belongs to a thread, until the thread's
 * call is over or MOMENT has passed without a request of it under way. An entry may hold a file
 * open, which is released with it. */
#include "fuse/mount/retries.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/threads/ticker.h"

#define THREADS_MAX 32 /* that try again at one time; others do without */
#define MOMENT      (1 * MFS_SEC)
#define LOOKUPS_MAX 50

struct retry {
    pid_t thread;    /* 0: free */
    unsigned asking; /* its requests under way: it is not over, however long these take */
    int64_t until;
    struct mfs_file *held; /* NULL: nothing yet */
};

struct mfs_retries {
    struct mfs_vfs *vfs;
    struct mfs_ticker ticker; /* rests while no entry is in use */
    atomic_uint active;       /* entries in use */
    pthread_mutex_t lock;     /* guards entry; a leaf */
    struct retry entry[THREADS_MAX];
};

static void sweep(void *arg)
{
    struct mfs_retries *r = arg;

    mfs_retries_sweep(r);
    if (atomic_load(&r->active) > 0)
        mfs_ticker_work(&r->ticker);
}

struct mfs_retries *mfs_retries_create(struct mfs_vfs *vfs)
{
    struct mfs_retries *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->vfs = vfs;
    pthread_mutex_init(&r->lock, NULL);
    if (mfs_ticker_start_resting(&r->ticker, "retries", MOMENT, sweep, r) < 0) {
        pthread_mutex_destroy(&r->lock);
        free(r);
        return NULL;
    }
    return r;
}

static void release(struct mfs_file *file)
{
    if (file != NULL)
        mfs_vfs_release(file);
}

static struct retry *find(struct mfs_retries *r, pid_t thread)
{
    for (unsigned i = 0; i < THREADS_MAX; i++)
        if (r->entry[i].thread == thread)
            return &r->entry[i];
    return NULL;
}

void mfs_retries_stale(struct mfs_retries *r, pid_t thread)
{
    struct retry *e;

    if (thread == 0) /* of another PID namespace: all threads there have this number */
        return;
    pthread_mutex_lock(&r->lock);
    e = find(r, thread);
    if (e == NULL) {
        e = find(r, 0);
        if (e != NULL)
            atomic_fetch_add(&r->active, 1);
    }
    if (e != NULL) {
        e->thread = thread;
        e->until = mfs_clock_mono() + MOMENT;
    }
    pthread_mutex_unlock(&r->lock);
    mfs_ticker_work(&r->ticker);
}

/* A request of the thread begins; false: it is not trying again. */
static bool begin(struct mfs_retries *r, pid_t thread)
{
    struct retry *e;

    if (atomic_load(&r->active) == 0 || thread == 0)
        return false;
    pthread_mutex_lock(&r->lock);
    e = find(r, thread);
    if (e != NULL)
        e->asking++;
    pthread_mutex_unlock(&r->lock);
    return e != NULL;
}

/* Its answer is there, and its next request due within a moment. */
static void end(struct mfs_retries *r, pid_t thread)
{
    struct retry *e;

    pthread_mutex_lock(&r->lock);
    e = find(r, thread);
    if (e != NULL) {
        e->asking--;
        e->until = mfs_clock_mono() + MOMENT;
    }
    pthread_mutex_unlock(&r->lock);
}

/* Holds `file` for the thread instead of what was held before. */
static void hold(struct mfs_retries *r, pid_t thread, struct mfs_file *file)
{
    struct mfs_file *before = file;
    struct retry *e;

    pthread_mutex_lock(&r->lock);
    e = find(r, thread);
    if (e != NULL) {
        before = e->held;
        e->held = file;
    }
    pthread_mutex_unlock(&r->lock);
    release(before);
}

/* A look-up that holds what it finds. */
static int find_and_hold(struct mfs_retries *r, pid_t thread, uint64_t parent, const char *name,
                         struct mfs_attr *attr)
{
    struct mfs_file *file;
    bool keep_cache;
    int rc = -ESTALE;

    for (unsigned i = 0; i < LOOKUPS_MAX && rc == -ESTALE; i++) {
        rc = mfs_vfs_lookup(r->vfs, parent, name, attr);
        if (rc < 0 || !S_ISREG(attr->mode))
            return rc;
        rc = mfs_vfs_open(r->vfs, attr->ino, O_RDONLY, &file, &keep_cache);
        if (rc == 0) {
            mfs_vfs_does_not_count(file);
            hold(r, thread, file);
        }
    }
    return rc;
}

int mfs_retries_lookup(struct mfs_retries *r, pid_t thread, uint64_t parent, const char *name,
                       struct mfs_attr *attr)
{
    int rc;

    if (!begin(r, thread))
        return mfs_vfs_lookup(r->vfs, parent, name, attr);
    rc = find_and_hold(r, thread, parent, name, attr);
    end(r, thread);
    return rc;
}

int mfs_retries_open(struct mfs_retries *r, pid_t thread, uint64_t ino, int flags,
                     struct mfs_file **file, bool *keep_cache)
{
    bool retrying = begin(r, thread);
    int rc = mfs_vfs_open(r->vfs, ino, flags, file, keep_cache);

    if (retrying)
        end(r, thread);
    return rc;
}

/* Ends one that is over by `now`; false: there is none. */
static bool take_over(struct mfs_retries *r, int64_t now, struct mfs_file **held)
{
    bool found = false;

    pthread_mutex_lock(&r->lock);
    for (unsigned i = 0; i < THREADS_MAX && !found; i++) {
        struct retry *e = &r->entry[i];

        if (e->thread == 0 || e->asking > 0 || e->until > now)
            continue;
        *held = e->held;
        *e = (struct retry){0};
        atomic_fetch_sub(&r->active, 1);
        found = true;
    }
    pthread_mutex_unlock(&r->lock);
    return found;
}

void mfs_retries_sweep(struct mfs_retries *r)
{
    int64_t now = mfs_clock_mono();
    struct mfs_file *held;

    if (atomic_load(&r->active) == 0)
        return;
    while (take_over(r, now, &held))
        release(held);
}

void mfs_retries_destroy(struct mfs_retries *r)
{
    struct mfs_file *held;

    if (r == NULL)
        return;
    mfs_ticker_stop(&r->ticker);
    while (take_over(r, INT64_MAX, &held))
        release(held);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
