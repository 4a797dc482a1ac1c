/* Instances: real redis processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "cluster/table.h"
#include "lm/redis/instances.h"
#include "lm/redis/redis_conf.h"
#include "store/args.h"
#include "store/reply.h"

#define MIB    (1ULL << 20)
#define MEMORY (192 * MIB)

struct world {
    char dir[64];
    struct mfs_instances *instances;
    struct mfs_redis r[3];
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct mfs_instances_opts opts = {.dir = w->dir,
                                      .dump_dir = w->dir,
                                      .address = "127.0.0.1",
                                      .deployment = "test",
                                      .nparts = 3,
                                      .stripe_size = MIB,
                                      .memory = MEMORY};

    mfs_text_copy(w->dir, sizeof w->dir, "/tmp/memefs-lm-XXXXXX");
    if (!mkdtemp(w->dir) || mfs_instances_create(&w->instances, &opts))
        return -1;
    for (uint32_t i = 0; i < 3; i++) {
        w->r[i] = (struct mfs_redis){.part = i, .format = true};
        mfs_random_hex(w->r[i].password, 32);
        mfs_random_hex(w->r[i].admin_password, 32);
    }
    *state = w;
    return 0;
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

static void start(struct world *w, size_t n)
{
    struct mfs_err err = {0};

    if (mfs_instances_start(w->instances, w->r, n, &err))
        fail_msg("%s", err.msg);
}

/* The running process of a partition. */
static struct mfs_redis running(const struct world *w, uint32_t part)
{
    struct mfs_redis found = {0};
    size_t n;
    struct mfs_redis *all = mfs_instances_list(w->instances, &n);

    for (size_t i = 0; i < n; i++) {
        if (all[i].part == part)
            found = all[i];
    }
    free(all);
    return found;
}

static struct mfs_instances_sample measure(const struct world *w)
{
    struct mfs_instances_sample s;

    mfs_instances_measure(w->instances, &s);
    return s;
}

/* Looks, for at most 10 s, until the resident size is above (or below) a bound. Redis itself looks
 * at it ten times a second. */
static bool resident(const struct world *w, bool above, uint64_t bound)
{
    int64_t until = mfs_clock_mono() + 10 * MFS_SEC;
    struct mfs_instances_sample s;

    do {
        s = measure(w);
        free(s.part);
        if ((s.rss > bound) == above)
            return true;
        mfs_clock_sleep(100 * MFS_MSEC);
    } while (mfs_clock_mono() < until);
    return false;
}

static uint64_t limits(const struct world *w)
{
    uint64_t sum = 0;
    size_t n;
    struct mfs_redis *all = mfs_instances_list(w->instances, &n);

    for (size_t i = 0; i < n; i++)
        sum += all[i].maxmemory;
    free(all);
    return sum;
}

/* A table of one deployment with all partitions of the instances in it, for mfs_store. */
static struct mfs_table *table_of(const struct world *w, uint32_t n)
{
    struct mfs_table *t = mfs_table_new(n);

    mfs_text_copy(t->name, sizeof t->name, "test");
    t->epoch = 1;
    t->stripe_size = MIB;
    for (uint32_t i = 0; i < n; i++) {
        struct mfs_redis r = running(w, i);

        mfs_text_copy(t->part[i].host, sizeof t->part[i].host, "127.0.0.1");
        t->part[i].port = r.port;
        mfs_text_copy(t->part[i].unix_path, sizeof t->part[i].unix_path, r.unix_path);
        mfs_text_copy(t->part[i].password, sizeof t->part[i].password, r.password);
    }
    return t;
}

static struct mfs_store *store_of(const struct world *w, uint32_t n)
{
    struct mfs_store_opts opts = {.io_timeout = 5 * MFS_SEC};
    struct mfs_store *store;

    assert_int_equal(mfs_store_create(&store, table_of(w, n), &opts), 0);
    return store;
}

