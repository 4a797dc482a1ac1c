/* The instances: an array, kept in order of partition so that the division of memory is the
 * same for the same input. A member's connection is opened when needed and dropped on any error. */
#include "lm/redis/instances.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/capacity.h"
#include "lm/redis/instances_impl.h"
#include "store/admin/admin.h"

int mfs_instances_create(struct mfs_instances **out, const struct mfs_instances_opts *opts)
{
    struct mfs_instances *f = calloc(1, sizeof *f);

    if (!f)
        return -ENOMEM;
    f->node = (struct mfs_redis_node){.dir = strdup(opts->dir),
                                      .dump_dir = strdup(opts->dump_dir),
                                      .address = strdup(opts->address),
                                      .deployment = strdup(opts->deployment),
                                      .nparts = opts->nparts,
                                      .stripe_size = opts->stripe_size};
    mfs_instances_set_memory(f, opts->memory);
    if (!f->node.dir || !f->node.dump_dir || !f->node.address || !f->node.deployment) {
        mfs_instances_destroy(f);
        return -ENOMEM;
    }
    *out = f;
    return 0;
}

void mfs_instances_destroy(struct mfs_instances *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        mfs_admin_close(f->member[i].admin);
    free(f->member);
    free((char *)f->node.dir);
    free((char *)f->node.dump_dir);
    free((char *)f->node.address);
    free((char *)f->node.deployment);
    free(f);
}

void mfs_instances_set_memory(struct mfs_instances *f, uint64_t bytes)
{
    f->memory = bytes;
    mfs_instances_reckon(f, 0);
}

static struct mfs_instance *find(const struct mfs_instances *f, uint32_t part)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->member[i].redis.part == part)
            return &f->member[i];
    }
    return NULL;
}

/* Room for more members, so that adding them can't fail any more. */
static int reserve(struct mfs_instances *f, size_t more)
{
    struct mfs_instance *grown = realloc(f->member, (f->n + more) * sizeof *grown);

    if (!grown)
        return -ENOMEM;
    f->member = grown;
    return 0;
}

static void insert(struct mfs_instances *f, const struct mfs_redis *r)
{
    size_t at = 0;

    while (at < f->n && f->member[at].redis.part < r->part)
        at++;
    memmove(&f->member[at + 1], &f->member[at], (f->n - at) * sizeof *f->member);
    f->member[at] = (struct mfs_instance){
        .redis = *r, .used = MFS_INSTANCE_EMPTY, .beyond = MFS_CAPACITY_PROCESS};
    f->n++;
}

static void remove_at(struct mfs_instances *f, size_t at)
{
    mfs_admin_close(f->member[at].admin);
    f->n--;
    memmove(&f->member[at], &f->member[at + 1], (f->n - at) * sizeof *f->member);
}

int mfs_instances_adopt(struct mfs_instances *f, const struct mfs_redis *r)
{
    int rc;

    if (find(f, r->part))
        return 0;
    rc = reserve(f, 1);
    if (!rc)
        insert(f, r);
    return rc;
}

void mfs_instances_arrived(struct mfs_instances *f, uint32_t part)
{
    struct mfs_instance *m = find(f, part);

    if (m)
        m->redis.expected = 0;
}

void mfs_instances_settle(struct mfs_instances *f, uint32_t part)
{
    struct mfs_instance *m = find(f, part);

    if (m)
        m->redis.incoming = false;
}

int mfs_instances_revive(struct mfs_instances *f, uint32_t part, struct mfs_redis *r,
                         struct mfs_revived *how, struct mfs_err *err)
{
    struct mfs_instance *m = find(f, part);
    struct mfs_redis again;
    int rc;

    if (!m)
        return mfs_err_set(err, -ENOENT, "partition %u is none of this node", part);
    again = m->redis;
    if (!again.maxmemory) /* adopted, and not looked at yet */
        again.maxmemory = f->usable / f->n;
    rc = mfs_redis_revive(&f->node, &again, how, err);
    if (rc)
        return rc;
    mfs_admin_close(m->admin);
    *m = (struct mfs_instance){.redis = again, .used = MFS_INSTANCE_EMPTY};
    *r = again;
    return 0;
}

void mfs_instances_forget(struct mfs_instances *f, uint32_t part)
{
    struct mfs_instance *m = find(f, part);

    if (m)
        remove_at(f, (size_t)(m - f->member));
}

int mfs_instances_find(const struct mfs_instances *f, uint32_t part, struct mfs_redis *r)
{
    const struct mfs_instance *m = find(f, part);

    if (!m)
        return -ENOENT;
    *r = m->redis;
    return 0;
}

struct mfs_redis *mfs_instances_list(const struct mfs_instances *f, size_t *n)
{
    struct mfs_redis *list = f->n ? calloc(f->n, sizeof *list) : NULL;

    *n = list ? f->n : 0;
    for (size_t i = 0; i < *n; i++)
        list[i] = f->member[i].redis;
    return list;
}

/* Those of r[] that do not run yet. */
static int select_fresh(const struct mfs_instances *f, const struct mfs_redis *r, size_t n,
                        struct mfs_redis *fresh, size_t *count, struct mfs_err *err)
{
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        const struct mfs_instance *m = find(f, r[i].part);

        if (!m)
            fresh[(*count)++] = r[i];
        else if (strcmp(m->redis.password, r[i].password))
            return mfs_err_set(err, -EEXIST, "partition %u runs already, with another password",
                               r[i].part);
    }
    return 0;
}

int mfs_instances_start(struct mfs_instances *f, const struct mfs_redis *r, size_t n,
                        struct mfs_err *err)
{
    struct mfs_redis *fresh = calloc(n + 1, sizeof *fresh);
    size_t count = 0;
    int rc;

    if (!fresh || reserve(f, n + 1)) {
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
        goto out;
    }
    rc = select_fresh(f, r, n, fresh, &count, err);
    if (rc || !count)
        goto out;
    rc = mfs_instances_make_room(f, fresh, count, err);
    if (rc)
        goto out;
    rc = mfs_redis_start(&f->node, fresh, count, err);
    for (size_t i = 0; i < count && !rc; i++) {
        if (fresh[i].image) { /* it has been loaded, and counts with what it uses */
            fresh[i].image = NULL;
            fresh[i].expected = 0;
        }
        insert(f, &fresh[i]);
    }
out:
    free(fresh);
    return rc;
}

int mfs_instances_stop(struct mfs_instances *f, const uint32_t *parts, size_t n)
{
    struct mfs_redis *ending = calloc(n + 1, sizeof *ending);
    size_t count = 0;
    int rc;

    if (!ending)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct mfs_instance *m = find(f, parts[i]);

        if (m)
            ending[count++] = m->redis;
        mfs_instances_forget(f, parts[i]);
    }
    rc = mfs_redis_stop(&f->node, ending, count);
    free(ending);
    return rc;
}

int mfs_instances_stop_all(struct mfs_instances *f)
{
    size_t n;
    struct mfs_redis *all = mfs_instances_list(f, &n);
    int rc = mfs_redis_stop(&f->node, all, n);

    free(all);
    while (f->n)
        remove_at(f, f->n - 1);
    return rc;
}
