/* What the files of what is known of files share. */
#ifndef MFS_META_CACHE_FILECACHE_IMPL_H
#define MFS_META_CACHE_FILECACHE_IMPL_H

#include "base/hash.h"
#include "base/table.h"
#include "meta/cache/cache.h"

#define REVOKED 65536U

struct file {
    struct mfs_attr attr;
    int64_t learned, until, used;
    struct name *list; /* never empty outside of this file */
    UT_hash_handle hh;
};

struct name {
    struct file *file;
    struct dir *dir;
    int64_t until;
    struct name *prev, *next;         /* of the file's */
    struct name *dir_prev, *dir_next; /* of the directory's */
    UT_hash_handle hh;
    size_t key_len; /* of what follows */
    char key[];     /* the parent (8 bytes) and the name */
};

/* Of which names are known. */
struct dir {
    uint64_t ino;
    struct name *list; /* never empty outside of this file; the oldest first */
    UT_hash_handle hh;
};

struct mfs_filecache {
    pthread_mutex_t mutex;
    uint32_t most;      /* names; constant */
    struct name *names; /* under mutex, as is what follows */
    struct file *files;
    struct dir *dirs;
    /* Leases that are being given back, and those of which it is not known whether they are, by
     * hash of the ino: no answer counts meanwhile. */
    uint16_t giving[REVOKED], lost[REVOKED];
    /* When something last changed, by hash of the ino: no answer from before counts after it. */
    int64_t revoked[REVOKED];
};

static inline uint32_t mfs_filecache_slot(uint64_t ino)
{
    return (uint32_t)(mfs_hash64(&ino, sizeof ino, 0) % REVOKED);
}

/* With the mutex held. */
struct file *mfs_filecache_find(struct mfs_filecache *cache, uint64_t ino);
void mfs_filecache_drop(struct mfs_filecache *cache, struct file *f); /* with all its names */

#endif
