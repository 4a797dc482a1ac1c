/* Inside src/wire: what connections and listeners know of each other. */
#ifndef MFS_WIRE_CONN_IMPL_H
#define MFS_WIRE_CONN_IMPL_H

#include "wire/conn.h"

/* A listener or a session, told about its connections before the service is: `why` is a sentence.
 */
struct mfs_conn_owner {
    void (*authenticated)(struct mfs_conn_owner *o, struct mfs_conn *c);
    void (*closed)(struct mfs_conn_owner *o, struct mfs_conn *c, bool was_authenticated,
                   const char *why);
};

/* Takes over an accepted descriptor (closes it also on failure). NULL: ENOMEM. */
struct mfs_conn *mfs_conn_accepted(struct mfs_loop *loop, int fd, const char *peer,
                                   const struct mfs_secret *secret,
                                   const struct mfs_service *service, void *arg,
                                   struct mfs_conn_owner *owner);

void mfs_conn_set_owner(struct mfs_conn *c, struct mfs_conn_owner *owner);

#endif
