/* Inside a migration: what its parts share. */
#ifndef MFS_CM_PARTITIONS_MIGRATE_IMPL_H
#define MFS_CM_PARTITIONS_MIGRATE_IMPL_H

#include "cm/partitions/migrate.h"
#include "cm/partitions/move.h"

#define MFS_MIGRATE_SAMPLES 16

/* Bytes that had arrived at a time. */
struct mfs_migrate_sample {
    int64_t at;
    uint64_t bytes;
};

struct mfs_migrate_one {
    struct mfs_move move;
    struct mfs_migrate *of;
    bool listed;  /* the list waits for it; else it is being cleared away */
    bool counted; /* in the target's memory, until its next report */
};

struct mfs_migrate {
    struct mfs_cm *cm;
    uint32_t n;
    struct mfs_migrate_one **one;
    bool listed;  /* a list is under way */
    bool at_once; /* all of it that memory allows */
    bool small_first;
    mfs_migrate_done *done;
    void *arg;
    int64_t began;
    int64_t idle_since; /* nothing under way although something waits; 0: not so */
    bool posted;        /* the next choice is on the loop's list */
    struct mfs_timer *tick;
    struct mfs_migrate_sample sample[MFS_MIGRATE_SAMPLES];
    unsigned nsamples; /* ever taken */
};

static inline bool mfs_migrate_waits(const struct mfs_migrate_one *o)
{
    return o->move.step == MFS_AT_WAITING && !o->move.settled;
}

/* migrate_choose.c: the one to begin now, or NULL */
struct mfs_migrate_one *mfs_migrate_choose(struct mfs_migrate *g, int64_t now);
/* None could begin: when nothing is under way either, those that have waited too long are over. */
void mfs_migrate_check_idle(struct mfs_migrate *g, int64_t now);
void mfs_migrate_give_up(struct mfs_migrate_one *o, int code, const char *why); /* unbegun */

/* migrate_report.c */
void mfs_migrate_sample(struct mfs_migrate *g, int64_t now);
uint64_t mfs_migrate_arrived(const struct mfs_migrate *g); /* bytes of the list */
/* Tells the events and fills *r but its `each`. */
void mfs_migrate_sum(const struct mfs_migrate *g, struct mfs_migrate_result *r,
                     struct mfs_err *err);

#endif
