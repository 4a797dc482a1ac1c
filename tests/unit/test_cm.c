/* What cm computes and keeps: nodes and partitions from options, the state file, tables for people,
 * and clearing away what a crash left. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"
#include "host/proc.h"
#include "cm/nodes/cleanup.h"
#include "cm/cli/config_file.h"
#include "cm/state/lock.h"
#include "cm/cli/options.h"
#include "cm/state/policy_conf.h"
#include "cm/cli/render.h"
#include "cm/state/spec.h"
#include "cm/cli/verbs.h"
#include "cm/provider/options.h"

static const struct mfs_conf_option *const groups[] = {
    mfs_cm_start_options, MFS_PROVIDER_OPTIONS, mfs_cm_run_options, mfs_deployment_options, NULL};

static struct mfs_conf *conf;
static struct mfs_paths paths;
static char dir[64];

static void give(const char *key, const char *value)
{
    struct mfs_err err;

    assert_int_equal(mfs_conf_set(conf, key, value, MFS_CONF_ARGV, &err), 0);
}

static int setup(void **state)
{
    struct mfs_err err;

    (void)state;
    strcpy(dir, "/tmp/memefs-unit-XXXXXX");
    conf = mfs_conf_create(groups);
    if (!conf || !mkdtemp(dir))
        return -1;
    give("state-dir", dir);
    return mfs_paths_init(&paths, conf, &err);
}

static int teardown(void **state)
{
    (void)state;
    mfs_conf_destroy(conf);
    return mfs_file_remove_tree(dir);
}

static void options_make_a_deployment(void **state)
{
    struct mfs_cm_state s;
    struct mfs_err err;

    (void)state;
    give("nodes", "4");
    give("memory", "64M");
    give("mount", "/mnt/x%n/");
    assert_int_equal(mfs_spec_make(conf, &s, &err), 0);
    assert_int_equal(s.nnodes, 4);
    assert_int_equal(s.nparts, 32);
    assert_string_equal(s.node[2].address, "127.0.0.3");
    assert_string_equal(s.node[2].mount, "/mnt/x2");
    assert_string_equal(s.phase, "starting");
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(mfs_cm_state_count(&s, i), 8);
    assert_int_equal(strlen(s.part[0].password), 64);
    assert_string_not_equal(s.part[0].password, s.part[1].password);
    assert_string_not_equal(s.part[0].password, s.part[0].admin_password);
    mfs_cm_state_clear(&s);
}

static void mounts_by_pattern(void **state)
{
    char out[MFS_PATH_MAX], pattern[MFS_PATH_MAX + 1];

    (void)state;
    assert_int_equal(mfs_spec_mount("/m", 0, false, out), 0);
    assert_string_equal(out, "/m");
    assert_int_equal(mfs_spec_mount("/m", 1, false, out), 0);
    assert_string_equal(out, "");
    assert_int_equal(mfs_spec_mount("/a%n/b", 12, true, out), 0);
    assert_string_equal(out, "/a12/b");
    memset(pattern, 'x', MFS_PATH_MAX);
    pattern[MFS_PATH_MAX] = '\0';
    assert_int_equal(mfs_spec_mount(pattern, 0, true, out), -ENAMETOOLONG);
}

static void impossible_deployments(void **state)
{
    static const char *const bad[][2] = {
        {"memory", "900T"}, {"mount", "/"},         {"policy", "csi"},    {"scale-in-to", "96"},
        {"min-nodes", "9"}, {"bandwidth", "10Q"},   {"bandwidth", "1M,"}, {"bandwidth", "-4"},
        {"bandwidth", "9"}, {"stripe-size", "5000"}};
    struct mfs_cm_state s;
    struct mfs_err err;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        give(bad[i][0], bad[i][1]);
        assert_int_equal(mfs_spec_make(conf, &s, &err), -EINVAL);
        assert_non_null(strstr(err.msg, bad[i][0]));
        teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

static void stripe_size(void **state)
{
    struct mfs_cm_state s;
    struct mfs_err err;

    (void)state;
    give("memory", "256M");
    assert_int_equal(mfs_spec_make(conf, &s, &err), 0);
    assert_int_equal(s.stripe_size, MFS_STRIPE_SIZE_DEFAULT);
    mfs_cm_state_clear(&s);
    give("stripe-size", "60K");
    assert_int_equal(mfs_spec_make(conf, &s, &err), 0);
    assert_int_equal(s.stripe_size, 61440);
    assert_int_equal(mfs_spec_compare(conf, &s, &err), 0);
    give("stripe-size", "4096");
    assert_int_equal(mfs_spec_compare(conf, &s, &err), -EEXIST);
    mfs_cm_state_clear(&s);
}

/* Told: one for each slot, the last one for all further. */
static void weights_by_bandwidth(void **state)
{
    struct mfs_cm_state s;
    struct mfs_cm_node later;
    struct mfs_err err;

    (void)state;
    give("nodes", "4");
    give("memory", "256M");
    give("bandwidth", "10M,20M,30M");
    give("weights", "bandwidth");
    assert_int_equal(mfs_spec_make(conf, &s, &err), 0);
    assert_int_equal(mfs_cm_state_count(&s, 0), 3); /* of 32: 3.56, 7.11, 10.67, 10.67 */
    assert_int_equal(mfs_cm_state_count(&s, 1), 7);
    assert_int_equal(mfs_cm_state_count(&s, 2), 11);
    assert_int_equal(mfs_cm_state_count(&s, 3), 11);
    assert_true(s.node[3].bandwidth == 30 << 20);
    assert_string_equal(s.node[3].bandwidth_from, "told");
    assert_int_equal(mfs_spec_node(&s, 9, 7, &later, &err), 0);
    assert_true(later.bandwidth == 30 << 20);
    assert_int_equal(mfs_spec_compare(conf, &s, &err), 0);
    give("bandwidth", "10M");
    assert_int_equal(mfs_spec_compare(conf, &s, &err), -EEXIST);
    mfs_cm_state_clear(&s);
    give("bandwidth", "10M,20M,30M");
    give("weights", "auto"); /* links are busy alike: 2.69, 6.09, 11.61, 11.61 */
    assert_int_equal(mfs_spec_make(conf, &s, &err), 0);
    assert_int_equal(mfs_cm_state_count(&s, 0), 3);
    assert_int_equal(mfs_cm_state_count(&s, 1), 6);
    assert_int_equal(mfs_cm_state_count(&s, 2) + mfs_cm_state_count(&s, 3), 23);
    mfs_cm_state_clear(&s);
    give("weights", "bandwidth");
    give("bandwidth", "0"); /* nothing known: as by memory */
    assert_int_equal(mfs_spec_make(conf, &s, &err), 0);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(mfs_cm_state_count(&s, i), 8);
    assert_string_equal(s.node[0].bandwidth_from, "");
    mfs_cm_state_clear(&s);
}

