/* Frames after the proof, with somebody on the way who reads, changes, repeats, leaves out, swaps
 * and invents them: nothing of it is read as a message, and the connection ends. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/conn_impl.h"

#define PATH "/somewhere/secret"

static const struct mfs_secret secret = {.len = 16, .bytes = "0123456789abcdef"};

/* Both ends of a connection, and the two sockets of who is between them. */
struct way {
    struct mfs_loop *loop;
    struct mfs_conn *caller, *listener;
    int to_caller, to_listener;
    unsigned handled, closed;
};

struct bytes {
    char b[1024];
    size_t n;
};

static void on_mount(struct mfs_conn *c, uint64_t id, const void *body, void *arg)
{
    const struct mfs_msg_mount *m = body;
    struct way *w = arg;

    (void)c;
    (void)id;
    assert_string_equal(m->path, PATH);
    w->handled++;
}

static void on_down(struct mfs_conn *c, const struct mfs_err *why, void *arg)
{
    struct way *w = arg;

    (void)c;
    assert_int_equal(why->code, -EBADMSG);
    w->closed++;
}

static const struct mfs_handler handlers[] = {{MFS_MSG_MOUNT, on_mount}, {0, NULL}};
static const struct mfs_service service = {handlers, NULL, on_down};

static struct mfs_conn *make_caller(struct way *w, int fd)
{
    struct mfs_conn *c = mfs_conn_new(w->loop, &service, w, "caller's peer");

    assert_non_null(c);
    assert_int_equal(mfs_auth_begin(&c->auth, &secret, "lm", NULL), 0);
    c->fd = fd;
    c->state = MFS_CONN_PROVING;
    c->events = EPOLLIN;
    c->watch = mfs_loop_watch(w->loop, fd, c->events, mfs_conn_ready, c);
    assert_non_null(c->watch);
    return c;
}

static struct bytes take(int fd)
{
    struct bytes got = {.n = 0};
    ssize_t n = recv(fd, got.b, sizeof got.b, MSG_DONTWAIT);

    assert_true(n > 0 && (size_t)n < sizeof got.b);
    got.n = (size_t)n;
    return got;
}

static void give(int fd, struct mfs_conn *end, const struct bytes *what)
{
    assert_int_equal(send(fd, what->b, what->n, MSG_NOSIGNAL), what->n);
    mfs_conn_ready(end, EPOLLIN);
}

static void pass(int from, int to, struct mfs_conn *end)
{
    struct bytes what = take(from);

    give(to, end, &what);
}

/* Both have proved themselves. */
static void way_open(struct way *w)
{
    int a[2], b[2];

    *w = (struct way){.loop = mfs_loop_create()};
    assert_non_null(w->loop);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b), 0);
    w->to_caller = a[1];
    w->to_listener = b[1];
    w->caller = mfs_conn_get(make_caller(w, a[0]));
    w->listener =
        mfs_conn_get(mfs_conn_accepted(w->loop, b[0], "unix:test", &secret, &service, w, NULL));
    pass(w->to_listener, w->to_caller, w->caller);   /* challenge */
    pass(w->to_caller, w->to_listener, w->listener); /* proof */
    pass(w->to_listener, w->to_caller, w->caller);   /* welcome */
    assert_int_equal(w->caller->state, MFS_CONN_UP);
    assert_int_equal(w->listener->state, MFS_CONN_UP);
}

static void way_close(struct way *w)
{
    mfs_conn_close(w->caller);
    mfs_conn_close(w->listener);
    mfs_conn_put(w->caller);
    mfs_conn_put(w->listener);
    mfs_loop_destroy(w->loop);
    close(w->to_caller);
    close(w->to_listener);
}

/* What the caller sends when it asks for a mount. */
static struct bytes ask(struct way *w)
{
    struct mfs_msg_mount m = {.path = PATH};

    assert_int_equal(mfs_conn_notify(w->caller, MFS_MSG_MOUNT, &m), 0);
    return take(w->to_caller);
}

static void the_listener_gets(struct way *w, const struct bytes *what)
{
    give(w->to_listener, w->listener, what);
}

