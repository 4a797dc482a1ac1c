/* ctest: threaded timeout=120 waits
 *
 * Files that were moved or linked, so that a name's partition is not the inode's home: a rename
 * takes two round trips, its source entry goes later, and what is known under leases of the new
 * name is as good as of any other. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "meta/cache/cache.h"
#include "meta/deferred/deferred.h"
#include "meta/internal.h"
#include "meta/ops/ops.h"
#include "meta_fixture.h"

#define ROOT  MFS_ROOT_INO
#define PARTS META_REDIS_PARTS

static struct meta_client a, b;

static int setup(void **state)
{
    (void)state;
    return meta_pair_start(&a, &b, 2 * MFS_SEC);
}

static int teardown(void **state)
{
    (void)state;
    mfs_store_set_fault(a.store, NULL, NULL);
    meta_pair_stop(&a, &b);
    return 0;
}

static void name_at(uint32_t part, const char *prefix, char out[32])
{
    meta_name_at(&a, ROOT, part, prefix, out, 32);
}

static uint64_t new_file(struct meta_client *c, const char *name)
{
    uint64_t ino = 0;

    assert_int_equal(meta_client_file(c, ROOT, name, &ino), 0);
    return ino;
}

static int move(struct meta_client *c, const char *from, const char *to)
{
    return mfs_meta_rename(c->meta, ROOT, from, ROOT, to, 0);
}

#define assert_trips(n, expr)                                                                      \
    do {                                                                                           \
        uint32_t before_ = meta_own_round_trips();                                                 \
        assert_int_equal(expr, 0);                                                                 \
        assert_int_equal(meta_own_round_trips() - before_, n);                                     \
    } while (0)

/* c knows it without asking, and what it says is what the partitions say. */
static void assert_known(struct meta_client *c, const char *name, uint64_t ino)
{
    struct mfs_attr seen, now;

    assert_trips(0, mfs_meta_lookup(c->meta, ROOT, name, &seen));
    assert_int_equal(seen.ino, ino);
    assert_int_equal(mfs_meta_getattr(c == &a ? b.meta : a.meta, ino, &now), 0);
    assert_memory_equal(&seen, &now, sizeof now);
}

static void learn(struct meta_client *c, const char *name, uint64_t ino)
{
    for (unsigned i = 0; i < 20; i++) {
        uint32_t before = meta_own_round_trips();

        assert_int_equal(meta_client_ino(c, ROOT, name), ino);
        if (meta_own_round_trips() == before)
            return;
    }
    fail_msg("%s does not become known", name);
}

/* What is told later, is. */
static void told_all(struct meta_client *c)
{
    mfs_settles_flush(c->meta);
    mfs_link_counts_flush(c->meta);
    mfs_store_drain(c->store, 5 * MFS_SEC);
}

/* Every partition may have names; and nothing is told meanwhile, which would count as round trips.
 */
static void spread_everywhere(void)
{
    mfs_ticker_stop(&a.meta->closes_ticker);
    mfs_ticker_stop(&a.meta->parents_ticker);
    mfs_ticker_stop(&b.meta->closes_ticker);
    mfs_ticker_stop(&b.meta->parents_ticker);
    for (uint32_t p = 0; p < PARTS; p++)
        assert_int_equal(mfs_meta_spread(a.meta, ROOT, p), 0);
}

