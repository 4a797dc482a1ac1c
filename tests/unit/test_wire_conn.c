/* ctest: threaded
 *
 * Connections, end to end: requests, replies now and later, refusals, time limits, bounds, an
 * uplink that outlives its listener, and the blocking call. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/threads/thread.h"
#include "net/call.h"
#include "net/conn.h"
#include "net/uplink.h"

static struct mfs_secret secret = {.len = 16, .bytes = "0123456789abcdef"};
static struct mfs_secret other_secret = {.len = 16, .bytes = "another-secret-!"};

/* A listener in a thread of its own: `status` is answered at once, `umount` a little later, `mount`
 * never, `stop` hangs up. */
struct server {
    struct mfs_loop *loop;
    struct mfs_listener *listener;
    pthread_t thread;
    char address[MFS_ADDRESS_MAX];
};

struct later {
    struct mfs_conn *conn;
    uint64_t id;
};

static void on_status(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct mfs_status_node nodes[2] = {{.id = 0}, {.id = 1, .memory_used = 1ULL << 50}};
    struct mfs_status s = {.epoch = 3, .nnodes = 2, .node = nodes};

    (void)body;
    (void)arg;
    snprintf(s.name, sizeof s.name, "%s", mfs_conn_role(c));
    snprintf(s.state, sizeof s.state, "running");
    mfs_conn_reply(c, MFS_MSG_STATUS, id, &s);
}

static void reply_now(void *arg)
{
    struct later *l = arg;

    mfs_conn_reply(l->conn, MFS_MSG_UMOUNT, l->id, NULL);
    mfs_conn_put(l->conn);
    free(l);
}

static void on_umount(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    struct server *s = arg;
    struct later *l = malloc(sizeof *l);

    (void)body;
    *l = (struct later){mfs_conn_get(c), id};
    mfs_loop_timer(s->loop, 10 * MFS_MSEC, 0, reply_now, l);
}

static void on_mount(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)c;
    (void)id;
    (void)body;
    (void)arg;
}

static void on_stop(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    (void)id;
    (void)body;
    (void)arg;
    mfs_conn_close(c);
}

static void on_join(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_join *m = body;

    (void)arg;
    mfs_conn_fail(c, id, -EBUSY, "node %u is here already", m->node);
}

static const struct mfs_handler handlers[] = {
    {MFS_MSG_STATUS, on_status}, {MFS_MSG_UMOUNT, on_umount}, {MFS_MSG_MOUNT, on_mount},
    {MFS_MSG_STOP, on_stop},     {MFS_MSG_JOIN, on_join},     {0, NULL}};
static const struct mfs_service service = {handlers, NULL, NULL};

static void *serve(void *arg)
{
    struct server *s = arg;

    mfs_loop_run(s->loop);
    return NULL;
}

static void start(struct server *s, const char *address)
{
    struct mfs_err err = {0};

    s->loop = mfs_loop_create();
    s->listener = mfs_listener_create(s->loop, address, &secret, 16, &service, s, &err);
    assert_string_equal(err.msg, "");
    assert_non_null(s->listener);
    mfs_listener_address(s->listener, s->address);
    assert_int_equal(mfs_thread_start(&s->thread, "server", serve, s), 0);
}

static void finish(struct server *s)
{
    mfs_loop_stop(s->loop);
    pthread_join(s->thread, NULL);
    mfs_listener_destroy(s->listener);
    mfs_loop_destroy(s->loop);
}

static int ask(const struct server *s, const struct mfs_secret *with, enum mfs_msg type,
               const void *body, int64_t timeout, struct mfs_err *err)
{
    _Alignas(16) char reply[MFS_MSG_SIZE_MAX];
    int rc = mfs_call(s->address, with, "cli", type, body, timeout, reply, err);

    mfs_schema_clear(mfs_messages[type].reply, reply);
    return rc;
}

