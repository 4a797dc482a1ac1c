/* Whole objects, one at a time. Small ones are put by one command at the name's partition, and got
 * by a look-up that brings the content along; others by the steps that any program would take. */
#include "lib/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cluster/placement.h"
#include "lib/rights.h"
#include "lib/tree.h"
#include "store/store.h"

#define PUT_FLAGS (MEMEFS_PUT_EXCL | MEMEFS_PUT_PARENTS)
#define GROWS     8 /* times that an object gets longer while it is read */

static_assert(MEMEFS_PUT_SMALL == MFS_META_CONTENT, "what is small is so everywhere");

/* --- where ------------------------------------------------------------------------------------ */

/* Is the name plain, and in the same directory as the one before? */
static const char *same_directory(const struct mfs_lib_where *w, const char *path)
{
    const char *name;

    if (w->prefix == NULL || strncmp(path, w->prefix, w->len) != 0)
        return NULL;
    name = path + w->len;
    if (*name == '\0' || strchr(name, '/') != NULL || strlen(name) > MFS_NAME_LEN_MAX ||
        strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return NULL;
    return name;
}

static void remember(struct mfs_lib_where *w, const char *path)
{
    const char *slash = strrchr(path, '/');

    free(w->prefix);
    w->len = slash != NULL ? (size_t)(slash + 1 - path) : 0;
    w->prefix = w->last.slash ? NULL : strndup(path, w->len);
}

int mfs_lib_where(struct memefs *fs, struct mfs_lib_where *w, const char *path, const char **name)
{
    int rc;

    *name = path != NULL ? same_directory(w, path) : NULL;
    if (*name != NULL)
        return 0;
    rc = mfs_lib_last(fs, NULL, path, &w->last);
    if (rc < 0)
        return rc;
    w->searched = mfs_vfs_access(fs->vfs, &w->last.dir, &fs->ids, X_OK) == 0;
    if (mfs_lib_is_dots(&w->last) || w->last.slash)
        return -EISDIR;
    remember(w, path);
    *name = w->last.name;
    return 0;
}

void mfs_lib_where_fini(struct mfs_lib_where *w)
{
    free(w->prefix);
    w->prefix = NULL;
}

/* --- put -------------------------------------------------------------------------------------- */

int mfs_lib_may_put(struct memefs *fs, const struct mfs_path_last *last, const char *name)
{
    struct mfs_attr victim = {0};
    bool look;
    int rc = mfs_rights_remove(fs->vfs, &fs->ids, &last->dir, &look);

    if (rc < 0 || !look)
        return rc;
    rc = mfs_vfs_lookup(fs->vfs, last->dir.ino, name, &victim);
    return rc == 0 ? mfs_rights_sticky(&fs->ids, &last->dir, &victim) : rc == -ENOENT ? 0 : rc;
}

/* A name that is to be in the same partition, so that the rename is one step. */
static int other_name(struct memefs *fs, uint64_t dir, const char *name, char other[40])
{
    uint32_t nparts = mfs_store_nparts(mfs_vfs_store(fs->vfs));
    uint32_t part = mfs_placement_entry(dir, name, strlen(name), nparts);
    char random[17];
    int rc = mfs_random_hex(random, 8);

    for (uint32_t i = 0; rc == 0 && i < 64 * nparts; i++) {
        int n = snprintf(other, 40, ".memefs-put.%s-%x", random, i);

        if (mfs_placement_entry(dir, other, (size_t)n, nparts) == part)
            break;
    }
    return rc;
}

static int write_all(struct memefs *fs, struct mfs_file *file, const char *buf, size_t len)
{
    const size_t piece = (size_t)4 << 20;
    size_t done = 0;
    ssize_t n = 0;

    mfs_vfs_bypasses(file);
    while (done < len && n >= 0) {
        n = mfs_vfs_write(file, buf + done, len - done < piece ? len - done : piece, done, 0,
                          fs->cred.drop);
        done += n > 0 ? (size_t)n : 0;
    }
    return n < 0 ? (int)n : mfs_vfs_flush(file, 0);
}

/* Gives it the name, or `other` where that is taken and may be replaced. */
static int link_it(struct memefs *fs, struct mfs_file *file, uint64_t dir, const char *name,
                   bool exclusive, char other[40])
{
    struct mfs_attr attr = {0};
    uint64_t ino = mfs_file_ino(file);
    int rc = mfs_vfs_link(fs->vfs, ino, dir, name, &attr);

    if (rc == -EEXIST && !exclusive) {
        rc = other_name(fs, dir, name, other);
        if (rc == 0)
            rc = mfs_vfs_link(fs->vfs, ino, dir, other, &attr);
    }
    if (rc == 0)
        mfs_vfs_has_name(file);
    return rc;
}

/* A file without a name, which it gets when it is whole: a program that dies before leaves nothing
 * for long. -ESTALE: the session has lapsed, and the file is gone with it. */
static int put_nameless(struct memefs *fs, uint64_t dir, const char *name, const void *buf,
                        size_t len, bool exclusive)
{
    struct mfs_file *file = NULL;
    struct mfs_attr attr = {0};
    char other[40] = "";
    bool keep;
    int rc = mfs_vfs_tmpfile(fs->vfs, dir, name, 0666, O_WRONLY, &fs->cred, &attr, &file, &keep);

    if (rc < 0)
        return rc;
    rc = write_all(fs, file, buf, len);
    if (rc == 0)
        rc = link_it(fs, file, dir, name, exclusive, other);
    mfs_vfs_release(file);
    if (rc < 0 || other[0] == '\0')
        return rc;
    rc = mfs_vfs_rename(fs->vfs, dir, other, dir, name, 0, &fs->cred);
    if (rc < 0)
        mfs_vfs_unlink(fs->vfs, dir, other);
    return rc;
}

/* In several steps, each as any program would take it. */
static int put_slowly(struct memefs *fs, uint64_t dir, const char *name, const void *buf,
                      size_t len, bool exclusive)
{
    int rc = put_nameless(fs, dir, name, buf, len, exclusive);

    return rc == -ESTALE ? put_nameless(fs, dir, name, buf, len, exclusive) : rc;
}

static int put_at(struct memefs *fs, uint64_t dir, const char *name, const void *buf, size_t len,
                  bool exclusive)
{
    struct mfs_vfs_put put = {.parent = dir,
                              .name = name,
                              .mode = 0666,
                              .buf = buf,
                              .len = len,
                              .exclusive = exclusive,
                              .rc = -EAGAIN};

    if (len <= MEMEFS_PUT_SMALL)
        mfs_vfs_put(fs->vfs, &put, 1, &fs->cred);
    return put.rc == -EAGAIN ? put_slowly(fs, dir, name, buf, len, exclusive) : put.rc;
}

static int put_once(struct memefs *fs, const char *path, const void *buf, size_t len,
                    unsigned flags)
{
    struct mfs_lib_where w = {0};
    const char *name;
    int rc = mfs_lib_where(fs, &w, path, &name);

    if (rc == 0)
        rc = mfs_lib_may_put(fs, &w.last, name);
    if (rc == 0)
        rc = put_at(fs, w.last.dir.ino, name, buf, len, flags & MEMEFS_PUT_EXCL);
    mfs_lib_where_fini(&w);
    return rc;
}

/* Of the path's directory. */
int mfs_lib_make_parent(struct memefs *fs, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir;
    int rc;

    if (slash == NULL || slash == path)
        return 0;
    dir = strndup(path, (size_t)(slash - path));
    if (dir == NULL)
        return -ENOMEM;
    rc = mfs_lib_makedirs(fs, dir, 0777);
    free(dir);
    return rc;
}

int mfs_lib_put(struct memefs *fs, const char *path, const void *buf, size_t len, unsigned flags)
{
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && (path == NULL || (buf == NULL && len > 0) || (flags & ~PUT_FLAGS) != 0))
        rc = -EINVAL;
    if (rc == 0)
        rc = put_once(fs, path, buf, len, flags);
    if (rc == -ENOENT && (flags & MEMEFS_PUT_PARENTS)) {
        rc = mfs_lib_make_parent(fs, path);
        if (rc == 0)
            rc = put_once(fs, path, buf, len, flags);
    }
    return rc;
}

