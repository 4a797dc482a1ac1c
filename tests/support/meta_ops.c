/* Operations on the small tree, and looks at it: by paths that its beginning has. */
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cluster/placement.h"
#include "meta_world_impl.h"

/* --- operations ---------------------------------------------------------------------------------
 */

void meta_op_find(struct meta_client *c, const struct meta_op *op, struct meta_where *w)
{
    struct mfs_attr attr;

    memset(w, 0, sizeof *w);
    if (!op->from)
        return;
    w->rc = meta_world_walk(c, op->from, &w->dir, w->name, sizeof w->name);
    if (!w->rc && op->to)
        w->rc = meta_world_walk(c, op->to, &w->to_dir, w->to_name, sizeof w->to_name);
    if (!w->rc && mfs_meta_lookup(c->meta, w->dir, w->name, &attr) == 0)
        w->ino = attr.ino;
}

int meta_op_run(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    int rc = w->rc ? w->rc : op->run(c, op, w);

    return rc == -ESTALE ? -ENOENT : rc; /* as the kernel looks the name up again */
}

static int op_create(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    return meta_world_add(c, w->dir, w->name, op->arg, 0, NULL);
}

static int op_open(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    struct mfs_new new = {.mode = S_IFREG | 0600};
    struct mfs_attr attr;
    bool created;
    int rc = mfs_meta_create_open(c->meta, w->dir, w->name, &new, false, &attr, &created);

    (void)op;
    if (!rc)
        mfs_meta_close(c->meta, attr.ino, true);
    return rc;
}

static int op_tmpfile(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    struct mfs_new new = {.mode = S_IFREG | 0600};
    struct mfs_attr attr, linked;
    int rc = mfs_meta_tmpfile(c->meta, w->dir, NULL, &new, true, &attr);

    (void)op;
    if (rc)
        return rc;
    rc = mfs_meta_link(c->meta, attr.ino, w->dir, w->name, &linked);
    mfs_meta_close(c->meta, attr.ino, true);
    return rc;
}

/* As a hint has it: where its name is not. */
static int op_place(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    uint32_t nparts = mfs_store_nparts(c->store);
    uint32_t part = mfs_placement_entry(w->dir, w->name, strlen(w->name), nparts);
    struct mfs_new new = {.mode = S_IFREG | 0600,
                          .hints = MFS_HINT_LOCAL | MFS_HINT_TOGETHER,
                          .home = (part + 1) % nparts};
    struct mfs_attr attr;
    bool created;
    int rc = mfs_meta_create_open(c->meta, w->dir, w->name, &new, op->arg, &attr, &created);

    if (!rc)
        mfs_meta_close(c->meta, attr.ino, true);
    return rc;
}

/* In one step, or as a program does what can't be done so: another file, which then takes the name.
 */
static int op_put(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    struct mfs_new new = {.mode = S_IFREG | 0600};
    struct mfs_put put = {.parent = w->dir,
                          .name = w->name,
                          .new = &new,
                          .buf = "content",
                          .len = 7,
                          .exclusive = op->arg};
    int rc;

    mfs_meta_put(c->meta, &put, 1);
    if (put.rc != -EAGAIN)
        return put.rc;
    rc = meta_world_add(c, w->dir, "put", new.mode, 0, NULL);
    if (rc)
        return rc;
    rc = meta_client_rename(c, w->dir, "put", w->dir, w->name, op->arg ? RENAME_NOREPLACE : 0);
    if (rc)
        mfs_meta_unlink(c->meta, w->dir, "put");
    return rc;
}

static int op_unlink(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    (void)op;
    return mfs_meta_unlink(c->meta, w->dir, w->name);
}

static int op_rmdir(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    (void)op;
    return mfs_meta_rmdir(c->meta, w->dir, w->name);
}

static int op_link(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    struct mfs_attr attr;

    (void)op;
    return w->ino ? mfs_meta_link(c->meta, w->ino, w->to_dir, w->to_name, &attr) : -ENOENT;
}

static int op_rename(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    return meta_client_rename(c, w->dir, w->name, w->to_dir, w->to_name, op->arg);
}

