/* A Local Manager that is short of descriptors, processes or room for its state file for a moment:
 * a partition is not taken for dead by that, nor is what is left of it given up, nor is anything
 * told that the next one would not know. The test's own pidfd_open, eventfd and fork refuse so many
 * calls of the Local Manager's. ctest: timeout=120 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "move_source.h"

#include "base/clock.h"
#include "lm/copy/mover.h"

static struct refusals {
    atomic_int watches, events, forks;
} * refuse; /* shared with the Local Manager, a fork of the test */

static pid_t test_process;

static bool refused(atomic_int *left, int why)
{
    int n = getpid() == test_process ? 0 : atomic_load(left);

    while (n > 0 && !atomic_compare_exchange_weak(left, &n, n - 1))
        ;
    if (n > 0)
        errno = why;
    return n > 0;
}

int pidfd_open(pid_t pid, unsigned int flags)
{
    if (refuse && refused(&refuse->watches, EMFILE))
        return -1;
    return (int)syscall(SYS_pidfd_open, pid, flags);
}

int eventfd(unsigned int count, int flags)
{
    if (refuse && refused(&refuse->events, EMFILE))
        return -1;
    return (int)syscall(SYS_eventfd2, count, flags);
}

pid_t fork(void)
{
    pid_t (*real)(void);

    *(void **)&real = dlsym(RTLD_NEXT, "fork"); /* as dlsym(3) has it */
    if (refuse && refused(&refuse->forks, EAGAIN))
        return -1;
    return real();
}

static int setup_all(void **state)
{
    (void)state;
    test_process = getpid();
    refuse = mmap(NULL, sizeof *refuse, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return refuse == MAP_FAILED ? -1 : 0;
}

/* With 50 values of 10 KB and a name; the source's copy is whole. */
static void copy(struct move_source *s)
{
    struct mfs_channel *c = move_client(&s->redis);

    move_fill(s, "50", "10000");
    assert_int_equal(move_run(c, "SET", "name", "kept", NULL, 0), 0);
    mfs_channel_close(c);
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
}

static struct mfs_proc process(const struct move_source *s)
{
    return lm_world_redis(s->w, MOVE_PART);
}

static bool says(const struct lm_world *w, const char *what)
{
    return lm_world_has_event(w, what);
}

static bool is_revived(struct lm_world *w)
{
    return says(w, "redis-revived: partition 1");
}

static void kill_and_see_it_revived(struct move_source *s)
{
    struct mfs_proc p = process(s);
    struct mfs_redis target = move_target(s);
    struct mfs_channel *c;
    char got[16];

    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    assert_true(lm_world_wait(s->w, is_revived, 20));
    assert_false(says(s->w, "redis-lost"));
    c = move_client(&target);
    assert_int_equal(move_run(c, "GET", "name", NULL, got, sizeof got), 0);
    assert_string_equal(got, "kept");
    mfs_channel_close(c);
}

static void test_what_was_taken_can_not_be_watched(void **state)
{
    struct move_source *s = *state;

    copy(s);
    refuse->watches = 1;
    move_take_and_check(s, false);
    assert_int_equal(refuse->watches, 0);
    assert_false(says(s->w, "redis-died"));
    kill_and_see_it_revived(s);
}

static void test_a_new_lm_can_not_watch(void **state)
{
    struct move_source *s = *state;
    struct mfs_redis target;
    struct mfs_proc before;

    copy(s);
    move_take_and_check(s, false);
    before = process(s);
    target = move_target(s);
    refuse->watches = 2;
    move_restart_lm(s);
    assert_int_equal(process(s).pid, before.pid);
    assert_false(says(s->w, "redis-died"));
    move_check_filled(&target);
    kill_and_see_it_revived(s);
}

static void test_a_cut_can_not_begin(void **state)
{
    struct move_source *s = *state;

    copy(s);
    refuse->events = 1;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EBUSY);
    move_take_and_check(s, false);
}

