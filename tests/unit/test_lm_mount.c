/* The node's mount as cm sees it, with the real client: mounting, unmounting, and all the ways in
 * which a client or lm may die in between. ctest: timeout=180 waits */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "lm_world.h"

#include "base/clock.h"
#include "base/file.h"
#include "host/mountinfo.h"
#include "base/text.h"

struct mount {
    struct mfs_msg_mount m;
    struct mfs_mountinfo info;
    struct mfs_proc client;
};

static bool is_mounted(const struct mount *mount, struct mfs_mountinfo *info)
{
    return !mfs_mountinfo_find(mount->m.path, info);
}

static struct mfs_proc client_of(const struct lm_world *w)
{
    struct mfs_state s = lm_world_state(w);
    struct mfs_proc p = mfs_state_proc_get(&s.mounter.proc);

    mfs_schema_clear(&mfs_state_schema, &s);
    return p;
}

/* A deployment of one node with its mount. */
static struct mount mounted(struct lm_world *w)
{
    struct mount mount = {0};

    if (!w)
        skip();
    assert_int_equal(lm_world_assign(w), 0);
    assert_int_equal(lm_world_push_table(w), 0);
    mfs_text_format(mount.m.path, sizeof mount.m.path, "%s/a mount", w->dir);
    if (lm_world_ask(w, MFS_MSG_MOUNT, &mount.m))
        fail_msg("%s", w->err.msg);
    assert_true(is_mounted(&mount, &mount.info));
    assert_string_equal(mount.info.fstype, "fuse.memefs");
    mount.client = client_of(w);
    assert_true(mfs_proc_alive(&mount.client));
    return mount;
}

static void write_file(const struct mount *mount, const char *name, const char *text)
{
    char path[PATH_MAX];
    int fd;

    mfs_text_format(path, sizeof path, "%s/%s", mount->m.path, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static bool has_text(const struct mount *mount, const char *name, const char *text)
{
    char path[PATH_MAX], got[64] = "";
    int fd;

    mfs_text_format(path, sizeof path, "%s/%s", mount->m.path, name);
    fd = open(path, O_RDONLY);
    if (fd < 0)
        return false;
    if (read(fd, got, sizeof got - 1) < 0)
        got[0] = '\0';
    close(fd);
    return !strcmp(got, text);
}

static bool told_mounted_twice(struct lm_world *w)
{
    const char *first = strstr(w->events, "mounted: ");

    return first && strstr(first + 1, "\nmounted: ");
}

static bool told_of_death(struct lm_world *w)
{
    return lm_world_has_event(w, "client-died: ");
}

static bool told_of_unmount(struct lm_world *w)
{
    return lm_world_has_event(w, "unmounted: ");
}

static void test_mount_and_unmount(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);
    char note[128];

    write_file(&mount, "f", "hello");
    assert_true(has_text(&mount, "f", "hello"));
    snprintf(note, sizeof note, "%s/node-%d/mount", w->dir, LM_WORLD_NODE);
    assert_int_equal(access(note, F_OK), 0);
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &mount.m), 0); /* again: fine */
    assert_int_equal(client_of(w).pid, mount.client.pid);
    assert_int_equal(lm_world_ask(w, MFS_MSG_UMOUNT, &mount.m), 0);
    assert_false(is_mounted(&mount, &mount.info));
    assert_false(mfs_proc_alive(&mount.client));
    assert_int_not_equal(access(note, F_OK), 0);
    assert_int_equal(lm_world_ask(w, MFS_MSG_UMOUNT, &mount.m), 0); /* again: fine */
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &mount.m), 0);
    assert_true(has_text(&mount, "f", "hello"));
}

/* As a new cm does, which does not know how far the one before it has come. */
static void test_asked_again_while_under_way(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);

    for (int i = 0; i < 3; i++) {
        lm_world_begin(w, MFS_MSG_UMOUNT, &mount.m);
        assert_int_equal(lm_world_ask(w, MFS_MSG_UMOUNT, &mount.m), 0);
        assert_int_equal(lm_world_ask(w, MFS_MSG_UMOUNT, &mount.m), 0);
        assert_false(is_mounted(&mount, &mount.info));
        lm_world_begin(w, MFS_MSG_MOUNT, &mount.m);
        assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &mount.m), 0);
        assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &mount.m), 0);
        assert_true(is_mounted(&mount, &mount.info));
    }
}

static void test_another_mount_is_refused(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w), other = mount;

    mfs_text_format(other.m.path, sizeof other.m.path, "%s2", mount.m.path);
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &other.m), -EBUSY);
    assert_int_equal(lm_world_ask(w, MFS_MSG_UMOUNT, &other.m), -EINVAL);
}

