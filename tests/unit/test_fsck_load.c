/* No false alarm: clients create, write, rename, link, unlink and remove all the time, and memefs
 * fsck, again and again, finds nothing. MFS_SEED=n and MFS_ROUNDS=n repeat and lengthen it (else 20
 * s). ctest: release timeout=130 long=25 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
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
#include <time.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "cluster/placement.h"
#include "fsck/fsck.h"
#include "redis_fixture.h"
#include "vfs/vfs.h"

#define NPARTS  5
#define STRIPE  8192U
#define CLIENTS 3
#define THREADS 6
/* Shorter than in earnest, which makes it harder; what two of them find is no thread that got no
 * processor between freeing a file and deleting its stripes. */
#define PAUSE (4 * MFS_SEC)

struct client {
    struct mfs_store *store;
    struct mfs_vfs *vfs;
};

struct worker {
    pthread_t thread;
    struct client *c;
    uint64_t state;
    unsigned done;
};

static struct redis_fixture *redis;
static struct client client[CLIENTS];
static struct mfs_store *checker;
static atomic_bool stop;
static const struct mfs_cred root = {.umask = 022, .in_group = true};

static void drop(void *arg, uint64_t ino, void (*done)(void *), void *done_arg)
{
    (void)arg;
    (void)ino;
    if (done)
        done(done_arg);
}

static bool revoke(void *arg, uint64_t ino, bool name, bool own, void (*done)(void *),
                   void *done_arg)
{
    (void)arg, (void)ino, (void)name, (void)own, (void)done, (void)done_arg;
    return true;
}

static uint32_t dice(struct worker *w, uint32_t n)
{
    w->state = w->state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(w->state >> 33) % n;
}

/* A directory, up to two below the root, and a name in it; many are the same. */
static int somewhere(struct worker *w, uint64_t *dir, char name[16])
{
    struct mfs_attr attr;

    *dir = MFS_ROOT_INO;
    for (uint32_t depth = dice(w, 3); depth > 0; depth--) {
        char below[8];
        int rc;

        snprintf(below, sizeof below, "d%u", dice(w, 4));
        rc = mfs_vfs_lookup(w->c->vfs, *dir, below, &attr);
        if (rc == -ENOENT)
            rc = mfs_vfs_mknod(w->c->vfs, *dir, below, S_IFDIR | 0755, 0, &root, &attr);
        if (rc || !S_ISDIR(attr.mode))
            return rc ? rc : -ENOTDIR;
        *dir = attr.ino;
    }
    snprintf(name, 16, "%c%u", "dffff"[dice(w, 5)], dice(w, 12));
    return 0;
}

static int write_file(struct worker *w, uint64_t dir, const char *name, int flags)
{
    static const char bytes[3 * STRIPE];
    struct mfs_file *file;
    struct mfs_attr attr;
    bool keep;
    int rc = mfs_vfs_create_open(w->c->vfs, dir, name, 0644, O_WRONLY | O_CREAT | flags, &root,
                                 &attr, &file, &keep);

    if (rc)
        return rc;
    for (uint32_t i = dice(w, 4); i > 0; i--)
        mfs_vfs_write(file, bytes, 1 + dice(w, sizeof bytes), dice(w, 10 * STRIPE), flags, false);
    if (dice(w, 8) == 0)
        mfs_clock_sleep(dice(w, 300) * MFS_MSEC);
    mfs_vfs_flush(file, 1);
    mfs_vfs_release(file);
    return 0;
}

static int cut_file(struct worker *w, uint64_t dir, const char *name)
{
    struct mfs_attr attr;
    int rc = mfs_vfs_lookup(w->c->vfs, dir, name, &attr);

    if (rc || !S_ISREG(attr.mode))
        return rc;
    attr.size = dice(w, 4 * STRIPE);
    return mfs_vfs_setattr(w->c->vfs, attr.ino, MFS_VFS_SET_SIZE, &attr, NULL);
}

static int link_file(struct worker *w, uint64_t dir, const char *name, uint64_t to,
                     const char *to_name)
{
    struct mfs_attr attr;
    int rc = mfs_vfs_lookup(w->c->vfs, dir, name, &attr);

    return rc ? rc : mfs_vfs_link(w->c->vfs, attr.ino, to, to_name, &attr);
}

