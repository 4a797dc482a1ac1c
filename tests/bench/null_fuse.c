/* A FUSE file system that does nothing but hold names, attributes and data in its own memory: what
 * the kernel, libfuse and the copies alone take, and thereby the ceiling for any FUSE file system.
 *
 *   null_fuse DIR
 *
 * Stays in the foreground until it is unmounted. Knows files and directories, and only what the
 * benchmarks do with them. Requests of 1 MiB, nothing cached beyond what the kernel does anyway. */
#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uthash.h>

#define GROWTH (16U << 20) /* bytes; a file's memory grows by at least an eighth */

/* What is gone stays allocated: the kernel may still know it, and a benchmark ends soon. */
struct node {
    UT_hash_handle hh; /* in its parent's `children` */
    char name[256];
    struct node *children;
    struct stat st;
    pthread_mutex_t lock; /* of data and st */
    char *data;           /* of a symbolic link: where to */
    size_t room;
};

static struct node root;
static pthread_rwlock_t names = PTHREAD_RWLOCK_INITIALIZER;
static const double timeout = 1.0;

static struct node *at(fuse_ino_t ino)
{
    return ino == FUSE_ROOT_ID ? &root : (struct node *)(uintptr_t)ino;
}

static struct fuse_entry_param entry(struct node *n)
{
    return (struct fuse_entry_param){.ino = (fuse_ino_t)(uintptr_t)n,
                                     .attr = n->st,
                                     .attr_timeout = timeout,
                                     .entry_timeout = timeout};
}

static struct node *find(struct node *dir, const char *name)
{
    struct node *n;

    HASH_FIND_STR(dir->children, name, n);
    return n;
}

static struct node *make(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct node *n = calloc(1, sizeof *n), *dir = at(parent);

    if (!n)
        return NULL;
    snprintf(n->name, sizeof n->name, "%s", name);
    pthread_mutex_init(&n->lock, NULL);
    n->st.st_mode = mode;
    n->st.st_nlink = S_ISDIR(mode) ? 2 : 1;
    n->st.st_ino = (ino_t)(uintptr_t)n;
    n->st.st_uid = fuse_req_ctx(req)->uid;
    n->st.st_gid = fuse_req_ctx(req)->gid;
    pthread_rwlock_wrlock(&names);
    HASH_ADD_STR(dir->children, name, n);
    pthread_rwlock_unlock(&names);
    return n;
}

static bool reserve(struct node *n, size_t end)
{
    size_t room = end + (end > GROWTH ? end / 8 : end < 4096 ? 0 : end);
    void *data;

    if (end <= n->room)
        return true;
    room = (room + 4095) & ~(size_t)4095;
    data = n->data ? mremap(n->data, n->room, room, MREMAP_MAYMOVE)
                   : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return false;
    n->data = data;
    n->room = room;
    return true;
}

/* Answers with the node, or with `missing` when there is none. */
static void reply_entry(fuse_req_t req, struct node *n, int missing)
{
    struct fuse_entry_param e;

    if (!n) {
        fuse_reply_err(req, missing);
        return;
    }
    e = entry(n);
    fuse_reply_entry(req, &e);
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct node *n;

    pthread_rwlock_rdlock(&names);
    n = find(at(parent), name);
    pthread_rwlock_unlock(&names);
    reply_entry(req, n, ENOENT);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    fuse_reply_attr(req, &at(ino)->st, timeout);
}

static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int set,
                       struct fuse_file_info *fi)
{
    struct node *n = at(ino);

    (void)fi;
    pthread_mutex_lock(&n->lock);
    if (set & FUSE_SET_ATTR_SIZE)
        n->st.st_size = attr->st_size;
    if (set & FUSE_SET_ATTR_MODE)
        n->st.st_mode = (n->st.st_mode & S_IFMT) | (attr->st_mode & 07777);
    pthread_mutex_unlock(&n->lock);
    fuse_reply_attr(req, &n->st, timeout);
}

