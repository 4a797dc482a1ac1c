/* What the FUSE client remembers of what the kernel has been told: last attributes, attributes of
 * look-ups, directories' nodeids, sizes. The parts that need no mount.
 * ctest: threaded */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "fuse/kernel/replied.h"
#include "fuse/kernel/nodeids.h"
#include "fuse/kernel/lookup_attrs.h"

#define SOME 100U

/* As a partition numbers inodes: its own number above, then one by one. */
static uint64_t ino_of(uint64_t n)
{
    return mfs_ino_make((uint32_t)n % 32, 1000 + n / 32);
}

static struct mfs_attr attr_of(uint64_t ino, uint32_t type)
{
    return (struct mfs_attr){.ino = ino, .mode = type | 0750, .nlink = 2, .size = ino * 3};
}

static void remember(struct mfs_replied *l, uint64_t from, uint64_t to, uint32_t type)
{
    for (uint64_t n = from; n < to; n++) {
        struct mfs_attr attr = attr_of(ino_of(n), type);

        mfs_replied_attrs(l, &attr, MFS_SEC);
    }
}

/* --- last attributes
 * ------------------------------------------------------------------------------------
 */

static void test_last_attrs_are_without_links(void **state)
{
    struct mfs_replied *l = mfs_replied_create();
    struct mfs_attr attr = attr_of(ino_of(1), S_IFREG), got = {.ino = 7, .nlink = 7};

    (void)state;
    assert_non_null(l);
    assert_false(mfs_replied_recall(l, attr.ino, &got));
    assert_false(mfs_replied_recall(l, 0, &got));
    assert_true(got.ino == 7 && got.nlink == 7);
    mfs_replied_attrs(l, &attr, MFS_SEC);
    attr.size = 5;
    mfs_replied_attrs(l, &attr, MFS_SEC);
    assert_true(mfs_replied_last(l, attr.ino, &got));
    assert_int_equal(got.nlink, attr.nlink);
    assert_true(mfs_replied_recall(l, attr.ino, &got));
    assert_true(got.ino == attr.ino && got.mode == attr.mode && got.size == 5);
    assert_int_equal(got.nlink, 0);
    mfs_replied_destroy(l);
}

/* An open file that never had a name is not told of when it is gone; but where it ends is. */
static void test_attrs_without_links_are_not_kept(void **state)
{
    struct mfs_replied *r = mfs_replied_create();
    struct mfs_attr attr = attr_of(ino_of(1), S_IFREG), got;

    (void)state;
    assert_non_null(r);
    attr.nlink = 0;
    mfs_replied_attrs(r, &attr, MFS_SEC);
    assert_false(mfs_replied_recall(r, attr.ino, &got));
    mfs_replied_invalidated(r, attr.ino, MFS_SEC);
    assert_true(mfs_replied_may_be_stale(r, attr.ino, attr.size - 1, MFS_SEC));
    mfs_replied_destroy(r);
}

/* Directories that processes sit in, gone; then the mount sees much else. */
static void test_last_attrs_of_directories_outlive_others(void **state)
{
    struct mfs_replied *l = mfs_replied_create();
    struct mfs_attr got;

    (void)state;
    assert_non_null(l);
    remember(l, 0, SOME, S_IFDIR);
    remember(l, SOME, SOME + 2000, S_IFDIR);
    remember(l, SOME + 2000, SOME + 200000, S_IFREG);
    for (uint64_t n = 0; n < SOME; n++) {
        assert_true(mfs_replied_recall(l, ino_of(n), &got));
        assert_true(got.ino == ino_of(n) && got.size == got.ino * 3);
    }
    mfs_replied_destroy(l);
}

/* Who is asked for stays, however many directories go by. */
static void test_last_attrs_in_use_stay(void **state)
{
    struct mfs_replied *l = mfs_replied_create();
    struct mfs_attr got;

    (void)state;
    assert_non_null(l);
    remember(l, 0, SOME, S_IFDIR);
    for (uint64_t from = SOME; from < 100000; from += 500) {
        remember(l, from, from + 500, S_IFDIR);
        for (uint64_t n = 0; n < SOME; n++)
            assert_true(mfs_replied_recall(l, ino_of(n), &got));
    }
    mfs_replied_destroy(l);
}

