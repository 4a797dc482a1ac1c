/* Directories in which a program looks at one file after the other without having listed them: when
 * it pays to list them for it (vfs/names/listed.h). A listing costs about as much for 64 names as
 * one question for one of them does, so that many files have to be asked for first; and more if the
 * last listing has saved nothing. Does not lock. */
#ifndef MFS_VFS_NAMES_STREAKS_H
#define MFS_VFS_NAMES_STREAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MFS_STREAKS 16

/* All zeros: none. */
struct mfs_streaks {
    struct mfs_streak {
        uint64_t dir;
        int64_t at;     /* mono: a file was asked for last; 0: the slot is free */
        unsigned found; /* files that had to be asked for, since the last listing */
        unsigned need;  /* so many, and it is listed */
        unsigned vain;  /* listings in sequence that have saved less than they cost */
        bool busy;      /* a thread is about to list it */
    } of[MFS_STREAKS];
};

/* A partition was asked for a file in the directory, at mono time `now`, and had it. */
void mfs_streaks_found(struct mfs_streaks *s, uint64_t dir, int64_t now);

/* Have enough been found to ask how large it is? Then mfs_streaks_sized has to follow. */
bool mfs_streaks_due(struct mfs_streaks *s, uint64_t dir);

/* It has about so many names, of at most `most` that may be listed; -errno: it is not known. True:
 * it is to be listed, and then mfs_streaks_listed has to follow. */
bool mfs_streaks_sized(struct mfs_streaks *s, uint64_t dir, int64_t names, size_t most);

/* It can't be, now: not again before the streak is over. */
void mfs_streaks_failed(struct mfs_streaks *s, uint64_t dir);

/* It was listed. `saved`: questions that the listing before it has saved, if there
 * was one; -1: there was none. */
void mfs_streaks_listed(struct mfs_streaks *s, uint64_t dir, int64_t saved);

#endif
