/* The line to a Local Manager: why there is none is told to who waits for the partition table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/file.h"
#include "client/control.h"
#include "net/auth.h"
#include "proto/frame.h"

#define PATIENCE (300 * MFS_MSEC)

static char dir[] = "/tmp/mfs.control.XXXXXX", address[64], secret[64];

/* A manager of another version begins like this, whatever follows. */
static void *manager_of_another_version(void *arg)
{
    const char *text = "{\"version\":5,\"key\":"
                       "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}";
    int listener = *(int *)arg, fd;
    struct mfs_buf frame;

    mfs_buf_init(&frame);
    mfs_frame_put(&frame, text, strlen(text));
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        char rest;

        mfs_file_write_all(fd, mfs_buf_data(&frame), mfs_buf_len(&frame));
        while (read(fd, &rest, 1) > 0)
            ;
        close(fd);
    }
    mfs_buf_fini(&frame);
    return NULL;
}

static void wait_for_table(const char *words)
{
    const struct mfs_control_config config = {
        .address = address, .secret = secret, .mount = "test"};
    struct mfs_control *c;
    struct mfs_table *table;
    struct mfs_err err = {0};

    assert_int_equal(mfs_control_create(&c, &config, &err), 0);
    assert_int_equal(mfs_control_wait_table(c, PATIENCE, &table, &err), -ETIMEDOUT);
    if (!strstr(err.msg, words))
        fail_msg("says %s", err.msg);
    mfs_control_destroy(c);
}

static void nobody_listens(void **state)
{
    (void)state;
    wait_for_table("No such file");
}

static void another_version_listens(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;

    (void)state;
    snprintf(at.sun_path, sizeof at.sun_path, "%s", address + strlen("unix:"));
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(pthread_create(&thread, NULL, manager_of_another_version, &listener), 0);
    wait_for_table("it speaks protocol version 5, this program, of MemEFS " MEMEFS_VERSION);
    wait_for_table("use older programs and library");
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(listener);
}

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(address, sizeof address, "unix:%s/lm.sock", dir);
    snprintf(secret, sizeof secret, "%s/secret", dir);
    return mfs_secret_create(secret);
}

static int remove_dir(void **state)
{
    (void)state;
    return mfs_file_remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(another_version_listens),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
