/* The operations, one file per kind of thing; each parses, calls the vfs and replies exactly once,
 * last, holding no lock. */
#ifndef MFS_FUSE_OPS_OPS_H
#define MFS_FUSE_OPS_OPS_H

#include "base/clock.h"
#include "fuse/mount/recaller.h"
#include "fuse/mount/session.h"

/* A time as libfuse takes it, of ns. */
#define MFS_OP_SECONDS(ns) ((double)(ns) / (double)MFS_SEC)

/* The mount that the request is for; counts the request, and forgets what its thread's last
 * look-up brought (fuse/kernel/lookup_attrs.h). */
struct mfs_fuse *mfs_op_begin(fuse_req_t req, enum mfs_fuse_op op);
struct mfs_fuse *mfs_op_count(fuse_req_t req, enum mfs_fuse_op op); /* only counts */
/* Has a request counted that is about to be answered by another thread than that which served it.
 */
void mfs_op_answer_detached(fuse_req_t req, struct mfs_request *timing, int rc);

/* rc 0 replies with the attributes, else with the error. `name` in `parent` is where they were
 * found, `shown` what mfs_op_shows has said of them.
 */
void mfs_reply_entry(fuse_req_t req, int rc, fuse_ino_t parent, const char *name,
                     const struct mfs_attr *attr, bool shown);
void mfs_reply_attr(fuse_req_t req, int rc, fuse_ino_t nodeid, const struct mfs_attr *attr);
/* The kernel is to use them once. */
void mfs_reply_unsure(fuse_req_t req, const struct mfs_attr *attr);
/* Likewise to GETATTR: the kernel may use the attributes until they are recalled, if that is
 * possible; then *attr are those of now. */
void mfs_reply_known(fuse_req_t req, int rc, fuse_ino_t nodeid, struct mfs_attr *attr);

/* May the kernel use the file's attributes until they are recalled (fuse/kernel/recalls.h)? Then
 * *attr are those of now. Of an answer to LOOKUP, or to CREATE that has made the file, after which
 * mfs_op_shown has to follow. */
bool mfs_op_shows(fuse_req_t req, struct mfs_attr *attr, bool create);
void mfs_op_shown(struct mfs_fuse *m, pid_t thread, uint64_t ino);

void mfs_fill_entry(struct mfs_fuse *m, fuse_ino_t parent, const char *name,
                    const struct mfs_attr *attr, struct fuse_entry_param *e);

/* This mount has changed something of the directory, and replies next. What the kernel was told of
 * its attributes before, perhaps in an answer that it has not looked at yet, does not count. */
void mfs_op_dir_changed(struct mfs_fuse *m, fuse_ino_t nodeid);
/* The same of its names, which the kernel knows by the nodeid of the request. By an alias
 * (fuse/kernel/nodeids.h) it may go on to use what a listing has shown it: waits for the end of
 * that, a little more than a second at most. */
void mfs_op_names_changed(struct mfs_fuse *m, fuse_ino_t nodeid);

/* -errno or 0. */
void mfs_reply_rc(fuse_req_t req, int rc);

/* The credentials of the caller. in_group is true: where the kernel has not looked itself,
 * mfs_op_in_group does. */
struct mfs_cred mfs_op_cred(fuse_req_t req);
bool mfs_op_in_group(fuse_req_t req, gid_t gid);
#define MFS_OP_GROUPS 1024 /* of a process, that are looked at */

/* What the request (OPEN, CREATE, WRITE, SETATTR) takes away of a file whose content it changes:
 * MFS_DROP_*. Of others the kernel does not say, and the process is looked at. */
uint32_t mfs_op_drop(fuse_req_t req);
uint32_t mfs_op_drop_unsaid(fuse_req_t req);

/* The kernel lets a process do what only an owner may by what it knows of the inode. Of an open
 * file that may be from before another mount's chown: so the home looks again, at this; and if that
 * refuses, here whether the process may without being the owner (capabilities(7)). */
struct mfs_owned mfs_op_owned(fuse_req_t req);
bool mfs_op_may_as_owner(fuse_req_t req, int capability, const struct mfs_attr *attr);

/* A buffer of this thread's own for a reply, good until its next call; NULL: ENOMEM. */
void *mfs_op_buffer(size_t size);

static inline struct mfs_file *mfs_op_file(const struct fuse_file_info *fi)
{
    return (struct mfs_file *)(uintptr_t)fi->fh;
}

/* mfs_op_lookup and so on: what struct fuse_lowlevel_ops says of the member of that name. */
#define OP(name, NAME, opcode, waits)                                                              \
    typeof(*((struct fuse_lowlevel_ops *)NULL)->name) mfs_op_##name;
#include "fuse/ops.def"
#undef OP
void mfs_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups);
void mfs_op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);

#endif
