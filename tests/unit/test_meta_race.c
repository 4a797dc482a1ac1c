/* Threads of three clients do everything to few names at once, for thousands of rounds; then the
 * tree must be sound: link counts are names, no directory twice or in itself, no inode lost,
 * nothing left in #intents, #orphans, #moving. MFS_SEED=n and MFS_ROUNDS=n repeat and lengthen it.
 * ctest: timeout=300 threaded */
#include <errno.h>
#include <linux/fs.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <cmocka.h>

#include "base/log.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta_world.h"

#define NPARTS  4
#define CLIENTS 3
#define THREADS 6

static struct redis_fixture *redis;
static struct meta_client client[CLIENTS];
static uint64_t seed;
static unsigned rounds = 3000;

struct racer {
    pthread_t thread;
    struct meta_client *c;
    uint64_t state;
    unsigned done, odd; /* operations that did something; errors that cannot be */
};

static uint32_t dice(struct racer *r, uint32_t n)
{
    r->state = r->state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(r->state >> 33) % n;
}

static int make_directory(struct racer *r, uint64_t dir, const char *name, struct mfs_attr *attr)
{
    struct mfs_new new = {.mode = S_IFDIR | 0700};

    return mfs_meta_mknod(r->c->meta, dir, name, &new, attr);
}

/* The directory of a path of up to two directories, and a last name; some names are few. */
static int somewhere(struct racer *r, uint64_t *dir, char name[16])
{
    static const char *const dirs[] = {"a", "b", "c"}, *const names[] = {"a", "b", "c", "f", "g"};
    struct mfs_attr attr;

    *dir = MFS_ROOT_INO;
    for (uint32_t depth = dice(r, 3); depth > 0; depth--) {
        const char *below = dirs[dice(r, 3)];
        int rc = mfs_meta_lookup(r->c->meta, *dir, below, &attr);

        if (rc == -ENOENT && dice(r, 6) == 0)
            rc = make_directory(r, *dir, below, &attr);
        if (rc)
            return rc;
        if (!S_ISDIR(attr.mode))
            return -ENOTDIR;
        *dir = attr.ino;
    }
    snprintf(name, 16, "%s", names[dice(r, 5)]);
    return 0;
}

static int open_and_close(struct racer *r, uint64_t dir, const char *name)
{
    struct mfs_new new = {.mode = S_IFREG | 0600};
    struct mfs_attr attr;
    bool created;
    int rc = mfs_meta_create_open(r->c->meta, dir, name, &new, dice(r, 2), &attr, &created);

    if (rc || !S_ISREG(attr.mode))
        return rc;
    if (dice(r, 2))
        mfs_meta_unlink(r->c->meta, dir, name);
    rc = mfs_meta_getattr(r->c->meta, attr.ino, &attr);
    mfs_meta_close(r->c->meta, attr.ino, dice(r, 2));
    return rc; /* what is open is there */
}

static int list(struct racer *r, uint64_t dir)
{
    struct mfs_listing *l;
    int rc = mfs_meta_list(r->c->meta, dir, &l);

    if (!rc)
        mfs_listing_free(l);
    return rc == -ESTALE ? 0 : rc;
}

static int link_to(struct racer *r, uint64_t dir, const char *name, uint64_t to,
                   const char *to_name)
{
    struct mfs_attr attr;
    int rc = mfs_meta_lookup(r->c->meta, dir, name, &attr);

    if (!rc)
        rc = mfs_meta_link(r->c->meta, attr.ino, to, to_name, &attr);
    return rc == -ESTALE || rc == -EPERM ? 0 : rc;
}

