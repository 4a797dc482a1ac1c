/* What has several names in the sources has them in the target, too, as far as they are copied by
 * one call. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/table.h"
#include "stage/content.h"
#include "stage/impl.h"

struct links_entry {
    struct mfs_stage_inode key;
    char *to;                       /* its first name in the target; NULL: being copied */
    struct mfs_stage_item *waiting; /* other names, until it is known */
    UT_hash_handle hh;
};

struct mfs_stage_links {
    pthread_mutex_t mutex; /* guards the table */
    struct links_entry *table;
};

struct mfs_stage_links *mfs_stage_links_create(void)
{
    struct mfs_stage_links *l = calloc(1, sizeof *l);

    if (l)
        pthread_mutex_init(&l->mutex, NULL);
    return l;
}

void mfs_stage_links_destroy(struct mfs_stage_links *l)
{
    struct links_entry *e, *next;

    if (!l)
        return;
    HASH_ITER(hh, l->table, e, next)
    {
        HASH_DEL(l->table, e);
        free(e->to);
        free(e);
    }
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

static struct links_entry *find(struct mfs_stage_links *l, const struct stat *st)
{
    struct mfs_stage_inode key;
    struct links_entry *e;

    mfs_stage_inode_init(&key, st->st_dev, st->st_ino);
    HASH_FIND(hh, l->table, &key, sizeof key, e);
    return e;
}

/* -EEXIST: it is such a name already. */
static int look(const struct mfs_stage_item *i, const char *first)
{
    struct stat a, b;

    if (i->dir->fresh || fstatat(i->dir->to, i->to, &b, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISDIR(b.st_mode))
        return -EISDIR;
    if (lstat(first, &a) < 0)
        return -errno;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino ? -EEXIST : 0;
}

static int make(const struct mfs_stage_item *i, const char *first)
{
    char name[MFS_STAGE_TEMPORARY_MAX];
    int rc;

    mfs_stage_temporary(i->dir, i->to, name);
    rc = linkat(AT_FDCWD, first, i->dir->to, name, 0);
    if (rc < 0 && errno == EEXIST && !unlinkat(i->dir->to, name, 0))
        rc = linkat(AT_FDCWD, first, i->dir->to, name, 0);
    if (rc < 0)
        return -errno;
    if (renameat(i->dir->to, name, i->dir->to, i->to) < 0) {
        rc = -errno;
        unlinkat(i->dir->to, name, 0);
    }
    return rc;
}

/* A list may have a checksum for each name. */
static int check_sum(const struct mfs_stage_item *i, const char *first)
{
    unsigned char sum[MFS_STAGE_SUM];
    struct stat st;
    int fd = open(first, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), rc;

    if (fd < 0)
        return -errno;
    mfs_stage_is_no_reading(fd);
    rc = fstat(fd, &st) < 0 ? -errno : mfs_stage_sum(fd, 0, (uint64_t)st.st_size, sum);
    close(fd);
    return rc ? rc : memcmp(sum, i->sum, sizeof sum) != 0 ? -EUCLEAN : 0;
}

static void another_name(struct mfs_stage_item *i, const char *first)
{
    struct mfs_stage *s = i->dir->stage;
    int rc = i->has_sum ? check_sum(i, first) : 0;

    if (rc == -EUCLEAN) {
        mfs_stage_fail(s, i->dir, i->from, false, rc,
                       "has not the checksum that the list has for it");
        mfs_stage_item_destroy(i);
        return;
    }
    if (!rc)
        rc = look(i, first);
    if (!rc)
        rc = make(i, first);
    if (!rc)
        mfs_stage_tally_add(s->tally, MFS_STAGE_OTHERS, 1);
    else if (rc == -EEXIST)
        mfs_stage_drop_left(i);
    else
        mfs_stage_fail(s, i->dir, i->to, true, rc, "another name of %s: %s", first, strerror(-rc));
    mfs_stage_item_destroy(i);
}

bool mfs_stage_link_begin(struct mfs_stage_item *i, const struct stat *st)
{
    struct mfs_stage_links *l = i->dir->stage->links;
    struct links_entry *e;
    const char *first = NULL;

    if (st->st_nlink < 2)
        return true;
    pthread_mutex_lock(&l->mutex);
    e = find(l, st);
    if (!e) {
        e = calloc(1, sizeof *e);
        if (e) { /* or it becomes a file of its own */
            mfs_stage_inode_init(&e->key, st->st_dev, st->st_ino);
            HASH_ADD(hh, l->table, key, sizeof e->key, e);
            if (!e->hh.tbl)
                free(e);
        }
        pthread_mutex_unlock(&l->mutex);
        return true;
    }
    first = e->to; /* which never changes once it is there */
    if (!first) {
        i->next = e->waiting;
        e->waiting = i;
    }
    pthread_mutex_unlock(&l->mutex);
    if (first)
        another_name(i, first);
    return false;
}

void mfs_stage_link_end(struct mfs_stage_item *i, const struct stat *st, bool done)
{
    struct mfs_stage_links *l = i->dir->stage->links;
    struct mfs_stage_item *waiting = NULL;
    struct links_entry *e;
    char path[PATH_MAX];

    if (st->st_nlink < 2)
        return;
    mfs_stage_path(i->dir, i->to, true, path, sizeof path);
    pthread_mutex_lock(&l->mutex);
    e = find(l, st);
    if (e && !e->to) {
        waiting = e->waiting;
        e->waiting = NULL;
        e->to = done ? strdup(path) : NULL;
        if (!e->to) { /* the next one tries to be the first */
            HASH_DEL(l->table, e);
            free(e);
        }
    }
    pthread_mutex_unlock(&l->mutex);
    while (waiting) {
        struct mfs_stage_item *next = waiting->next;

        mfs_stage_walk_item(waiting);
        waiting = next;
    }
}
