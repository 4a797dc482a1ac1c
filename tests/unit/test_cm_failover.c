/* The steps of a replica, and what nodes are told of one that is lost, with cm's own code and the
 * test in the place of two Local Managers. ctest: waits */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "cluster/trust.h"
#include "cm/partitions/replicas.h"
#include "cm/nodes/trust.h"
#include "migrate_world.h"
#include "store/store.h"

static bool replica_is_ready(void *world)
{
    const struct migrate_world *w = world;

    return !strcmp(w->stage.cm.state.part[0].replica_step, MFS_REPLICA_READY);
}

/* Of both partitions, each of which is at a node of its own; there is room. */
static void want_replicas(struct migrate_world *w)
{
    w->stage.cm.state.replicas = 1;
    w->stage.cm.state.part[1].node = 1;
    for (uint32_t i = 0; i < MIGRATE_WORLD_NODES; i++) {
        w->stage.cm.nodes[i]->reported = true;
        w->stage.cm.nodes[i]->last.memory_capacity = 1 << 30;
    }
}

/* One that lacks what was written before all waited for it is given up, and another one made. */
static void a_replica_is_ready_when_it_has_all(void **state)
{
    struct migrate_world *w = *state;

    want_replicas(w);
    w->peer[0].fail[MFS_MSG_TERM][1] = -ETIMEDOUT;
    assert_int_equal(mfs_replicas_begin(&w->stage.cm), 0);
    migrate_world_wait(w, replica_is_ready);
    assert_true(w->stage.cm.state.table->part[0].replica);
    assert_true(w->peer[0].asked[MFS_MSG_TERM] >= 5); /* terms, whole, term, terms, whole */
    mfs_replicas_fini(&w->stage.cm);
}

static bool time_is_over(void *world)
{
    const struct migrate_world *w = world;

    return mfs_clock_mono() >= w->until;
}

static bool replica_serves(void *world)
{
    const struct migrate_world *w = world;

    return w->stage.cm.state.part[0].node == 1;
}

static bool replica_is_given_up(void *world)
{
    const struct migrate_world *w = world;

    return !w->stage.cm.state.part[0].replica_step[0];
}

/* But node 0, which takes its time. */
static bool all_are_told(void *world)
{
    const struct migrate_world *w = world;

    return w->late_conn && strstr(w->log, "table1");
}

static bool old_process_has_ended(void *world)
{
    const struct migrate_world *w = world;

    return !w->stage.cm.state.nstale;
}

/* Partition 0 has one, at node 1, and that is written down. */
static void begin_with_a_replica(struct migrate_world *w)
{
    struct mfs_cm *cm = &w->stage.cm;
    struct mfs_cm_part *p = &cm->state.part[0];

    cm->state.replicas = 1;
    mfs_text_copy(p->replica_step, sizeof p->replica_step, MFS_REPLICA_READY);
    mfs_text_copy(p->replica_password, sizeof p->replica_password, "replica");
    p->replica_node = 1;
    cm->state.table->part[0].replica = true;
    assert_int_equal(mfs_cm_state_save(&cm->state, cm->paths->state), 0);
    assert_int_equal(mfs_replicas_begin(cm), 0);
}

/* The process of partition 0 with that password. */
static void dies(struct migrate_world *w, const char *password)
{
    struct mfs_msg_died died = {.index = 0};

    mfs_text_copy(died.password, sizeof died.password, password);
    mfs_replicas_died(&w->stage.cm, &died);
}

/* A node is slow to tell that it has heard of a failover. When it does the replica has been the
 * partition for long, and has none. */
static void who_hears_late_of_a_failover_makes_no_replica(void **state)
{
    struct migrate_world *w = *state;
    struct mfs_cm_part *p = &w->stage.cm.state.part[0];

    w->slow = true;
    begin_with_a_replica(w);
    dies(w, "old");
    migrate_world_wait(w, replica_serves);
    assert_non_null(w->late_conn);
    w->log[0] = '\0';
    mfs_conn_reply(w->late_conn, MFS_MSG_TABLE, w->late_id, &(struct mfs_msg_epoch){0});
    mfs_conn_put(w->late_conn);
    migrate_world_wait(w, old_process_has_ended);
    w->until = mfs_clock_mono() + 500 * MFS_MSEC;
    migrate_world_wait(w, time_is_over);
    assert_string_equal(p->replica_step, "");
    assert_null(strstr(w->log, "term"));
    mfs_replicas_fini(&w->stage.cm);
}

/* ---- what can't be written down -------------------------------------------------------------- */

