/* ctest: threaded
 *
 * What a client knows of files under leases: no question is asked again, and nothing that has
 * changed is shown. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
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
#include "meta/internal.h"
#include "meta/session/session.h"
#include "meta_fixture.h"

#define ROOT MFS_ROOT_INO
#define TTL  (2 * MFS_SEC)

static struct meta_client a, b;

static int setup(void **state)
{
    (void)state;
    return meta_pair_start(&a, &b, TTL);
}

static int teardown(void **state)
{
    (void)state;
    meta_pair_stop(&a, &b);
    return 0;
}

/* --- changes -----------------------------------------------------------------------------------
 */

static void commit(struct meta_client *c, uint64_t ino, const char *text)
{
    struct mfs_part part = {.off = 0, .len = strlen(text), .p = text};
    struct mfs_commit change = {
        .end = strlen(text), .mtime = mfs_clock_real(), .parts = &part, .nparts = 1};
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_commit(c->meta, ino, &change, NULL, &attr), 0);
    mfs_meta_settle(c->meta, ino);
}

static void set_mode(struct meta_client *c, uint64_t ino, mode_t mode)
{
    struct mfs_attr attr = {.mode = mode};

    assert_int_equal(mfs_meta_setattr(c->meta, ino, MFS_SET_MODE, &attr, NULL), 0);
}

static void rename_to(struct meta_client *c, const char *from, const char *to, unsigned flags)
{
    assert_int_equal(mfs_meta_rename(c->meta, ROOT, from, ROOT, to, flags), 0);
}

/* --- what is seen ------------------------------------------------------------------------------
 */

static bool asks(struct meta_client *c, const char *name)
{
    uint64_t before = meta_client_round_trips(c);
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_lookup(c->meta, ROOT, name, &attr), 0);
    assert_false(attr.leased); /* that is for the kernel, of directories */
    return meta_client_round_trips(c) > before;
}

/* c has a lease of it from now on; again if a notice that was sent twice came in between. */
static void learn(struct meta_client *c, const char *name)
{
    for (unsigned i = 0; asks(c, name); i++)
        assert_true(i < 20);
}

/* What c says of the name is what the partitions say. */
static void check(struct meta_client *c, const char *name)
{
    struct mfs_attr seen, now;
    uint64_t ino;

    assert_int_equal(mfs_meta_lookup(c->meta, ROOT, name, &seen), 0);
    ino = seen.ino;
    assert_int_equal(mfs_meta_getattr(a.meta, ino, &now), 0);
    assert_memory_equal(&seen, &now, sizeof now);
    assert_int_equal(mfs_meta_getattr_leased(c->meta, ino, &seen), 0);
    assert_memory_equal(&seen, &now, sizeof now);
}

static void check_gone(struct meta_client *c, const char *name)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_lookup(c->meta, ROOT, name, &attr), -ENOENT);
}

/* Changes by `by`, each after `c` has learned what was before. */
static void content(struct meta_client *by, struct meta_client *c)
{
    uint64_t ino, off, number;
    struct mfs_cut cut = {0};
    struct mfs_attr attr;

    assert_int_equal(meta_client_file(&a, ROOT, "f", &ino), 0);
    learn(c, "f");
    commit(by, ino, "content");
    check(c, "f");
    learn(c, "f");
    assert_int_equal(mfs_meta_truncate(by->meta, ino, 3, 0, 0, NULL, &attr), 0);
    mfs_meta_settle(by->meta, ino);
    check(c, "f");
    learn(c, "f");
    assert_int_equal(mfs_meta_append(by->meta, ino, "more", 4, 0, &off, &number, NULL, &attr), 0);
    mfs_meta_settle(by->meta, ino);
    check(c, "f");
    learn(c, "f");
    assert_int_equal(mfs_meta_open(by->meta, ino, &cut, &attr, NULL), 0);
    mfs_meta_settle(by->meta, ino);
    check(c, "f");
    mfs_meta_close(by->meta, ino, true);
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
}

static void attributes(struct meta_client *by, struct meta_client *c)
{
    uint64_t ino;

    assert_int_equal(meta_client_file(&a, ROOT, "f", &ino), 0);
    learn(c, "f");
    set_mode(by, ino, 0600);
    check(c, "f");
    learn(c, "f");
    assert_int_equal(mfs_meta_setxattr(by->meta, ino, "user.x", "y", 1, 0, false, NULL), 0);
    check(c, "f");
    learn(c, "f");
    assert_int_equal(mfs_meta_removexattr(by->meta, ino, "user.x", NULL), 0);
    check(c, "f");
    assert_int_equal(mfs_meta_unlink(a.meta, ROOT, "f"), 0);
    check_gone(c, "f");
}

