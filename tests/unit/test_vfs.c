/* Two clients of one store, without a mount: what the one has closed the other sees, what both do
 * holds together. ctest: threaded timeout=120 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "vfs_fixture.h"
#include "vfs/acl.h"
#include "vfs/vfs.h"

#define STRIPE   (64U << 10)
#define LATE_MAX 8

struct client {
    struct mfs_store *store;
    struct mfs_vfs *vfs;
    atomic_uint dropped; /* how often pages were to be dropped */
    bool busy;           /* they are, but later; guarded by `late`, as is what follows */
    unsigned nlate;
    struct {
        void (*done)(void *arg);
        void *arg;
    } late[LATE_MAX];
};

static struct client a, b;
static pthread_mutex_t late = PTHREAD_MUTEX_INITIALIZER;
static const struct mfs_cred root = {.umask = 022, .in_group = true};

static void drop(void *arg, uint64_t ino, void (*done)(void *), void *done_arg)
{
    struct client *c = arg;

    (void)ino;
    atomic_fetch_add(&c->dropped, 1);
    pthread_mutex_lock(&late);
    if (done != NULL && c->busy && c->nlate < LATE_MAX) {
        c->late[c->nlate].done = done;
        c->late[c->nlate++].arg = done_arg;
        done = NULL;
    }
    pthread_mutex_unlock(&late);
    if (done != NULL)
        done(done_arg);
}

static void client_start(struct client *c)
{
    vfs_client_start(&c->store, &c->vfs);
    mfs_vfs_on_invalidate(c->vfs, drop, c);
}

static void client_stop(struct client *c)
{
    vfs_client_stop(c->store, c->vfs);
}

static int setup_all(void **state)
{
    (void)state;
    return vfs_redis_start(STRIPE);
}

static int setup(void **state)
{
    (void)state;
    assert_int_equal(redis_fixture_reset(vfs_redis), 0);
    client_start(&a);
    client_start(&b);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    client_stop(&a);
    client_stop(&b);
    return 0;
}

/* --- shorthands ------------------------------------------------------------------------------ */

static struct mfs_file *create(struct client *c, const char *name, int flags, uint64_t *ino)
{
    struct mfs_attr attr;
    struct mfs_file *f;
    bool keep;

    assert_int_equal(mfs_vfs_create_open(c->vfs, MFS_ROOT_INO, name, 0644, flags | O_CREAT, &root,
                                         &attr, &f, &keep),
                     0);
    *ino = attr.ino;
    return f;
}

static struct mfs_file *open_file(struct client *c, uint64_t ino, int flags)
{
    struct mfs_file *f;
    bool keep;

    assert_int_equal(mfs_vfs_open(c->vfs, ino, flags, &f, &keep), 0);
    return f;
}

static void close_file(struct mfs_file *f)
{
    assert_int_equal(mfs_vfs_flush(f, 1), 0);
    mfs_vfs_release(f);
}

static void put(struct mfs_file *f, const char *text, uint64_t off)
{
    size_t n = strlen(text);

    assert_int_equal(mfs_vfs_write(f, text, n, off, 0, false), n);
}

static void expect(struct mfs_file *f, const char *text, uint64_t off)
{
    char buf[256];
    size_t n = strlen(text);

    assert_in_range(n, 0, sizeof buf);
    assert_int_equal(mfs_vfs_read(f, buf, n, off, true, NULL), n);
    assert_memory_equal(buf, text, n);
}

static struct mfs_attr getattr(struct client *c, uint64_t ino)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_vfs_getattr(c->vfs, ino, &attr), 0);
    return attr;
}

/* --- content --------------------------------------------------------------------------------- */