/* A replaced file, asked for a moment later beside many directories. */
static void test_last_attrs_of_files_last_a_moment(void **state)
{
    struct mfs_replied *l = mfs_replied_create();
    struct mfs_attr got;

    (void)state;
    assert_non_null(l);
    for (uint64_t n = 0; n < 100000; n++) {
        remember(l, 1000000 + n, 1000001 + n, S_IFREG);
        remember(l, n, n + 1, S_IFDIR);
        if (n > 0)
            assert_true(mfs_replied_recall(l, ino_of(1000000 + n - 1), &got));
    }
    mfs_replied_destroy(l);
}

/* --- nodeids --------------------------------------------------------------------------------
 */

#define ROOT 1

static void test_dentry_has_a_nodeid(void **state)
{
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t ino = ino_of(5), first, second;

    (void)state;
    assert_non_null(ids);
    first = mfs_nodeids_lookup(ids, ROOT, "x", ino);
    assert_true(first == ino);
    assert_false(mfs_nodeids_has_alias(ids, first));
    assert_true(mfs_nodeids_lookup(ids, ROOT, "x", ino) == first);
    second = mfs_nodeids_lookup(ids, ROOT, "y", ino); /* another mount has moved it */
    assert_true(second != first && mfs_nodeids_ino(second) == ino);
    assert_true(mfs_nodeids_lookup(ids, ROOT, "x", ino) == first); /* and back */
    assert_true(mfs_nodeids_lookup(ids, ROOT, "y", ino) == second);
    assert_true(mfs_nodeids_has_alias(ids, first) && mfs_nodeids_has_alias(ids, second));
    mfs_nodeids_forget(ids, first, 3); /* as often as it was told */
    assert_true(mfs_nodeids_has_alias(ids, first));
    assert_false(mfs_nodeids_has_alias(ids, second));
    mfs_nodeids_destroy(ids);
}

/* A number whose upper bits are its own stands for itself, wherever it is. */
static void test_large_ino_has_one_nodeid(void **state)
{
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t ino = mfs_ino_make(5, 7ULL << MFS_INO_SEQ_BITS | 9);

    (void)state;
    assert_non_null(ids);
    assert_true(mfs_nodeids_lookup(ids, ROOT, "x", ino) == ino);
    assert_true(mfs_nodeids_lookup(ids, ROOT, "y", ino) == ino);
    assert_true(mfs_nodeids_ino(ino) == ino);
    mfs_nodeids_destroy(ids);
}

/* Below a directory that has two nodeids its children have two, each, which do not change. */
static void test_nodeids_below_a_moved_directory(void **state)
{
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t dir = ino_of(1), child = ino_of(2), old, new, in_old, in_new;

    (void)state;
    assert_non_null(ids);
    old = mfs_nodeids_lookup(ids, ROOT, "x", dir);
    in_old = mfs_nodeids_lookup(ids, old, "child", child);
    new = mfs_nodeids_lookup(ids, ROOT, "y", dir);
    in_new = mfs_nodeids_lookup(ids, new, "child", child);
    assert_true(in_old != in_new);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(mfs_nodeids_lookup(ids, old, "child", child) == in_old);
        assert_true(mfs_nodeids_lookup(ids, new, "child", child) == in_new);
    }
    mfs_nodeids_destroy(ids);
}

