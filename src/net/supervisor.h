/* Tells the service manager that started a daemon (systemd, Type=notify) how it is: datagrams to
 * the socket that the environment names, as sd_notify(3) describes. The protocol is stable and made
 * to be spoken without libsystemd, which would be a library more on every node for one call of
 * send(2).
 *
 * Without such an environment nothing is sent, and no function fails: a daemon works without it.
 * All of it is called from one thread. */
#ifndef MFS_NET_SUPERVISOR_H
#define MFS_NET_SUPERVISOR_H

#include "net/loop.h"

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no process
 * that the daemon starts speaks for it. To be called before others are started. */
void mfs_supervisor_init(void);

/* The daemon serves. If the service manager has a watchdog, the loop says from now on that it is
 * alive, twice as often as is asked for. */
void mfs_supervisor_ready(struct mfs_loop *loop);

void mfs_supervisor_stopping(void); /* the daemon has begun to end */

#endif
