/* What a program asks a mount for when it makes whole small files: an ioctl on a file that it has
 * opened in their directory with O_TMPFILE for writing, by which the kernel has seen that it may
 * make names there, on a mount that is not read-only. The descriptor is no right that could be
 * given away or kept: another user or group than has opened it is refused, and so is who may not
 * make names there any more. One request of the kernel and one of the
 * partition, during both of which the directory is not locked, as it is when a file is created or
 * renamed.
 *
 * A name that is there is refused (EEXIST). A reader sees no file, or the whole one. Further
 * errors: ENOTTY, the descriptor is none of those, or the mount knows no such request; EPERM, the
 * owner or group is not this process' to give, or another one has opened the descriptor; EACCES,
 * the process may not write into the directory as it is now, or the name is the mount's own;
 * EAGAIN, the file has to be made by the usual calls, as where a directory has a default ACL; those
 * of open(2). Both sides run on one machine: numbers have its byte order. */
#ifndef MFS_PROTO_PUT_H
#define MFS_PROTO_PUT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

struct mfs_put_request {
    uint32_t uid, gid;    /* UINT32_MAX: as of any file that the process makes there */
    uint32_t mode;        /* permissions and S_ISVTX; no umask is applied */
    uint32_t name_len;    /* bytes of the name, which follows without a NUL; then the content */
    int64_t atime, mtime; /* seconds */
    uint32_t atime_ns, mtime_ns;
};

#define MFS_PUT_MOST _IOC_SIZEMASK /* bytes of all that: the kernel takes no more of an ioctl */
#define MFS_PUT(len) _IOC(_IOC_WRITE, 0xEF, 1, len)

/* A content that does not fit into one request comes in parts before it, each with this head; and
 * so has the request at last, before its own, with what is left of the content. The mount keeps the
 * parts of some files only: EAGAIN, those before are not there any more. EINVAL, too: the content
 * is longer than MFS_PUT_CONTENT. */
struct mfs_put_part {
    uint64_t id; /* any: the same of all parts of a file, and of no other that comes by this
                    descriptor at the same time */
    uint64_t at; /* bytes of the content that have come before */
};

#define MFS_PUT_CONTENT   (64U << 10) /* bytes at most, in one part or several */
#define MFS_PUT_PART(len) _IOC(_IOC_WRITE, 0xEF, 3, len)
#define MFS_PUT_LAST(len) _IOC(_IOC_WRITE, 0xEF, 4, len)

/* The command without its length, which is MFS_PUT(0U), MFS_PUT_PART(0U), MFS_PUT_LAST(0U), or
 * another one. */
static inline unsigned mfs_put_command(unsigned command)
{
    return command & ~((unsigned)_IOC_SIZEMASK << _IOC_SIZESHIFT);
}

/* A request, taken apart. */
struct mfs_put_parsed {
    struct mfs_put_request head;
    char name[NAME_MAX + 1];
    const void *content; /* in the request */
    size_t content_len;
};

/* 0, or a negative errno: -EINVAL; -ENAMETOOLONG; -EEXIST, of "." and "..". Pure. */
int mfs_put_parse(const void *request, size_t len, struct mfs_put_parsed *to);

#endif
