#include "cm/cli/restore.h"

#include <errno.h>
#include <string.h>

#include "cm/cli/options.h"
#include "cm/provider/options.h"
#include "cm/provider/provider.h"
#include "cm/state/manifest.h"

struct restore {
    struct mfs_conf *conf;
    struct mfs_buf *taken;
    bool other_size;     /* the number of nodes, or their memory, was given */
    bool other_provider; /* nodes come from elsewhere now */
    bool new_provider;   /* the provider is the checkpoint's */
};

static bool is_of_provider(const char *key)
{
    static const char *const also[] = {"first-address", "interface", "network"};

    for (size_t i = 0; i < sizeof also / sizeof *also; i++)
        if (!strcmp(key, also[i]))
            return true;
    for (const struct mfs_conf_option *o = mfs_cm_start_options; o->key; o++)
        if (!strcmp(key, o->key))
            return false;
    return true;
}

static bool is_size(const char *key)
{
    return !strcmp(key, "nodes") || !strcmp(key, "memory");
}

static int take(const struct restore *r, const struct mfs_manifest_option *o, struct mfs_err *err)
{
    const char *is;
    int rc;

    if (!mfs_conf_knows(r->conf, o->key) || mfs_conf_given(r->conf, o->key) ||
        (r->other_size && is_size(o->key)) || (r->other_provider && is_of_provider(o->key)) ||
        !strcmp(o->key, "hosts")) /* which machines there are now has to be told */
        return 0;
    is = mfs_conf_str(r->conf, o->key);
    if (is && !strcmp(is, o->value) && !is_size(o->key))
        return 0;
    rc = mfs_conf_set(r->conf, o->key, o->value, MFS_CONF_FILE, err);
    if (rc)
        return mfs_err_prefix(err, "restore: the checkpoint's options");
    if (mfs_buf_printf(r->taken, " --%s %s", o->key, o->value))
        return mfs_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

static bool differs(const struct mfs_conf *conf, const struct mfs_manifest_option *o)
{
    return !strcmp(o->key, "provider") && mfs_conf_given(conf, "provider") &&
           strcmp(mfs_conf_str(conf, "provider"), o->value) != 0;
}

int mfs_restore_options(struct mfs_conf *conf, struct mfs_buf *taken, struct mfs_err *err)
{
    const char *dir = mfs_conf_str(conf, "restore");
    struct restore r = {.conf = conf, .taken = taken};
    struct mfs_manifest m;
    char path[PATH_MAX];
    int rc;

    if (!dir)
        return 0;
    rc = mfs_manifest_restore(dir, path, &m, err);
    if (rc)
        return rc;
    r.new_provider = !mfs_conf_given(conf, "provider");
    r.other_size = mfs_conf_given(conf, "nodes") || mfs_conf_given(conf, "memory");
    for (uint32_t i = 0; i < m.noptions; i++)
        r.other_provider |= differs(conf, &m.option[i]);
    for (uint32_t i = 0; i < m.noptions && !rc; i++)
        rc = take(&r, &m.option[i], err);
    mfs_manifest_clear(&m);
    return !rc && r.new_provider ? mfs_provider_environment(conf, err) : rc;
}
