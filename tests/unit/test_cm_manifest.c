/* Checkpoints on disk: what is committed is what is found; whatever is cut, changed or left over
 * leaves the former checkpoint, or a clear error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "cm/state/manifest.h"

#define PARTS 3
#define HALF  "0123456789abcdef0123456789abcdef0123456789abcdef"
#define SUM   HALF HALF /* looks like one */

static char dir[64];

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/mfs-test-manifest-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return mfs_file_remove_tree(dir);
}

static const char *at(const char *name)
{
    static char path[PATH_MAX];

    assert_int_equal(mfs_text_format(path, sizeof path, "%s/%s", dir, name), 0);
    return path;
}

static bool there(const char *name)
{
    return !access(at(name), F_OK);
}

/* Partition i has i + 1 bytes. */
static void make(struct mfs_manifest *m, uint64_t epoch)
{
    *m = (struct mfs_manifest){.format = MFS_MANIFEST_FORMAT,
                               .epoch = epoch,
                               .stripe_size = 4096,
                               .nodes = 2,
                               .nparts = PARTS,
                               .part = calloc(PARTS, sizeof *m->part)};
    assert_non_null(m->part);
    strcpy(m->name, "test");
    for (uint32_t i = 0; i < PARTS; i++) {
        m->part[i] = (struct mfs_image_part){.index = i, .bytes = i + 1, .memory = 100};
        strcpy(m->part[i].sum, SUM);
    }
}

static void write_images(const struct mfs_manifest_draft *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char path[PATH_MAX];

        assert_int_equal(mfs_text_format(path, sizeof path, "%s/partition-%u.rdb", d->part, i), 0);
        assert_int_equal(mfs_file_note(path, "xxxx", i + 1, 0600), 0);
    }
}

static void commit(uint64_t epoch)
{
    struct mfs_manifest_draft d;
    struct mfs_manifest m;
    char path[PATH_MAX];
    struct mfs_err err;

    assert_int_equal(mfs_manifest_begin(&d, dir, "test", &err), 0);
    make(&m, epoch);
    write_images(&d, PARTS);
    assert_int_equal(mfs_manifest_commit(&d, &m, path, &err), 0);
    mfs_manifest_end(&d);
    free(m.part);
}

static int find_epoch(uint64_t *epoch, struct mfs_err *err)
{
    struct mfs_manifest m;
    char path[PATH_MAX];
    int rc = mfs_manifest_find(dir, path, &m, err);

    if (rc)
        return rc;
    *epoch = m.epoch;
    assert_int_equal(m.nparts, PARTS);
    assert_int_equal(m.part[2].bytes, 3);
    assert_string_equal(m.name, "test");
    assert_int_equal(mfs_manifest_bytes(&m), 6);
    assert_int_equal(mfs_manifest_memory(&m), 300);
    mfs_manifest_clear(&m);
    return 0;
}

static void expect_epoch(uint64_t want)
{
    struct mfs_err err;
    uint64_t epoch = 0;

    assert_int_equal(find_epoch(&epoch, &err), 0);
    assert_int_equal(epoch, want);
}

static void test_the_newest_is_found_and_the_former_goes(void **state)
{
    struct mfs_err err;
    uint64_t epoch;

    (void)state;
    assert_int_equal(find_epoch(&epoch, &err), -ENOENT);
    commit(5);
    expect_epoch(5);
    commit(6);
    expect_epoch(6);
    assert_false(there("checkpoint-1"));
    assert_true(there("checkpoint-2"));
    assert_false(there("checkpoint-2.part"));
}

static void test_one_is_found_by_its_own_directory(void **state)
{
    struct mfs_manifest m;
    char path[PATH_MAX];
    struct mfs_err err;

    (void)state;
    commit(5);
    assert_int_equal(mfs_manifest_find(at("checkpoint-1"), path, &m, &err), 0);
    assert_string_equal(path, at("checkpoint-1"));
    mfs_manifest_clear(&m);
}