/* Home, source and target at any partitions. */
static void test_round_trips(void **state)
{
    char first[32], from[32], to[32];
    uint64_t ino;

    (void)state;
    spread_everywhere();
    for (uint32_t i = 0; i < PARTS * PARTS * PARTS; i++) {
        uint32_t home = i % PARTS, source = i / PARTS % PARTS, target = i / PARTS / PARTS;

        name_at(home, "h", first);
        name_at(source, "f", from);
        name_at(target, "t", to);
        ino = new_file(&a, first);
        learn(&a, first, ino);
        assert_trips(home == source ? 1 : 2, move(&a, first, from));
        assert_known(&a, from, ino);
        assert_trips(source == target ? 1 : 2, move(&a, from, to));
        assert_known(&a, to, ino);
        assert_int_equal(meta_client_ino(&a, ROOT, from), -ENOENT);
        assert_int_equal(meta_client_ino(&b, ROOT, from), -ENOENT);
        if (i % 8 == 0) {
            learn(&b, to, ino);
            assert_known(&b, to, ino);
        }
        assert_trips((home == target ? 1 : 2) + (i % 8 == 0 ? 1 : 0),
                     mfs_meta_unlink(a.meta, ROOT, to));
        assert_int_equal(meta_client_ino(&b, ROOT, to), -ENOENT);
    }
    told_all(&a);
    assert_int_equal(meta_client_keys(&a, "T*"), 0);
    assert_int_equal(meta_client_keys(&a, "#intents"), 0);
    assert_int_equal(meta_client_keys(&a, "I*"), 1);
}

/* The old name may be used again at once, in the same round trips. */
static void test_name_again(void **state)
{
    struct mfs_new file = {.mode = S_IFREG | 0644};
    struct mfs_attr attr;
    char from[32], to[32];
    uint64_t ino, second;
    bool created;

    (void)state;
    spread_everywhere();
    name_at(1, "f", from);
    name_at(2, "t", to);
    ino = new_file(&a, from);
    assert_int_equal(move(&a, from, to), 0);
    assert_trips(1, mfs_meta_create_open(a.meta, ROOT, from, &file, true, &attr, &created));
    second = attr.ino;
    mfs_meta_close(a.meta, second, false);
    assert_int_equal(meta_client_ino(&b, ROOT, from), second);
    assert_int_equal(meta_client_ino(&b, ROOT, to), ino);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, to), 0);
    learn(&a, from, second);
    assert_trips(2, move(&a, from, to));
    assert_int_equal(meta_client_ino(&b, ROOT, to), second);
    assert_trips(2, move(&a, to, from)); /* back */
    assert_int_equal(meta_client_ino(&b, ROOT, from), second);
    assert_int_equal(meta_client_ino(&b, ROOT, to), -ENOENT);
    assert_int_equal(mfs_meta_link(a.meta, second, ROOT, to, &attr), 0);
    assert_int_equal(meta_client_ino(&b, ROOT, to), second);
    told_all(&a);
    assert_int_equal(meta_client_keys(&a, "T*"), 0);
    assert_int_equal(meta_client_keys(&a, "#intents"), 0);
}

/* Others meet what is left: create the old name, remove the directory, list it. */
static void test_others_meet_it(void **state)
{
    struct mfs_listing *l;
    char from[32], to[32];
    uint64_t ino, d;

    (void)state;
    assert_int_equal(meta_client_mkdir(&a, ROOT, "d", &d), 0);
    name_at(2, "t", to);
    for (int i = 0; i < 3; i++) {
        meta_name_at(&a, d, 1, "f", from, sizeof from);
        assert_int_equal(meta_client_file(&a, d, from, &ino), 0);
        assert_int_equal(mfs_meta_rename(a.meta, d, from, ROOT, to, 0), 0);
        assert_int_equal(meta_client_ino(&b, d, from), -ENOENT);
        assert_int_equal(mfs_meta_list(b.meta, d, &l), 0);
        assert_int_equal(mfs_listing_count(l), 2);
        mfs_listing_free(l);
        if (i == 0) {
            assert_int_equal(meta_client_file(&b, d, from, NULL), 0);
            assert_int_equal(mfs_meta_unlink(b.meta, d, from), 0);
        } else if (i == 1) {
            assert_int_equal(mfs_meta_rmdir(b.meta, ROOT, "d"), 0);
            assert_int_equal(meta_client_mkdir(&a, ROOT, "d", &d), 0);
        }
        assert_int_equal(meta_client_ino(&b, ROOT, to), ino);
    }
    assert_int_equal(mfs_meta_rmdir(a.meta, ROOT, "d"), 0);
    told_all(&a);
    mfs_store_drain(b.store, MFS_SEC);
    assert_int_equal(meta_client_keys(&a, "#intents"), 0);
}