const struct meta_op meta_ops[] = {
    {"create_f", op_create, "d1/f", NULL, S_IFREG | 0600},
    {"create_x", op_create, "d1/x", NULL, S_IFREG | 0600},
    {"open_f", op_open, "d1/f", NULL, 0},
    {"mkdir_h", op_create, "d2/h", NULL, S_IFDIR | 0700},
    {"create_in_s", op_create, "d1/s/n", NULL, S_IFREG | 0600},
    {"mkdir_in_t", op_create, "d2/t/m", NULL, S_IFDIR | 0700},
    {"tmpfile_x", op_tmpfile, "d1/x", NULL, 0},
    {"place_f", op_place, "d1/f", NULL, 0},
    {"place_x", op_place, "d1/x", NULL, true},
    {"put_f", op_put, "d1/f", NULL, 0},
    {"put_x", op_put, "d1/x", NULL, true},
    {"unlink_f", op_unlink, "d1/f", NULL, 0},
    {"unlink_h", op_unlink, "d2/h", NULL, 0},
    {"unlink_l", op_unlink, "d2/l", NULL, 0},
    {"rmdir_s", op_rmdir, "d1/s", NULL, 0},
    {"rmdir_t", op_rmdir, "d2/t", NULL, 0},
    {"link_f_x", op_link, "d1/f", "d1/x", 0},
    {"link_h_f", op_link, "d2/h", "d1/f", 0},
    {"mv_f_g", op_rename, "d1/f", "d1/g", 0},
    {"mv_g_f", op_rename, "d1/g", "d1/f", 0},
    {"mv_f_x", op_rename, "d1/f", "d1/x", 0},
    {"mv_h_f", op_rename, "d2/h", "d1/f", 0},
    {"mv_h_x_noreplace", op_rename, "d2/h", "d1/x", RENAME_NOREPLACE},
    {"mv_f_h", op_rename, "d1/f", "d2/h", 0},
    {"mv_l_f", op_rename, "d2/l", "d1/f", 0},
    {"swap_f_h", op_rename, "d1/f", "d2/h", RENAME_EXCHANGE},
    {"swap_g_s", op_rename, "d1/g", "d1/s", RENAME_EXCHANGE},
    {"swap_s_t", op_rename, "d1/s", "d2/t", RENAME_EXCHANGE},
    {"swap_f_t", op_rename, "d1/f", "d2/t", RENAME_EXCHANGE},
    {"mv_s_t", op_rename, "d1/s", "d2/t", 0},
    {"mv_t_s", op_rename, "d2/t", "d1/s", 0},
    {"mv_s_u", op_rename, "d1/s", "d2/u", 0},
    {"mv_t_u", op_rename, "d2/t", "d2/u", 0},
    {"mv_s_into_t", op_rename, "d1/s", "d2/t/in", 0},
    {"mv_t_into_s", op_rename, "d2/t", "d1/s/in", 0},
    {"mv_g_into_s", op_rename, "d1/g", "d1/s/in", 0},
    {"mv_d2_into_s", op_rename, "d2", "d1/s/in", 0},
    {"white_f_h", op_rename, "d1/f", "d2/h", RENAME_WHITEOUT},
    {"white_g_into_s", op_rename, "d1/g", "d1/s/in", RENAME_WHITEOUT},
    {"white_s_t", op_rename, "d1/s", "d2/t", RENAME_WHITEOUT},
};
const size_t meta_nops = sizeof meta_ops / sizeof *meta_ops;

/* --- looks --------------------------------------------------------------------------------------
 */

/* What the names mean, as one number: an identity (1…) or 0 for none per name. */
static int look_at(struct meta_client *c, const char *const *paths, size_t n)
{
    int sum = 0;

    for (size_t i = 0; i < n; i++) {
        struct mfs_attr attr;
        uint64_t dir;
        char name[32];
        int rc = meta_world_walk(c, paths[i], &dir, name, sizeof name);

        if (!rc)
            rc = mfs_meta_lookup(c->meta, dir, name, &attr);
        if (rc && rc != -ENOENT)
            return rc;
        sum = sum * 10 + (rc ? 0 : (int)attr.uid + 1);
    }
    return sum;
}

static int list_at(struct meta_client *c, const char *const *paths, size_t n)
{
    int sum = 0;

    for (size_t i = 0; i < n; i++) {
        struct mfs_listing *l;
        struct mfs_attr attr;
        int rc = mfs_meta_lookup(c->meta, meta_world_top, paths[i], &attr);

        if (!rc)
            rc = mfs_meta_list(c->meta, attr.ino, &l);
        if (rc)
            return rc;
        for (size_t k = 2; k < mfs_listing_count(l); k++) {
            struct mfs_dirent e = mfs_listing_at(l, k);

            if (mfs_meta_getattr(c->meta, e.ino, &attr) == 0)
                sum += (int)(i + 1) * (e.name[0] * 31 + (int)attr.uid * 1009);
        }
        mfs_listing_free(l);
    }
    return sum;
}

static int look_files(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    (void)op;
    (void)w;
    return look_at(c, (const char *[]){"d1/f", "d1/g", "d1/x", "d2/h", "d2/l"}, 5);
}

static int look_dirs(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    (void)op;
    (void)w;
    return look_at(c, (const char *[]){"d1/s", "d2/t", "d2/u", "d1/s/in", "d2/t/in"}, 5);
}

static int list_d1(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    (void)op;
    (void)w;
    return list_at(c, (const char *[]){"d1"}, 1);
}

static int glance(struct meta_client *c, const struct meta_op *op, const struct meta_where *w)
{
    struct mfs_attr attr;
    int rc = mfs_meta_lookup(c->meta, w->dir, w->name, &attr);

    (void)op;
    return rc ? rc : (int)attr.uid + 1;
}

const struct meta_op meta_looks[] = {{"look_files", look_files, NULL, NULL, 0},
                                     {"look_dirs", look_dirs, NULL, NULL, 0},
                                     {"list_d1", list_d1, NULL, NULL, 0}};
const size_t meta_nlooks = sizeof meta_looks / sizeof *meta_looks;

const struct meta_op meta_glances[] = {
    {"glance_f", glance, "d1/f", NULL, 0}, {"glance_g", glance, "d1/g", NULL, 0},
    {"glance_x", glance, "d1/x", NULL, 0}, {"glance_h", glance, "d2/h", NULL, 0},
    {"glance_s", glance, "d1/s", NULL, 0}, {"glance_t", glance, "d2/t", NULL, 0}};
const size_t meta_nglances = sizeof meta_glances / sizeof *meta_glances;
