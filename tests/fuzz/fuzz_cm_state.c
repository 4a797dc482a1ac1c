/* cm.json, as a cm finds it that goes on after another: what is loaded holds together, and saved
 * and loaded again is the same. ctest: timeout=60 */
#include <errno.h>

#include "cm/state/state.h"
#include "input.h"

#define BYTES_PER_BYTE 1024 /* as in fuzz_message.c */

static int load(struct mfs_cm_state *s, const void *p, size_t n)
{
    struct mfs_err err = {0};
    struct fuzz_file f;
    int rc;

    fuzz_file_open(&f, p, n);
    rc = mfs_cm_state_load(s, f.path, &err);
    fuzz_file_close(&f);
    FUZZ_CHECK(rc == 0 || (rc == -EINVAL && err.code == rc && err.msg[0]));
    return rc;
}

static void check(const struct mfs_cm_state *s)
{
    FUZZ_CHECK(s->nnodes && s->nparts && (!s->table || s->table->nparts == s->nparts));
    for (uint32_t i = 0; i < s->nparts; i++)
        FUZZ_CHECK(mfs_cm_state_node(s, s->part[i].node));
    for (uint32_t i = 0; i < s->nmoves; i++)
        FUZZ_CHECK(s->move[i].part < s->nparts && mfs_cm_state_node(s, s->move[i].from) &&
                   mfs_cm_state_node(s, s->move[i].to));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mfs_buf first, second;
    struct mfs_cm_state s;
    int rc;

    fuzz_heap_begin();
    rc = load(&s, p, n);
    FUZZ_CHECK(fuzz_heap_end() <= 65536 + BYTES_PER_BYTE * n);
    if (rc)
        return 0;
    check(&s);
    mfs_buf_init(&first);
    mfs_buf_init(&second);
    FUZZ_CHECK(!mfs_schema_encode(&mfs_cm_state_schema, &s, true, &first));
    mfs_cm_state_clear(&s);
    FUZZ_CHECK(!load(&s, mfs_buf_data(&first), mfs_buf_len(&first)));
    FUZZ_CHECK(!mfs_schema_encode(&mfs_cm_state_schema, &s, true, &second));
    FUZZ_CHECK(fuzz_same(&first, &second));
    mfs_cm_state_clear(&s);
    mfs_buf_fini(&first);
    mfs_buf_fini(&second);
    return 0;
}