static void a_policy_with_numbers(void **state)
{
    struct mfs_policy_settings numbers;
    struct mfs_cm_state s, back;
    struct mfs_policy p;
    struct mfs_err err;

    (void)state;
    give("nodes", "4");
    give("memory", "64M");
    give("policy", "nso+asi");
    give("scale-in-at", "40");
    give("max-nodes", "12");
    assert_int_equal(mfs_spec_make(conf, &s, &err), 0);
    assert_int_equal(mfs_cm_state_save(&s, paths.state), 0);
    mfs_cm_state_clear(&s);
    assert_int_equal(mfs_cm_state_load(&back, paths.state, &err), 0);
    assert_int_equal(mfs_policy_ready(&back, back.policy, &p, &numbers, &err), 0);
    assert_int_equal(p.out, MFS_OUT_NSO);
    assert_true(numbers.in_at > 0.399 && numbers.in_at < 0.401);
    assert_true(numbers.in_step > 0.499 && numbers.in_step < 0.501);
    assert_int_equal(numbers.min_nodes, 4);
    assert_int_equal(numbers.max_nodes, 12);
    assert_int_equal(mfs_spec_compare(conf, &back, &err), 0);
    give("scale-in-at", "41");
    assert_int_equal(mfs_spec_compare(conf, &back, &err), -EEXIST);
    give("scale-in-at", "40");
    give("policy", "cso");
    assert_int_equal(mfs_spec_compare(conf, &back, &err), -EEXIST);
    assert_non_null(strstr(err.msg, "cm policy"));
    mfs_cm_state_clear(&back);
}

