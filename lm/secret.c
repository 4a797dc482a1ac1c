#include "lm/secret.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "proto/secret.h"

#define INPUT_TIME (10 * MFS_SEC)
#define LEAST      16

static int from_environment(char out[MFS_LM_SECRET_MAX])
{
    char *value = getenv(MFS_SECRET_VARIABLE);
    int rc;

    if (!value)
        return -ENOENT;
    rc = mfs_text_copy(out, MFS_LM_SECRET_MAX, value);
    explicit_bzero(value, strlen(value)); /* /proc/PID/environ shows what stands there */
    unsetenv(MFS_SECRET_VARIABLE);
    return rc ? -EINVAL : 0;
}

/* One byte at a time: what is behind the line is not ours. -ENOENT: there is none. */
static int from_input(char out[MFS_LM_SECRET_MAX])
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    int64_t until = mfs_clock_mono() + INPUT_TIME;
    size_t n = 0;
    char c;

    if (isatty(STDIN_FILENO))
        return -ENOENT;
    while (n < MFS_LM_SECRET_MAX - 1) {
        int64_t left = until - mfs_clock_mono();
        int rc = left > 0 ? poll(&in, 1, (int)(left / MFS_MSEC) + 1) : 0;

        if (!rc)
            return -ETIMEDOUT;
        if (rc < 0 && errno == EINTR)
            continue;
        if (rc < 0 || read(STDIN_FILENO, &c, 1) != 1 || c == '\n')
            break;
        out[n++] = c;
    }
    out[n] = '\0';
    return n ? 0 : -ENOENT;
}

int mfs_lm_secret_given(char out[MFS_LM_SECRET_MAX], struct mfs_err *err)
{
    int rc = from_environment(out);

    if (rc == -ENOENT)
        rc = from_input(out);
    if (rc == -ETIMEDOUT)
        return mfs_err_set(err, rc,
                           "no secret has come on standard input in %d s, and " MFS_SECRET_VARIABLE
                           " is not set: what starts lm must pass on one of the two",
                           (int)(INPUT_TIME / MFS_SEC));
    if (rc == -ENOENT)
        return mfs_err_set(err, rc,
                           "no secret: it is neither in " MFS_SECRET_VARIABLE
                           " nor on standard input; cm hands it to the command that starts lm, "
                           "which must pass on one of the two");
    if (rc || strlen(out) < LEAST)
        return mfs_err_set(err, -EINVAL, "what was given is no secret (16 to 255 bytes)");
    return 0;
}
