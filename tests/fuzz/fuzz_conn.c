/* A connection of the control protocol that reads any bytes, in any pieces: as listener or caller
 * before the proof, and as either after it, with requests of its own open: then its frames are
 * sealed first, as by a peer who has the secret, or not. Every request gets its end once; memory
 * stays in proportion to what came. ctest: timeout=60 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "input.h"
#include "net/conn_impl.h"
#include "proto/frame.h"

#define ASKED 6

static const struct mfs_secret secret = {.len = 16, .bytes = "0123456789abcdef"};
static unsigned ended; /* requests of ours */

static void done(void *arg, const struct mfs_err *err, const void *reply)
{
    FUZZ_CHECK(!err == (reply != NULL) && (!err || err->code < 0));
    FUZZ_CHECK(!(*(bool *)arg));
    *(bool *)arg = true;
    ended++;
}

/* Answers one request in four of each kind of answer, the last never. */
static void handle(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)arg;
    FUZZ_CHECK(body);
    if (id % 4 == 0)
        mfs_conn_fail(c, id, -EBUSY, "request %llu", (unsigned long long)id);
    else if (id % 4 == 1)
        mfs_conn_reply(c, MFS_MSG_STOP, id, NULL);
    else if (id % 4 == 2)
        mfs_conn_finish(c);
}

#define ON(type)                                                                                   \
    {                                                                                              \
        MFS_MSG_##type, handle                                                                     \
    }
static const struct mfs_handler handlers[] = {
    ON(ASSIGN), ON(TABLE),  ON(MOUNT),   ON(STOP),         ON(JOIN),         ON(REPORT),
    ON(EVENT),  ON(STATUS), ON(RECEIVE), ON(CLIENT_HELLO), ON(CLIENT_READY), {0, NULL}};
static const struct mfs_service service = {handlers, NULL, NULL};

static struct mfs_conn *listener_end(struct mfs_loop *loop, int fd)
{
    return mfs_conn_accepted(loop, fd, "unix:fuzz", &secret, &service, NULL, NULL);
}

static struct mfs_conn *caller_end(struct mfs_loop *loop, int fd)
{
    struct mfs_conn *c = mfs_conn_new(loop, &service, NULL, "fuzz");

    FUZZ_CHECK(c && !mfs_auth_begin(&c->auth, &secret, "cli", NULL));
    c->fd = fd;
    c->state = MFS_CONN_PROVING;
    c->events = EPOLLIN;
    c->watch = mfs_loop_watch(loop, fd, c->events, mfs_conn_ready, c);
    FUZZ_CHECK(c->watch);
    return c;
}

/* As if both had proved themselves, which no input can. What the peer would seal with is left in
 * *peer. */
static void bring_up(struct mfs_conn *c, bool *asked, struct mfs_cipher **peer)
{
    static const enum mfs_msg types[ASKED] = {MFS_MSG_STATUS, MFS_MSG_SCALE,    MFS_MSG_ASSIGN,
                                              MFS_MSG_TAKE,   MFS_MSG_PROGRESS, MFS_MSG_RECEIVE};
    static const char nothing[MFS_MSG_SIZE_MAX];

    struct mfs_auth other = c->auth;
    struct mfs_cipher *unused;

    FUZZ_CHECK(!mfs_exchange_create(&other.exchange));
    mfs_text_hex(other.exchange.open, sizeof other.exchange.open, other.own);
    memcpy(c->auth.peer, other.own, sizeof other.own);
    memcpy(other.peer, c->auth.own, sizeof other.peer);
    other.caller = !other.caller;
    FUZZ_CHECK(!mfs_auth_ciphers(&other, peer, &unused));
    mfs_auth_end(&other);
    mfs_cipher_destroy(unused);
    FUZZ_CHECK(!mfs_conn_proved(c));
    for (unsigned i = 0; i < ASKED; i++)
        FUZZ_CHECK(!mfs_conn_request(c, types[i], nothing, MFS_SEC, done, &asked[i]));
}

/* The input, its whole frames sealed. */
static void seal(struct fuzz_input in, struct mfs_cipher *with, struct mfs_buf *out)
{
    struct mfs_buf rest;
    char *body;
    size_t len;

    mfs_buf_init(&rest);
    FUZZ_CHECK(!mfs_buf_append(&rest, in.p, in.n));
    while (with && mfs_frame_next(&rest, MFS_FRAME_MAX, &body, &len) > 0) {
        size_t mark = mfs_buf_len(out);

        FUZZ_CHECK(!mfs_frame_put(out, body, len) && !mfs_cipher_seal(with, out, mark));
        mfs_frame_done(&rest, len);
    }
    FUZZ_CHECK(!mfs_buf_append(out, mfs_buf_data(&rest), mfs_buf_len(&rest)));
    mfs_buf_fini(&rest);
}

static void drain(int fd)
{
    char chunk[16384];

    while (recv(fd, chunk, sizeof chunk, MSG_DONTWAIT) > 0)
        ;
}

static void feed(struct mfs_conn *c, int fd, struct fuzz_input in, size_t piece)
{
    while (in.n && c->state != MFS_CONN_CLOSED) {
        struct fuzz_input some = fuzz_take(&in, piece);

        if (send(fd, some.p, some.n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)some.n)
            break;
        mfs_conn_ready(c, EPOLLIN);
        drain(fd);
    }
    shutdown(fd, SHUT_WR);
    if (c->state != MFS_CONN_CLOSED)
        mfs_conn_ready(c, EPOLLIN);
    FUZZ_CHECK(c->state == MFS_CONN_CLOSED);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n};
    uint8_t mode = fuzz_u8(&in);
    size_t piece = mode & 4 ? 1 + fuzz_u8(&in) : 65536;
    struct mfs_loop *loop = mfs_loop_create();
    bool asked[ASKED] = {false};
    struct mfs_cipher *peer = NULL;
    struct mfs_buf stream;
    struct mfs_conn *c;
    int fd[2];

    fuzz_quiet();
    ended = 0;
    FUZZ_CHECK(loop && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
    mfs_buf_init(&stream);
    fuzz_heap_begin();
    c = mode & 1 ? caller_end(loop, fd[0]) : listener_end(loop, fd[0]);
    FUZZ_CHECK(c);
    mfs_conn_get(c);
    if (mode & 2)
        bring_up(c, asked, &peer);
    drain(fd[1]);
    seal(in, mode & 8 ? NULL : peer, &stream);
    feed(c, fd[1],
         (struct fuzz_input){(const uint8_t *)mfs_buf_data(&stream), mfs_buf_len(&stream)}, piece);
    FUZZ_CHECK(ended == (mode & 2 ? ASKED : 0));
    FUZZ_CHECK(fuzz_heap_end() <= (1U << 20) + 1024 * n);
    mfs_conn_put(c);
    mfs_cipher_destroy(peer);
    mfs_buf_fini(&stream);
    mfs_loop_destroy(loop);
    close(fd[1]);
    return 0;
}
