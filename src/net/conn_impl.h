/* Inside src/net: what the parts of connections, listeners and uplinks know of each other. */
#ifndef MFS_NET_CONN_IMPL_H
#define MFS_NET_CONN_IMPL_H

#include "net/conn.h"

/* A listener or an uplink, told about its connections before the service is: `why` is a sentence.
 */
struct mfs_conn_owner {
    void (*authenticated)(struct mfs_conn_owner *o, struct mfs_conn *c);
    void (*closed)(struct mfs_conn_owner *o, struct mfs_conn *c, bool was_authenticated,
                   const char *why);
};

enum mfs_conn_state {
    MFS_CONN_CONNECTING,
    MFS_CONN_PROVING,
    MFS_CONN_UP,
    MFS_CONN_FINISHING,
    MFS_CONN_CLOSED
};

struct mfs_conn_pending {
    struct mfs_conn_pending *next;
    struct mfs_conn *conn;
    uint64_t id;
    enum mfs_msg type;
    struct mfs_timer *timer;
    void (*done)(void *arg, const struct mfs_err *err, const void *reply);
    void *arg;
};

struct mfs_conn {
    enum mfs_conn_state state;
    unsigned refs; /* one is the connection's own until it is closed */
    int fd;
    struct mfs_loop *loop;
    struct mfs_watch *watch;
    uint32_t events;
    struct mfs_timer *deadline; /* of CONNECTING and PROVING together, and of FINISHING */
    struct mfs_err why;         /* of a failure that was met before the loop could tell */
    struct mfs_auth auth;
    struct mfs_cipher *sends, *receives; /* from UP on */
    struct mfs_buf in, out;
    const struct mfs_service *service;
    void *arg, *data;
    struct mfs_conn_owner *owner;
    uint64_t last_id;
    struct mfs_conn_pending *pending;
    char peer[MFS_ADDRESS_MAX];
};

/* conn.c, for the others */
struct mfs_conn *mfs_conn_new(struct mfs_loop *loop, const struct mfs_service *service, void *arg,
                              const char *peer); /* NULL: ENOMEM */
void mfs_conn_ready(void *arg, uint32_t events); /* of the watch; arg is the connection */
void mfs_conn_flush(struct mfs_conn *c);
int mfs_conn_proved(struct mfs_conn *c); /* both ends have: it is UP now. 0 or a negative errno */
void mfs_conn_drop(struct mfs_conn *c, const char *why); /* mfs_conn_close, with a reason */
void mfs_conn_lost(struct mfs_conn *c, const struct mfs_err *why); /* the same, and tells `down` */

/* conn_messages.c, for conn.c: takes a frame's body. 0 or a negative errno: hang up. */
int mfs_conn_take(struct mfs_conn *c, char *body, size_t len, struct mfs_err *err);

/* conn_open.c */

/* Takes over an accepted descriptor (closes it also on failure). NULL: ENOMEM. */
struct mfs_conn *mfs_conn_accepted(struct mfs_loop *loop, int fd, const char *peer,
                                   const struct mfs_secret *secret,
                                   const struct mfs_service *service, void *arg,
                                   struct mfs_conn_owner *owner);

void mfs_conn_set_owner(struct mfs_conn *c, struct mfs_conn_owner *owner);

#endif
