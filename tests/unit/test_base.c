/* Buffers, files, the log, processes, waiting: the rest of src/base. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/inet.h"
#include "base/log.h"
#include "base/log_journal.h"
#include "base/log_line.h"
#include "host/proc.h"
#include "base/threads/thread.h"
#include "base/threads/ticker.h"

static char dir[PATH_MAX];

static const char *in_dir(const char *name)
{
    static char path[PATH_MAX + 64];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "%s/memefs-unit-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return mfs_file_remove_tree(dir);
}

static void buffers(void **state)
{
    struct mfs_buf b;
    size_t cap;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_buf_append(&b, "hello", 5), 0);
    assert_int_equal(mfs_buf_printf(&b, " %d", 42), 0);
    assert_int_equal(mfs_buf_len(&b), 8);
    assert_memory_equal(mfs_buf_data(&b), "hello 42", 8);
    mfs_buf_consume(&b, 6);
    assert_memory_equal(mfs_buf_data(&b), "42", 2);
    cap = b.cap;
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(mfs_buf_append(&b, "0123456789", 10), 0);
        mfs_buf_consume(&b, 10);
    }
    assert_int_equal(b.cap, cap);
    assert_null(mfs_buf_reserve(&b, SIZE_MAX - 1));
    mfs_buf_fini(&b);
}

static void files_are_replaced_whole(void **state)
{
    struct stat st;
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_file_write(in_dir("f"), "one", 3, 0600), 0);
    assert_int_equal(mfs_file_write(in_dir("f"), "second", 6, 0600), 0);
    assert_int_equal(mfs_file_read(in_dir("f"), 100, &b), 0);
    assert_int_equal(mfs_buf_len(&b), 6);
    assert_memory_equal(mfs_buf_data(&b), "second", 6);
    mfs_buf_clear(&b);
    assert_int_equal(mfs_file_read(in_dir("f"), 5, &b), -EFBIG);
    assert_int_equal(mfs_file_read(in_dir("nothing"), 5, &b), -ENOENT);
    assert_int_equal(mfs_file_write(in_dir("no/f"), "", 0, 0600), -ENOENT);
    assert_int_equal(stat(in_dir("f"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(access(in_dir("f.new"), F_OK), -1);
    mfs_buf_fini(&b);
}

/* A process writes to the other end, late; without one, reading would wait for ever. */
static void pipes_are_read_only_where_they_may_be(void **state)
{
    struct mfs_buf b;
    pid_t writer;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mkfifo(in_dir("pipe"), 0600), 0);
    assert_int_equal(mfs_file_read(in_dir("pipe"), 100, &b), -ENOTSUP);
    writer = fork();
    if (!writer) {
        int fd = open(in_dir("pipe"), O_WRONLY);

        usleep(50000);
        _exit(write(fd, "late", 4) != 4);
    }
    assert_int_equal(mfs_file_read_given(in_dir("pipe"), 100, &b), 0);
    assert_int_equal(mfs_buf_len(&b), 4);
    assert_memory_equal(mfs_buf_data(&b), "late", 4);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    mfs_buf_fini(&b);
}

static void hosts_are_compared(void **state)
{
    (void)state;
    assert_true(mfs_inet_same("tux1", "TUX1"));
    assert_true(mfs_inet_same("fd00::1", "FD00:0::1"));
    assert_true(mfs_inet_same("10.0.0.1", "10.0.0.1"));
    assert_false(mfs_inet_same("fd00::1", "fd00::2"));
    assert_false(mfs_inet_same("10.0.0.1", "tux1"));
    assert_false(mfs_inet_same("", "tux1"));
}