static void do_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    struct node *n = make(req, parent, name, mode | S_IFREG);
    struct fuse_entry_param e;

    if (!n) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    e = entry(n);
    fuse_reply_create(req, &e, fi);
}

static void do_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    reply_entry(req, make(req, parent, name, mode | S_IFDIR), ENOMEM);
}

static void do_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    struct node *n = make(req, parent, name, S_IFLNK | 0777);
    size_t size = strlen(target);

    if (n && reserve(n, size + 1)) {
        memcpy(n->data, target, size + 1);
        n->st.st_size = (off_t)size;
    } else {
        n = NULL;
    }
    reply_entry(req, n, ENOMEM);
}

static void do_readlink(fuse_req_t req, fuse_ino_t ino)
{
    fuse_reply_readlink(req, at(ino)->data);
}

static void leave(struct node *dir, struct node *n)
{
    HASH_DEL(dir->children, n);
}

static void do_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct node *dir = at(parent), *n;

    pthread_rwlock_wrlock(&names);
    n = find(dir, name);
    if (n)
        leave(dir, n);
    pthread_rwlock_unlock(&names);
    if (n && n->data) {
        munmap(n->data, n->room);
        n->data = NULL;
        n->room = 0;
    }
    fuse_reply_err(req, n ? 0 : ENOENT);
}

static void do_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to_parent,
                      const char *to, unsigned flags)
{
    struct node *from_dir = at(parent), *to_dir = at(to_parent), *n;

    (void)flags;
    pthread_rwlock_wrlock(&names);
    n = find(from_dir, name);
    if (n) {
        struct node *over = find(to_dir, to);

        if (over)
            leave(to_dir, over);
        leave(from_dir, n);
        snprintf(n->name, sizeof n->name, "%s", to);
        HASH_ADD_STR(to_dir->children, name, n);
    }
    pthread_rwlock_unlock(&names);
    fuse_reply_err(req, n ? 0 : ENOENT);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    fuse_reply_open(req, fi);
}

static void do_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    (void)fi;
    fuse_reply_err(req, 0);
}

static void do_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *fi)
{
    (void)data_only;
    do_release(req, ino, fi);
}

static void do_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *in, off_t offset,
                         struct fuse_file_info *fi)
{
    struct fuse_bufvec out = FUSE_BUFVEC_INIT(fuse_buf_size(in));
    struct node *n = at(ino);
    size_t size = out.buf[0].size;
    ssize_t done = -ENOSPC;

    (void)fi;
    pthread_mutex_lock(&n->lock);
    if (reserve(n, (size_t)offset + size)) {
        out.buf[0].mem = n->data + offset;
        done = fuse_buf_copy(&out, in, 0);
        if (done > 0 && offset + done > n->st.st_size)
            n->st.st_size = offset + done;
    }
    pthread_mutex_unlock(&n->lock);
    if (done < 0)
        fuse_reply_err(req, (int)-done);
    else
        fuse_reply_write(req, (size_t)done);
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    struct node *n = at(ino);
    off_t left;

    (void)fi;
    pthread_mutex_lock(&n->lock);
    left = n->st.st_size > offset ? n->st.st_size - offset : 0;
    size = (off_t)size > left ? (size_t)left : size;
    if (!reserve(n, (size_t)offset + size))
        size = 0;
    pthread_mutex_unlock(&n->lock);
    fuse_reply_buf(req, size ? n->data + offset : NULL, size);
}

/* The whole list is made when it is opened. */
struct listing {
    char *entries;
    size_t size, room;
};