static void comparing_with_what_runs(void **state)
{
    struct mfs_cm_state s;
    struct mfs_err err;

    (void)state;
    give("nodes", "4");
    give("memory", "64M");
    assert_int_equal(mfs_spec_make(conf, &s, &err), 0);
    assert_int_equal(mfs_spec_compare(conf, &s, &err), 0);
    give("max-nodes", "32");
    assert_int_equal(mfs_spec_compare(conf, &s, &err), 0);
    give("max-nodes", "33");
    assert_int_equal(mfs_spec_compare(conf, &s, &err), -EEXIST);
    give("max-nodes", "1");
    give("nodes", "5");
    assert_int_equal(mfs_spec_compare(conf, &s, &err), -EEXIST);
    assert_non_null(strstr(err.msg, "--nodes (4)"));
    mfs_cm_state_clear(&s);
}

static void state_round_trip(void **state)
{
    struct mfs_cm_state s, back;
    struct mfs_err err;
    struct stat st;

    (void)state;
    give("nodes", "3");
    give("memory", "64M");
    assert_int_equal(mfs_cm_state_load(&back, paths.state, &err), -ENOENT);
    assert_int_equal(mfs_spec_make(conf, &s, &err), 0);
    assert_int_equal(mfs_cm_state_save(&s, paths.state), 0);
    assert_int_equal(stat(paths.state, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(mfs_cm_state_load(&back, paths.state, &err), 0);
    assert_int_equal(back.nparts, s.nparts);
    assert_null(back.table);
    assert_memory_equal(back.part, s.part, s.nparts * sizeof *s.part);
    assert_memory_equal(back.node, s.node, s.nnodes * sizeof *s.node);
    mfs_cm_state_clear(&back);
    s.part[1].node = 99;
    assert_int_equal(mfs_cm_state_save(&s, paths.state), 0);
    assert_int_equal(mfs_cm_state_load(&back, paths.state, &err), -EINVAL);
    mfs_cm_state_clear(&s);
    assert_int_equal(mfs_file_write(paths.state, "{\n\"name\": ", 10, 0600), 0);
    assert_int_equal(mfs_cm_state_load(&back, paths.state, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "line 2, column "));
}

static void config_files(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"{\"nods\": 4}", "did you mean nodes?"},
               {"{\"nodes\": 0}", "not between"},
               {"{\"nodes\": [4]}", "neither"},
               {"{\"foreground\": true}", "command line"},
               {"nodes=4", "line 1, column 1: not JSON"},
               {"{\"nodes\": 2,\n  \"memory\": 4G}", "line 2, column 14: not JSON"},
               {"{\"nodes\": 2,\n", "line 1, column 13: not JSON"},
               {"{\"nodes\": 2}\n\n {}", "line 3, column 2: the JSON object has ended before"},
               {"[\"nodes\", 2]", "line 1, column 1: not a JSON object"}};
    static const char good[] = "{\"nodes\": 7, \"memory\": \"64M\"}\n";
    char path[128];
    struct mfs_err err;

    (void)state;
    snprintf(path, sizeof path, "%s/config.json", dir);
    assert_int_equal(mfs_file_write(path, good, strlen(good), 0600), 0);
    give("nodes", "2");
    assert_int_equal(mfs_config_file_load(path, conf, &err), 0);
    assert_int_equal(mfs_conf_uint(conf, "nodes"), 2);
    assert_int_equal(mfs_conf_uint(conf, "memory"), 64 << 20);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(mfs_file_write(path, bad[i].text, strlen(bad[i].text), 0600), 0);
        assert_int_equal(mfs_config_file_load(path, conf, &err), -EINVAL);
        assert_non_null(strstr(err.msg, bad[i].says));
        assert_non_null(strstr(err.msg, path));
    }
}

