/* Lists of hosts as Slurm writes them (scontrol(1), "show hostnames"): names with commas between
 * them, and numbers in brackets that stand for several: "tux[1-4,7],b2", "r[1-2]n[08-10]". Numbers
 * are padded with zeros as the first of their range is. Pure; not thread-safe for one list. */
#ifndef MFS_CM_PROVIDER_HOSTLIST_H
#define MFS_CM_PROVIDER_HOSTLIST_H

#include <stdint.h>

#include "base/err.h"

#define MFS_HOSTLIST_MOST 4096 /* hosts */
#define MFS_HOSTLIST_NAME 254  /* bytes of a name, with its NUL (RFC 1035) */

struct mfs_hostlist {
    uint32_t n;
    char **host; /* in the order of the text; one that is named twice stands there twice */
};

/* 0 or a negative errno with the reason; the list is then empty. */
int mfs_hostlist_parse(const char *text, struct mfs_hostlist *l, struct mfs_err *err);
void mfs_hostlist_clear(struct mfs_hostlist *l);

#endif
