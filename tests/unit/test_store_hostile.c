/* A peer that is no redis: malformed, oversized, endless and unasked-for replies must become
 * errors, soon and without much memory; a slow but correct one must be understood, byte by byte.
 * ctest: threaded waits */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/threads/thread.h"
#include "store/subscriber.h"
#include "store_test.h"

#define ANY 8192 /* bytes of a script at most */

/* The peer answers everything that comes first (AUTH) with +OK and what comes then with `script`,
 * `chunk` bytes at a time, and with a flood; then it closes the connection, or keeps it. */
static struct {
    char dir[32], path[64];
    int listener;
    pthread_t thread;
    atomic_bool stop;
    char script[ANY];
    size_t len, chunk;
    bool keep;
    size_t flood;        /* bytes behind the script, at most */
    atomic_size_t taken; /* of them, by one connection; 0: none is over yet */
} peer;

static struct mfs_store *store;

static bool wait_input(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};

    while (!peer.stop)
        if (poll(&p, 1, 20) > 0)
            return true;
    return false;
}

static void flood(int fd)
{
    static const char bytes[65536];
    size_t sum = 0;
    ssize_t n = 1;

    while (n > 0 && sum < peer.flood && !peer.stop) {
        n = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        sum += n > 0 ? (size_t)n : 0;
    }
    if (sum > peer.taken)
        peer.taken = sum;
}

static void serve(int fd)
{
    char in[65536];

    if (!wait_input(fd) || recv(fd, in, sizeof in, 0) <= 0)
        return;
    if (send(fd, "+OK\r\n", 5, MSG_NOSIGNAL) != 5 || !wait_input(fd) ||
        recv(fd, in, sizeof in, 0) <= 0)
        return;
    for (size_t at = 0; at < peer.len;) {
        size_t n = peer.len - at < peer.chunk ? peer.len - at : peer.chunk;

        if (send(fd, peer.script + at, n, MSG_NOSIGNAL) != (ssize_t)n)
            return;
        at += n;
        if (peer.chunk < 16)
            usleep(200);
    }
    flood(fd);
    while (peer.keep && wait_input(fd) && recv(fd, in, sizeof in, 0) > 0)
        ;
}

static void *peer_main(void *arg)
{
    (void)arg;
    while (wait_input(peer.listener)) {
        int fd = accept(peer.listener, NULL, NULL);

        serve(fd);
        close(fd);
    }
    return NULL;
}

