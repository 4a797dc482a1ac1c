/* Images of real redis processes: what was stored before the cut is in them and what came after is
 * not, whoever slips through is noticed, and a process that starts with an image has all of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"
#include "lm/redis/instances.h"
#include "lm/copy/imager.h"
#include "lm/redis/image_verify.h"
#include "store/admin/admin.h"
#include "store/args.h"
#include "store/reply.h"

#define MIB   (1ULL << 20)
#define PARTS 2

struct world {
    char dir[64], images[80];
    struct mfs_instances *instances;
    struct mfs_redis r[PARTS];
};

static int open_instances(struct world *w, const char *deployment)
{
    struct mfs_instances_opts opts = {.dir = w->dir,
                                      .dump_dir = w->dir,
                                      .address = "127.0.0.1",
                                      .deployment = deployment,
                                      .nparts = PARTS,
                                      .stripe_size = MIB,
                                      .memory = 256 * MIB};

    return mfs_instances_create(&w->instances, &opts);
}

static int start(struct world *w)
{
    struct mfs_err err;
    int rc = mfs_instances_start(w->instances, w->r, PARTS, &err);

    if (rc)
        print_error("%s\n", err.msg);
    for (uint32_t i = 0; i < PARTS && !rc; i++)
        rc = mfs_instances_find(w->instances, i, &w->r[i]);
    return rc;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    mfs_text_copy(w->dir, sizeof w->dir, "/tmp/memefs-image-XXXXXX");
    if (!mkdtemp(w->dir) || mfs_text_format(w->images, sizeof w->images, "%s/cp", w->dir) ||
        mkdir(w->images, 0700) || open_instances(w, "test"))
        return -1;
    for (uint32_t i = 0; i < PARTS; i++) {
        w->r[i] = (struct mfs_redis){.part = i, .format = true};
        mfs_random_hex(w->r[i].password, 32);
        mfs_random_hex(w->r[i].admin_password, 32);
    }
    *state = w;
    return start(w);
}

static int teardown(void **state)
{
    struct world *w = *state;

    mfs_instances_stop_all(w->instances);
    mfs_instances_destroy(w->instances);
    mfs_file_remove_tree(w->dir);
    free(w);
    return 0;
}

/* Any command, words separated by blanks; its integer, or the length of its text. */
static int64_t call(const struct world *w, uint32_t part, const char *command)
{
    char *copy = strdup(command), *rest = copy;
    struct mfs_admin *admin;
    struct mfs_args args;
    struct mfs_err err;
    struct mfs_cmd cmd;
    size_t len = 0;
    int64_t n;

    assert_int_equal(mfs_admin_open(&admin, w->r[part].unix_path, NULL, 0,
                                    w->r[part].admin_password, 20LL * 1000000000, &err),
                     0);
    mfs_args_init(&args, strsep(&rest, " "));
    for (char *word; (word = strsep(&rest, " "));)
        mfs_args_str(&args, word);
    cmd = mfs_args_cmd(&args, 0);
    assert_int_equal(mfs_admin_call(admin, &cmd, &err), 0);
    n = mfs_reply_str(cmd.reply, &len) ? (int64_t)len : mfs_reply_int(cmd.reply);
    mfs_cmds_fini(&cmd, 1);
    mfs_admin_close(admin);
    free(copy);
    return n;
}

static struct mfs_imager *imager(const struct world *w)
{
    struct mfs_imager *im = mfs_imager_create("test", w->images, w->r, PARTS);

    assert_non_null(im);
    return im;
}

/* The images are written; what they are, into image[]. */
static void save(struct world *w, struct mfs_imager *im, struct mfs_redis_image image[PARTS])
{
    const struct mfs_imager_part *p;
    struct mfs_err err = {0};
    size_t n;

    if (mfs_imager_write(im, &err))
        fail_msg("%s", err.msg);
    p = mfs_imager_parts(im, &n);
    assert_int_equal(n, PARTS);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(p[i].part, i);
        assert_true(p[i].memory > p[i].bytes / 2);
        mfs_text_format(image[i].path, sizeof image[i].path, "%s/partition-%zu.rdb", w->images, i);
        image[i].bytes = p[i].bytes;
        memcpy(image[i].sum, p[i].sum, sizeof image[i].sum);
        assert_int_equal(mfs_image_verify(image[i].path, p[i].bytes, p[i].sum, &err), 0);
    }
}

