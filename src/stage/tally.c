#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/shown.h"
#include "base/text.h"
#include "base/threads/ticker.h"
#include "stage/impl.h"
#include "stage/remote/remote.h"

#define FAILURES_MOST 1000 /* that are kept for the result */
#define SHOW_EVERY    (250 * MFS_MSEC)

struct mfs_stage_tally {
    _Atomic uint64_t count[MFS_STAGE_COUNTS];
    _Atomic uint64_t files, bytes; /* expected */
    atomic_bool expected;
    int64_t began;
    struct mfs_ticker ticker;
    const struct mfs_stage_watch *watch; /* NULL: stderr */
    pthread_mutex_t mutex; /* guards what follows, calls of the watch, and the terminal's line */
    bool shown;
    uint64_t failed;
    uint32_t n;
    struct mfs_stage_failure *failure;
};

/* ---- progress -------------------------------------------------------------------------------- */

/* With the mutex held. */
static void wipe(struct mfs_stage_tally *t)
{
    if (t->shown)
        fputs("\r\033[K", stderr);
    t->shown = false;
}

static double seconds_of(const struct mfs_stage_tally *t)
{
    return (double)(mfs_clock_mono() - t->began) / (double)MFS_SEC;
}

static void show_left(uint64_t done, uint64_t all, double seconds)
{
    double left = done ? seconds * (double)(all - done) / (double)done : 0;

    if (left >= 3600)
        fprintf(stderr, ", %.0f h %.0f min left", left / 3600,
                (left / 60) - 60 * (int)(left / 3600));
    else if (left >= 100)
        fprintf(stderr, ", %.0f min left", left / 60);
    else
        fprintf(stderr, ", %.0f s left", left);
}

static void show(void *arg)
{
    struct mfs_stage_tally *t = arg;
    uint64_t bytes = t->count[MFS_STAGE_BYTES] + t->count[MFS_STAGE_SKIPPED_BYTES],
             files = t->count[MFS_STAGE_FILES] + t->count[MFS_STAGE_SKIPPED], all_bytes = t->bytes,
             all_files = t->files;
    double seconds = seconds_of(t);

    pthread_mutex_lock(&t->mutex);
    wipe(t);
    t->shown = true;
    fprintf(stderr, "%" PRIu64 " of %" PRIu64 " files, %s of %s%s, %s/s, %.0f files/s", files,
            all_files, MFS_TEXT_BYTES(bytes), MFS_TEXT_BYTES(all_bytes),
            t->expected ? "" : " and more",
            MFS_TEXT_BYTES((uint64_t)((double)t->count[MFS_STAGE_BYTES] / seconds)),
            (double)t->count[MFS_STAGE_FILES] / seconds);
    /* Many small files take time by their number, large ones by their bytes. */
    if (t->expected && all_files * 65536 > all_bytes && files <= all_files)
        show_left(files, all_files, seconds);
    else if (t->expected && bytes <= all_bytes)
        show_left(bytes, all_bytes, seconds);
    fflush(stderr);
    pthread_mutex_unlock(&t->mutex);
}

static void count(const struct mfs_stage_tally *t, struct mfs_stage_counts *c)
{
    *c = (struct mfs_stage_counts){.files = t->count[MFS_STAGE_FILES],
                                   .directories = t->count[MFS_STAGE_DIRECTORIES],
                                   .others = t->count[MFS_STAGE_OTHERS],
                                   .bytes = t->count[MFS_STAGE_BYTES],
                                   .skipped = t->count[MFS_STAGE_SKIPPED],
                                   .skipped_bytes = t->count[MFS_STAGE_SKIPPED_BYTES],
                                   .failed = t->failed,
                                   .found = t->count[MFS_STAGE_FOUND],
                                   .left_out = t->count[MFS_STAGE_LEFT_OUT],
                                   .all_files = t->files,
                                   .all_bytes = t->bytes,
                                   .all = t->expected};
}

static void tell(void *arg)
{
    struct mfs_stage_tally *t = arg;
    struct mfs_stage_counts c;

    pthread_mutex_lock(&t->mutex);
    count(t, &c);
    t->watch->counts(t->watch->arg, &c);
    pthread_mutex_unlock(&t->mutex);
}

/* ---- counts ---------------------------------------------------------------------------------- */

struct mfs_stage_tally *mfs_stage_tally_create(bool progress, const struct mfs_stage_watch *watch)
{
    struct mfs_stage_tally *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    pthread_mutex_init(&t->mutex, NULL);
    t->began = mfs_clock_mono();
    t->watch = watch;
    if (progress || watch) /* or there is none */
        mfs_ticker_start(&t->ticker, "progress", SHOW_EVERY, watch ? tell : show, t);
    return t;
}

