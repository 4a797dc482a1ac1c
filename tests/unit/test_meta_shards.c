/* ctest: threaded waits
 *
 * What a client knows of names that are not there: it asks for none, and none that is there is
 * missed. */
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
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/clock.h"
#include "cluster/placement.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/internal.h"
#include "meta/session/session.h"
#include "meta_fixture.h"

#define ROOT MFS_ROOT_INO
#define TTL  (2 * MFS_SEC)

static struct meta_client a, b;
static uint64_t dir;

static int setup(void **state)
{
    (void)state;
    return meta_pair_start(&a, &b, TTL) || meta_client_mkdir(&b, ROOT, "dir", &dir);
}

static int teardown(void **state)
{
    (void)state;
    meta_pair_stop(&a, &b);
    return 0;
}

/* --- shorthands ------------------------------------------------------------------------------ */

static int create(struct meta_client *c, const char *name)
{
    struct mfs_new new = {.mode = S_IFREG | 0644};
    struct mfs_attr attr;
    bool created;
    int rc = mfs_meta_create_open(c->meta, dir, name, &new, true, &attr, &created);

    return rc ? rc : mfs_meta_close(c->meta, attr.ino, false);
}

/* b looks for a name that is not there. */
static bool asks(const char *name)
{
    uint64_t before = meta_client_round_trips(&b);
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_lookup(b.meta, dir, name, &attr), -ENOENT);
    return meta_client_round_trips(&b) > before;
}

static bool finds(struct meta_client *c, const char *name)
{
    struct mfs_attr attr;

    return mfs_meta_lookup(c->meta, dir, name, &attr) == 0;
}

static const char *at(uint32_t part, const char *prefix)
{
    static char name[8][16];
    static unsigned next;
    char *out = name[next++ % 8];

    meta_name_at(&b, dir, part, prefix, out, sizeof name[0]);
    return out;
}

/* b is the keeper of that shard from now on. */
static void keep(uint32_t part)
{
    for (unsigned i = 0; asks(at(part, "absent")); i++) {
        assert_true(i < 20); /* a notice may be sent twice, and come late */
        if (i > 0)
            assert_int_equal(mfs_meta_unlink(b.meta, dir, at(part, "keep")), 0);
        assert_int_equal(create(&b, at(part, "keep")), 0);
    }
}

/* --- tests ----------------------------------------------------------------------------------- */

static void test_known(void **state)
{
    (void)state;
    assert_true(asks(at(0, "x")));
    assert_int_equal(create(&b, at(0, "f")), 0);
    assert_false(asks(at(0, "x")));
    assert_true(asks(at(1, "x"))); /* of that shard nothing is known */
    assert_true(finds(&b, at(0, "f")));
    assert_int_equal(create(&b, at(0, "x")), 0);
    assert_true(finds(&b, at(0, "x")));
    assert_int_equal(mfs_meta_unlink(b.meta, dir, at(0, "x")), 0);
    assert_false(asks(at(0, "x"))); /* it knows that, too */
    assert_false(asks(at(0, "y")));
    /* Somebody else's first name makes nobody else know. */
    assert_int_equal(create(&a, at(2, "f")), 0);
    assert_int_equal(create(&b, at(2, "g")), 0);
    assert_true(asks(at(2, "x")));
}

/* By every way in which a name comes into being. */
static void test_others(void **state)
{
    struct mfs_new symlink = {.mode = S_IFLNK | 0777, .target = "t"};
    struct mfs_attr attr;
    uint64_t ino;

    (void)state;
    for (uint32_t part = 0; part < META_REDIS_PARTS; part++) {
        keep(part);
        assert_int_equal(create(&a, at(part, "c")), 0);
        assert_true(finds(&b, at(part, "c")));
        assert_true(asks(at(part, "absent")));
        assert_int_equal(mfs_meta_unlink(b.meta, dir, at(part, "c")), 0);
        assert_int_equal(mfs_meta_unlink(b.meta, dir, at(part, "keep")), 0);
        keep(part);
        assert_int_equal(meta_client_mkdir(&a, dir, at(part, "d"), &ino), 0);
        assert_true(finds(&b, at(part, "d")));
        assert_int_equal(mfs_meta_rmdir(a.meta, dir, at(part, "d")), 0);
        assert_int_equal(mfs_meta_unlink(b.meta, dir, at(part, "keep")), 0);
        keep(part);
        assert_int_equal(mfs_meta_mknod(a.meta, dir, at(part, "s"), &symlink, &attr), 0);
        assert_true(finds(&b, at(part, "s")));
        assert_int_equal(mfs_meta_unlink(a.meta, dir, at(part, "s")), 0);
    }
}