static void test_nor_that_of_the_only_copy(void **state)
{
    struct move_source *s = *state;

    copy(s);
    mfs_proc_kill(&s->redis.proc, SIGKILL);
    s->take.force = true;
    refuse->events = 1;
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EBUSY);
    move_take_and_check(s, true);
}

static void test_a_revival_fails_at_first(void **state)
{
    struct move_source *s = *state;

    copy(s);
    move_take_and_check(s, false);
    refuse->forks = 2;
    kill_and_see_it_revived(s);
    assert_int_equal(refuse->forks, 0);
}

static bool is_lost(struct lm_world *w)
{
    return says(w, "redis-lost: partition 1");
}

static void test_it_is_not_tried_for_ever(void **state)
{
    struct move_source *s = *state;
    struct mfs_proc p;

    copy(s);
    move_take_and_check(s, false);
    p = process(s);
    refuse->forks = 1000;
    assert_int_equal(mfs_proc_kill(&p, SIGKILL), 0);
    assert_true(lm_world_wait(s->w, is_lost, 30));
    refuse->forks = 0;
}

/* ---- room for the state file ----------------------------------------------------------------- */

static bool writing_again_told(struct lm_world *w)
{
    return says(w, "state-written");
}

static void test_a_copy_can_not_be_noted(void **state)
{
    struct move_source *s = *state;

    move_fill(s, "50", "10000");
    lm_world_hinder(s->w, true);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_RECEIVE, &s->ask), -EBUSY);
    assert_non_null(strstr(s->w->err.msg, "lm.json"));
    lm_world_hinder(s->w, false);
    assert_true(lm_world_wait(s->w, writing_again_told, 5));
    assert_true(lm_world_wait(s->w, move_no_copy_is_left, 5));
    move_must(s, MFS_MSG_RECEIVE, &s->ask);
    move_take_and_check(s, false);
}

/* For the next Local Manager it is a copy, which may be taken; for cm as well. */
static void test_a_cut_can_not_be_noted(void **state)
{
    struct move_source *s = *state;

    copy(s);
    lm_world_hinder(s->w, true);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EBUSY);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EBUSY);
    move_restart_lm(s);
    assert_int_equal(s->w->join.ncopies, 1);
    assert_int_equal(s->w->join.nassigned, 0);
    move_take_and_check(s, false);
    move_restart_lm(s);
    assert_int_equal(s->w->join.ncopies, 0);
    assert_int_equal(s->w->join.nassigned, 1);
    kill_and_see_it_revived(s);
}

/* … and the source may serve again instead. */
static void test_nor_the_one_that_is_given_up(void **state)
{
    struct mfs_msg_release release = {.index = MOVE_PART};
    struct mfs_admin_journal j;
    struct move_source *s = *state;
    struct mfs_err err = {0};

    copy(s);
    lm_world_hinder(s->w, true);
    assert_int_equal(lm_world_ask(s->w, MFS_MSG_TAKE, &s->take), -EBUSY);
    assert_int_equal(mfs_mover_fence(s->redis.unix_path, s->redis.admin_password, false, &j, &err),
                     0);
    memcpy(release.password, s->ask.password, sizeof release.password);
    move_must(s, MFS_MSG_RELEASE, &release);
    lm_world_hinder(s->w, false);
    assert_true(lm_world_wait(s->w, move_no_copy_is_left, 5));
    assert_true(move_serves(&s->redis));
    move_check_filled(&s->redis);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, move_setup, move_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_taken_can_not_be_watched),
        TEST(test_a_new_lm_can_not_watch),
        TEST(test_a_cut_can_not_begin),
        TEST(test_nor_that_of_the_only_copy),
        TEST(test_a_revival_fails_at_first),
        TEST(test_it_is_not_tried_for_ever),
        TEST(test_a_copy_can_not_be_noted),
        TEST(test_a_cut_can_not_be_noted),
        TEST(test_nor_the_one_that_is_given_up),
    };

    return cmocka_run_group_tests(tests, setup_all, NULL);
}
