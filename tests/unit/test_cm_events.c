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
#include "cm/cli/verbs.h"
#include "cm/cli/when.h"
#include "cm/state/event_reader.h"

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

/* ---- a bound --------------------------------------------------------------------------------- */

#define BOUND 4096

static struct mfs_paths paths_of_dir(void)
{
    struct mfs_paths p = {0};

    assert_int_equal(mfs_text_format(p.events, sizeof p.events, "%s", path), 0);
    assert_int_equal(mfs_text_format(p.old_events, sizeof p.old_events, "%s.1", path), 0);
    return p;
}

static off_t size_of(const char *file)
{
    struct stat st;

    return stat(file, &st) ? 0 : st.st_size;
}

static void add_numbered(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        mfs_event_add(path, "cm", "moved", "number %u", i);
}

/* Reads what there is: numbers in sequence, the first any. Behind the last one. */
static unsigned read_on(struct mfs_event_reader *r, unsigned expect, bool any)
{
    struct mfs_event e;
    unsigned n;
    int rc;

    while ((rc = mfs_event_reader_next(r, &e)) > 0) {
        assert_int_equal(sscanf(e.text, "number %u", &n), 1);
        assert_true(any || n == expect);
        any = false;
        expect = n + 1;
    }
    assert_int_equal(rc, 0);
    return expect;
}

static unsigned count_rest(struct mfs_event_reader *r)
{
    struct mfs_event e;
    unsigned n = 0;

    while (mfs_event_reader_next(r, &e) > 0)
        n++;
    return n;
}

static void the_oldest_go_and_followers_follow(void **state)
{
    struct mfs_paths p = paths_of_dir();
    struct mfs_event_reader *r, *late;

    (void)state;
    mfs_event_bound(BOUND);
    add_numbered(0, 1);
    assert_int_equal(mfs_event_reader_open(&p, &r), 0);
    for (unsigned to = 1; to < 300; to += 7) {
        assert_int_equal(read_on(r, to > 1 ? to - 7 : 0, false), to);
        add_numbered(to, to + 7);
        assert_true(size_of(p.events) + size_of(p.old_events) <= BOUND);
    }
    assert_true(size_of(p.old_events) > 0);
    assert_int_equal(mfs_event_reader_open(&p, &late), 0);
    assert_int_equal(read_on(late, 0, true), read_on(r, 0, true));
    mfs_event_reader_close(late);
    /* More than one change between two looks: what is there still is not left out. */
    add_numbered(1000, 1000 + 2 * BOUND / 80);
    assert_int_equal(mfs_event_reader_open(&p, &late), 0);
    assert_true(count_rest(r) >= count_rest(late));
    mfs_event_reader_close(late);
    assert_false(mfs_event_reader_gone(r));
    assert_false(mfs_event_reader_torn(r));
    assert_int_equal(unlink(p.events), 0);
    assert_true(mfs_event_reader_gone(r));
    mfs_event_reader_close(r);
    mfs_event_bound(0);
}

/* Killed between the renaming and the first write to the next file: all is there, and goes on. */
static void a_crash_in_the_change_loses_nothing(void **state)
{
    struct mfs_paths p = paths_of_dir();
    struct mfs_event_reader *r;

    (void)state;
    add_numbered(0, 5);
    assert_int_equal(mfs_event_reader_open(&p, &r), 0);
    assert_int_equal(read_on(r, 0, false), 5);
    assert_int_equal(rename(p.events, p.old_events), 0);
    assert_int_equal(read_on(r, 5, false), 5);
    add_numbered(5, 8);
    assert_int_equal(read_on(r, 5, false), 8);
    mfs_event_reader_close(r);
    assert_int_equal(mfs_event_reader_open(&p, &r), 0);
    assert_int_equal(read_on(r, 0, false), 8);
    mfs_event_reader_close(r);
}

static bool is_even(void *arg, const struct mfs_event *e)
{
    (void)arg;
    return (e->text[strlen(e->text) - 1] - '0') % 2 == 0;
}

static void the_last_ones_in_order(void **state)
{
    struct mfs_paths p = paths_of_dir();
    struct mfs_event e[4];

    (void)state;
    add_numbered(0, 4);
    assert_int_equal(mfs_event_last(&p, is_even, NULL, e, 4), 2);
    assert_string_equal(e[1].text, "number 2");
    add_numbered(4, 24);
    assert_int_equal(mfs_event_last(&p, is_even, NULL, e, 4), 4);
    assert_string_equal(e[0].text, "number 16");
    assert_string_equal(e[3].text, "number 22");
}

static void times_that_are_said(void **state)
{
    static const char *const wrong[] = {"",
                                        "10",
                                        "m",
                                        "10x",
                                        "10 m",
                                        "10m later",
                                        "2026-01-31",
                                        "-10m",
                                        "99999999999999999999d",
                                        "100000001d",
                                        "2026-01-31T12:00:00",
                                        "2026-01-31T12:00:00.Z",
                                        "2026-02-30T12:00:00Z",
                                        "2026-01-31T12:00:00+0100",
                                        "2026-01-31T12:00:00+01:000"};
    int64_t when = 0, now = INT64_C(1769860800000000); /* 2026-01-31T12:00:00Z */

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (mfs_when_parse(wrong[i], now, &when) != -EINVAL)
            fail_msg("\"%s\" is a time", wrong[i]);
    assert_int_equal(mfs_when_parse("2026-01-31T12:00:00Z", 0, &when), 0);
    assert_int_equal(when, now);
    assert_int_equal(mfs_when_parse("2026-01-31T13:30:00.25+01:30", 0, &when), 0);
    assert_int_equal(when, now + 250000);
    assert_int_equal(mfs_when_parse("2h ago", now, &when), 0);
    assert_int_equal(when, now - INT64_C(7200000000));
    assert_int_equal(mfs_when_parse("90s", now, &when), 0);
    assert_int_equal(when, now - 90000000);
    assert_int_equal(mfs_when_parse("100000000d", now, &when), 0);
    assert_true(when == now - INT64_C(86400000000) * 100000000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_does_not_fit_leaves_nothing),
        TEST(half_a_line_hides_no_other),
        TEST(the_oldest_go_and_followers_follow),
        TEST(a_crash_in_the_change_loses_nothing),
        TEST(the_last_ones_in_order),
        TEST(times_that_are_said),
    };

    mfs_log_set_level(MFS_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
