/* An uplink: the connection to the manager above, lm → cm and client → lm. It is made again, after
 * 50 ms, doubling up to 2 s, whenever it is lost, until it is destroyed.
 *
 * The file system client's control thread, for example:
 *
 *     static void hello_done(void *arg, const struct mfs_err *err, const void *reply) {…log err…}
 *
 *     static void up(struct mfs_conn *c, void *arg)          // each time, also after a reconnect
 *     {
 *         struct mfs_msg_client_hello m = {.version = MFS_PROTOCOL_VERSION, .pid = getpid(),
 *                                          .epoch = epoch_held};
 *         mfs_text_copy(m.mount, sizeof m.mount, path);
 *         mfs_conn_request(c, MFS_MSG_CLIENT_HELLO, &m, 5 * MFS_SEC, hello_done, arg);
 *     }
 *
 *     static void table(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
 *     {
 *         const struct mfs_msg_table *m = body;
 *         … copy = mfs_table_dup(m->table); give it to the store …
 *         mfs_conn_reply(c, MFS_MSG_TABLE, id, &(struct mfs_msg_epoch){.epoch = copy->epoch});
 *     }
 *
 *     static const struct mfs_handler handlers[] = {{MFS_MSG_TABLE, table}, {0, NULL}};
 *     static const struct mfs_service service = {handlers, up, NULL};
 *
 *     loop = mfs_loop_create();
 *     uplink = mfs_uplink_create(loop, "unix:/run/…/lm.sock", &secret, "client", &service, arg,
 *                                  &err);
 *     mfs_loop_run(loop);   // in its thread; mfs_loop_stop from another ends it
 *
 * and, once mounted, from any thread, mfs_loop_post a function that sends MFS_MSG_CLIENT_READY
 * over mfs_uplink_conn (when NULL, `up` does it after the next hello). */
#ifndef MFS_NET_UPLINK_H
#define MFS_NET_UPLINK_H

#include "net/conn.h"

struct mfs_uplink;

/* Starts connecting. The address may also be "file:/path": a file of one line with the address,
 * read before each attempt, for a listener that may come back elsewhere (lm: cm.addr). Loop thread
 * (or before it runs). service->down is called for connections that were up only; failing to
 * connect is logged once until it succeeds again. NULL: *err. */
struct mfs_uplink *mfs_uplink_create(struct mfs_loop *loop, const char *address,
                                     const struct mfs_secret *secret, const char *role,
                                     const struct mfs_service *service, void *arg,
                                     struct mfs_err *err);
/* From now on that address, of no file: the connection that there is is closed, with
 * service->down. 0 or -ENAMETOOLONG, and nothing has changed. */
int mfs_uplink_redirect(struct mfs_uplink *u, const char *address);
/* Closes the connection that is up, with service->down, as its peer does not answer: it is made
 * again. */
void mfs_uplink_again(struct mfs_uplink *u);
void mfs_uplink_destroy(struct mfs_uplink *u); /* before the loop. Takes NULL */

/* Whenever connecting fails, `failed` is called with the reason and the service's arg, on the
 * loop's thread. */
void mfs_uplink_on_failure(struct mfs_uplink *u, void (*failed)(void *arg, const char *why));

/* Where it leads to, as last given. */
const char *mfs_uplink_address(const struct mfs_uplink *u);

/* The connection while it is up, else NULL. */
struct mfs_conn *mfs_uplink_conn(const struct mfs_uplink *u);

#endif