/* Many have been moved out of a directory, which is empty then: whatever is left of them, of any
 * number and at any partition, keeps it from neither its removal nor its replacement. */
static uint64_t moved_out(const char *dir, char first[32])
{
    static unsigned number;
    char from[32], to[32], prefix[16];
    uint64_t d, ino;

    assert_int_equal(meta_client_mkdir(&a, ROOT, dir, &d), 0);
    for (uint32_t i = 0; i < 48; i++) {
        snprintf(prefix, sizeof prefix, "m%u-", number++);
        meta_name_at(&a, d, i < 24 ? mfs_placement_home(d) : i % PARTS, prefix, from, sizeof from);
        name_at((i + 1) % PARTS, prefix, to);
        assert_int_equal(meta_client_file(&a, d, from, &ino), 0);
        assert_int_equal(mfs_meta_rename(a.meta, d, from, ROOT, to, 0), 0);
        if (i == 0)
            snprintf(first, 32, "%s", from);
    }
    return d;
}

static void test_many_left_over(void **state)
{
    struct meta_client *both[] = {&a, &b};
    char name[32], dir[16];
    uint64_t d;

    (void)state;
    mfs_ticker_stop(&a.meta->closes_ticker);
    for (int i = 0; i < 2; i++) {
        struct meta_client *c = both[i];

        snprintf(dir, sizeof dir, "d%d", i);
        moved_out(dir, name);
        assert_int_equal(mfs_meta_rmdir(c->meta, ROOT, dir), 0);
        d = moved_out(dir, name);
        assert_int_equal(meta_client_file(&b, d, name, NULL), 0);
        assert_int_equal(mfs_meta_rmdir(c->meta, ROOT, dir), -ENOTEMPTY);
        assert_int_equal(mfs_meta_unlink(b.meta, d, name), 0);
        assert_int_equal(meta_client_mkdir(&b, ROOT, "e", NULL), 0);
        assert_int_equal(mfs_meta_rename(c->meta, ROOT, "e", ROOT, dir, 0), 0);
        assert_int_equal(meta_client_ino(&a, d, name), -ENOENT);
        assert_int_equal(mfs_meta_rmdir(a.meta, ROOT, dir), 0);
    }
    told_all(&a);
    told_all(&b);
    assert_int_equal(meta_client_keys(&a, "#intents"), 0);
    assert_int_equal(meta_client_keys(&a, "T*"), 0);
    assert_int_equal(meta_client_keys(&a, "I*"), 1 + 4 * 48);
}

/* Many are cleared away before their time. */
static void test_many(void **state)
{
    char from[32], to[32], prefix[16];

    (void)state;
    for (int i = 0; i < 200; i++) {
        snprintf(prefix, sizeof prefix, "f%d-", i);
        name_at(1, prefix, from);
        snprintf(prefix, sizeof prefix, "t%d-", i);
        name_at(2, prefix, to);
        new_file(&a, from);
        assert_int_equal(move(&a, from, to), 0);
        assert_int_equal(meta_client_ino(&b, ROOT, from), -ENOENT);
    }
    for (int i = 0; meta_client_keys(&b, "T*") > 64; i++) {
        assert_true(i < 1000);
        mfs_clock_sleep(10 * MFS_MSEC);
    }
}

