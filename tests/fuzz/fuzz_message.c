/* Messages of the control protocol: a frame's body, any JSON, as each message that it may be. What
 * is accepted can be written and read again, and is the same; a list takes no more memory than its
 * text accounts for. ctest: timeout=60 */
#include <errno.h>

#include "input.h"
#include "proto/messages.h"

/* "{}," in a list makes a struct of it, of some hundred bytes. */
#define BYTES_PER_BYTE 1024

static void write_by_schema(const struct mfs_schema *r, const void *from, struct mfs_buf *out)
{
    mfs_buf_init(out);
    FUZZ_CHECK(!mfs_schema_encode(r, from, false, out));
}

static void try_schema(const struct mfs_envelope *e, const struct mfs_schema *r)
{
    _Alignas(16) char body[MFS_MSG_SIZE_MAX], again[MFS_MSG_SIZE_MAX];
    struct mfs_buf first, second;
    struct mfs_err err = {0};
    int rc;

    FUZZ_CHECK(r->size <= MFS_MSG_SIZE_MAX);
    rc = mfs_envelope_body(e, r, body, &err);
    if (rc) {
        FUZZ_CHECK(rc == -EINVAL && err.code == rc && err.msg[0]);
        return;
    }
    write_by_schema(r, body, &first);
    FUZZ_CHECK(!mfs_schema_decode(r, mfs_buf_data(&first), mfs_buf_len(&first), again, &err));
    write_by_schema(r, again, &second);
    FUZZ_CHECK(fuzz_same(&first, &second));
    mfs_buf_fini(&first);
    mfs_buf_fini(&second);
    mfs_schema_clear(r, body);
    mfs_schema_clear(r, again);
}

static void try_envelope(const struct mfs_envelope *e)
{
    FUZZ_CHECK(e->error.code <= 0 && e->error.code > -4096);
    if (!e->is_reply && e->type < MFS_MSG_COUNT)
        try_schema(e, mfs_messages[e->type].body);
    for (int i = 0; e->is_reply && i < MFS_MSG_COUNT; i++)
        try_schema(e, mfs_messages[i].reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mfs_envelope e;
    int rc;

    fuzz_heap_begin();
    rc = mfs_envelope_open(&e, (const char *)p, n);
    FUZZ_CHECK(rc == 0 || rc == -EPROTO);
    if (!rc)
        try_envelope(&e);
    mfs_envelope_clear(&e);
    FUZZ_CHECK(fuzz_heap_end() <= 65536 + BYTES_PER_BYTE * n);
    return 0;
}