/* A second name at each partition. */
static void links(struct meta_client *by, struct meta_client *c)
{
    struct mfs_attr attr;
    uint64_t ino;
    char name[16];

    assert_int_equal(meta_client_file(&a, ROOT, "f", &ino), 0);
    for (uint32_t part = 0; part < META_REDIS_PARTS; part++) {
        meta_name_at(&a, ROOT, part, "g", name, sizeof name);
        learn(c, "f");
        assert_int_equal(mfs_meta_link(by->meta, ino, ROOT, name, &attr), 0);
        check(c, "f");
        check(c, name);
        learn(c, "f");
        assert_int_equal(mfs_meta_unlink(by->meta, ROOT, name), 0);
        check(c, "f");
        check_gone(c, name);
    }
    learn(c, "f");
    assert_int_equal(mfs_meta_unlink(by->meta, ROOT, "f"), 0);
    check_gone(c, "f");
}

/* Between all pairs of partitions: moved to a free name, over another file, exchanged. */
static void renames(struct meta_client *by, struct meta_client *c)
{
    char from[16], to[16];
    uint64_t ino, other;

    for (uint32_t i = 0; i < META_REDIS_PARTS * META_REDIS_PARTS; i++) {
        meta_name_at(&a, ROOT, i % META_REDIS_PARTS, "f", from, sizeof from);
        meta_name_at(&a, ROOT, i / META_REDIS_PARTS, "t", to, sizeof to);
        assert_int_equal(meta_client_file(&a, ROOT, from, &ino), 0);
        learn(c, from);
        rename_to(by, from, to, 0);
        check_gone(c, from);
        check(c, to);
        assert_int_equal(meta_client_file(&a, ROOT, from, &other), 0);
        learn(c, from);
        mfs_meta_lookup(c->meta, ROOT, to, &(struct mfs_attr){0});
        rename_to(by, from, to, RENAME_EXCHANGE);
        check(c, from);
        check(c, to);
        assert_int_equal(meta_client_ino(c, ROOT, from), ino);
        rename_to(by, from, to, 0);
        check_gone(c, from);
        check(c, to);
        assert_int_equal(meta_client_ino(c, ROOT, to), ino);
        assert_int_equal(mfs_meta_unlink(by->meta, ROOT, to), 0);
        check_gone(c, to);
    }
}

static void test_others(void **state)
{
    (void)state;
    content(&a, &b);
    attributes(&a, &b);
    links(&a, &b);
    renames(&a, &b);
}

static void test_own(void **state)
{
    (void)state;
    content(&b, &b);
    attributes(&b, &b);
    links(&b, &b);
    renames(&b, &b);
}

/* Who made it and writes it goes on to know it. */
static void test_made(void **state)
{
    struct mfs_new new = {.mode = S_IFREG | 0644};
    struct mfs_attr attr;
    bool created;

    (void)state;
    assert_int_equal(mfs_meta_create_open(b.meta, ROOT, "f", &new, true, &attr, &created), 0);
    assert_false(asks(&b, "f"));
    commit(&b, attr.ino, "content");
    assert_false(asks(&b, "f"));
    mfs_meta_close(b.meta, attr.ino, true);
    check(&b, "f");
    set_mode(&a, attr.ino, 0600);
    check(&b, "f");
}

static void test_atime(void **state)
{
    struct mfs_attr attr, seen;
    uint64_t ino;

    (void)state;
    assert_int_equal(meta_client_file(&a, ROOT, "f", &ino), 0);
    learn(&b, "f");
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &attr), 0);
    mfs_meta_touch_atime(b.meta, ino, &attr);
    assert_false(asks(&b, "f"));
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &seen), 0);
    assert_int_equal(mfs_timespec_cmp(seen.atime, attr.atime), 0);
}

/* A client that may have been taken for dead asks; one that was keeps nothing. */
static void test_silent(void **state)
{
    uint64_t ino;

    (void)state;
    assert_int_equal(meta_client_file(&a, ROOT, "f", &ino), 0);
    learn(&b, "f");
    b.meta->refreshed_at = mfs_clock_mono() - TTL;
    assert_true(asks(&b, "f"));
    mfs_session_tick(b.meta);
    learn(&b, "f");
    meta_client_alive(&b, false);
    set_mode(&a, ino, 0600);
    mfs_session_tick(b.meta);
    check(&b, "f");
}

