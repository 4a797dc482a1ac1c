/* What a mount tells of itself, in files of its own: /.memefs, which no listing shows.
 *
 *   stats, nodes   figures; what this client has seen of nodes and partitions     everybody
 *   clients        all mounts of the deployment                                   the mount's owner
 *   events         what has happened in it                                        and root, as of
 *   hot            files, directories and processes with the most requests
 *   slow           requests that took long, and those that have not ended yet     the next
 *   trace          a line for each request, while somebody reads
 *
 * each also as NAME.json. Each open of the former is one state of things. Requests for them are
 * answered here, from the raw message, and never reach libfuse or the vfs: what is not listed in
 * serve.c is refused. Their inode numbers are of a home that no deployment has. With nostats there
 * are no such files; slow requests are logged all the same. */
#ifndef MFS_FUSE_INSIDE_INSIDE_H
#define MFS_FUSE_INSIDE_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

struct mfs_fuse;
struct mfs_inside;

struct mfs_inside_opts {
    const char *path; /* of the mount; must stay */
    bool files;       /* are there files? */
    int64_t slow;     /* ns; a request that takes so long is logged; 0: none is */
};

/* m->inside, when m has its client's vfs and nodeids, and before the first request. 0 or -errno. */
int mfs_inside_create(struct mfs_fuse *m, const struct mfs_inside_opts *opts);
/* Readers of `trace` get its end. From now on nobody looks at requests that are under way. */
void mfs_inside_stop(struct mfs_fuse *m);    /* takes one without */
void mfs_inside_destroy(struct mfs_fuse *m); /* no request comes any more; likewise */

/* Does the name in the directory of that nodeid stand for them? */
bool mfs_inside_names(uint64_t parent, const char *name);

#endif
