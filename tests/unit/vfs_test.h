/* What the tests of two clients of one store share, without a mount: the clients, whose kernel may
 * drop pages late, and short ways to use files. */
#ifndef MFS_TESTS_VFS_TEST_H
#define MFS_TESTS_VFS_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "vfs/vfs.h"
#include "vfs_fixture.h"

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

static inline void drop(void *arg, uint64_t ino, void (*done)(void *), void *done_arg)
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

static inline void client_start(struct client *c)
{
    vfs_client_start(&c->store, &c->vfs);
    mfs_vfs_on_invalidate(c->vfs, drop, c);
}

static inline void client_stop(struct client *c)
{
    vfs_client_stop(c->store, c->vfs);
}

static inline int setup_all(void **state)
{
    (void)state;
    return vfs_redis_start(STRIPE);
}

static inline int setup(void **state)
{
    (void)state;
    assert_int_equal(redis_fixture_reset(vfs_redis), 0);
    client_start(&a);
    client_start(&b);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    client_stop(&a);
    client_stop(&b);
    return 0;
}

static inline struct mfs_file *create(struct client *c, const char *name, int flags, uint64_t *ino)
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

static inline struct mfs_file *open_file(struct client *c, uint64_t ino, int flags)
{
    struct mfs_file *f;
    bool keep;

    assert_int_equal(mfs_vfs_open(c->vfs, ino, flags, &f, &keep), 0);
    return f;
}

static inline void close_file(struct mfs_file *f)
{
    assert_int_equal(mfs_vfs_flush(f, 1), 0);
    mfs_vfs_release(f);
}

static inline void put(struct mfs_file *f, const char *text, uint64_t off)
{
    size_t n = strlen(text);

    assert_int_equal(mfs_vfs_write(f, text, n, off, 0, false), n);
}

static inline void expect(struct mfs_file *f, const char *text, uint64_t off)
{
    char buf[256];
    size_t n = strlen(text);

    assert_in_range(n, 0, sizeof buf);
    assert_int_equal(mfs_vfs_read(f, buf, n, off, true, NULL), n);
    assert_memory_equal(buf, text, n);
}

/* Closing is told a moment later. */
static inline bool gone_in_time(struct client *c, uint64_t ino)
{
    struct mfs_attr attr;

    for (int i = 0; i < 200; i++) {
        if (mfs_vfs_getattr(c->vfs, ino, &attr) == -ESTALE)
            return true;
        mfs_clock_sleep(50 * MFS_MSEC);
    }
    return false;
}

static inline struct mfs_attr getattr(struct client *c, uint64_t ino)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_vfs_getattr(c->vfs, ino, &attr), 0);
    return attr;
}

#endif
