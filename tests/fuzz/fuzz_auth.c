/* The mutual proof with somebody in between who changes what is said: the input tells where. Both
 * ends agree on role and keys, or one of them hangs up; nothing is taken for a proof that its
 * maker has not made. ctest: timeout=60 */
#include <errno.h>
#include <string.h>

#include "input.h"
#include "net/auth.h"
#include "proto/frame.h"

static const struct mfs_secret secret = {.len = 16, .bytes = "0123456789abcdef"};

/* One change of a message. */
static void edit(struct fuzz_input *in, struct mfs_buf *message)
{
    size_t len = mfs_buf_len(message), at = fuzz_u16(in) % (len + 1);
    uint8_t how = fuzz_u8(in) % 4, byte = fuzz_u8(in);
    char *p;

    FUZZ_CHECK(!mfs_buf_append(message, "", 1));
    p = mfs_buf_data(message);
    message->end--;
    if (how == 0 && at < len) {
        p[at] = (char)byte;
    } else if (how == 1 && at < len) {
        memmove(p + at, p + at + 1, len - at - 1);
        message->end--;
    } else if (how == 2) {
        memmove(p + at + 1, p + at, len - at);
        p[at] = (char)byte;
        message->end++;
    } else if (how == 3) {
        message->end = message->start + at;
    }
}

/* The message that `from` holds as a frame, as it arrives; none arrives when nobody sent one.
 * Returns whether it is what was sent. */
static bool pass(struct fuzz_input *in, struct mfs_buf *from, struct mfs_buf *message)
{
    uint8_t plan = fuzz_u8(in);
    char *body;
    size_t len;

    mfs_buf_clear(message);
    if (mfs_frame_next(from, MFS_AUTH_FRAME_MAX, &body, &len) == 1) {
        FUZZ_CHECK(!mfs_buf_append(message, body, len));
        mfs_frame_done(from, len);
    }
    if (plan == 0xff) { /* something else */
        struct fuzz_input other = fuzz_take(in, fuzz_u16(in) % MFS_AUTH_FRAME_MAX);

        mfs_buf_clear(message);
        FUZZ_CHECK(!mfs_buf_append(message, other.p, other.n));
        return false;
    }
    for (uint8_t i = 0; i < plan % 8; i++)
        edit(in, message);
    return plan % 8 == 0;
}

/* Whoever believes has the other's word for all of it. */
static void check_agreement(const struct mfs_auth *listener, const struct mfs_auth *caller)
{
    FUZZ_CHECK(!strcmp(listener->role, caller->role));
    FUZZ_CHECK(!strcmp(listener->peer, caller->own) && !strcmp(caller->peer, listener->own));
}

static int step(struct mfs_auth *a, const struct mfs_buf *message, struct mfs_buf *out)
{
    struct mfs_err err = {0};
    int rc = mfs_auth_step(a, mfs_buf_len(message) ? mfs_buf_data(message) : "",
                           mfs_buf_len(message), out, &err);

    FUZZ_CHECK(rc >= 0 || rc == -EPROTO || (rc == -EACCES && err.code == rc));
    FUZZ_CHECK(rc >= 0 || mfs_buf_len(out) == 0);
    return rc;
}

static void meet(struct fuzz_input *in, struct mfs_buf *out, struct mfs_buf *message)
{
    struct mfs_auth listener, caller;
    bool intact;
    int rc;

    FUZZ_CHECK(!mfs_auth_begin(&listener, &secret, NULL, out));
    FUZZ_CHECK(!mfs_auth_begin(&caller, &secret, "client", NULL));
    intact = pass(in, out, message);
    rc = step(&caller, message, out);
    FUZZ_CHECK(rc < 0 || rc == MFS_AUTH_WAITING);
    FUZZ_CHECK(!intact || rc == MFS_AUTH_WAITING);
    intact = pass(in, out, message) && intact;
    rc = step(&listener, message, out);
    FUZZ_CHECK(rc != MFS_AUTH_WAITING && (!intact || rc == MFS_AUTH_DONE));
    if (rc == MFS_AUTH_DONE)
        check_agreement(&listener, &caller);
    intact = pass(in, out, message) && intact;
    rc = step(&caller, message, out);
    FUZZ_CHECK(!intact || rc == MFS_AUTH_DONE);
    if (rc == MFS_AUTH_DONE)
        check_agreement(&listener, &caller);
    FUZZ_CHECK(step(&listener, message, out) < 0);
    mfs_auth_end(&listener);
    mfs_auth_end(&caller);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n};
    struct mfs_buf out, message;

    mfs_buf_init(&out);
    mfs_buf_init(&message);
    meet(&in, &out, &message);
    mfs_buf_fini(&out);
    mfs_buf_fini(&message);
    return 0;
}