static void close_to_open(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g;
    bool keep;

    (void)state;
    put(f, "first", 0);
    expect(f, "first", 0); /* not stored yet, but seen here */
    assert_int_equal(getattr(&a, ino).size, 5);
    close_file(f);
    assert_int_equal(getattr(&b, ino).size, 5);
    g = open_file(&b, ino, O_RDONLY);
    expect(g, "first", 0);
    close_file(g);
    assert_int_equal(mfs_vfs_open(b.vfs, ino, O_RDONLY, &g, &keep), 0);
    assert_true(keep); /* nothing has changed */
    close_file(g);
    f = open_file(&a, ino, O_WRONLY);
    put(f, "again", 0);
    close_file(f);
    assert_int_equal(mfs_vfs_open(b.vfs, ino, O_RDONLY, &g, &keep), 0);
    assert_false(keep);
    expect(g, "again", 0);
    close_file(g);
    assert_int_equal(mfs_vfs_open(a.vfs, ino, O_RDONLY, &f, &keep), 0);
    assert_true(keep); /* its own change */
    close_file(f);
}

/* The version of a file that was closed long ago may come again, with another content, when what
 * the former process had executed last is lost. */
static void pages_after_a_failover(void **state)
{
    struct mfs_table *t = redis_fixture_table(vfs_redis);
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    bool keep;

    (void)state;
    put(f, "text", 0);
    close_file(f);
    f = open_file(&b, ino, O_RDONLY);
    expect(f, "text", 0);
    close_file(f);
    assert_int_equal(mfs_vfs_open(b.vfs, ino, O_RDONLY, &f, &keep), 0);
    assert_true(keep);
    close_file(f);
    t->epoch += 1000;
    t->failovers++;
    assert_int_equal(mfs_store_set_table(b.store, t), 0);
    assert_int_equal(mfs_vfs_open(b.vfs, ino, O_RDONLY, &f, &keep), 0);
    assert_false(keep);
    close_file(f);
}

