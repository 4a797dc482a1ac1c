/* The mount that cm wants on this node, and the client process behind it.
 *
 *     IDLE → PREPARING → STARTING → PROBING → UP
 *               ↑            │         │      │  client died
 *            WAITING ←───────┴─(later)─┴──────┘
 *
 * and from anywhere through ENDING back to IDLE. The first attempt reports to the caller and gives
 * up on failure; once it was up, a client that dies is started again after a pause that doubles
 * from 1 s to 30 s. One that ends by itself with status 0, or unseen and without its mount, was
 * unmounted on purpose.
 *
 * Belongs to the loop's thread; what may hang runs in a worker. */
#ifndef MFS_LM_MOUNT_MOUNTER_H
#define MFS_LM_MOUNT_MOUNTER_H

#include <stdbool.h>

#include "base/err.h"
#include "lm/mount/clients.h"
#include "lm/jobs/worker.h"
#include "net/loop.h"

struct mfs_mounter;

struct mfs_mounter_hooks {
    void (*event)(void *arg, const char *what, const char *text);
    void (*changed)(void *arg);    /* what the state file should hold */
    uint64_t (*memory)(void *arg); /* bytes that the client may take; 0: its own default */
    int (*started)(void *arg, const struct mfs_client *client); /* watch it: mfs_clients_expect */
};

struct mfs_mounter_opts {
    struct mfs_loop *loop;
    struct mfs_worker *worker;
    const char *name, *state_dir; /* of the deployment, borrowed */
    const char *dir;        /* of the node: client.log, client.pid, mount; absolute, borrowed */
    const char *address;    /* of lm.sock, "unix:/…", borrowed */
    const char *log_format; /* of clients (base/log.h), borrowed; NULL: their default */
    const struct mfs_mounter_hooks *hooks;
    void *arg;
};

typedef void mfs_mounter_done(void *arg, const struct mfs_err *err); /* err NULL: done */

struct mfs_mounter *mfs_mounter_create(const struct mfs_mounter_opts *opts); /* NULL: ENOMEM */

/* Ends nothing; only when idle or when the worker has been destroyed. Takes NULL. */
void mfs_mounter_destroy(struct mfs_mounter *m);

/* Mounts; `done` is called once, not before the return: when the mount answers, or with the reason
 * within some 40 s. The same path again is fine, also during an attempt (a new cm repeats what the
 * one before it had asked for: both get the answer), or when it was unmounted by hand and its
 * client is about to end; anything else while not idle is -EBUSY. */
void mfs_mounter_start(struct mfs_mounter *m, const char *path, const char *options,
                       mfs_mounter_done *done, void *arg);

/* Unmounts and ends the client, for good: within some 12 s. Fine when nothing is mounted, or when
 * that is already under way. */
void mfs_mounter_stop(struct mfs_mounter *m, mfs_mounter_done *done, void *arg);

/* Goes on with what an earlier Local Manager mounted or was about to (client's pid 0); the client,
 * which has been given to mfs_clients_expect, may be dead by now. */
void mfs_mounter_adopt(struct mfs_mounter *m, const char *path, const char *options,
                       const struct mfs_client *client);

/* When no earlier one is known, ends what it may have started all the same (client_proc.h). */
void mfs_mounter_end_unlisted(struct mfs_mounter *m);

/* From the hooks of mfs_clients; others' clients are ignored. gone tells whether it was ours. */
void mfs_mounter_ready(struct mfs_mounter *m, const struct mfs_client *client);
bool mfs_mounter_gone(struct mfs_mounter *m, const struct mfs_client *client, int status);

/* The process behind it (pid 0: none) and where the kernel has the mount. */
void mfs_mounter_client(const struct mfs_mounter *m, struct mfs_client *client);

const char *mfs_mounter_path(const struct mfs_mounter *m);    /* wanted, "" for none */
const char *mfs_mounter_options(const struct mfs_mounter *m); /* of it */
bool mfs_mounter_up(const struct mfs_mounter *m);

#endif