static void calls(void **state)
{
    struct mfs_msg_mount mount = {.path = "/mnt"};
    struct mfs_msg_join join = {.version = 1, .node = 4, .name = "n", .address = "a"};
    struct mfs_status status;
    struct mfs_err err;
    struct server s;

    (void)state;
    start(&s, "127.0.0.1:0");
    assert_int_equal(
        mfs_call(s.address, &secret, "cli", MFS_MSG_STATUS, NULL, 5 * MFS_SEC, &status, &err), 0);
    assert_string_equal(status.name, "cli");
    assert_int_equal(status.nnodes, 2);
    assert_true(status.node[1].memory_used == 1ULL << 50);
    mfs_schema_clear(&mfs_status_schema, &status);

    assert_int_equal(ask(&s, &secret, MFS_MSG_UMOUNT, &mount, 5 * MFS_SEC, &err), 0);
    assert_int_equal(ask(&s, &secret, MFS_MSG_JOIN, &join, 5 * MFS_SEC, &err), -EBUSY);
    assert_string_equal(err.msg, "node 4 is here already");
    assert_int_equal(ask(&s, &secret, MFS_MSG_MOUNT, &mount, 50 * MFS_MSEC, &err), -ETIMEDOUT);
    assert_int_equal(ask(&s, &secret, MFS_MSG_STOP, NULL, 5 * MFS_SEC, &err), -ECONNABORTED);
    assert_int_equal(ask(&s, &secret, MFS_MSG_CLIENT_READY, NULL, 5 * MFS_SEC, &err), -EOPNOTSUPP);
    assert_int_equal(ask(&s, &secret, MFS_MSG_JOIN, NULL, 5 * MFS_SEC, &err), -EINVAL);
    assert_int_equal(ask(&s, &other_secret, MFS_MSG_STATUS, NULL, 5 * MFS_SEC, &err), -EACCES);
    finish(&s);
    assert_int_equal(ask(&s, &secret, MFS_MSG_STATUS, NULL, 5 * MFS_SEC, &err), -ECONNREFUSED);
    snprintf(s.address, sizeof s.address, "no address");
    assert_int_equal(ask(&s, &secret, MFS_MSG_STATUS, NULL, 5 * MFS_SEC, &err), -EINVAL);
}