/* A descriptor that is open all the time sees what was closed elsewhere. */
static void open_reader(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g;
    unsigned before;

    (void)state;
    put(f, "one", 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    g = open_file(&b, ino, O_RDONLY);
    expect(g, "one", 0);
    before = atomic_load(&b.dropped);
    put(f, "two and more", 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    assert_true(atomic_load(&b.dropped) > before);
    expect(g, "two and more", 0);
    close_file(f);
    close_file(g);
}

static void many_stripes(void **state)
{
    size_t n = 10 * STRIPE + 1234;
    unsigned char *out = malloc(n), *in = malloc(n);
    uint64_t ino;
    struct mfs_file *f = create(&a, "big", O_RDWR, &ino);

    (void)state;
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)(i * 7 + i / 251);
    for (size_t at = 0; at < n; at += 100000)
        assert_true(mfs_vfs_write(f, out + at, n - at < 100000 ? n - at : 100000, at, 0, false) >
                    0);
    close_file(f);
    f = open_file(&b, ino, O_RDONLY);
    for (size_t at = 0; at < n; at += 50000)
        assert_true(mfs_vfs_read(f, in + at, n - at < 50000 ? n - at : 50000, at, false, NULL) > 0);
    assert_memory_equal(in, out, n);
    assert_int_equal(mfs_vfs_read(f, in, 1, n, true, NULL), 0);
    close_file(f);
    free(out);
    free(in);
}

static void truncated(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    struct mfs_attr attr = {.size = 3};

    (void)state;
    put(f, "0123456789", 0);
    put(f, "far", 5 * STRIPE);
    assert_int_equal(mfs_vfs_setattr(a.vfs, ino, MFS_VFS_SET_SIZE, &attr), 0);
    assert_int_equal(attr.size, 3);
    attr.size = 5 * STRIPE + 3;
    assert_int_equal(mfs_vfs_setattr(b.vfs, ino, MFS_VFS_SET_SIZE, &attr), 0);
    assert_int_equal(getattr(&a, ino).size, 5 * STRIPE + 3);
    close_file(f);
    f = open_file(&b, ino, O_RDONLY);
    assert_int_equal(mfs_vfs_read(f, (char[10]){0}, 10, 0, true, NULL), 10);
    {
        char buf[10];

        assert_int_equal(mfs_vfs_read(f, buf, 10, 0, true, NULL), 10);
        assert_memory_equal(buf, "012\0\0\0\0\0\0\0", 10);
        assert_int_equal(mfs_vfs_read(f, buf, 10, 5 * STRIPE, true, NULL), 3);
        assert_memory_equal(buf, "\0\0\0", 3);
    }
    close_file(f);
}

/* utimens after a write that is not committed yet: the commit must not undo it. */
static void times_stay(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    struct mfs_attr attr = {.mtime = {1000, 5}};

    (void)state;
    put(f, "data", 0);
    assert_int_equal(mfs_vfs_setattr(a.vfs, ino, MFS_SET_MTIME, &attr), 0);
    close_file(f);
    attr = getattr(&b, ino);
    assert_int_equal(attr.mtime.tv_sec, 1000);
    assert_int_equal(attr.mtime.tv_nsec, 5);
    assert_int_equal(attr.size, 4);
}

static void too_large(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    struct mfs_attr attr = {.size = INT64_MAX};

    (void)state;
    assert_int_equal(mfs_vfs_write(f, "x", 1, INT64_MAX, 0, false), -EFBIG);
    assert_int_equal(mfs_vfs_setattr(a.vfs, ino, MFS_VFS_SET_SIZE, &attr), -EFBIG);
    assert_int_equal(mfs_vfs_fallocate(f, 0, INT64_MAX - 1, 1), -EFBIG);
    close_file(f);
}

static void holes(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    char buf[4] = "....";

    (void)state;
    put(f, "data", 4 * STRIPE);
    put(f, "head", 0);
    assert_int_equal(mfs_vfs_lseek(f, 0, SEEK_HOLE), 4096);
    assert_int_equal(mfs_vfs_lseek(f, 4 * STRIPE, SEEK_HOLE), 4 * STRIPE + 4);
    assert_int_equal(mfs_vfs_lseek(f, STRIPE, SEEK_DATA), 4 * STRIPE);
    assert_int_equal(mfs_vfs_lseek(f, 4 * STRIPE + 4, SEEK_DATA), -ENXIO);
    assert_int_equal(mfs_vfs_fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 2), 0);
    assert_int_equal(mfs_vfs_read(f, buf, 4, 0, true, NULL), 4);
    assert_memory_equal(buf, "h\0\0d", 4);
    assert_int_equal(mfs_vfs_fallocate(f, FALLOC_FL_ZERO_RANGE, 6 * STRIPE, 10), 0);
    assert_int_equal(getattr(&b, ino).size, 6 * STRIPE + 10);
    assert_int_equal(mfs_vfs_fallocate(f, FALLOC_FL_COLLAPSE_RANGE, 0, STRIPE), -EOPNOTSUPP);
    close_file(f);
}

static void copied(void **state)
{
    uint64_t from, to;
    struct mfs_file *f = create(&a, "from", O_RDWR, &from), *g = create(&a, "to", O_RDWR, &to);

    (void)state;
    put(f, "hello world", 0);
    assert_int_equal(mfs_vfs_copy_range(f, 6, g, 100, 50), 5);
    expect(g, "world", 100);
    assert_int_equal(mfs_vfs_copy_range(f, 11, g, 0, 5), 0);
    close_file(f);
    close_file(g);
    assert_int_equal(getattr(&b, to).size, 105);
}

struct appender {
    struct client *c;
    uint64_t ino;
    char letter;
};

enum { RECORD = 1000, RECORDS = 150 };

static void *append_many(void *arg)
{
    struct appender *p = arg;
    struct mfs_file *f = open_file(p->c, p->ino, O_WRONLY | O_APPEND);
    char record[RECORD];

    memset(record, p->letter, sizeof record);
    for (unsigned i = 0; i < RECORDS; i++)
        assert_int_equal(mfs_vfs_write(f, record, RECORD, 0, O_APPEND, false), RECORD);
    close_file(f);
    return NULL;
}