static void wait_a_moment(struct migrate_world *w)
{
    w->until = mfs_clock_mono() + 700 * MFS_MSEC;
    migrate_world_wait(w, time_is_over);
}

/* What a cm that came now would go on from. */
static void check_written(const struct migrate_world *w, uint32_t node, const char *step)
{
    struct mfs_cm_state s;
    struct mfs_err err;

    assert_int_equal(mfs_cm_state_load(&s, w->stage.paths.state, &err), 0);
    assert_int_equal(s.part[0].node, node);
    assert_string_equal(s.part[0].replica_step, step);
    assert_int_equal(s.table->part[0].node, s.part[0].node);
    assert_int_equal(s.table->epoch, w->stage.cm.state.table->epoch);
    mfs_cm_state_clear(&s);
}

/* Such a cm would have the replica take over, and the partition has served without it. */
static void a_replica_is_given_up_when_that_is_written(void **state)
{
    struct migrate_world *w = *state;

    begin_with_a_replica(w);
    migrate_world_hinder(w, true);
    dies(w, "replica");
    wait_a_moment(w);
    assert_string_equal(w->log, "");
    assert_true(w->stage.cm.state.table->part[0].replica);
    check_written(w, 0, MFS_REPLICA_READY);
    migrate_world_hinder(w, false);
    migrate_world_wait(w, replica_is_given_up);
    assert_non_null(strstr(w->log, "term0"));
    assert_false(w->stage.cm.state.table->part[0].replica);
    check_written(w, 0, "");
    mfs_replicas_fini(&w->stage.cm);
}

/* It would have the former process serve, and clients would have written to the replica. */
static void a_replica_takes_over_when_that_is_written(void **state)
{
    struct migrate_world *w = *state;

    begin_with_a_replica(w);
    w->hinders = MFS_MSG_TAKE;
    dies(w, "old");
    wait_a_moment(w);
    assert_non_null(strstr(w->log, "force1"));
    assert_null(strstr(w->log, "table"));
    check_written(w, 0, MFS_REPLICA_TAKE);
    migrate_world_hinder(w, false);
    migrate_world_wait(w, replica_serves);
    check_written(w, 1, "");
    migrate_world_wait(w, old_process_has_ended);
    mfs_replicas_fini(&w->stage.cm);
}

/* … also when it can't be from the first table on, by which all forget what they relied on. */
static void it_takes_over_when_that_is_written_at_last(void **state)
{
    struct migrate_world *w = *state;

    w->slow = true;
    begin_with_a_replica(w);
    dies(w, "old");
    migrate_world_wait(w, all_are_told);
    migrate_world_hinder(w, true);
    mfs_conn_reply(w->late_conn, MFS_MSG_TABLE, w->late_id, &(struct mfs_msg_epoch){0});
    mfs_conn_put(w->late_conn);
    wait_a_moment(w);
    assert_int_equal(w->stage.cm.state.part[0].node, 0);
    assert_int_equal(w->stage.cm.state.nstale, 0);
    check_written(w, 0, MFS_REPLICA_TAKE);
    migrate_world_hinder(w, false);
    migrate_world_wait(w, replica_serves);
    check_written(w, 1, "");
    mfs_replicas_fini(&w->stage.cm);
}

/* Nobody would end it, nor know whom its partition's process serves by. */
static void a_replica_is_made_when_that_is_written(void **state)
{
    struct migrate_world *w = *state;

    want_replicas(w);
    migrate_world_hinder(w, true);
    assert_int_equal(mfs_replicas_begin(&w->stage.cm), 0);
    wait_a_moment(w);
    assert_string_equal(w->log, "");
    migrate_world_hinder(w, false);
    migrate_world_wait(w, replica_is_ready);
    check_written(w, 0, MFS_REPLICA_READY);
    mfs_replicas_fini(&w->stage.cm);
}

static unsigned count(const char *log, const char *what)
{
    unsigned n = 0;

    for (const char *p = log; (p = strstr(p, what)) != NULL; p++)
        n++;
    return n;
}

/* By the Local Manager of the partition: copied again and again it would be otherwise. */
static void a_copy_stays_until_terms_can_be_written(void **state)
{
    struct migrate_world *w = *state;

    want_replicas(w);
    for (unsigned i = 0; i < 2; i++)
        w->peer[0].fail[MFS_MSG_TERM][i] = -EBUSY;
    assert_int_equal(mfs_replicas_begin(&w->stage.cm), 0);
    migrate_world_wait(w, replica_is_ready);
    assert_int_equal(count(w->log, "receive1"), 1);
    assert_int_equal(w->peer[0].asked[MFS_MSG_TERM], 4); /* twice in vain, terms, whole */
    mfs_replicas_fini(&w->stage.cm);
}

