/* The lanes of posted commands, shared by post.c (posting, waiting, the background thread) and
 * post_lane.c (a lane's queue and its conversation). */
#ifndef MFS_STORE_POST_H
#define MFS_STORE_POST_H

#include <poll.h>

#include "store/internal.h"

struct mfs_post_entry {
    struct mfs_post_entry *next;
    size_t len;
    bool idempotent;
    unsigned refusals; /* by a fence */
    char word[16];     /* the command, for messages */
    char bytes[];
};

/* Guarded by `lock`, but that only the background thread changes `conn`. */
struct mfs_post_lane {
    pthread_mutex_t lock;
    struct mfs_channel *conn;
    bool broken;  /* conn is to be replaced */
    bool leaving; /* the same, but once all that was sent is answered; nothing more is sent */
    struct mfs_post_entry *head, *unsent, *tail;
    struct mfs_post_entry *refused; /* the last of those at the head that a fence refused */
    size_t offset;                  /* bytes of `unsent` already sent */
    size_t bytes;
    uint64_t posted, answered; /* commands ever */
    int64_t progress;          /* when something was last answered, or queued when nothing was */
    int64_t failing, next_try; /* since when, and when to connect again; 0: not failing */
    uint64_t tried;            /* the address' generation at the last attempt */
    int64_t held;              /* since when a fence has refused the head; 0: it has not */
    bool fruitless;            /* nothing was answered since it was connected */
};

struct mfs_post {
    struct mfs_store *store;
    struct mfs_post_lane *lane; /* nparts */

    /* The background thread's. */
    struct pollfd *fds; /* nparts */
    uint32_t *parts;    /* whose they are */

    pthread_mutex_t lock; /* guards what follows; innermost */
    pthread_cond_t work;  /* the thread has something to do */
    pthread_cond_t done;  /* commands were answered or dropped */
    pthread_t thread;
    bool started, stop;
    uint64_t pending; /* in all lanes */
    int64_t hurried;  /* until when */
};

struct mfs_post_entry *mfs_post_entry(const struct mfs_cmd *cmd); /* NULL: ENOMEM */

/* All below: the lane's lock is held, and nothing waits. */
void mfs_post_append(struct mfs_post_lane *lane, struct mfs_post_entry *e);

/* Moves the lane on: sends, and receives when asked to. */
void mfs_post_service(struct mfs_post *post, uint32_t part, bool receive);

/* The lane's connection failed and is to be replaced. */
void mfs_post_broken(struct mfs_post *post, uint32_t part, int rc);

/* Whether a command has been sent and not been answered. */
bool mfs_post_unanswered(const struct mfs_post_lane *lane);

/* Before a new connection: drops what may have been executed and must not be twice, and, when
 * `all`, the rest as well. */
void mfs_post_rewind(struct mfs_post *post, uint32_t part, bool all);

#endif