/* Across the end of stripe 0, too. */
static void appended(void **state)
{
    struct appender p[2] = {{&a, 0, 'a'}, {&b, 0, 'b'}};
    pthread_t thread[2];
    char record[RECORD];
    unsigned count[2] = {0};
    struct mfs_file *f;
    uint64_t ino;

    (void)state;
    close_file(create(&a, "log", O_WRONLY, &ino));
    for (unsigned i = 0; i < 2; i++) {
        p[i].ino = ino;
        assert_int_equal(pthread_create(&thread[i], NULL, append_many, &p[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(getattr(&a, ino).size, 2 * RECORD * RECORDS);
    f = open_file(&a, ino, O_RDONLY);
    for (unsigned i = 0; i < 2 * RECORDS; i++) {
        assert_int_equal(mfs_vfs_read(f, record, RECORD, (uint64_t)i * RECORD, false, NULL),
                         RECORD);
        assert_true(record[0] == 'a' || record[0] == 'b');
        for (unsigned j = 1; j < RECORD; j++)
            assert_int_equal(record[j], record[0]);
        count[record[0] == 'b']++;
    }
    assert_int_equal(count[0], RECORDS);
    close_file(f);
}

/* --- names ----------------------------------------------------------------------------------- */

static void inherited(void **state)
{
    /* default:user::rwx default:user:7:rwx default:group::r-x default:mask::rwx default:other::---
     */
    static const unsigned char acl[] = {
        2, 0, 0,    0,    1,    0,    7,    0, 0xff, 0xff, 0xff, 0xff, 2,    0,    7,
        0, 7, 0,    0,    0,    4,    0,    5, 0,    0xff, 0xff, 0xff, 0xff, 0x10, 0,
        7, 0, 0xff, 0xff, 0xff, 0xff, 0x20, 0, 0,    0,    0xff, 0xff, 0xff, 0xff};
    struct mfs_cred cred = {.uid = 5, .gid = 5, .umask = 077, .in_group = false};
    struct mfs_attr dir, attr;
    char value[128];

    (void)state;
    assert_int_equal(mfs_vfs_mknod(a.vfs, MFS_ROOT_INO, "d", S_IFDIR | 02775, 0, &root, &dir), 0);
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir.ino, "f", S_IFREG | 02775, 0, &cred, &attr), 0);
    assert_int_equal(attr.gid, dir.gid);
    assert_int_equal(attr.mode, S_IFREG | 0700); /* the bit is not for strangers; umask */
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir.ino, "e", S_IFDIR | 0755, 0, &cred, &attr), 0);
    assert_int_equal(attr.mode, S_IFDIR | 02700);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, dir.ino, MFS_ACL_DEFAULT, acl, sizeof acl, 0, &root),
                     0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, dir.ino, &attr), 0);
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir.ino, "g", S_IFREG | 0666, 0, &cred, &attr), 0);
    assert_int_equal(attr.mode, S_IFREG | 0660); /* the ACL instead of the umask */
    assert_int_equal(mfs_vfs_getxattr(a.vfs, attr.ino, MFS_ACL_ACCESS, value, sizeof value),
                     sizeof acl);
    assert_int_equal(mfs_vfs_getxattr(a.vfs, attr.ino, MFS_ACL_DEFAULT, value, sizeof value),
                     -ENODATA);
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir.ino, "h", S_IFDIR | 0777, 0, &cred, &attr), 0);
    assert_int_equal(mfs_vfs_getxattr(a.vfs, attr.ino, MFS_ACL_DEFAULT, value, sizeof value),
                     sizeof acl);
}

static void xattr_names(void **state)
{
    char list[256];
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(mfs_vfs_mknod(a.vfs, MFS_ROOT_INO, "f", S_IFREG | 0644, 0, &root, &attr), 0);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, attr.ino, "user.x", "1", 1, 0, &root), 0);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, attr.ino, "trusted.y", "2", 1, 0, &root), 0);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, attr.ino, "system.z", "2", 1, 0, &root), -EOPNOTSUPP);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, attr.ino, "user.", "2", 1, 0, &root), -EINVAL);
    assert_int_equal(mfs_vfs_listxattr(b.vfs, attr.ino, false, list, sizeof list), 7);
    assert_string_equal(list, "user.x");
    assert_int_equal(mfs_vfs_listxattr(b.vfs, attr.ino, false, NULL, 0), 7);
    assert_int_equal(mfs_vfs_listxattr(b.vfs, attr.ino, false, list, 3), -ERANGE);
    assert_int_equal(mfs_vfs_listxattr(b.vfs, attr.ino, true, list, sizeof list), 17);
}

