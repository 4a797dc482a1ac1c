/* ctest: threaded
 *
 * All that clients do with names and files, while the partitions move again and again: a replica
 * that executes the same commands must end with the same keys and values, which the fixture
 * compares at each move. */
#include <errno.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "meta_fixture.h"

#define NPARTS  3
#define THREADS 4
#define NAMES   40
#define MOVES   (3 * NPARTS)

static struct redis_fixture *redis;
static struct meta_client client[2];
static uint64_t dirs[2] = {MFS_ROOT_INO};
static atomic_bool over;
static atomic_uint done, unexpected;

struct worker {
    pthread_t thread;
    struct mfs_meta *meta;
    uint64_t seed;
};

static uint32_t dice(struct worker *w, uint32_t n)
{
    w->seed = w->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(w->seed >> 33) % n;
}

static const char *name(struct worker *w, char out[16])
{
    snprintf(out, 16, "name%u", dice(w, NAMES));
    return out;
}

static uint64_t dir(struct worker *w)
{
    return dirs[dice(w, 2)];
}

/* --- what is done ----------------------------------------------------------------------------- */

static int make(struct worker *w)
{
    struct mfs_new new = {.mode = dice(w, 4) ? S_IFREG | 0644 : S_IFDIR | 0755, .uid = 1};
    struct mfs_attr attr;
    bool created;
    char n[16];
    int rc;

    if (S_ISDIR(new.mode))
        return mfs_meta_mknod(w->meta, dir(w), name(w, n), &new, &attr);
    rc = mfs_meta_create_open(w->meta, dir(w), name(w, n), &new, dice(w, 2), &attr, &created);
    return rc ? rc : mfs_meta_close(w->meta, attr.ino, dice(w, 2));
}

static int drop(struct worker *w)
{
    char n[16];

    name(w, n);
    return dice(w, 4) ? mfs_meta_unlink(w->meta, dir(w), n) : mfs_meta_rmdir(w->meta, dir(w), n);
}

static int move(struct worker *w)
{
    static const unsigned flags[] = {0, RENAME_NOREPLACE, RENAME_EXCHANGE};
    char from[16], to[16];

    name(w, from);
    return mfs_meta_rename(w->meta, dir(w), from, dir(w), name(w, to), flags[dice(w, 3)]);
}

/* An open file is written to, cut, and given attributes. */
static int change(struct worker *w)
{
    static const char data[3000];
    struct mfs_part part = {dice(w, 5000), dice(w, sizeof data), data};
    struct mfs_commit commit = {.end = part.off + part.len,
                                .mtime = mfs_clock_real(),
                                .parts = &part,
                                .nparts = dice(w, 2)};
    struct mfs_cut cut = {0};
    uint64_t off, number;
    struct mfs_attr attr;
    char n[16];
    int rc = mfs_meta_lookup(w->meta, dir(w), name(w, n), &attr);

    if (rc || !S_ISREG(attr.mode))
        return rc;
    rc = mfs_meta_open(w->meta, attr.ino, dice(w, 3) ? NULL : &cut, &attr, NULL);
    if (rc)
        return rc;
    rc = mfs_meta_commit(w->meta, attr.ino, &commit, NULL, &attr);
    if (!rc)
        rc = mfs_meta_append(w->meta, attr.ino, data, 100, 0, &off, &number, NULL, &attr);
    if (!rc && dice(w, 2))
        rc = mfs_meta_truncate(w->meta, attr.ino, dice(w, 3000), 1 << 20, 0, NULL, &attr);
    if (!rc)
        rc = mfs_meta_setattr(w->meta, attr.ino, MFS_SET_MODE, &attr, NULL);
    if (!rc)
        rc = mfs_meta_setxattr(w->meta, attr.ino, "user.x", n, sizeof n, 0, false, NULL);
    mfs_meta_settle(w->meta, attr.ino);
    mfs_meta_close(w->meta, attr.ino, dice(w, 2));
    return rc;
}

static int hard_link(struct worker *w)
{
    struct mfs_attr attr;
    char n[16];
    int rc = mfs_meta_lookup(w->meta, dir(w), name(w, n), &attr);

    return rc ? rc : mfs_meta_link(w->meta, attr.ino, dir(w), name(w, n), &attr);
}

/* What one may hear when others do the same at the same time. */
static bool is_expected(int rc)
{
    static const int codes[] = {0,     ENOENT, EEXIST,    ENOTDIR, EISDIR, ENOTEMPTY,
                                EPERM, ESTALE, ECANCELED, EBUSY,   EINVAL};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (rc == -codes[i])
            return true;
    return false;
}

static void *work(void *arg)
{
    static int (*const what[])(struct worker *) = {make, drop, move, change, hard_link};
    struct worker *w = arg;

    while (!atomic_load(&over)) {
        int rc = what[dice(w, sizeof what / sizeof *what)](w);

        if (!is_expected(rc) && atomic_fetch_add(&unexpected, 1) == 0)
            fprintf(stderr, "unexpected: %d\n", rc);
        atomic_fetch_add(&done, 1);
    }
    return NULL;
}

static void move_partition(uint32_t part)
{
    assert_int_equal(redis_fixture_migrate(redis, part), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mfs_store_set_table(client[i].store, redis_fixture_table(redis)), 0);
    mfs_clock_sleep(100 * MFS_MSEC);
    redis_fixture_release(redis);
}

static void test_replicas(void **state)
{
    struct worker w[THREADS];

    (void)state;
    assert_int_equal(meta_client_mkdir(&client[0], MFS_ROOT_INO, "dir", &dirs[1]), 0);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (struct worker){.meta = client[i % 2].meta, .seed = (uint64_t)i + 1};
        pthread_create(&w[i].thread, NULL, work, &w[i]);
    }
    for (uint32_t i = 0; i < MOVES; i++)
        move_partition(i % NPARTS);
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(w[i].thread, NULL);
    assert_int_equal(atomic_load(&unexpected), 0);
    assert_true(atomic_load(&done) > 0);
}

static int start(void **state)
{
    (void)state;
    return redis_fixture_start(&redis,
                               &(struct redis_fixture_opts){.nparts = NPARTS, .tcp = true}) ||
           meta_client_start_leased(&client[0], redis, 20 * MFS_SEC) ||
           meta_client_start_leased(&client[1], redis, 20 * MFS_SEC);
}

static int stop(void **state)
{
    (void)state;
    meta_client_stop(&client[0]);
    meta_client_stop(&client[1]);
    redis_fixture_stop(redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start, stop);
}
