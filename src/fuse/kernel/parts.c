#include "fuse/kernel/parts.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proto/put.h"

#define FILES 128U /* of 64 KiB each, at most */

struct content {
    struct mfs_parts_of of;
    uint64_t used; /* the count of that time; 0: free */
    size_t len;
    char *bytes; /* NULL: free */
};

struct mfs_parts {
    pthread_mutex_t mutex; /* guards the rest; a leaf */
    uint64_t count;
    struct content content[FILES];
};

struct mfs_parts *mfs_parts_create(void)
{
    struct mfs_parts *p = calloc(1, sizeof *p);

    if (p != NULL)
        pthread_mutex_init(&p->mutex, NULL);
    return p;
}

void mfs_parts_destroy(struct mfs_parts *p)
{
    for (unsigned i = 0; p != NULL && i < FILES; i++)
        free(p->content[i].bytes);
    if (p != NULL)
        pthread_mutex_destroy(&p->mutex);
    free(p);
}

static struct content *find(struct mfs_parts *p, const struct mfs_parts_of *of)
{
    for (unsigned i = 0; i < FILES; i++) {
        struct content *c = &p->content[i];

        if (c->bytes != NULL && c->of.file == of->file && c->of.id == of->id &&
            c->of.uid == of->uid)
            return c;
    }
    return NULL;
}

/* A free one, as it was never used, or the one that was used the longest ago. NULL: no memory. */
static struct content *begin(struct mfs_parts *p, const struct mfs_parts_of *of)
{
    struct content *c = find(p, of);

    if (c == NULL) {
        c = &p->content[0];
        for (unsigned i = 1; i < FILES; i++)
            if (p->content[i].used < c->used)
                c = &p->content[i];
    }
    if (c->bytes == NULL)
        c->bytes = malloc(MFS_PUT_CONTENT);
    c->of = *of;
    c->len = 0;
    return c->bytes != NULL ? c : NULL;
}

int mfs_parts_add(struct mfs_parts *p, const struct mfs_parts_of *of, uint64_t at, const void *part,
                  size_t len)
{
    struct content *c;
    int rc = 0;

    pthread_mutex_lock(&p->mutex);
    c = at == 0 ? begin(p, of) : find(p, of);
    if (c == NULL)
        rc = at == 0 ? -ENOMEM : -EAGAIN;
    else if (c->len != at)
        rc = -EAGAIN;
    else if (len > MFS_PUT_CONTENT - c->len)
        rc = -EINVAL;
    if (rc == 0) {
        memcpy(c->bytes + c->len, part, len);
        c->len += len;
        c->used = ++p->count;
    }
    pthread_mutex_unlock(&p->mutex);
    return rc;
}

char *mfs_parts_take(struct mfs_parts *p, const struct mfs_parts_of *of, uint64_t len)
{
    char *bytes = NULL;
    struct content *c;

    pthread_mutex_lock(&p->mutex);
    c = find(p, of);
    if (c != NULL && c->len == len) {
        bytes = c->bytes;
        *c = (struct content){0};
    }
    pthread_mutex_unlock(&p->mutex);
    return bytes;
}

void mfs_parts_drop(struct mfs_parts *p, uint64_t file)
{
    pthread_mutex_lock(&p->mutex);
    for (unsigned i = 0; i < FILES; i++)
        if (p->content[i].bytes != NULL && p->content[i].of.file == file) {
            free(p->content[i].bytes);
            p->content[i] = (struct content){0};
        }
    pthread_mutex_unlock(&p->mutex);
}