static void test_rename_takes_the_nodeid_along(void **state)
{
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t a = ino_of(1), b = ino_of(2), a_node, b_node;

    (void)state;
    assert_non_null(ids);
    a_node = mfs_nodeids_lookup(ids, ROOT, "a", a);
    b_node = mfs_nodeids_lookup(ids, ROOT, "b", b);
    mfs_nodeids_renamed(ids, ROOT, "a", b_node, "in b", false);
    assert_true(mfs_nodeids_lookup(ids, b_node, "in b", a) == a_node);
    mfs_nodeids_renamed(ids, b_node, "in b", ROOT, "a", false);
    mfs_nodeids_renamed(ids, ROOT, "a", ROOT, "b", true);
    assert_true(mfs_nodeids_lookup(ids, ROOT, "b", a) == a_node);
    assert_true(mfs_nodeids_lookup(ids, ROOT, "a", b) == b_node);
    mfs_nodeids_renamed(ids, ROOT, "a", ROOT, "b", false); /* over a, which must be gone then */
    assert_true(mfs_nodeids_lookup(ids, ROOT, "b", b) == b_node);
    mfs_nodeids_renamed(ids, ROOT, "no directory", ROOT, "b", false);
    assert_true(mfs_nodeids_lookup(ids, ROOT, "b", b) != b_node);
    mfs_nodeids_destroy(ids);
}

/* Moved by another mount more often than there are numbers, while the kernel forgets some of the
 * dentries, late, and holds others: no number is given twice at a time. */
static void test_held_nodeids_are_not_used_again(void **state)
{
    enum { HELD = 100, MOVES = 5000 };
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t nodeid[MOVES], dir = ino_of(1), child = ino_of(2);

    (void)state;
    assert_non_null(ids);
    for (unsigned i = 0; i < MOVES; i++) {
        char name[16];

        snprintf(name, sizeof name, "%u", i);
        nodeid[i] = mfs_nodeids_lookup(ids, ROOT, name, dir);
        assert_true(mfs_nodeids_lookup(ids, ROOT, name, dir) == nodeid[i]); /* looked up twice */
        assert_true(mfs_nodeids_ino(mfs_nodeids_lookup(ids, nodeid[i], "child", child)) == child);
        for (unsigned k = 0; k < i; k++)
            assert_true(nodeid[k] == 0 || nodeid[k] != nodeid[i]);
        if (i >= HELD && (i - HELD) % 50) {
            mfs_nodeids_forget(ids, nodeid[i - HELD], 1);
            mfs_nodeids_forget(ids, nodeid[i - HELD], 1);
            nodeid[i - HELD] = 0;
        }
    }
    mfs_nodeids_destroy(ids);
}

/* A mount renames and another one moves: at no time does a nodeid have two dentries. */
static void test_no_nodeid_has_two_dentries(void **state)
{
    enum { NAMES = 8, MOVES = 200 };
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t ino = ino_of(9), seen[NAMES] = {0};
    unsigned at = 0, seed = 1;
    char name[2][8] = {"n0"};

    (void)state;
    assert_non_null(ids);
    for (unsigned i = 0; i < MOVES; i++) {
        unsigned to = (unsigned)rand_r(&seed) % NAMES;

        snprintf(name[0], sizeof name[0], "n%u", at);
        snprintf(name[1], sizeof name[1], "n%u", to);
        if (to != at && seen[at] && rand_r(&seed) % 2) {
            mfs_nodeids_renamed(ids, ROOT, name[0], ROOT, name[1], false);
            seen[to] = seen[at];
            seen[at] = 0;
        }
        at = to;
        seen[at] = mfs_nodeids_lookup(ids, ROOT, name[1], ino);
        for (unsigned j = 0; j < NAMES; j++)
            assert_true(j == at || seen[j] != seen[at]);
    }
    mfs_nodeids_destroy(ids);
}

/* Dentries in use keep their nodeids while very many others go by. */
static void test_nodeids_in_use_stay(void **state)
{
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t ino = ino_of(1), nodeid;

    (void)state;
    assert_non_null(ids);
    mfs_nodeids_lookup(ids, ROOT, "x", ino);
    nodeid = mfs_nodeids_lookup(ids, ROOT, "y", ino);
    for (uint64_t n = 100; n < 200000; n++) {
        assert_true(mfs_nodeids_lookup(ids, n, "other", ino_of(n)) == ino_of(n));
        if (n % 500 == 0)
            assert_true(mfs_nodeids_lookup(ids, ROOT, "y", ino) == nodeid);
    }
    mfs_nodeids_destroy(ids);
}