static void list_one(fuse_req_t req, struct listing *l, struct node *n)
{
    struct fuse_entry_param e = entry(n);
    size_t need = fuse_add_direntry_plus(req, NULL, 0, n->name, &e, 0);

    if (l->size + need > l->room) {
        size_t room = 2 * (l->size + need);
        char *more = realloc(l->entries, room);

        if (!more)
            return;
        l->entries = more;
        l->room = room;
    }
    fuse_add_direntry_plus(req, l->entries + l->size, need, n->name, &e, (off_t)(l->size + need));
    l->size += need;
}

static void do_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct listing *l = calloc(1, sizeof *l);

    if (!l) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    pthread_rwlock_rdlock(&names);
    for (struct node *n = at(ino)->children; n; n = n->hh.next)
        list_one(req, l, n);
    pthread_rwlock_unlock(&names);
    fi->fh = (uintptr_t)l;
    fuse_reply_open(req, fi);
}

/* Entries are not cut: the kernel leaves an incomplete one and asks again from the one before. */
static void do_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                           struct fuse_file_info *fi)
{
    const struct listing *l = (struct listing *)(uintptr_t)fi->fh;
    size_t left = (size_t)offset < l->size ? l->size - (size_t)offset : 0;

    (void)ino;
    fuse_reply_buf(req, left ? l->entries + offset : NULL, left < size ? left : size);
}

static void do_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct listing *l = (struct listing *)(uintptr_t)fi->fh;

    free(l->entries);
    free(l);
    do_release(req, ino, fi);
}

static void do_statfs(fuse_req_t req, fuse_ino_t ino)
{
    const struct statvfs st = {.f_bsize = 4096,
                               .f_frsize = 4096,
                               .f_blocks = 1UL << 24,
                               .f_bfree = 1UL << 24,
                               .f_bavail = 1UL << 24,
                               .f_namemax = 255};

    (void)ino;
    fuse_reply_statfs(req, &st);
}

static void do_init(void *arg, struct fuse_conn_info *conn)
{
    (void)arg;
    conn->max_write = 1U << 20;
    conn->max_readahead = 1U << 20;
    conn->want |= conn->capable & (FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS);
}

static const struct fuse_lowlevel_ops ops = {
    .init = do_init,
    .lookup = do_lookup,
    .getattr = do_getattr,
    .setattr = do_setattr,
    .create = do_create,
    .mkdir = do_mkdir,
    .symlink = do_symlink,
    .readlink = do_readlink,
    .unlink = do_unlink,
    .rmdir = do_unlink,
    .rename = do_rename,
    .open = do_open,
    .release = do_release,
    .flush = do_release,
    .fsync = do_fsync,
    .write_buf = do_write_buf,
    .read = do_read,
    .opendir = do_opendir,
    .readdirplus = do_readdirplus,
    .releasedir = do_releasedir,
    .statfs = do_statfs,
};

static int serve(struct fuse_session *se, const char *dir)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    int rc = fuse_session_mount(se, dir);

    if (!rc) {
        fuse_loop_cfg_set_clone_fd(config, 1);
        rc = fuse_session_loop_mt(se, config);
        fuse_session_unmount(se);
    }
    fuse_loop_cfg_destroy(config);
    return rc;
}

int main(int argc, char **argv)
{
    char options[] = "-oallow_other,default_permissions,fsname=null_fuse";
    char *words[] = {argv[0], options, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(2, words);
    struct fuse_session *se;
    int rc = 1;

    if (argc != 2) {
        fprintf(stderr, "usage: null_fuse DIR\n");
        return 2;
    }
    root.st = (struct stat){.st_ino = FUSE_ROOT_ID, .st_mode = S_IFDIR | 0755, .st_nlink = 2};
    pthread_mutex_init(&root.lock, NULL);
    se = fuse_session_new(&args, &ops, sizeof ops, NULL);
    if (se && !fuse_set_signal_handlers(se)) {
        rc = serve(se, argv[1]);
        fuse_remove_signal_handlers(se);
    }
    if (se)
        fuse_session_destroy(se);
    fuse_opt_free_args(&args);
    return rc ? 1 : 0;
}
