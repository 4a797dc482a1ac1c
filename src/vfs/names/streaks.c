#include "vfs/names/streaks.h"

#include <limits.h>

#include "base/clock.h"

#define FIRST     4U            /* files */
#define PER_FILE  64            /* names that may be listed for each file that was asked for */
#define PAUSE     (5 * MFS_SEC) /* then a streak is over */
#define VAIN_MOST 8U

static struct mfs_streak *find(struct mfs_streaks *s, uint64_t dir)
{
    for (size_t i = 0; i < MFS_STREAKS; i++) {
        if (s->of[i].at != 0 && s->of[i].dir == dir)
            return &s->of[i];
    }
    return NULL;
}

static struct mfs_streak *oldest(struct mfs_streaks *s)
{
    struct mfs_streak *o = &s->of[0];

    for (size_t i = 1; i < MFS_STREAKS; i++)
        o = s->of[i].at < o->at ? &s->of[i] : o;
    return o;
}

void mfs_streaks_found(struct mfs_streaks *s, uint64_t dir, int64_t now)
{
    struct mfs_streak *k = find(s, dir);

    if (k == NULL) {
        k = oldest(s);
        *k = (struct mfs_streak){.dir = dir, .need = FIRST};
    } else if (now - k->at > PAUSE && !k->busy) {
        k->found = 0;
        k->need = FIRST;
    }
    k->at = now;
    k->found++;
}

bool mfs_streaks_due(struct mfs_streaks *s, uint64_t dir)
{
    struct mfs_streak *k = find(s, dir);

    if (k == NULL || k->busy || k->found < k->need)
        return false;
    k->busy = true;
    return true;
}

static unsigned needed(const struct mfs_streak *k, int64_t names)
{
    uint64_t files = (uint64_t)names / PER_FILE;

    files = (files < FIRST ? FIRST : files) << k->vain;
    return files < UINT_MAX ? (unsigned)files : UINT_MAX;
}

bool mfs_streaks_sized(struct mfs_streaks *s, uint64_t dir, int64_t names, size_t most)
{
    struct mfs_streak *k = find(s, dir);

    if (k == NULL)
        return false;
    if (names < 0 || (uint64_t)names > most) {
        mfs_streaks_failed(s, dir);
        return false;
    }
    k->need = needed(k, names);
    k->busy = k->found >= k->need;
    return k->busy;
}

void mfs_streaks_failed(struct mfs_streaks *s, uint64_t dir)
{
    struct mfs_streak *k = find(s, dir);

    if (k == NULL)
        return;
    k->need = UINT_MAX;
    k->busy = false;
}

void mfs_streaks_listed(struct mfs_streaks *s, uint64_t dir, int64_t saved)
{
    struct mfs_streak *k = find(s, dir);

    if (k == NULL)
        return;
    if (saved >= (int64_t)k->need)
        k->vain = 0;
    else if (saved >= 0 && k->vain < VAIN_MOST)
        k->vain++;
    k->busy = false;
    k->found = 0;
}
