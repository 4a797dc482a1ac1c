/* The file of hosts and the list (cm start --hosts): what they make of good lines, and what is
 * refused, with its line. What ssh says, as cm passes it on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cm/provider/ssh/hosts.h"
#include "cm/provider/ssh/impl.h"

static const char *places_of(const struct mfs_hosts *h)
{
    static char out[1 << 16];
    struct mfs_buf b;

    mfs_buf_init(&b);
    assert_int_equal(mfs_hosts_put_places(h, &b), 0);
    assert_true(mfs_buf_len(&b) < sizeof out);
    memcpy(out, mfs_buf_data(&b), mfs_buf_len(&b));
    out[mfs_buf_len(&b)] = '\0';
    mfs_buf_fini(&b);
    return out;
}

/* The places of a file, a line each. */
static const char *places(const char *text)
{
    struct mfs_hosts h;
    struct mfs_err err = {0};
    const char *out;

    if (mfs_hosts_parse(text, strlen(text), "f", &h, &err))
        fail_msg("%s", err.msg);
    out = places_of(&h);
    mfs_hosts_clear(&h);
    return out;
}

static void test_files(void **state)
{
    (void)state;
    assert_string_equal(places("tux1\ntux2\n"), "tux1\ntux2\n");
    assert_string_equal(places("tux1"), "tux1\n");
    assert_string_equal(places("# all of them\n\n  \t\n\ttux1   # the first\r\ntux2\r\n"),
                        "tux1\ntux2\n");
    assert_string_equal(places("tux1 slots=3\ntux2 slots=2 memory=1G\n"),
                        "tux1\ntux2 memory=1073741824\ntux1 round=1\n"
                        "tux2 round=1 memory=1073741824\ntux1 round=2\n");
    assert_string_equal(places("alice@tux1.x.org address=10.0.0.7 memory=64M\n"),
                        "alice@tux1.x.org memory=67108864 address=10.0.0.7\n");
    assert_string_equal(places("tux[1-2] slots=1\nfd00::1 address=FD00:0::1"),
                        "tux1\ntux2\nfd00::1 address=fd00::1\n");
}

static void refused(const char *text, size_t len, const char *words)
{
    struct mfs_hosts h;
    struct mfs_err err = {0};

    assert_int_equal(mfs_hosts_parse(text, len, "FILE", &h, &err), -EINVAL);
    if (!strstr(err.msg, words))
        fail_msg("\"%s\": says %s", text, err.msg);
    assert_int_equal(strncmp(err.msg, "FILE: ", 6), 0);
    assert_int_equal(h.n, 0);
    assert_null(h.host);
}

#define REFUSED(text, words) refused(text, sizeof(text) - 1, words)