static void names_and_paths(void **state)
{
    static const char *const bad[] = {".x", "-x", "a/b", "a b", "\xc3\xa4"};
    struct mfs_paths p;
    struct mfs_err err;
    char longer[256];

    (void)state;
    assert_string_equal(paths.dir, dir);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        give("name", bad[i]);
        assert_int_equal(mfs_paths_init(&p, conf, &err), -EINVAL);
    }
    give("name", "fine-1.x_y");
    memset(longer, 'd', sizeof longer);
    longer[0] = '/';
    longer[200] = '\0';
    give("state-dir", longer);
    assert_int_equal(mfs_paths_init(&p, conf, &err), -ENAMETOOLONG);
    assert_int_equal(chdir("/tmp"), 0); /* where tests run may be too long a path for sockets */
    give("state-dir", "relative//");
    assert_int_equal(mfs_paths_init(&p, conf, &err), 0);
    assert_int_equal(p.dir[0], '/');
}

static void verbs_are_found(void **state)
{
    struct mfs_err err;

    (void)state;
    for (const struct mfs_verb *const *v = mfs_cm_program.verbs; *v; v++) {
        assert_ptr_equal(mfs_program_find(&mfs_cm_program, (*v)->name, &err), *v);
        assert_non_null((*v)->run);
    }
    assert_null(mfs_program_find(&mfs_cm_program, "statsu", &err));
    assert_non_null(strstr(err.msg, "did you mean status?"));
    assert_null(mfs_program_find(&mfs_cm_program, "deamon", &err));
    assert_null(strstr(err.msg, "daemon?"));
    assert_null(mfs_program_find(&mfs_cm_program, "stpo", &err)); /* stop ends everything */
    assert_null(strstr(err.msg, "stop"));
}

