/* Files that were shown to the kernel, which uses what it was told of them for some time (`life`,
 * ns) without asking: the timeouts of FUSE. The kernel is not told when one changes: a notice of
 * another client's change is answered when the kernel uses the old answer no more.
 *
 * The kernel begins to count when it takes the answer that shows them. That it has done so is known
 * from the next request on the same open directory or file; without one it is taken for granted
 * after TAKEN_LATEST. Any thread. */
#ifndef MFS_META_COHERENCE_SHOWN_H
#define MFS_META_COHERENCE_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mfs_shown;

int mfs_shown_create(struct mfs_shown **shown); /* 0 or -errno; starts a thread */
/* Calls at once what was to be called later. */
void mfs_shown_destroy(struct mfs_shown *s);

/* The file is going to be shown, by what is found out from now on. False: a client had to wait a
 * moment ago, so better not. */
bool mfs_shown_begin(struct mfs_shown *s, uint64_t ino, int64_t life);
/* The kernel has taken the answer with these files; life 0: they were not shown after all. Once for
 * each true. */
void mfs_shown_end(struct mfs_shown *s, const uint64_t *inos, size_t n, int64_t life);

/* Waits, some 1.1 s at most, until the kernel uses nothing more of what was shown with that number;
 * nothing new is shown meanwhile. */
void mfs_shown_wait(struct mfs_shown *s, uint64_t ino);
bool mfs_shown_is_over(struct mfs_shown *s, uint64_t ino); /* does it use nothing? */

/* Another client has changed the file; nothing from before it is known here any more. Calls fn(arg)
 * when the kernel does not use it either: before it returns, or later by a thread. False: ENOMEM,
 * it won't be called. */
bool mfs_shown_over(struct mfs_shown *s, uint64_t ino, void (*fn)(void *arg), void *arg);

#endif