static void test_refused(void **state)
{
    (void)state;
    REFUSED("", "no host");
    REFUSED("\n# nothing\n", "no host");
    REFUSED("a\nb\n\na\n", "line 4: a is in line 1 already");
    REFUSED("a\nA\n", "line 2: A is in line 1 already");
    REFUSED("a[1-3]\na2\n", "line 2: a2 is in line 1 already");
    REFUSED("a\nb slots=0\n", "line 2: slots=0 is no number from 1 to 64");
    REFUSED("b slots=65\n", "slots=65");
    REFUSED("b slots=-1\n", "slots=-1");
    REFUSED("b slots=\n", "slots= is no number");
    REFUSED("b slots=18446744073709551617\n", "is no number");
    REFUSED("b slots=2 slots=2\n", "slots= is there twice");
    REFUSED("b memory=lots\n", "memory=lots is no size");
    REFUSED("b memory=1K\n", "memory=1K is no size");
    REFUSED("b memory=1G memory=1G\n", "memory= is there twice");
    REFUSED("b address=tux1\n", "address=tux1 is no numeric address");
    REFUSED("b address=1.2.3.4.5\n", "is no numeric address");
    REFUSED("b[1-2] address=10.0.0.1\n", "address= behind 2 hosts");
    REFUSED("b address=0.0.0.0\n", "is none that other machines could reach");
    REFUSED("b address=224.0.0.1\n", "is none that other machines");
    REFUSED("b address=::\n", "is none that other machines");
    REFUSED("b address=fe80::1\n", "is none that other machines");
    REFUSED("a address=10.0.0.1\nb address=10.0.0.1\n", "line 2: 10.0.0.1 is in line 1 already");
    REFUSED("a address=fd00::1\nb address=FD00:0::1\n", "line 2: fd00::1 is in line 1 already");
    REFUSED("fd00::1\nFD00:0::1\n", "line 2: fd00::1 is in line 1 already");
    REFUSED("alice@a\nbob@a\n", "line 2: a is in line 1 already");
    REFUSED("[fd00::1]\n", "without brackets");
    REFUSED("b cpus=4\n", "\"cpus=\" is not known");
    REFUSED("b round=1\n", "\"round=\" is not known");
    REFUSED("b 4\n", "\"4\" behind the host");
    REFUSED("slots=4\n", "\"slots=4\" is no name");
    REFUSED("-oProxyCommand=x\n", "no name of a host");
    REFUSED("a@-oProxyCommand\n", "no name of a host");
    REFUSED("@a\n", "no name of a host");
    REFUSED("a@\n", "no name of a host");
    REFUSED("a@b@c\n", "no name of a host");
    REFUSED("a;reboot\n", "no name of a host");
    REFUSED("$(reboot)\n", "no name of a host");
    REFUSED("a\x1b[2J\n", "line 1: byte 0x1b");
    REFUSED("\xef\xbb\xbftux1\n", "is no name");
    REFUSED("a\0b\n", "line 1: byte 0x00");
    REFUSED("a\nb[1-\n", "line 2: ");
    REFUSED("a[1-5000]\n", "more than 4096 hosts");
}

static void test_long(void **state)
{
    char text[5000];

    (void)state;
    memset(text, 'a', sizeof text);
    refused(text, sizeof text, "line 1: it has more than 1023 characters");
    refused(text, 1000, "too long");
    memset(text, '\n', sizeof text);
    refused(text, sizeof text, "no host");
    memset(text, '[', sizeof text);
    refused(text, 1000, "line 1: ");
}

/* Whatever the bytes are, it ends with 0 or a reason. */
static void test_any_bytes(void **state)
{
    static const char chars[] = "ab1[]-,@= \t\n#.:slotmery\r\0\xff";
    struct mfs_err err;
    struct mfs_hosts h;
    unsigned seed = 4711;
    char text[64];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t len = (size_t)rand_r(&seed) % sizeof text;

        for (size_t k = 0; k < len; k++)
            text[k] = chars[(size_t)rand_r(&seed) % sizeof chars];
        err = (struct mfs_err){0};
        if (mfs_hosts_parse(text, len, "f", &h, &err))
            assert_true(err.code == -EINVAL && err.msg[0]);
        else
            assert_true(h.n > 0);
        mfs_hosts_clear(&h);
    }
}

static void read_as(const char *given, int rc, const char *words)
{
    struct mfs_hosts h;
    struct mfs_err err;

    assert_int_equal(mfs_hosts_read(given, &h, &err), rc);
    assert_non_null(strstr(rc ? err.msg : places_of(&h), words));
    mfs_hosts_clear(&h);
}

static void test_lists_and_files(void **state)
{
    char name[] = "/tmp/mfs-hosts-XXXXXX", *big = calloc(1, MFS_HOSTS_FILE_MAX + 1);
    int fd = mkstemp(name);

    (void)state;
    assert_true(fd >= 0 && big);
    assert_int_equal(write(fd, "a\nb\n", 4), 4);
    read_as(name, 0, "a\nb\n");
    read_as("tux[1-2],b", 0, "tux1\ntux2\nb\n");
    read_as("tux[1-2],tux2", -EINVAL, "tux2 is there twice");
    read_as("tux[1-2", -EINVAL, "']' is missing");
    read_as("/nowhere/hosts", -EINVAL, "/nowhere/hosts: No such file");
    read_as("/tmp", -EINVAL, "/tmp: ");
    assert_int_equal(write(fd, big, MFS_HOSTS_FILE_MAX), MFS_HOSTS_FILE_MAX);
    read_as(name, -EINVAL, "has more than 1024 KiB");
    close(fd);
    unlink(name);
    free(big);
}