int memefs_put(struct memefs *fs, const char *path, const void *buf, size_t len, unsigned flags)
{
    return (int)mfs_lib_end(mfs_lib_put(fs, path, buf, len, flags), "put", path);
}

/* --- get -------------------------------------------------------------------------------------- */

static int kind_refused(const struct mfs_attr *attr)
{
    if (S_ISDIR(attr->mode))
        return -EISDIR;
    return S_ISREG(attr->mode) ? 0 : -EOPNOTSUPP;
}

/* 1: its `attr->size` bytes are to come to *to, as far as there is room for them, *len; 0: it has
 * to be opened; or -errno. */
static int get_small(struct memefs *fs, const struct mfs_attr *attr, size_t cap, void **alloc,
                     size_t *len)
{
    int rc = kind_refused(attr);

    if (rc == 0)
        rc = mfs_vfs_access(fs->vfs, attr, &fs->ids, R_OK);
    if (rc < 0)
        return rc;
    if (attr->size > MFS_META_CONTENT || !mfs_vfs_is_current(fs->vfs, attr))
        return 0;
    *len = alloc != NULL || attr->size < cap ? (size_t)attr->size : cap;
    if (alloc != NULL) {
        *alloc = malloc(*len + 1);
        if (*alloc == NULL)
            return -ENOMEM;
    }
    return 1;
}

