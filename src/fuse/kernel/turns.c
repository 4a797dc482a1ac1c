#include "fuse/kernel/turns.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

struct kept {
    struct kept *prev, *next;
    size_t len;
    char request[];
};

struct mfs_turns {
    pthread_mutex_t lock; /* guards what follows; a leaf */
    unsigned taken, most;
    struct kept *list; /* empty, as long as not all are taken */
};

struct mfs_turns *mfs_turns_create(unsigned most)
{
    struct mfs_turns *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    t->most = most;
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void mfs_turns_destroy(struct mfs_turns *t)
{
    struct kept *k, *next;

    if (t == NULL)
        return;
    DL_FOREACH_SAFE(t->list, k, next)
    free(k);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* Without memory for it, it has its turn as well; lock held. */
static bool keep(struct mfs_turns *t, const char *request, size_t len)
{
    struct kept *k = malloc(sizeof *k + len);

    if (k == NULL)
        return false;
    k->len = len;
    memcpy(k->request, request, len);
    DL_APPEND(t->list, k);
    return true;
}

bool mfs_turns_take(struct mfs_turns *t, const char *request, size_t len)
{
    bool kept;

    pthread_mutex_lock(&t->lock);
    kept = t->taken >= t->most && keep(t, request, len);
    t->taken += !kept;
    pthread_mutex_unlock(&t->lock);
    return !kept;
}

size_t mfs_turns_next(struct mfs_turns *t, char *request)
{
    struct kept *k;
    size_t len = 0;

    pthread_mutex_lock(&t->lock);
    k = t->list;
    if (k != NULL)
        DL_DELETE(t->list, k);
    else
        t->taken--;
    pthread_mutex_unlock(&t->lock);
    if (k != NULL) {
        len = k->len;
        memcpy(request, k->request, len);
    }
    free(k);
    return len;
}
