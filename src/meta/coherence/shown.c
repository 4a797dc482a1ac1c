#include "meta/coherence/shown.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/threads/thread.h"
#include "meta/meta.h"

#define SLOTS        16384U
#define TAKEN_LATEST MFS_SEC
#define TICKS        (20 * MFS_MSEC) /* the kernel rounds times up, to its ticks */
#define CALM         MFS_SEC         /* nothing is shown for so long after a client had to wait */
#define LOOK         (2 * MFS_MSEC)

static_assert(LOOK < MFS_META_SHOWN,
              "waiting for the kernel takes hardly longer than what was shown is used");

/* By hash of the ino. All times are mono. */
struct slot {
    unsigned begun; /* shown, but not certainly taken */
    int64_t latest; /* the kernel uses none of them any more */
    int64_t until;  /* the kernel uses what it has certainly taken */
};

struct waiting {
    uint64_t ino;
    void (*fn)(void *arg);
    void *arg;
    struct waiting *prev, *next;
};

struct mfs_shown {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_t thread;
    bool stop;      /* under mutex, as is what follows */
    int64_t waited; /* a client had to, then; 0: never */
    struct waiting *list;
    struct slot slot[SLOTS];
};

static struct slot *slot_of(struct mfs_shown *s, uint64_t ino)
{
    return &s->slot[mfs_hash64(&ino, sizeof ino, 0) % SLOTS];
}

static bool is_over(const struct slot *slot, int64_t now)
{
    return now >= slot->until && (slot->begun == 0 || now >= slot->latest);
}

static void raise_to(int64_t *at, int64_t time)
{
    if (*at < time)
        *at = time;
}

bool mfs_shown_begin(struct mfs_shown *s, uint64_t ino, int64_t life)
{
    struct slot *slot = slot_of(s, ino);
    int64_t now;
    bool calm;

    pthread_mutex_lock(&s->mutex);
    now = mfs_clock_mono();
    calm = s->waited == 0 || now - s->waited > CALM;
    if (calm) {
        slot->begun++;
        raise_to(&slot->latest, now + TAKEN_LATEST + life + TICKS);
    }
    pthread_mutex_unlock(&s->mutex);
    return calm;
}

void mfs_shown_end(struct mfs_shown *s, const uint64_t *inos, size_t n, int64_t life)
{
    int64_t until;

    pthread_mutex_lock(&s->mutex);
    until = mfs_clock_mono() + life + TICKS;
    for (size_t i = 0; i < n; i++) {
        struct slot *slot = slot_of(s, inos[i]);

        assert(slot->begun > 0); /* once for each mfs_shown_begin */
        slot->begun--;
        if (life)
            raise_to(&slot->until, until);
    }
    pthread_mutex_unlock(&s->mutex);
}

bool mfs_shown_over(struct mfs_shown *s, uint64_t ino, void (*fn)(void *arg), void *arg)
{
    struct slot *slot = slot_of(s, ino);
    struct waiting *w = NULL;
    bool over;
    int64_t now;

    pthread_mutex_lock(&s->mutex);
    now = mfs_clock_mono();
    over = s->stop || is_over(slot, now);
    if (!over) {
        s->waited = now;
        w = malloc(sizeof *w);
    }
    if (w) {
        *w = (struct waiting){.ino = ino, .fn = fn, .arg = arg};
        DL_APPEND(s->list, w);
        pthread_cond_signal(&s->cond);
    }
    pthread_mutex_unlock(&s->mutex);
    if (over)
        fn(arg);
    return over || w;
}

bool mfs_shown_is_over(struct mfs_shown *s, uint64_t ino)
{
    bool over;

    pthread_mutex_lock(&s->mutex);
    over = s->stop || is_over(slot_of(s, ino), mfs_clock_mono());
    pthread_mutex_unlock(&s->mutex);
    return over;
}

void mfs_shown_wait(struct mfs_shown *s, uint64_t ino)
{
    while (!mfs_shown_is_over(s, ino)) {
        pthread_mutex_lock(&s->mutex);
        s->waited = mfs_clock_mono();
        pthread_mutex_unlock(&s->mutex);
        mfs_clock_sleep(LOOK);
    }
}

/* Takes those off the list that need not wait any longer (`all`: any); lock held. */
static struct waiting *take_over(struct mfs_shown *s, bool all)
{
    int64_t now = mfs_clock_mono();
    struct waiting *w, *next, *over = NULL;

    DL_FOREACH_SAFE(s->list, w, next)
    {
        if (!all && !is_over(slot_of(s, w->ino), now))
            continue;
        DL_DELETE(s->list, w);
        DL_APPEND(over, w);
    }
    return over;
}

static void call(struct waiting *list)
{
    struct waiting *w, *next;

    DL_FOREACH_SAFE(list, w, next)
    {
        w->fn(w->arg);
        free(w);
    }
}

static void *run(void *arg)
{
    struct mfs_shown *s = arg;
    struct waiting *over;

    pthread_mutex_lock(&s->mutex);
    while (!s->stop) {
        if (!s->list)
            pthread_cond_wait(&s->cond, &s->mutex);
        else
            mfs_cond_wait(&s->cond, &s->mutex, LOOK);
        over = take_over(s, false);
        pthread_mutex_unlock(&s->mutex);
        call(over);
        pthread_mutex_lock(&s->mutex);
    }
    over = take_over(s, true);
    pthread_mutex_unlock(&s->mutex);
    call(over);
    return NULL;
}

int mfs_shown_create(struct mfs_shown **shown)
{
    struct mfs_shown *s = calloc(1, sizeof *s);
    int rc;

    *shown = NULL;
    if (!s)
        return -ENOMEM;
    pthread_mutex_init(&s->mutex, NULL);
    rc = mfs_cond_init(&s->cond);
    if (!rc)
        rc = mfs_thread_start(&s->thread, "meta-shown", run, s);
    if (rc) {
        pthread_mutex_destroy(&s->mutex);
        free(s);
        return rc;
    }
    *shown = s;
    return 0;
}

void mfs_shown_destroy(struct mfs_shown *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->cond);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}
