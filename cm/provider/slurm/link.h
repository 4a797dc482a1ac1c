/* Requests to slurmrestd: finds out which version of the API it speaks, has the token with each,
 * and reads it anew where it is refused. The loop's thread. */
#ifndef MFS_CM_PROVIDER_SLURM_LINK_H
#define MFS_CM_PROVIDER_SLURM_LINK_H

#include "base/buf.h"
#include "base/err.h"
#include "net/loop.h"

struct mfs_slurm_link;
struct mfs_slurm_call; /* a request under way */

/* `url` is http://HOST:PORT, https://… or unix:/PATH; `token_file` may be NULL. NULL with the
 * reason. */
struct mfs_slurm_link *mfs_slurm_link_create(struct mfs_loop *loop, const char *url,
                                             const char *token_file, struct mfs_err *err);
void mfs_slurm_link_destroy(struct mfs_slurm_link *l); /* drops its calls. Takes NULL */

int mfs_slurm_link_version(const struct mfs_slurm_link *l); /* 45: v0.0.45; 0: not known */

/* Is it such a URL? 0, or -EINVAL with the reason. Pure. */
int mfs_slurm_link_check(const char *url, struct mfs_err *err);

struct mfs_slurm_request {
    const char *method;
    const char *path; /* below /slurm/vVERSION/ */
    int64_t limit;    /* ns, for all that it takes */
    /* Appends the body for that version; NULL: there is none. 0 or a negative errno. */
    int (*body)(void *arg, int version, struct mfs_buf *out);
};

/* Tells the end, once and from the loop, unless the call is dropped. `why` is NULL, and the text is
 * an answer in JSON, of whatever status; or there is none. */
typedef void mfs_slurm_link_done(void *arg, const struct mfs_err *why, const char *text,
                                 size_t len);

/* `arg` is for `done` and for `body`. NULL with the reason. */
struct mfs_slurm_call *mfs_slurm_link_begin(struct mfs_slurm_link *l,
                                            const struct mfs_slurm_request *r,
                                            mfs_slurm_link_done *done, void *arg,
                                            struct mfs_err *err);
void mfs_slurm_link_drop(struct mfs_slurm_call *c); /* takes NULL; not after `done` */

#endif
