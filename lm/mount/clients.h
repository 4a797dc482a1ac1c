/* The file system clients of a node: which are connected to lm.sock, which table each holds, and
 * when one dies. All of it belongs to the loop's thread.
 *
 * A client is a process, or one of several in a process that uses libmemefs; its connection may
 * break and come back (this daemon may be a new one), so death means the end of the process, which
 * the kernel tells; only a program without a mount says itself which of its connections do not come
 * back. The kernel tells, too, which process that is:
 * what a client in a PID name space of its own takes for its pid is another process' here. One
 * whose process is not seen here at all is listed as long as it is connected, and never gone. */
#ifndef MFS_LM_MOUNT_CLIENTS_H
#define MFS_LM_MOUNT_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/proc.h"
#include "net/conn.h"
#include "proto/messages.h"

struct mfs_clients;

struct mfs_client {
    struct mfs_proc proc;           /* pid 0: not seen from here */
    char mount[MFS_PATH_MAX];       /* with an instance, or without a slash before it: the name
                                     * of a program without a mount; "" when it did not say */
    char session[MFS_SESSION_TEXT]; /* likewise */
    uint64_t epoch;                 /* of the table it has acknowledged */
    bool connected, ready;          /* ready: its mount answers */
    uint32_t uid;                   /* of the process; 0, too, when it is not seen from here */
    char version[32];               /* of MemEFS, by its own word, as is the next */
    uint64_t since;                 /* when it began, seconds since 1970; 0: it did not say */
    uint32_t instance;              /* which of the connections of a program without a mount */
};

/* May there be a mount of it? Labels of programs may be anything. */
static inline bool mfs_client_may_mount(const struct mfs_client *c)
{
    return c->instance == 0 && (c->mount[0] == '\0' || c->mount[0] == '/');
}

/* `client` is valid until the return. */
struct mfs_clients_hooks {
    void (*ready)(void *arg, const struct mfs_client *client);
    /* The process has ended and is no longer listed; status is waitpid's, or -1. */
    void (*gone)(void *arg, const struct mfs_client *client, int status);
    void (*changed)(void *arg); /* what the state file should hold is another */
    /* mono: when cm was certainly there for the last time, by what has come since; 0: never. Puts
     * the nodes that were lost then into the answer, where they stay this side's. */
    int64_t (*last_heartbeat)(void *arg, struct mfs_msg_beat_reply *m);
    /* A client asks what cm knows (CLIENTS, EVENTS): answers, at once or later. */
    void (*ask)(void *arg, enum mfs_msg type, struct mfs_conn *conn, uint64_t id);
};

struct mfs_metrics;

/* Listens at `address` ("unix:/path"). secret, metrics, hooks and arg must outlive it.
 * `metrics` (may be NULL) are this program's, told beside the clients'. NULL: *err. */
struct mfs_clients *mfs_clients_create(struct mfs_loop *loop, const char *address,
                                       const struct mfs_secret *secret, struct mfs_metrics *metrics,
                                       const struct mfs_clients_hooks *hooks, void *arg,
                                       struct mfs_err *err);
/* No client connects any more, and none of the clients is known. Ends no process; may be called
 * twice.
 */
void mfs_clients_close(struct mfs_clients *c);
void mfs_clients_destroy(struct mfs_clients *c); /* ends no process. Takes NULL */

/* Lists a process that has not connected (yet): one just started, or one from the state file. Of
 * one that is dead already, `gone` is called later. 0 or -ENOMEM. */
int mfs_clients_expect(struct mfs_clients *c, const struct mfs_client *client);

/* Gives the table (borrowed until the next push or destroy) to every connected client, as a change
 * where it has `before` (NULL: none), and, later, to each that says hello with an older one. `done`
 * (may be NULL) is called once: when all have acknowledged it, or with an error that names those
 * that did not within 5 s; never before the return. 0, or -ENOMEM without a call of done. */
int mfs_clients_push(struct mfs_clients *c, const struct mfs_table *table,
                     const struct mfs_table *before,
                     void (*done)(void *arg, const struct mfs_err *err), void *arg);

/* Shows each with the latest figures that it has told (NULL: none yet) and what its requests are
 * of, which stay the list's, and how long ago that was, ns. */
typedef void mfs_clients_see(void *arg, const struct mfs_client *client,
                             const struct mfs_metric_snapshot *figures, const struct mfs_hot *hot,
                             int64_t age);
void mfs_clients_each(const struct mfs_clients *c, mfs_clients_see *see, void *arg);

/* A copy of the list, for the caller to free; *n is their number. NULL when none or ENOMEM. */
struct mfs_client *mfs_clients_list(const struct mfs_clients *c, size_t *n);

#endif
