/* ctest: threaded
 *
 * The loop: timers in order, watches removed from callbacks, posts from threads, signals, children.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "host/proc.h"
#include "base/threads/thread.h"
#include "net/loop.h"

static struct mfs_loop *loop;
static char trace[64];

static int setup(void **state)
{
    (void)state;
    loop = mfs_loop_create();
    memset(trace, 0, sizeof trace);
    return loop ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    mfs_loop_destroy(loop);
    return 0;
}

static void stop(void *arg)
{
    (void)arg;
    mfs_loop_stop(loop);
}

static void note(void *arg)
{
    size_t n = strlen(trace);

    if (n < sizeof trace - 1)
        trace[n] = *(const char *)arg;
}

static void timers_fire_in_order(void **state)
{
    static const char letters[] = "abcdefgh";
    static const int at[] = {7, 2, 5, 0, 3, 6, 1, 4};
    struct mfs_timer *dropped;
    char expected[9] = "";

    (void)state;
    for (int i = 0; i < 8; i++) {
        assert_non_null(
            mfs_loop_timer(loop, at[i] * 3 * MFS_MSEC, 0, note, (void *)&letters[at[i]]));
        expected[i] = letters[i];
    }
    dropped = mfs_loop_timer(loop, 4 * MFS_MSEC, 0, note, (void *)"X");
    mfs_timer_cancel(dropped);
    mfs_timer_cancel(NULL);
    mfs_loop_timer(loop, 60 * MFS_MSEC, 0, stop, NULL);
    assert_int_equal(mfs_loop_run(loop), 0);
    assert_string_equal(trace, expected);
}

struct periodic {
    struct mfs_timer *timer;
    int left;
};

static void tick(void *arg)
{
    struct periodic *p = arg;

    if (!--p->left) {
        mfs_timer_cancel(p->timer);
        mfs_loop_stop(loop);
    }
}

static void periodic_timer(void **state)
{
    struct periodic p = {NULL, 5};
    int64_t t = mfs_clock_mono();

    (void)state;
    p.timer = mfs_loop_timer(loop, 2 * MFS_MSEC, 2 * MFS_MSEC, tick, &p);
    assert_int_equal(mfs_loop_run(loop), 0);
    assert_true(mfs_clock_mono() - t >= 10 * MFS_MSEC);
}

static void many_random_timers(void **state)
{
    struct mfs_timer *t[500];

    (void)state;
    srand(3);
    for (int i = 0; i < 500; i++)
        t[i] = mfs_loop_timer(loop, MFS_SEC + rand() % 1000, 0, note, (void *)"!");
    for (int i = 0; i < 500; i++)
        if (i % 3)
            mfs_timer_cancel(t[i]);
    mfs_loop_timer(loop, 0, 0, stop, NULL);
    assert_int_equal(mfs_loop_run(loop), 0);
    assert_string_equal(trace, "");
}

static struct mfs_watch *pair[2];
static int fds[2][2];

/* Whichever comes first removes both. */
static void remove_both(void *arg, uint32_t events)
{
    (void)events;
    note(arg);
    mfs_watch_remove(pair[0]);
    mfs_watch_remove(pair[1]);
    mfs_loop_timer(loop, 5 * MFS_MSEC, 0, stop, NULL);
}

static void removed_watches_stay_silent(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipe(fds[i]), 0);
        assert_int_equal(write(fds[i][1], "x", 1), 1);
        pair[i] = mfs_loop_watch(loop, fds[i][0], EPOLLIN, remove_both, (void *)"w");
        assert_non_null(pair[i]);
    }
    assert_int_equal(mfs_loop_run(loop), 0);
    assert_string_equal(trace, "w");
    for (int i = 0; i < 2; i++) {
        close(fds[i][0]);
        close(fds[i][1]);
    }
}

static int posted;

static void count(void *arg)
{
    (void)arg;
    posted++; /* the loop's thread alone */
}

static void *poster(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++)
        mfs_loop_post(loop, count, NULL);
    mfs_loop_post(loop, stop, NULL);
    return NULL;
}

static void posts_from_a_thread(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(mfs_thread_start(&thread, "poster", poster, NULL), 0);
    assert_int_equal(mfs_loop_run(loop), 0);
    pthread_join(thread, NULL);
    assert_int_equal(posted, 1000);
}

static void caught(void *arg, int signo)
{
    *(int *)arg = signo;
    mfs_loop_stop(loop);
}

static void signals(void **state)
{
    int got = 0;

    (void)state;
    assert_int_equal(mfs_loop_signal(loop, SIGUSR1, caught, &got), 0);
    assert_int_equal(mfs_loop_signal(loop, SIGUSR2, caught, &got), 0);
    kill(getpid(), SIGUSR2);
    assert_int_equal(mfs_loop_run(loop), 0);
    assert_int_equal(got, SIGUSR2);
}

static void ended(void *arg, pid_t pid, int status)
{
    (void)pid;
    *(int *)arg = status;
    mfs_loop_stop(loop);
}

static void children(void **state)
{
    const char *argv[] = {"sh", "-c", "exit 7", NULL};
    int status = 0;
    pid_t pid = mfs_proc_spawn(argv, NULL);

    (void)state;
    assert_true(pid > 0);
    assert_non_null(mfs_loop_process(loop, pid, ended, &status));
    assert_int_equal(mfs_loop_run(loop), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_null(mfs_loop_process(loop, pid, ended, &status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timers_fire_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(periodic_timer, setup, teardown),
        cmocka_unit_test_setup_teardown(many_random_timers, setup, teardown),
        cmocka_unit_test_setup_teardown(removed_watches_stay_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(posts_from_a_thread, setup, teardown),
        cmocka_unit_test_setup_teardown(signals, setup, teardown),
        cmocka_unit_test_setup_teardown(children, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
