/* Workers that serve requests, which here are the bytes of a pipe: few of them while requests come
 * one by one; another one whenever all are kept waiting, whether they say so or not; and what is
 * urgent even when so many are kept waiting as may be.
 * ctest: threaded */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads/thread.h"
#include "fuse/mount/workers.h"

#define MOST     8
#define HELD     32U /* bytes, of which each request has one */
#define PATIENCE 20  /* s */

static struct mfs_workers *workers;
static pthread_t runner;
static int result;
static int requests[2];
static sem_t served;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t changed;
static bool open_now;
static unsigned held; /* requests that are kept waiting … */
static sem_t untold;  /* … and what those wait for that do not say so */
static unsigned most_held;
static pthread_t seen[MOST + 1]; /* threads that served something */
static unsigned nseen;
static atomic_bool killed; /* who waits for an 'x' */
static atomic_uint dropped, looks;

static void note_thread(void)
{
    unsigned i = 0;

    pthread_mutex_lock(&lock);
    while (i < nseen && !pthread_equal(seen[i], pthread_self()))
        i++;
    if (i == nseen && i <= MOST)
        seen[nseen++] = pthread_self();
    pthread_mutex_unlock(&lock);
}

static void hold(void)
{
    pthread_mutex_lock(&lock);
    if (++held > most_held)
        most_held = held;
    pthread_cond_broadcast(&changed);
    while (!open_now)
        mfs_cond_wait(&changed, &lock, PATIENCE * MFS_SEC);
    held--;
    pthread_mutex_unlock(&lock);
}

static void hold_untold(void)
{
    pthread_mutex_lock(&lock);
    held++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    while (sem_wait(&untold) < 0)
        ;
    pthread_mutex_lock(&lock);
    held--;
    pthread_mutex_unlock(&lock);
}

static ssize_t pipe_wait(void *arg, char *buf)
{
    ssize_t n = read(requests[0], buf, 1);

    (void)arg;
    return n < 0 ? -errno : n;
}

static size_t pipe_ready(void *arg, char *buf)
{
    (void)arg;
    (void)buf;
    return 0;
}

static void pipe_serve(void *arg, char *buf, size_t len)
{
    (void)arg;
    assert_int_equal(len, 1);
    note_thread();
    if (*buf == 'h' || *buf == 'b')
        hold();
    else if (*buf == 'u')
        hold_untold();
    sem_post(&served);
}

/* 'a' waits for nothing, and a 'b' not for long, it says. */
static enum mfs_workers_urgency pipe_urgency(void *arg, const char *buf, size_t len)
{
    (void)arg;
    assert_int_equal(len, 1);
    return *buf == 'a' ? MFS_WORKERS_AT_ONCE : *buf == 'b' ? MFS_WORKERS_BRIEF : MFS_WORKERS_NORMAL;
}

/* An 'x', once it is to be: nobody waits for it. */
static bool pipe_gone(void *arg, const char *request, size_t len)
{
    (void)arg;
    assert_int_equal(len, 1);
    if (*request != 'x' || !atomic_load(&killed))
        return false;
    atomic_fetch_add(&dropped, 1);
    return true;
}

static bool pipe_look(void *arg)
{
    (void)arg;
    atomic_fetch_add(&looks, 1);
    return false;
}

static const struct mfs_workers_source source = {.ready = pipe_ready,
                                                 .wait = pipe_wait,
                                                 .serve = pipe_serve,
                                                 .urgency = pipe_urgency,
                                                 .gone = pipe_gone,
                                                 .look = pipe_look,
                                                 .size = 4096};

static void *run(void *arg)
{
    result = mfs_workers_run(arg);
    return NULL;
}

static int setup(void **state)
{
    (void)state;
    nseen = held = most_held = 0;
    open_now = false;
    atomic_store(&killed, false);
    atomic_store(&dropped, 0);
    assert_int_equal(mfs_cond_init(&changed), 0);
    assert_int_equal(sem_init(&served, 0, 0), 0);
    assert_int_equal(sem_init(&untold, 0, 0), 0);
    assert_int_equal(pipe(requests), 0);
    assert_int_equal(mfs_workers_create(&workers, MOST, HELD, &source, NULL), 0);
    assert_int_equal(pthread_create(&runner, NULL, run, workers), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(pthread_join(runner, NULL), 0);
    assert_int_equal(result, 0);
    mfs_workers_destroy(workers);
    close(requests[0]);
    if (requests[1] >= 0)
        close(requests[1]);
    return 0;
}

static void ask(char kind)
{
    assert_int_equal(write(requests[1], &kind, 1), 1);
}

static void is_served(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    assert_int_equal(sem_timedwait(&served, &until), 0);
}

static void wait_until_held(unsigned n)
{
    int64_t end = mfs_clock_mono() + PATIENCE * MFS_SEC;

    pthread_mutex_lock(&lock);
    while (held < n && mfs_clock_mono() < end)
        mfs_cond_wait(&changed, &lock, MFS_SEC);
    assert_int_equal(held, n);
    pthread_mutex_unlock(&lock);
}

static void let_go(void)
{
    pthread_mutex_lock(&lock);
    open_now = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Two readers; a third one may have to stand in while both are at work. */
static void test_few_serve_one_by_one(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        ask('q');
        is_served();
    }
    assert_in_range(nseen, 1, 3);
    mfs_workers_stop(workers);
}

/* All but one wait for what the last one serves. */
static void test_another_one_when_all_wait(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MOST - 1; i++)
        ask('h');
    wait_until_held(MOST - 1);
    for (unsigned i = 0; i < 100; i++) {
        ask('q');
        is_served();
    }
    let_go();
    for (unsigned i = 0; i < MOST - 1; i++)
        is_served();
    mfs_workers_stop(workers);
}