static void test_links(void **state)
{
    struct mfs_attr attr;
    uint64_t ino;

    (void)state;
    assert_int_equal(meta_client_file(&a, ROOT, "file", &ino), 0);
    for (uint32_t part = 0; part < META_REDIS_PARTS; part++) {
        keep(part);
        assert_int_equal(mfs_meta_link(a.meta, ino, dir, at(part, "l"), &attr), 0);
        assert_true(finds(&b, at(part, "l")));
        assert_true(asks(at(part, "absent")));
    }
}

static void test_renames(void **state)
{
    uint64_t ino;

    (void)state;
    for (uint32_t from = 0; from < META_REDIS_PARTS; from++) {
        for (uint32_t part = 0; part < META_REDIS_PARTS; part++) {
            char name[16];

            meta_name_at(&a, ROOT, from, "r", name, sizeof name);
            assert_int_equal(meta_client_file(&a, ROOT, name, &ino), 0);
            keep(part);
            assert_int_equal(mfs_meta_rename(a.meta, ROOT, name, dir, at(part, "r"), 0), 0);
            assert_true(finds(&b, at(part, "r")));
            assert_int_equal(mfs_meta_unlink(a.meta, dir, at(part, "r")), 0);
            assert_int_equal(mfs_meta_unlink(a.meta, dir, at(part, "keep")), 0);
        }
    }
}

/* Between two names of one inode a rename does nothing, and neither is missed. */
static void test_rename_to_itself(void **state)
{
    struct mfs_attr attr;

    (void)state;
    for (uint32_t from = 0; from < META_REDIS_PARTS; from++) {
        keep(from);
        assert_int_equal(create(&b, at(from, "r")), 0);
        assert_int_equal(mfs_meta_lookup(b.meta, dir, at(from, "r"), &attr), 0);
        for (uint32_t part = 0; part < META_REDIS_PARTS; part++) {
            assert_int_equal(mfs_meta_link(b.meta, attr.ino, dir, at(part, "s"), &attr), 0);
            assert_int_equal(mfs_meta_rename(b.meta, dir, at(from, "r"), dir, at(part, "s"), 0), 0);
            mfs_filecache_revoke(b.meta->files, 0);
            assert_true(finds(&b, at(from, "r")));
            assert_int_equal(mfs_meta_unlink(b.meta, dir, at(part, "s")), 0);
        }
    }
}

/* The right is prolonged by who uses it, and lost with the session. */
static void test_time(void **state)
{
    struct mfs_shards *s = mfs_shards_create(0);
    int64_t long_ago = mfs_clock_mono() - MFS_META_LEASE_FILE;

    (void)state;
    mfs_shards_adding(s, 1, 0, "first");
    mfs_shards_added(s, 1, 0, "first", MFS_KEEPER_FIRST, long_ago + MFS_SEC);
    assert_true(mfs_shards_absent(s, 1, 0, "second"));
    assert_int_equal(mfs_shards_adding(s, 1, 0, "second"), MFS_SHARD_OLD);
    mfs_shards_added(s, 1, 0, "second", MFS_KEEPER_STILL, mfs_clock_mono());
    assert_int_equal(mfs_shards_adding(s, 1, 0, "third"), MFS_SHARD_KNOWN);
    mfs_shards_added(s, 1, 0, "third", MFS_KEEPER_NOT, mfs_clock_mono());
    assert_false(mfs_shards_absent(s, 1, 0, "third"));
    assert_true(mfs_shards_absent(s, 1, 0, "fourth"));
    mfs_shards_adding(s, 2, 0, "first");
    mfs_shards_added(s, 2, 0, "first", MFS_KEEPER_FIRST, long_ago);
    assert_false(mfs_shards_absent(s, 2, 0, "second"));
    mfs_shards_destroy(s);

    keep(0);
    b.meta->refreshed_at = mfs_clock_mono() - TTL;
    assert_true(asks(at(0, "absent")));
    mfs_session_tick(b.meta);
    assert_false(asks(at(0, "absent")));
    meta_client_alive(&b, false);
    assert_int_equal(create(&a, at(0, "c")), 0);
    mfs_session_tick(b.meta);
    assert_true(finds(&b, at(0, "c")));
}

