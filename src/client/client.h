/* A client of a running deployment, assembled: the control connection to lm (or cm), the store, the
 * file system on it, and the search for what other clients left. The mount, the tools and programs
 * without a mount are made of it; it knows no kernel.
 *
 *   mfs_client_create       control, which brings the first table; store; vfs if it is asked for
 *   mfs_client_start        failovers are reported to the vfs, remains of other clients are removed
 *   mfs_client_ending       what is still to be written is waited for no longer than
 * mfs_store_ending says mfs_client_stop_waiting no call waits for another client any more, no
 * failover is reported mfs_client_destroy      what is dirty goes out; the reverse of create
 *
 * Between create and start the caller sets what the vfs calls back (vfs/vfs.h). */
#ifndef MFS_CLIENT_CLIENT_H
#define MFS_CLIENT_CLIENT_H

#include <stdint.h>

#include "args/paths.h"
#include "base/err.h"
#include "proto/messages.h"

struct mfs_client;
struct mfs_store;
struct mfs_table;
struct mfs_vfs;
struct mfs_vfs_opts;

struct mfs_client_opts {
    const struct mfs_paths *paths; /* of the deployment; must outlive the client */
    const char *lm;    /* the Local Manager's socket; NULL: that of node 0 in the state directory */
    const char *cm;    /* "HOST:PORT" of cm, instead of an lm; NULL: none */
    const char *label; /* by which lm knows the client: the mount's path, or a command's name; must
                        * outlive it, too */
    uint32_t instance; /* tells the clients of this process apart; 0: it has no other */
    int64_t table_wait; /* ns to wait for the first table */
    int64_t io_timeout; /* these two: see store/store.h */
    int64_t full_wait;
    const struct mfs_vfs_opts *vfs; /* NULL: no file system, only the store */
    struct mfs_metrics *metrics;    /* figures for lm to know, which the store registers its own
                                     * with; must outlive the client. NULL: none */
};

/* Blocks until there is a partition table and, with a vfs, a session. 0, or a negative errno with
 * the reason. */
int mfs_client_create(struct mfs_client **client, const struct mfs_client_opts *opts,
                      struct mfs_err *err);
void mfs_client_destroy(struct mfs_client *client); /* no call may be under way; takes NULL */

/* With a vfs only. `memory`: bytes that a search for what other clients left may take; 0: any. */
int mfs_client_start(struct mfs_client *client, uint64_t memory, struct mfs_err *err);
void mfs_client_ending(struct mfs_client *client);
void mfs_client_stop_waiting(struct mfs_client *client);

/* Tells lm the client's session, and that it serves, now and after each reconnect. */
void mfs_client_ready(struct mfs_client *client);

/* Asks the Local Manager, or cm where there is none, what cm knows (MFS_MSG_CLIENTS, …_EVENTS); as
 * mfs_control_ask. */
int mfs_client_ask(struct mfs_client *client, enum mfs_msg type, int64_t ns,
                   void (*take)(void *arg, const void *reply), void *arg);

/* The Local Manager is told now and then what requests are of, as `hot` says: mfs_control_on_hot.
 * Until the client's end. */
void mfs_client_on_hot(struct mfs_client *client, bool (*hot)(void *arg, struct mfs_hot *to),
                       void *arg);

struct mfs_store *mfs_client_store(struct mfs_client *client);
struct mfs_vfs *mfs_client_vfs(struct mfs_client *client);     /* NULL: it has none */
struct mfs_table *mfs_client_table(struct mfs_client *client); /* a copy to free; NULL: ENOMEM */

#endif