static void tables_for_people(void **state)
{
    struct mfs_status_node nodes[2] = {{.id = 0,
                                        .name = "node-0",
                                        .address = "127.0.0.1",
                                        .state = "up",
                                        .partitions = 4,
                                        .memory_used = 1 << 20,
                                        .memory_capacity = 1 << 30,
                                        .share = 1,
                                        .mount = "/mnt"},
                                       {.id = 1, .name = "node-1", .state = "lost"}};
    struct mfs_status s = {.name = "x", .state = "degraded", .nnodes = 2, .node = nodes};
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_render_status(&s, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    assert_non_null(strstr(mfs_buf_data(&b), "x: degraded, 2 nodes"));
    assert_non_null(strstr(mfs_buf_data(&b), "1.0 MiB"));
    assert_non_null(strstr(mfs_buf_data(&b), "  /mnt\n"));
    mfs_buf_fini(&b);
}

static void each_partition_has_its_line(void **state)
{
    struct mfs_status_place places[5] = {{0, "node-2", "node-10", 0},
                                         {1, "node-10", "", 0},
                                         {2, "node-2", "node-3", 0},
                                         {3, "node-2", "node-10", 0},
                                         {4, "node-10", "node-2", 0}};
    struct mfs_status s = {.name = "x",
                           .replicas = 1,
                           .unprotected = 1,
                           .partitions = 5,
                           .nplaces = 5,
                           .place = places};
    struct mfs_buf b;

    (void)state;
    mfs_buf_init(&b);
    assert_int_equal(mfs_render_status(&s, &b), 0);
    assert_int_equal(mfs_buf_append(&b, "", 1), 0);
    assert_non_null(strstr(mfs_buf_data(&b), "replicas: 1; 1 of 5 partitions have none just now\n"
                                             "  node-2, replica on node-3: 2\n"
                                             "  node-2, replica on node-10: 0 3\n"
                                             "  node-10, no replica: 1\n"
                                             "  node-10, replica on node-2: 4\n\n"));
    mfs_buf_fini(&b);
}

static pid_t leave_behind(uint32_t node, const char *pid_file, struct mfs_proc *p)
{
    const char *argv[] = {"sleep", "60", NULL};
    char path[PATH_MAX];
    pid_t pid = mfs_proc_spawn(argv, NULL);

    assert_true(pid > 0);
    assert_int_equal(mfs_paths_node(&paths, node, "", path), 0);
    assert_int_equal(mfs_file_mkdirs(path, 0700), 0);
    assert_int_equal(mfs_paths_node(&paths, node, pid_file, path), 0);
    assert_int_equal(mfs_proc_identify(pid, p), 0);
    assert_int_equal(mfs_proc_save(p, path), 0);
    return pid;
}

static void remains_are_cleared_away(void **state)
{
    struct mfs_proc lm, redis, client, stranger, recorded;
    char path[PATH_MAX];
    struct mfs_err err;
    pid_t pid;

    (void)state;
    assert_false(mfs_cleanup_needed(&paths));
    leave_behind(0, "lm.pid", &lm);
    leave_behind(0, "client.pid", &client);
    leave_behind(1, "redis-7.pid", &redis);
    /* The pid of a process that ended long ago is a stranger's by now. */
    pid = leave_behind(1, "redis-8.pid", &stranger);
    recorded = stranger;
    recorded.start--;
    assert_int_equal(mfs_paths_node(&paths, 1, "redis-8.pid", path), 0);
    assert_int_equal(mfs_proc_save(&recorded, path), 0);
    assert_int_equal(mfs_paths_node(&paths, 1, "lm.log", path), 0);
    assert_int_equal(mfs_file_write(path, "x", 1, 0600), 0);

    assert_true(mfs_cleanup_needed(&paths));
    assert_int_equal(mfs_cleanup_processes(&paths, &err), 0);
    assert_false(mfs_proc_alive(&lm));
    assert_false(mfs_proc_alive(&client));
    assert_false(mfs_proc_alive(&redis));
    assert_true(mfs_proc_alive(&stranger));
    assert_int_equal(mfs_cleanup_files(&paths, true, &err), 0);
    assert_false(mfs_cleanup_needed(&paths));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(mfs_cleanup_files(&paths, false, &err), 0);
    assert_int_equal(access(dir, F_OK), -1);
    assert_int_equal(mfs_cleanup_files(&paths, false, &err), 0);

    /* A start that was killed at once: the next one goes on in the directory that it has locked. */
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(mfs_file_write(paths.secret, "x", 1, 0600), 0);
    assert_int_equal(mfs_cleanup_files(&paths, true, &err), 0);
    assert_int_equal(access(paths.secret, F_OK), -1);
    assert_int_equal(access(dir, F_OK), 0);
    assert_int_equal(mfs_cleanup_files(&paths, false, &err), 0);
    assert_int_equal(access(dir, F_OK), -1);

    kill(pid, SIGKILL);
    while (wait(NULL) > 0)
        ;
}

static void one_at_a_time(void **state)
{
    struct mfs_paths nowhere = {.name = "n"};
    struct mfs_err err;
    int fd = mfs_lock_take(&paths, false, &err);
    pid_t pid;

    (void)state;
    assert_true(fd >= 0);
    strcpy(nowhere.dir, "/nowhere/at/all");
    assert_int_equal(mfs_lock_take(&nowhere, false, &err), -ENOENT);
    pid = fork();
    if (!pid) {
        /* Waits for the parent, which removes the directory before it unlocks. */
        int got = mfs_lock_take(&paths, true, &err);

        _exit(got >= 0 && !access(dir, F_OK) ? 0 : 1);
    }
    usleep(100000);
    assert_int_equal(rmdir(dir), 0);
    close(fd);
    assert_int_equal(waitpid(pid, &fd, 0), pid);
    assert_int_equal(fd, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(options_make_a_deployment),
        TEST(mounts_by_pattern),
        TEST(impossible_deployments),
        TEST(weights_by_bandwidth),
        TEST(stripe_size),
        TEST(a_policy_with_numbers),
        TEST(comparing_with_what_runs),
        TEST(state_round_trip),
        TEST(config_files),
        TEST(names_and_paths),
        TEST(verbs_are_found),
        TEST(tables_for_people),
        TEST(each_partition_has_its_line),
        TEST(remains_are_cleared_away),
        TEST(one_at_a_time),
    };

    mfs_log_set_level(MFS_LOG_WARN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
