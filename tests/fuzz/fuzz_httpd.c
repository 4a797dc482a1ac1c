/* What is served over HTTP, to who sends any bytes, in any pieces: it answers as HTTP does or hangs
 * up, makes a page for a whole request alone, and ends. The first byte says how large the pieces
 * are. ctest: timeout=60 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "input.h"
#include "http/httpd.h"

static unsigned made;

static int make(void *arg, bool other, struct mfs_httpd_answer *a)
{
    (void)arg;
    (void)other;
    made++;
    return mfs_buf_printf(&a->out, "page\n");
}

static const struct mfs_httpd_page pages[] = {
    {.path = "/page", .alternative = "application/other", .make = make},
    {.path = "/enter", .make = make, .entrance = true},
    {.path = "/stream", .make = make, .stream = "text/event-stream"},
    {0}};

static void stop(void *arg)
{
    mfs_loop_stop(arg);
}

static void turn(struct mfs_loop *loop)
{
    FUZZ_CHECK(mfs_loop_timer(loop, MFS_MSEC / 50, 0, stop, loop));
    FUZZ_CHECK(!mfs_loop_run(loop));
}

/* What has come back begins as an answer does. */
static void take(int fd)
{
    char got[4096];
    ssize_t n = recv(fd, got, sizeof got, MSG_DONTWAIT);

    FUZZ_CHECK(n < 8 || !memcmp(got, "HTTP/1.", 7));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n};
    size_t piece = 1 + fuzz_u8(&in) * 8;
    struct mfs_err err = {0};
    struct mfs_loop *loop = mfs_loop_create();
    struct mfs_httpd *h;
    int64_t began;
    int fd[2];

    fuzz_quiet();
    FUZZ_CHECK(loop && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
    FUZZ_CHECK(!fcntl(fd[1], F_SETFL, O_NONBLOCK));
    made = 0;
    began = mfs_clock_mono();
    h = mfs_httpd_create(loop, NULL, "0000", pages, NULL, &err);
    FUZZ_CHECK(h && !mfs_httpd_add(h, fd[1]));
    while (in.n > 0) {
        struct fuzz_input part = fuzz_take(&in, piece);

        if (send(fd[0], part.p, part.n, MSG_NOSIGNAL) < 0)
            break; /* it has hung up */
        turn(loop);
    }
    shutdown(fd[0], SHUT_WR);
    turn(loop);
    take(fd[0]);
    /* One page both ways, and two; each is kept for half a second. */
    FUZZ_CHECK(made <= 4 || mfs_clock_mono() - began > MFS_SEC / 2);
    mfs_httpd_destroy(h);
    close(fd[0]);
    mfs_loop_destroy(loop);
    return 0;
}