/* The object has been read, if `len` bytes are all of it. */
static void count_reading(struct memefs *fs, uint64_t mark, const struct mfs_name *name,
                          const struct mfs_attr *attr, size_t len)
{
    struct mfs_meta *meta = mfs_vfs_meta(fs->vfs);

    if (len == attr->size)
        mfs_meta_read_end(meta, mfs_meta_read_begin(meta, mark, attr, name->dir, name->name));
}

int mfs_lib_get_known(struct memefs *fs, uint64_t dir, const char *name, void *buf, size_t cap,
                      void **alloc, int64_t *size)
{
    const struct mfs_name whole = {dir, name};
    uint64_t mark = mfs_meta_read_mark(mfs_vfs_meta(fs->vfs));
    struct mfs_attr attr = {0};
    size_t len;
    int rc = mfs_vfs_lookup(fs->vfs, dir, name, &attr);

    if (rc < 0 || S_ISLNK(attr.mode))
        return rc;
    rc = get_small(fs, &attr, cap, alloc, &len);
    if (rc <= 0)
        return rc;
    *size = (int64_t)attr.size;
    if (len == 0 || mfs_meta_content(mfs_vfs_meta(fs->vfs), attr.ino, attr.version, 0, len,
                                     alloc != NULL ? *alloc : buf)) {
        count_reading(fs, mark, &whole, &attr, len);
        return 1;
    }
    if (alloc != NULL) {
        free(*alloc);
        *alloc = NULL;
    }
    return 0;
}

int mfs_lib_get_told(struct memefs *fs, uint64_t mark, const struct mfs_name *name,
                     const struct mfs_attr *attr, const void *content, size_t stored, void *buf,
                     size_t cap, void **alloc, int64_t *size)
{
    size_t len, n;
    int rc = get_small(fs, attr, cap, alloc, &len);

    if (rc <= 0)
        return rc;
    *size = (int64_t)attr->size;
    if (alloc != NULL)
        buf = *alloc;
    n = stored < len ? stored : len;
    if (n > 0)
        memcpy(buf, content, n);
    if (len > n)
        memset((char *)buf + n, 0, len - n);
    count_reading(fs, mark, name, attr, len);
    return 1;
}

