/* The config file. */
#include "cm/cli/config_file.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "proto/schema.h"

#define SIZE_MOST (1 << 20)

static int set(void *arg, const char *key, const char *value, struct mfs_err *err)
{
    static const char *const not_here[] = {"config",     "help",  "h",  "version",
                                           "foreground", "adopt", "yes"};

    for (size_t i = 0; i < sizeof not_here / sizeof *not_here; i++)
        if (!strcmp(key, not_here[i]))
            return mfs_err_set(err, -EINVAL, "%s: belongs on the command line", key);
    return mfs_conf_set(arg, key, value, MFS_CONF_FILE, err);
}

int mfs_config_file_load(const char *path, struct mfs_conf *conf, struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_file_read_given(path, SIZE_MOST, &b);
    if (rc)
        mfs_err_set(err, rc, "%s", strerror(-rc));
    else
        rc = mfs_json_pairs(mfs_buf_data(&b), mfs_buf_len(&b), set, conf, err);
    if (rc)
        mfs_err_prefix(err, "%s", path);
    mfs_buf_fini(&b);
    return rc;
}