/* --- names under a lease
 * -------------------------------------------------------------------------------------
 */

static const struct mfs_dentry_key nowhere[2] = {{0, ""}, {0, ""}};

/* How many names of the inode the kernel is to drop; the last one in *stale. */
static unsigned drop_all(struct mfs_nodeids *ids, uint64_t ino, struct mfs_nodeids_stale *stale)
{
    unsigned n = 0;

    while (mfs_nodeids_stale(ids, ino, stale)) {
        mfs_nodeids_dropped(ids, stale);
        n++;
    }
    return n;
}

static void test_leased_names_are_revoked(void **state)
{
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t nodeids[MFS_NODEIDS_ALIASES], x, y, other;
    struct mfs_nodeids_stale stale;

    (void)state;
    x = mfs_nodeids_lookup(ids, ROOT, "x", ino_of(1));
    other = mfs_nodeids_lookup(ids, ROOT, "other", ino_of(2));
    assert_false(mfs_nodeids_is_leased(ids, x));
    assert_true(mfs_nodeids_lease(ids, x, ROOT, "x") &&
                mfs_nodeids_lease(ids, other, ROOT, "other"));
    assert_true(mfs_nodeids_is_leased(ids, x));
    assert_int_equal(mfs_nodeids_revoke(ids, ino_of(3), nowhere), 0);
    y = mfs_nodeids_lookup(ids, other, "y", ino_of(1)); /* not yet heard that it was moved there */
    assert_true(mfs_nodeids_lease(ids, y, other, "y"));
    assert_int_equal(mfs_nodeids_leased(ids, ino_of(1), nodeids), 2);
    assert_int_equal(mfs_nodeids_revoke(ids, ino_of(1), nowhere), 2);
    assert_false(mfs_nodeids_is_leased(ids, x) || mfs_nodeids_is_leased(ids, y));
    assert_true(mfs_nodeids_is_leased(ids, other));
    assert_int_equal(drop_all(ids, ino_of(1), &stale), 2);
    assert_int_equal(mfs_nodeids_leased(ids, ino_of(1), nodeids), 0);
    assert_true(mfs_nodeids_lease(ids, x, ROOT, "x")); /* looked up again */
    assert_int_equal(mfs_nodeids_revoke(ids, 0, nowhere), 2);
    assert_int_equal(drop_all(ids, 0, &stale), 2);
    mfs_nodeids_destroy(ids);
}

/* What a request does itself its kernel knows, but for aliases of the same directory. */
static void test_own_changes_spare_their_dentry(void **state)
{
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t x = mfs_nodeids_lookup(ids, ROOT, "x", ino_of(1));
    uint64_t y = mfs_nodeids_lookup(ids, ino_of(2), "y", ino_of(1));
    const struct mfs_dentry_key own[2] = {{ROOT, "x"}, {ROOT, "z"}};
    struct mfs_nodeids_stale stale;

    (void)state;
    assert_true(mfs_nodeids_lease(ids, x, ROOT, "x") && mfs_nodeids_lease(ids, y, ino_of(2), "y"));
    assert_int_equal(mfs_nodeids_revoke(ids, ino_of(1), own), 1);
    mfs_nodeids_renamed(ids, ROOT, "x", ROOT, "z", false);
    assert_int_equal(drop_all(ids, ino_of(1), &stale), 1);
    assert_int_equal(stale.nodeid, y);
    assert_true(mfs_nodeids_is_leased(ids, x));
    mfs_nodeids_destroy(ids);
}

/* A name that moved while it was being dropped is dropped at its new place as well. */
static void test_stale_names_are_followed(void **state)
{
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t x = mfs_nodeids_lookup(ids, ROOT, "x", ino_of(1));
    struct mfs_nodeids_stale first, second;

    (void)state;
    assert_true(mfs_nodeids_lease(ids, x, ROOT, "x"));
    assert_int_equal(mfs_nodeids_revoke(ids, ino_of(1), nowhere), 1);
    assert_true(mfs_nodeids_stale(ids, ino_of(1), &first));
    assert_string_equal(first.name, "x");
    mfs_nodeids_renamed(ids, ROOT, "x", ROOT, "z", false);
    mfs_nodeids_dropped(ids, &first);
    assert_true(mfs_nodeids_stale(ids, ino_of(1), &second));
    assert_string_equal(second.name, "z");
    mfs_nodeids_dropped(ids, &second);
    assert_false(mfs_nodeids_stale(ids, ino_of(1), &second));
    mfs_nodeids_destroy(ids);
}