static void cut(struct mfs_imager *im)
{
    struct mfs_err err = {0};
    uint64_t us = 0;

    if (mfs_imager_halt(im, 5000, &err) || mfs_imager_cut(im, &us, &err))
        fail_msg("%s", err.msg);
    assert_true(us > 0 && us < 5000000);
}

/* New processes in place of the old ones, which begin with the images. */
static int restart_with(struct world *w, struct mfs_redis_image image[PARTS],
                        const char *deployment, struct mfs_err *err)
{
    int rc;

    mfs_instances_stop_all(w->instances);
    mfs_instances_destroy(w->instances);
    assert_int_equal(open_instances(w, deployment), 0);
    for (uint32_t i = 0; i < PARTS; i++) {
        w->r[i].image = &image[i];
        w->r[i].expected = image[i].bytes;
    }
    rc = mfs_instances_start(w->instances, w->r, PARTS, err);
    for (uint32_t i = 0; i < PARTS && !rc; i++)
        rc = mfs_instances_find(w->instances, i, &w->r[i]);
    return rc;
}

static void fill(const struct world *w)
{
    char value[3 * MIB / 2 + 16], command[sizeof value + 64];

    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < 12; i++) {
        snprintf(command, sizeof command, "SET S%d %s", i, value);
        call(w, (uint32_t)i % PARTS, command);
    }
    call(w, 0, "SADD #sessions abcdefgh");
    call(w, 0, "SET Zabcdefgh x");
    call(w, 0, "HSET Oabcdefgh s 1");
    call(w, 0, "HSET Labcdefgh s 1");
    call(w, 0, "HSET Aabcdefgh s 1");
}

static void test_image_is_of_the_cut(void **state)
{
    struct mfs_redis_image image[PARTS] = {0};
    struct world *w = *state;
    struct mfs_imager *im = imager(w);
    struct mfs_err err = {0};
    char path[PATH_MAX];

    fill(w);
    cut(im);
    call(w, 0, "SET after 1"); /* both go on, and what they do is not in the images */
    call(w, 1, "DEL S1");
    save(w, im, image);
    assert_int_equal(mfs_imager_written(im), image[0].bytes + image[1].bytes);
    mfs_imager_destroy(im);
    if (restart_with(w, image, "other", &err))
        fail_msg("%s", err.msg);
    assert_int_equal(call(w, 0, "EXISTS after"), 0);
    for (int i = 0; i < 12; i++) {
        char command[32];

        snprintf(command, sizeof command, "STRLEN S%d", i);
        assert_int_equal(call(w, (uint32_t)i % PARTS, command), 3 * MIB / 2 + 15);
    }
    assert_int_equal(call(w, 0, "EXISTS Zabcdefgh"), 0); /* nobody lives whose session it was */
    assert_int_equal(call(w, 0, "EXISTS Oabcdefgh Labcdefgh #sessions"), 0);
    assert_int_equal(call(w, 0, "EXISTS Aabcdefgh S0 #super"), 3);
    assert_int_equal(call(w, 0, "HGET #super deployment"), strlen("other"));
    assert_int_equal(call(w, 0, "mfs_format other 0 2 1048576 0 0"), strlen("OK"));
    snprintf(path, sizeof path, "%s/redis-0.rdb", w->dir);
    assert_int_equal(access(path, F_OK), -1); /* no way back to the image */
    assert_int_equal(mfs_image_verify(image[0].path, image[0].bytes, image[0].sum, &err), 0);
}

