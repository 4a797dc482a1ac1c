/* For tests of partitions that move: a Local Manager (lm_world) that receives, and a redis process
 * of the test's own as the source, in a node directory of its own. What fails fails the test. */
#ifndef MFS_TESTS_MOVE_SOURCE_H
#define MFS_TESTS_MOVE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lm_world.h"

#include "lm/redis/redis_proc.h"
#include "store/admin/admin.h"
#include "store/channel.h"

#define MOVE_MIB    (1ULL << 20)
#define MOVE_PART   1U
#define MOVE_STRIPE (1U << 20)

struct move_source {
    struct lm_world *w;
    char dir[96];
    struct mfs_redis_node node;
    struct mfs_redis redis;
    struct mfs_msg_receive ask; /* that would copy it */
    struct mfs_msg_take take;   /* and take it then */
};

/* For cmocka. With TEST_SHOW_LOG in the environment the teardown shows what redis logged. */
int move_setup(void **state);
int move_teardown(void **state);

/* ---- one process ----------------------------------------------------------------------------- */

struct mfs_admin *move_admin(const struct mfs_redis *r); /* to be closed */
void move_admin_run(const struct mfs_redis *r, int n, const char *const *words);
uint64_t move_config(const struct mfs_redis *r, const char *name); /* CONFIG GET, a number */
struct mfs_channel *move_client(const struct mfs_redis *r);        /* to be closed */

/* One command as a client (value NULL: it has none): its rc, and what it gave, cut to n. */
int move_run(struct mfs_channel *c, const char *name, const char *key, const char *value, char *got,
             size_t n);
bool move_serves(const struct mfs_redis *r); /* a client */

/* ---- the source, and what becomes of it ------------------------------------------------------ */

/* Puts n values of that size there, one by one, as a script of redis 8 stores them in twice the
 * memory. Keys that begin as those of stripes do: all others would be in the journal, too, and
 * count twice. */
void move_fill(const struct move_source *s, const char *n, const char *size);
void move_check_filled(const struct mfs_redis *r); /* with 50, of at least 15 bytes */

/* Asks the Local Manager, which must do it. */
void move_must(struct move_source *s, enum mfs_msg type, const void *body);
/* Takes the partition and checks that its content is there, and who serves. */
void move_take_and_check(struct move_source *s, bool force);
struct mfs_redis move_target(const struct move_source *s); /* the partition as it was taken */

void move_receive_slowly(
    struct move_source *s);                  /* begins; fills it, so that it takes some seconds */
void move_await_some(struct move_source *s); /* that has arrived */
void move_begin_to_take(struct move_source *s); /* and has the request leave */
/* Of what was begun, with that code, within `limit` ns. */
void move_await_failure(struct move_source *s, int code, int64_t limit);

struct mfs_proc move_copy_process(const struct move_source *s); /* pid 0: there is none */
bool move_no_copy_is_left(struct lm_world *w);                  /* for lm_world_wait */
void move_restart_lm(struct move_source *s);                    /* after a kill */

#endif