void mfs_stage_tally_destroy(struct mfs_stage_tally *t)
{
    if (!t)
        return;
    mfs_ticker_stop(&t->ticker);
    wipe(t);
    for (uint32_t i = 0; i < t->n; i++) {
        free(t->failure[i].path);
        free(t->failure[i].why);
    }
    free(t->failure);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

void mfs_stage_tally_add(struct mfs_stage_tally *t, enum mfs_stage_count what, uint64_t n)
{
    t->count[what] += n;
}

void mfs_stage_tally_expect(struct mfs_stage_tally *t, uint64_t files, uint64_t bytes)
{
    t->files += files;
    t->bytes += bytes;
}

void mfs_stage_tally_expected(struct mfs_stage_tally *t)
{
    t->expected = true;
}

void mfs_stage_tally_set(struct mfs_stage_tally *t, const struct mfs_stage_counts *c)
{
    t->count[MFS_STAGE_FILES] = c->files;
    t->count[MFS_STAGE_DIRECTORIES] = c->directories;
    t->count[MFS_STAGE_OTHERS] = c->others;
    t->count[MFS_STAGE_BYTES] = c->bytes;
    t->count[MFS_STAGE_SKIPPED] = c->skipped;
    t->count[MFS_STAGE_SKIPPED_BYTES] = c->skipped_bytes;
    t->count[MFS_STAGE_LEFT_OUT] = c->left_out;
    t->files = c->all_files;
    t->bytes = c->all_bytes;
    t->expected = c->all;
}

void mfs_stage_tally_result(struct mfs_stage_tally *t, struct mfs_stage_result *r)
{
    mfs_ticker_stop(&t->ticker);
    if (t->watch)
        tell(t);
    pthread_mutex_lock(&t->mutex);
    wipe(t);
    *r = (struct mfs_stage_result){
        .seconds = seconds_of(t), .nfailures = t->n, .failure = t->failure};
    count(t, &r->counts);
    t->failure = NULL;
    t->n = 0;
    pthread_mutex_unlock(&t->mutex);
}

void mfs_stage_result_fini(struct mfs_stage_result *r)
{
    for (uint32_t i = 0; i < r->nfailures; i++) {
        free(r->failure[i].path);
        free(r->failure[i].why);
    }
    free(r->failure);
    for (uint32_t i = 0; i < r->nparts; i++)
        free(r->part[i].node);
    free(r->part);
    *r = (struct mfs_stage_result){0};
}

/* ---- failures -------------------------------------------------------------------------------- */

/* With the mutex held. Without memory the line on stderr must do. */
static void keep(struct mfs_stage_tally *t, const char *path, int code, const char *why)
{
    struct mfs_stage_failure *longer;

    if (t->n == FAILURES_MOST)
        return;
    longer = realloc(t->failure, (t->n + 1) * sizeof *longer);
    if (!longer)
        return;
    t->failure = longer;
    longer[t->n] = (struct mfs_stage_failure){strdup(path), code, strdup(why)};
    if (longer[t->n].path && longer[t->n].why) {
        t->n++;
        return;
    }
    free(longer[t->n].path);
    free(longer[t->n].why);
}

/* A password, and a query, which may be a signature, are not for logs. */
static void hide(char *url)
{
    char *host = strstr(url, "://") + 3, *end = host + strcspn(host, "/?#");
    char *at = memrchr(host, '@', (size_t)(end - host)), *query;

    if (at)
        memmove(host, at + 1, strlen(at + 1) + 1);
    query = strchr(host, '?');
    if (query)
        query[1] = '\0';
}

void mfs_stage_fail(struct mfs_stage *s, const struct mfs_stage_dir *d, const char *name,
                    bool target, int code, const char *fmt, ...)
{
    struct mfs_stage_tally *t = s->tally;
    char path[2 * PATH_MAX], plain[2 * PATH_MAX], why[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    mfs_stage_path(d, name, target, path, sizeof path);
    if (mfs_stage_is_url(path) && strncmp(path, "s3:", 3) != 0)
        hide(path);
    mfs_text_plain(plain, sizeof plain, path);
    if (target && (code == -ENOSPC || code == -EDQUOT))
        s->full = true;
    pthread_mutex_lock(&t->mutex);
    t->failed++;
    wipe(t);
    if (t->watch)
        t->watch->failed(t->watch->arg, path, code, why);
    else
        fprintf(stderr, "%s: %s\n", plain, why);
    keep(t, path, code, why);
    pthread_mutex_unlock(&t->mutex);
}

uint64_t mfs_stage_tally_failed(struct mfs_stage_tally *t)
{
    uint64_t failed;

    pthread_mutex_lock(&t->mutex);
    failed = t->failed;
    pthread_mutex_unlock(&t->mutex);
    return failed;
}

void mfs_stage_tally_say(struct mfs_stage_tally *t, const char *fmt, ...)
{
    va_list ap;

    pthread_mutex_lock(&t->mutex);
    wipe(t);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    pthread_mutex_unlock(&t->mutex);
}

bool mfs_stage_ends(const struct mfs_stage *s)
{
    return s->full || *s->plan->stop;
}
