/* ctest: threaded waits
 *
 * The partition of a client's session dies: the client goes on with a session elsewhere, and others
 * wait for the old one no longer than it could have lived. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT MFS_ROOT_INO
#define TTL  (1 * MFS_SEC)

static struct meta_client a, b;

static uint32_t part_of(uint64_t sid)
{
    return (uint32_t)(sid % META_REDIS_PARTS);
}

/* Client a, with a session in a partition that holds neither the root nor b's session. */
static int setup(void **state)
{
    int rc = meta_pair_start(&a, &b, TTL);

    (void)state;
    while (!rc && (part_of(a.meta->sid) == mfs_placement_home(ROOT) ||
                   part_of(a.meta->sid) == part_of(b.meta->sid))) {
        meta_client_stop(&a);
        rc = meta_client_start_leased(&a, meta_redis, TTL);
    }
    mfs_log_set_level(MFS_LOG_ERROR);
    return rc;
}

static int teardown(void **state)
{
    (void)state;
    meta_pair_stop(&a, &b);
    return 0;
}

static void chmod_by(struct meta_client *c, uint64_t ino, mode_t mode)
{
    struct mfs_attr attr = {.mode = S_IFREG | mode};

    assert_int_equal(mfs_meta_setattr(c->meta, ino, MFS_SET_MODE, &attr, NULL), 0);
    mfs_meta_settle(c->meta, ino);
}

static mode_t mode_for(struct meta_client *c, const char *name)
{
    struct mfs_attr attr = {0};

    assert_int_equal(mfs_meta_lookup(c->meta, ROOT, name, &attr), 0);
    return attr.mode & 07777;
}

static void test_session_moves(void **state)
{
    uint64_t old = a.meta->sid, ino = 0;
    uint32_t gone = part_of(old);
    int64_t start, quickest = 10 * TTL;
    struct mfs_attr attr;
    char name[32];

    (void)state;
    meta_name_at(&b, ROOT, mfs_placement_home(ROOT), "f", name, sizeof name);
    assert_int_equal(meta_client_file(&b, ROOT, name, &ino), 0);
    assert_int_equal(mode_for(&a, name), 0644);
    assert_int_equal(mfs_meta_flock(a.meta, ino, 1, 0, F_WRLCK, &attr, NULL), 0);

    redis_fixture_kill(meta_redis, gone);
    start = mfs_clock_mono();
    chmod_by(&b, ino, 0600); /* a had a lease, and can't be asked */
    assert_true(mfs_clock_mono() - start < 4 * TTL);
    while (a.meta->sid == old)
        assert_true(mfs_clock_mono() - start < 10 * TTL);
    assert_int_not_equal(part_of(a.meta->sid), gone);
    assert_int_equal(mode_for(&a, name), 0600);

    /* The old session is waited for no more; one round may be slow on a busy machine. */
    for (int i = 0; i < 10 && quickest >= TTL; i++) {
        start = mfs_clock_mono();
        chmod_by(&b, ino, 0640);
        chmod_by(&a, ino, 0604);
        assert_int_equal(mode_for(&a, name), 0604);
        assert_int_equal(mode_for(&b, name), 0604);
        start = mfs_clock_mono() - start;
        quickest = start < quickest ? start : quickest;
    }
    assert_true(quickest < TTL);
    assert_int_equal(mfs_meta_flock(b.meta, ino, 1, 0, F_WRLCK, &attr, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_session_moves, setup, teardown),
    };

    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