static void all_as_it_was_sent(void **state)
{
    struct way w;

    (void)state;
    way_open(&w);
    for (unsigned i = 1; i <= 3; i++) {
        struct bytes frame = ask(&w);

        the_listener_gets(&w, &frame);
        assert_int_equal(w.handled, i);
    }
    assert_int_equal(w.closed, 0);
    way_close(&w);
}

static void nothing_can_be_read(void **state)
{
    struct bytes one, other;
    struct way w;

    (void)state;
    way_open(&w);
    one = ask(&w);
    other = ask(&w);
    assert_null(memmem(one.b, one.n, PATH, strlen(PATH)));
    assert_null(memmem(one.b, one.n, "mount", 5));
    assert_int_equal(one.n, other.n);
    assert_memory_not_equal(one.b + 4, other.b + 4, one.n - 4);
    way_close(&w);
}

/* Each bit of the body and of the tag. (A length that is changed announces another frame, which
 * then is not right either, or is not there yet.) */
static void changed(void **state)
{
    size_t bits = 8 * 5;

    (void)state;
    for (size_t bit = 8 * 4; bit < bits; bit += 3) {
        struct way w;
        struct bytes frame;

        way_open(&w);
        frame = ask(&w);
        bits = 8 * frame.n;
        frame.b[bit / 8] ^= (char)(1 << bit % 8);
        the_listener_gets(&w, &frame);
        assert_int_equal(w.handled, 0);
        assert_int_equal(w.closed, 1);
        way_close(&w);
    }
}

static void length_changed(void **state)
{
    (void)state;
    for (int by = -20; by <= 20; by++) {
        struct way w;
        struct bytes frame;

        if (!by)
            continue;
        way_open(&w);
        frame = ask(&w);
        frame.b[3] = (char)(frame.b[3] + by);
        the_listener_gets(&w, &frame);
        assert_int_equal(w.handled, 0);
        assert_int_equal(w.closed, by < 0);
        way_close(&w);
    }
}

static void repeated(void **state)
{
    struct bytes frame;
    struct way w;

    (void)state;
    way_open(&w);
    frame = ask(&w);
    the_listener_gets(&w, &frame);
    the_listener_gets(&w, &frame);
    assert_int_equal(w.handled, 1);
    assert_int_equal(w.closed, 1);
    way_close(&w);
}

static void left_out(void **state)
{
    struct bytes second;
    struct way w;

    (void)state;
    way_open(&w);
    ask(&w);
    second = ask(&w);
    the_listener_gets(&w, &second);
    assert_int_equal(w.handled, 0);
    assert_int_equal(w.closed, 1);
    way_close(&w);
}

static void of_another_connection(void **state)
{
    struct bytes frame;
    struct way w, other;

    (void)state;
    way_open(&w);
    way_open(&other);
    frame = ask(&other);
    the_listener_gets(&w, &frame);
    assert_int_equal(w.handled, 0);
    assert_int_equal(w.closed, 1);
    way_close(&w);
    way_close(&other);
}

static void sent_back(void **state)
{
    struct bytes frame;
    struct way w;

    (void)state;
    way_open(&w);
    frame = ask(&w);
    give(w.to_caller, w.caller, &frame);
    assert_int_equal(w.handled, 0);
    assert_int_equal(w.closed, 1);
    way_close(&w);
}

static void not_sealed(void **state)
{
    static const char *const bodies[] = {"{\"type\":\"mount\",\"id\":0,\"body\":{\"path\":\"" PATH
                                         "\"}}",
                                         "{}", "0123456789abcdef", "0123456789abcdef0"};

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct bytes frame = {.n = 4 + strlen(bodies[i])};
        struct way w;

        frame.b[3] = (char)strlen(bodies[i]);
        memcpy(frame.b + 4, bodies[i], strlen(bodies[i]));
        way_open(&w);
        the_listener_gets(&w, &frame);
        assert_int_equal(w.handled, 0);
        assert_int_equal(w.closed, 1);
        way_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_as_it_was_sent),
        cmocka_unit_test(nothing_can_be_read),
        cmocka_unit_test(changed),
        cmocka_unit_test(length_changed),
        cmocka_unit_test(repeated),
        cmocka_unit_test(left_out),
        cmocka_unit_test(of_another_connection),
        cmocka_unit_test(sent_back),
        cmocka_unit_test(not_sealed),
    };

    mfs_log_set_level(MFS_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