/* Dead at any point before the commit: what is there stays valid, and the next call clears away. */
static void test_one_that_was_cut_short_changes_nothing(void **state)
{
    struct mfs_manifest_draft d;
    char placed[PATH_MAX];
    struct mfs_err err;

    (void)state;
    commit(5);
    for (uint32_t images = 0; images <= PARTS; images++) {
        assert_int_equal(mfs_manifest_begin(&d, dir, "test", &err), 0);
        write_images(&d, images);
        close(d.lock); /* as the kernel does it for the dead */
        assert_true(there("checkpoint-2.part"));
        expect_epoch(5);
    }
    /* In place, but not the current one yet; and a stranger's file is none of our business. */
    mfs_text_format(placed, sizeof placed, "%s/checkpoint-2", dir);
    assert_int_equal(rename(at("checkpoint-2.part"), placed), 0);
    assert_int_equal(mfs_file_note(at("checkpoint-notes"), "x", 1, 0600), 0);
    expect_epoch(5);
    commit(6);
    expect_epoch(6);
    assert_false(there("checkpoint-1"));
    assert_false(there("checkpoint-2.part"));
    assert_true(there("checkpoint-notes"));
}

/* Others call their checkpoints so, too: what is in one shows whose it is. */
static void test_what_has_only_our_name_stays(void **state)
{
    static const char *const foreign[] = {"checkpoint-500", "checkpoint-7.part"};
    struct mfs_manifest_draft d;
    char inside[PATH_MAX];
    struct mfs_err err;

    (void)state;
    for (int committed = 0; committed < 2; committed++) {
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(mkdir(at(foreign[i]), 0700), 0);
            mfs_text_format(inside, sizeof inside, "%s/weights", at(foreign[i]));
            assert_int_equal(mfs_file_note(inside, "x", 1, 0600), 0);
            assert_int_equal(mfs_manifest_begin(&d, dir, "test", &err), -EEXIST);
            assert_non_null(strstr(err.msg, foreign[i]));
            assert_int_equal(access(inside, F_OK), 0);
            assert_int_equal(mfs_file_remove_tree(at(foreign[i])), 0);
        }
        assert_int_equal(mfs_file_note(at("checkpoint-3"), "x", 1, 0600), 0);
        assert_int_equal(mfs_manifest_begin(&d, dir, "test", &err), -EEXIST);
        assert_int_equal(unlink(at("checkpoint-3")), 0);
        commit(5);
    }
}

static void test_a_missing_or_short_image_is_no_checkpoint(void **state)
{
    struct mfs_manifest_draft d;
    struct mfs_manifest m;
    char path[PATH_MAX];
    struct mfs_err err;
    uint64_t epoch;

    (void)state;
    commit(5);
    assert_int_equal(mfs_manifest_begin(&d, dir, "test", &err), 0);
    make(&m, 6);
    write_images(&d, PARTS - 1);
    assert_int_equal(mfs_manifest_commit(&d, &m, path, &err), -EIO);
    assert_non_null(strstr(err.msg, "partition-2.rdb"));
    mfs_manifest_end(&d);
    free(m.part);
    expect_epoch(5);
    assert_false(there("checkpoint-2.part"));
    assert_int_equal(truncate(at("checkpoint-1/partition-1.rdb"), 1), 0);
    assert_int_equal(find_epoch(&epoch, &err), -EIO);
    assert_non_null(strstr(err.msg, "partition-1.rdb"));
    assert_int_equal(unlink(at("checkpoint-1/partition-1.rdb")), 0);
    assert_int_equal(find_epoch(&epoch, &err), -EIO);
}