static int setup(void **state)
{
    struct mfs_table *table = mfs_table_new(1);
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    (void)state;
    snprintf(peer.dir, sizeof peer.dir, "/tmp/mfs-hostile-XXXXXX");
    assert_non_null(mkdtemp(peer.dir));
    snprintf(peer.path, sizeof peer.path, "%s/sock", peer.dir);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", peer.path);
    peer.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(peer.listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(peer.listener, 8), 0);
    table->epoch = 1;
    table->stripe_size = 1 << 20;
    snprintf(table->name, sizeof table->name, "hostile");
    snprintf(table->part[0].host, sizeof table->part[0].host, "127.0.0.1");
    snprintf(table->part[0].unix_path, sizeof table->part[0].unix_path, "%s", peer.path);
    assert_int_equal(
        mfs_store_create(&store, table, &(struct mfs_store_opts){.io_timeout = MFS_SEC}), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mfs_store_destroy(store);
    close(peer.listener);
    unlink(peer.path);
    rmdir(peer.dir);
    return 0;
}

/* Lets the peer answer n commands with the script; returns what exec did. */
static int face(const char *script, size_t len, size_t chunk, bool keep, struct mfs_cmd *cmds,
                size_t n)
{
    int rc;

    memcpy(peer.script, script, len);
    peer.len = len;
    peer.chunk = chunk;
    peer.keep = keep;
    peer.stop = false;
    assert_int_equal(mfs_thread_start(&peer.thread, "peer", peer_main, NULL), 0);
    rc = mfs_store_exec(store, cmds, n);
    peer.stop = true;
    pthread_join(peer.thread, NULL);
    return rc;
}

static long max_rss_kib(void)
{
    struct rusage r;

    getrusage(RUSAGE_SELF, &r);
    return r.ru_maxrss;
}

static const char *const malformed[] = {
    "?what\r\n",
    "$-2\r\n",
    "$12x\r\n",
    "$\r\n",
    "$ 3\r\nabc\r\n",
    "$99999999999999999999999\r\n",
    "$9223372036854775807\r\n",
    "$536870913\r\n",
    "*-2\r\n",
    "*2147483647\r\n:1\r\n",
    "*99999999999\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    ":12a\r\n",
    "\r\n\r\n",
    "",
};

static void malformed_replies_are_eio(void **state)
{
    char in[4096];
    struct mfs_args a;
    struct mfs_cmd cmd;

    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        for (int with_into = 0; with_into < 2; with_into++) {
            cmd = get_cmd(&a, 0, "key", with_into ? in : NULL, sizeof in);
            cmd.idempotent = false;
            assert_int_equal(face(malformed[i], strlen(malformed[i]), ANY, false, &cmd, 1), -EIO);
            assert_null(cmd.reply);
        }
    cmd = get_cmd(&a, 0, "key", in, sizeof in);
    assert_int_equal(face("$3\r\nabcde\r\n", 11, ANY, false, &cmd, 1), -EIO);
    assert_true(max_rss_kib() < 600L * 1024);
}

static void a_reply_that_never_ends_times_out(void **state)
{
    char in[4096];
    struct mfs_args a;
    struct mfs_cmd cmd;

    (void)state;
    cmd = get_cmd(&a, 0, "key", in, sizeof in);
    assert_int_equal(face("$100\r\nabc", 9, ANY, true, &cmd, 1), -ETIMEDOUT);
    cmd = get_cmd(&a, 0, "key", NULL, 0);
    assert_int_equal(face("*3\r\n:1\r\n", 8, ANY, true, &cmd, 1), -ETIMEDOUT);
}

static void bytes_nobody_asked_for_end_the_connection(void **state)
{
    struct mfs_args a;
    struct mfs_cmd cmd = cmd_of(&a, 0, "PING", NULL, NULL);

    (void)state;
    assert_int_equal(face("+ONE\r\n+TWO\r\n", 12, ANY, true, &cmd, 1), 0);
    assert_string_equal(mfs_reply_str(cmd.reply, NULL), "ONE");
    mfs_cmds_fini(&cmd, 1);
    assert_int_equal(face("+THREE\r\n", 8, ANY, true, &cmd, 1), 0);
    assert_string_equal(mfs_reply_str(cmd.reply, NULL), "THREE");
    mfs_cmds_fini(&cmd, 1);
}

static void correct_replies_in_any_chunks(void **state)
{
    static const char script[] = "$5\r\nhello\r\n$-1\r\n:42\r\n$0\r\n\r\n-ERRNO 17 there\r\n"
                                 "$9\r\noversized\r\n*2\r\n$1\r\nx\r\n$-1\r\n$3\r\nend\r\n";
    enum { N = 8 };
    struct mfs_args a[N];
    struct mfs_cmd cmds[N];
    char in[N][8];

    (void)state;
    for (size_t chunk = 1; chunk < sizeof script; chunk++) {
        for (int i = 0; i < N; i++)
            cmds[i] = get_cmd(&a[i], 0, "key", in[i], sizeof in[i]);
        assert_int_equal(face(script, sizeof script - 1, chunk, true, cmds, N), -EEXIST);
        assert_int_equal(cmds[0].into_len, 5);
        assert_memory_equal(in[0], "hello", 5);
        assert_int_equal(cmds[1].into_len, -1);
        assert_int_equal(mfs_reply_int(cmds[2].reply), 42);
        assert_int_equal(cmds[3].into_len, 0);
        assert_int_equal(cmds[3].rc, 0);
        assert_int_equal(cmds[4].rc, -EEXIST);
        assert_int_equal(cmds[5].rc, -EMSGSIZE);
        assert_int_equal(mfs_reply_count(cmds[6].reply), 2);
        assert_int_equal(cmds[7].into_len, 3);
        assert_memory_equal(in[7], "end", 3);
        mfs_cmds_fini(cmds, N);
    }
}

/* Correct replies with some bytes changed: any outcome but a crash, a hang or a write outside. */
static void garbled_replies_do_no_harm(void **state)
{
    static const char script[] = "$5\r\nhello\r\n*3\r\n$1\r\nx\r\n:12\r\n*1\r\n$-1\r\n+OK\r\n"
                                 "-ERR no\r\n$12\r\nhello, world\r\n";
    static const char alphabet[] = "$*:+-0123456789\r\nx";
    enum { N = 6 };
    struct mfs_args a[N];
    struct mfs_cmd cmds[N];

    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        char text[sizeof script], in[N][16 + 8];
        size_t len = sizeof script - 1;

        memcpy(text, script, sizeof script);
        memset(in, 0x5a, sizeof in);
        srand(seed);
        for (int i = rand() % 4; i >= 0; i--)
            text[(size_t)rand() % len] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        for (int i = 0; i < N; i++) {
            cmds[i] = get_cmd(&a[i], 0, "key", i % 2 ? NULL : in[i], 16);
            cmds[i].idempotent = false;
        }
        face(text, len, seed % 2 ? ANY : 1 + seed % 32, false, cmds, N);
        for (int i = 0; i < N; i++) {
            assert_true(cmds[i].rc <= 0 && cmds[i].into_len <= 16);
            assert_memory_equal(in[i] + 16, "ZZZZZZZZ", 8);
        }
        mfs_cmds_fini(cmds, N);
    }
}