/* What the partition says of b as the keeper, which believes that it is and wants to be for longer.
 */
static enum mfs_keeper prolong(const char *name)
{
    struct mfs_ino_arg parent = mfs_ino_arg(dir), sid = mfs_ino_arg(mfs_meta_session(b.meta));
    struct mfs_attr attr = {.mode = S_IFREG | 0644, .nlink = 1, .version = 1};
    char prefix[2], record[MFS_RECORD_FIXED];
    enum mfs_keeper keeper;
    struct mfs_call c;

    mfs_part_arg(0, prefix);
    mfs_meta_record_encode(&attr, record);
    mfs_call_command(&c, "mfs_create");
    mfs_args_bin(&c.args, parent.b, sizeof parent.b);
    mfs_args_str(&c.args, name);
    mfs_args_bin(&c.args, prefix, sizeof prefix);
    mfs_args_bin(&c.args, "\010", 1);
    mfs_args_str(&c.args, "xp");
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_args_bin(&c.args, record, sizeof record);
    assert_int_equal(mfs_call_run(b.meta, &c, 0), 0);
    assert_in_range(mfs_call_text(&c).n, 10, SIZE_MAX);
    keeper = (enum mfs_keeper)mfs_call_text(&c).p[9];
    mfs_call_fini(&c);
    return keeper;
}

/* Its right has run out: it begins anew if the shard is empty. */
static void test_again(void **state)
{
    (void)state;
    assert_int_equal(prolong(at(0, "first")), MFS_KEEPER_FIRST);
    assert_int_equal(prolong(at(0, "second")), MFS_KEEPER_STILL);
}

/* While another addition is under way, or one has ended since it was asked, nothing is known. */
static void test_at_once(void **state)
{
    struct mfs_shards *s = b.meta->shards;
    int64_t asked = mfs_clock_mono();

    (void)state;
    mfs_shards_adding(s, 1, 0, "first");
    mfs_shards_adding(s, 1, 0, "second");
    mfs_shards_added(s, 1, 0, "first", MFS_KEEPER_FIRST, asked);
    assert_false(mfs_shards_absent(s, 1, 0, "third"));
    mfs_shards_added(s, 1, 0, "second", MFS_KEEPER_NOT, asked);
    mfs_shards_adding(s, 1, 0, "first");
    mfs_shards_added(s, 1, 0, "first", MFS_KEEPER_FIRST, asked);
    assert_false(mfs_shards_absent(s, 1, 0, "third"));
    mfs_shards_adding(s, 1, 0, "first");
    asked = mfs_clock_mono();
    mfs_shards_revoke(s, 1, 0);
    mfs_shards_added(s, 1, 0, "first", MFS_KEEPER_FIRST, asked);
    assert_false(mfs_shards_absent(s, 1, 0, "third"));
}

/* More names than are kept: what is forgotten is asked for. */
static void test_many(void **state)
{
    struct mfs_shards *s = b.meta->shards;
    unsigned known = 0;
    char name[16];

    (void)state;
    for (unsigned i = 0; i < 300000; i++) {
        snprintf(name, sizeof name, "%u", i);
        mfs_shards_adding(s, i / 1000, 0, name);
        mfs_shards_added(s, i / 1000, 0, name, i % 1000 ? MFS_KEEPER_NOT : MFS_KEEPER_FIRST,
                         mfs_clock_mono());
        if (mfs_shards_absent(s, i / 1000, 0, name))
            fail_msg("%s is there", name);
    }
    for (unsigned i = 0; i < 300; i++)
        known += mfs_shards_absent(s, i, 0, "another");
    assert_in_range(known, 200, 263);
}

/* --- while others add ------------------------------------------------------------------------ */

#define ROUNDS 300

static atomic_uint missed;

static void *add(void *client)
{
    struct meta_client *c = client;
    bool is_a = c == &a;
    char name[24];

    for (unsigned i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "%c%u-%lx", is_a ? 'a' : 'b', i, (unsigned long)pthread_self());
        if (create(c, name) || !finds(&a, name) || !finds(&b, name))
            atomic_fetch_add(&missed, 1);
        if (i % 3 && mfs_meta_unlink(c->meta, dir, name))
            atomic_fetch_add(&missed, 1);
    }
    return NULL;
}

static void test_race(void **state)
{
    pthread_t thread[4];

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, add, i % 2 ? &a : &b);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&missed), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_known, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_renames, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rename_to_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_race, setup, teardown),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, meta_redis_start, meta_redis_stop);
}
