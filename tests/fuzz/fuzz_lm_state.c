/* lm.json, as an lm finds it that goes on after another; saved and loaded again it is the same.
 * ctest: timeout=60 */
#include <errno.h>

#include "input.h"
#include "lm/agent/state.h"

#define BYTES_PER_BYTE 2048 /* "{}," makes a client, of two paths */

static int load(struct mfs_state *s, const void *p, size_t n)
{
    struct mfs_err err = {0};
    struct fuzz_file f;
    int rc;

    fuzz_file_open(&f, p, n);
    rc = mfs_state_load(s, f.path, &err);
    fuzz_file_close(&f);
    FUZZ_CHECK(rc == 0 || (rc == -EINVAL && err.code == rc && err.msg[0]));
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mfs_buf first, second;
    struct mfs_state s;
    int rc;

    fuzz_heap_begin();
    rc = load(&s, p, n);
    FUZZ_CHECK(fuzz_heap_end() <= 65536 + BYTES_PER_BYTE * n);
    if (rc)
        return 0;
    mfs_buf_init(&first);
    mfs_buf_init(&second);
    FUZZ_CHECK(!mfs_schema_encode(&mfs_state_schema, &s, true, &first));
    mfs_schema_clear(&mfs_state_schema, &s);
    FUZZ_CHECK(!load(&s, mfs_buf_data(&first), mfs_buf_len(&first)));
    FUZZ_CHECK(!mfs_schema_encode(&mfs_state_schema, &s, true, &second));
    FUZZ_CHECK(fuzz_same(&first, &second));
    mfs_schema_clear(&mfs_state_schema, &s);
    mfs_buf_fini(&first);
    mfs_buf_fini(&second);
    return 0;
}
