#include "cli/deployment.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/trusted_dir.h"

const struct mfs_conf_option mfs_deployment_options[] = {
    {.key = "name",
     .type = MFS_CONF_STRING,
     .arg = "NAME",
     .def = "memefs",
     .min = 1,
     .max = 63,
     .help = "of the deployment"},
    {.key = "state-dir",
     .type = MFS_CONF_STRING,
     .arg = "DIR",
     .max = 400,
     .help = "of the deployment (default: /run/memefs/NAME)"},
    {0},
};

int mfs_path_absolute(const char *path, char *out, size_t n)
{
    char cwd[PATH_MAX];
    size_t len;
    int rc;

    if (path[0] == '/')
        rc = mfs_text_copy(out, n, path);
    else if (getcwd(cwd, sizeof cwd) == NULL)
        rc = -errno;
    else
        rc = mfs_text_format(out, n, "%s/%s", cwd, path);
    for (len = rc == 0 ? strlen(out) : 0; len > 1 && out[len - 1] == '/'; len--)
        out[len - 1] = '\0';
    return rc;
}

int mfs_deployment_find(const struct mfs_conf *conf, struct mfs_deployment *d)
{
    const char *state = mfs_conf_str(conf, "state-dir");
    int rc = state != NULL ? mfs_path_absolute(state, d->state, sizeof d->state)
                           : mfs_text_format(d->state, sizeof d->state, "/run/memefs/%s",
                                             mfs_conf_str(conf, "name"));

    return rc < 0 ? rc : mfs_text_format(d->secret, sizeof d->secret, "%s/secret", d->state);
}

int mfs_deployment_check(const struct mfs_deployment *d, struct mfs_err *err)
{
    int fd = mfs_trusted_dir_open(d->state, 0, NULL, err);

    if (fd < 0 && fd != -ENOENT && fd != -EACCES)
        return fd;
    if (fd >= 0)
        close(fd);
    if (access(d->secret, R_OK) == 0)
        return 0;
    return mfs_err_set(err, -errno,
                       "%s: %s; is the deployment running (cm start), and are --name and "
                       "--state-dir its own?",
                       d->secret, strerror(errno));
}
