#include "meta/cache/dirnames.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "meta/cache/name_key.h"

#define MOST 4096U

struct dirname {
    uint64_t ino;
    int64_t asked;
    UT_hash_handle hh;
    size_t len;
    char key[]; /* the parent's inode, and the name */
};

struct mfs_dirnames {
    pthread_mutex_t mutex;
    struct dirname *table; /* under mutex; in the order of its age */
};

struct mfs_dirnames *mfs_dirnames_create(void)
{
    struct mfs_dirnames *d = calloc(1, sizeof *d);

    if (d)
        pthread_mutex_init(&d->mutex, NULL);
    return d;
}

static void drop(struct mfs_dirnames *d, struct dirname *n)
{
    if (!n)
        return;
    HASH_DEL(d->table, n);
    free(n);
}

void mfs_dirnames_destroy(struct mfs_dirnames *d)
{
    if (!d)
        return;
    while (d->table)
        drop(d, d->table);
    pthread_mutex_destroy(&d->mutex);
    free(d);
}

void mfs_dirnames_put(struct mfs_dirnames *d, uint64_t parent, const char *name, uint64_t ino,
                      int64_t asked)
{
    char key[MFS_NAME_KEY_MAX];
    size_t len = mfs_name_key(key, parent, name);
    struct dirname *n = malloc(sizeof *n + len), *old;

    if (!n)
        return;
    n->ino = ino;
    n->asked = asked;
    n->len = len;
    memcpy(n->key, key, len);
    pthread_mutex_lock(&d->mutex);
    HASH_FIND(hh, d->table, key, len, old);
    drop(d, old);
    if (HASH_COUNT(d->table) >= MOST)
        drop(d, d->table);
    HASH_ADD_KEYPTR(hh, d->table, n->key, n->len, n);
    if (!n->hh.tbl)
        free(n);
    pthread_mutex_unlock(&d->mutex);
}

bool mfs_dirnames_find(struct mfs_dirnames *d, uint64_t parent, const char *name, uint64_t *ino,
                       int64_t *asked)
{
    char key[MFS_NAME_KEY_MAX];
    size_t len = mfs_name_key(key, parent, name);
    struct dirname *n;

    pthread_mutex_lock(&d->mutex);
    HASH_FIND(hh, d->table, key, len, n);
    if (n) {
        *ino = n->ino;
        *asked = n->asked;
    }
    pthread_mutex_unlock(&d->mutex);
    return n != NULL;
}
