/* What cm serves over HTTP where `cm start --metrics` says: /metrics, and /targets, which
 * Prometheus asks where the nodes' own figures are. */
#ifndef MFS_CM_LIFE_SERVE_H
#define MFS_CM_LIFE_SERVE_H

#include "cm/nodes/control.h"
#include "http/exposition.h"

/* During a start it fails when that is not possible, with the reason; a cm that goes on tries again
 * each 5 s. Where the address is not one of this machine, as cm began elsewhere, it is that of cm.
 * Writes the token's file. 0 or a negative errno. */
int mfs_serve_begin(struct mfs_cm *cm, struct mfs_err *err);
void mfs_serve_end(struct mfs_cm *cm);

/* exposition.c: all of /metrics. 0 or -ENOMEM. */
int mfs_serve_figures(const struct mfs_cm *cm, struct mfs_exposition *e);

#endif
