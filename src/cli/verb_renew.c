/* For cm forget, which runs it: marks in partitions that begin empty what the others say was there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/trusted_dir.h"
#include "cli/verbs.h"
#include "fsck/renew.h"
#include "proto/messages.h"

#define FILE_MOST (256U << 20)

static int load(const char *path, struct mfs_renewal *r, struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_trusted_read(path, FILE_MOST, &b);
    if (rc)
        mfs_err_set(err, rc, "%s: %s", path, strerror(-rc));
    else
        rc = mfs_schema_decode(&mfs_renewal_schema, mfs_buf_data(&b), mfs_buf_len(&b), r, err);
    mfs_buf_fini(&b);
    return rc;
}

static int renew(struct mfs_store *store, const struct mfs_renewal *r, struct mfs_err *err)
{
    bool *renewed = calloc(mfs_store_nparts(store), sizeof *renewed);
    struct mfs_renewed_counts counts;
    int rc;

    if (!renewed)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < r->nparts; i++)
        if (r->part[i].index < mfs_store_nparts(store))
            renewed[r->part[i].index] = true;
    rc = mfs_fsck_renew(store, renewed, &counts, err);
    if (!rc)
        printf("renew: %" PRIu32 " partitions begin empty; %" PRIu64 " stripes of %" PRIu64
               " files, %" PRIu64 " bytes, are lost\n",
               r->nparts, counts.stripes, counts.files, counts.bytes);
    free(renewed);
    return rc;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_store_opts opts = {.node = MFS_NO_NODE};
    struct mfs_renewal r = {0};
    struct mfs_store *store = NULL;
    int rc;

    mfs_log_open("memefs", NULL, MFS_LOG_WARN);
    rc = load(call->args[0], &r, err);
    if (rc)
        return rc;
    if (mfs_table_check(r.table)) {
        rc = mfs_err_set(err, -EINVAL, "%s: not a valid table", call->args[0]);
    } else {
        rc = mfs_store_create(&store, r.table, &opts);
        r.table = NULL; /* the store's */
        if (rc)
            mfs_err_set(err, rc, "partition table: %s", strerror(-rc));
    }
    if (!rc)
        rc = renew(store, &r, err);
    mfs_store_destroy(store);
    mfs_schema_clear(&mfs_renewal_schema, &r);
    return rc;
}

const struct mfs_verb mfs_verb_renew = {.name = "renew",
                                        .args = "FILE",
                                        .least = 1,
                                        .most = 1,
                                        .options = MFS_OPTIONS(NULL),
                                        .run = run};