/* A copy that was given up may have left that: its lm died, or could not reach the source. */
static void test_image_of_what_was_a_source(void **state)
{
    struct mfs_redis_image image[PARTS] = {0};
    struct world *w = *state;
    struct mfs_imager *im;

    fill(w);
    call(w, 0, "CONFIG SET rdb-key-save-delay 5000000");
    call(w, 1, "CONFIG SET repl-diskless-sync no");
    im = imager(w);
    cut(im);
    save(w, im, image);
    assert_int_equal(mfs_imager_written(im), image[0].bytes + image[1].bytes);
    mfs_imager_destroy(im);
}

static void *set_a_key(void *arg)
{
    call(arg, 0, "SET waited 1");
    return NULL;
}

/* Until a client of partition 0 is made to wait. */
static void await_blocked(const struct world *w)
{
    struct mfs_admin *admin;
    struct mfs_args args;
    struct mfs_err err;
    bool blocked = false;

    assert_int_equal(mfs_admin_open(&admin, w->r[0].unix_path, NULL, 0, w->r[0].admin_password,
                                    20LL * 1000000000, &err),
                     0);
    for (int i = 0; i < 5000 && !blocked; i++) {
        struct mfs_cmd cmd;

        mfs_args_init(&args, "INFO");
        mfs_args_str(&args, "clients");
        cmd = mfs_args_cmd(&args, 0);
        assert_int_equal(mfs_admin_call(admin, &cmd, &err), 0);
        blocked = strstr(mfs_reply_str(cmd.reply, NULL), "blocked_clients:1") != NULL;
        mfs_cmds_fini(&cmd, 1);
        usleep(1000);
    }
    mfs_admin_close(admin);
    assert_true(blocked);
}

/* Who writes while all stand still waits, and is neither lost nor in the image. */
static void test_writers_wait(void **state)
{
    struct mfs_redis_image image[PARTS] = {0};
    struct world *w = *state;
    struct mfs_imager *im = imager(w);
    struct mfs_err err = {0};
    pthread_t writer;
    uint64_t us;

    assert_int_equal(mfs_imager_halt(im, 10000, &err), 0);
    assert_int_equal(pthread_create(&writer, NULL, set_a_key, w), 0);
    await_blocked(w);
    assert_int_equal(call(w, 0, "EXISTS waited"), 0); /* reading goes on */
    assert_int_equal(mfs_imager_cut(im, &us, &err), 0);
    pthread_join(writer, NULL);
    assert_int_equal(call(w, 0, "EXISTS waited"), 1);
    save(w, im, image);
    mfs_imager_destroy(im);
    assert_int_equal(restart_with(w, image, "test", &err), 0);
    assert_int_equal(call(w, 0, "EXISTS waited"), 0);
}

/* The pause ran out, and something was changed before the fork. */
static void test_a_change_in_between_is_noticed(void **state)
{
    struct world *w = *state;
    struct mfs_imager *im = imager(w);
    struct mfs_err err = {0};
    uint64_t us;

    assert_int_equal(mfs_imager_halt(im, 5000, &err), 0);
    call(w, 1, "CLIENT UNPAUSE");
    call(w, 1, "SET slipped 1");
    assert_int_equal(mfs_imager_cut(im, &us, &err), -EAGAIN);
    mfs_imager_destroy(im);
    call(w, 0, "SET on 1"); /* nothing stands still any more */
}

static void test_a_process_that_does_not_fork_in_time(void **state)
{
    struct world *w = *state;
    struct mfs_imager *im = imager(w);
    struct mfs_err err = {0};
    uint64_t us;

    assert_int_equal(mfs_imager_halt(im, 300, &err), 0);
    kill(w->r[1].proc.pid, SIGSTOP);
    assert_int_equal(mfs_imager_cut(im, &us, &err), -EAGAIN);
    kill(w->r[1].proc.pid, SIGCONT);
    mfs_imager_destroy(im);
    call(w, 0, "SET on 1");
    call(w, 1, "SET on 1");
}

