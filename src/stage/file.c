#include "stage/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ino.h"

#define PIECES_MOST (1U << 22) /* 256 TiB: what a server or a file full of holes claims to be */
#define STEP_OUT                                                                                   \
    ((size_t)128 << 10) /* bytes: what is read is still in the processor's cache when              \
                           it is written; to a mount each write is a request */

/* ---- the end --------------------------------------------------------------------------------- */

/* The item is left to the caller. */
static void drop(struct mfs_stage_file *f)
{
    if (f->to >= 0)
        close(f->to);
    if (f->claim >= 0)
        close(f->claim);
    f->source->close(f);
    mfs_stage_record_fini(&f->record);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

static void end(struct mfs_stage_file *f, bool done)
{
    struct mfs_stage_item *i = f->item;
    struct stat st = f->st;

    drop(f);
    mfs_stage_link_end(i, &st, done);
    mfs_stage_item_destroy(i);
}

static const char *explain(int code, bool source)
{
    switch (code) {
    case -ENODATA:
        return "became shorter while it was read: run the same again";
    case -ESTALE:
        return "changed while it was read: run the same again";
    case -EUCLEAN:
        return source ? "has not the checksum that the list has for it"
                      : "what was read back is not what was written";
    case -EALREADY:
        return "another call writes it, too: repeat this one when that has ended";
    default:
        return strerror(-code);
    }
}

/* A call that was stopped fails as a whole, not for each file. */
static void tell(struct mfs_stage_file *f, bool source, int code, const struct mfs_err *err)
{
    struct mfs_stage_item *i = f->item;

    if (code == -EINTR)
        return;
    mfs_stage_fail(i->dir->stage, i->dir, source ? i->from : i->to, !source, code, "%s",
                   err && err->code ? err->msg : explain(code, source));
}

static int finish(struct mfs_stage_file *f)
{
    const struct mfs_stage_dir *d = f->item->dir;
    int rc = f->source->unchanged(f);

    if (rc) {
        tell(f, true, rc, NULL);
        return rc;
    }
    if (f->record.n)
        mfs_stage_record_drop(f->to);
    rc = f->source->keep(f);
    if (!rc && f->record.n && fsync(f->to) < 0)
        rc = -errno;
    /* Outside of deployments a lock may be this node's alone, or none at all. */
    if (!rc && !d->stage->nparts && !mfs_stage_is_there(d->to, f->temporary, f->to))
        rc = -EALREADY;
    if (d->stage->plan->shared) { /* it is ours until it has its name */
        f->claim = dup(f->to);
        if (f->claim < 0 && !rc)
            rc = -errno;
    }
    if (close(f->to) < 0 && !rc)
        rc = -errno;
    f->to = -1;
    if (!rc && renameat(d->to, f->temporary, d->to, f->item->to) < 0)
        rc = -errno;
    if (rc)
        tell(f, false, rc, NULL);
    return rc;
}

/* Pieces of a large file are there for a later run, unless they are of something that is gone, or
 * what an earlier run has left can't be gone on with: a stripe that was lost with its process takes
 * no part of one, and two pieces may have parts of it. */
static void conclude(struct mfs_stage_file *f)
{
    struct mfs_stage_dir *d = f->item->dir;
    int rc = f->rc;
    bool keeps;

    if (!rc)
        rc = finish(f);
    if (!rc)
        mfs_stage_tally_add(d->stage->tally, MFS_STAGE_FILES, 1);
    keeps = rc == -EALREADY || (f->record.n && rc != -ESTALE && rc != -ENODATA && rc != -EUCLEAN &&
                                rc != -ENOSPC && !(f->resumed && rc == -EIO));
    if (rc && !keeps)
        unlinkat(d->to, f->temporary, 0);
    end(f, !rc);
}

/* ---- content --------------------------------------------------------------------------------- */

/* Stripes that an earlier run has written may be lost, and are not written where they are zero:
 * they go first. */
static bool clear(struct mfs_stage_file *f, uint64_t at, uint64_t until)
{
    return !fallocate(f->to, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
                      (off_t)(until - at));
}

static int copy(struct mfs_stage_file *f, int from, uint64_t at, uint64_t until)
{
    struct mfs_stage *s = f->item->dir->stage;
    unsigned char sum[MFS_STAGE_SUM];
    struct mfs_stage_range r = {.step = s->nparts ? 0 : STEP_OUT,
                                .from = from,
                                .to = f->to,
                                .at = at,
                                .end = until,
                                .sparse = f->sparse && (!f->resumed || clear(f, at, until)),
                                .verify = s->plan->verify,
                                .stop = s->plan->stop,
                                .sum = f->item->has_sum ? sum : NULL};
    struct mfs_err err = {0};
    int rc = f->source->copy(f, &r, &err);

    mfs_stage_tally_add(s->tally, MFS_STAGE_BYTES, r.copied);
    if (!rc && f->item->has_sum && memcmp(sum, f->item->sum, sizeof sum) != 0) {
        rc = -EUCLEAN;
        r.reading = true;
    }
    if (rc) {
        int none = 0;

        if (atomic_compare_exchange_strong(&f->rc, &none, rc))
            tell(f, r.reading, rc, &err);
    }
    return rc;
}

/* Copies pieces of a file, one after another, until none is left. */
struct runner {
    struct mfs_stage_task task;
    struct mfs_stage_file *file;
    int from; /* the source, open for this one alone; -1: as the file has it */
};

/* So that it is certain that the target has it. For the time of an fsync the kernel locks the file,
 * and nobody could write: to a mount closing a descriptor brings the same, and locks nothing. */
static int store(const struct mfs_stage_file *f)
{
    int fd;

    if (!f->item->dir->stage->nparts)
        return fdatasync(f->to) < 0 ? -errno : 0;
    fd = dup(f->to);
    return fd < 0 || close(fd) < 0 ? -errno : 0;
}

/* What could not be stored is told to one call only: the one at the end may succeed. */
static void note(struct mfs_stage_file *f, uint32_t n)
{
    int rc = store(f), none = 0;

    if (rc) {
        if (atomic_compare_exchange_strong(&f->rc, &none, rc))
            tell(f, false, rc, NULL);
        return;
    }
    pthread_mutex_lock(&f->mutex);
    f->record.done[n] = 1;
    mfs_stage_record_save(&f->record, f->to);
    pthread_mutex_unlock(&f->mutex);
}

/* Has the target still what an earlier run has noted? Only a disk keeps what it once had. */
static bool holds(const struct mfs_stage_file *f, uint64_t at, uint64_t until)
{
    const struct mfs_stage *s = f->item->dir->stage;
    struct stat st;
    uint32_t step;
    char byte;

    if (s->plan->verify || !s->nparts)
        return !s->plan->verify;
    if (fstat(f->to, &st) < 0)
        return false;
    step = mfs_ino_stripe_size(st.st_ino, s->stripe_size);
    posix_fadvise(f->to, (off_t)at, (off_t)(until - at), POSIX_FADV_DONTNEED);
    for (; at < until; at += step)
        if (pread(f->to, &byte, 1, (off_t)at) != 1)
            return false;
    return true;
}

static void run_piece(struct mfs_stage_file *f, uint32_t n, int from)
{
    uint64_t size = (uint64_t)f->st.st_size, at = n * MFS_STAGE_PIECE,
             until = size - at < MFS_STAGE_PIECE ? size : at + MFS_STAGE_PIECE;
    bool noted; /* an earlier run has written it */

    pthread_mutex_lock(&f->mutex);
    noted = f->record.done[n];
    pthread_mutex_unlock(&f->mutex);
    if (noted && holds(f, at, until))
        mfs_stage_tally_add(f->item->dir->stage->tally, MFS_STAGE_SKIPPED_BYTES, until - at);
    else if (!copy(f, from, at, until) && (f->next < f->record.n || f->left > 1))
        note(f, n); /* or it is the last one: all of it gets its name at once */
}

/* The kernel, and the mount, read ahead for each open file by itself: one that several read at
 * different places would be read ahead for none of them. */
static int open_again(const struct mfs_stage_file *f)
{
    char path[32];
    int fd;

    if (f->from < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", f->from);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    mfs_stage_is_no_reading(fd); /* f->from is one */
    return fd;
}

static void run_pieces(struct mfs_stage_task *task)
{
    struct runner *r = (struct runner *)task;
    struct mfs_stage_file *f = r->file;
    uint32_t n;

    while (!f->rc && (n = f->next++) < f->record.n) {
        int none = 0; /* what has failed meanwhile is not forgotten */

        if (mfs_stage_ends(f->item->dir->stage))
            atomic_compare_exchange_strong(&f->rc, &none, -EINTR);
        else
            run_piece(f, n, r->from >= 0 ? r->from : f->from);
    }
    if (r->from >= 0)
        close(r->from);
    free(r);
    if (--f->left == 0)
        conclude(f);
}

static void add_pieces(struct mfs_stage_file *f)
{
    struct mfs_stage *s = f->item->dir->stage;
    uint32_t most =
        f->source->pieces && f->source->pieces < f->record.n ? f->source->pieces : f->record.n;

    f->left = 1;
    for (uint32_t n = 0; n < most && n < s->plan->threads; n++) {
        struct runner *r = malloc(sizeof *r);

        if (!r) {
            int none = 0;

            if (!n && atomic_compare_exchange_strong(&f->rc, &none, -ENOMEM))
                tell(f, false, -ENOMEM, NULL);
            break; /* fewer will do */
        }
        *r = (struct runner){.task = {.run = run_pieces, .queue = &f->item->dir->queue},
                             .file = f,
                             .from = open_again(f)};
        f->left++;
        mfs_stage_pool_add(s->pool, &r->task);
    }
    if (--f->left == 0)
        conclude(f);
}

/* ---- the temporary file ---------------------------------------------------------------------- */

/* Into a deployment what is large does not go through the kernel's pages: the copy and the memory
 * for it are saved, and writers of one file do not wait for each other. */
static int passes_pages(const struct mfs_stage_file *f)
{
    return f->record.n && f->item->dir->stage->nparts ? O_DIRECT : 0;
}

static int create(struct mfs_stage_file *f)
{
    const struct mfs_stage_dir *d = f->item->dir;
    bool ours = f->st.st_uid == d->stage->self.st_uid && f->st.st_gid == d->gid && !d->acl;
    int flags = (d->stage->plan->verify || f->item->has_sum ? O_RDWR : O_WRONLY) | O_CREAT |
                O_EXCL | O_CLOEXEC | passes_pages(f);

    f->created = f->st.st_mode & (ours ? 0777 : 0700);
    f->to = openat(d->to, f->temporary, flags, f->created);
    return f->to < 0 ? -errno : 0;
}

/* The unfinished copy of an earlier run. */
static bool resume(struct mfs_stage_file *f)
{
    const struct mfs_stage_dir *d = f->item->dir;

    if (!f->record.n)
        return false;
    f->to =
        openat(d->to, f->temporary, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | passes_pages(f));
    if (f->to >= 0 && mfs_stage_is_own(d->stage, f->to) &&
        mfs_stage_record_load(&f->record, f->to)) {
        f->created = (mode_t)-1; /* not known */
        f->resumed = true;
        return true;
    }
    if (f->to >= 0)
        close(f->to);
    f->to = -1;
    return false;
}

/* It may be what an earlier run has left, or, where several work at it, another process' own. */
static int open_shared(struct mfs_stage_file *f)
{
    const struct mfs_stage_dir *d = f->item->dir;
    int rc = create(f), flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | passes_pages(f);

    if (rc == -EEXIST) {
        f->created = (mode_t)-1;
        f->to = openat(d->to, f->temporary, flags);
        rc = f->to >= 0 ? 0 : errno == ENOENT ? -EALREADY : -errno;
    }
    if (!rc)
        rc = mfs_stage_claim(d->to, f->temporary, f->to);
    if (!rc && !mfs_stage_is_own(d->stage, f->to))
        rc = unlinkat(d->to, f->temporary, 0) < 0 ? -errno : -EALREADY;
    if (!rc && f->created == (mode_t)-1)
        f->resumed = f->record.n && mfs_stage_record_load(&f->record, f->to);
    if (!rc && f->created == (mode_t)-1 && !f->resumed && ftruncate(f->to, 0) < 0)
        rc = -errno;
    return rc;
}

static int open_own(struct mfs_stage_file *f)
{
    const struct mfs_stage_dir *d = f->item->dir;
    int rc = create(f);

    if (rc == -EEXIST && !resume(f))
        rc = unlinkat(d->to, f->temporary, 0) < 0 ? -errno : create(f);
    return rc == -EEXIST && f->to >= 0 ? 0 : rc;
}

static int open_temporary(struct mfs_stage_file *f)
{
    const struct mfs_stage_dir *d = f->item->dir;
    int rc;

    mfs_stage_temporary(d, f->item->to, f->temporary);
    rc = d->stage->plan->shared ? open_shared(f) : open_own(f);
    if (!rc && (f->record.n || f->sparse) && ftruncate(f->to, f->st.st_size) < 0) {
        rc = -errno;
        unlinkat(d->to, f->temporary, 0);
    }
    return rc;
}

static int plan_pieces(struct mfs_stage_file *f)
{
    uint64_t size = (uint64_t)f->st.st_size, n = (size + MFS_STAGE_PIECE - 1) / MFS_STAGE_PIECE;
    int rc;

    if (f->st.st_size < 0 || n > PIECES_MOST)
        return -EFBIG;
    if (f->whole || f->item->has_sum || n < 2)
        return 0;
    rc = mfs_stage_record_init(&f->record, (uint32_t)n);
    snprintf(f->record.of, sizeof f->record.of, "1 %" PRIu64 " %" PRIu64 " %lld.%09ld %" PRIx64,
             size, MFS_STAGE_PIECE, (long long)f->st.st_mtim.tv_sec, f->st.st_mtim.tv_nsec, f->tag);
    return rc;
}

/* ---- what is there already ------------------------------------------------------------------- */

static bool same_time(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int same_content(struct mfs_stage_file *f, int there)
{
    unsigned char sum[MFS_STAGE_SUM];
    int rc;

    if (!f->item->has_sum)
        return f->source->same(f, there);
    rc = mfs_stage_sum(there, 0, (uint64_t)f->st.st_size, sum);
    return rc ? rc : !memcmp(sum, f->item->sum, sizeof sum);
}

/* Mode and owner may have changed without the content. */
static bool is_to_be_mended(const struct mfs_stage_file *f, const struct stat *there)
{
    return f->source->mend && (there->st_mode != f->st.st_mode || there->st_uid != f->st.st_uid ||
                               there->st_gid != f->st.st_gid);
}

/* 1: the target has it; 0; or a negative errno of the target's. */
static int is_there(struct mfs_stage_file *f)
{
    const struct mfs_stage_dir *d = f->item->dir;
    bool compares = d->stage->plan->verify || f->item->has_sum;
    struct stat st;
    int fd, same = 1;

    if (d->fresh || fstatat(d->to, f->item->to, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode) || st.st_size != f->st.st_size || !same_time(&st, &f->st))
        return 0;
    if (!compares && !is_to_be_mended(f, &st))
        return 1;
    fd = openat(d->to, f->item->to, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    mfs_stage_is_no_reading(fd);
    if (compares)
        same = same_content(f, fd);
    if (same == 1 && is_to_be_mended(f, &st))
        f->source->mend(f, fd);
    close(fd);
    return same == 1;
}

/* Nothing of the source was copied, or it will be opened anew. */
static void is_not_read(struct mfs_stage_file *f)
{
    if (f->source->local)
        mfs_stage_is_no_reading(f->from);
}

static bool skip(struct mfs_stage_file *f)
{
    struct mfs_stage_tally *t = f->item->dir->stage->tally;
    int rc = is_there(f);

    if (!rc)
        return false;
    if (rc < 0) {
        tell(f, false, rc, NULL);
    } else {
        mfs_stage_tally_add(t, MFS_STAGE_SKIPPED, 1);
        mfs_stage_tally_add(t, MFS_STAGE_SKIPPED_BYTES, (uint64_t)f->st.st_size);
        mfs_stage_drop_left(f->item);
        is_not_read(f);
    }
    end(f, rc > 0);
    return true;
}

/* Small ones at once. */
static bool copy_small(struct mfs_stage_file *f)
{
    struct mfs_stage_tally *t = f->item->dir->stage->tally;
    int rc = mfs_stage_copy_small(f);

    if (rc == -EEXIST && skip(f)) /* by the same call on another node */
        return true;
    if (rc)
        return false;
    mfs_stage_tally_add(t, MFS_STAGE_BYTES, (uint64_t)f->st.st_size);
    mfs_stage_tally_add(t, MFS_STAGE_FILES, 1);
    end(f, true);
    return true;
}

void mfs_stage_file_begin(struct mfs_stage_file *f)
{
    int rc;

    f->to = f->claim = -1;
    f->record = (struct mfs_stage_record){0};
    f->rc = 0;
    f->next = 0;
    pthread_mutex_init(&f->mutex, NULL);
    if (skip(f) || copy_small(f))
        return;
    rc = plan_pieces(f);
    if (!rc)
        rc = open_temporary(f);
    if (!rc && f->item->dir->stage->plan->shared && is_there(f) == 1) {
        /* Another one has finished it between the look and the claim. */
        unlinkat(f->item->dir->to, f->temporary, 0);
        if (skip(f))
            return;
        rc = -EALREADY; /* and somebody has removed it */
    }
    if (rc == -EALREADY) {
        struct mfs_stage_item *i = f->item;
        const struct stat st = f->st;

        is_not_read(f);
        drop(f);
        mfs_stage_link_end(i, &st, false);
        mfs_stage_defer(i);
    } else if (rc) {
        tell(f, false, rc, NULL);
        end(f, false);
    } else if (f->record.n) {
        add_pieces(f);
    } else {
        copy(f, f->from, 0, (uint64_t)f->st.st_size);
        conclude(f);
    }
}
