/* Small files into a deployment: each by one request of its mount, which makes the whole file with
 * its owner, mode and times (proto/put.h), so that neither a temporary name nor a lock is needed;
 * and unlike to create and to rename it does not have the kernel lock the directory for the time
 * that it takes: as many as there are threads are under way at once. What is too long for a request
 * comes to the mount in parts, which wait for nothing.
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

/* A file that is asked for, and room for one request. */
struct ask {
    int key;
    struct mfs_put_request head;
    const char *name, *content;
    size_t size;
    char buf[MFS_PUT_MOST];
};

static size_t append(struct ask *a, size_t at, const void *p, size_t n)
{
    memcpy(a->buf + at, p, n);
    return at + n;
}

static int request(const struct ask *a, unsigned long command)
{
    return ioctl(a->key, command, a->buf) < 0 ? -errno : 0;
}

/* What is left of the content from part->at on goes with the request itself. */
static int send_parts(struct ask *a, struct mfs_put_part *part, size_t head)
{
    int rc = 0;

    while (!rc && a->size - part->at > MFS_PUT_MOST - sizeof *part - head) {
        size_t n = MFS_PUT_MOST - sizeof *part, left = a->size - (size_t)part->at;

        n = n < left ? n : left;
        append(a, append(a, 0, part, sizeof *part), a->content + part->at, n);
        rc = request(a, MFS_PUT_PART(sizeof *part + n));
        part->at += n;
    }
    return rc;
}

static int send_file(struct ask *a)
{
    size_t head = sizeof a->head + a->head.name_len, len = 0;
    bool whole = head + a->size <= MFS_PUT_MOST;
    struct mfs_put_part part = {.id = (uintptr_t)a}; /* no other thread's has that address */
    int rc = whole ? 0 : send_parts(a, &part, head);

    if (rc)
        return rc;
    if (!whole)
        len = append(a, len, &part, sizeof part);
    len = append(a, len, &a->head, sizeof a->head);
    len = append(a, len, a->name, a->head.name_len);
    len = append(a, len, a->content + part.at, a->size - (size_t)part.at);
    return request(a, whole ? MFS_PUT(len) : MFS_PUT_LAST(len));
}

/* May it not be given away, the group at least, as cp -a has it. */
static int ask(struct ask *a)
{
    struct mfs_put_request *r = &a->head;

    for (;;) {
        int rc = send_file(a);

        if (rc != -EPERM || (r->uid == UINT32_MAX && r->gid == UINT32_MAX))
            return rc;
        if (r->uid != UINT32_MAX)
            r->uid = UINT32_MAX;
        else
            r->gid = UINT32_MAX;
    }
}

static int put(struct mfs_stage_file *f, int key, char *content)
{
    const struct mfs_stage_item *i = f->item;
    const struct mfs_stage *s = i->dir->stage;
    const struct stat *st = &f->st;
    struct ask a = {.key = key,
                    .head = {.uid = st->st_uid == s->self.st_uid ? UINT32_MAX : st->st_uid,
                             .gid = st->st_gid == i->dir->gid ? UINT32_MAX : st->st_gid,
                             .mode = st->st_mode & 07777,
                             .name_len = (uint32_t)strlen(i->to),
                             .atime = st->st_atim.tv_sec,
                             .mtime = st->st_mtim.tv_sec,
                             .atime_ns = (uint32_t)st->st_atim.tv_nsec,
                             .mtime_ns = (uint32_t)st->st_mtim.tv_nsec},
                    .name = i->to,
                    .content = content,
                    .size = (size_t)st->st_size};
    int rc = read_all(f, content);

    return rc ? rc : ask(&a);
}

int mfs_stage_copy_small(struct mfs_stage_file *f)
{
    const struct mfs_stage_item *i = f->item;
    char *content;
    int rc, key;

    if (f->st.st_size < 0 || f->st.st_size > MFS_PUT_CONTENT || strlen(i->to) > NAME_MAX ||
        !is_plain(f) || mfs_stage_has_left(i))
        return -EOPNOTSUPP;
    key = key_of(i->dir);
    if (key < 0)
        return -EOPNOTSUPP;
    content = malloc((size_t)f->st.st_size + 1);
    if (!content)
        return -ENOMEM;
    rc = put(f, key, content);
    free(content);
    return rc;
}
