#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "host/mountinfo.h"
#include "cli/verbs.h"

/* Who is not root asks the helper that FUSE has for that. */
static int by_helper(const char *path)
{
    pid_t pid = fork();
    int status;

    if (pid < 0)
        return -errno;
    if (pid == 0) {
        execlp("fusermount3", "fusermount3", "-u", "--", path, (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}

/* Somebody else's file system at that place. Where the path has symbolic links the kernel's list
 * does not have it by that name, and umount(2) decides. */
static bool is_foreign(const char *path)
{
    struct mfs_mountinfo info;
    char full[PATH_MAX];

    return mfs_file_absolute(path, full, sizeof full) == 0 &&
           mfs_mountinfo_find(full, &info) == 0 && strcmp(info.fstype, "fuse.memefs") != 0;
}

static int unmount(const char *path, struct mfs_err *err)
{
    int rc = 0;

    if (is_foreign(path))
        return mfs_err_set(err, -EINVAL, "%s: not a mount of MemEFS", path);
    if (geteuid() != 0)
        rc = by_helper(path);
    else if (umount2(path, UMOUNT_NOFOLLOW) < 0)
        rc = -errno;
    if (rc == -EBUSY)
        return mfs_err_set(err, rc, "%s: programs still use it", path);
    if (rc == -EINVAL)
        return mfs_err_set(err, rc, "%s: not mounted", path);
    return rc < 0 ? mfs_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    return unmount(call->args[0], err);
}

const struct mfs_verb mfs_verb_umount = {.name = "umount",
                                         .args = "PATH",
                                         .summary = "unmount it",
                                         .about = "Unmounts; what was written is stored by then.",
                                         .least = 1,
                                         .most = 1,
                                         .run = run};