static int something(struct racer *r)
{
    static const unsigned flags[] = {0, RENAME_WHITEOUT, RENAME_NOREPLACE, RENAME_EXCHANGE};
    uint64_t dir, to;
    char name[16], to_name[16];
    int rc = somewhere(r, &dir, name);

    if (!rc)
        rc = somewhere(r, &to, to_name);
    if (rc)
        return rc;
    switch (dice(r, 14)) {
    case 0:
        return meta_client_file(r->c, dir, name, NULL);
    case 1:
        return meta_client_mkdir(r->c, dir, name, NULL);
    case 2:
        return open_and_close(r, dir, name);
    case 3:
    case 7:
    case 8:
        return mfs_meta_unlink(r->c->meta, dir, name);
    case 4:
    case 9:
    case 10:
        return mfs_meta_rmdir(r->c->meta, dir, name);
    case 5:
        return link_to(r, dir, name, to, to_name);
    case 6:
        return list(r, dir);
    default: /* often */
        return meta_client_rename(r->c, dir, name, to, to_name, flags[dice(r, 4)]);
    }
}

static bool plausible(int rc)
{
    switch (rc) {
    case 0:
    case -ENOENT:
    case -EEXIST:
    case -ENOTDIR:
    case -EISDIR:
    case -ENOTEMPTY:
    case -EINVAL: /* a directory into itself */
        return true;
    default:
        return false;
    }
}

static void *race(void *arg)
{
    struct racer *r = arg;

    for (unsigned i = 0; i < rounds; i++) {
        int rc = something(r);

        r->done += rc == 0;
        if (!plausible(rc)) {
            fprintf(stderr, "an error that cannot be: %s\n", strerror(-rc));
            r->odd++;
        }
    }
    return NULL;
}

static bool anything_left(void)
{
    return meta_client_exists(&client[0], "#intents") ||
           meta_client_exists(&client[0], "#moving") || meta_client_exists(&client[0], "#orphans");
}

/* A client's own housekeeping, at most some seconds ago, keeps others from it for 4 s. */
static void settle(void)
{
    int64_t until = mfs_clock_mono() + 20 * MFS_SEC;

    for (int round = 0; round < 3 || (anything_left() && mfs_clock_mono() < until); round++) {
        for (int i = 0; i < CLIENTS; i++) {
            client[i].meta->limits.intent_seconds = -1;
            client[i].meta->limits.chores_ms = 1;
            mfs_closes_flush(client[i].meta);
            mfs_store_drain(client[i].store, 5 * MFS_SEC);
            mfs_chores_all(client[i].meta);
            mfs_clock_sleep(2 * MFS_MSEC);
        }
    }
}

static void test_race(void **state)
{
    struct racer racers[THREADS] = {0};
    unsigned done = 0;

    (void)state;
    meta_world_root(&client[0], MFS_ROOT_INO);
    for (unsigned i = 0; i < THREADS; i++) {
        racers[i].c = &client[i % CLIENTS];
        racers[i].state = seed * 1000003 + i;
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(racers[i].thread, NULL);
        assert_int_equal(racers[i].odd, 0);
        done += racers[i].done;
    }
    assert_true(done > rounds / 4);
    settle();
    assert_int_equal(meta_client_exists(&client[0], "#intents"), 0);
    assert_int_equal(meta_client_exists(&client[0], "#moving"), 0);
    assert_int_equal(meta_client_exists(&client[0], "#orphans"), 0);
    assert_int_equal(meta_world_check(&client[0], 0), 0);
    assert_int_equal(meta_world_remove(&client[1], 0), 0);
}

static int start_all(void **state)
{
    int rc = redis_fixture_start(&redis, &(struct redis_fixture_opts){.nparts = NPARTS});
    const char *given_seed = getenv("MFS_SEED"), *given_rounds = getenv("MFS_ROUNDS");

    (void)state;
    mfs_log_set_level(MFS_LOG_WARN);
    seed = given_seed ? strtoull(given_seed, NULL, 10) : (uint64_t)time(NULL);
    if (given_rounds)
        rounds = (unsigned)atoi(given_rounds);
    fprintf(stderr, "MFS_SEED=%llu\n", (unsigned long long)seed);
    for (int i = 0; i < CLIENTS && !rc; i++)
        rc = meta_client_start(&client[i], redis, 0);
    return rc;
}

static int stop_all(void **state)
{
    (void)state;
    for (int i = 0; i < CLIENTS; i++)
        meta_client_stop(&client[i]);
    redis_fixture_stop(redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_race),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