/* What the kernel forgets it does not use. */
/* A look-up that was under way when the name was revoked does not keep it from being dropped. */
static void test_stale_names_are_not_leased_again(void **state)
{
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t x = mfs_nodeids_lookup(ids, ROOT, "x", ino_of(1));
    struct mfs_nodeids_stale stale;

    (void)state;
    assert_true(mfs_nodeids_lease(ids, x, ROOT, "x"));
    assert_true(mfs_nodeids_lease(ids, x, ROOT, "x"));
    assert_int_equal(mfs_nodeids_revoke(ids, ino_of(1), nowhere), 1);
    assert_false(mfs_nodeids_lease(ids, x, ROOT, "x"));
    assert_false(mfs_nodeids_is_leased(ids, x));
    assert_int_equal(drop_all(ids, ino_of(1), &stale), 1);
    assert_true(mfs_nodeids_lease(ids, x, ROOT, "x"));
    mfs_nodeids_destroy(ids);
}

static void test_forgotten_names_are_not_leased(void **state)
{
    struct mfs_nodeids *ids = mfs_nodeids_create();
    uint64_t nodeids[MFS_NODEIDS_ALIASES];
    uint64_t x = mfs_nodeids_lookup(ids, ROOT, "x", ino_of(1));

    (void)state;
    assert_true(mfs_nodeids_lookup(ids, ROOT, "x", ino_of(1)) == x);
    assert_true(mfs_nodeids_lease(ids, x, ROOT, "x"));
    mfs_nodeids_forget(ids, x, 1);
    assert_true(mfs_nodeids_is_leased(ids, x));
    mfs_nodeids_forget(ids, x, 1);
    assert_false(mfs_nodeids_is_leased(ids, x));
    assert_int_equal(mfs_nodeids_leased(ids, 0, nodeids), 0);
    assert_false(mfs_nodeids_lease(ids, x, ROOT, "x")); /* it does not hold it */
    mfs_nodeids_destroy(ids);
}

/* --- attributes of look-ups ----------------------------------------------------------------
 */

static void test_lookup_is_recalled_by_its_thread(void **state)
{
    struct mfs_lookup_attrs *l = mfs_lookup_attrs_create();
    struct mfs_attr file = attr_of(ino_of(1), S_IFREG), got;
    int64_t start;

    (void)state;
    assert_non_null(l);
    do { /* a machine that stops us for a millisecond has no say */
        start = mfs_clock_mono();
        mfs_lookup_attrs_remember(l, 17, &file);
        memset(&got, 0, sizeof got);
        mfs_lookup_attrs_recall(l, 17, file.ino, &got);
    } while (mfs_clock_mono() - start > MFS_MSEC);
    assert_true(got.ino == file.ino && got.size == file.size);
    assert_false(mfs_lookup_attrs_recall(l, 17, file.ino, &got)); /* a file once only */
    mfs_lookup_attrs_remember(l, 17, &file);
    assert_false(mfs_lookup_attrs_recall(l, 18, file.ino, &got));
    assert_false(mfs_lookup_attrs_recall(l, 17 + 256, file.ino, &got));
    mfs_lookup_attrs_remember(l, 17, &file);
    /* Its next request is another one. */
    assert_false(mfs_lookup_attrs_recall(l, 17, ino_of(2), &got));
    assert_false(mfs_lookup_attrs_recall(l, 17, file.ino, &got));
    mfs_lookup_attrs_remember(l, 17, &file);
    mfs_lookup_attrs_forget(l, 17);
    assert_false(mfs_lookup_attrs_recall(l, 17, file.ino, &got));
    mfs_lookup_attrs_destroy(l);
}