/* What others could have changed is not taken, and nothing is written where they can change it. */
static void test_others_have_no_hand_in_it(void **state)
{
    static const char *const files[] = {"current", "checkpoint-1/manifest.json",
                                        "checkpoint-1/partition-1.rdb"};
    struct mfs_manifest_draft d;
    char moved[PATH_MAX];
    struct mfs_err err;
    uint64_t epoch;

    (void)state;
    commit(5);
    mfs_text_format(moved, sizeof moved, "%s/moved", dir);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(chmod(at(files[i]), 0620), 0);
        assert_int_equal(find_epoch(&epoch, &err), -EPERM);
        assert_int_equal(chmod(at(files[i]), 0600), 0);
        expect_epoch(5);
        assert_int_equal(rename(at(files[i]), moved), 0);
        assert_int_equal(symlink(moved, at(files[i])), 0);
        assert_int_not_equal(find_epoch(&epoch, &err), 0);
        assert_non_null(strstr(err.msg, MFS_TRUSTED_NO_FILE));
        assert_int_equal(rename(moved, at(files[i])), 0);
    }
    assert_int_equal(chmod(at("checkpoint-1"), 0770), 0);
    assert_int_equal(find_epoch(&epoch, &err), -EPERM);
    assert_int_equal(chmod(at("checkpoint-1"), 0700), 0);
    assert_int_equal(chmod(dir, 0702), 0);
    assert_int_equal(mfs_manifest_begin(&d, dir, "test", &err), -EPERM);
    assert_int_equal(mfs_manifest_begin(&d, at("new"), "test", &err), -EPERM);
    assert_false(there("new"));
    assert_int_equal(chmod(dir, 0700), 0);
    expect_epoch(5);
}

static void read_all(const char *path, struct mfs_buf *b)
{
    mfs_buf_init(b);
    assert_int_equal(mfs_file_read(path, 1 << 20, b), 0);
}

/* Every cut and every changed byte of the two files that a checkpoint hangs on is found out. */
static void test_no_byte_can_be_lost_or_changed(void **state)
{
    static const char *const files[] = {"current", "checkpoint-1/manifest.json"};
    struct mfs_err err;
    uint64_t epoch;
    struct mfs_buf b;

    (void)state;
    commit(5);
    for (size_t f = 0; f < 2; f++) {
        read_all(at(files[f]), &b);
        for (size_t n = 0; n < mfs_buf_len(&b); n++) {
            char *text = (char *)mfs_buf_data(&b);
            int rc;

            assert_int_equal(mfs_file_note(at(files[f]), text, n, 0600), 0);
            assert_int_not_equal(find_epoch(&epoch, &err), 0);
            text[n] ^= 1;
            assert_int_equal(mfs_file_note(at(files[f]), text, mfs_buf_len(&b), 0600), 0);
            rc = find_epoch(&epoch, &err);
            if (!rc || !err.msg[0])
                fail_msg("%s: a change of byte %zu goes unnoticed", files[f], n);
            text[n] ^= 1;
        }
        assert_int_equal(mfs_file_note(at(files[f]), mfs_buf_data(&b), mfs_buf_len(&b), 0600), 0);
        mfs_buf_fini(&b);
        expect_epoch(5);
    }
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"format\": 4}",
        "{\"format\": 1, \"name\": \"x\", \"epoch\": 1, \"stripe_size\": 4096, \"partitions\": "
        "[{\"index\": 0, \"gmac\": \"" SUM "\"}]}",
        "{\"format\": 4, \"name\": \"x\", \"epoch\": 1, \"stripe_size\": 4096, \"partitions\": "
        "[]}",
        "{\"format\": 4, \"name\": \"x\", \"epoch\": 1, \"stripe_size\": 4096, \"partitions\": "
        "[{\"index\": 1, \"gmac\": \"" SUM "\"}]}",
        "{\"format\": 4, \"name\": \"x\", \"epoch\": 1, \"stripe_size\": 4096, \"partitions\": "
        "[{\"index\": 0, \"gmac\": \"" SUM "0\"}]}",
        "{\"format\": 4, \"name\": \"x\", \"epoch\": 1, \"stripe_size\": 0, \"partitions\": "
        "[{\"index\": 0, \"gmac\": \"" SUM "\"}]}"};
    struct mfs_manifest m;
    struct mfs_err err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (struct mfs_err){0};
        assert_int_equal(mfs_manifest_parse(&m, bad[i], strlen(bad[i]), &err), -EINVAL);
        assert_true(err.msg[0]);
    }
}

