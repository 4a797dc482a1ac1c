#include "cli/stats_interval.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/mount_files.h"
#include "proto/messages.h"
#include "trace/rates.h"

#define HEAD_EACH 20U /* lines */

/* *at: when they were read. */
static int read_figures(const struct mfs_mount_files *f, struct mfs_stats *s, int64_t *at,
                        struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    *at = mfs_clock_mono();
    rc = mfs_mount_files_read(f, "stats.json", &b, err);
    if (rc == 0)
        rc = mfs_schema_decode(&mfs_stats_schema, mfs_buf_data(&b), mfs_buf_len(&b), s, err);
    if (rc == 0 && s->nsources == 0) {
        mfs_schema_clear(&mfs_stats_schema, s);
        rc = mfs_err_set(err, -EINVAL, "%s: no figures", f->mount);
    }
    mfs_buf_fini(&b);
    return rc;
}

static int show(const struct mfs_rates *r, bool json, bool head, struct mfs_err *err)
{
    struct timespec now = mfs_clock_real();
    struct mfs_buf b;
    int rc = 0;

    mfs_buf_init(&b);
    if (head && !json)
        rc = mfs_rates_head(&b);
    if (rc == 0)
        rc = json ? mfs_rates_json(r, (double)now.tv_sec + (double)now.tv_nsec / 1e9, &b)
                  : mfs_rates_text(r, &b);
    if (rc == 0)
        fwrite(mfs_buf_data(&b), 1, mfs_buf_len(&b), stdout);
    mfs_buf_fini(&b);
    if (rc < 0)
        return mfs_err_set(err, rc, "out of memory");
    return fflush(stdout) == 0 ? 0 : mfs_err_set(err, -EPIPE, "nobody reads");
}

static int follow(const struct mfs_mount_files *f, double seconds, uint64_t count, bool json,
                  struct mfs_err *err)
{
    struct mfs_stats before = {0}, after = {0};
    int64_t was = 0, is = 0;
    int rc = read_figures(f, &before, &was, err);

    if (rc < 0)
        return rc;
    for (uint64_t i = 0; (count == 0 || i < count) && rc == 0; i++) {
        struct mfs_rates r;

        mfs_clock_sleep((int64_t)(seconds * 1e9));
        rc = read_figures(f, &after, &is, err);
        if (rc < 0)
            break;
        mfs_rates_between(&before.source[0].figures, &after.source[0].figures,
                          (double)(is - was) / 1e9, &r);
        mfs_schema_clear(&mfs_stats_schema, &before);
        before = after;
        was = is;
        rc = show(&r, json, i % HEAD_EACH == 0, err);
    }
    mfs_schema_clear(&mfs_stats_schema, &before);
    return rc;
}

int mfs_stats_interval(const char *path, double seconds, uint64_t count, bool json,
                       struct mfs_err *err)
{
    struct mfs_mount_files *f = calloc(1, sizeof *f);
    int rc;

    if (f == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = mfs_mount_files_open(path, f, err);
    if (rc == 0) {
        rc = follow(f, seconds, count, json, err);
        mfs_mount_files_close(f);
    }
    free(f);
    return rc;
}
