/* The frame of a command line: exit statuses, empty arguments, output that is lost. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "args/program.h"

static int opened; /* the first descriptor that a verb gets */

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    (void)err;
    opened = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    close(opened);
    for (int i = 0; i < (call->nargs ? atoi(call->args[0]) : 0); i++)
        printf("%d\n", i);
    return 0;
}

static const struct mfs_verb verb = {
    .name = "say", .args = "[COUNT]", .summary = "say something", .most = 1, .run = run};
static const struct mfs_program program = {
    .name = "test", .summary = "A test.", .verbs = (const struct mfs_verb *const[]){&verb, NULL}};

static int say(char *count)
{
    char name[] = "test", word[] = "say";
    char *argv[] = {name, word, count, NULL};

    return mfs_program_run(&program, count ? 3 : 2, argv);
}

/* The same with stdout being `out`, or closed with -1. */
static int say_to(int out, char *count)
{
    int was, status;

    fflush(stdout);
    was = dup(STDOUT_FILENO);
    assert_true(was > STDERR_FILENO);
    if (out >= 0)
        assert_int_equal(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
    else
        close(STDOUT_FILENO);
    status = say(count);
    assert_int_equal(dup2(was, STDOUT_FILENO), STDOUT_FILENO);
    close(was);
    clearerr(stdout);
    return status;
}

static void statuses(void **state)
{
    char one[] = "1", empty[] = "", bad[] = "--bad";

    (void)state;
    assert_int_equal(say(NULL), MFS_EXIT_OK);
    assert_int_equal(say(one), MFS_EXIT_OK);
    assert_int_equal(say(bad), MFS_EXIT_USAGE);
    assert_int_equal(say(empty), MFS_EXIT_USAGE);
}

/* Little is lost by the last flush, much by an earlier one. */
static void full_output(void **state)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    char little[] = "1", much[] = "10000", none[] = "0";

    (void)state;
    assert_true(full >= 0);
    assert_int_equal(say_to(full, little), MFS_EXIT_FAILED);
    assert_int_equal(say_to(full, much), MFS_EXIT_FAILED);
    assert_int_equal(say_to(full, none), MFS_EXIT_OK);
    close(full);
}

static void closed_output(void **state)
{
    char little[] = "1", much[] = "10000";

    (void)state;
    assert_int_equal(say_to(-1, little), MFS_EXIT_FAILED);
    assert_true(opened > STDERR_FILENO);
    assert_int_equal(say_to(-1, much), MFS_EXIT_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses),
        cmocka_unit_test(full_output),
        cmocka_unit_test(closed_output),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