static void test_a_killed_client_is_replaced(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);

    write_file(&mount, "f", "hello");
    mfs_proc_kill(&mount.client, SIGKILL);
    assert_true(lm_world_wait(w, told_of_death, 5));
    assert_true(lm_world_wait(w, told_mounted_twice, 20));
    assert_true(has_text(&mount, "f", "hello"));
    assert_int_not_equal(client_of(w).pid, mount.client.pid);
}

static void test_a_users_unmount_is_respected(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);

    assert_int_equal(mfs_mount_detach(mount.m.path), 0);
    assert_true(lm_world_wait(w, told_of_unmount, 10));
    assert_false(is_mounted(&mount, &mount.info));
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &mount.m), 0);
    assert_true(is_mounted(&mount, &mount.info));
}

static void test_a_hung_client_is_ended(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);
    int64_t begin = mfs_clock_mono();

    mfs_proc_kill(&mount.client, SIGSTOP);
    assert_int_equal(lm_world_ask(w, MFS_MSG_UMOUNT, &mount.m), 0);
    assert_true(mfs_clock_mono() - begin < 12 * MFS_SEC);
    assert_false(mfs_proc_alive(&mount.client));
    assert_false(is_mounted(&mount, &mount.info));
}

/* A program that has a file of the mount open and writes to it until that fails; it says so by its
 * exit status 0. */
static pid_t some_writer(const struct mount *mount)
{
    static char block[65536];
    char path[PATH_MAX];
    pid_t pid = fork();
    int fd;

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    mfs_text_format(path, sizeof path, "%s/busy", mount->m.path);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    for (off_t at = 0;; at = (at + (off_t)sizeof block) % (16 << 20)) {
        if (pwrite(fd, block, sizeof block, at) < 0)
            _exit(0);
    }
}

static bool has_ended(pid_t pid, int seconds)
{
    int64_t until = mfs_clock_mono() + seconds * MFS_SEC;
    int status;

    while (mfs_clock_mono() < until) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        mfs_clock_sleep(10 * MFS_MSEC);
    }
    return false;
}

static void test_stop_with_a_program_at_work(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);
    pid_t writer = some_writer(&mount);
    struct mfs_proc redis = lm_world_redis(w, 0);

    mfs_clock_sleep(500 * MFS_MSEC);
    assert_int_equal(lm_world_ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}), 0);
    assert_true(has_ended(writer, 5));
    assert_false(is_mounted(&mount, &mount.info));
    assert_false(mfs_proc_alive(&mount.client));
    assert_false(mfs_proc_alive(&redis));
    assert_true(lm_world_wait(w, lm_world_lm_ended, 5));
}

/* Clients of other nodes may need the partitions to end in good order. */
static void test_partitions_outlive_the_clients(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);
    struct mfs_proc redis = lm_world_redis(w, 0);

    assert_int_equal(lm_world_ask(w, MFS_MSG_END_CLIENTS, &(struct mfs_msg_empty){0}), 0);
    assert_false(is_mounted(&mount, &mount.info));
    assert_false(mfs_proc_alive(&mount.client));
    assert_true(mfs_proc_alive(&redis));
    assert_int_equal(lm_world_ask(w, MFS_MSG_END_CLIENTS, &(struct mfs_msg_empty){0}), 0);
    assert_int_equal(lm_world_ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}), 0);
    assert_false(mfs_proc_alive(&redis));
    assert_true(lm_world_wait(w, lm_world_lm_ended, 5));
}

static void test_the_mount_outlives_lm(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);

    lm_world_kill_lm(w);
    write_file(&mount, "f", "alone");
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_string_equal(w->join.mount, mount.m.path);
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(client_of(w).pid, mount.client.pid);
    assert_true(has_text(&mount, "f", "alone"));
    assert_int_equal(lm_world_ask(w, MFS_MSG_UMOUNT, &mount.m), 0);
    assert_false(mfs_proc_alive(&mount.client));
}

/* The client is no child of the lm that is there then, so nobody tells how it has ended. */
static void test_a_users_unmount_is_respected_by_the_next_lm(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);

    lm_world_kill_lm(w);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_int_equal(lm_world_push_table(w), 0);
    assert_int_equal(mfs_mount_detach(mount.m.path), 0);
    assert_true(lm_world_wait(w, told_of_unmount, 10));
    assert_false(told_of_death(w));
    assert_false(is_mounted(&mount, &mount.info));
    assert_int_equal(lm_world_ask(w, MFS_MSG_MOUNT, &mount.m), 0);
    assert_true(is_mounted(&mount, &mount.info));
}