static void unlinked_while_open(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    struct mfs_attr attr;

    (void)state;
    put(f, "still here", 0);
    assert_int_equal(mfs_vfs_unlink(b.vfs, MFS_ROOT_INO, "file"), 0);
    assert_int_equal(mfs_vfs_lookup(a.vfs, MFS_ROOT_INO, "file", &attr), -ENOENT);
    expect(f, "still here", 0);
    assert_int_equal(getattr(&a, ino).nlink, 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    assert_int_equal(mfs_vfs_unlink(a.vfs, MFS_ROOT_INO, "file"), -ENOENT);
    close_file(f); /* something was removed here meanwhile: waits until the inode is gone */
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), -ESTALE);
}

/* Names in a directory that is gone do not exist; the directory itself is stale. */
static void gone_directory(void **state)
{
    struct mfs_attr dir, attr;
    struct mfs_file *f;
    bool keep;

    (void)state;
    assert_int_equal(mfs_vfs_mknod(a.vfs, MFS_ROOT_INO, "d", S_IFDIR | 0755, 0, &root, &dir), 0);
    assert_int_equal(mfs_vfs_rmdir(b.vfs, MFS_ROOT_INO, "d"), 0);
    assert_int_equal(mfs_vfs_getattr(a.vfs, dir.ino, &attr), -ESTALE);
    assert_int_equal(mfs_vfs_lookup(a.vfs, dir.ino, "f", &attr), -ENOENT);
    assert_int_equal(mfs_vfs_unlink(a.vfs, dir.ino, "f"), -ENOENT);
    assert_int_equal(mfs_vfs_mknod(a.vfs, dir.ino, "f", S_IFREG, 0, &root, &attr), -ENOENT);
    assert_int_equal(
        mfs_vfs_create_open(a.vfs, dir.ino, "f", 0644, O_RDWR | O_CREAT, &root, &attr, &f, &keep),
        -ENOENT);
}

struct seen {
    unsigned count, stop_after;
    uint64_t cookie;
    char names[40][16];
};

static bool see(void *arg, const struct mfs_dirent *e, const struct mfs_attr *attr, uint64_t cookie)
{
    struct seen *s = arg;

    (void)attr;
    if (s->count == s->stop_after)
        return false;
    snprintf(s->names[s->count++], sizeof s->names[0], "%s", e->name);
    s->cookie = cookie;
    return true;
}

static void listed(void **state)
{
    struct seen all = {.stop_after = 40}, some = {.stop_after = 7};
    struct mfs_dirh *dir;
    struct mfs_attr attr;
    char name[16];

    (void)state;
    for (unsigned i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(mfs_vfs_mknod(a.vfs, MFS_ROOT_INO, name, S_IFREG, 0, &root, &attr), 0);
    }
    assert_int_equal(mfs_vfs_opendir(b.vfs, MFS_ROOT_INO, O_RDONLY, &dir), 0);
    assert_int_equal(mfs_vfs_readdir(dir, 0, false, see, &some), 0);
    assert_int_equal(some.count, 7);
    assert_string_equal(some.names[0], ".");
    assert_int_equal(mfs_vfs_unlink(a.vfs, MFS_ROOT_INO, "f3"), 0);
    some.stop_after = 40; /* goes on where it stopped, in the same listing */
    assert_int_equal(mfs_vfs_readdir(dir, some.cookie, true, see, &some), 0);
    assert_int_equal(some.count, 32);
    assert_int_equal(mfs_vfs_readdir(dir, 0, true, see, &all), 0);
    assert_int_equal(all.count, 31);
    mfs_vfs_releasedir(dir);
}

/* --- locks ----------------------------------------------------------------------------------- */

struct answer {
    atomic_int rc; /* 1: none yet */
};