static int something(struct worker *w)
{
    static const unsigned flags[] = {0, RENAME_WHITEOUT, RENAME_NOREPLACE, RENAME_EXCHANGE};
    struct mfs_vfs *vfs = w->c->vfs;
    char name[16], to_name[16];
    struct mfs_attr attr;
    uint64_t dir, to;
    int rc = somewhere(w, &dir, name);

    if (!rc)
        rc = somewhere(w, &to, to_name);
    if (rc)
        return rc;
    switch (dice(w, 16)) {
    case 0:
    case 1:
        return write_file(w, dir, name, 0);
    case 2:
        return write_file(w, dir, name, O_APPEND);
    case 3:
        return write_file(w, dir, name, O_TRUNC);
    case 4:
        return cut_file(w, dir, name);
    case 5:
        return mfs_vfs_mknod(vfs, dir, name, S_IFDIR | 0755, 0, &root, &attr);
    case 6:
        return mfs_vfs_symlink(vfs, "target", dir, name, &root, &attr);
    case 7:
    case 8:
        return mfs_vfs_unlink(vfs, dir, name);
    case 9:
    case 10:
        return mfs_vfs_rmdir(vfs, dir, name);
    case 11:
        return link_file(w, dir, name, to, to_name);
    default:
        return mfs_vfs_rename(vfs, dir, name, to, to_name, flags[dice(w, 4)], &root);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;

    while (!stop)
        w->done += something(w) == 0;
    return NULL;
}

static void check(unsigned round)
{
    struct mfs_fsck_opts opts = {.pause = PAUSE};
    struct mfs_fsck_report *r;
    struct mfs_err err;

    if (mfs_fsck_run(checker, &opts, &r, &err))
        fail_msg("%s", err.msg);
    print_message("round %u: %zu findings, %u passes, %zu had changed, %llu inodes, %llu stripes\n",
                  round, r->n, r->passes, r->changed, (unsigned long long)r->inodes,
                  (unsigned long long)r->stripes);
    for (size_t i = 0; i < r->n; i++)
        print_message("  %s inode %llx partition %u %s: %s\n", r->findings[i].kind,
                      (unsigned long long)r->findings[i].ino, r->findings[i].part,
                      r->findings[i].path, r->findings[i].text);
    assert_int_equal(r->n, 0);
    mfs_fsck_report_free(r);
}

static void test_load(void **state)
{
    const char *seed = getenv("MFS_SEED"), *rounds = getenv("MFS_ROUNDS");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    unsigned done = 0, most = rounds ? (unsigned)atoi(rounds) : UINT32_MAX;
    int64_t until = mfs_clock_mono() + (rounds ? 10000 : 20) * MFS_SEC;
    struct worker w[THREADS] = {0};

    (void)state;
    print_message("MFS_SEED=%llu\n", (unsigned long long)first);
    for (unsigned i = 0; i < THREADS; i++) {
        w[i].c = &client[i % CLIENTS];
        w[i].state = first * 1000003 + i;
        assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (unsigned i = 0; i < most && mfs_clock_mono() < until; i++)
        check(i);
    stop = true;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        done += w[i].done;
    }
    assert_true(done > 100);
    check(100);
}

static int start_client(struct client *c)
{
    struct mfs_store_opts store = {.node = REDIS_FIXTURE_NODE, .io_timeout = 30 * MFS_SEC};
    struct mfs_vfs_opts vfs = {.leases = true};
    int rc = mfs_store_create(&c->store, redis_fixture_table(redis), &store);

    if (!rc)
        rc = mfs_vfs_create(&c->vfs, c->store, &vfs);
    if (rc)
        return rc;
    mfs_vfs_on_invalidate(c->vfs, drop, c);
    mfs_vfs_on_revoke(c->vfs, revoke, NULL, c);
    return 0;
}

static int start_all(void **state)
{
    struct mfs_store_opts store = {.node = REDIS_FIXTURE_NODE};
    int rc = redis_fixture_start(
        &redis, &(struct redis_fixture_opts){.nparts = NPARTS, .stripe_size = STRIPE});

    (void)state;
    mfs_log_set_level(MFS_LOG_WARN);
    for (int i = 0; i < CLIENTS && !rc; i++)
        rc = start_client(&client[i]);
    return rc ? rc : mfs_store_create(&checker, redis_fixture_table(redis), &store);
}

static int stop_all(void **state)
{
    (void)state;
    for (int i = 0; i < CLIENTS; i++) {
        mfs_vfs_destroy(client[i].vfs);
        mfs_store_destroy(client[i].store);
    }
    mfs_store_destroy(checker);
    redis_fixture_stop(redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
