/* Requests and replies as FUSE over io_uring has them, and interrupts that the kernel does not send
 * again. ctest: single */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fuse/uring/entry.h"
#include "fuse/uring/interrupts.h"

#define PAYLOAD 4096 /* of an entry's memory */

/* What the kernel sees of an entry's headers. */
struct kernel {
    char in_out[128], op_in[128];
    uint64_t flags, commit_id;
    uint32_t payload, padding;
    uint64_t reserved;
};

static struct mfs_uring_entry entry;
static struct kernel *kernel;

static int setup(void **state)
{
    char *memory = mmap(NULL, mfs_uring_entry_size(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    mfs_uring_entry_init(&entry, memory, 3);
    kernel = (struct kernel *)(void *)memory;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return munmap(entry.memory, mfs_uring_entry_size());
}

static void request(uint32_t len, uint32_t payload)
{
    struct fuse_in_header in = {.len = len, .opcode = FUSE_WRITE, .unique = 42};

    memcpy(kernel->in_out, &in, sizeof in);
    kernel->payload = payload;
}

static void test_a_request_becomes_one_piece(void **state)
{
    struct fuse_write_in own = {.fh = 7, .size = 5};
    struct fuse_in_header in;

    (void)state;
    memcpy(kernel->op_in, &own, sizeof own);
    memcpy(entry.memory + PAYLOAD, "hello", 5);
    request(sizeof in + sizeof own + 5, 5);
    assert_int_equal(mfs_uring_entry_take(&entry), 0);
    assert_int_equal(entry.unique, 42);
    assert_int_equal(entry.length, sizeof in + sizeof own + 5);
    memcpy(&in, entry.request, sizeof in);
    assert_int_equal(in.unique, 42);
    assert_memory_equal(entry.request + sizeof in, &own, sizeof own);
    assert_memory_equal(entry.request + sizeof in + sizeof own, "hello", 5);
}

static void test_lengths_that_contradict_each_other(void **state)
{
    (void)state;
    request(sizeof(struct fuse_in_header), 5); /* shorter than its payload */
    assert_int_equal(mfs_uring_entry_take(&entry), -EIO);
    request(sizeof(struct fuse_in_header) + 129, 0); /* more than headers hold */
    assert_int_equal(mfs_uring_entry_take(&entry), -EIO);
    request(UINT32_MAX, UINT32_MAX - 64);
    assert_int_equal(mfs_uring_entry_take(&entry), -EIO);
    assert_int_equal(entry.unique, 0);
}

static void test_what_makes_no_sense_is_answered(void **state)
{
    struct fuse_out_header seen;

    (void)state;
    request(UINT32_MAX, UINT32_MAX - 64);
    assert_int_equal(mfs_uring_entry_take(&entry), -EIO);
    mfs_uring_entry_refuse(&entry);
    memcpy(&seen, kernel->in_out, sizeof seen);
    assert_int_equal(seen.unique, 42);
    assert_int_equal(seen.error, -EIO);
    assert_int_equal(kernel->payload, 0);
    assert_int_equal(entry.unique, 42);
    assert_int_equal(entry.state, MFS_URING_ANSWERED);
}

/* The kernel may have had no memory for it: then it is the same command. */
static void test_a_command_once_more(void **state)
{
    union {
        struct io_uring_sqe sqe;
        char bytes[128];
    } first = {0}, again = {0};
    uint64_t id;

    (void)state;
    mfs_uring_entry_command(&entry, &first.sqe);
    mfs_uring_entry_command(&entry, &again.sqe);
    assert_int_equal(first.sqe.len, 2); /* registers it */
    assert_memory_equal(&first, &again, sizeof first);
    request(sizeof(struct fuse_in_header), 0);
    assert_int_equal(mfs_uring_entry_take(&entry), 0);
    memset(&first, 0, sizeof first);
    memset(&again, 0, sizeof again);
    mfs_uring_entry_command(&entry, &first.sqe);
    assert_int_equal(entry.unique, 0);
    mfs_uring_entry_command(&entry, &again.sqe);
    memcpy(&id, first.sqe.cmd + sizeof id, sizeof id);
    assert_int_equal(id, 42);
    assert_memory_equal(&first, &again, sizeof first);
}

static void test_a_reply(void **state)
{
    struct fuse_out_header out = {.unique = 42}, seen;
    char data[] = "abcde";
    struct iovec iov[] = {{&out, sizeof out}, {data, 2}, {data + 2, 3}};

    (void)state;
    mfs_uring_entry_reply(&entry, iov, 3);
    memcpy(&seen, kernel->in_out, sizeof seen);
    assert_int_equal(seen.unique, 42);
    assert_int_equal(seen.error, 0);
    assert_int_equal(kernel->payload, 5);
    assert_memory_equal(entry.memory + PAYLOAD, "abcde", 5);
    iov[2].iov_len = 2 << 20; /* longer than any */
    mfs_uring_entry_reply(&entry, iov, 3);
    memcpy(&seen, kernel->in_out, sizeof seen);
    assert_int_equal(seen.error, -EIO);
    assert_int_equal(kernel->payload, 0);
}

static void test_memory_goes_back(void **state)
{
    char *payload = entry.memory + PAYLOAD;

    (void)state;
    memset(payload, 'x', 100000);
    entry.touched = 100000;
    mfs_uring_entry_trim(&entry, 200000);
    assert_int_equal(payload[99999], 'x');
    mfs_uring_entry_trim(&entry, 8192);
    assert_int_equal(payload[8191], 'x');
    assert_int_equal(payload[99999], 0);
    assert_int_equal(entry.touched, 8192);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

struct seen {
    uint64_t known, sent;
    unsigned count;
};

static bool is_known(void *arg, uint64_t unique)
{
    return ((struct seen *)arg)->known == unique;
}

static void note(void *arg, uint64_t unique)
{
    struct seen *s = arg;

    s->sent = unique;
    s->count++;
}

static void wait_and_look(struct mfs_interrupts *i, struct seen *s)
{
    while (mfs_interrupts_any(i)) {
        mfs_interrupts_send(i, is_known, note, s);
        mfs_clock_sleep(5 * MFS_MSEC);
    }
}

static void test_an_early_interrupt_is_held(void **state)
{
    struct mfs_interrupts *i = mfs_interrupts_create();
    struct seen s = {0};
    int64_t begun;

    (void)state;
    mfs_interrupts_hold(i, 8);
    mfs_interrupts_send(i, is_known, note, &s);
    assert_int_equal(s.count, 0);
    assert_true(mfs_interrupts_any(i));
    s.known = 8;
    mfs_interrupts_send(i, is_known, note, &s);
    assert_int_equal(s.sent, 8);
    assert_false(mfs_interrupts_any(i));
    mfs_interrupts_hold(i, 10); /* of one that was answered: not for ever */
    begun = mfs_clock_mono();
    for (unsigned n = 0; n < 1000; n++)
        mfs_interrupts_send(i, is_known, note, &s);
    assert_true(mfs_interrupts_any(i) || mfs_clock_mono() > begun + MFS_SEC / 2);
    wait_and_look(i, &s);
    assert_int_equal(s.count, 1);
    mfs_interrupts_destroy(i);
}

/* A signal that is blocked would interrupt nothing. */
static void test_a_thread_without_signals_is_not_interrupted(void **state)
{
    struct mfs_interrupts *i = mfs_interrupts_create();
    struct seen s = {.known = 8};
    sigset_t set, before;

    (void)state;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    pthread_kill(pthread_self(), SIGUSR1);
    mfs_interrupts_watch(i, 8, (uint32_t)syscall(SYS_gettid));
    mfs_interrupts_watch(i, 8, 0);
    wait_and_look(i, &s);
    assert_int_equal(s.count, 0);
    sigtimedwait(&set, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    mfs_interrupts_destroy(i);
}

static void nothing(int signo)
{
    (void)signo;
}

static void *sleeps(void *arg)
{
    uint32_t self = (uint32_t)syscall(SYS_gettid);

    if (write(*(int *)arg, &self, sizeof self) == sizeof self)
        mfs_clock_sleep(60 * MFS_SEC);
    return NULL;
}

/* Its first thread waits killably, as one does that has noticed its signal; another, of which it
 * tells `out`, does not. */
static void be_signalled(int out)
{
    struct sigaction action = {.sa_handler = nothing};
    pthread_t thread;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&thread, NULL, sleeps, &out) == 0 &&
        syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        mfs_clock_sleep(60 * MFS_SEC);
    }
    _exit(1);
}

static void test_only_the_thread_that_noticed_is_interrupted(void **state)
{
    struct mfs_interrupts *i = mfs_interrupts_create();
    struct seen s = {.known = 8};
    uint32_t other;
    int fds[2];
    pid_t child;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    child = fork();
    if (child == 0)
        be_signalled(fds[1]);
    assert_int_equal(read(fds[0], &other, sizeof other), sizeof other);
    mfs_clock_sleep(200 * MFS_MSEC);
    kill(child, SIGUSR1);
    mfs_interrupts_watch(i, 8, other);
    wait_and_look(i, &s);
    assert_int_equal(s.count, 0);
    mfs_interrupts_watch(i, 8, (uint32_t)child);
    wait_and_look(i, &s);
    assert_int_equal(s.count, 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(fds[0]);
    close(fds[1]);
    mfs_interrupts_destroy(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_request_becomes_one_piece, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lengths_that_contradict_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_makes_no_sense_is_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_command_once_more, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_reply, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_goes_back, setup, teardown),
        cmocka_unit_test(test_an_early_interrupt_is_held),
        cmocka_unit_test(test_a_thread_without_signals_is_not_interrupted),
        cmocka_unit_test(test_only_the_thread_that_noticed_is_interrupted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