static void answered(void *arg, int rc)
{
    struct answer *w = arg;

    atomic_store(&w->rc, rc);
}

static int await(struct answer *w, int64_t ns)
{
    int64_t end = mfs_clock_mono() + ns;

    while (atomic_load(&w->rc) == 1 && mfs_clock_mono() < end)
        mfs_clock_sleep(MFS_MSEC);
    return atomic_load(&w->rc);
}

static void start_waiting(struct mfs_file *f, const struct mfs_lock *lock, int64_t ns,
                          struct answer *w, struct mfs_lock_waiter **waiter)
{
    atomic_store(&w->rc, 1);
    *waiter = mfs_lock_waiter_create(f, lock, false, ns, answered, w);
    assert_non_null(*waiter);
    assert_int_equal(mfs_lock_waiter_start(*waiter), 0);
}

static void lock_waits(void **state)
{
    struct mfs_lock write = {.type = F_WRLCK, .start = 0, .end = 99, .owner = 1, .pid = 7}, off;
    struct mfs_lock_waiter *waiter;
    struct answer w;
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g = open_file(&b, ino, O_RDWR);

    (void)state;
    off = write;
    off.type = F_UNLCK;
    assert_int_equal(mfs_vfs_setlk(f, &write, false, answered, &w), 0);
    assert_int_equal(mfs_vfs_setlk(g, &write, false, answered, &w), -EAGAIN);
    start_waiting(g, &write, 20 * MFS_MSEC, &w, &waiter);
    assert_int_equal(await(&w, 5 * MFS_SEC), -EAGAIN);
    start_waiting(g, &write, -1, &w, &waiter);
    mfs_lock_waiter_cancel(waiter);
    assert_int_equal(await(&w, 5 * MFS_SEC), -EINTR);
    start_waiting(g, &write, -1, &w, &waiter);
    assert_int_equal(await(&w, 30 * MFS_MSEC), 1);
    put(f, "under the lock", 0);
    assert_int_equal(mfs_vfs_setlk(f, &off, false, answered, &w), 0);
    assert_int_equal(await(&w, 5 * MFS_SEC), 0);
    expect(g, "under the lock", 0); /* never closed, never synced */
    write.type = F_WRLCK;
    assert_int_equal(mfs_vfs_getlk(f, &write), 0);
    assert_int_equal(write.type, F_WRLCK);
    close_file(g); /* the owner's locks go with it */
    write = (struct mfs_lock){.type = F_WRLCK, .start = 0, .end = 99, .owner = 1};
    assert_int_equal(mfs_vfs_getlk(f, &write), 0);
    assert_int_equal(write.type, F_UNLCK);
    close_file(f);
}

/* A lock of an open file description (its owner never closes as such) ends with the handle. */
static void locks_of_a_handle(void **state)
{
    struct mfs_lock lock = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 4711};
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g = open_file(&b, ino, O_RDWR);
    struct answer w;

    (void)state;
    assert_int_equal(mfs_vfs_setlk(f, &lock, false, answered, &w), 0);
    assert_int_equal(mfs_vfs_setlk(g, &lock, false, answered, &w), -EAGAIN);
    assert_int_equal(mfs_vfs_flush(f, 1), 0);
    assert_int_equal(mfs_vfs_setlk(g, &lock, false, answered, &w), -EBUSY);
    mfs_vfs_release(f);
    assert_int_equal(mfs_vfs_setlk(g, &lock, false, answered, &w), 0);
    close_file(g);
}

static uint64_t round_trips(struct client *c)
{
    struct mfs_store_stats s;

    mfs_store_stats(c->store, &s);
    return s.round_trips;
}

/* Taken, though pages may have to be dropped for it. */
static void take_lock(struct mfs_file *f, const struct mfs_lock *lock, bool flock)
{
    struct answer w = {1};
    int rc = mfs_vfs_setlk(f, lock, flock, answered, &w);

    assert_int_equal(rc == -EINPROGRESS ? await(&w, 5 * MFS_SEC) : rc, 0);
}

