/* The file of events, of which a disk that was full leaves whole lines, and what `cm events` shows
 * of one that has half a line all the same. ctest: single */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/state/events.h"
#include "cm/cli/verbs.h"

#define LINES_MOST 8

static char dir[64], path[128];

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/memefs-unit-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    return mfs_text_format(path, sizeof path, "%s/events.jsonl", dir);
}

static int teardown(void **state)
{
    (void)state;
    return mfs_file_remove_tree(dir);
}

/* ---- writing --------------------------------------------------------------------------------- */

static rlim_t size(void)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return (rlim_t)st.st_size;
}

/* An event is added while the file may have `room` more bytes: as on a disk with so many left, a
 * write takes what fits. */
static void add_with_room(rlim_t room, const char *what)
{
    struct rlimit was, less;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    less = (struct rlimit){size() + room, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    mfs_event_add(path, "cm", what, "room for %u", (unsigned)room);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
}

/* The events of the file, each a word. */
static unsigned read_words(char what[LINES_MOST][32])
{
    struct mfs_buf b;
    unsigned n = 0;

    mfs_buf_init(&b);
    assert_int_equal(mfs_file_read(path, 1 << 20, &b), 0);
    while (mfs_buf_len(&b)) {
        const char *line = mfs_buf_data(&b), *end = memchr(line, '\n', mfs_buf_len(&b));
        struct mfs_event e;
        struct mfs_err err = {0};

        assert_non_null(end);
        assert_true(n < LINES_MOST);
        if (mfs_schema_decode(&mfs_event_schema, line, (size_t)(end - line), &e, &err))
            fail_msg("%s: \"%.*s\"", err.msg, (int)(end - line), line);
        memcpy(what[n++], e.what, sizeof e.what);
        mfs_buf_consume(&b, (size_t)(end - line) + 1);
    }
    mfs_buf_fini(&b);
    return n;
}

static void what_does_not_fit_leaves_nothing(void **state)
{
    char what[LINES_MOST][32];
    rlim_t was;

    (void)state;
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    mfs_event_add(path, "cm", "before", "%s", "it is full");
    was = size();
    add_with_room(0, "state-unwritable");
    add_with_room(10, "state-unwritable");
    add_with_room(70, "state-unwritable");
    assert_int_equal(size(), was);
    add_with_room(4096, "state-written");
    assert_int_equal(read_words(what), 2);
    assert_string_equal(what[0], "before");
    assert_string_equal(what[1], "state-written");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What a descriptor gets meanwhile goes to a file in the directory. The former one. */
static int divert(int fd, const char *name)
{
    char to[256];
    int was = dup(fd), file;

    assert_int_equal(mfs_text_format(to, sizeof to, "%s/%s", dir, name), 0);
    file = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(was >= 0 && file >= 0 && dup2(file, fd) == fd);
    close(file);
    return was;
}

static void bring_back(int fd, int was, const char *name, struct mfs_buf *out)
{
    char from[256];

    fflush(NULL);
    assert_int_equal(dup2(was, fd), fd);
    close(was);
    assert_int_equal(mfs_text_format(from, sizeof from, "%s/%s", dir, name), 0);
    assert_int_equal(mfs_file_read(from, 1 << 20, out), 0);
    assert_int_equal(mfs_buf_append(out, "", 1), 0);
}

/* Runs `cm events`. What it says, and complains of; the caller frees both. */
static int show(bool json, struct mfs_buf *said, struct mfs_buf *complaint)
{
    struct mfs_err err = {0};
    const struct mfs_verb *v = &mfs_cm_events;
    struct mfs_verb_call call = {.conf = mfs_conf_create(v->options)};
    int out, complains, rc;

    mfs_buf_init(said);
    mfs_buf_init(complaint);
    assert_int_equal(mfs_conf_set(call.conf, "state-dir", dir, MFS_CONF_ARGV, &err), 0);
    assert_int_equal(mfs_conf_set(call.conf, "json", json ? "yes" : "no", MFS_CONF_ARGV, &err), 0);
    assert_int_equal(mfs_paths_init(&call.paths, call.conf, &err), 0);
    out = divert(STDOUT_FILENO, "out");
    complains = divert(STDERR_FILENO, "err");
    rc = v->run(&call, &err);
    bring_back(STDERR_FILENO, complains, "err", complaint);
    bring_back(STDOUT_FILENO, out, "out", said);
    mfs_conf_destroy(call.conf);
    return rc;
}

static unsigned lines(const struct mfs_buf *b)
{
    unsigned n = 0;

    for (const char *at = mfs_buf_data(b); (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

static void add_text(const char *text)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(mfs_file_write_all(fd, text, strlen(text)), 0);
    close(fd);
}

/* Twice, with an event glued to each; a line that is not finished is none yet. */
static void half_a_line_hides_no_other(void **state)
{
    static const char half[] =
        "{\"time\":\"2026-01-31T12:00:00.000Z\",\"who\":\"cm\",\"what\":\"ha";
    struct mfs_buf said, complaint;

    (void)state;
    for (int json = 0; json < 2; json++) {
        mfs_event_add(path, "cm", "first", "%s", "");
        add_text(half);
        mfs_event_add(path, "cm", "second", "%s", "");
        add_text(half);
        mfs_event_add(path, "cm", "third", "%s", "");
        mfs_event_add(path, "cm", "fourth", "%s", "");
        add_text(half);
        assert_int_equal(show(json, &said, &complaint), 0);
        assert_int_equal(lines(&said), 2);
        assert_non_null(strstr(mfs_buf_data(&said), "first"));
        assert_non_null(strstr(mfs_buf_data(&said), "fourth"));
        assert_null(strstr(mfs_buf_data(&said), "second"));
        assert_int_equal(lines(&complaint), 1);
        mfs_buf_fini(&said);
        mfs_buf_fini(&complaint);
        assert_int_equal(unlink(path), 0);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_does_not_fit_leaves_nothing),
        TEST(half_a_line_hides_no_other),
    };

    mfs_log_set_level(MFS_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