/* Both change each what the other knows of a name whose inode is elsewhere. */
static void test_coherent(void **state)
{
    struct meta_client *both[] = {&a, &b};
    struct mfs_attr attr;
    char first[32], from[32], to[32];
    uint64_t ino, other;

    (void)state;
    for (uint32_t i = 0; i < 2 * PARTS; i++) {
        struct meta_client *by = both[i % 2], *c = both[1 - i % 2];

        name_at(3, "h", first);
        name_at(1, "f", from);
        name_at(i / 2, "t", to);
        ino = new_file(by, first);
        learn(by, first, ino);
        assert_int_equal(move(by, first, from), 0);
        learn(c, from, ino);
        attr.mode = 0600 + i;
        assert_int_equal(mfs_meta_setattr(by->meta, ino, MFS_SET_MODE, &attr, NULL), 0);
        assert_int_equal(mfs_meta_lookup(c->meta, ROOT, from, &attr), 0);
        assert_int_equal(attr.mode & 07777, 0600 + i);
        learn(c, from, ino);
        assert_int_equal(move(by, from, to), 0);
        assert_int_equal(meta_client_ino(c, ROOT, from), -ENOENT);
        learn(c, to, ino);
        assert_int_equal(mfs_meta_link(by->meta, ino, ROOT, from, &attr), 0);
        learn(c, from, ino);
        learn(c, to, ino);
        assert_known(by, from, ino);
        assert_int_equal(mfs_meta_unlink(by->meta, ROOT, from), 0);
        assert_int_equal(meta_client_ino(c, ROOT, from), -ENOENT);
        assert_known(by, to, ino);
        learn(c, to, ino);
        other = new_file(by, from);
        learn(c, from, other);
        assert_int_equal(mfs_meta_rename(by->meta, ROOT, from, ROOT, to, RENAME_EXCHANGE), 0);
        assert_int_equal(meta_client_ino(c, ROOT, from), ino);
        assert_int_equal(meta_client_ino(c, ROOT, to), other);
        learn(c, from, ino);
        learn(c, to, other);
        assert_int_equal(move(by, to, from), 0);
        assert_int_equal(meta_client_ino(c, ROOT, to), -ENOENT);
        assert_int_equal(meta_client_ino(c, ROOT, from), other);
        assert_int_equal(mfs_meta_getattr(c->meta, ino, &attr), -ESTALE);
        assert_int_equal(mfs_meta_unlink(by->meta, ROOT, from), 0);
    }
}

/* What is open only by a lease outlives its last name, which was elsewhere. */
static void test_open(void **state)
{
    struct mfs_attr attr;
    char first[32], name[32];
    uint64_t ino;

    (void)state;
    name_at(3, "h", first);
    name_at(1, "f", name);
    ino = new_file(&a, first);
    assert_int_equal(move(&a, first, name), 0);
    learn(&b, name, ino);
    assert_trips(0, mfs_meta_open(b.meta, ino, NULL, &attr, NULL));
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, name), 0);
    assert_int_equal(mfs_meta_getattr(b.meta, ino, &attr), 0);
    assert_int_equal(attr.nlink, 0);
    assert_int_equal(mfs_meta_close(b.meta, ino, true), 0);
    assert_int_equal(mfs_meta_getattr(b.meta, ino, &attr), -ESTALE);
}

/* A rename that is refused by the target's partition has changed nothing that others know. */
static void test_refused(void **state)
{
    struct mfs_attr seen, now;
    char from[32], to[32];
    uint64_t ino;

    (void)state;
    name_at(1, "f", from);
    name_at(2, "t", to);
    ino = new_file(&a, from);
    new_file(&a, to);
    learn(&b, from, ino);
    assert_int_equal(mfs_meta_rename(a.meta, ROOT, from, ROOT, to, RENAME_NOREPLACE), -EEXIST);
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, from, &seen), 0);
    assert_int_equal(mfs_meta_getattr(a.meta, ino, &now), 0);
    assert_memory_equal(&seen, &now, sizeof now);
}

/* The maker dies with source entries that are yet to follow: others see the new names at once, and
 * housekeeping clears them away. */
static int dead(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg, (void)part, (void)argv, (void)argc;
    return -EIO;
}