/* Before format 5 no number said where all stripes are; all else was as it is. */
static void test_the_former_format_is_read(void **state)
{
    static const char text[] =
        "{\"format\": 4, \"name\": \"x\", \"epoch\": 1, \"stripe_size\": 4096, "
        "\"partitions\": [{\"index\": 0, \"gmac\": \"" SUM "\"}]}";
    struct mfs_manifest m;
    struct mfs_err err;

    (void)state;
    assert_int_equal(mfs_manifest_parse(&m, text, strlen(text), &err), 0);
    assert_int_equal(m.nparts, 1);
    mfs_manifest_clear(&m);
    assert_int_equal(MFS_MANIFEST_FORMAT, 6); /* programs that know 5 alone must refuse */
}

static void test_other_formats_are_refused(void **state)
{
    static const char *const why[] = {[2] = ": inode numbers were of another layout then",
                                      [3] = ": checksums had no keys then",
                                      [7] = ""};
    char text[256], want[128];
    struct mfs_manifest m;
    struct mfs_err err;

    (void)state;
    for (size_t i = 0; i < sizeof why / sizeof *why; i++) {
        if (!why[i])
            continue;
        snprintf(text, sizeof text,
                 "{\"format\": %zu, \"name\": \"x\", \"epoch\": 1, \"stripe_size\": 4096, "
                 "\"partitions\": [{\"index\": 0, \"xxh64\": \"0123456789abcdef\"}]}",
                 i);
        snprintf(want, sizeof want, "it has format %zu, this program knows 4 to 6%s", i, why[i]);
        assert_int_equal(mfs_manifest_parse(&m, text, strlen(text), &err), -EINVAL);
        assert_string_equal(err.msg, want);
    }
}

static void test_one_writes_at_a_time_and_only_its_own(void **state)
{
    struct mfs_manifest_draft one, two;
    struct mfs_err err;

    (void)state;
    commit(5);
    assert_int_equal(mfs_manifest_begin(&one, dir, "test", &err), 0);
    assert_int_equal(mfs_manifest_begin(&two, dir, "test", &err), -EBUSY);
    mfs_manifest_end(&one);
    assert_int_equal(mfs_manifest_begin(&two, dir, "other", &err), -EEXIST);
    expect_epoch(5);
}

static void test_places_that_do_not_do(void **state)
{
    struct mfs_manifest_draft d;
    struct mfs_err err;

    (void)state;
    assert_int_equal(mfs_file_note(at("file"), "x", 1, 0600), 0);
    assert_int_not_equal(mfs_manifest_begin(&d, at("file"), "test", &err), 0);
    assert_int_not_equal(mfs_manifest_begin(&d, at("file/below"), "test", &err), 0);
    assert_int_not_equal(mfs_manifest_begin(&d, "/proc/nothing-can-be-made-here", "test", &err), 0);
    assert_true(err.msg[0]);
    assert_int_equal(mfs_manifest_begin(&d, at("a/b/c"), "test", &err), 0);
    mfs_manifest_end(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_newest_is_found_and_the_former_goes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_one_is_found_by_its_own_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_was_cut_short_changes_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_has_only_our_name_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_missing_or_short_image_is_no_checkpoint, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_others_have_no_hand_in_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_byte_can_be_lost_or_changed, setup, teardown),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
        cmocka_unit_test(test_the_former_format_is_read),
        cmocka_unit_test(test_other_formats_are_refused),
        cmocka_unit_test_setup_teardown(test_one_writes_at_a_time_and_only_its_own, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_places_that_do_not_do, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
