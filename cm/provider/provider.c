/* The providers there are, and what they share. */
#include "cm/provider/provider.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/trusted_dir.h"

static const struct mfs_provider *const providers[] = {&mfs_provider_local, &mfs_provider_exec};

const struct mfs_provider *mfs_provider_find(const char *name)
{
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (!strcmp(providers[i]->traits->name, name))
            return providers[i];
    return NULL;
}

int mfs_provider_command(const struct mfs_paths *p, const struct mfs_cm_state *s,
                         const struct mfs_cm_node *node, const char *address,
                         struct mfs_lm_command *c)
{
    const char *const argv[] = {c->lm,  "--name",    p->name,       "--node",
                                c->id,  "--address", node->address, "--state-dir",
                                p->dir, "--cm",      c->cm,         "--foreground"};
    size_t n = sizeof argv / sizeof *argv;
    int rc = mfs_proc_sibling("lm", c->lm, sizeof c->lm);

    snprintf(c->id, sizeof c->id, "%u", node->id);
    if (!rc)
        rc = mfs_text_copy(c->cm, sizeof c->cm, address);
    _Static_assert(sizeof argv + 3 * sizeof *argv == sizeof c->argv, "one place for each argument");
    memcpy(c->argv, argv, sizeof argv);
    if (s->interface[0]) {
        c->argv[n++] = "--interface";
        c->argv[n++] = s->interface;
    }
    c->argv[n] = NULL;
    return rc;
}

int mfs_provider_spawn(const struct mfs_paths *p, const struct mfs_cm_node *node,
                       const char *const *argv, struct mfs_proc *proc, struct mfs_err *err)
{
    char dir[PATH_MAX], log[PATH_MAX], pid_file[PATH_MAX];
    int rc = mfs_paths_node(p, node->id, "", dir);

    if (!rc)
        rc = mfs_paths_node(p, node->id, "lm.log", log);
    if (!rc)
        rc = mfs_paths_node(p, node->id, "lm.pid", pid_file);
    if (rc)
        return mfs_err_set(err, rc, "%s: %s", node->name, strerror(-rc));
    rc = mfs_trusted_dir_make(dir, err);
    if (rc)
        return mfs_err_prefix(err, "%s", node->name);
    /* One that has ended already is watched all the same, which tells how it ended. */
    rc = mfs_proc_spawn_noted(argv, log, pid_file, proc);
    return rc ? mfs_err_set(err, rc, "%s: %s", argv[0], strerror(-rc)) : 0;
}
