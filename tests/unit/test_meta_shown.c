/* ctest: threaded
 *
 * Files that a listing has shown to the kernel: many are learned in one round trip, and who changes
 * one waits until the kernel uses it no more. */
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
#include "meta/coherence/shown.h"
#include "meta_fixture.h"

#define ROOT  MFS_ROOT_INO
#define FILES 300

static struct meta_client a, b;
static uint64_t inos[FILES];

static int setup(void **state)
{
    char name[16];
    int rc = meta_pair_start(&a, &b, 20 * MFS_SEC);

    (void)state;
    for (int i = 0; i < FILES && !rc; i++) {
        snprintf(name, sizeof name, "f%d", i);
        rc = meta_client_file(&a, ROOT, name, &inos[i]);
    }
    return rc;
}

static int teardown(void **state)
{
    (void)state;
    meta_pair_stop(&a, &b);
    return 0;
}

static void set_mode(uint64_t ino, mode_t mode)
{
    struct mfs_attr attr = {.mode = mode};

    assert_int_equal(mfs_meta_setattr(a.meta, ino, MFS_SET_MODE, &attr, NULL), 0);
}

static struct mfs_listing *list(void)
{
    struct mfs_listing *l;

    assert_int_equal(mfs_meta_list(b.meta, ROOT, &l), 0);
    for (size_t from = 0; from < mfs_listing_count(l); from += MFS_META_LEARN)
        mfs_meta_learn(b.meta, ROOT, l, NULL, from, MFS_META_LEARN);
    return l;
}

static struct mfs_dirent entry_of(const struct mfs_listing *l, uint64_t ino)
{
    for (size_t i = 0; i < mfs_listing_count(l); i++)
        if (mfs_listing_at(l, i).ino == ino)
            return mfs_listing_at(l, i);
    fail();
    return (struct mfs_dirent){0};
}

/* --- learning --------------------------------------------------------------------------------- */

static void test_learned(void **state)
{
    struct mfs_listing *l = list();
    uint64_t before = meta_client_round_trips(&b);
    struct mfs_attr attr;

    (void)state;
    for (size_t i = 0; i < mfs_listing_count(l); i++) {
        struct mfs_dirent e = mfs_listing_at(l, i);

        if (e.type != S_IFREG)
            continue;
        assert_int_equal(mfs_meta_lookup(b.meta, ROOT, e.name, &attr), 0);
        assert_int_equal(attr.ino, e.ino);
    }
    assert_int_equal(meta_client_round_trips(&b), before);
    mfs_meta_learn(b.meta, ROOT, l, NULL, 0, MFS_META_LEARN);
    mfs_meta_learn(b.meta, ROOT, l, NULL, mfs_listing_count(l), MFS_META_LEARN);
    assert_int_equal(meta_client_round_trips(&b), before);
    mfs_listing_free(l);
}