/* A round trip or two may be the client's own, which keeps its session alive beside this. */
static void assert_trips(struct client *c, uint64_t before, uint64_t wanted)
{
    uint64_t made = round_trips(c) - before;

    assert_in_range(made, wanted, wanted + wanted / 10);
}

/* A refusal takes one round trip, and one more to ask whether another client that is in the way
 * lives; a close takes none for locks when there are none. */
static void refused_at_once(void **state)
{
    struct mfs_lock lock = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 11},
                    other = lock, off = lock;
    uint64_t ino, before;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *same = open_file(&a, ino, O_RDONLY),
                    *g = open_file(&b, ino, O_RDONLY);
    struct answer w;

    (void)state;
    other.owner = 12;
    off.type = F_UNLCK;
    for (unsigned flock = 0; flock < 2; flock++) {
        take_lock(f, &lock, flock);
        before = round_trips(&a);
        for (unsigned i = 0; i < 100; i++)
            assert_int_equal(mfs_vfs_setlk(same, &other, flock, answered, &w), -EAGAIN);
        assert_trips(&a, before, 100);
        before = round_trips(&b);
        for (unsigned i = 0; i < 100; i++)
            assert_int_equal(mfs_vfs_setlk(g, &other, flock, answered, &w), -EAGAIN);
        assert_trips(&b, before, 200);
        assert_int_equal(mfs_vfs_setlk(f, &off, flock, answered, &w), 0);
        if (flock) {
            before = round_trips(&b);
            assert_int_equal(mfs_vfs_flush(g, 12), 0);
            take_lock(g, &lock, true);
            assert_int_equal(mfs_vfs_setlk(g, &off, true, answered, &w), 0);
            assert_int_equal(mfs_vfs_flush(g, 12), 0);
            assert_int_equal(round_trips(&b) - before, 3); /* the fcntl owner's end, once */
        }
    }
    close_file(g);
    close_file(same);
    close_file(f);
}

/* An flock is waited for when a descriptor of its file was closed: it goes, or the file lives on.
 */
static void closing_flock(void **state)
{
    struct mfs_lock lock = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 21};
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g = open_file(&b, ino, O_RDWR);
    struct mfs_lock_waiter *waiter;
    struct answer w = {1};

    (void)state;
    assert_int_equal(mfs_vfs_setlk(f, &lock, true, answered, &w), 0);
    assert_int_equal(mfs_vfs_flush(f, 1), 0);
    assert_int_equal(mfs_vfs_setlk(g, &lock, true, answered, &w), -EBUSY);
    waiter = mfs_lock_waiter_create(g, &lock, true, 20 * MFS_SEC, answered, &w);
    assert_non_null(waiter);
    assert_int_equal(mfs_lock_waiter_start(waiter), 0);
    assert_int_equal(await(&w, 15 * MFS_SEC), -EAGAIN); /* f lives, that was a duplicate */
    assert_int_equal(mfs_vfs_setlk(g, &lock, true, answered, &w), -EAGAIN);
    assert_int_equal(mfs_vfs_flush(f, 1), 0);
    atomic_store(&w.rc, 1);
    waiter = mfs_lock_waiter_create(g, &lock, true, 20 * MFS_SEC, answered, &w);
    assert_non_null(waiter);
    assert_int_equal(mfs_lock_waiter_start(waiter), 0);
    mfs_vfs_release(f);
    assert_int_equal(await(&w, 5 * MFS_SEC), 0);
    mfs_vfs_release(g);
}

/* The kernel's number of an open file goes to the next one while the release of the first is on its
 * way: that gives back nothing of the new one's. */
