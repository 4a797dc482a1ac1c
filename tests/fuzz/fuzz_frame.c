/* Frames of the control protocol: however the bytes come in pieces, the same frames are found; what
 * is found and framed again is what came; no frame is longer than allowed. ctest: timeout=60 */
#include <errno.h>
#include <string.h>

#include "input.h"
#include "net/auth.h"
#include "proto/frame.h"

/* Appends the frames to *again; how it ended. */
static int take_all(struct fuzz_input in, size_t piece, size_t max, struct mfs_buf *again)
{
    struct mfs_buf b;
    char *body;
    size_t len;
    int rc = 0;

    mfs_buf_init(&b);
    while (in.n && !rc) {
        struct fuzz_input some = fuzz_take(&in, piece);

        FUZZ_CHECK(!mfs_buf_append(&b, some.p, some.n));
        while ((rc = mfs_frame_next(&b, max, &body, &len)) > 0) {
            FUZZ_CHECK(len && len <= max);
            FUZZ_CHECK(body + len <= mfs_buf_data(&b) + mfs_buf_len(&b));
            FUZZ_CHECK(!mfs_frame_put(again, body, len));
            mfs_frame_done(&b, len);
        }
    }
    mfs_buf_fini(&b);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n};
    size_t piece = 1 + fuzz_u8(&in) % 32;
    size_t max = fuzz_u8(&in) % 2 ? MFS_FRAME_MAX : MFS_AUTH_FRAME_MAX;
    struct mfs_buf whole, pieces;
    int rc;

    mfs_buf_init(&whole);
    mfs_buf_init(&pieces);
    fuzz_heap_begin();
    rc = take_all(in, in.n, max, &whole);
    FUZZ_CHECK(rc == 0 || rc == -EPROTO || rc == -EMSGSIZE);
    FUZZ_CHECK(take_all(in, piece, max, &pieces) == rc && fuzz_same(&whole, &pieces));
    FUZZ_CHECK(fuzz_heap_end() <= 4096 + 8 * n);
    FUZZ_CHECK(mfs_buf_len(&whole) <= in.n);
    FUZZ_CHECK(!mfs_buf_len(&whole) || !memcmp(mfs_buf_data(&whole), in.p, mfs_buf_len(&whole)));
    mfs_buf_fini(&whole);
    mfs_buf_fini(&pieces);
    return 0;
}