/* An answer from before a change tells nothing after it. */
static void test_overtaken(void **state)
{
    int64_t before = mfs_clock_mono();
    struct mfs_attr attr;
    uint64_t ino;

    (void)state;
    assert_int_equal(meta_client_file(&a, ROOT, "f", &ino), 0);
    learn(&b, "f");
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &attr), 0);
    mfs_filecache_revoke(b.meta->files, ino);
    mfs_filecache_put(b.meta->files, ROOT, "f", &attr, before);
    assert_true(asks(&b, "f"));
    before = mfs_clock_mono();
    attr.version++;
    mfs_filecache_update(b.meta->files, &attr, before);
    assert_false(asks(&b, "f"));
    attr.version--;
    mfs_filecache_put(b.meta->files, ROOT, "f", &attr, before);
    assert_true(asks(&b, "f"));
}

/* Of two answers that overtook each other neither is kept. */
static void test_unordered(void **state)
{
    int64_t before = mfs_clock_mono();
    struct mfs_attr attr;
    uint64_t ino;

    (void)state;
    assert_int_equal(meta_client_file(&a, ROOT, "f", &ino), 0);
    learn(&b, "f");
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, "f", &attr), 0);
    mfs_filecache_put(b.meta->files, ROOT, "f", &attr, before);
    assert_false(asks(&b, "f"));
    attr.mode ^= 1;
    mfs_filecache_put(b.meta->files, ROOT, "f", &attr, before);
    assert_true(asks(&b, "f"));
}

/* --- while others change -----------------------------------------------------------------------
 */

#define ROUNDS 400

static atomic_uint modes, sizes; /* that every client must see by now, or later ones */
static atomic_uint stale;        /* looks that did not */
static atomic_bool over;

static void *change_modes(void *ino)
{
    for (unsigned i = 1; i < ROUNDS; i++) {
        struct mfs_attr attr = {.mode = i};

        if (mfs_meta_setattr(a.meta, *(uint64_t *)ino, MFS_SET_MODE, &attr, NULL) == 0)
            atomic_store(&modes, i);
    }
    return NULL;
}

static void *change_sizes(void *ino)
{
    for (unsigned i = 1; i < ROUNDS; i++) {
        struct mfs_meta *meta = i % 2 ? a.meta : b.meta;
        struct mfs_commit change = {.end = i, .mtime = mfs_clock_real()};
        struct mfs_attr attr;

        if (mfs_meta_commit(meta, *(uint64_t *)ino, &change, NULL, &attr) < 0)
            continue;
        mfs_meta_settle(meta, *(uint64_t *)ino);
        atomic_store(&sizes, i);
    }
    return NULL;
}

static void *look(void *client)
{
    struct meta_client *c = client;
    struct mfs_attr attr;

    /* Also: who has seen a change does not unsee it. */
    while (!atomic_load(&over)) {
        unsigned mode = atomic_load(&modes), size = atomic_load(&sizes);

        if (mfs_meta_lookup(c->meta, ROOT, "f", &attr) < 0 || (attr.mode & 07777) < mode ||
            attr.size < size)
            atomic_fetch_add(&stale, 1);
        mode = attr.mode & 07777;
        if (mfs_meta_getattr_leased(c->meta, attr.ino, &attr) < 0 || (attr.mode & 07777) < mode)
            atomic_fetch_add(&stale, 1);
    }
    return NULL;
}

static void test_race(void **state)
{
    pthread_t changer[2], looker[4];
    uint64_t ino;

    (void)state;
    assert_int_equal(meta_client_file(&a, ROOT, "f", &ino), 0);
    set_mode(&a, ino, 0);
    for (int i = 0; i < 4; i++)
        pthread_create(&looker[i], NULL, look, i % 2 ? &a : &b);
    pthread_create(&changer[0], NULL, change_modes, &ino);
    pthread_create(&changer[1], NULL, change_sizes, &ino);
    for (int i = 0; i < 2; i++)
        pthread_join(changer[i], NULL);
    atomic_store(&over, true);
    for (int i = 0; i < 4; i++)
        pthread_join(looker[i], NULL);
    assert_int_equal(atomic_load(&stale), 0);
    assert_int_equal(atomic_load(&modes), ROUNDS - 1);
    assert_int_equal(atomic_load(&sizes), ROUNDS - 1);
    check(&b, "f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_made, setup, teardown),
        cmocka_unit_test_setup_teardown(test_atime, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overtaken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unordered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_race, setup, teardown),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
