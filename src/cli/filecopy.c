#include "cli/filecopy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/meeting.h"

/* What each chunk begins with, so that a reader knows whether it has got the right one. */
struct stamp {
    uint32_t rank, worker;
    uint64_t offset;
};

struct worker {
    const struct mfs_filecopy *task;
    int (*does)(const struct worker *w, const char *path, char *chunk);
    pthread_t thread;
    uint32_t rank, number; /* of the node that has written the file, and of its worker */
    int rc;
};

static int path_of(const struct worker *w, char *path, size_t size)
{
    return mfs_text_format(path, size, "%s/file-%u-%u", w->task->dir, w->rank, w->number);
}

static uint64_t chunk_at(const struct worker *w, uint64_t at)
{
    uint64_t left = w->task->file - at;

    return left < w->task->chunk ? left : w->task->chunk;
}

/* -EUCLEAN: the file ends too early. */
static int read_whole(int fd, char *bytes, uint64_t n)
{
    while (n > 0) {
        ssize_t done = read(fd, bytes, n);

        if (done < 0 && errno != EINTR)
            return -errno;
        if (done == 0)
            return -EUCLEAN;
        bytes += done > 0 ? done : 0;
        n -= done > 0 ? (uint64_t)done : 0;
    }
    return 0;
}

static int write_chunks(const struct worker *w, int fd, char *chunk)
{
    int rc = 0;

    memset(chunk, 'm', w->task->chunk);
    for (uint64_t at = 0; rc == 0 && at < w->task->file; at += w->task->chunk) {
        const struct stamp stamp = {w->rank, w->number, at};

        memcpy(chunk, &stamp, sizeof stamp);
        rc = mfs_file_write_all(fd, chunk, chunk_at(w, at));
    }
    return rc;
}

static int read_chunks(const struct worker *w, int fd, char *chunk)
{
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < w->task->file; at += w->task->chunk) {
        const struct stamp stamp = {w->rank, w->number, at};
        uint64_t n = chunk_at(w, at);

        rc = read_whole(fd, chunk, n);
        if (rc == 0 && memcmp(chunk, &stamp, n < sizeof stamp ? n : sizeof stamp) != 0)
            rc = -EUCLEAN;
    }
    return rc;
}

static int write_file(const struct worker *w, const char *path, char *chunk)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), rc;

    if (fd < 0)
        return -errno;
    rc = write_chunks(w, fd, chunk);
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    return rc;
}

/* The kernel's own pages of it are dropped first: a node alone reads what it has written itself. */
static int read_file(const struct worker *w, const char *path, char *chunk)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

    if (fd < 0)
        return -errno;
    rc = -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (rc == 0)
        rc = read_chunks(w, fd, chunk);
    close(fd);
    return rc;
}

static void *run(void *arg)
{
    struct worker *w = arg;
    char path[PATH_MAX], *chunk = malloc(w->task->chunk);

    w->rc = chunk == NULL ? -ENOMEM : path_of(w, path, sizeof path);
    if (w->rc == 0)
        w->rc = w->does(w, path, chunk);
    free(chunk);
    return NULL;
}

/* All workers of this node, on the files of the node `rank`; seconds that they took. */
static int all_do(const struct mfs_filecopy *f,
                  int (*what)(const struct worker *w, const char *path, char *chunk), unsigned rank,
                  double *seconds, struct mfs_err *err)
{
    struct worker *w = calloc(f->workers, sizeof *w);
    unsigned begun = 0;
    int64_t from = mfs_clock_mono();
    int rc = w == NULL ? -ENOMEM : 0;

    while (rc == 0 && begun < f->workers) {
        w[begun] = (struct worker){.task = f, .does = what, .rank = rank, .number = begun};
        rc = -pthread_create(&w[begun].thread, NULL, run, &w[begun]);
        begun += rc == 0;
    }
    for (unsigned i = 0; i < begun; i++) {
        pthread_join(w[i].thread, NULL);
        if (rc == 0)
            rc = w[i].rc;
    }
    free(w);
    *seconds = (double)(mfs_clock_mono() - from) / (double)MFS_SEC;
    if (rc == -EUCLEAN)
        return mfs_err_set(err, rc, "%s: what was read is not what was written", f->dir);
    return rc < 0 ? mfs_err_set(err, rc, "%s: %s", f->dir, strerror(-rc)) : 0;
}

static int copy(const struct mfs_filecopy *f, struct mfs_meeting *m,
                struct mfs_filecopy_rates *rates, struct mfs_err *err)
{
    double bytes = (double)f->file * f->workers * f->nodes, took = 0, longest = 0;
    unsigned next = (rates->rank + 1) % f->nodes;
    int rc = mfs_meeting_step(m, "begin", 0, &longest, err);

    if (rc == 0)
        rc = all_do(f, write_file, rates->rank, &took, err);
    if (rc == 0)
        rc = mfs_meeting_step(m, "written", took, &longest, err);
    if (rc == 0) {
        rates->write = bytes / longest;
        rc = all_do(f, read_file, next, &took, err);
    }
    if (rc == 0)
        rc = mfs_meeting_step(m, "read", took, &longest, err);
    if (rc == 0)
        rates->read = bytes / longest;
    return rc;
}

int mfs_filecopy_run(const struct mfs_filecopy *f, struct mfs_filecopy_rates *rates,
                     struct mfs_err *err)
{
    struct mfs_meeting *m;
    int rc = mfs_meeting_join(&m, f->dir, f->nodes, f->patience, err);

    if (rc < 0)
        return rc;
    *rates = (struct mfs_filecopy_rates){.rank = mfs_meeting_rank(m)};
    rc = copy(f, m, rates, err);
    mfs_meeting_leave(m, rc < 0 && rc != -ECANCELED ? err->msg : NULL);
    return rc;
}
