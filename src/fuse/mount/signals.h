/* A thread that waits for signals: SIGTERM and SIGINT end the mount, SIGHUP has the log opened anew
 * (and ends a mount that has no log file), SIGUSR1 logs statistics. It also waits for the mount's
 * first answer and then tells the process that waits for that. */
#ifndef MFS_FUSE_MOUNT_SIGNALS_H
#define MFS_FUSE_MOUNT_SIGNALS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fuse/mount/session.h"

struct mfs_signals {
    struct mfs_fuse *m;
    int channel; /* see fuse/mount/daemon.h */
    pthread_t thread;
    atomic_bool stop; /* requests are no longer served */
};

/* Until mfs_signals_start SIGHUP waits: logrotate may send it to a process with a
 * pid file and a log. */
void mfs_signals_block_hangup(void);
void mfs_signals_block(void); /* before any thread is started */
int mfs_signals_start(struct mfs_signals *s, struct mfs_fuse *m,
                      int channel); /* after its workers are made */
void mfs_signals_stop(struct mfs_signals *s);

#endif
