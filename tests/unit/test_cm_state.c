/* cm.json: what is saved is what is loaded, nodes can be added and dropped, and what makes no sense
 * is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cm/state/spec.h"
#include "cm/state/state.h"

static char path[] = "/tmp/mfs-test-cm-state-XXXXXX";

static void make(struct mfs_cm_state *s)
{
    *s = (struct mfs_cm_state){.memory = 64 << 20, .next_node = 2, .nparts = 4, .started_with = 2};
    strcpy(s->name, "test");
    strcpy(s->phase, MFS_PHASE_RUNNING);
    strcpy(s->mount, "/mnt/x%n");
    strcpy(s->first_address, "127.0.0.1");
    s->part = calloc(s->nparts, sizeof *s->part);
    assert_non_null(s->part);
    for (uint32_t i = 0; i < 2; i++) {
        struct mfs_cm_node n;
        struct mfs_err err;

        assert_int_equal(mfs_spec_node(s, i, i, &n, &err), 0);
        assert_int_equal(mfs_cm_state_add(s, &n), 0);
    }
    for (uint32_t i = 0; i < s->nparts; i++) {
        s->part[i].node = i % 2;
        strcpy(s->part[i].password, "p");
        strcpy(s->part[i].admin_password, "a");
    }
}

static int reload(struct mfs_cm_state *s, struct mfs_cm_state *back, struct mfs_err *err)
{
    assert_int_equal(mfs_cm_state_save(s, path), 0);
    return mfs_cm_state_load(back, path, err);
}

static void test_change_survives(void **state)
{
    struct mfs_cm_state s, back;
    struct mfs_cm_move move = {.part = 2,
                               .from = 0,
                               .to = 7,
                               .cold = true,
                               .diskless = true,
                               .rate = 4711,
                               .bytes = 1234567890123};
    struct mfs_cm_node n;
    struct mfs_err err;

    (void)state;
    make(&s);
    assert_int_equal(mfs_spec_node(&s, 7, 2, &n, &err), 0);
    strcpy(n.transition, MFS_NODE_COMING);
    assert_int_equal(mfs_cm_state_add(&s, &n), 0);
    strcpy(move.step, "copy");
    strcpy(move.password, "new");
    strcpy(move.admin_password, "new too");
    s.nmoves = 1;
    s.move = malloc(sizeof move);
    *s.move = move;
    strcpy(s.scale.step, MFS_SCALE_MOVE);
    strcpy(s.scale.who, "the operator");
    s.scale.from = 2;
    s.scale.to = 3;
    s.scale.blocked_ms_max = 1.5;
    assert_int_equal(reload(&s, &back, &err), 0);
    assert_int_equal(back.nnodes, 3);
    assert_int_equal(back.node[2].id, 7);
    assert_int_equal(back.node[2].slot, 2);
    assert_string_equal(back.node[2].name, "node-7");
    assert_string_equal(back.node[2].address, "127.0.0.3");
    assert_string_equal(back.node[2].mount, "/mnt/x2");
    assert_string_equal(back.node[2].transition, MFS_NODE_COMING);
    assert_int_equal(back.nmoves, 1);
    assert_memory_equal(back.move, &move, sizeof move);
    assert_memory_equal(&back.scale, &s.scale, sizeof s.scale);
    mfs_cm_state_clear(&back);
    mfs_cm_state_clear(&s);
}

static void test_replicas_survive(void **state)
{
    struct mfs_cm_stale stale = {.node = 1, .part = 3, .password = "former"};
    struct mfs_cm_state s, back;
    struct mfs_err err;

    (void)state;
    make(&s);
    s.replicas = 1;
    s.part[2].era = 4;
    s.part[2].replica_node = 1;
    strcpy(s.part[2].replica_step, MFS_REPLICA_TAKE);
    strcpy(s.part[2].replica_password, "rp");
    strcpy(s.part[2].replica_admin_password, "ra");
    s.nstale = 1;
    s.stale = malloc(sizeof stale);
    *s.stale = stale;
    assert_int_equal(reload(&s, &back, &err), 0);
    assert_int_equal(back.replicas, 1);
    assert_int_equal(back.part[2].era, 4);
    assert_int_equal(back.part[2].replica_node, 1);
    assert_string_equal(back.part[2].replica_step, MFS_REPLICA_TAKE);
    assert_string_equal(back.part[2].replica_password, "rp");
    assert_string_equal(back.part[2].replica_admin_password, "ra");
    assert_string_equal(back.part[0].replica_step, "");
    assert_int_equal(back.nstale, 1);
    assert_int_equal(back.stale->node, 1);
    assert_int_equal(back.stale->part, 3);
    assert_string_equal(back.stale->password, "former");
    mfs_cm_state_clear(&back);
    s.stale->part = 99;
    assert_int_equal(reload(&s, &back, &err), -EINVAL);
    mfs_cm_state_clear(&s);
}

static void test_drop(void **state)
{
    struct mfs_cm_state s;

    (void)state;
    make(&s);
    mfs_cm_state_drop(&s, 9);
    assert_int_equal(s.nnodes, 2);
    mfs_cm_state_drop(&s, 0);
    assert_int_equal(s.nnodes, 1);
    assert_int_equal(s.node[0].id, 1);
    assert_null(mfs_cm_state_node(&s, 0));
    assert_int_equal(mfs_cm_state_count(&s, 1), 2);
    mfs_cm_state_clear(&s);
}

static void test_senseless(void **state)
{
    struct mfs_cm_state s, back;
    struct mfs_err err;

    (void)state;
    make(&s);
    s.part[3].node = 5;
    assert_int_equal(reload(&s, &back, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "partition 3 is on a node that is not there"));
    s.part[3].node = 1;
    s.nmoves = 1;
    s.move = calloc(1, sizeof *s.move);
    s.move->part = 4;
    assert_int_equal(reload(&s, &back, &err), -EINVAL);
    mfs_cm_state_clear(&s);
}

static void test_move_of_a_node_that_left(void **state)
{
    struct mfs_cm_state s, back;
    struct mfs_err err;

    (void)state;
    make(&s);
    s.nmoves = 3;
    s.move = calloc(s.nmoves, sizeof *s.move);
    assert_non_null(s.move);
    for (uint32_t i = 0; i < s.nmoves; i++)
        s.move[i].part = i;
    s.move[0].from = 9;
    s.move[1].to = 1;
    s.move[2].to = 9;
    assert_int_equal(reload(&s, &back, &err), 0);
    assert_int_equal(back.nmoves, 1);
    assert_int_equal(back.move[0].part, 1);
    mfs_cm_state_clear(&back);
    mfs_cm_state_clear(&s);
}

static int open_file(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_change_survives),
        cmocka_unit_test(test_replicas_survive),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_senseless),
        cmocka_unit_test(test_move_of_a_node_that_left),
    };

    return cmocka_run_group_tests(tests, open_file, remove_file);
}
