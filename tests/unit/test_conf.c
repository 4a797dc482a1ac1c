/* Option tables: sources, checks, suggestions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "args/conf.h"

static const struct mfs_conf_option options[] = {
    {"name", MFS_CONF_STRING, "NAME", "memefs", 1, 8, "the name"},
    {"nodes", MFS_CONF_UINT, "N", "1", 1, 100, "how many"},
    {"beta", MFS_CONF_REAL, "B", "4", 0.5, 16, "beta"},
    {"memory", MFS_CONF_SIZE, "SIZE", NULL, 1048576, 1e15, "per node"},
    {"policy", MFS_CONF_CHOICE, "none|cso|nso", "none", 0, 0, "policy"},
    {"json", MFS_CONF_FLAG, NULL, NULL, 0, 0, "as JSON"},
    {"options", MFS_CONF_LIST, "LIST", NULL, 0, 0, "a list"},
    {"o", MFS_CONF_ALIAS, "options", NULL, 0, 0, NULL},
    {"j", MFS_CONF_ALIAS, "json", NULL, 0, 0, NULL},
    {"nojson", MFS_CONF_ALIAS, "json=no", NULL, 0, 0, "as text"},
    {0}};
static const struct mfs_conf_option *const groups[] = {options, NULL};

static int setup(void **state)
{
    *state = mfs_conf_create(groups);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    mfs_conf_destroy(*state);
    return 0;
}

static void defaults(void **state)
{
    assert_string_equal(mfs_conf_str(*state, "name"), "memefs");
    assert_int_equal(mfs_conf_uint(*state, "nodes"), 1);
    assert_true(mfs_conf_real(*state, "beta") == 4);
    assert_null(mfs_conf_str(*state, "memory"));
    assert_false(mfs_conf_flag(*state, "json"));
    assert_false(mfs_conf_given(*state, "nodes"));
}

static void command_line(void **state)
{
    char a0[] = "--nodes", a1[] = "4", a2[] = "first", a3[] = "--memory=2G", a4[] = "--json",
         a5[] = "--", a6[] = "--second";
    char *argv[] = {a0, a1, a2, a3, a4, a5, a6};
    struct mfs_err err;

    assert_int_equal(mfs_conf_argv(*state, 7, argv, 2, &err), 2);
    assert_string_equal(argv[0], "first");
    assert_string_equal(argv[1], "--second");
    assert_int_equal(mfs_conf_uint(*state, "nodes"), 4);
    assert_true(mfs_conf_uint(*state, "memory") == 2ULL << 30);
    assert_true(mfs_conf_flag(*state, "json"));
    assert_true(mfs_conf_given(*state, "nodes"));
}

static void letters_and_lists(void **state)
{
    char a0[] = "-o", a1[] = "a,b", a2[] = "-j", a3[] = "-oc", a4[] = "--options=d", a5[] = "-1";
    char *argv[] = {a0, a1, a2, a3, a4, a5};
    struct mfs_err err;

    assert_int_equal(mfs_conf_argv(*state, 6, argv, 1, &err), 1);
    assert_string_equal(argv[0], "-1");
    assert_string_equal(mfs_conf_str(*state, "options"), "a,b,c,d");
    assert_true(mfs_conf_flag(*state, "json"));
}

static void words(void **state)
{
    struct mfs_err err;

    assert_int_equal(mfs_conf_word(*state, "-o ", "json", &err), 0);
    assert_int_equal(mfs_conf_word(*state, "-o ", "nodes=3", &err), 0);
    assert_true(mfs_conf_flag(*state, "json"));
    assert_int_equal(mfs_conf_uint(*state, "nodes"), 3);
    assert_int_equal(mfs_conf_word(*state, "-o ", "nojson", &err), 0);
    assert_false(mfs_conf_flag(*state, "json"));
    assert_int_equal(mfs_conf_word(*state, "-o ", "nojson=yes", &err), -EINVAL);
    assert_string_equal(err.msg, "-o nojson takes no value");
    assert_int_equal(mfs_conf_word(*state, "-o ", "nodes", &err), -EINVAL);
    assert_string_equal(err.msg, "-o nodes needs a value (N)");
    assert_int_equal(mfs_conf_word(*state, "-o ", "noson", &err), -EINVAL);
    assert_string_equal(err.msg, "unknown option -o noson, did you mean -o nojson?");
}

static void argv_wins_over_file(void **state)
{
    struct mfs_err err;

    assert_int_equal(mfs_conf_set(*state, "nodes", "7", MFS_CONF_ARGV, &err), 0);
    assert_int_equal(mfs_conf_set(*state, "nodes", "9", MFS_CONF_FILE, &err), 0);
    assert_int_equal(mfs_conf_uint(*state, "nodes"), 7);
    assert_int_equal(mfs_conf_set(*state, "name", "x", MFS_CONF_FILE, &err), 0);
    assert_string_equal(mfs_conf_str(*state, "name"), "x");
}

static void refusals(void **state)
{
    static const struct {
        const char *key, *text, *says;
    } bad[] = {{"nodes", "0", "not between"},     {"nodes", "101", "not between"},
               {"nodes", "four", "not a number"}, {"beta", "99", "not between"},
               {"memory", "4X", "not a size"},    {"memory", "1", "not between"},
               {"policy", "cs", "not one of"},    {"policy", "", "not one of"},
               {"name", "", "characters"},        {"name", "ninechars", "characters"},
               {"json", "perhaps", "neither"},    {"memry", "1G", "did you mean memory?"},
               {"zzz", "1", "unknown option zzz"}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mfs_err err = {0};

        assert_int_equal(mfs_conf_set(*state, bad[i].key, bad[i].text, MFS_CONF_FILE, &err),
                         -EINVAL);
        assert_non_null(strstr(err.msg, bad[i].says));
    }
}

static void bad_command_lines(void **state)
{
    static const char *const lines[][2] = {
        {"--nodes", "needs a value"},    {"--nods=3", "did you mean --nodes?"},
        {"-o", "needs a value (LIST)"},  {"-x", "unknown option -x"},
        {"--o=a", "unknown option --o"}, {"--j", "unknown option --j"},
        {"-jj", "unknown option -jj"},   {"-jyes", "unknown option -jyes"},
        {"extra", "unexpected argument"}};

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct mfs_err err = {0};
        char text[32], *argv[] = {text};

        snprintf(text, sizeof text, "%s", lines[i][0]);
        assert_int_equal(mfs_conf_argv(*state, 1, argv, 0, &err), -EINVAL);
        assert_non_null(strstr(err.msg, lines[i][1]));
    }
}

/* However long a text is, the reason behind it is there. */
static void long_texts(void **state)
{
    char text[1024], *argv[] = {text};
    struct mfs_err err = {0};

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(mfs_conf_set(*state, "name", text, MFS_CONF_FILE, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "must have 1 to 8 characters"));
    assert_int_equal(mfs_conf_set(*state, "memory", text, MFS_CONF_FILE, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "is not a size"));
    assert_int_equal(mfs_conf_argv(*state, 1, argv, 0, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "(see --help)"));
    memcpy(text, "--", 2);
    assert_int_equal(mfs_conf_argv(*state, 1, argv, 1, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "(see --help)"));
    memset(text, '0', sizeof text - 1);
    assert_int_equal(mfs_conf_set(*state, "memory", text, MFS_CONF_FILE, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "is not between"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(command_line, setup, teardown),
        cmocka_unit_test_setup_teardown(letters_and_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(words, setup, teardown),
        cmocka_unit_test_setup_teardown(argv_wins_over_file, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_command_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(long_texts, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
