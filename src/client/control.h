/* The line to the Local Manager (or cm): a thread that brings partition tables and connects again
 * for ever. The mount goes on without it, with the table it has. */
#ifndef MFS_CLIENT_CONTROL_H
#define MFS_CLIENT_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cluster/table.h"
#include "cluster/trust.h"
#include "proto/messages.h"

struct mfs_control;

/* Called with each new table but the first, which it takes over; returns once every operation that
 * starts from then on uses it. Control thread; must not block for long. */
typedef void mfs_control_table_fn(void *arg, struct mfs_table *table);

/* Called when cm was certainly there at mono time `at` (cluster/trust.h), in order with the tables;
 * these nodes were lost then, or after it. Control thread. */
typedef void mfs_control_contact_fn(void *arg, int64_t at, const struct mfs_lost_node *lost,
                                    size_t n);

struct mfs_control_config {
    const char *address;         /* "unix:/path/lm.sock" or "HOST:PORT" */
    const char *secret;          /* path */
    const char *mount;           /* path of the mount, which lm knows this client by */
    uint32_t instance;           /* of this process' clients; 0: its only one */
    struct mfs_metrics *metrics; /* sent to lm now and then, when they have changed; NULL: none */
};

/* Starts the thread. What config points to must outlive it. */
int mfs_control_create(struct mfs_control **c, const struct mfs_control_config *config,
                       struct mfs_err *err);
void mfs_control_destroy(struct mfs_control *c); /* takes NULL */

/* The first table, the caller's to free; -ETIMEDOUT after ns, with why the other end is not there
 * or refuses this client. */
int mfs_control_wait_table(struct mfs_control *c, int64_t ns, struct mfs_table **table,
                           struct mfs_err *err);

/* From now on tables go to fn, newer ones that came meanwhile included. With `contact` (may be
 * NULL) the other end is asked for cm again and again, in a deployment that has replicas. */
void mfs_control_on_table(struct mfs_control *c, mfs_control_table_fn *fn,
                          mfs_control_contact_fn *contact, void *arg);

/* Asks the other end, and calls `take` (control thread) with the reply, which is valid until its
 * return, before this returns. Blocks for ns at most; not from the control thread. 0 or a negative
 * errno: -ETIMEDOUT, -ENOTCONN, … */
int mfs_control_ask(struct mfs_control *c, enum mfs_msg type, const void *body, int64_t ns,
                    void (*take)(void *arg, const void *reply), void *arg);

/* Whenever figures have gone to the Local Manager it is told what `hot` (control thread) says
 * besides: what the client's requests are of, in *to, which the control clears. False: nothing. */
typedef bool mfs_control_hot_fn(void *arg, struct mfs_hot *to);
void mfs_control_on_hot(struct mfs_control *c, mfs_control_hot_fn *hot, void *arg);

/* Tells the other end the client's session and that the mount answers, now and after each
 * reconnect. */
void mfs_control_ready(struct mfs_control *c, uint64_t session);

#endif
