/* cm's own code with the test in the place of two Local Managers: they connect, join, and answer by
 * a script. What they are asked, and in which order, is what keeps data safe.
 *
 * One thread. Functions fail the test. */
#ifndef MFS_TESTS_MIGRATE_WORLD_H
#define MFS_TESTS_MIGRATE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "cm/partitions/migrate.h"
#include "cm_stage.h"

#define MIGRATE_WORLD_NODES 2
#define MIGRATE_WORLD_PARTS 2

struct migrate_world;

struct migrate_peer {
    struct migrate_world *w;
    uint32_t id;
    struct mfs_conn *conn;
    int fail[MFS_MSG_COUNT][4]; /* codes of the next answers; 0: done */
    unsigned asked[MFS_MSG_COUNT];
    bool mute;                /* does not ask whether cm is there */
    unsigned beaten, refused; /* answers to that */
    uint32_t lost; /* the node that was lost by the last one; MFS_NO_NODE: not just one */
};

struct migrate_world {
    struct cm_stage stage;
    struct migrate_peer peer[MIGRATE_WORLD_NODES];
    char log[1024];             /* "receive1 take1 …": message and node */
    uint32_t source;            /* of moves: node 0 unless the test says so */
    bool fails_over;            /* once: while a partition is copied the other one's replica, at
                                 * that one's source, takes over */
    bool silent;                /* nobody answers receive */
    bool slow;                  /* node 0 takes its time to answer a table, … */
    struct mfs_conn *late_conn; /* … this one, of which a reference is held */
    uint64_t late_id;
    int64_t until;
    bool revived;         /* the source died with a whole copy */
    bool ended;           /* the copy has, since the last one was asked for */
    enum mfs_msg hinders; /* from this one on it can't, see migrate_world_hinder; 0: none */
    bool done;
    struct mfs_err err;
    struct mfs_migrate_result result;
};

/* cmocka's setup and teardown: *state is the world, of two nodes that have joined; both partitions
 * are on the first, with the password "old". */
int migrate_world_setup(void **state);
int migrate_world_teardown(void **state);

void migrate_world_connect(struct migrate_world *w, uint32_t i); /* a Local Manager, again */
void migrate_world_wait(struct migrate_world *w, bool (*holds)(void *world)); /* as loop_until */

/* From now on (or no more) cm can't write its state. */
void migrate_world_hinder(struct migrate_world *w, bool on);

/* Begins the move of partition 0 from node 0 to node 1; when it is over, `done` and what came of it
 * are set. */
void migrate_world_move(struct migrate_world *w);
void migrate_world_move_cold(struct migrate_world *w);
void migrate_world_ended(void *world, const struct mfs_err *err,
                         const struct mfs_migrate_result *r);
bool migrate_world_is_calm(void *world); /* it is over, and nothing of it is left */

#endif