/* Until it ends; another client may make it longer meanwhile. */
static int64_t read_alloc(struct memefs_file *f, void **alloc)
{
    size_t cap = (size_t)f->attr.size + 1, done = 0;
    char *buf = malloc(cap), *grown;
    ssize_t n;

    for (int i = 0; buf != NULL && i < GROWS; i++) {
        n = mfs_lib_read(f, buf + done, cap - done, done);
        if (n < 0) {
            free(buf);
            return n;
        }
        done += (size_t)n;
        if (done < cap) {
            *alloc = buf;
            return (int64_t)done;
        }
        cap *= 2;
        grown = realloc(buf, cap);
        if (grown == NULL)
            free(buf);
        buf = grown;
    }
    free(buf);
    return buf == NULL ? -ENOMEM : -EAGAIN;
}

static int64_t read_into(struct memefs_file *f, void *buf, size_t cap)
{
    struct mfs_attr attr = {0};
    ssize_t n = mfs_lib_read(f, buf, cap, 0);

    if (n < 0 || (size_t)n < cap)
        return n;
    n = mfs_lib_attr(f, &attr);
    return n < 0 ? n : (int64_t)(attr.size > cap ? attr.size : cap);
}

int64_t mfs_lib_get_open(struct memefs *fs, const char *path, void *buf, size_t cap, void **alloc)
{
    struct memefs_file *f;
    struct mfs_attr attr = {0};
    int64_t n = mfs_lib_open(fs, NULL, path, O_RDONLY, 0, &f);

    if (n < 0)
        return n;
    n = kind_refused(&f->attr);
    if (n == 0 && mfs_vfs_size(f->open, &attr))
        f->attr.size = attr.size;
    if (n == 0)
        n = alloc != NULL ? read_alloc(f, alloc) : read_into(f, buf, cap);
    if (f->open != NULL && (n < 0 || (alloc == NULL && (size_t)n > cap)))
        mfs_vfs_does_not_count(f->open); /* a directory has none */
    mfs_lib_close(f);
    return n;
}

/* By a look-up like any other, so that of objects that are got in turn those that come next are
 * brought along (vfs/names/listed.h). As mfs_lib_get_known. */
static int get_looking(struct memefs *fs, const struct mfs_name *name, void *buf, size_t cap,
                       void **alloc, int64_t *size)
{
    struct mfs_meta *meta = mfs_vfs_meta(fs->vfs);
    int rc;

    mfs_meta_want_content(meta);
    rc = mfs_lib_get_known(fs, name->dir, name->name, buf, cap, alloc, size);
    if (rc == 0 && mfs_meta_learn_names(meta, name, 1) == 0)
        rc = mfs_lib_get_known(fs, name->dir, name->name, buf, cap, alloc, size);
    return rc;
}

int64_t mfs_lib_get(struct memefs *fs, const char *path, void *buf, size_t cap, void **alloc)
{
    struct mfs_lib_where w = {0};
    struct mfs_name name = {0};
    int64_t size = 0;
    int rc = mfs_lib_enter(fs);

    if (rc == 0 && (path == NULL || (alloc == NULL && buf == NULL && cap > 0)))
        rc = -EINVAL;
    if (rc == 0)
        rc = mfs_lib_where(fs, &w, path, &name.name);
    if (rc == 0 && !w.searched)
        rc = -EACCES;
    if (rc == 0) {
        name.dir = w.last.dir.ino;
        rc = get_looking(fs, &name, buf, cap, alloc, &size);
    }
    mfs_lib_where_fini(&w);
    if (rc != 0)
        return rc < 0 ? rc : size;
    return mfs_lib_get_open(fs, path, buf, cap, alloc);
}

ssize_t memefs_get(struct memefs *fs, const char *path, void *buf, size_t size)
{
    return (ssize_t)mfs_lib_end(mfs_lib_get(fs, path, buf, size, NULL), "get", path);
}

ssize_t memefs_get_alloc(struct memefs *fs, const char *path, void **buf)
{
    int64_t n = -EINVAL;

    if (buf != NULL) {
        *buf = NULL;
        n = mfs_lib_get(fs, path, NULL, 0, buf);
    }
    return (ssize_t)mfs_lib_end(n, "get", path);
}