static void ignore_up(void *arg)
{
    (void)arg;
}

static void ignore_message(void *arg, const void *p, size_t n)
{
    (void)arg;
    (void)p;
    (void)n;
}

/* Of a message that says it is long nothing is kept but what a notice may have. */
static void an_endless_message_is_cut_short(void **state)
{
    static const char script[] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nN\r\n:1\r\n"
                                 "*3\r\n$7\r\nmessage\r\n$1\r\nN\r\n$1073741824\r\n";
    const struct mfs_subscriber_opts how = {
        .channel = "N", .channel_len = 1, .up = ignore_up, .message = ignore_message};
    int64_t until = mfs_clock_mono() + 20 * MFS_SEC;
    struct mfs_subscriber *subscriber;

    (void)state;
    memcpy(peer.script, script, sizeof script - 1);
    peer.len = sizeof script - 1;
    peer.chunk = ANY;
    peer.flood = 64U << 20;
    peer.keep = false;
    peer.stop = false;
    assert_int_equal(mfs_thread_start(&peer.thread, "peer", peer_main, NULL), 0);
    assert_int_equal(mfs_subscriber_create(&subscriber, store, &how), 0);
    while (!peer.taken && mfs_clock_mono() < until)
        mfs_clock_sleep(MFS_MSEC);
    mfs_subscriber_destroy(subscriber);
    peer.stop = true;
    pthread_join(peer.thread, NULL);
    peer.flood = 0;
    assert_in_range(peer.taken, 1 << 20, 4 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(malformed_replies_are_eio, setup, teardown),
        cmocka_unit_test_setup_teardown(a_reply_that_never_ends_times_out, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_nobody_asked_for_end_the_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(correct_replies_in_any_chunks, setup, teardown),
        cmocka_unit_test_setup_teardown(garbled_replies_do_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(an_endless_message_is_cut_short, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
