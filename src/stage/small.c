/* Small files into a deployment: each by one request of its mount, which makes the whole file with
 * its owner, mode and times (proto/put.h), so that neither a temporary name nor a lock is needed;
 * and unlike to create and to rename it does not have the kernel lock the directory for the time
 * that it takes: as many as there are threads are under way at once.
 *
 * A directory's *key* is the file without a name that the mount wants to see for it. It is made for
 * the first small file. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "proto/put.h"
#include "stage/file.h"

struct mfs_stage_small {
    pthread_mutex_t mutex; /* guards what follows, until it is ready */
    bool ready;
    int key; /* a descriptor; -1: there is none, and files are copied as large ones are */
};

struct mfs_stage_small *mfs_stage_small_create(void)
{
    struct mfs_stage_small *p = calloc(1, sizeof *p);

    if (p) {
        pthread_mutex_init(&p->mutex, NULL);
        p->key = -1;
    }
    return p;
}

void mfs_stage_small_destroy(struct mfs_stage_small *p)
{
    if (!p)
        return;
    if (p->key >= 0)
        close(p->key);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

/* ---- a file ---------------------------------------------------------------------------------- */

static int key_of(const struct mfs_stage_dir *d)
{
    struct mfs_stage_small *p = d->small;

    pthread_mutex_lock(&p->mutex);
    if (!p->ready)
        p->key = openat(d->to, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    p->ready = true;
    pthread_mutex_unlock(&p->mutex);
    return p->key;
}

/* What the usual calls would need more of than the content and the plain attributes: holes, too;
 * and by them a file is no longer than this process' may be. */
static bool is_plain(const struct mfs_stage_file *f)
{
    const struct mfs_stage_dir *d = f->item->dir;
    const struct mfs_stage *s = d->stage;

    return s->nparts && !s->plan->verify && f->source->local && !d->acl && !f->sparse &&
           (uint64_t)f->st.st_size <= s->longest && (f->st.st_mode & (S_ISUID | S_ISGID)) == 0 &&
           !mfs_stage_has_xattrs(f->from);
}

/* All of the file, which must not have changed. */
static int read_all(struct mfs_stage_file *f, char *to)
{
    size_t size = (size_t)f->st.st_size, done = 0;
    unsigned char sum[MFS_STAGE_SUM];

    while (done < size) {
        ssize_t n = pread(f->from, to + done, size - done, (off_t)done);

        if (n == 0 || (n < 0 && errno != EINTR))
            return n ? -errno : -ENODATA;
        done += n > 0 ? (size_t)n : 0;
    }
    if (f->item->has_sum && (EVP_Digest(to, size, sum, NULL, EVP_sha256(), NULL) != 1 ||
                             memcmp(sum, f->item->sum, sizeof sum) != 0))
        return -EUCLEAN;
    return f->source->unchanged(f);
}

/* May it not be given away, the group at least, as cp -a has it. */
static int ask(int key, struct mfs_put_request *r, char *all, size_t len)
{
    int rc;

    for (;;) {
        memcpy(all, r, sizeof *r);
        rc = ioctl(key, MFS_PUT(len), all) < 0 ? -errno : 0;
        if (rc != -EPERM || (r->uid == UINT32_MAX && r->gid == UINT32_MAX))
            return rc;
        if (r->uid != UINT32_MAX)
            r->uid = UINT32_MAX;
        else
            r->gid = UINT32_MAX;
    }
}

static int put(struct mfs_stage_file *f, int key, char *all, size_t len)
{
    const struct mfs_stage_item *i = f->item;
    size_t name_len = strlen(i->to);
    struct mfs_put_request r = {.uid = f->st.st_uid == i->dir->stage->self.st_uid ? UINT32_MAX
                                                                                  : f->st.st_uid,
                                .gid = f->st.st_gid == i->dir->gid ? UINT32_MAX : f->st.st_gid,
                                .mode = f->st.st_mode & 07777,
                                .name_len = (uint32_t)name_len,
                                .atime = f->st.st_atim.tv_sec,
                                .mtime = f->st.st_mtim.tv_sec,
                                .atime_ns = (uint32_t)f->st.st_atim.tv_nsec,
                                .mtime_ns = (uint32_t)f->st.st_mtim.tv_nsec};
    int rc = read_all(f, all + sizeof r + name_len);

    if (rc)
        return rc;
    memcpy(all + sizeof r, i->to, name_len);
    return ask(key, &r, all, len);
}

int mfs_stage_copy_small(struct mfs_stage_file *f)
{
    const struct mfs_stage_item *i = f->item;
    size_t head = sizeof(struct mfs_put_request) + strlen(i->to), len;
    char *all;
    int rc, key;

    if (f->st.st_size < 0 || (uint64_t)f->st.st_size > MFS_PUT_MOST - head || !is_plain(f) ||
        mfs_stage_has_left(i))
        return -EOPNOTSUPP;
    key = key_of(i->dir);
    if (key < 0)
        return -EOPNOTSUPP;
    len = head + (size_t)f->st.st_size;
    all = malloc(len);
    if (!all)
        return -ENOMEM;
    rc = put(f, key, all, len);
    free(all);
    return rc;
}
