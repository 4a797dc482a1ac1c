/* Owners of fcntl locks that wait for each other, within one client and over several; and what
 * looks like it but is not: notes of waits that are over, of the dead, of locks that were given
 * back. ctest: timeout=120 waits */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "meta/call.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT   MFS_ROOT_INO
#define NPARTS 3
#define CHAIN  17 /* owners in the longest ring that is found */

static struct redis_fixture *redis;
static struct meta_client client[3];
static uint64_t file[3]; /* with different homes */

static int start_all(void **state)
{
    (void)state;
    mfs_log_set_level(MFS_LOG_ERROR);
    return redis_fixture_start(
        &redis, &(struct redis_fixture_opts){.nparts = NPARTS, .stripe_size = 65536});
}

static int stop_all(void **state)
{
    (void)state;
    redis_fixture_stop(redis);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    if (redis_fixture_reset(redis))
        return -1;
    for (unsigned i = 0; i < 3; i++)
        if (meta_client_start(&client[i], redis, 0))
            return -1;
    for (unsigned i = 0; i < 3; i++) {
        char name[64];

        meta_name_at(&client[0], ROOT, i, "f", name, sizeof name);
        if (meta_client_file(&client[0], ROOT, name, &file[i]))
            return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        if (client[i].meta)
            meta_client_stop(&client[i]);
    return 0;
}

/* An owner of locks at a client. */
struct owner {
    unsigned client;
    uint64_t id;
    struct mfs_meta_wait wait;
};

static int set(struct owner *o, uint64_t ino, int type, uint64_t at, struct mfs_lock_holder *holder)
{
    struct mfs_lock lock = {.type = type, .start = at, .end = at, .owner = o->id, .pid = 1};
    struct mfs_attr attr;

    return mfs_meta_setlk(client[o->client].meta, ino, &lock, &attr, holder);
}

static void take(struct owner *o, uint64_t ino, uint64_t at)
{
    assert_int_equal(set(o, ino, F_WRLCK, at, NULL), 0);
}

static void give_back(struct owner *o, uint64_t ino, uint64_t at)
{
    assert_int_equal(set(o, ino, F_UNLCK, at, NULL), 0);
}

/* Is refused the lock, and begins to wait for it: 0 or -EDEADLK. */
static int wait_for(struct owner *o, uint64_t ino, int type, uint64_t at)
{
    o->wait = (struct mfs_meta_wait){
        .ino = ino, .lock = {.type = type, .start = at, .end = at, .owner = o->id}};
    assert_int_equal(set(o, ino, type, at, &o->wait.holder), -EAGAIN);
    return mfs_meta_wait_note(client[o->client].meta, &o->wait);
}

static int wait_on(struct owner *o)
{
    return mfs_meta_wait_note(client[o->client].meta, &o->wait);
}

static void stop_waiting(struct owner *o)
{
    mfs_meta_wait_over(client[o->client].meta, &o->wait);
}

static int64_t notes(void)
{
    return meta_client_keys(&client[0], "W*");
}

/* Two owners, each with a lock that the other wants. */
static void pair_of(unsigned first, unsigned second)
{
    struct owner a = {first, 1, {0}}, b = {second, 2, {0}};

    take(&a, file[0], 5);
    take(&b, file[1], 5);
    assert_int_equal(wait_for(&a, file[1], F_WRLCK, 5), 0);
    assert_int_equal(wait_for(&b, file[0], F_RDLCK, 5), -EDEADLK);
    /* Who has given up is no reason for the other to do so, too. */
    assert_int_equal(wait_on(&a), 0);
    assert_int_equal(notes(), 1);
    give_back(&b, file[1], 5);
    take(&a, file[1], 5);
    stop_waiting(&a);
    assert_int_equal(notes(), 0);
    give_back(&a, file[0], 5);
    give_back(&a, file[1], 5);
}

static void test_two(void **state)
{
    (void)state;
    pair_of(0, 0);
    pair_of(0, 1);
}

static void test_three(void **state)
{
    struct owner o[3] = {{0, 1, {0}}, {1, 1, {0}}, {2, 1, {0}}}; /* ids are a client's own */

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        take(&o[i], file[i], 0);
    assert_int_equal(wait_for(&o[2], file[0], F_WRLCK, 0), 0);
    assert_int_equal(wait_for(&o[0], file[1], F_WRLCK, 0), 0);
    assert_int_equal(wait_for(&o[1], file[2], F_WRLCK, 0), -EDEADLK);
    assert_int_equal(wait_on(&o[0]), 0);
    assert_int_equal(wait_on(&o[2]), 0);
    stop_waiting(&o[0]);
    stop_waiting(&o[2]);
    assert_int_equal(notes(), 0);
}

/* The ring closes when the holder changes. */
static void test_delayed(void **state)
{
    struct owner a = {0, 1, {0}}, b = {1, 2, {0}}, c = {2, 3, {0}};

    (void)state;
    take(&a, file[0], 0);
    take(&c, file[1], 0);
    assert_int_equal(wait_for(&a, file[1], F_WRLCK, 0), 0);
    give_back(&c, file[1], 0);
    take(&b, file[1], 0);
    assert_int_equal(wait_for(&b, file[0], F_WRLCK, 0), 0); /* a's note is of c yet */
    assert_int_equal(set(&a, file[1], F_WRLCK, 0, &a.wait.holder), -EAGAIN);
    assert_int_equal(wait_on(&a), -EDEADLK);
    stop_waiting(&b);
    stop_waiting(&a);
    assert_int_equal(notes(), 0);
}

/* Notes make a ring, the locks do not. */
static void test_given_back(void **state)
{
    struct owner a = {0, 1, {0}}, b = {1, 2, {0}};

    (void)state;
    take(&a, file[0], 0);
    take(&a, file[0], 7);
    take(&b, file[1], 0);
    assert_int_equal(wait_for(&b, file[0], F_WRLCK, 0), 0);
    give_back(&a, file[0], 0); /* b is about to get it, and holds nothing up */
    assert_int_equal(wait_for(&a, file[1], F_WRLCK, 0), 0);
    assert_int_equal(wait_on(&b), 0);
    assert_int_equal(notes(), 2);
    stop_waiting(&a);
    stop_waiting(&b);
}

/* Shared locks are not in each other's way, though their owner has others that are. */
static void test_shared(void **state)
{
    struct owner a = {0, 1, {0}}, b = {1, 2, {0}}, c = {2, 3, {0}};

    (void)state;
    assert_int_equal(set(&a, file[0], F_RDLCK, 0, NULL), 0);
    take(&b, file[1], 0);
    assert_int_equal(wait_for(&a, file[1], F_RDLCK, 0), 0);
    assert_int_equal(set(&b, file[0], F_RDLCK, 0, NULL), 0);
    assert_int_equal(wait_for(&c, file[0], F_WRLCK, 0), 0);
    /* An upgrade that both want. */
    stop_waiting(&a);
    assert_int_equal(wait_for(&a, file[0], F_WRLCK, 0), 0);
    assert_int_equal(wait_for(&b, file[0], F_WRLCK, 0), -EDEADLK);
    stop_waiting(&a);
    stop_waiting(&c);
    assert_int_equal(notes(), 0);
}

/* Whose session is dead waits no more, though his note is in place. */
static void test_note_of_the_dead(void **state)
{
    struct owner a = {0, 1, {0}}, b = {1, 2, {0}};

    (void)state;
    take(&a, file[0], 0);
    take(&b, file[1], 0);
    assert_int_equal(wait_for(&b, file[0], F_WRLCK, 0), 0);
    a.wait = (struct mfs_meta_wait){.ino = file[1],
                                    .lock = {.type = F_WRLCK, .start = 0, .end = 0, .owner = a.id}};
    assert_int_equal(set(&a, file[1], F_WRLCK, 0, &a.wait.holder), -EAGAIN);
    meta_client_alive(&client[1], false);
    assert_int_equal(wait_on(&a), 0);
    meta_client_alive(&client[1], true);
    assert_int_equal(wait_on(&a), -EDEADLK);
    stop_waiting(&b);
}

/* Notes go by themselves. */
static void test_notes_expire(void **state)
{
    struct owner a = {0, 1, {0}}, b = {1, 2, {0}};
    char key[17] = {'W'};
    struct mfs_call c;
    int64_t left;

    (void)state;
    take(&a, file[0], 0);
    assert_int_equal(wait_for(&b, file[0], F_WRLCK, 0), 0);
    mfs_put_be64(key + 1, mfs_meta_session(client[1].meta));
    mfs_put_be64(key + 9, b.id);
    mfs_call_command(&c, "PTTL");
    mfs_args_bin(&c.args, key, sizeof key);
    assert_int_equal(mfs_call_run(client[0].meta, &c, 0), 0);
    left = mfs_reply_int(c.cmd.reply);
    mfs_call_fini(&c);
    assert_in_range(left, 1, MFS_META_WAIT_TTL / MFS_MSEC);
    stop_waiting(&b);
}

/* An owner's newer wait is not taken back with an older one. */
static void test_two_waits_of_one(void **state)
{
    struct owner a = {0, 1, {0}}, b = {1, 2, {0}}, again = {1, 2, {0}};

    (void)state;
    take(&a, file[0], 0);
    take(&a, file[1], 0);
    assert_int_equal(wait_for(&b, file[0], F_WRLCK, 0), 0);
    assert_int_equal(wait_for(&again, file[1], F_WRLCK, 0), 0);
    stop_waiting(&b);
    assert_int_equal(notes(), 1);
    stop_waiting(&again);
    assert_int_equal(notes(), 0);
}

/* A chain of n owners, the last of whom asks for the first one's lock. */
static int ring_of(unsigned n)
{
    struct owner o[CHAIN + 1] = {0};
    int rc;

    for (unsigned i = 0; i < n; i++) {
        o[i] = (struct owner){i % 3, 100 + i, {0}};
        take(&o[i], file[i % 2], i);
    }
    for (unsigned i = 0; i + 1 < n; i++)
        assert_int_equal(wait_for(&o[i], file[(i + 1) % 2], F_WRLCK, i + 1), 0);
    rc = wait_for(&o[n - 1], file[0], F_WRLCK, 0);
    for (unsigned i = 0; i < n; i++) {
        stop_waiting(&o[i]);
        give_back(&o[i], file[i % 2], i);
    }
    assert_int_equal(notes(), 0);
    return rc;
}

static void test_long_rings(void **state)
{
    (void)state;
    assert_int_equal(ring_of(CHAIN), -EDEADLK);
    assert_int_equal(ring_of(CHAIN + 1), 0); /* bounded */
}

/* Who waits for one of a ring is not in it. */
static void test_beside_a_ring(void **state)
{
    struct owner a = {0, 1, {0}}, b = {1, 2, {0}}, c = {2, 3, {0}};

    (void)state;
    take(&a, file[0], 0);
    take(&b, file[1], 0);
    take(&c, file[2], 0);
    assert_int_equal(wait_for(&a, file[1], F_WRLCK, 0), 0);
    b.wait = (struct mfs_meta_wait){.ino = file[0],
                                    .lock = {.type = F_WRLCK, .start = 0, .end = 0, .owner = b.id}};
    assert_int_equal(set(&b, file[0], F_WRLCK, 0, &b.wait.holder), -EAGAIN);
    assert_int_equal(wait_for(&c, file[1], F_WRLCK, 0), 0);
    assert_int_equal(wait_on(&b), -EDEADLK);
    assert_int_equal(wait_on(&c), 0);
    stop_waiting(&a);
    stop_waiting(&c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_two),          TEST(test_three),
        TEST(test_delayed),      TEST(test_given_back),
        TEST(test_shared),       TEST(test_note_of_the_dead),
        TEST(test_notes_expire), TEST(test_two_waits_of_one),
        TEST(test_long_rings),   TEST(test_beside_a_ring),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
