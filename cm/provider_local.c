/* The local provider: each node is an lm on this machine, with an address of 127.0.0.0/8. */
#include "cm/provider.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

static int start(const struct mfs_paths *p, const struct mfs_cm_node *node, const char *address,
                 struct mfs_proc *proc, struct mfs_err *err)
{
    char lm[PATH_MAX], dir[PATH_MAX], log[PATH_MAX], pid_file[PATH_MAX], id[16];
    const char *const argv[] = {lm,          "--name",       p->name,       "--node", id,
                                "--address", node->address,  "--state-dir", p->dir,   "--cm",
                                address,     "--foreground", NULL};
    int rc = mfs_proc_sibling("lm", lm, sizeof lm);
    pid_t pid;

    snprintf(id, sizeof id, "%u", node->id);
    if (!rc)
        rc = mfs_paths_node(p, node->id, "", dir);
    if (!rc)
        rc = mfs_paths_node(p, node->id, "lm.log", log);
    if (!rc)
        rc = mfs_paths_node(p, node->id, "lm.pid", pid_file);
    if (!rc)
        rc = mfs_file_mkdirs(dir, 0700);
    if (rc)
        return mfs_err_set(err, rc, "%s: %s", node->name, strerror(-rc));
    pid = mfs_proc_spawn(argv, log);
    if (pid < 0)
        return mfs_err_set(err, (int)pid, "%s: %s", lm, strerror(-(int)pid));
    /* One that has ended already is watched all the same, which tells how it ended. */
    if (mfs_proc_identify(pid, proc)) {
        proc->pid = pid;
        return 0;
    }
    rc = mfs_proc_save(proc, pid_file);
    return rc ? mfs_err_set(err, rc, "%s: %s", pid_file, strerror(-rc)) : 0;
}

static const struct mfs_provider providers[] = {{"local", start}};

const struct mfs_provider *mfs_provider_find(const char *name)
{
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (!strcmp(providers[i].name, name))
            return &providers[i];
    return NULL;
}
