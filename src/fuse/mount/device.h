/* What libfuse 3.14 does not hand on of the kernel's protocol, read and written at /dev/fuse
 * itself (linux/fuse.h): FUSE_NOTIFY_INC_EPOCH, FUSE_NOTIFY_STORE without content, and these flags
 * of the answer to INIT:
 *
 *   FUSE_PARALLEL_DIROPS      look-ups and listings of one directory do not wait for each other
 *   FUSE_HANDLE_KILLPRIV_V2   the kernel does not ask for security.capability before each write(2),
 *                             and leaves it to us to take set-user-ID, set-group-ID and
 *                             capabilities from a file whose content or owner changes
 *   FUSE_DIRECT_IO_ALLOW_MMAP files that bypass the kernel's pages may be mapped shared */
#ifndef MFS_FUSE_MOUNT_DEVICE_H
#define MFS_FUSE_MOUNT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "fuse/mount/session.h"
#include "fuse/mount/workers.h"

/* After the mount, before the first request: 0 or -errno. `kept`: bytes that a worker keeps of its
 * request buffer while it waits for the next one; the rest goes back to the system. */
int mfs_device_attach(struct fuse_session *se, size_t kept);

/* The requests of the device, served by libfuse; arg: the struct mfs_fuse. Those that may wait come
 * when the mount's mfs_admission admits them. */
extern const struct mfs_workers_source mfs_device_source;

/* What comes another way, from INIT's reply on, if m->uring is there and the kernel agrees
 * (fuse/uring/uring.h): the same for any thread, of a request that it has. arg: the struct
 * mfs_fuse. The request is changed. */
void mfs_device_serve(void *arg, char *request, size_t len);
bool mfs_device_may_wait(const char *request, size_t len); /* see fuse/kernel/admission.h */
enum mfs_workers_urgency mfs_device_urgency(void *arg, const char *request, size_t len);

/* The path to .memefs leads through the root, whose attributes the kernel asks for on the way. Does
 * their partition hang, and may the user read everything there? Then they are those that were told
 * last, for once: what a mount tells of partitions that hang must not wait for them. Any thread,
 * does not block. */
bool mfs_device_root_hangs(const struct mfs_fuse *m, uid_t uid);

/* An answer of ours, which begins with a struct fuse_out_header whose length is filled in here. To
 * a request that libfuse has not seen; any thread. */
void mfs_device_answer(struct mfs_fuse *m, struct iovec *iov, int count);

/* The kernel has the answer that the calling thread has just given, when this returns. To be called
 * where something else is done behind an answer that must not come before it. */
void mfs_device_flush(const struct mfs_fuse *m);

/* The name with which CREATE comes for TMPFILE, which libfuse 3.14 does not know: no file has it.
 */
#define MFS_DEVICE_TMPFILE "/"

/* Does the request that the calling thread serves (OPEN, CREATE, WRITE, SETATTR) want set-user-ID
 * and set-group-ID gone, as its caller may not keep them? */
bool mfs_device_kills(void);

/* The file that the calling thread's next reply, to OPEN or CREATE, opens bypasses the kernel's
 * pages: its writes below the end of the file need not wait for each other, as long as no process
 * has it open through pages (FOPEN_PARALLEL_DIRECT_WRITES; libfuse has a field for it since 3.15).
 */
void mfs_device_write_in_parallel(void);

/* Has the kernel left all that to us? Known after INIT. */
bool mfs_device_is_ours(void);

/* May files that bypass the kernel's pages (direct_io) be mapped shared? Known likewise. Not before
 * Linux 6.6. */
bool mfs_device_maps_direct(void);

/* The kernel looks up again whatever name it has from answers to questions that it asked before
 * now, when a process wants to use it. It takes no lock for that. -EINVAL: it is older than Linux
 * 6.16 and can't. Any thread. */
int mfs_device_distrust(struct fuse_session *se);

/* No notice goes to the kernel any more, and none is on its way when this returns: threads that
 * live longer than the session would write to whatever file has its number then. Before the
 * session's file is closed; what waits for pages has ended. */
void mfs_device_end_notices(void);

/* The kernel believes from now on that the file reaches to `end` at least, which is not 0. Its
 * pages keep what they hold. -ENOENT: it has forgotten the inode. Any thread; waits for the thread
 * that holds the last page locked. */
int mfs_device_grow(struct fuse_session *se, uint64_t nodeid, uint64_t end);

#endif
