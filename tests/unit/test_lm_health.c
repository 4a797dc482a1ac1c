/* The health of processes that hang, lack consent, end, come back, and talk nonsense.
 * ctest: single waits */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "lm/redis/health.h"
#include "loop_until.h"
#include "redis_fixture.h"

static struct redis_fixture *fixture;
static struct mfs_loop *loop;
static struct mfs_timer *timer;
static struct mfs_health *health;
static int told;

static void changed(void *arg)
{
    (void)arg;
    told++;
}

static void check(void *arg)
{
    (void)arg;
    if (health)
        mfs_health_check(health, mfs_clock_mono());
}

static int setup(void **state)
{
    (void)state;
    if (redis_fixture_start(&fixture, &(struct redis_fixture_opts){.nparts = 2, .tcp = true}))
        return -1;
    loop = mfs_loop_create();
    timer = mfs_loop_timer(loop, 0, MFS_HEALTH_NS, check, NULL);
    return loop && timer ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    kill(redis_fixture_pid(fixture, 1), SIGCONT);
    mfs_timer_cancel(timer);
    mfs_loop_destroy(loop);
    redis_fixture_stop(fixture);
    return 0;
}

static void begin(const char *path, const char *password)
{
    told = 0;
    health = mfs_health_begin(loop, path, password, changed, NULL);
    assert_non_null(health);
}

static void begin_at(uint32_t part)
{
    char path[128];

    redis_fixture_socket(fixture, part, path, sizeof path);
    begin(path, REDIS_FIXTURE_ADMIN_PASSWORD);
}

static void end(void)
{
    mfs_health_end(health);
    health = NULL;
}

static bool is_silent(void *arg)
{
    (void)arg;
    return mfs_health_silent(health);
}

static bool answers(void *arg)
{
    (void)arg;
    return !mfs_health_silent(health);
}

static bool is_starved(void *arg)
{
    (void)arg;
    return mfs_health_starved(health);
}

static bool is_fed(void *arg)
{
    (void)arg;
    return !mfs_health_starved(health);
}

static bool is_over(void *arg)
{
    return mfs_clock_mono() >= *(int64_t *)arg;
}

/* Runs for so long that a process which does not answer would be silent twice over. */
static void run(void)
{
    int64_t until = mfs_clock_mono() + 2 * (MFS_HEALTH_SILENT_NS + MFS_HEALTH_NS);

    assert_true(loop_until(loop, is_over, &until));
}

static void nobody_is_nothing(void **state)
{
    (void)state;
    assert_false(mfs_health_silent(NULL));
    assert_false(mfs_health_starved(NULL));
    mfs_health_end(NULL);
}

static void a_process_that_hangs_is_silent_until_it_goes_on(void **state)
{
    pid_t pid = redis_fixture_pid(fixture, 0);

    (void)state;
    begin_at(0);
    run();
    assert_true(answers(NULL) && is_fed(NULL));
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_true(loop_until(loop, is_silent, NULL));
    assert_int_equal(told, 1);
    run();
    assert_int_equal(told, 1);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_true(loop_until(loop, answers, NULL));
    assert_int_equal(told, 2);
    end();
}

static void a_process_without_consent_is_starved(void **state)
{
    struct mfs_table *t = redis_fixture_table(fixture);
    pid_t replica = redis_fixture_pid(fixture, 1);
    char command[256];

    (void)state;
    begin_at(0);
    assert_int_equal(redis_fixture_admin(fixture, 0, "mfs_term admit " MFS_REDIS_COPY " word"), 0);
    snprintf(command, sizeof command, "mfs_term begin %s %u %s %s word", t->part[1].host,
             t->part[1].port, MFS_REDIS_ADMIN, REDIS_FIXTURE_ADMIN_PASSWORD);
    assert_int_equal(redis_fixture_admin(fixture, 0, command), 0);
    assert_true(loop_until(loop, is_fed, NULL));
    assert_int_equal(kill(replica, SIGSTOP), 0);
    assert_true(loop_until(loop, is_starved, NULL));
    assert_false(mfs_health_silent(health));
    assert_int_equal(kill(replica, SIGCONT), 0);
    assert_true(loop_until(loop, is_fed, NULL));
    assert_int_equal(kill(replica, SIGSTOP), 0);
    assert_true(loop_until(loop, is_starved, NULL));
    assert_int_equal(redis_fixture_admin(fixture, 0, "mfs_term end"), 0);
    assert_true(loop_until(loop, is_fed, NULL));
    assert_int_equal(kill(replica, SIGCONT), 0);
    end();
    free(t);
}

