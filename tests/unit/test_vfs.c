/* Two clients of one store, without a mount: what the one has closed the other sees.
 * ctest: threaded timeout=120 waits */
#include <errno.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "vfs_test.h"

/* --- content --------------------------------------------------------------------------------- */

static void close_to_open(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g;
    bool keep;

    (void)state;
    put(f, "first", 0);
    expect(f, "first", 0); /* not stored yet, but seen here */
    assert_int_equal(getattr(&a, ino).size, 5);
    close_file(f);
    assert_int_equal(getattr(&b, ino).size, 5);
    g = open_file(&b, ino, O_RDONLY);
    expect(g, "first", 0);
    close_file(g);
    assert_int_equal(mfs_vfs_open(b.vfs, ino, O_RDONLY, &g, &keep), 0);
    assert_true(keep); /* nothing has changed */
    close_file(g);
    f = open_file(&a, ino, O_WRONLY);
    put(f, "again", 0);
    close_file(f);
    assert_int_equal(mfs_vfs_open(b.vfs, ino, O_RDONLY, &g, &keep), 0);
    assert_false(keep);
    expect(g, "again", 0);
    close_file(g);
    assert_int_equal(mfs_vfs_open(a.vfs, ino, O_RDONLY, &f, &keep), 0);
    assert_true(keep); /* its own change */
    close_file(f);
}

/* The version of a file that was closed long ago may come again, with another content, when what
 * the former process had executed last is lost. */
static void pages_after_a_failover(void **state)
{
    struct mfs_table *t = redis_fixture_table(vfs_redis);
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    bool keep;

    (void)state;
    put(f, "text", 0);
    close_file(f);
    f = open_file(&b, ino, O_RDONLY);
    expect(f, "text", 0);
    close_file(f);
    assert_int_equal(mfs_vfs_open(b.vfs, ino, O_RDONLY, &f, &keep), 0);
    assert_true(keep);
    close_file(f);
    t->epoch += 1000;
    t->failovers++;
    assert_int_equal(mfs_store_set_table(b.store, t), 0);
    assert_int_equal(mfs_vfs_open(b.vfs, ino, O_RDONLY, &f, &keep), 0);
    assert_false(keep);
    close_file(f);
}