/* … and do not say so. */
static void test_another_one_when_all_wait_untold(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MOST - 1; i++)
        ask('u');
    wait_until_held(MOST - 1);
    ask('q');
    is_served();
    for (unsigned i = 0; i < MOST - 1; i++)
        sem_post(&untold);
    for (unsigned i = 0; i < MOST - 1; i++)
        is_served();
    mfs_workers_stop(workers);
}

/* Never more than there may be; what they have no time for is served later. */
static void test_no_more_than_most(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3 * MOST; i++)
        ask('h');
    wait_until_held(MOST);
    ask('a');
    is_served(); /* the others are held by now */
    let_go();
    for (unsigned i = 0; i < 3 * MOST; i++)
        is_served();
    assert_int_equal(most_held, MOST);
    mfs_workers_stop(workers);
}

/* What is urgent is served beside them: always what waits for nothing; else one at a time. */
static void test_urgent_when_most_wait(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2 * MOST; i++)
        ask(i % 2 ? 'h' : 'u');
    wait_until_held(MOST);
    for (unsigned i = 0; i < 3; i++)
        ask('b');
    wait_until_held(MOST + 1);
    for (unsigned i = 0; i < 100; i++) {
        ask('a');
        is_served();
    }
    wait_until_held(MOST + 1);
    let_go();
    for (unsigned i = 0; i < MOST; i++)
        sem_post(&untold);
    for (unsigned i = 0; i < 2 * MOST + 3; i++)
        is_served();
    mfs_workers_stop(workers);
}

/* More than may be held stays where it comes from, and comes when there is room. */
static void test_room_for_what_is_held(void **state)
{
    const unsigned all = MOST + HELD + 10;

    (void)state;
    for (unsigned i = 0; i < all; i++)
        ask('h');
    wait_until_held(MOST + 2);
    let_go();
    for (unsigned i = 0; i < all; i++)
        is_served();
    ask('a');
    is_served();
    mfs_workers_stop(workers);
}

/* Of what is held, that for which nobody waits any more is not served, and leaves its room. */
static void test_drops_what_is_gone(void **state)
{
    int64_t end;

    (void)state;
    for (unsigned i = 0; i < MOST; i++)
        ask('h');
    wait_until_held(MOST);
    for (unsigned i = 0; i < HELD; i++)
        ask(i % 2 ? 'x' : 'q');
    ask('a');
    is_served();
    atomic_store(&killed, true);
    end = mfs_clock_mono() + PATIENCE * MFS_SEC;
    while (atomic_load(&dropped) < HELD / 2 && mfs_clock_mono() < end)
        mfs_clock_sleep(MFS_MSEC);
    assert_int_equal(atomic_load(&dropped), HELD / 2);
    assert_true(atomic_load(&looks) > 0);
    for (unsigned i = 0; i < HELD / 2; i++)
        ask('q');
    ask('a');
    is_served();
    wait_until_held(MOST); /* none was served for want of room */
    let_go();
    for (unsigned i = 0; i < MOST + HELD; i++)
        is_served();
    assert_int_equal(sem_trywait(&served), -1);
    mfs_workers_stop(workers);
}

/* What is held is not served when all is over. */
static void test_stop_with_some_held(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2 * MOST; i++)
        ask('h');
    wait_until_held(MOST);
    ask('a');
    is_served();
    mfs_workers_stop(workers);
    let_go();
    for (unsigned i = 0; i < MOST; i++)
        is_served();
}

/* What was taken is served to the end, although no more is taken. */
static void test_stop_lets_them_end(void **state)
{
    (void)state;
    ask('h');
    ask('u');
    wait_until_held(2);
    mfs_workers_stop(workers);
    mfs_workers_stop(workers);
    sem_post(&untold);
    let_go();
    is_served();
    is_served();
}

static void test_end_of_requests(void **state)
{
    (void)state;
    ask('q');
    is_served();
    close(requests[1]);
    requests[1] = -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_few_serve_one_by_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_one_when_all_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_one_when_all_wait_untold, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_more_than_most, setup, teardown),
        cmocka_unit_test_setup_teardown(test_urgent_when_most_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_for_what_is_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drops_what_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_with_some_held, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_lets_them_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_end_of_requests, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
