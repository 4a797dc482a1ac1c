/* What processes have left that died or are stopped, where several copy at a time. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/table.h"
#include "base/text.h"
#include "stage/impl.h"

/* ---- unfinished copies ----------------------------------------------------------------------- */

/* Is it an unfinished copy of this call, and no lock? */
static bool is_temporary(const struct mfs_stage *s, const char *name)
{
    char begin[MFS_STAGE_TEMPORARY_MAX];
    int len = snprintf(begin, sizeof begin, MFS_STAGE_TEMPORARY "%016" PRIx64 ".", s->id);

    return !strncmp(name, begin, (size_t)len) && strspn(name + len, "0123456789abcdef") == 16 &&
           !name[len + 16];
}

/* A file is another process' as long as that has it locked; all else only one process makes, which
 * is this one. */
static void remove_dead(const struct mfs_stage *s, int dir, const char *name)
{
    struct stat st;
    int fd;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != s->self.st_uid)
        return;
    if (!S_ISREG(st.st_mode) || st.st_nlink > 1) {
        unlinkat(dir, name, 0);
        return;
    }
    fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!mfs_stage_claim(dir, name, fd) && mfs_stage_is_own(s, fd))
        unlinkat(dir, name, 0);
    close(fd);
}

/* The directory has its attributes by now, and keeps them. */
static void begin_change(int dir, const struct stat *st)
{
    if ((st->st_mode & S_IRWXU) != S_IRWXU)
        fchmod(dir, (st->st_mode & 07777) | S_IRWXU);
}

static void end_change(int dir, const struct stat *st)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};

    if ((st->st_mode & S_IRWXU) != S_IRWXU)
        fchmod(dir, st->st_mode & 07777);
    futimens(dir, times);
}

struct look {
    const struct mfs_stage *stage;
    int dir;
    const struct stat *st;
    bool changes;
};

static bool look_at(void *arg, const struct dirent *e)
{
    struct look *l = arg;

    if (!is_temporary(l->stage, e->d_name))
        return true;
    if (!l->changes)
        begin_change(l->dir, l->st);
    l->changes = true;
    remove_dead(l->stage, l->dir, e->d_name);
    return true;
}

static void look_through(const struct mfs_stage *s, int dir, const struct stat *st)
{
    struct look l = {s, dir, st, false};

    mfs_stage_each_name(dir, look_at, &l);
    if (l.changes)
        end_change(dir, st);
}

/* ---- directories ----------------------------------------------------------------------------- */

/* Once each, and when no task runs: what two sources have in one directory is made through two
 * descriptors of it, of which neither knows when the other one's is done. */
struct remains_dir {
    struct mfs_stage_inode key;
    char *path;
    UT_hash_handle hh;
};

struct mfs_stage_remains {
    pthread_mutex_t mutex; /* guards the table */
    struct remains_dir *table;
};

struct mfs_stage_remains *mfs_stage_remains_create(void)
{
    struct mfs_stage_remains *r = calloc(1, sizeof *r);

    if (r)
        pthread_mutex_init(&r->mutex, NULL);
    return r;
}

static void dir_free(struct remains_dir *d)
{
    free(d->path);
    free(d);
}

void mfs_stage_remains_destroy(struct mfs_stage_remains *r)
{
    struct remains_dir *d, *next;

    if (!r)
        return;
    HASH_ITER(hh, r->table, d, next)
    {
        HASH_DEL(r->table, d);
        dir_free(d);
    }
    pthread_mutex_destroy(&r->mutex);
    free(r);
}

/* With the mutex held. Without memory it is left as it is. */
static void add(struct mfs_stage_remains *r, const struct mfs_stage_inode *key, const char *path)
{
    struct remains_dir *d = calloc(1, sizeof *d);

    if (!d)
        return;
    d->key = *key;
    d->path = strdup(path);
    if (d->path)
        HASH_ADD(hh, r->table, key, sizeof d->key, d);
    if (!d->hh.tbl)
        dir_free(d);
}

void mfs_stage_remains_note(const struct mfs_stage_dir *d)
{
    struct mfs_stage_remains *r = d->stage->remains;
    struct mfs_stage_inode key;
    struct remains_dir *known;
    char path[PATH_MAX];

    if (!d->stage->plan->shared)
        return;
    mfs_stage_inode_init(&key, d->to_dev, d->to_ino);
    mfs_stage_path(d, NULL, true, path, sizeof path);
    pthread_mutex_lock(&r->mutex);
    HASH_FIND(hh, r->table, &key, sizeof key, known);
    if (!known)
        add(r, &key, path);
    pthread_mutex_unlock(&r->mutex);
}

/* The path may lead elsewhere by now. */
static void look_into(const struct mfs_stage *s, const struct remains_dir *d)
{
    int dir = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (dir < 0)
        return;
    if (!fstat(dir, &st) && st.st_dev == d->key.dev && st.st_ino == d->key.ino)
        look_through(s, dir, &st);
    close(dir);
}

void mfs_stage_remove_remains(struct mfs_stage *s, const struct mfs_stage_dir *top)
{
    struct remains_dir *d, *next;
    struct stat st;

    if (!s->plan->shared || mfs_stage_ends(s) || mfs_stage_tally_failed(s->tally) ||
        !mfs_stage_leads(s))
        return;
    if (!fstat(top->to, &st))
        look_through(s, top->to, &st);
    HASH_ITER(hh, s->remains->table, d, next)
    {
        look_into(s, d);
    }
}

/* ---- what others are at ---------------------------------------------------------------------- */

#define LOOK_EACH (1 * MFS_SEC)
#define QUIET     (30 * MFS_SEC)
#define LOOK_MOST 1000 /* files at a time */

/* It differs when one of those that wait is another one, or when what it waits for has changed. */
static uint64_t look(const struct mfs_stage_item *i)
{
    char name[MFS_STAGE_TEMPORARY_MAX];
    uint64_t hash = mfs_hash64(i->to, strlen(i->to), i->dir->to_ino);
    struct stat st;

    mfs_stage_temporary(i->dir, i->to, name);
    if (fstatat(i->dir->to, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return hash;
    hash = mfs_hash64(&st.st_size, sizeof st.st_size, hash + st.st_ino);
    hash = mfs_hash64(&st.st_blocks, sizeof st.st_blocks, hash);
    hash = mfs_hash64(&st.st_mtim, sizeof st.st_mtim, hash);
    return mfs_hash64(&st.st_ctim, sizeof st.st_ctim, hash);
}

static void tell(const struct mfs_stage *s)
{
    char path[PATH_MAX], plain[PATH_MAX];

    mfs_stage_path(s->deferred->dir, s->deferred->to, true, path, sizeof path);
    mfs_text_plain(plain, sizeof plain, path);
    mfs_stage_tally_say(s->tally,
                        "%s: another process has begun it, and has not gone on for 30 s, but has "
                        "not died: is it stopped, or does its mount hang? It is waited for\n",
                        plain);
}

void mfs_stage_watch_others(const struct mfs_stage *s, struct mfs_stage_others *o)
{
    int64_t now = mfs_clock_mono();
    uint64_t sum = 0;
    uint32_t n = 0;

    if (!s->deferred || now - o->looked < LOOK_EACH)
        return;
    o->looked = now;
    for (const struct mfs_stage_item *i = s->deferred; i && n < LOOK_MOST; i = i->next, n++)
        sum += look(i); /* in any order */
    if (sum != o->sum) {
        o->sum = sum;
        o->since = now;
        o->told = false;
    } else if (!o->told && now - o->since >= QUIET) {
        o->told = true;
        tell(s);
    }
}