/* A descriptor that is open all the time sees what was closed elsewhere. */
static void open_reader(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g;
    unsigned before;

    (void)state;
    put(f, "one", 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    g = open_file(&b, ino, O_RDONLY);
    expect(g, "one", 0);
    before = atomic_load(&b.dropped);
    put(f, "two and more", 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    assert_true(atomic_load(&b.dropped) > before);
    expect(g, "two and more", 0);
    close_file(f);
    close_file(g);
}

/* O_TRUNC empties what an open for reading alone finds, too, or what it meant to create. */
static void emptied_by_reader(void **state)
{
    uint64_t ino, found;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g;

    (void)state;
    put(f, "text", 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    close_file(open_file(&b, ino, O_RDONLY | O_TRUNC));
    assert_int_equal(getattr(&a, ino).size, 0);
    put(f, "more", 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    g = create(&b, "file", O_RDONLY | O_TRUNC, &found);
    assert_int_equal(found, ino);
    assert_int_equal(getattr(&a, ino).size, 0);
    close_file(g);
    close_file(f);
}

static void many_stripes(void **state)
{
    size_t n = 10 * STRIPE + 1234;
    unsigned char *out = malloc(n), *in = malloc(n);
    uint64_t ino;
    struct mfs_file *f = create(&a, "big", O_RDWR, &ino);

    (void)state;
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)(i * 7 + i / 251);
    for (size_t at = 0; at < n; at += 100000)
        assert_true(mfs_vfs_write(f, out + at, n - at < 100000 ? n - at : 100000, at, 0, false) >
                    0);
    close_file(f);
    f = open_file(&b, ino, O_RDONLY);
    for (size_t at = 0; at < n; at += 50000)
        assert_true(mfs_vfs_read(f, in + at, n - at < 50000 ? n - at : 50000, at, false, NULL) > 0);
    assert_memory_equal(in, out, n);
    assert_int_equal(mfs_vfs_read(f, in, 1, n, true, NULL), 0);
    close_file(f);
    free(out);
    free(in);
}

static void truncated(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    struct mfs_attr attr = {.size = 3};

    (void)state;
    put(f, "0123456789", 0);
    put(f, "far", 5 * STRIPE);
    assert_int_equal(mfs_vfs_setattr(a.vfs, ino, MFS_VFS_SET_SIZE, &attr, NULL), 0);
    assert_int_equal(attr.size, 3);
    attr.size = 5 * STRIPE + 3;
    assert_int_equal(mfs_vfs_setattr(b.vfs, ino, MFS_VFS_SET_SIZE, &attr, NULL), 0);
    assert_int_equal(getattr(&a, ino).size, 5 * STRIPE + 3);
    close_file(f);
    f = open_file(&b, ino, O_RDONLY);
    assert_int_equal(mfs_vfs_read(f, (char[10]){0}, 10, 0, true, NULL), 10);
    {
        char buf[10];

        assert_int_equal(mfs_vfs_read(f, buf, 10, 0, true, NULL), 10);
        assert_memory_equal(buf, "012\0\0\0\0\0\0\0", 10);
        assert_int_equal(mfs_vfs_read(f, buf, 10, 5 * STRIPE, true, NULL), 3);
        assert_memory_equal(buf, "\0\0\0", 3);
    }
    close_file(f);
}

/* utimens after a write that is not committed yet: the commit must not undo it. */
static void times_stay(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    struct mfs_attr attr = {.mtime = {1000, 5}};

    (void)state;
    put(f, "data", 0);
    assert_int_equal(mfs_vfs_setattr(a.vfs, ino, MFS_SET_MTIME, &attr, NULL), 0);
    close_file(f);
    attr = getattr(&b, ino);
    assert_int_equal(attr.mtime.tv_sec, 1000);
    assert_int_equal(attr.mtime.tv_nsec, 5);
    assert_int_equal(attr.size, 4);
}

static void too_large(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    struct mfs_attr attr = {.size = INT64_MAX};

    (void)state;
    assert_int_equal(mfs_vfs_write(f, "x", 1, INT64_MAX, 0, false), -EFBIG);
    assert_int_equal(mfs_vfs_setattr(a.vfs, ino, MFS_VFS_SET_SIZE, &attr, NULL), -EFBIG);
    assert_int_equal(mfs_vfs_fallocate(f, 0, INT64_MAX - 1, 1, 0), -EFBIG);
    close_file(f);
}

static void holes(void **state)
{
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino);
    char buf[4] = "....";

    (void)state;
    put(f, "data", 4 * STRIPE);
    put(f, "head", 0);
    assert_int_equal(mfs_vfs_lseek(f, 0, SEEK_HOLE), 4096);
    assert_int_equal(mfs_vfs_lseek(f, 4 * STRIPE, SEEK_HOLE), 4 * STRIPE + 4);
    assert_int_equal(mfs_vfs_lseek(f, STRIPE, SEEK_DATA), 4 * STRIPE);
    assert_int_equal(mfs_vfs_lseek(f, 4 * STRIPE + 4, SEEK_DATA), -ENXIO);
    assert_int_equal(mfs_vfs_fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 2, 0), 0);
    assert_int_equal(mfs_vfs_read(f, buf, 4, 0, true, NULL), 4);
    assert_memory_equal(buf, "h\0\0d", 4);
    assert_int_equal(mfs_vfs_fallocate(f, FALLOC_FL_ZERO_RANGE, 6 * STRIPE, 10, 0), 0);
    assert_int_equal(getattr(&b, ino).size, 6 * STRIPE + 10);
    assert_int_equal(mfs_vfs_fallocate(f, FALLOC_FL_COLLAPSE_RANGE, 0, STRIPE, 0), -EOPNOTSUPP);
    close_file(f);
}

static void copied(void **state)
{
    uint64_t from, to;
    struct mfs_file *f = create(&a, "from", O_RDWR, &from), *g = create(&a, "to", O_RDWR, &to);

    (void)state;
    put(f, "hello world", 0);
    assert_int_equal(mfs_vfs_copy_range(f, 6, g, 100, 50, 0), 5);
    expect(g, "world", 100);
    assert_int_equal(mfs_vfs_copy_range(f, 11, g, 0, 5, 0), 0);
    close_file(f);
    close_file(g);
    assert_int_equal(getattr(&b, to).size, 105);
}

struct appender {
    struct client *c;
    uint64_t ino;
    char letter;
};

enum { RECORD = 1000, RECORDS = 150 };

static void *append_many(void *arg)
{
    struct appender *p = arg;
    struct mfs_file *f = open_file(p->c, p->ino, O_WRONLY | O_APPEND);
    char record[RECORD];

    memset(record, p->letter, sizeof record);
    for (unsigned i = 0; i < RECORDS; i++)
        assert_int_equal(mfs_vfs_write(f, record, RECORD, 0, O_APPEND, false), RECORD);
    close_file(f);
    return NULL;
}

/* Across the end of stripe 0, too. */
static void appended(void **state)
{
    struct appender p[2] = {{&a, 0, 'a'}, {&b, 0, 'b'}};
    pthread_t thread[2];
    char record[RECORD];
    unsigned count[2] = {0};
    struct mfs_file *f;
    uint64_t ino;

    (void)state;
    close_file(create(&a, "log", O_WRONLY, &ino));
    for (unsigned i = 0; i < 2; i++) {
        p[i].ino = ino;
        assert_int_equal(pthread_create(&thread[i], NULL, append_many, &p[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(getattr(&a, ino).size, 2 * RECORD * RECORDS);
    f = open_file(&a, ino, O_RDONLY);
    for (unsigned i = 0; i < 2 * RECORDS; i++) {
        assert_int_equal(mfs_vfs_read(f, record, RECORD, (uint64_t)i * RECORD, false, NULL),
                         RECORD);
        assert_true(record[0] == 'a' || record[0] == 'b');
        for (unsigned j = 1; j < RECORD; j++)
            assert_int_equal(record[j], record[0]);
        count[record[0] == 'b']++;
    }
    assert_int_equal(count[0], RECORDS);
    close_file(f);
}

/* --- locks ----------------------------------------------------------------------------------- */

/* Who drops pages because of a growth waits for a reader who may be about to take the zeros behind
 * the end he knew; a reader who asks for more has taken them. */
static void growth_and_readers(void **state)
{
    struct mfs_attr attr;
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g = open_file(&b, ino, O_RDONLY);
    char buf[4096];
    int64_t before;

    (void)state;
    put(f, "beginning", 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    for (uint32_t asker = 7; asker < 9; asker++) {
        mfs_vfs_act_for(7);
        before = mfs_clock_mono();
        assert_int_equal(mfs_vfs_read(g, buf, sizeof buf, 0, false, NULL), attr.size);
        mfs_vfs_act_for(asker);
        assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
        mfs_vfs_pages_dropped(b.vfs, ino, attr.size + 1);
        if (asker != 7)
            assert_true(mfs_clock_mono() - before >= 50 * MFS_MSEC);
    }
    mfs_vfs_act_for(0);
    close_file(g);
    close_file(f);
}

/* How many drops are late; `over`: they are done now. */
static unsigned late_drops(struct client *c, bool over)
{
    unsigned n;

    pthread_mutex_lock(&late);
    n = c->nlate;
    c->busy = !over;
    pthread_mutex_unlock(&late);
    for (unsigned i = 0; over && i < n; i++)
        c->late[i].done(c->late[i].arg);
    return n;
}

static void *append_more(void *f)
{
    put(f, "more", strlen("beginning"));
    assert_int_equal(mfs_vfs_fsync(f), 0);
    return NULL;
}

/* What another mount has appended is not told to the kernel as long as pages with zeros behind the
 * old end may be there. */
static void growth_and_pages(void **state)
{
    struct mfs_attr attr;
    uint64_t ino;
    struct mfs_file *f = create(&a, "file", O_RDWR, &ino), *g = open_file(&b, ino, O_RDONLY);
    pthread_t writer;

    (void)state;
    put(f, "beginning", 0);
    assert_int_equal(mfs_vfs_fsync(f), 0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    late_drops(&b, false);
    assert_int_equal(pthread_create(&writer, NULL, append_more, f), 0);
    while (late_drops(&b, false) == 0)
        mfs_clock_sleep(MFS_MSEC);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    assert_int_equal(attr.size, strlen("beginning"));
    late_drops(&b, true);
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_int_equal(mfs_vfs_getattr(b.vfs, ino, &attr), 0);
    assert_int_equal(attr.size, strlen("beginningmore"));
    close_file(g);
    close_file(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(close_to_open, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_after_a_failover, setup, teardown),
        cmocka_unit_test_setup_teardown(open_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(emptied_by_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(many_stripes, setup, teardown),
        cmocka_unit_test_setup_teardown(truncated, setup, teardown),
        cmocka_unit_test_setup_teardown(times_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(too_large, setup, teardown),
        cmocka_unit_test_setup_teardown(holes, setup, teardown),
        cmocka_unit_test_setup_teardown(copied, setup, teardown),
        cmocka_unit_test_setup_teardown(appended, setup, teardown),
        cmocka_unit_test_setup_teardown(growth_and_readers, setup, teardown),
        cmocka_unit_test_setup_teardown(growth_and_pages, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
