/* Which tables cm sends: to a node that has had one what it lacks, however many it has missed; the
 * whole to one that has none, or another one of the same epoch. ctest: single */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm_stage.h"
#include "loop_until.h"

#include "base/text.h"
#include "cm/nodes/push.h"
#include "net/conn.h"

#define NODES 3U
#define PARTS 16U

/* A Local Manager. */
struct peer {
    struct world *w;
    uint32_t id;
    struct mfs_conn *conn;
    struct mfs_table *held;
    unsigned wholes, changes, refused;
    uint32_t patches; /* in the last change */
};

struct world {
    struct cm_stage stage;
    struct peer peer[NODES];
    unsigned done;
};

static void on_table(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_table *m = body;
    struct peer *p = arg;
    struct mfs_table *table;
    struct mfs_err err;
    int rc = mfs_table_of_message(m, p->held, &table, &err);

    if (m->table) {
        p->wholes++;
    } else {
        p->changes++;
        p->patches = m->change.npatches;
    }
    if (rc) {
        p->refused++;
        mfs_conn_fail(c, id, rc, "%s", err.msg);
        return;
    }
    assert_non_null(table);
    free(p->held);
    p->held = table;
    mfs_conn_reply(c, MFS_MSG_TABLE, id, &(struct mfs_msg_epoch){table->epoch});
}

static void up(struct mfs_conn *c, void *arg)
{
    struct peer *p = arg;

    cm_stage_join(c, p->id, p->held ? p->held->epoch : 0);
}

static void down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    (void)c;
    (void)why;
    ((struct peer *)arg)->conn = NULL;
}

static const struct mfs_handler handlers[] = {{MFS_MSG_TABLE, on_table}, {0, NULL}};
static const struct mfs_service service = {handlers, up, down};

static void pushed(void *arg, int64_t took, uint32_t missing)
{
    (void)took;
    assert_int_equal(missing, 0);
    ((struct world *)arg)->done++;
}

static bool is_pushed(void *arg)
{
    return ((struct world *)arg)->done == 1;
}

/* A new table, in which that partition has another port, reaches all that are there. */
static void push(struct world *w, uint32_t part)
{
    struct mfs_table *t = mfs_table_dup(w->stage.cm.state.table);

    t->epoch++;
    t->part[part].port++;
    free(w->stage.cm.state.table);
    w->stage.cm.state.table = t;
    w->done = 0;
    assert_int_equal(mfs_push_table(&w->stage.cm, pushed, w), 0);
    assert_true(loop_until(w->stage.cm.loop, is_pushed, w));
}

static bool has_newest(void *arg)
{
    const struct peer *p = arg;
    const struct mfs_table *t = p->w->stage.cm.state.table;

    return p->held && p->held->epoch == t->epoch &&
           mfs_table_digest(p->held) == mfs_table_digest(t);
}

static bool is_away(void *arg)
{
    const struct peer *p = arg;

    return !p->w->stage.cm.nodes[p->id]->conn;
}

static void come(struct peer *p)
{
    struct mfs_err err;

    p->conn = mfs_conn_connect(p->w->stage.cm.loop, p->w->stage.address, &p->w->stage.cm.secret,
                               "lm", 5 * MFS_SEC, &service, p, &err);
    assert_non_null(p->conn);
    assert_true(loop_until(p->w->stage.cm.loop, has_newest, p));
}

static void leave(struct peer *p)
{
    mfs_conn_close(p->conn);
    p->conn = NULL;
    assert_true(loop_until(p->w->stage.cm.loop, is_away, p));
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct mfs_table *t;

    cm_stage_state(&w->stage.cm.state, NODES, PARTS);
    t = w->stage.cm.state.table;
    strcpy(t->name, "unit");
    for (uint32_t i = 0; i < PARTS; i++) {
        t->part[i].port = 1000 + i;
        strcpy(t->part[i].host, "10.0.0.1");
        strcpy(t->part[i].password, "secret");
    }
    assert_int_equal(cm_stage_open(&w->stage), 0);
    for (uint32_t i = 0; i < NODES; i++) {
        w->peer[i] = (struct peer){.w = w, .id = i};
        come(&w->peer[i]);
    }
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    for (uint32_t i = 0; i < NODES; i++) {
        if (w->peer[i].conn)
            mfs_conn_close(w->peer[i].conn);
        free(w->peer[i].held);
    }
    cm_stage_close(&w->stage);
    free(w);
    return 0;
}

static void each_gets_what_has_changed(void **state)
{
    struct world *w = *state;

    for (uint32_t k = 0; k < 5; k++) {
        push(w, k);
        for (uint32_t i = 0; i < NODES; i++) {
            assert_true(has_newest(&w->peer[i]));
            assert_int_equal(w->peer[i].wholes, 1);
            assert_int_equal(w->peer[i].changes, k + 1);
            assert_int_equal(w->peer[i].patches, 1);
        }
    }
}

static void one_that_has_missed_some_gets_all_that_has_changed(void **state)
{
    struct world *w = *state;
    struct peer *late = &w->peer[1];

    leave(late);
    for (uint32_t k = 0; k < 4; k++)
        push(w, k % 3); /* one of them twice */
    come(late);
    assert_int_equal(late->wholes, 1);
    assert_int_equal(late->changes, 1);
    assert_int_equal(late->patches, 3);
    push(w, 7);
    assert_true(has_newest(late));
    assert_int_equal(late->patches, 1);
}

static void one_that_has_another_gets_the_whole(void **state)
{
    struct world *w = *state;
    struct peer *other = &w->peer[2];

    other->held->part[5].era++; /* of the same epoch */
    push(w, 0);
    assert_true(has_newest(other));
    assert_int_equal(other->refused, 1);
    assert_int_equal(other->wholes, 2);
    free(other->held);
    other->held = NULL;
    push(w, 1);
    assert_true(has_newest(other));
    assert_int_equal(other->wholes, 3);
    push(w, 2);
    assert_int_equal(other->wholes, 3);
}

static void one_of_long_ago_gets_the_whole(void **state)
{
    struct world *w = *state;
    struct peer *late = &w->peer[0];

    leave(late);
    for (uint32_t k = 0; k < PARTS; k++)
        push(w, k);
    come(late);
    assert_int_equal(late->wholes, 2);
    assert_int_equal(late->changes, 0);
    leave(late);
    for (uint32_t k = 0; k < 600; k++)
        push(w, 3);
    come(late);
    assert_int_equal(late->wholes, 3);
    assert_int_equal(late->changes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_gets_what_has_changed, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_has_missed_some_gets_all_that_has_changed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_that_has_another_gets_the_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(one_of_long_ago_gets_the_whole, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
