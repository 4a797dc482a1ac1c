#include "fuse/kernel/killed.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"

/* proc_pid_status(5). Whatever ends a process without a core is SIGKILL to each of its threads. */
static bool is_being_killed(uint32_t thread)
{
    static const char pending[] = "\nSigPnd:";
    struct mfs_buf b;
    const char *at;
    char path[64];
    bool is = false;

    mfs_buf_init(&b);
    if (mfs_text_format(path, sizeof path, "/proc/%u/status", thread) == 0 &&
        mfs_file_read(path, 16384, &b) == 0 && mfs_buf_printf(&b, "%c", 0) >= 0) {
        at = strstr(mfs_buf_data(&b), pending);
        is = at != NULL && strtoull(at + strlen(pending), NULL, 16) >> (SIGKILL - 1) & 1;
    }
    mfs_buf_fini(&b);
    return is;
}

static bool may_be_refused(uint32_t opcode)
{
    switch (opcode) {
    case FUSE_INIT:
    case FUSE_DESTROY:
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
    case FUSE_NOTIFY_REPLY:
    case FUSE_FLUSH:
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
        return false;
    default:
        return true;
    }
}

/* What no process waits for (pages on their way back, say) has no pid. */
bool mfs_killed(const char *request, size_t len)
{
    struct fuse_in_header in;

    if (len < sizeof in)
        return false;
    memcpy(&in, request, sizeof in);
    return in.pid != 0 && may_be_refused(in.opcode) && is_being_killed(in.pid);
}

struct fuse_out_header mfs_killed_answer(const char *request)
{
    struct fuse_in_header in;

    memcpy(&in, request, sizeof in);
    return (struct fuse_out_header){
        .len = sizeof(struct fuse_out_header), .error = -EINTR, .unique = in.unique};
}
