/* Whole small files under their names (meta/meta.h: mfs_meta_put), with what they inherit. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vfs/names/create.h"
#include "vfs/names/hints.h"

struct inherited {
    struct mfs_inherit *of;
    struct mfs_put *puts;
    struct timespec (*times)[2];
    size_t *from; /* of each of the puts, its place among the caller's */
    size_t n;
};

/* What a default ACL would add needs to be taken away again. */
static int make_exact(struct mfs_new *new, const struct mfs_attr *exact)
{
    if (new->nxattrs > 0)
        return -EAGAIN;
    new->mode = S_IFREG | (exact->mode & 07777);
    if (exact->uid != UINT32_MAX)
        new->uid = exact->uid;
    if (exact->gid != UINT32_MAX)
        new->gid = exact->gid;
    return 0;
}

/* A file of which a hint says that another partition is to have it is made in steps. */
static int prepare(struct mfs_vfs *vfs, const struct mfs_vfs_put *p, const struct mfs_cred *cred,
                   struct mfs_inherit *in)
{
    int rc = strlen(p->name) > MFS_NAME_LEN_MAX ? -ENAMETOOLONG : 0;

    if (rc == 0)
        rc = mfs_inherit_init(in, vfs, p->parent, S_IFREG | (p->mode & 07777), cred);
    if (rc < 0)
        return rc;
    if (p->permits != NULL)
        rc = p->permits(p->arg, &in->dir);
    mfs_hints_place(vfs, p->parent, p->name, &in->new);
    if (rc == 0 && (in->new.hints &MFS_HINT_TOGETHER))
        rc = -EAGAIN;
    else if (rc == 0 && p->exact != NULL)
        rc = make_exact(&in->new, p->exact);
    if (rc < 0)
        mfs_inherit_fini(in);
    return rc;
}

static void add(struct inherited *all, const struct mfs_vfs_put *p, size_t at)
{
    struct timespec *times = p->exact != NULL ? all->times[all->n] : NULL;

    if (times != NULL) {
        times[0] = p->exact->atime;
        times[1] = p->exact->mtime;
    }
    all->from[all->n] = at;
    all->puts[all->n] = (struct mfs_put){.parent = p->parent,
                                         .name = p->name,
                                         .new = &all->of[all->n].new,
                                         .buf = p->buf,
                                         .len = p->len,
                                         .times = times,
                                         .exclusive = p->exclusive};
    all->n++;
}

static bool is_complete(const struct inherited *all)
{
    return all->of != NULL && all->puts != NULL && all->times != NULL && all->from != NULL;
}

void mfs_vfs_put(struct mfs_vfs *vfs, struct mfs_vfs_put *puts, size_t n,
                 const struct mfs_cred *cred)
{
    struct inherited all = {0};

    all.of = calloc(n + 1, sizeof *all.of);
    all.puts = calloc(n + 1, sizeof *all.puts);
    all.times = calloc(n + 1, sizeof *all.times);
    all.from = calloc(n + 1, sizeof *all.from);
    for (size_t i = 0; i < n; i++) {
        puts[i].rc = !is_complete(&all) ? -ENOMEM : prepare(vfs, &puts[i], cred, &all.of[all.n]);
        if (puts[i].rc == 0)
            add(&all, &puts[i], i);
    }
    atomic_fetch_add(&vfs->removals, 1);
    if (all.n > 0)
        mfs_meta_put(vfs->meta, all.puts, all.n);
    for (size_t i = 0; i < all.n; i++) {
        puts[all.from[i]].rc = all.puts[i].rc == -ESTALE ? -ENOENT : all.puts[i].rc;
        mfs_inherit_fini(&all.of[i]);
    }
    free(all.of);
    free(all.puts);
    free(all.times);
    free(all.from);
}