/* Nobody comes back to what was halted: it goes on by itself. */
static void test_what_is_forgotten_goes_on(void **state)
{
    struct world *w = *state;
    struct mfs_admin_cut cut;
    struct mfs_admin *admin;
    struct mfs_err err;

    assert_int_equal(mfs_admin_open(&admin, w->r[0].unix_path, NULL, 0, w->r[0].admin_password,
                                    1000000000, &err),
                     0);
    assert_int_equal(mfs_admin_hold(admin, 200, &cut, &err), 0);
    mfs_admin_close(admin);
    call(w, 0, "SET on 1"); /* waits 200 ms; the connection's limit is 20 s */
}

static void test_a_process_that_dies_while_it_sends(void **state)
{
    struct world *w = *state;
    struct mfs_imager *im = imager(w);
    struct mfs_err err = {0};

    fill(w);
    cut(im);
    kill(w->r[0].proc.pid, SIGKILL);
    assert_int_equal(mfs_imager_write(im, &err), -EIO);
    mfs_imager_destroy(im);
    call(w, 1, "SET on 1");
}

static void test_cancel_and_places_that_do_not_do(void **state)
{
    struct world *w = *state;
    struct mfs_imager *im = imager(w);
    struct mfs_err err = {0};

    fill(w);
    cut(im);
    mfs_imager_cancel(im);
    assert_int_equal(mfs_imager_write(im, &err), -ECANCELED);
    mfs_imager_destroy(im);
    im = imager(w);
    cut(im); /* the files of the last one are still there: nothing is written over */
    assert_int_equal(mfs_imager_write(im, &err), -EEXIST);
    mfs_imager_destroy(im);
    mfs_file_remove_tree(w->images);
    im = imager(w);
    assert_int_equal(mfs_imager_halt(im, 1000, &err), -ENOENT);
    mfs_imager_destroy(im);
    call(w, 0, "SET on 1");
}

/* One flipped bit, one byte too few, no file: nothing is started. */
static void test_damage_is_found_before_anything_starts(void **state)
{
    struct mfs_redis_image image[PARTS] = {0};
    struct world *w = *state;
    struct mfs_imager *im = imager(w);
    struct mfs_err err = {0};
    char byte;
    FILE *f;

    fill(w);
    cut(im);
    save(w, im, image);
    mfs_imager_destroy(im);
    f = fopen(image[1].path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)image[1].bytes / 2, SEEK_SET), 0);
    byte = (char)fgetc(f);
    fseek(f, -1, SEEK_CUR);
    fputc(byte ^ 1, f);
    fclose(f);
    assert_int_equal(restart_with(w, image, "test", &err), -EIO);
    assert_non_null(strstr(err.msg, "checksum"));
    /* One that would be right for another partition, or in another checkpoint. */
    assert_int_equal(mfs_image_verify(image[0].path, image[0].bytes, image[1].sum, &err), -EIO);
    assert_null(strstr(err.msg, image[0].sum)); /* it holds a key */
    assert_int_equal(mfs_image_verify(image[0].path, image[0].bytes, "", &err), -EINVAL);
    assert_int_equal(chmod(image[0].path, 0606), 0);
    assert_int_equal(restart_with(w, image, "test", &err), -EPERM);
    assert_int_equal(chmod(image[0].path, 0600), 0);
    assert_int_equal(truncate(image[1].path, (off_t)image[1].bytes - 1), 0);
    assert_int_equal(restart_with(w, image, "test", &err), -EIO);
    assert_int_equal(unlink(image[1].path), 0);
    assert_int_equal(restart_with(w, image, "test", &err), -ENOENT);
    assert_int_equal(mfs_instances_find(w->instances, 0, &w->r[0]), -ENOENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_image_is_of_the_cut),
        TEST(test_image_of_what_was_a_source),
        TEST(test_writers_wait),
        TEST(test_a_change_in_between_is_noticed),
        TEST(test_a_process_that_does_not_fork_in_time),
        TEST(test_what_is_forgotten_goes_on),
        TEST(test_a_process_that_dies_while_it_sends),
        TEST(test_cancel_and_places_that_do_not_do),
        TEST(test_damage_is_found_before_anything_starts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
