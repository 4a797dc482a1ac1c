/* Which deployment a command is for, and where that keeps what: its state directory.
 * docs/design/protocol.md lists the files. */
#ifndef MFS_ARGS_PATHS_H
#define MFS_ARGS_PATHS_H

#include <limits.h>
#include <stdint.h>

#include "args/conf.h"
#include "base/err.h"

#define MFS_STATE_DIR_ROOT "/run/memefs"
#define MFS_STATE_DIR_USER                                                                         \
    "/dev/shm/memefs"              /* -UID, where there is no directory for runtime files */
#define MFS_DEPLOYMENT_NAME_MAX 64 /* with its NUL */

extern const struct mfs_conf_option mfs_deployment_options[]; /* --name and --state-dir */

struct mfs_paths {
    char name[MFS_DEPLOYMENT_NAME_MAX];
    char dir[PATH_MAX]; /* absolute */
    char secret[PATH_MAX], state[PATH_MAX], address[PATH_MAX], pid[PATH_MAX], log[PATH_MAX];
    char events[PATH_MAX], old_events[PATH_MAX]; /* the file that is written, and the one before */
    char history[PATH_MAX];                      /* what it has been like (cm/history) */
    char token[PATH_MAX];       /* that opens what is served over HTTP (http/httpd.h) */
    char token_write[PATH_MAX]; /* … and that with which the page changes something */
    char failure[PATH_MAX];     /* why the daemon gave up a start, for `cm start` to print */
};

/* From mfs_deployment_options. 0, or -EINVAL or -ENAMETOOLONG with the reason. The
 * default is root's /run/memefs/NAME; for another user the place where a deployment of that name
 * is, else the first that there is, of $XDG_RUNTIME_DIR/memefs/NAME, /run/user/UID/memefs/NAME and
 * /dev/shm/memefs-UID/NAME. */
int mfs_paths_init(struct mfs_paths *p, const struct mfs_conf *conf, struct mfs_err *err);

/* The same from a name and a directory; NULL: the default one. */
int mfs_paths_choose(struct mfs_paths *p, const char *name, const char *dir, struct mfs_err *err);

/* The paths of each deployment of this user in the places that are its default, in no order: of
 * directories of theirs, by their names, whatever is in them. Stops at the first return that is not
 * 0, and returns it. */
int mfs_paths_each(int (*each)(void *arg, struct mfs_paths *p), void *arg);

/* Opens the directory if only its user and root have a hand in it (base/trusted_dir.h, whose flags
 * these are); all paths are without symbolic links from then on, also with -ENOENT. A descriptor to
 * close, or a negative errno with the reason. */
int mfs_paths_open(struct mfs_paths *p, unsigned flags, struct mfs_err *err);

/* The same, only to find out whether it may be relied on; what is not there may. */
int mfs_paths_trust(struct mfs_paths *p, struct mfs_err *err);

/* Can a client of it read its secret? 0, or a negative errno with what to do. */
int mfs_paths_check(const struct mfs_paths *p, struct mfs_err *err);

/* DIR/start-ID.WHAT: of the command that cm runs to start that node's Local Manager elsewhere. 0 or
 * -ENAMETOOLONG. */
int mfs_paths_start(const struct mfs_paths *p, uint32_t node, const char *what, char out[PATH_MAX]);

/* DIR/node-ID/FILE, or DIR/node-ID for file "". 0 or -ENAMETOOLONG. */
int mfs_paths_node(const struct mfs_paths *p, uint32_t node, const char *file, char out[PATH_MAX]);

#endif
