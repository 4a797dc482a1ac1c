/* What processes have left that died or are stopped, where several copy at a time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
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
static void remove_dead(const struct mfs_stage_dir *d, const char *name)
{
    struct stat st;
    int fd;

    if (fstatat(d->to, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != d->stage->self.st_uid)
        return;
    if (!S_ISREG(st.st_mode) || st.st_nlink > 1) {
        unlinkat(d->to, name, 0);
        return;
    }
    fd = openat(d->to, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!mfs_stage_claim(d, name, fd) && mfs_stage_is_own(d->stage, fd))
        unlinkat(d->to, name, 0);
    close(fd);
}

void mfs_stage_remove_remains(const struct mfs_stage_dir *d)
{
    struct mfs_stage *s = d->stage;
    DIR *names;
    const struct dirent *e;
    int fd;

    if (!s->plan->shared || mfs_stage_ends(s) || mfs_stage_tally_failed(s->tally) ||
        !mfs_stage_leads(s))
        return;
    fd = openat(d->to, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    names = fd < 0 ? NULL : fdopendir(fd);
    if (!names && fd >= 0)
        close(fd);
    while (names && (e = readdir(names)))
        if (is_temporary(s, e->d_name))
            remove_dead(d, e->d_name);
    if (names)
        closedir(names);
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