/* Keys as of stripes (13 bytes, S first) are not written to the journal, which would count, too. */
static int put(struct mfs_store *store, uint32_t part, const char *key, const void *p, size_t len)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&args, "SET");
    mfs_args_str(&args, key);
    mfs_args_bin(&args, p, len);
    cmd = mfs_args_cmd(&args, part);
    rc = mfs_store_exec(store, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

/* Words without arguments, as a client's user. */
static int client_says(struct mfs_store *store, uint32_t part, const char *const *words)
{
    struct mfs_args args;
    struct mfs_cmd cmd;
    int rc;

    mfs_args_init(&args, words[0]);
    for (words++; *words; words++)
        mfs_args_str(&args, *words);
    cmd = mfs_args_cmd(&args, part);
    rc = mfs_store_exec(store, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

static void test_starts_serves_and_stops(void **state)
{
    struct world *w = *state;
    struct mfs_instances_sample s;
    struct mfs_redis r;
    struct stat st;
    char path[PATH_MAX];

    start(w, 3);
    r = running(w, 1);
    assert_true(mfs_proc_alive(&r.proc));
    snprintf(path, sizeof path, "%s/redis-1.conf", w->dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(r.unix_path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    s = measure(w);
    assert_int_equal(s.n, 3);
    assert_false(s.part[0].silent || s.part[1].silent || s.part[2].silent);
    assert_true(s.used > 0 && s.rss >= s.used && s.capacity <= mfs_capacity_used(MEMORY, 3) &&
                s.capacity + 8 * MIB >= mfs_capacity_used(MEMORY, 3));
    free(s.part);
    assert_int_equal(mfs_instances_stop_all(w->instances), 0);
    assert_false(mfs_proc_alive(&r.proc));
    assert_int_equal(access(r.unix_path, F_OK), -1);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_starting_again_changes_nothing(void **state)
{
    struct world *w = *state;
    struct mfs_redis before, after;
    struct mfs_err err;

    start(w, 2);
    before = running(w, 1);
    start(w, 2);
    after = running(w, 1);
    assert_int_equal(before.proc.pid, after.proc.pid);
    mfs_random_hex(w->r[1].password, 32);
    assert_int_equal(mfs_instances_start(w->instances, w->r, 2, &err), -EEXIST);
}

static void test_another_partitions_password_is_refused(void **state)
{
    struct world *w = *state;
    struct mfs_store_opts opts = {.io_timeout = 2 * MFS_SEC};
    struct mfs_table *t;
    struct mfs_store *store;

    start(w, 2);
    t = table_of(w, 2);
    mfs_text_copy(t->part[0].password, sizeof t->part[0].password, t->part[1].password);
    assert_int_equal(mfs_store_create(&store, t, &opts), 0);
    assert_int_not_equal(put(store, 0, "k", "v", 1), 0);
    assert_int_equal(put(store, 1, "k", "v", 1), 0);
    mfs_store_destroy(store);
}

/* More is written to one partition than an equal share of the node would hold. */
static void test_memory_follows_need(void **state)
{
    struct world *w = *state;
    struct mfs_store *store;
    char key[16], *value = calloc(1, MIB);
    struct mfs_instances_sample s;
    int written = 0;

    start(w, 3);
    store = store_of(w, 3);
    for (; written < 100; written++) {
        snprintf(key, sizeof key, "S%012d", written);
        if (put(store, 0, key, value, MIB - 4096))
            break;
        s = measure(w);
        free(s.part);
        assert_true(limits(w) <= mfs_capacity_partitions(MEMORY));
    }
    assert_int_equal(written, 100); /* a third would be 62 */
    mfs_store_destroy(store);
    free(value);
}

static void test_a_full_node_refuses_and_deleting_helps(void **state)
{
    struct world *w = *state;
    struct mfs_store *store;
    char key[16], *value = calloc(1, MIB);
    int written = 0, rc = 0;

    start(w, 1);
    store = store_of(w, 1);
    for (; written < 300 && !rc; written++) {
        snprintf(key, sizeof key, "S%012d", written);
        rc = put(store, 0, key, value, MIB - 4096);
    }
    assert_int_equal(rc, -ENOSPC);
    assert_true(written > 115 && written <= 148);
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "S%012d", i);
        assert_int_equal(client_says(store, 0, (const char *[]){"DEL", key, NULL}), 0);
    }
    assert_int_equal(put(store, 0, "again", value, MIB - 4096), 0);
    mfs_store_destroy(store);
    free(value);
}

static void test_deleted_memory_goes_back_to_the_system(void **state)
{
    struct world *w = *state;
    struct mfs_store *store;
    char key[16], *value = malloc(MIB);
    struct mfs_instances_sample s;

    memset(value, 'x', MIB);
    start(w, 1);
    store = store_of(w, 1);
    s = measure(w);
    free(s.part);
    for (int i = 0; i < 120; i++) {
        snprintf(key, sizeof key, "S%012d", i);
        assert_int_equal(put(store, 0, key, value, MIB - 4096), 0);
    }
    assert_true(resident(w, true, 115 * MIB));
    for (int i = 0; i < 120; i++) {
        snprintf(key, sizeof key, "S%012d", i);
        client_says(store, 0, (const char *[]){"DEL", key, NULL});
    }
    assert_true(resident(w, false, 40 * MIB));
    mfs_store_destroy(store);
    free(value);
}

static void test_a_later_process_finds_room(void **state)
{
    struct world *w = *state;

    start(w, 1);
    assert_int_equal(limits(w), running(w, 0).maxmemory);
    start(w, 3);
    assert_true(limits(w) <= mfs_capacity_partitions(MEMORY));
    for (uint32_t i = 0; i < 3; i++)
        assert_true(running(w, i).maxmemory > 40 * MIB);
}

static void test_a_hung_process_does_not_hold_up_the_rest(void **state)
{
    struct world *w = *state;
    struct mfs_instances_sample s;
    struct mfs_redis r;
    int64_t begin;

    start(w, 2);
    r = running(w, 0);
    kill(r.proc.pid, SIGSTOP);
    begin = mfs_clock_mono();
    s = measure(w);
    assert_true(mfs_clock_mono() - begin < 4 * MFS_SEC);
    assert_true(s.part[0].silent && !s.part[1].silent);
    free(s.part);
    assert_true(limits(w) <= mfs_capacity_partitions(MEMORY));
    kill(r.proc.pid, SIGCONT);
    s = measure(w);
    assert_false(s.part[0].silent);
    free(s.part);
}

/* As after a crash of the Local Manager: another list takes the processes over. */
static void test_adopted_processes_go_on(void **state)
{
    struct world *w = *state;
    struct mfs_instances_opts opts = {w->dir, w->dir, "127.0.0.1", "test", 3, MIB, MEMORY};
    struct mfs_redis r[2];
    struct mfs_instances_sample s;

    start(w, 2);
    for (uint32_t i = 0; i < 2; i++)
        r[i] = running(w, i);
    mfs_instances_destroy(w->instances);
    assert_int_equal(mfs_instances_create(&w->instances, &opts), 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(mfs_proc_alive(&r[i].proc));
        assert_int_equal(mfs_instances_adopt(w->instances, &r[i]), 0);
    }
    s = measure(w);
    assert_int_equal(s.n, 2);
    assert_false(s.part[0].silent || s.part[1].silent);
    free(s.part);
    start(w, 3);
    assert_int_equal(running(w, 1).proc.pid, r[1].proc.pid);
}

/* One that a dead Local Manager started and did not note down must not be left beside a new one. */
static void test_an_unknown_process_is_ended_first(void **state)
{
    struct world *w = *state;
    struct mfs_instances_opts opts = {w->dir, w->dir, "127.0.0.1", "test", 3, MIB, MEMORY};
    struct mfs_redis old;

    start(w, 1);
    old = running(w, 0);
    mfs_instances_destroy(w->instances);
    assert_int_equal(mfs_instances_create(&w->instances, &opts), 0);
    start(w, 1);
    assert_int_not_equal(running(w, 0).proc.pid, old.proc.pid);
    assert_false(mfs_proc_alive(&old.proc));
    waitpid(old.proc.pid, NULL, WNOHANG);
}

static void test_failing_to_start_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct mfs_instances_opts opts = {w->dir, w->dir, "192.0.2.1", "test", 3, MIB, MEMORY};
    struct mfs_err err = {0};
    size_t n;

    mfs_instances_destroy(w->instances);
    assert_int_equal(mfs_instances_create(&w->instances, &opts), 0);
    assert_int_equal(mfs_instances_start(w->instances, w->r, 3, &err), -EADDRNOTAVAIL);
    assert_non_null(strstr(err.msg, "192.0.2.1"));
    assert_null(mfs_instances_list(w->instances, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_starts_serves_and_stops, setup, teardown),
        cmocka_unit_test_setup_teardown(test_starting_again_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_partitions_password_is_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_memory_follows_need, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_node_refuses_and_deleting_helps, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_deleted_memory_goes_back_to_the_system, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_later_process_finds_room, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_hung_process_does_not_hold_up_the_rest, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_adopted_processes_go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_unknown_process_is_ended_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failing_to_start_leaves_nothing, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