static int raw_connect(const struct server *s)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {5, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_port = htons((uint16_t)atoi(strrchr(s->address, ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

/* Reads until the peer hangs up; the bytes read, or -1 when it does not within 5 s. */
static ssize_t read_to_end(int fd)
{
    char text[4096];
    ssize_t total = 0, n;

    while ((n = recv(fd, text, sizeof text, 0)) > 0)
        total += n;
    return n < 0 && errno == EAGAIN ? -1 : total;
}

/* Still, when all that the listener has said so far is read. */
static bool is_open(int fd)
{
    char text[4096];
    ssize_t n;

    do
        n = recv(fd, text, sizeof text, MSG_DONTWAIT);
    while (n > 0);
    return n < 0 && errno == EAGAIN;
}

static void strangers_are_shown_out(void **state)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    char frame[] = "\0\0\0\x1f{\"type\":\"status\",\"id\":1,\"x\":0}";
    struct mfs_err err;
    struct server s;
    int fd, many[8];

    (void)state;
    start(&s, "127.0.0.1:0");
    fd = raw_connect(&s);
    assert_int_equal(send(fd, http, sizeof http - 1, MSG_NOSIGNAL), sizeof http - 1);
    assert_true(read_to_end(fd) >= 0);
    close(fd);
    fd = raw_connect(&s);
    assert_int_equal(send(fd, frame, sizeof frame - 1, MSG_NOSIGNAL), sizeof frame - 1);
    assert_true(read_to_end(fd) < 200); /* the challenge, and nothing about any status */
    close(fd);
    /* Eight silent ones may wait. For one more the oldest goes, whoever comes: who has the secret
     * is not kept out by those who wait. */
    for (int i = 0; i < 8; i++)
        many[i] = raw_connect(&s);
    fd = raw_connect(&s);
    assert_true(read_to_end(many[0]) >= 0);
    assert_int_equal(ask(&s, &secret, MFS_MSG_STATUS, NULL, 5 * MFS_SEC, &err), 0);
    assert_true(read_to_end(many[1]) >= 0);
    assert_true(is_open(many[2]));
    assert_true(is_open(many[7]));
    assert_true(is_open(fd));
    close(fd);
    for (int i = 0; i < 8; i++)
        close(many[i]);
    finish(&s);
}

struct client {
    struct mfs_loop *loop;
    struct mfs_uplink *uplink;
    int ups, downs, replies, errors;
};

static void answered(void *arg, const struct mfs_err *err, const void *reply)
{
    struct client *c = arg;

    assert_true(!err == !!reply);
    c->replies += !err;
    c->errors += err != NULL;
    mfs_loop_stop(c->loop);
}

static void client_up(struct mfs_conn *conn, void *arg)
{
    struct client *c = arg;

    c->ups++;
    assert_ptr_equal(mfs_uplink_conn(c->uplink), conn);
    assert_int_equal(mfs_conn_request(conn, MFS_MSG_STATUS, NULL, 5 * MFS_SEC, answered, c), 0);
}

static void client_down(struct mfs_conn *conn, const struct mfs_err *why, void *arg)
{
    struct client *c = arg;

    (void)conn;
    assert_true(why->code < 0);
    c->downs++;
    assert_null(mfs_uplink_conn(c->uplink));
    mfs_loop_stop(c->loop);
}

static void uplink_comes_back(void **state)
{
    static const struct mfs_service client_service = {NULL, client_up, client_down};
    char dir[] = "/tmp/memefs-unit-XXXXXX", address[64];
    struct client c = {.loop = mfs_loop_create()};
    struct mfs_err err = {0};
    struct server s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(address, sizeof address, "unix:%s/sock", dir);
    c.uplink = mfs_uplink_create(c.loop, address, &secret, "lm", &client_service, &c, &err);
    assert_non_null(c.uplink);
    for (int round = 1; round <= 3; round++) {
        start(&s, address);
        assert_int_equal(mfs_loop_run(c.loop), 0);
        assert_int_equal(c.ups, round);
        assert_int_equal(c.replies, round);
        finish(&s);
        assert_int_equal(mfs_loop_run(c.loop), 0);
        assert_int_equal(c.downs, round);
    }
    assert_int_equal(c.errors, 0);
    mfs_uplink_destroy(c.uplink);
    mfs_loop_destroy(c.loop);
    assert_int_equal(rmdir(dir), 0); /* the listener removed its socket */
}

/* To another server, also while no connection is there, and not to what can't be an address. */
static void uplink_is_redirected(void **state)
{
    static const struct mfs_service client_service = {NULL, client_up, client_down};
    struct client c = {.loop = mfs_loop_create()};
    char much[MFS_ADDRESS_MAX + 1];
    struct mfs_err err = {0};
    struct server one, other;

    (void)state;
    start(&one, "127.0.0.1:0");
    start(&other, "127.0.0.1:0");
    c.uplink = mfs_uplink_create(c.loop, "127.0.0.1:1", &secret, "lm", &client_service, &c, &err);
    assert_non_null(c.uplink);
    assert_int_equal(mfs_uplink_redirect(c.uplink, one.address), 0); /* nothing was up: no `down` */
    assert_int_equal(c.downs, 0);
    assert_int_equal(mfs_loop_run(c.loop), 0);
    assert_int_equal(c.replies, 1);
    memset(much, '1', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    assert_int_equal(mfs_uplink_redirect(c.uplink, much), -ENAMETOOLONG);
    assert_string_equal(mfs_uplink_address(c.uplink), one.address);
    assert_non_null(mfs_uplink_conn(c.uplink));
    assert_int_equal(mfs_uplink_redirect(c.uplink, other.address), 0);
    assert_int_equal(c.downs, 1);
    assert_string_equal(mfs_uplink_address(c.uplink), other.address);
    assert_int_equal(mfs_loop_run(c.loop), 0); /* `down` has stopped it, or the answer does */
    if (c.replies < 2)
        assert_int_equal(mfs_loop_run(c.loop), 0);
    assert_int_equal(c.replies, 2);
    finish(&one); /* nobody is there any more */
    assert_non_null(mfs_uplink_conn(c.uplink));
    assert_int_equal(c.downs, 1);
    mfs_uplink_destroy(c.uplink);
    mfs_loop_destroy(c.loop);
    finish(&other);
}

static void failed(void *arg, const struct mfs_err *err, const void *reply)
{
    struct client *c = arg;

    (void)reply;
    assert_int_equal(err->code, -ECONNABORTED);
    c->errors++;
}

static void pending_up(struct mfs_conn *conn, void *arg)
{
    struct client *c = arg;
    struct mfs_msg_mount mount = {.path = "/mnt"};

    for (int i = 0; i < 3; i++)
        assert_int_equal(mfs_conn_request(conn, MFS_MSG_MOUNT, &mount, 60 * MFS_SEC, failed, c), 0);
    mfs_conn_get(conn);
    mfs_conn_close(conn);
    assert_int_equal(mfs_conn_notify(conn, MFS_MSG_STATUS, NULL), -ENOTCONN);
    mfs_conn_reply(conn, MFS_MSG_STATUS, 1, NULL);
    mfs_conn_put(conn);
    mfs_loop_stop(c->loop);
}

static void closing_fails_what_is_open(void **state)
{
    static const struct mfs_service client_service = {NULL, pending_up, NULL};
    struct client c = {.loop = mfs_loop_create()};
    struct mfs_err err = {0};
    struct server s;

    (void)state;
    start(&s, "127.0.0.1:0");
    assert_non_null(mfs_conn_connect(c.loop, s.address, &secret, "cli", 5 * MFS_SEC,
                                     &client_service, &c, &err));
    assert_int_equal(mfs_loop_run(c.loop), 0);
    assert_int_equal(c.errors, 3);
    mfs_loop_destroy(c.loop);
    finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls),
        cmocka_unit_test(strangers_are_shown_out),
        cmocka_unit_test(uplink_comes_back),
        cmocka_unit_test(uplink_is_redirected),
        cmocka_unit_test(closing_fails_what_is_open),
    };

    mfs_log_set_level(MFS_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