static void another_process_at_the_same_place_will_do(void **state)
{
    (void)state;
    begin_at(0);
    run();
    redis_fixture_kill(fixture, 0);
    assert_true(loop_until(loop, is_silent, NULL));
    assert_int_equal(redis_fixture_restart(fixture, 0), 0);
    assert_true(loop_until(loop, answers, NULL));
    end();
}

static void who_can_not_be_asked_is_silent(void **state)
{
    char path[128];

    (void)state;
    begin("/nowhere/at/all", "x");
    assert_true(loop_until(loop, is_silent, NULL));
    end();
    redis_fixture_socket(fixture, 0, path, sizeof path);
    begin(path, "wrong");
    assert_true(loop_until(loop, is_silent, NULL));
    end();
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    assert_null(mfs_health_begin(loop, path, "x", changed, NULL));
}

/* ---- a process that says what it likes ------------------------------------------------------- */

static int accept_one(int listener)
{
    int64_t until = mfs_clock_mono() + 20 * MFS_SEC;
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0) {
        int64_t soon = mfs_clock_mono() + 10 * MFS_MSEC;

        assert_true(mfs_clock_mono() < until);
        loop_until(loop, is_over, &soon);
    }
    return fd;
}

static void say(int fd, const char *text, size_t n)
{
    assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

static bool is_hung_up(void *arg)
{
    char questions[256];

    return recv(*(int *)arg, questions, sizeof questions, MSG_DONTWAIT) == 0;
}

static void nonsense_is_no_answer(void **state)
{
    static const char *const nonsense[] = {"x", "-NOPERM no\r\n", "+OK\r\n:1\r\n",
                                           "+OK\r\n*2\r\n+a\r\n:1\r\n+++++++++++++++++++++++++++++"
                                           "++++++++++++++++++++++++++++++++++++++++++++++++++++++"
                                           "++++++++++++++++++++++++++++++++++++++++++++++++++++"};
    static const char answer[] = "+OK\r\n*2\r\n:1\r\n:1100\r\n";
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), fd;

    (void)state;
    snprintf(at.sun_path, sizeof at.sun_path, "/tmp/test_lm_health.%d", (int)getpid());
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 4), 0);
    begin(at.sun_path, "x");
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        fd = accept_one(listener);
        say(fd, nonsense[i], strlen(nonsense[i]));
        assert_true(loop_until(loop, is_hung_up, &fd));
        close(fd);
    }
    assert_true(loop_until(loop, is_silent, NULL));
    fd = accept_one(listener);
    for (size_t i = 0; i < sizeof answer - 1; i++) {
        int64_t soon = mfs_clock_mono() + 10 * MFS_MSEC;

        say(fd, answer + i, 1);
        loop_until(loop, is_over, &soon);
        assert_int_equal(mfs_health_silent(health), i + 2 < sizeof answer);
    }
    assert_true(answers(NULL) && is_fed(NULL));
    end();
    close(fd);
    close(listener);
    unlink(at.sun_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_nothing),
        cmocka_unit_test(a_process_that_hangs_is_silent_until_it_goes_on),
        cmocka_unit_test(a_process_without_consent_is_starved),
        cmocka_unit_test(another_process_at_the_same_place_will_do),
        cmocka_unit_test(who_can_not_be_asked_is_silent),
        cmocka_unit_test(nonsense_is_no_answer),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
