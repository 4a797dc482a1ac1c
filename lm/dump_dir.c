/* Making the dump directory; see the header. */
#include "lm/dump_dir.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

#define AREA "redis"

/* Nobody else may have a hand in a directory that data are dumped to. */
static int check_private(const char *path)
{
    struct stat st;

    if (lstat(path, &st))
        return -errno;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) ? 0 : -EPERM;
}

int mfs_dump_dir_make(const char *path)
{
    char above[PATH_MAX];
    int rc = mfs_text_copy(above, sizeof above, path);

    if (rc)
        return rc;
    *strrchr(above, '/') = '\0';
    rc = mfs_file_mkdirs(path, 0700);
    if (!rc)
        rc = check_private(above);
    return rc ? rc : check_private(path);
}

const char *mfs_dump_dir_or(const char *path, const char *other)
{
    int rc = strcmp(path, other) ? mfs_dump_dir_make(path) : 0;

    if (!rc)
        return path;
    mfs_warn(AREA, "dumps go to %s, as %s can't be used: %s", other, path, strerror(-rc));
    return other;
}
