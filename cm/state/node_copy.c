#include "cm/state/node_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/state/walk.h"

struct search {
    struct mfs_cm_state best;
    bool found;
    char dir[PATH_MAX]; /* node-ID of the best one */
    struct mfs_err err; /* of one that makes no sense */
};

static int look(void *arg, const char *path)
{
    struct search *s = arg;
    struct mfs_cm_state st;
    int rc = mfs_cm_state_load(&st, path, &s->err);

    if (rc)
        return rc == -ENOMEM ? rc : 0;
    if (s->found && !mfs_cm_state_newer(st.term, st.revision, s->best.term, s->best.revision)) {
        mfs_cm_state_clear(&st);
        return 0;
    }
    if (s->found)
        mfs_cm_state_clear(&s->best);
    s->best = st;
    s->found = true;
    memccpy(s->dir, path, '\0', sizeof s->dir);
    *strrchr(s->dir, '/') = '\0';
    return 0;
}

int mfs_node_copy_find(const struct mfs_paths *p, struct mfs_cm_state *s, uint32_t *node,
                       struct mfs_err *err)
{
    struct search search = {.found = false};
    int rc = mfs_walk_nodes(p, "cm.json", look, &search);

    if (rc && search.found)
        mfs_cm_state_clear(&search.best);
    if (rc)
        return mfs_err_set(err, rc, "%s: %s", p->dir, strerror(-rc));
    if (!search.found && search.err.code)
        *err = search.err;
    if (!search.found)
        return search.err.code
                   ? search.err.code
                   : mfs_err_set(err, -ENOENT, "no node of deployment %s is on this machine (%s)",
                                 p->name, p->dir);
    *s = search.best;
    if (node)
        *node = (uint32_t)strtoul(strrchr(search.dir, '-') + 1, NULL, 10);
    return 0;
}