static void test_lookup_does_not_last(void **state)
{
    struct mfs_lookup_attrs *l = mfs_lookup_attrs_create();
    struct mfs_attr file = attr_of(ino_of(1), S_IFREG), got;

    (void)state;
    assert_non_null(l);
    mfs_lookup_attrs_remember(l, 17, &file);
    mfs_clock_sleep(2 * MFS_MSEC);
    assert_false(mfs_lookup_attrs_recall(l, 17, file.ino, &got));
    mfs_lookup_attrs_remember(l, 0, &file); /* of another PID namespace */
    assert_false(mfs_lookup_attrs_recall(l, 0, file.ino, &got));
    mfs_lookup_attrs_destroy(l);
}

/* --- all together ------------------------------------------------------------------------------
 */

struct world {
    struct mfs_replied *replied;
    struct mfs_nodeids *nodeids;
    struct mfs_lookup_attrs *lookup_attrs;
};

static void *busy(void *arg)
{
    const struct world *all = arg;
    struct mfs_attr got;

    for (uint64_t n = 0; n < 20000; n++) {
        struct mfs_attr attr = attr_of(ino_of(n % 3000), S_IFDIR);
        pid_t thread = (pid_t)(n % 300) + 1;

        mfs_replied_attrs(all->replied, &attr, MFS_SEC);
        if (mfs_replied_recall(all->replied, attr.ino, &got) && got.size != attr.size)
            return arg;
        if (mfs_nodeids_ino(mfs_nodeids_lookup(all->nodeids, n % 7, "x", attr.ino)) != attr.ino)
            return arg;
        mfs_nodeids_renamed(all->nodeids, n % 7, "x", n % 5, "y", n % 2);
        mfs_lookup_attrs_remember(all->lookup_attrs, thread, &attr);
        if (mfs_lookup_attrs_recall(all->lookup_attrs, thread, attr.ino, &got) &&
            got.size != attr.size)
            return arg;
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct world all = {mfs_replied_create(), mfs_nodeids_create(), mfs_lookup_attrs_create()};
    pthread_t thread[4];
    void *failed;

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, busy, &all), 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
    mfs_replied_destroy(all.replied);
    mfs_nodeids_destroy(all.nodeids);
    mfs_lookup_attrs_destroy(all.lookup_attrs);
}

/* --- sizes ------------------------------------------------------------------------------------
 */

#define LATER(s) ((s)*MFS_SEC)

static void reply(struct mfs_replied *r, uint64_t ino, uint64_t size, int64_t now)
{
    struct mfs_attr attr = {.ino = ino, .mode = S_IFREG | 0640, .nlink = 1, .size = size};

    mfs_replied_attrs(r, &attr, now);
}

static void test_size_is_believed_without_invalidations(void **state)
{
    struct mfs_replied *z = mfs_replied_create();

    (void)state;
    assert_non_null(z);
    assert_false(mfs_replied_may_be_stale(z, 7, 0, LATER(10)));
    reply(z, 7, 20000, LATER(10));
    reply(z, 7, 3000, LATER(10) + 1);
    assert_false(mfs_replied_may_be_stale(z, 7, 3000, LATER(10) + 2));
    mfs_replied_destroy(z);
}

/* Before or after what was told, and for as long as it goes on. */
static void test_size_may_be_stale_near_invalidations(void **state)
{
    struct mfs_replied *z = mfs_replied_create();

    (void)state;
    assert_non_null(z);
    reply(z, 7, 20000, LATER(10));
    mfs_replied_invalidated(z, 7, LATER(20));
    reply(z, 7, 3000, LATER(20) + 1);
    assert_true(mfs_replied_may_be_stale(z, 7, 3000, LATER(20) + 2));
    assert_false(mfs_replied_may_be_stale(z, 7, 20000, LATER(20) + 2));
    assert_false(mfs_replied_may_be_stale(z, 8, 3000, LATER(20) + 2));
    for (int64_t t = 21; t < 40; t++) {
        reply(z, 7, 3000, LATER(t));
        mfs_replied_invalidated(z, 7, LATER(t) + 1);
        assert_true(mfs_replied_may_be_stale(z, 7, 3000, LATER(t) + 2));
    }
    assert_false(mfs_replied_may_be_stale(z, 7, 3000, LATER(50)));
    mfs_replied_destroy(z);
}

