/* Connections that no call uses are closed in time, and never more are kept than told: against real
 * redis processes, by the process' own descriptors. ctest: threaded waits */
#include "store_test.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#define NPARTS 6
#define IDLE   (MFS_SEC / 2)

static struct store_test t;

static int setup(void **state)
{
    store_test_open(&t, &(struct redis_fixture_opts){.nparts = NPARTS}, *state);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_test_close(&t);
    return 0;
}

/* Sockets of this process. */
static unsigned sockets(void)
{
    DIR *d = opendir("/proc/self/fd");
    const struct dirent *e;
    unsigned n = 0;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        char to[64];
        ssize_t len = readlinkat(dirfd(d), e->d_name, to, sizeof to - 1);

        n += len > 7 && strncmp(to, "socket:", 7) == 0;
    }
    closedir(d);
    return n;
}

static void use(uint32_t part)
{
    assert_int_equal(run3(t.store, part, "PING", NULL, NULL, true), 0);
}

static void those_that_wait_for_long_are_closed(void **state)
{
    unsigned before = sockets();

    (void)state;
    for (uint32_t p = 0; p < NPARTS; p++)
        use(p);
    assert_int_equal(sockets(), before + NPARTS);
    for (int i = 0; i < 20; i++) { /* one is in use all the time */
        mfs_clock_sleep(IDLE / 10);
        use(3);
    }
    assert_int_equal(sockets(), before + 1);
    use(0); /* the others are connected again */
    assert_int_equal(sockets(), before + 2);
}

static void no_more_are_kept_than_told(void **state)
{
    unsigned before = sockets();

    (void)state;
    for (int round = 0; round < 3; round++)
        for (uint32_t p = 0; p < NPARTS; p++) {
            use(p);
            assert_true(sockets() <= before + 2);
        }
    assert_int_equal(sockets(), before + 2);
}

static void posted_commands_leave_none(void **state)
{
    unsigned before = sockets();
    int64_t end;

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (uint32_t p = 0; p < NPARTS; p++) {
            struct mfs_args a;
            struct mfs_cmd cmd = cmd_of(&a, p, "INCR", "posted", NULL);

            assert_int_equal(mfs_store_post(t.store, &cmd), 0);
        }
        assert_int_equal(mfs_store_drain(t.store, 5 * MFS_SEC), 0);
        assert_true(sockets() >= before + NPARTS);
        end = mfs_clock_mono() + 10 * MFS_SEC;
        while (sockets() > before && mfs_clock_mono() < end)
            mfs_clock_sleep(IDLE / 10);
        assert_int_equal(sockets(), before);
    }
    assert_int_equal(run3(t.store, 0, "INCR", "posted", NULL, false), 0);
}

/* Nothing is wrong with a partition that there is no descriptor for: another one's connection goes.
 */
static void without_descriptors_an_idle_one_goes(void **state)
{
    int null[1024], n = 0;

    (void)state;
    for (uint32_t p = 0; p < 3; p++)
        use(p);
    while (n < 1024 && (null[n] = dup(0)) >= 0)
        n++;
    assert_int_equal(errno, EMFILE);
    for (uint32_t p = 0; p < NPARTS; p++)
        use(p);
    while (n > 0)
        close(null[--n]);
    for (uint32_t p = 0; p < NPARTS; p++)
        use(p);
}

#define WITH(test, ...)                                                                            \
    cmocka_unit_test_prestate_setup_teardown(test, setup, teardown,                                \
                                             &(struct mfs_store_opts){__VA_ARGS__})

int main(void)
{
    struct rlimit few = {512, 512};

    setrlimit(RLIMIT_NOFILE, &few);
    const struct CMUnitTest tests[] = {
        WITH(those_that_wait_for_long_are_closed, .idle_time = IDLE),
        WITH(no_more_are_kept_than_told, .idle_most = 2),
        WITH(posted_commands_leave_none, .idle_time = IDLE),
        WITH(without_descriptors_an_idle_one_goes, .idle_time = 60 * MFS_SEC),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
