#include "cli/top/sampler.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

struct mfs_mount_sampler {
    const struct mfs_mount_files *files;
    struct mfs_mount_reading before;
};

struct mfs_mount_sampler *mfs_mount_sampler_create(const struct mfs_mount_files *files)
{
    struct mfs_mount_sampler *s = calloc(1, sizeof *s);

    if (s != NULL)
        s->files = files;
    return s;
}

void mfs_mount_sampler_destroy(void *sampler)
{
    struct mfs_mount_sampler *s = sampler;

    mfs_mount_reading_clear(&s->before);
    free(s);
}

static int read_json(const struct mfs_mount_files *f, const char *name,
                     const struct mfs_schema *schema, void *to, struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_mount_files_read(f, name, &b, err);
    if (rc == 0)
        rc = mfs_schema_decode(schema, mfs_buf_data(&b), mfs_buf_len(&b), to, err);
    mfs_buf_fini(&b);
    return rc;
}

static int read_nodes(const struct mfs_mount_files *f, struct mfs_trace_nodes *nodes,
                      struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_mount_files_read(f, "nodes.json", &b, err);
    if (rc == 0)
        rc = mfs_trace_nodes_parse(mfs_buf_data(&b), mfs_buf_len(&b), nodes, err);
    mfs_buf_fini(&b);
    return rc;
}

/* What is asked for most is not for everybody: without it the rest is shown. */
static int read_all(const struct mfs_mount_files *f, struct mfs_mount_reading *r,
                    struct mfs_err *err)
{
    int rc;

    *r = (struct mfs_mount_reading){.at = mfs_clock_mono()};
    rc = read_json(f, "stats.json", &mfs_stats_schema, &r->stats, err);
    if (rc == 0)
        rc = read_nodes(f, &r->nodes, err);
    if (rc == 0) {
        rc = read_json(f, "hot.json", &mfs_hot_schema, &r->hot, err);
        r->samples = rc == 0;
        rc = rc == -EACCES ? 0 : rc;
    }
    if (rc < 0)
        mfs_mount_reading_clear(r);
    return rc;
}

void *mfs_mount_sampler_take(void *sampler, struct mfs_err *err)
{
    struct mfs_mount_sampler *s = sampler;
    struct mfs_mount_top *top = calloc(1, sizeof *top);
    struct mfs_mount_reading r;

    if (top == NULL || read_all(s->files, &r, err) < 0) {
        if (top == NULL)
            mfs_err_set(err, -ENOMEM, "out of memory");
        free(top);
        return NULL;
    }
    if (mfs_mount_top_make(top, s->files->mount, &s->before, &r) < 0) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        mfs_mount_reading_clear(&r);
        free(top);
        return NULL;
    }
    mfs_mount_reading_clear(&s->before);
    s->before = r;
    return top;
}

void mfs_mount_top_free(void *sample)
{
    if (sample != NULL)
        mfs_mount_top_clear(sample);
    free(sample);
}
