/* A Local Manager in a process of its own, and the test in the place of cm: it listens, takes lm's
 * join, asks for things and waits (bounded) for what must come of it. Redis processes are real.
 *
 * One thread. Functions fail the test when the machinery itself fails. */
#ifndef MFS_TESTS_LM_WORLD_H
#define MFS_TESTS_LM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/proc.h"
#include "lm/agent/state.h"
#include "net/conn.h"
#include "net/loop.h"
#include "proto/messages.h"

#define LM_WORLD_PARTS  2
#define LM_WORLD_NODE   3
#define LM_WORLD_NAME   "lmworld"
#define LM_WORLD_MEMORY (128ULL << 20)

struct lm_world {
    char dir[64], cm[MFS_ADDRESS_MAX], sock[128];
    const char *bin; /* lm is the program there; NULL: the library, in a fork of the test */
    bool apart;      /* an lm that is started has a PID name space of its own */
    struct mfs_secret secret;
    struct mfs_loop *loop;
    struct mfs_listener *listener;
    struct mfs_conn *lm; /* its connection, NULL while there is none */
    pid_t pid;           /* of lm */
    struct mfs_assign_part part[LM_WORLD_PARTS];
    uint64_t epoch; /* of the table pushed last */

    bool slow_join;              /* a join is not answered, but by lm_world_answer_join, … */
    struct mfs_conn *joins_conn; /* … this one, of which a reference is held */
    uint64_t joins_id;

    /* seen */
    int joins;
    struct mfs_msg_join join; /* `assigned` is in joined[] */
    struct mfs_assigned_part joined[LM_WORLD_PARTS];
    struct mfs_report_copy joined_copy[LM_WORLD_PARTS]; /* join.ncopies of them */
    struct mfs_report_copy copy[LM_WORLD_PARTS];        /* report.ncopies of them */
    struct mfs_msg_report report;                       /* its arrays are gone */
    char events[4096];                                  /* "what: text" lines */
    struct mfs_msg_died died;                           /* the last one that was told */

    /* the last request's answer */
    bool answered;
    struct mfs_err err;
    uint64_t acked; /* of table */
    struct mfs_msg_receive_reply received;
    struct mfs_msg_take_reply taken;
    struct mfs_assigned_part assigned[LM_WORLD_PARTS];

    void *data; /* the test's */
};

/* cmocka setup and teardown: *state is the world, with lm joined. Teardown ends lm by SIGTERM and
 * fails when that takes more than 30 s; TEST_SHOW_LOG=1 prints lm's log. */
int lm_world_setup(void **state);
/* The same with the programs out of $MEMEFS_BIN, which a mount needs. *state is NULL when there are
 * none, or no FUSE: skip the test then. */
int lm_world_setup_programs(void **state);
int lm_world_teardown(void **state);

void lm_world_start_lm(struct lm_world *w);
bool lm_world_can_be_apart(void);          /* may this test make such name spaces? */
void lm_world_kill_lm(struct lm_world *w); /* SIGKILL */
void lm_world_listen(struct lm_world *w);  /* again, at the same address, after destroying it */
/* From now on (or no more) lm can't write its state file; one that is started can. */
void lm_world_hinder(struct lm_world *w, bool on);
void lm_world_answer_join(struct lm_world *w);

/* Runs the loop until holds(w), for at most so many seconds. Did it? */
bool lm_world_wait(struct lm_world *w, bool (*holds)(struct lm_world *w), int seconds);
/* Whether lm has told of such an event, e.g. "unmounted: " and perhaps more. */
bool lm_world_has_event(const struct lm_world *w, const char *event);
bool lm_world_joined(struct lm_world *w);
bool lm_world_answered(struct lm_world *w);
bool lm_world_lm_ended(struct lm_world *w); /* with status 0 */

/* Asks lm and waits for the answer: 0 or its code, and w->err. */
int lm_world_ask(struct lm_world *w, enum mfs_msg type, const void *body);
/* Asks only; lm_world_answered tells when the answer is there. */
void lm_world_begin(struct lm_world *w, enum mfs_msg type, const void *body);
int lm_world_assign(struct lm_world *w);
int lm_world_push_table(struct lm_world *w); /* the next epoch */
struct mfs_table *lm_world_table(const struct lm_world *w);

/* Runs one command with one binary key at partition 1: the reply as a number, or -errno. */
int64_t lm_world_command(struct lm_world *w, const char *name, const char *key, size_t len,
                         const char *value);

/* From lm's state file. Clear the state with mfs_schema_clear(&mfs_state_schema, …). */
struct mfs_state lm_world_state(const struct lm_world *w);
struct mfs_proc lm_world_redis(const struct lm_world *w, uint32_t index);

#endif