/* What was told twice with no notice near is believed, whatever was before. */
static void test_quiet_settles_the_size(void **state)
{
    struct mfs_replied *z = mfs_replied_create();

    (void)state;
    assert_non_null(z);
    reply(z, 7, 20000, LATER(10));
    mfs_replied_invalidated(z, 7, LATER(10));
    reply(z, 7, 3000, LATER(20));
    reply(z, 7, 3000, LATER(30));
    mfs_replied_invalidated(z, 7, LATER(40));
    assert_false(mfs_replied_may_be_stale(z, 7, 3000, LATER(40)));
    mfs_replied_destroy(z);
}

static void test_writes_extend_the_size(void **state)
{
    struct mfs_replied *z = mfs_replied_create();

    (void)state;
    assert_non_null(z);
    reply(z, 7, 3000, LATER(10));
    mfs_replied_extended(z, 7, 9000);
    mfs_replied_extended(z, 7, 5000);
    mfs_replied_invalidated(z, 7, LATER(20));
    assert_true(mfs_replied_may_be_stale(z, 7, 8999, LATER(20)));
    assert_false(mfs_replied_may_be_stale(z, 7, 9000, LATER(20)));
    mfs_replied_destroy(z);
}

/* A size that was fetched before a smaller one was told must not be told after it. */
static void test_size_does_not_grow_back(void **state)
{
    struct mfs_replied *z = mfs_replied_create();

    (void)state;
    assert_non_null(z);
    assert_true(mfs_replied_may_extend(z, 7, 20000, LATER(9)));
    reply(z, 7, 3000, LATER(10));
    assert_false(mfs_replied_may_extend(z, 7, 20000, LATER(9)));
    assert_true(mfs_replied_may_extend(z, 7, 3000, LATER(9)));
    assert_true(mfs_replied_may_extend(z, 7, 20000, LATER(11)));
    mfs_replied_invalidated(z, 7, LATER(11));
    assert_true(mfs_replied_may_be_stale(z, 7, 3000, LATER(11)));
    mfs_replied_destroy(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_attrs_are_without_links),
        cmocka_unit_test(test_attrs_without_links_are_not_kept),
        cmocka_unit_test(test_last_attrs_of_directories_outlive_others),
        cmocka_unit_test(test_last_attrs_in_use_stay),
        cmocka_unit_test(test_last_attrs_of_files_last_a_moment),
        cmocka_unit_test(test_dentry_has_a_nodeid),
        cmocka_unit_test(test_large_ino_has_one_nodeid),
        cmocka_unit_test(test_nodeids_below_a_moved_directory),
        cmocka_unit_test(test_rename_takes_the_nodeid_along),
        cmocka_unit_test(test_held_nodeids_are_not_used_again),
        cmocka_unit_test(test_no_nodeid_has_two_dentries),
        cmocka_unit_test(test_nodeids_in_use_stay),
        cmocka_unit_test(test_leased_names_are_revoked),
        cmocka_unit_test(test_own_changes_spare_their_dentry),
        cmocka_unit_test(test_stale_names_are_followed),
        cmocka_unit_test(test_stale_names_are_not_leased_again),
        cmocka_unit_test(test_forgotten_names_are_not_leased),
        cmocka_unit_test(test_lookup_is_recalled_by_its_thread),
        cmocka_unit_test(test_lookup_does_not_last),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_size_is_believed_without_invalidations),
        cmocka_unit_test(test_size_may_be_stale_near_invalidations),
        cmocka_unit_test(test_quiet_settles_the_size),
        cmocka_unit_test(test_writes_extend_the_size),
        cmocka_unit_test(test_size_does_not_grow_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
