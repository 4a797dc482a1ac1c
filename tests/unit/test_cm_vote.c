/* What `cm start --adopt` makes of the nodes' answers: who has granted what, which refusal counts,
 * which copy is the newest, and that one that is silent ends nothing. ctest: threaded */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/threads/thread.h"
#include "cm/ask/vote.h"
#include "net/conn.h"

#define NODES 4

static struct mfs_secret secret = {.len = 16, .bytes = "0123456789abcdef"};

/* What a node says. */
struct says {
    int code; /* 0: it grants the vote; 1: nothing at all */
    uint64_t term, copy_term, copy_revision;
    const char *cm;
};

struct voter {
    const struct says *says;
    struct mfs_listener *listener;
};

struct world {
    struct mfs_loop *loop;
    pthread_t thread;
    struct voter voter[NODES];
    struct mfs_cm_node node[NODES];
    struct mfs_cm_state state;
    struct mfs_ballot ballot;
};

static void on_vote(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct says *s = ((struct voter *)arg)->says;
    const struct mfs_msg_vote *m = body;
    struct mfs_msg_vote_reply r = {.term = s->term};
    char text[32];

    assert_int_equal(m->term, 8);
    assert_int_equal(m->candidate, 1);
    if (s->code == 1)
        return;
    if (s->code) {
        mfs_conn_fail(c, id, s->code, "code %d", s->code);
        return;
    }
    mfs_text_copy(r.cm, sizeof r.cm, s->cm ? s->cm : "");
    mfs_text_format(text, sizeof text, "%u.%u", (unsigned)s->copy_term, (unsigned)s->copy_revision);
    r.copy =
        (struct mfs_msg_state){.term = s->copy_term, .revision = s->copy_revision, .text = text};
    mfs_conn_reply(c, MFS_MSG_VOTE, id, &r);
}

static const struct mfs_handler handlers[] = {{MFS_MSG_VOTE, on_vote}, {0, NULL}};
static const struct mfs_service service = {handlers, NULL, NULL};

static void *serve(void *arg)
{
    mfs_loop_run(((struct world *)arg)->loop);
    return NULL;
}

static void open_voter(struct world *w, uint32_t i, const struct says *says)
{
    char address[MFS_ADDRESS_MAX];
    struct mfs_err err = {0};

    w->voter[i].says = says;
    w->voter[i].listener =
        mfs_listener_create(w->loop, "127.0.0.1:0", &secret, 4, &service, &w->voter[i], &err);
    assert_string_equal(err.msg, "");
    mfs_listener_address(w->voter[i].listener, address);
    w->node[i] = (struct mfs_cm_node){.id = i, .votes = MFS_VOTES_ALWAYS};
    w->node[i].control = (uint32_t)strtoul(strrchr(address, ':') + 1, NULL, 10);
    mfs_text_copy(w->node[i].address, sizeof w->node[i].address, "127.0.0.1");
}

static const struct mfs_ballot *ask(struct world *w, const struct says *says, uint32_t n,
                                    int64_t timeout)
{
    struct mfs_msg_vote vote = {.term = 8, .candidate = 1};
    struct mfs_err err;

    w->loop = mfs_loop_create();
    for (uint32_t i = 0; i < n; i++)
        open_voter(w, i, &says[i]);
    w->state = (struct mfs_cm_state){.nnodes = n, .node = w->node, .term = 5, .revision = 50};
    assert_int_equal(mfs_thread_start(&w->thread, "voters", serve, w), 0);
    assert_int_equal(mfs_vote_ask(&w->state, &secret, &vote, timeout, &w->ballot, &err), 0);
    mfs_loop_stop(w->loop);
    pthread_join(w->thread, NULL);
    for (uint32_t i = 0; i < n; i++)
        mfs_listener_destroy(w->voter[i].listener);
    mfs_loop_destroy(w->loop);
    return &w->ballot;
}

static void the_newest_copy_counts(void **state)
{
    static const struct says says[] = {
        {0, 6, 5, 51, "a:1"}, {0, 7, 6, 1, "b:1"}, {0, 5, 5, 99, "c:1"}};
    struct world w;
    const struct mfs_ballot *b = ask(&w, says, 3, 5 * MFS_SEC);

    (void)state;
    assert_true(b->asked == 3 && b->granted == 3 && !b->refused && b->now.all == 3);
    assert_int_equal(b->term, 7);
    assert_string_equal(b->cm, "b:1");
    assert_string_equal(b->newest.text, "6.1");
    assert_true(mfs_ballot_won(b));
    mfs_ballot_clear(&w.ballot);
}

static void no_copy_that_is_older(void **state)
{
    static const struct says says[] = {
        {0, 5, 5, 50, NULL}, {0, 5, 4, 90, NULL}, {0, 5, 0, 0, NULL}};
    struct world w;

    (void)state;
    assert_null(ask(&w, says, 3, 5 * MFS_SEC)->newest.text);
    mfs_ballot_clear(&w.ballot);
}

static void that_a_cm_answers_counts_before_all(void **state)
{
    static const struct says says[] = {{-EBUSY, 0, 0, 0, NULL},
                                       {-EADDRINUSE, 0, 0, 0, NULL},
                                       {-ESTALE, 0, 0, 0, NULL},
                                       {0, 5, 0, 0, NULL}};
    struct world w;
    const struct mfs_ballot *b = ask(&w, says, 4, 5 * MFS_SEC);

    (void)state;
    assert_true(b->granted == 1 && b->refused == 3);
    assert_int_equal(b->refusal.code, -EADDRINUSE);
    assert_false(mfs_ballot_won(b));
    mfs_ballot_clear(&w.ballot);
}

static void one_that_is_silent_is_no_refusal(void **state)
{
    static const struct says says[] = {{0, 5, 0, 0, NULL}, {1, 0, 0, 0, NULL}, {0, 5, 0, 0, NULL}};
    struct world w;
    const struct mfs_ballot *b = ask(&w, says, 3, 300 * MFS_MSEC);

    (void)state;
    assert_true(b->granted == 2 && !b->refused);
    assert_true(b->granted_by[0] && !b->granted_by[1] && b->granted_by[2]);
    assert_true(mfs_ballot_won(b)); /* two of three */
    mfs_ballot_clear(&w.ballot);
}

static void half_is_not_enough(void **state)
{
    static const struct says says[] = {{0, 5, 0, 0, NULL}, {1, 0, 0, 0, NULL}};
    struct world w;
    const struct mfs_ballot *b = ask(&w, says, 2, 300 * MFS_MSEC);

    (void)state;
    assert_int_equal(b->granted, 1);
    assert_false(mfs_ballot_won(b));
    mfs_ballot_clear(&w.ballot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_copy_counts),
        cmocka_unit_test(no_copy_that_is_older),
        cmocka_unit_test(that_a_cm_answers_counts_before_all),
        cmocka_unit_test(one_that_is_silent_is_no_refusal),
        cmocka_unit_test(half_is_not_enough),
    };

    mfs_log_set_level(MFS_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