static void trees_come_and_go(void **state)
{
    (void)state;
    assert_int_equal(mfs_file_mkdirs(in_dir("a/b/c"), 0700), 0);
    assert_int_equal(mfs_file_mkdirs(in_dir("a/b/c"), 0700), 0);
    assert_int_equal(mfs_file_write(in_dir("a/b/f"), "x", 1, 0600), 0);
    assert_int_equal(mfs_file_mkdirs(in_dir("a/b/f"), 0700), -ENOTDIR);
    assert_int_equal(symlink("/", in_dir("a/link")), 0);
    assert_int_equal(mfs_file_remove_tree(in_dir("a")), 0);
    assert_int_equal(access(in_dir("a"), F_OK), -1);
    assert_int_equal(mfs_file_remove_tree(in_dir("a")), 0);
}

static void log_lines(void **state)
{
    enum mfs_log_level level;
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_log_level_parse("debug", &level), 0);
    assert_int_equal(mfs_log_level_parse("loud", &level), -EINVAL);
    assert_int_equal(mfs_log_open("unit", in_dir("log"), MFS_LOG_INFO), 0);
    assert_true(mfs_log_wants(MFS_LOG_INFO) && !mfs_log_wants(MFS_LOG_DEBUG));
    errno = EBUSY;
    mfs_info("area", "two\nlines, %s", "one event");
    assert_int_equal(errno, EBUSY);
    mfs_debug("area", "not this");
    assert_int_equal(unlink(in_dir("log")), 0);
    assert_int_equal(mfs_log_reopen(), 0);
    mfs_warn("area", "after rotation");
    assert_int_equal(mfs_file_read(in_dir("log"), 4096, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    assert_non_null(strstr(mfs_buf_data(&b), "warn unit["));
    assert_non_null(strstr(mfs_buf_data(&b), "area: after rotation\n"));
    assert_int_equal(mfs_log_open("unit", in_dir("no/log"), MFS_LOG_INFO), -ENOENT);
    assert_int_equal(mfs_log_open("unit", NULL, MFS_LOG_INFO), 0);
    mfs_buf_fini(&b);
}

/* Whatever bytes a path has, and however long it is. */
static void log_as_json(void **state)
{
    static const struct mfs_log_entry entry = {.when = {.tv_sec = 1767225599, .tv_nsec = 5000},
                                               .level = MFS_LOG_WARN,
                                               .program = "cm",
                                               .thread = "t\"1",
                                               .pid = 7,
                                               .area = "area",
                                               .message = "\xff\n\\ \x7f\xed\xa0\x80 \xc3\xa9"};
    char line[MFS_LOG_LINE_MAX + 1], text[2 * MFS_LOG_LINE_MAX];
    struct mfs_log_entry e = entry;
    size_t len = mfs_log_line_json(&e, line);

    (void)state;
    line[len] = '\0';
    assert_string_equal(line,
                        "{\"time\":\"2025-12-31T23:59:59.000005Z\",\"level\":\"warn\","
                        "\"program\":\"cm\",\"pid\":7,\"thread\":\"t\\\"1\",\"area\":\"area\","
                        "\"message\":\"\\\\xff\\u000a\\\\ \\u007f\\\\xed\\\\xa0\\\\x80 "
                        "\xc3\xa9\"}\n");
    for (size_t n = 3900; n < sizeof text; n += 7) {
        memset(text, 'x', n);
        memcpy(text + n / 2, "\xc3\xa9", 2);
        memcpy(text + n - 2, "\xff", 2);
        e.message = text;
        len = mfs_log_line_json(&e, line);
        assert_true(len <= MFS_LOG_LINE_MAX);
        assert_memory_equal(line + len - 3, "\"}\n", 3);
        assert_null(memchr(line, '\n', len - 1));
    }
}

/* Fields for journald: the message by its length, so that it may have lines. */
static void log_for_the_journal(void **state)
{
    const struct mfs_log_entry e = {.level = MFS_LOG_ERROR,
                                    .program = "lm",
                                    .thread = "loop",
                                    .area = "redis",
                                    .message = "two\nlines",
                                    .file = "a.c",
                                    .line = 12,
                                    .function = "f"};
    static const char want[] = "PRIORITY=3\nSYSLOG_IDENTIFIER=lm\nMEMEFS_AREA=redis\n"
                               "MEMEFS_THREAD=loop\nCODE_FILE=a.c\nCODE_LINE=12\nCODE_FUNC=f\n"
                               "MESSAGE\n\x09\0\0\0\0\0\0\0two\nlines\n";
    char out[MFS_LOG_LINE_MAX];

    (void)state;
    assert_int_equal(mfs_log_line_journal(&e, out), sizeof want - 1);
    assert_memory_equal(out, want, sizeof want - 1);
}

/* A journald that reads no more costs lines, and no time. */
static void log_to_a_journal_that_stands_still(void **state)
{
    const struct mfs_log_entry e = {.level = MFS_LOG_WARN,
                                    .program = "lm",
                                    .thread = "loop",
                                    .area = "redis",
                                    .message = "two\nlines"};
    char line[256] = "";
    int fds[2], rc = 0;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    alarm(20);
    for (int i = 0; i < 1000000 && !rc; i++)
        rc = mfs_log_journal_stream(fds[0], &e);
    alarm(0);
    assert_int_equal(rc, -EAGAIN);
    assert_true(read(fds[1], line, sizeof line - 1) > 0);
    assert_int_equal(strncmp(line, "<4>1970-01-01T", 14), 0);
    assert_non_null(strstr(line, " warn lm[0] [loop] redis: two lines\n<4>"));
    close(fds[0]);
    close(fds[1]);
}

/* The file's size is limited, which cuts a line as a full disk does. */
static void log_on_a_full_disk(void **state)
{
    struct rlimit before, limit;
    struct mfs_buf b;
    char *last;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_log_open("unit", in_dir("full"), MFS_LOG_INFO), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){100, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    mfs_info("test", "%0100d", 1);
    mfs_info("test", "there is no room for this");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    mfs_info("test", "whole again");
    mfs_info("test", "and whole");
    assert_int_equal(mfs_log_open("unit", NULL, MFS_LOG_INFO), 0);
    assert_int_equal(mfs_file_read(in_dir("full"), 4096, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    last = strchr(mfs_buf_data(&b), '\n');
    assert_non_null(last);
    assert_int_equal(last - mfs_buf_data(&b), 100);
    assert_int_equal(strspn(last + 1, "0123456789"), 4); /* the year */
    assert_non_null(strstr(last, "test: whole again\n"));
    assert_non_null(strstr(last, "test: and whole\n"));
    assert_null(strstr(last, "\n\n"));
    mfs_buf_fini(&b);
}

/* As a process left it that a full disk cut short. */
static void log_with_half_a_line(void **state)
{
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_file_write(in_dir("half"), "one\nha", 6, 0600), 0);
    assert_int_equal(mfs_log_open("unit", in_dir("half"), MFS_LOG_INFO), 0);
    mfs_info("test", "whole");
    assert_int_equal(mfs_log_open("unit", NULL, MFS_LOG_INFO), 0);
    assert_int_equal(mfs_file_read(in_dir("half"), 4096, &b), 0);
    assert_memory_equal(mfs_buf_data(&b), "one\nha\n2", 8); /* 2: of the year */
    mfs_buf_fini(&b);
}

static void errors(void **state)
{
    struct mfs_err err;

    (void)state;
    assert_int_equal(mfs_err_set(NULL, -EIO, "nobody listens"), -EIO);
    assert_int_equal(mfs_err_set(&err, -ENOENT, "%s is gone", "it"), -ENOENT);
    assert_int_equal(mfs_err_prefix(&err, "node %d", 3), -ENOENT);
    assert_string_equal(err.msg, "node 3: it is gone");
}

static void processes_are_recognised(void **state)
{
    const char *argv[] = {"sleep", "60", NULL}, *missing[] = {"/nowhere/program", NULL};
    struct mfs_proc p, loaded, stranger;
    pid_t pid = mfs_proc_spawn(argv, NULL);

    (void)state;
    assert_true(pid > 0);
    assert_int_equal(mfs_proc_identify(pid, &p), 0);
    assert_true(mfs_proc_alive(&p));
    assert_int_equal(mfs_proc_save(&p, in_dir("p.pid")), 0);
    assert_int_equal(mfs_proc_load(in_dir("p.pid"), &loaded), 0);
    assert_true(mfs_proc_alive(&loaded));
    assert_int_equal(loaded.pid, pid);

    stranger = p;
    stranger.start++;
    assert_false(mfs_proc_alive(&stranger));
    assert_int_equal(mfs_proc_kill(&stranger, SIGKILL), -ESRCH);
    assert_true(mfs_proc_alive(&p));

    assert_int_equal(mfs_proc_end(&p, MFS_SEC), 0);
    assert_false(mfs_proc_alive(&p));
    assert_int_equal(mfs_proc_end(&p, MFS_SEC), 0);
    waitpid(pid, NULL, 0);
    assert_int_equal(mfs_proc_spawn(missing, NULL), -ENOENT);
    assert_int_equal(mfs_file_write(in_dir("p.pid"), "rubbish", 7, 0600), 0);
    assert_int_equal(mfs_proc_load(in_dir("p.pid"), &loaded), -EINVAL);
}

/* In a process of its own: 0 right, 1 wrong, 2 not allowed here. */
static int prefer_and_spawn(void)
{
    const char *argv[] = {"sleep", "60", NULL};
    int before = getpriority(PRIO_PROCESS, 0), own, theirs;
    pid_t pid;

    mfs_proc_prefer();
    own = getpriority(PRIO_PROCESS, 0);
    pid = mfs_proc_spawn(argv, NULL);
    if (pid < 0)
        return 1;
    theirs = getpriority(PRIO_PROCESS, (id_t)pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (own == before)
        return 2;
    return own < before && theirs == before ? 0 : 1;
}

static void preference_is_not_inherited(void **state)
{
    pid_t pid = fork();
    int status;

    (void)state;
    if (!pid)
        _exit(prefer_and_spawn());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int note_found(void *arg, const struct mfs_proc *p)
{
    *(struct mfs_proc *)arg = *p;
    return 0;
}

static bool is_stopped(const struct mfs_proc *p)
{
    int64_t until = mfs_clock_mono() + 5 * MFS_SEC;

    while (mfs_proc_state(p) != 'T' && mfs_clock_mono() < until)
        mfs_clock_sleep(MFS_MSEC);
    return mfs_proc_state(p) == 'T';
}

static void processes_are_found_and_looked_at(void **state)
{
    const char *argv[] = {"sleep", "60", "0.0471107", NULL};
    struct mfs_proc p, found = {0};
    pid_t pid = mfs_proc_spawn(argv, NULL);

    (void)state;
    assert_true(pid > 0);
    assert_int_equal(mfs_proc_identify(pid, &p), 0);
    assert_int_equal(mfs_proc_search_text(p.comm, "0.04711", note_found, &found), 0);
    assert_int_equal(found.pid, pid);
    found.pid = 0;
    assert_int_equal(mfs_proc_search_text(p.comm, "0.04711x", note_found, &found), 0);
    assert_int_equal(mfs_proc_search_text("other", "0.0471107", note_found, &found), 0);
    assert_int_equal(found.pid, 0);
    assert_int_not_equal(mfs_proc_state(&p), 'T');
    assert_int_equal(mfs_proc_kill(&p, SIGSTOP), 0);
    assert_true(is_stopped(&p));
    assert_int_equal(mfs_proc_end(&p, 0), 0);
    assert_int_equal(mfs_proc_state(&p), 0);
    waitpid(pid, NULL, 0);
}

/* Who has no descriptors left can't read /proc, and takes nobody for dead, nor kills anybody. */
static void unseen_is_not_dead(void **state)
{
    const char *argv[] = {"sleep", "60", "0.0471109", NULL};
    struct rlimit before, none;
    struct mfs_proc p, other;
    bool alive;
    int killed;
    pid_t pid = mfs_proc_spawn(argv, NULL);

    (void)state;
    assert_true(pid > 0);
    assert_int_equal(mfs_proc_identify(pid, &p), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    alive = mfs_proc_alive(&p);
    killed = mfs_proc_kill(&p, SIGKILL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(alive);
    assert_int_equal(killed, -EMFILE);
    assert_true(mfs_proc_alive(&p));

    other = p;
    other.start++;
    assert_false(mfs_proc_alive(&other));
    assert_int_equal(mfs_proc_kill(&other, SIGKILL), -ESRCH);
    assert_int_equal(mfs_proc_end(&p, 0), 0);
    waitpid(pid, NULL, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    alive = mfs_proc_alive(&p);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_false(alive);
}

/* Too few descriptors for what a child opens, and a starter that can't note it. */
static void a_child_never_holds_up_its_starter(void **state)
{
    const char *argv[] = {"true", NULL};
    struct rlimit before, few;
    struct mfs_proc p;
    int first = open("/dev/null", O_RDONLY), second = open("/dev/null", O_RDONLY), rc;

    (void)state;
    assert_true(first >= 0 && second > first);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){(rlim_t)second + 1, before.rlim_max};
    close(first);
    close(second);
    alarm(20); /* it would wait for ever */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    rc = mfs_proc_spawn_noted(argv, NULL, "/no/such/directory/pid", &p);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    alarm(0);
    assert_true(rc < 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left */
}

static void an_input_is_given_where_no_other_user_sees_it(void **state)
{
    const char *argv[] = {"sh", "-c", "cat; echo $MEMEFS_TEST", NULL};
    const struct mfs_proc_input input = {"on its input\n", "MEMEFS_TEST", "in its environment"};
    char log[PATH_MAX + 64], pid_file[PATH_MAX + 64];
    struct mfs_buf out;
    struct mfs_proc p;

    (void)state;
    snprintf(log, sizeof log, "%s", in_dir("given.log"));
    snprintf(pid_file, sizeof pid_file, "%s", in_dir("given.pid"));
    assert_int_equal(mfs_proc_spawn_given(argv, log, pid_file, &input, &p), 0);
    assert_int_equal(waitpid(p.pid, NULL, 0), p.pid);
    mfs_buf_init(&out);
    assert_int_equal(mfs_file_read(log, 4096, &out), 0);
    assert_int_equal(mfs_buf_append(&out, "", 1), 0);
    assert_string_equal(mfs_buf_data(&out), "on its input\nin its environment\n");
    mfs_buf_fini(&out);
    assert_null(getenv("MEMEFS_TEST"));
}

static void start_and_stay(const char *const *argv, const char *pid_file, int ready)
{
    struct mfs_proc p;

    if (write(ready, "", 1) == 1)
        mfs_proc_spawn_noted(argv, NULL, pid_file, &p);
    pause();
    _exit(0);
}

/* Its starter is killed after `delay`: then either the program does not run, or the file names it.
 * Did it run? */
static bool kill_a_starter(int64_t delay, const char *pid_file)
{
    const char *argv[] = {"sleep", "60", "0.0471108", NULL};
    struct mfs_proc found = {0}, noted;
    int ready[2];
    pid_t starter;
    char c;

    unlink(pid_file);
    assert_int_equal(pipe(ready), 0);
    starter = fork();
    if (!starter)
        start_and_stay(argv, pid_file, ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    mfs_clock_sleep(delay);
    assert_int_equal(kill(starter, SIGKILL), 0);
    assert_int_equal(waitpid(starter, NULL, 0), starter);
    /* What it began is a child of ours now: it ends or becomes the program. */
    do
        assert_int_equal(mfs_proc_search("sleep", NULL, "60", argv[2], note_found, &found), 0);
    while (!found.pid && !waitpid(-1, NULL, WNOHANG));
    if (!found.pid)
        return false;
    assert_int_equal(mfs_proc_load(pid_file, &noted), 0);
    assert_int_equal(noted.pid, found.pid);
    assert_true(mfs_proc_alive(&noted));
    assert_int_equal(mfs_proc_kill(&noted, SIGKILL), 0);
    assert_int_equal(waitpid(found.pid, NULL, 0), found.pid);
    return true;
}

static void no_program_runs_without_its_record(void **state)
{
    const char *argv[] = {"touch", NULL, NULL};
    unsigned ran = 0, rounds = 0;
    char pid_file[PATH_MAX + 64], mark[PATH_MAX + 64];
    struct mfs_proc p;

    (void)state;
    snprintf(pid_file, sizeof pid_file, "%s", in_dir("program.pid"));
    snprintf(mark, sizeof mark, "%s", in_dir("mark"));
    argv[1] = mark;
    assert_int_equal(mfs_proc_spawn_noted(argv, NULL, in_dir("no/such.pid"), &p), -ENOENT);
    assert_int_equal(access(mark, F_OK), -1);

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    for (int64_t delay = 0; delay < 4 * MFS_MSEC; delay += 125 * 1000, rounds++)
        ran += kill_a_starter(delay, pid_file);
    for (int64_t delay = 8 * MFS_MSEC; !ran && delay < MFS_SEC; delay *= 2, rounds++)
        ran += kill_a_starter(delay, pid_file); /* a busy machine */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
    assert_in_range(ran, 1, rounds); /* it is no test when all are killed before they begin */
}

static void waits_end(void **state)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    int64_t t = mfs_clock_mono();
    pthread_cond_t c;
    int rc;

    (void)state;
    assert_int_equal(mfs_cond_init(&c), 0);
    pthread_mutex_lock(&m);
    do
        rc = mfs_cond_wait(&c, &m, 20 * MFS_MSEC);
    while (!rc);
    pthread_mutex_unlock(&m);
    assert_int_equal(rc, -ETIMEDOUT);
    assert_true(mfs_clock_mono() - t >= 20 * MFS_MSEC);
    pthread_cond_destroy(&c);
    assert_int_equal(mfs_timespec_cmp((struct timespec){1, 2}, (struct timespec){1, 3}), -1);
    assert_int_equal(mfs_timespec_cmp((struct timespec){2, 0}, (struct timespec){1, 3}), 1);
    assert_int_equal(mfs_timespec_cmp((struct timespec){1, 3}, (struct timespec){1, 3}), 0);
}

struct ticked {
    struct mfs_ticker ticker;
    atomic_uint calls, left; /* so many calls tell that there is more to do */
    atomic_bool again;
};

static void tick(void *arg)
{
    struct ticked *t = arg;

    if (atomic_load(&t->left) > 0) {
        atomic_fetch_sub(&t->left, 1);
        mfs_ticker_work(&t->ticker);
    } else if (atomic_exchange(&t->again, false)) {
        mfs_ticker_again(&t->ticker, 2 * MFS_MSEC);
    }
    atomic_fetch_add(&t->calls, 1);
}

static void wait_for_calls(struct ticked *t, unsigned n)
{
    while (atomic_load(&t->calls) < n) /* ctest ends what never comes */
        mfs_clock_sleep(MFS_MSEC);
}

/* A ticker that rests is called once at its start, after each word of work, and by its own; else
 * not. */
static void tickers_rest(void **state)
{
    struct ticked t = {0};

    (void)state;
    mfs_ticker_work(&t.ticker); /* not started: nothing */
    assert_int_equal(mfs_ticker_start_resting(&t.ticker, "test", MFS_MSEC, tick, &t), 0);
    wait_for_calls(&t, 1);
    mfs_clock_sleep(20 * MFS_MSEC);
    assert_int_equal(atomic_load(&t.calls), 1);
    for (unsigned i = 2; i < 100; i++) {
        mfs_ticker_work(&t.ticker);
        wait_for_calls(&t, i);
    }
    atomic_store(&t.left, 10);
    mfs_ticker_work(&t.ticker);
    wait_for_calls(&t, 110);
    atomic_store(&t.again, true);
    mfs_ticker_work(&t.ticker);
    wait_for_calls(&t, 112);
    mfs_clock_sleep(20 * MFS_MSEC);
    assert_int_equal(atomic_load(&t.calls), 112);
    mfs_ticker_hurry(&t.ticker);
    wait_for_calls(&t, 113);
    mfs_ticker_stop(&t.ticker);
    mfs_ticker_work(&t.ticker);
    assert_int_equal(atomic_load(&t.calls), 113);
}

/* A call that comes before its starter has run again tells as any other. */
static void tickers_hear_their_first_calls(void **state)
{
    static struct ticked t[500];
    size_t n = sizeof t / sizeof *t;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        atomic_store(&t[i].left, 3);
        assert_int_equal(mfs_ticker_start_resting(&t[i].ticker, "test", MFS_MSEC / 50, tick, &t[i]),
                         0);
        if (i >= 20) /* not all threads at once */
            wait_for_calls(&t[i - 20], 4);
    }
    for (size_t i = 0; i < n; i++) {
        wait_for_calls(&t[i], 4);
        mfs_ticker_stop(&t[i].ticker);
    }
}

static void addresses_with_ports(void **state)
{
    static const char *const good[] = {"127.0.0.1", "10.0.0.255", "::1", "fe80::1:2"},
                             *const bad[] = {"", "localhost", "127.0.0.1:5", "[::1]", "1.2.3"};
    char host[INET6_ADDRSTRLEN];
    union mfs_inet a;
    uint16_t port;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(mfs_inet_parse(good[i], 40000, &a), 0);
        assert_int_equal(a.any.sa_family, i < 2 ? AF_INET : AF_INET6);
        assert_int_equal(mfs_inet_len(&a), i < 2 ? sizeof a.v4 : sizeof a.v6);
        assert_int_equal(mfs_inet_format(&a, host, &port), 0);
        assert_string_equal(host, good[i]);
        assert_int_equal(port, 40000);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mfs_inet_parse(bad[i], 1, &a), -EINVAL);
    a.any.sa_family = AF_UNIX;
    assert_int_equal(mfs_inet_format(&a, host, &port), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers),
        cmocka_unit_test(files_are_replaced_whole),
        cmocka_unit_test(pipes_are_read_only_where_they_may_be),
        cmocka_unit_test(hosts_are_compared),
        cmocka_unit_test(trees_come_and_go),
        cmocka_unit_test(log_lines),
        cmocka_unit_test(log_as_json),
        cmocka_unit_test(log_for_the_journal),
        cmocka_unit_test(log_to_a_journal_that_stands_still),
        cmocka_unit_test(log_on_a_full_disk),
        cmocka_unit_test(log_with_half_a_line),
        cmocka_unit_test(errors),
        cmocka_unit_test(addresses_with_ports),
        cmocka_unit_test(processes_are_recognised),
        cmocka_unit_test(processes_are_found_and_looked_at),
        cmocka_unit_test(unseen_is_not_dead),
        cmocka_unit_test(a_child_never_holds_up_its_starter),
        cmocka_unit_test(preference_is_not_inherited),
        cmocka_unit_test(no_program_runs_without_its_record),
        cmocka_unit_test(an_input_is_given_where_no_other_user_sees_it),
        cmocka_unit_test(waits_end),
        cmocka_unit_test(tickers_rest),
        cmocka_unit_test(tickers_hear_their_first_calls),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