static void test_maker_dies(void **state)
{
    char from[32], to[32];
    uint64_t ino;

    (void)state;
    mfs_ticker_stop(&a.meta->chores_ticker);
    name_at(1, "f", from);
    name_at(2, "t", to);
    ino = new_file(&a, from);
    learn(&b, from, ino);
    assert_int_equal(move(&a, from, to), 0);
    mfs_store_set_fault(a.store, dead, NULL);
    meta_client_alive(&a, false);
    assert_int_equal(meta_client_ino(&b, ROOT, from), -ENOENT);
    assert_int_equal(meta_client_ino(&b, ROOT, to), ino);
    b.meta->limits.intent_seconds = -1;
    b.meta->limits.chores_ms = 1;
    mfs_clock_sleep(3 * MFS_MSEC);
    mfs_chores_all(b.meta);
    mfs_store_drain(b.store, MFS_SEC);
    assert_int_equal(meta_client_keys(&b, "#intents"), 0);
    assert_int_equal(meta_client_keys(&b, "T*"), 0);
    mfs_store_set_fault(a.store, NULL, NULL);
    mfs_settles_flush(a.meta); /* late: nothing is left for it to do */
    assert_int_equal(meta_client_ino(&b, ROOT, to), ino);
    assert_int_equal(meta_client_file(&b, ROOT, from, NULL), 0);
}

/* --- killed before each command ----------------------------------------------------------------
 */

static struct meta_client victim;
static struct {
    pthread_t thread;
    unsigned at, count;
    atomic_bool dead; /* the victim's other threads look, too */
} death;

static int die(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg, (void)part, (void)argv, (void)argc;
    if (pthread_equal(pthread_self(), death.thread) && death.count++ >= death.at)
        death.dead = true;
    return death.dead ? -EIO : 0;
}

static int unlink_from(struct meta_client *c, const char *from, const char *to)
{
    (void)to;
    return mfs_meta_unlink(c->meta, ROOT, from);
}

/* What b finds when it has cleared up: the file has one of its names, or none after an unlink, and
 * counts it. */
static void check_after_death(uint64_t ino, const char *from, const char *to, bool removed)
{
    int64_t at_from, at_to;
    struct mfs_attr attr;
    int names, rc;

    mfs_clock_sleep(3 * MFS_MSEC);
    for (int i = 0; i < 2; i++) {
        mfs_chores_all(b.meta);
        mfs_store_drain(b.store, MFS_SEC);
        mfs_clock_sleep(3 * MFS_MSEC);
    }
    assert_int_equal(meta_client_keys(&b, "#intents"), 0);
    mfs_filecache_revoke(b.meta->files, 0);
    at_from = meta_client_ino(&b, ROOT, from);
    at_to = meta_client_ino(&b, ROOT, to);
    names = (at_from == (int64_t)ino) + (at_to == (int64_t)ino);
    rc = mfs_meta_getattr(b.meta, ino, &attr);
    assert_true(names == 1 || (names == 0 && removed));
    assert_int_equal(rc, names == 1 ? 0 : -ESTALE);
    if (names == 1)
        assert_int_equal(attr.nlink, 1);
    if (at_from >= 0)
        assert_int_equal(mfs_meta_unlink(b.meta, ROOT, from), 0);
    if (at_to >= 0)
        assert_int_equal(mfs_meta_unlink(b.meta, ROOT, to), 0);
    mfs_link_counts_flush(b.meta);
}

/* Home, source and target, where there is a file already, are three partitions; b knows all names.
 * False: it needs no more commands than that. */
