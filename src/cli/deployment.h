/* Which deployment a verb is for: --name and --state-dir. */
#ifndef MFS_CLI_DEPLOYMENT_H
#define MFS_CLI_DEPLOYMENT_H

#include <limits.h>
#include <stddef.h>

#include "args/conf.h"
#include "base/err.h"

extern const struct mfs_conf_option mfs_deployment_options[];

struct mfs_deployment {
    char state[PATH_MAX]; /* absolute */
    char secret[PATH_MAX];
};

/* By the options. 0 or a negative errno. Looks at nothing. */
int mfs_deployment_find(const struct mfs_conf *conf, struct mfs_deployment *d);

/* Can its secret be read? 0, or a negative errno with what to do. */
int mfs_deployment_check(const struct mfs_deployment *d, struct mfs_err *err);

/* Made absolute, not resolved: what is at the path need not exist, or be alive. 0 or -errno. */
int mfs_path_absolute(const char *path, char *out, size_t n);

#endif
