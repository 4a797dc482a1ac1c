/* Inside the list of clients: what its parts share. */
#ifndef MFS_LM_MOUNT_CLIENTS_IMPL_H
#define MFS_LM_MOUNT_CLIENTS_IMPL_H

#include "lm/mount/clients.h"

struct mfs_client_entry {
    struct mfs_client info;
    bool leaves;   /* its connection does not come back */
    uint64_t id;   /* never given twice */
    uint64_t sent; /* epoch of the newest table on this connection; 0: none */
    uint32_t
        claimed_pid; /* its pid as it says, in a PID name space of its own maybe: for logs alone */
    struct mfs_clients *owner;
    struct mfs_conn *conn;   /* NULL while not connected */
    struct mfs_watch *watch; /* NULL when the process can't be watched (it is not seen here) */
    struct mfs_metric_snapshot figures; /* the latest that it has sent, … */
    int64_t figures_at;                 /* … mono; 0: none yet */
    struct mfs_hot hot;                 /* likewise */
    struct mfs_client_entry *next;
};

struct mfs_clients {
    struct mfs_loop *loop;
    struct mfs_listener *listener;
    const struct mfs_clients_hooks *hooks;
    void *arg;
    const struct mfs_table *table;
    struct mfs_metrics *metrics; /* our own; NULL: none */
    struct mfs_client_entry *entries;
    uint64_t last_id;
};

/* clients_figures.c: for the service */
void mfs_clients_on_metrics(struct mfs_conn *conn, uint64_t id, const void *body, void *arg);
void mfs_clients_on_hot(struct mfs_conn *conn, uint64_t id, const void *body, void *arg);
void mfs_clients_on_stats(struct mfs_conn *conn, uint64_t id, const void *body, void *arg);

#endif