/* ---- a node that is lost --------------------------------------------------------------------- */

static bool other_is_lost(void *world)
{
    const struct migrate_world *w = world;

    return w->peer[0].beaten && w->peer[0].lost == 1;
}

static bool nobody_is_lost(void *world)
{
    const struct migrate_world *w = world;

    return w->peer[0].lost == MFS_NO_NODE;
}

static bool other_is_answered(void *world)
{
    const struct migrate_world *w = world;

    return w->peer[1].beaten > 0;
}

/* Who was told that a node is lost may count on that for a while: so long that node's clients are
 * told nothing that they could rely on. */
static void a_lost_node_is_told_of_and_then_not_answered(void **state)
{
    struct migrate_world *w = *state;
    int64_t lost_at;

    w->peer[1].mute = true;
    w->peer[0].lost = MFS_NO_NODE;
    migrate_world_wait(w, other_is_lost);
    lost_at = mfs_clock_mono();
    assert_true(lost_at - w->stage.cm.nodes[1]->last_contact >= MFS_TRUST_LOST);
    w->peer[1].mute = false;
    w->peer[1].beaten = w->peer[1].refused = 0;
    migrate_world_wait(w, other_is_answered);
    assert_true(w->peer[1].refused > 0);
    assert_true(mfs_clock_mono() - lost_at >= MFS_TRUST_OVER - MFS_TRUST_HEARTBEAT);
    assert_int_equal(w->peer[1].lost, MFS_NO_NODE);
    migrate_world_wait(w, nobody_is_lost);
}

struct answer {
    bool there;
    int code;
};

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct answer *a = arg;

    (void)reply;
    *a = (struct answer){true, err ? err->code : 0};
}

static struct answer *awaited;

static bool is_answered(void *world)
{
    (void)world;
    return awaited->there;
}

static int asks(struct migrate_world *w, enum mfs_msg type, const void *body)
{
    struct answer a = {0};

    awaited = &a;
    assert_int_equal(mfs_conn_request(w->peer[1].conn, type, body, 5 * MFS_SEC, answered, &a), 0);
    migrate_world_wait(w, is_answered);
    return a.code;
}

/* Else what goes away with it would go once, and be there twice. */
static void a_connection_is_one_node_and_one_client(void **state)
{
    struct migrate_world *w = *state;
    struct mfs_cm *cm = &w->stage.cm;
    struct mfs_msg_join join = {.version = MFS_PROTOCOL_VERSION, .node = 0};
    struct mfs_msg_client_hello hello = {.version = MFS_PROTOCOL_VERSION,
                                         .epoch = cm->state.table->epoch};

    mfs_text_copy(join.name, sizeof join.name, cm->state.name);
    assert_int_equal(asks(w, MFS_MSG_JOIN, &join), -EPROTO);
    assert_int_equal(asks(w, MFS_MSG_CLIENT_HELLO, &hello), 0);
    assert_int_equal(asks(w, MFS_MSG_CLIENT_HELLO, &hello), -EPROTO);
    assert_non_null(cm->subscribers);
    assert_null(cm->subscribers->next);
}

/* A client that asked the cm before this one whether it is there relies on that for a second, also
 * when all nodes have the table already. */
static void a_new_cm_counts_on_clients_of_the_one_before(void **state)
{
    struct migrate_world *w = *state;
    struct mfs_cm *cm = &w->stage.cm;
    int64_t now;

    cm->state.replicas = 1;
    assert_int_equal(mfs_replicas_begin(cm), 0);
    for (uint32_t i = 0; i < MIGRATE_WORLD_NODES; i++)
        mfs_trust_has(cm->nodes[i], 7);
    now = mfs_clock_mono();
    assert_false(mfs_trust_over(cm, 7, now, now));
    assert_true(mfs_trust_over(cm, 7, now + MFS_TRUST_OVER, now + MFS_TRUST_OVER));
    mfs_replicas_fini(cm);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, migrate_world_setup, migrate_world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_replica_is_ready_when_it_has_all),
        TEST(who_hears_late_of_a_failover_makes_no_replica),
        TEST(a_replica_is_given_up_when_that_is_written),
        TEST(a_replica_takes_over_when_that_is_written),
        TEST(it_takes_over_when_that_is_written_at_last),
        TEST(a_replica_is_made_when_that_is_written),
        TEST(a_copy_stays_until_terms_can_be_written),
        TEST(a_connection_is_one_node_and_one_client),
        TEST(a_new_cm_counts_on_clients_of_the_one_before),
        TEST(a_lost_node_is_told_of_and_then_not_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