/* Only regular files, and only what the listing still tells the truth about. */
static void test_not_shown(void **state)
{
    struct mfs_listing *l;
    struct mfs_attr attr;
    uint64_t ino;

    (void)state;
    assert_int_equal(meta_client_mkdir(&a, ROOT, "dir", &ino), 0);
    l = list();
    assert_false(mfs_meta_show(b.meta, ROOT, &(struct mfs_dirent){"dir", 3, ino, S_IFDIR}, &attr));
    assert_false(
        mfs_meta_show(b.meta, ROOT, &(struct mfs_dirent){"none", 4, inos[0], S_IFREG}, &attr));
    assert_false(
        mfs_meta_show(b.meta, ROOT, &(struct mfs_dirent){"f1", 2, inos[0], S_IFREG}, &attr));
    set_mode(inos[2], 0600);
    assert_false(
        mfs_meta_show(b.meta, ROOT, &(struct mfs_dirent){"f2", 2, inos[2], S_IFREG}, &attr));
    mfs_listing_free(l);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void store_time(void *arg)
{
    atomic_store((_Atomic int64_t *)arg, mfs_clock_mono());
}

static int64_t wait_for(const _Atomic int64_t *at)
{
    int64_t t;

    while ((t = atomic_load(at)) == 0)
        mfs_clock_sleep(MFS_MSEC);
    return t;
}

static void end(struct mfs_shown *s, uint64_t ino, bool taken)
{
    mfs_shown_end(s, &ino, 1, taken ? MFS_META_SHOWN : 0);
}

static void test_over(void **state)
{
    _Atomic int64_t first = 0, second = 0, never_taken = 0, stopped = 0;
    struct mfs_shown *s;
    int64_t taken;

    (void)state;
    assert_int_equal(mfs_shown_create(&s), 0);
    assert_true(mfs_shown_over(s, 1, store_time, &first)); /* never shown: at once */
    assert_true(atomic_exchange(&first, 0) > 0);
    assert_true(mfs_shown_begin(s, 2, MFS_META_SHOWN));
    end(s, 2, false);
    assert_true(mfs_shown_over(s, 2, store_time, &first)); /* not shown after all */
    assert_true(atomic_exchange(&first, 0) > 0);

    assert_true(mfs_shown_begin(s, 3, MFS_META_SHOWN));
    assert_true(mfs_shown_begin(s, 3, MFS_META_SHOWN)); /* by two listings */
    assert_true(
        mfs_shown_begin(s, 4, MFS_META_SHOWN)); /* nobody will say that this one was taken */
    end(s, 3, true);
    assert_true(mfs_shown_over(s, 3, store_time, &first));
    assert_false(mfs_shown_begin(s, 6, MFS_META_SHOWN)); /* as somebody waits */
    mfs_clock_sleep(20 * MFS_MSEC);
    taken = mfs_clock_mono();
    end(s, 3, true);
    assert_true(mfs_shown_over(s, 3, store_time, &second));
    assert_true(wait_for(&first) >= taken + MFS_META_SHOWN);
    assert_true(wait_for(&second) >= taken + MFS_META_SHOWN);

    assert_true(mfs_shown_over(s, 4, store_time, &never_taken));
    wait_for(&never_taken);
    mfs_shown_destroy(s);

    assert_int_equal(mfs_shown_create(&s), 0);
    assert_true(mfs_shown_begin(s, 5, MFS_META_SHOWN));
    assert_true(mfs_shown_over(s, 5, store_time, &stopped));
    mfs_shown_destroy(s);
    assert_true(atomic_load(&stopped) > 0);
}

/* Of a directory this client's own changes wait, where the kernel would not know of them. */
static void test_names(void **state)
{
    uint64_t dir = ROOT;
    int64_t taken;

    (void)state;
    assert_false(mfs_meta_shows_names(b.meta, dir));
    assert_true(mfs_meta_show_names(b.meta, dir));
    assert_true(mfs_meta_shows_names(b.meta, dir));
    taken = mfs_clock_mono();
    mfs_meta_shown(b.meta, &dir, 1, MFS_META_SHOWN);
    mfs_meta_wait_for_names(b.meta, dir);
    assert_true(mfs_clock_mono() >= taken + MFS_META_SHOWN);
    assert_false(mfs_meta_shows_names(b.meta, dir));
    assert_false(mfs_meta_show_names(b.meta, dir)); /* as somebody had to wait */
}

static void *change_mode(void *ino)
{
    set_mode(*(uint64_t *)ino, 0600);
    return NULL;
}

/* A change by another client returns when the kernel uses the old state no more. */
static void test_change_waits(void **state)
{
    struct mfs_listing *l = list();
    struct mfs_dirent e = entry_of(l, inos[7]);
    struct mfs_attr attr;
    pthread_t changer;
    int64_t taken;

    (void)state;
    assert_true(mfs_meta_show(b.meta, ROOT, &e, &attr));
    assert_int_equal(attr.mode & 0777, 0644);
    pthread_create(&changer, NULL, change_mode, &inos[7]);
    mfs_clock_sleep(MFS_META_SHOWN);
    taken = mfs_clock_mono();
    mfs_meta_shown(b.meta, &e.ino, 1, MFS_META_SHOWN);
    pthread_join(changer, NULL);
    assert_true(mfs_clock_mono() >= taken + MFS_META_SHOWN);
    assert_int_equal(mfs_meta_lookup(b.meta, ROOT, e.name, &attr), 0);
    assert_int_equal(attr.mode & 0777, 0600);
    mfs_listing_free(l);
}

/* --- a kernel --------------------------------------------------------------------------------- */

static atomic_uint told[FILES]; /* the mode that a file has at least, as its change has returned */
static atomic_bool over;

static void *change_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < FILES; i++) {
        set_mode(inos[i], 0700);
        atomic_store(&told[i], 0700);
    }
    atomic_store(&over, true);
    return NULL;
}

static unsigned index_of(uint64_t ino)
{
    unsigned i = 0;

    while (inos[i] != ino)
        i++;
    return i;
}

/* Takes what is shown a little later, uses it for as long as it may; stale uses. */
static unsigned look(const struct mfs_listing *l)
{
    static struct mfs_attr attr[FILES];
    unsigned of[FILES], n = 0, stale = 0;
    int64_t until;

    for (size_t i = 0; i < mfs_listing_count(l) && n < FILES; i++) {
        struct mfs_dirent e = mfs_listing_at(l, i);

        if (mfs_meta_show(b.meta, ROOT, &e, &attr[n]))
            of[n++] = index_of(e.ino);
    }
    mfs_clock_sleep(MFS_MSEC);
    until = mfs_clock_mono() + MFS_META_SHOWN;
    for (unsigned i = 0; i < n; i++)
        mfs_meta_shown(b.meta, &attr[i].ino, 1, MFS_META_SHOWN);
    for (unsigned i = 0; n > 0; i = (i + 1) % n) {
        mode_t now = atomic_load(&told[of[i]]);

        if (mfs_clock_mono() >= until)
            break;
        stale += (attr[i].mode & 0777) < now;
    }
    return stale;
}

static void test_kernel(void **state)
{
    unsigned stale = 0;
    pthread_t changer;

    (void)state;
    pthread_create(&changer, NULL, change_all, NULL);
    while (!atomic_load(&over)) {
        struct mfs_listing *l = list();

        stale += look(l);
        mfs_listing_free(l);
        mfs_clock_sleep(MFS_META_SHOWN / 2);
    }
    pthread_join(changer, NULL);
    assert_int_equal(stale, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_learned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_shown, setup, teardown),
        cmocka_unit_test(test_over),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_change_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kernel, setup, teardown),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