static bool perish(int (*op)(struct meta_client *, const char *, const char *), unsigned n)
{
    char first[32], from[32], to[32];
    uint64_t ino;

    name_at(3, "h", first);
    name_at(1, "f", from);
    name_at(2, "t", to);
    assert_int_equal(meta_client_start_leased(&victim, meta_redis, 400 * MFS_MSEC), 0);
    ino = new_file(&a, first);
    new_file(&a, to);
    assert_int_equal(move(&a, first, from), 0);
    mfs_settles_flush(a.meta);
    meta_client_ino(&victim, ROOT, from);
    meta_client_ino(&b, ROOT, from);
    meta_client_ino(&b, ROOT, to);
    death.thread = pthread_self();
    death.at = n;
    death.count = 0;
    death.dead = false;
    mfs_store_set_fault(victim.store, die, NULL);
    op(&victim, from, to);
    mfs_store_drain(victim.store, MFS_SEC);
    mfs_store_set_fault(victim.store, NULL, NULL);
    meta_client_kill(&victim);
    check_after_death(ino, from, to, op == unlink_from);
    return death.dead;
}

static void test_killed(void **state)
{
    (void)state;
    mfs_ticker_stop(&a.meta->chores_ticker); /* partitions let b look whenever it wants to */
    b.meta->limits.intent_seconds = -1;
    b.meta->limits.chores_ms = 1;
    for (unsigned n = 0; perish(move, n); n++)
        assert_true(n < 30);
    for (unsigned n = 0; perish(unlink_from, n); n++)
        assert_true(n < 30);
}

/* --- races -------------------------------------------------------------------------------------
 */

#define ROUNDS 50

static atomic_uint moves;

/* Moves the file on from wherever it is; each move is somebody's. */
static void *mover(void *client)
{
    struct meta_client *c = client;
    char name[PARTS][32];

    for (uint32_t p = 0; p < PARTS; p++)
        name_at(p, "r", name[p]);
    for (unsigned i = 0; i < ROUNDS; i++)
        for (uint32_t p = 0; p < PARTS; p++)
            if (!move(c, name[p], name[(p + 1) % PARTS]))
                atomic_fetch_add(&moves, 1);
    return NULL;
}

static void test_race(void **state)
{
    pthread_t thread[4];
    char name[32];
    unsigned names = 0;
    uint64_t ino;

    (void)state;
    name_at(0, "r", name);
    ino = new_file(&a, name);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, mover, i % 2 ? &a : &b);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (uint32_t p = 0; p < PARTS; p++) {
        int64_t found;

        name_at(p, "r", name);
        found = meta_client_ino(&a, ROOT, name);
        assert_int_equal(found, meta_client_ino(&b, ROOT, name));
        names += found == (int64_t)ino;
    }
    assert_int_equal(names, 1);
    assert_true(moves >= ROUNDS);
    told_all(&a);
    told_all(&b);
    assert_int_equal(meta_client_keys(&a, "#intents"), 0);
    assert_int_equal(meta_client_keys(&a, "T*"), 0);
}

/* --- another client, before a command ----------------------------------------------------------
 */

static struct {
    pthread_t thread;
    const char *command;
    void (*others)(void);
    uint64_t ino;
    char from[32], to[32], moved[32], other[32];
    int64_t asked;
} cut;

static int interrupt(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    void (*others)(void) = cut.others;

    (void)arg, (void)part, (void)argc;
    if (!pthread_equal(pthread_self(), cut.thread) || !others ||
        argv[0].len != strlen(cut.command) || memcmp(argv[0].p, cut.command, argv[0].len) != 0)
        return 0;
    cut.others = NULL;
    others();
    return 0;
}

static void cut_before(const char *command, void (*others)(void))
{
    cut.thread = pthread_self();
    cut.command = command;
    cut.others = others;
    mfs_store_set_fault(a.store, interrupt, NULL);
}

static void was_cut(void)
{
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_null(cut.others);
}

/* A rename that has begun, and waits. */
static struct {
    pthread_t thread;
    sem_t begun, go;
    atomic_bool met;
} earlier;