static void owner_used_again(void **state)
{
    struct mfs_lock lock = {.type = F_WRLCK, .start = 0, .end = INT64_MAX, .owner = 31};
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *again = open_file(&a, ino, O_RDWR),
                    *g = open_file(&b, ino, O_RDWR);
    struct answer w;

    (void)state;
    take_lock(f, &lock, false);
    assert_int_equal(mfs_vfs_flush(f, 1), 0);
    take_lock(again, &lock, false);
    mfs_vfs_release(f);
    assert_int_equal(mfs_vfs_setlk(g, &lock, false, answered, &w), -EAGAIN);
    take_lock(again, &lock, true);
    f = open_file(&a, ino, O_RDWR);
    assert_int_equal(mfs_vfs_setlk(f, &lock, true, answered, &w), -EAGAIN);
    mfs_vfs_release(f);
    assert_int_equal(mfs_vfs_setlk(g, &lock, true, answered, &w), -EAGAIN);
    mfs_vfs_release(again);
    take_lock(g, &lock, false);
    take_lock(g, &lock, true);
    mfs_vfs_release(g);
}

/* Who drops pages because of a growth waits for a reader who may be about to take the zeros behind
 * the end he knew; a reader who asks for more has taken them. */
static void growth_and_readers(void **state)
{
    struct mfs_attr attr;
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g = open_file(&b, ino, O_RDONLY);
    char buf[4096];
    int64_t before;

    (void)state;
    put(f, "beginning", 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    for (uint32_t asker = 7; asker < 9; asker++) {
        mfs_vfs_act_for(7);
        before = mfs_clock_mono();
        assert_int_equal(mfs_vfs_read(g, buf, sizeof buf, 0, false, NULL), attr.size);
        mfs_vfs_act_for(asker);
        assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
        mfs_vfs_pages_dropped(b.vfs, ino, attr.size + 1);
        if (asker != 7)
            assert_true(mfs_clock_mono() - before >= 50 * MFS_MSEC);
    }
    mfs_vfs_act_for(0);
    close_file(g);
    close_file(f);
}

/* How many drops are late; `over`: they are done now. */
static unsigned late_drops(struct client *c, bool over)
{
    unsigned n;

    pthread_mutex_lock(&late);
    n = c->nlate;
    c->busy = !over;
    pthread_mutex_unlock(&late);
    for (unsigned i = 0; over && i < n; i++)
        c->late[i].done(c->late[i].arg);
    return n;
}

static void *append_more(void *f)
{
    put(f, "more", strlen("beginning"));
    assert_int_equal(mfs_vfs_fsync(f), 0);
    return NULL;
}

/* What another mount has appended is not told to the kernel as long as pages with zeros behind the
 * old end may be there. */
static void growth_and_pages(void **state)
{
    struct mfs_attr attr;
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g = open_file(&b, ino, O_RDONLY);
    pthread_t writer;

    (void)state;
    put(f, "beginning", 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    late_drops(&b, false);
    assert_int_equal(pthread_create(&writer, NULL, append_more, f), 0);
    while (late_drops(&b, false) == 0)
        mfs_clock_sleep(MFS_MSEC);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    assert_int_equal(attr.size, strlen("beginning"));
    late_drops(&b, true);
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    assert_int_equal(attr.size, strlen("beginningmore"));
    close_file(g);
    close_file(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(close_to_open, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_after_a_failover, setup, teardown),
        cmocka_unit_test_setup_teardown(open_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(many_stripes, setup, teardown),
        cmocka_unit_test_setup_teardown(truncated, setup, teardown),
        cmocka_unit_test_setup_teardown(times_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(too_large, setup, teardown),
        cmocka_unit_test_setup_teardown(holes, setup, teardown),
        cmocka_unit_test_setup_teardown(copied, setup, teardown),
        cmocka_unit_test_setup_teardown(appended, setup, teardown),
        cmocka_unit_test_setup_teardown(inherited, setup, teardown),
        cmocka_unit_test_setup_teardown(xattr_names, setup, teardown),
        cmocka_unit_test_setup_teardown(unlinked_while_open, setup, teardown),
        cmocka_unit_test_setup_teardown(gone_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(listed, setup, teardown),
        cmocka_unit_test_setup_teardown(lock_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(locks_of_a_handle, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_flock, setup, teardown),
        cmocka_unit_test_setup_teardown(owner_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(growth_and_readers, setup, teardown),
        cmocka_unit_test_setup_teardown(growth_and_pages, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
