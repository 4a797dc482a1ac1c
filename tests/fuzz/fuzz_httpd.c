/* What is served over HTTP, to who sends any bytes, in any pieces: it answers as HTTP does or hangs
 * up, makes a page for a whole request alone, takes no more of a body than it says, and ends. The
 * first byte says how large the pieces are. What follows the name of the header of keys is made a
 * key that is valid. ctest: timeout=60 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "input.h"
#include "http/httpd.h"

#define TOKEN "0000000000000000000000000000000000000000000000000000000000000000"
#define KEY   "X-Memefs-Key: "

static unsigned made;

static int make(void *arg, bool other, struct mfs_httpd_answer *a)
{
    (void)arg;
    (void)other;
    made++;
    return mfs_buf_printf(&a->out, "page\n");
}

static void take_body(void *arg, const char *from, const char *body, size_t n,
                      struct mfs_httpd_verdict *v)
{
    (void)arg;
    FUZZ_CHECK(from[0] && n <= MFS_HTTPD_BODY_MOST && v->status == 200);
    v->status = n && memchr(body, '{', n) ? 202 : 400;
}

static const struct mfs_httpd_page pages[] = {
    {.path = "/key", .key = true},
    {.path = "/change", .take = take_body},
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

/* All but the last bytes of an answer are as ever. */
static size_t ask_key(struct mfs_loop *loop, struct mfs_httpd *h, char key[4096])
{
    static const char request[] = "GET /key HTTP/1.0\r\n\r\n";
    const char *begin;
    ssize_t n;
    int fd[2];

    FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
    FUZZ_CHECK(!fcntl(fd[1], F_SETFL, O_NONBLOCK) && !mfs_httpd_add(h, fd[1]));
    FUZZ_CHECK(send(fd[0], request, sizeof request - 1, 0) == (ssize_t)sizeof request - 1);
    turn(loop);
    n = recv(fd[0], key, 4095, 0);
    close(fd[0]);
    FUZZ_CHECK(n > 0);
    key[n] = '\0';
    begin = strstr(key, "\r\n\r\n");
    FUZZ_CHECK(begin && strlen(begin + 4) > 1);
    memmove(key, begin + 4, strlen(begin + 4) + 1);
    key[strcspn(key, "\n")] = '\0';
    return strlen(key);
}

/* A copy of the input, with the key where one is to be. */
static uint8_t *with_key(const struct fuzz_input *in, struct mfs_loop *loop, struct mfs_httpd *h)
{
    uint8_t *p = malloc(in->n + 1), *at;
    char key[4096];
    size_t n;

    FUZZ_CHECK(p);
    if (in->n)
        memcpy(p, in->p, in->n);
    at = memmem(p, in->n, KEY, sizeof KEY - 1);
    if (!at)
        return p;
    at += sizeof KEY - 1;
    n = ask_key(loop, h, key);
    if ((size_t)(p + in->n - at) >= n)
        memcpy(at, key, n);
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n};
    size_t piece = 1 + fuzz_u8(&in) * 8;
    struct mfs_err err = {0};
    struct mfs_loop *loop = mfs_loop_create();
    struct mfs_httpd *h;
    uint8_t *copy;
    int64_t began;
    int fd[2];

    fuzz_quiet();
    FUZZ_CHECK(loop && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
    FUZZ_CHECK(!fcntl(fd[1], F_SETFL, O_NONBLOCK));
    made = 0;
    began = mfs_clock_mono();
    h = mfs_httpd_create(loop, NULL, TOKEN, TOKEN, pages, NULL, &err);
    FUZZ_CHECK(h);
    copy = with_key(&in, loop, h);
    in.p = copy;
    FUZZ_CHECK(!mfs_httpd_add(h, fd[1]));
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
    free(copy);
    return 0;
}
