/* Threads tell when they wait for other threads, processes or the clock. A pool of threads that
 * lets only so many work at once can have another one work meanwhile. */
#ifndef MFS_BASE_WAITS_H
#define MFS_BASE_WAITS_H

struct mfs_waits {
    void (*begin)(void *arg);
    void (*end)(void *arg);
    void *arg;
};

/* From now on each wait of the calling thread is told to `w`, which must stay; NULL: no more. */
void mfs_waits_tell(const struct mfs_waits *w);

/* To be called around what may wait; in pairs, which may be nested: only the outermost is told. By
 * any thread. `begin` and `end` are called with whatever locks the caller holds. errno stays. */
void mfs_waits_begin(void);
void mfs_waits_end(void);

#endif
