/* Threads that carry out tasks until none is left. Content comes before directories, so that what
 * is known but not done stays little; of directories the one found last comes first, so that few
 * are open at a time.
 *
 * Where tasks of one directory wait for each other, as those do that make files (the kernel locks
 * the directory), content of several is to be known: then the threads go round. */
#ifndef MFS_STAGE_POOL_H
#define MFS_STAGE_POOL_H

#include <stdbool.h>

struct mfs_stage_pool;

/* Embedded in what it is about; `run` frees it. */
struct mfs_stage_task {
    void (*run)(struct mfs_stage_task *task);
    struct mfs_stage_queue *queue; /* of content, which has to be there until `run`; NULL: any */
    struct mfs_stage_task *next;   /* the pool's */
};

/* Content that waits for each other. {0}: nothing yet; the rest is the pool's. */
struct mfs_stage_queue {
    struct mfs_stage_task *first, **end;
    struct mfs_stage_queue *next;
};

/* 0 or a negative errno: none of its threads runs. */
int mfs_stage_pool_create(struct mfs_stage_pool **pool, unsigned threads);
void mfs_stage_pool_destroy(struct mfs_stage_pool *pool); /* waits first. Takes NULL */

/* So many queues are to have content before that is carried out, if there are directories; 1 at
 * first. Before any task is added. */
void mfs_stage_pool_spread(struct mfs_stage_pool *pool, unsigned queues);

/* Any thread, also inside a task. */
void mfs_stage_pool_add(struct mfs_stage_pool *pool, struct mfs_stage_task *task);
void mfs_stage_pool_add_directory(struct mfs_stage_pool *pool, struct mfs_stage_task *task);

/* Inside a task that adds many: carries some out itself while too many wait. */
void mfs_stage_pool_help(struct mfs_stage_pool *pool);

/* Blocks until nothing is left; tasks may be added again afterwards. Not inside a task. */
void mfs_stage_pool_wait(struct mfs_stage_pool *pool);

#endif
