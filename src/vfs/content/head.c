#include "vfs/content/head.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_MAX (64U << 10) /* of one file */

static bool anything_dirty(struct mfs_vnode *v)
{
    struct mfs_dirty *d = atomic_load(&v->dirty);

    return d != NULL && mfs_dirty_any(d);
}

void mfs_file_prepare_head(struct mfs_file *f, struct mfs_head *head)
{
    struct mfs_vnode *v = f->node;

    *head = (struct mfs_head){.len = -1};
    if (!mfs_flags_read(f->flags) || mfs_pages_known(v->vfs->pages, v->ino) ||
        atomic_load(&v->vfs->head_bytes) > v->vfs->opts.heads || anything_dirty(v))
        return;
    f->head_generation = atomic_load(&v->generation);
    head->buf = malloc(HEAD_MAX);
    if (head->buf != NULL)
        head->cap = HEAD_MAX < v->vfs->stripe_size ? HEAD_MAX : v->vfs->stripe_size;
}

void mfs_file_keep_head(struct mfs_file *f, const struct mfs_head *head)
{
    if (head->len <= 0) {
        free(head->buf);
        return;
    }
    f->head_len = (size_t)head->len;
    f->head = realloc(head->buf, f->head_len);
    if (f->head == NULL)
        f->head = head->buf;
    atomic_fetch_add(&f->node->vfs->head_bytes, f->head_len);
}

/* With node->lock held. */
static void drop(struct mfs_file *f)
{
    if (f->head == NULL)
        return;
    atomic_fetch_sub(&f->node->vfs->head_bytes, f->head_len);
    free(f->head);
    f->head = NULL;
}

void mfs_file_drop_head(struct mfs_file *f)
{
    pthread_mutex_lock(&f->node->lock);
    drop(f);
    pthread_mutex_unlock(&f->node->lock);
}

static void copy_out(const struct mfs_file *f, uint64_t off, size_t len, char *buf)
{
    size_t stored = off < f->head_len ? f->head_len - (size_t)off : 0;

    if (stored > len)
        stored = len;
    if (stored > 0)
        memcpy(buf, (const char *)f->head + off, stored);
    memset(buf + stored, 0, len - stored);
}

bool mfs_file_read_head(struct mfs_file *f, uint64_t off, size_t len, uint64_t size, void *buf)
{
    struct mfs_vnode *v = f->node;
    bool served = false;

    if (size > HEAD_MAX || size > v->vfs->stripe_size)
        return false;
    pthread_mutex_lock(&v->lock);
    if (f->head != NULL && f->head_generation != atomic_load(&v->generation))
        drop(f);
    if (f->head != NULL) {
        copy_out(f, off, len, buf);
        served = true;
        if (off + len >= size)
            drop(f); /* read to its end: the reader has it now */
    }
    pthread_mutex_unlock(&v->lock);
    return served;
}