static int wait_once(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)arg, (void)part, (void)argc;
    if (argv[0].len != strlen("mfs_rename_begin") ||
        memcmp(argv[0].p, "mfs_rename_begin", argv[0].len) != 0 || earlier.met)
        return 0;
    earlier.met = true;
    sem_post(&earlier.begun);
    sem_wait(&earlier.go);
    return 0;
}

static void *move_earlier(void *arg)
{
    (void)arg;
    return (void *)(intptr_t)move(&b, cut.from, cut.moved);
}

static void begin_earlier(void)
{
    earlier.met = false;
    sem_init(&earlier.begun, 0, 0);
    sem_init(&earlier.go, 0, 0);
    mfs_store_set_fault(b.store, wait_once, NULL);
    assert_int_equal(pthread_create(&earlier.thread, NULL, move_earlier, NULL), 0);
    sem_wait(&earlier.begun);
}

static void change_names(void)
{
    void *rc = NULL;

    sem_post(&earlier.go);
    pthread_join(earlier.thread, &rc);
    mfs_store_set_fault(b.store, NULL, NULL);
    assert_null(rc);
    assert_int_equal(move(&b, cut.other, cut.from), 0);
    learn(&b, cut.moved, cut.ino);
}

/* A rename tells the home of the file that it knows under the name, which is another one's when it
 * comes there: that file has another ctime then, and those that know it learn of that. */
static void test_name_changes(void **state)
{
    struct mfs_attr seen, now;
    char first[32];
    uint64_t other;

    (void)state;
    name_at(3, "h", first);
    name_at(1, "f", cut.from);
    name_at(1, "t", cut.to);
    name_at(0, "m", cut.moved);
    name_at(2, "o", cut.other);
    cut.ino = new_file(&a, first);
    other = new_file(&a, cut.other);
    assert_int_equal(move(&a, first, cut.from), 0);
    learn(&a, cut.from, cut.ino);
    begin_earlier();
    cut_before("mfs_rename", change_names);
    assert_int_equal(move(&a, cut.from, cut.to), 0);
    was_cut();
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, cut.moved, &seen), 0);
    assert_int_equal(seen.ino, cut.ino);
    assert_int_equal(mfs_meta_getattr(a.meta, cut.ino, &now), 0);
    assert_memory_equal(&seen, &now, sizeof now);
    assert_int_equal(meta_client_ino(&b, ROOT, cut.to), other);
    assert_int_equal(meta_client_ino(&b, ROOT, cut.from), -ENOENT);
}

/* The answer to this client's own link of the name comes only now. */
static void add_late(void)
{
    mfs_filecache_add_name(a.meta->files, ROOT, cut.from, cut.ino, cut.asked);
}

/* A name that this client has removed stays so, while the file goes on to be known, whatever had
 * been asked for before comes meanwhile. */
static void test_late_answers(void **state)
{
    char first[32];
    struct mfs_attr attr;

    (void)state;
    name_at(3, "h", first);
    name_at(1, "f", cut.from);
    name_at(2, "t", cut.to);
    cut.ino = new_file(&a, first);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mfs_meta_link(a.meta, cut.ino, ROOT, cut.from, &attr), 0);
        learn(&a, first, cut.ino);
        learn(&a, cut.from, cut.ino);
        cut.asked = mfs_clock_mono();
        cut_before("mfs_unref", add_late);
        assert_int_equal(mfs_meta_unlink(a.meta, ROOT, cut.from), 0);
        was_cut();
        assert_int_equal(meta_client_ino(&a, ROOT, cut.from), -ENOENT);
        assert_known(&a, first, cut.ino);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(test_round_trips),  TEST(test_name_again),     TEST(test_others_meet_it),
        TEST(test_many),         TEST(test_coherent),       TEST(test_open),
        TEST(test_refused),      TEST(test_maker_dies),     TEST(test_killed),
        TEST(test_race),         TEST(test_many_left_over), TEST(test_name_changes),
        TEST(test_late_answers),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