static void await_end(const struct mfs_proc *p)
{
    int64_t until = mfs_clock_mono() + 20 * MFS_SEC;

    while (mfs_proc_alive(p) && mfs_clock_mono() < until)
        mfs_clock_sleep(10 * MFS_MSEC);
    assert_false(mfs_proc_alive(p));
}

static void test_an_unmount_while_no_lm_was_there(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);

    lm_world_kill_lm(w);
    assert_int_equal(mfs_mount_detach(mount.m.path), 0);
    await_end(&mount.client);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, told_of_unmount, 20));
    assert_false(told_of_death(w));
    assert_false(is_mounted(&mount, &mount.info));
}

/* As when it was killed between starting the client and writing it down. */
static void test_a_client_that_a_killed_lm_did_not_note(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);
    struct mfs_state s = lm_world_state(w);
    char path[128];

    write_file(&mount, "f", "hello");
    lm_world_kill_lm(w);
    s.mount[0] = '\0';
    s.mounter = (struct mfs_state_client){0};
    s.nclients = 0;
    snprintf(path, sizeof path, "%s/node-%d/lm.json", w->dir, LM_WORLD_NODE);
    assert_int_equal(mfs_state_save(&s, path), 0);
    mfs_schema_clear(&mfs_state_schema, &s);
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 20));
    assert_false(mfs_proc_alive(&mount.client));
    if (lm_world_ask(w, MFS_MSG_MOUNT, &mount.m))
        fail_msg("%s", w->err.msg);
    assert_true(has_text(&mount, "f", "hello"));
}

static void test_a_client_that_died_while_no_lm_was_there(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w);

    lm_world_kill_lm(w);
    mfs_proc_kill(&mount.client, SIGKILL); /* upon SIGTERM it would unmount */
    await_end(&mount.client);
    w->events[0] = '\0';
    lm_world_start_lm(w);
    assert_true(lm_world_wait(w, lm_world_joined, 10));
    assert_true(lm_world_wait(w, told_of_death, 5));
    mfs_text_copy(w->events, sizeof w->events, "mounted: before\n");
    assert_true(lm_world_wait(w, told_mounted_twice, 20));
    write_file(&mount, "f", "again");
}

static void test_a_client_mounted_by_hand_ends_with_the_rest(void **state)
{
    struct lm_world *w = *state;
    struct mount mount = mounted(w), hand = mount;
    char program[PATH_MAX], log[PATH_MAX];
    const char *argv[] = {program,       "mount", "--foreground", "--name",    LM_WORLD_NAME,
                          "--state-dir", w->dir,  "--lm",         w->sock + 5, hand.m.path,
                          NULL};
    int64_t until = mfs_clock_mono() + 20 * MFS_SEC;
    pid_t pid;

    mfs_text_format(hand.m.path, sizeof hand.m.path, "%s by hand", mount.m.path);
    mfs_text_format(program, sizeof program, "%s/memefs", w->bin);
    mfs_text_format(log, sizeof log, "%s/hand.log", w->dir);
    pid = mfs_proc_spawn(argv, log);
    assert_true(pid > 0);
    write_file(&mount, "f", "shared");
    while (!has_text(&hand, "f", "shared") && mfs_clock_mono() < until)
        mfs_clock_sleep(50 * MFS_MSEC);
    assert_true(has_text(&hand, "f", "shared"));
    assert_int_equal(lm_world_ask(w, MFS_MSG_STOP, &(struct mfs_msg_empty){0}), 0);
    assert_false(is_mounted(&hand, &hand.info));
    assert_true(has_ended(pid, 5));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, lm_world_setup_programs, lm_world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_mount_and_unmount),
        TEST(test_asked_again_while_under_way),
        TEST(test_another_mount_is_refused),
        TEST(test_a_killed_client_is_replaced),
        TEST(test_a_users_unmount_is_respected),
        TEST(test_a_hung_client_is_ended),
        TEST(test_stop_with_a_program_at_work),
        TEST(test_partitions_outlive_the_clients),
        TEST(test_the_mount_outlives_lm),
        TEST(test_a_users_unmount_is_respected_by_the_next_lm),
        TEST(test_an_unmount_while_no_lm_was_there),
        TEST(test_a_client_that_a_killed_lm_did_not_note),
        TEST(test_a_client_that_died_while_no_lm_was_there),
        TEST(test_a_client_mounted_by_hand_ends_with_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