static void test_places(void **state)
{
    struct mfs_err err;
    struct mfs_host h;

    (void)state;
    assert_int_equal(mfs_hosts_place("a@tux1 round=1 memory=64M address=10.0.0.1", &h, &err), 0);
    assert_string_equal(h.name, "a@tux1");
    assert_string_equal(mfs_host_machine(&h), "tux1");
    assert_string_equal(h.address, "10.0.0.1");
    assert_int_equal(h.round, 1);
    assert_int_equal(h.memory, 64 << 20);
    assert_int_equal(mfs_hosts_place("", &h, &err), -EINVAL);
    assert_int_equal(mfs_hosts_place("-x", &h, &err), -EINVAL);
}

static void explains(int status, const char *output, const char *want)
{
    struct mfs_err how = {.code = -ECHILD}, out;

    snprintf(how.msg, sizeof how.msg, "exited with status %d", status);
    mfs_ssh_explain("tux1", "/x/lm", &how, output, &out);
    if (!strstr(out.msg, want) || strncmp(out.msg, "tux1: ", 6) != 0)
        fail_msg("says %s", out.msg);
}

static void test_explanations(void **state)
{
    (void)state;
    explains(127, "bash: line 1: /x/lm: No such file or directory\n",
             "/x/lm can't be run there: bash: line 1: /x/lm: No such file or directory: install");
    explains(127, "/bin/sh: 1: exec: ssh: not found\n",
             "ssh can't be run on this machine (/bin/sh: 1");
    explains(126, "", "/x/lm can't be run there: install MemEFS there");
    explains(255, "a\nroot@tux1: Permission denied (publickey).\r\n",
             "root@tux1: Permission denied (publickey). (cm answers no questions");
    explains(255, "", "/x/lm exited with status 255");
    explains(1, "lm: Permission denied\n", "tux1: lm: Permission denied");
    explains(2, "tar: lm: Cannot write: No space left on device\ntar: Exiting with failure\n",
             "tux1: tar: lm: Cannot write: No space left on device (make room there");
}

static void test_shipped(void **state)
{
    char dir[64];

    (void)state;
    assert_int_equal(mfs_ssh_shipped("motd\n/var/tmp/memefs-aB3xyzWQ12\n", dir, sizeof dir), 0);
    assert_string_equal(dir, "/var/tmp/memefs-aB3xyzWQ12");
    assert_int_equal(mfs_ssh_shipped("", dir, sizeof dir), -EPROTO);
    assert_false(mfs_ssh_is_shipped(""));
    assert_false(mfs_ssh_is_shipped("/"));
    assert_false(mfs_ssh_is_shipped("/var/tmp/memefs-aB3xyzWQ1"));
    assert_false(mfs_ssh_is_shipped("/var/tmp/memefs-aB3xyzWQ1 "));
    assert_false(mfs_ssh_is_shipped("/var/tmp/memefs-../../../x"));
    assert_false(mfs_ssh_is_shipped("/var/tmp/memefs-aB3xyzWQ12 /"));
    assert_int_equal(mfs_ssh_name_place(dir, sizeof dir), 0);
    assert_true(mfs_ssh_is_shipped(dir));
    assert_false(mfs_ssh_is_begun(dir));
    assert_true(mfs_ssh_is_begun("begun /var/tmp/memefs-aB3xyzWQ12"));
    assert_false(mfs_ssh_is_begun("begun /"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_lists_and_files),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_explanations),
        cmocka_unit_test(test_shipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
