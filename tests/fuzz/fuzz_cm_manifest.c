/* The manifest of a checkpoint, as `cm start --restore` finds it: what is taken holds together, and
 * written and read again is the same. ctest: timeout=60 */
#include <errno.h>
#include <string.h>

#include "cluster/placement.h"
#include "cm/state/manifest.h"
#include "input.h"

#define BYTES_PER_BYTE 1024 /* as in fuzz_message.c */

static int parse(struct mfs_manifest *m, const void *p, size_t n)
{
    struct mfs_err err = {0};
    int rc = mfs_manifest_parse(m, p, n, &err);

    FUZZ_CHECK(rc == 0 || (rc == -EINVAL && err.code == rc && err.msg[0]));
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mfs_buf first, second;
    struct mfs_manifest m;
    int rc;

    fuzz_heap_begin();
    rc = parse(&m, p, n);
    FUZZ_CHECK(fuzz_heap_end() <= 65536 + BYTES_PER_BYTE * n);
    if (rc)
        return 0;
    FUZZ_CHECK(m.nparts && m.nparts <= MFS_PARTITIONS_MAX && m.stripe_size && m.name[0]);
    for (uint32_t i = 0; i < m.nparts; i++)
        FUZZ_CHECK(m.part[i].index == i && mfs_image_sum_valid(m.part[i].sum));
    mfs_buf_init(&first);
    mfs_buf_init(&second);
    FUZZ_CHECK(!mfs_schema_encode(&mfs_manifest_schema, &m, true, &first));
    mfs_manifest_clear(&m);
    FUZZ_CHECK(!parse(&m, mfs_buf_data(&first), mfs_buf_len(&first)));
    FUZZ_CHECK(!mfs_schema_encode(&mfs_manifest_schema, &m, true, &second));
    FUZZ_CHECK(fuzz_same(&first, &second));
    mfs_manifest_clear(&m);
    mfs_buf_fini(&first);
    mfs_buf_fini(&second);
    return 0;
}
