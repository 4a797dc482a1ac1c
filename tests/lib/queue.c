/* ctest: threaded
 *
 * Asynchronous requests, and where things are. */
#include <poll.h>
#include <pthread.h>

#include "lib_check.h"

#define DEPTH 32

static struct memefs *fs;

static void test_queue(void)
{
    struct memefs_completion done[DEPTH];
    static char data[DEPTH][100], got[DEPTH][100];
    struct memefs_queue *q;
    struct pollfd poll_for;
    char path[32];
    int n;

    EQUAL(-EINVAL, memefs_queue_create(fs, 0, 1, &q));
    CHECK(q == NULL);
    GOOD(memefs_queue_create(fs, DEPTH, 4, &q));
    EQUAL(-EBUSY, memefs_disconnect(fs));
    EQUAL(0, memefs_queue_reap(q, done, DEPTH, 1, -1)); /* nothing is under way */
    for (size_t i = 0; i < DEPTH; i++) {
        snprintf(path, sizeof path, "/q/%zu", i);
        memset(data[i], 'a' + (int)i, sizeof data[i]);
        GOOD(memefs_queue_put(q, path, data[i], sizeof data[i], 0, &data[i]));
    }
    EQUAL(-EAGAIN, memefs_queue_put(q, "/q/x", "", 0, 0, NULL));
    EQUAL(DEPTH, memefs_queue_reap(q, done, DEPTH, DEPTH, 60000));
    for (size_t i = 0; i < DEPTH; i++) {
        EQUAL(0, done[i].result);
        CHECK(done[i].data >= (void *)data[0] && done[i].data <= (void *)data[DEPTH - 1]);
    }
    poll_for = (struct pollfd){.fd = memefs_queue_fd(q), .events = POLLIN};
    EQUAL(0, poll(&poll_for, 1, 0));
    for (size_t i = 0; i < DEPTH; i++) {
        snprintf(path, sizeof path, "/q/%zu", i);
        GOOD(memefs_queue_get(q, path, got[i], sizeof got[i], &got[i]));
    }
    for (size_t left = DEPTH; left > 0; left -= (size_t)n) {
        EQUAL(1, poll(&poll_for, 1, 60000));
        n = memefs_queue_reap(q, done, 5, 1, -1);
        CHECK(n >= 1 && n <= 5);
        for (int i = 0; i < n; i++)
            EQUAL(sizeof got[0], done[i].result);
    }
    CHECK(memcmp(data, got, sizeof data) == 0);
    memefs_queue_destroy(q);
    memefs_queue_destroy(NULL);
}

static void test_queued_files(void)
{
    struct memefs_completion done;
    struct memefs_queue *q;
    struct memefs_file *f;
    char got[8];

    GOOD(memefs_queue_create(fs, 4, 1, &q)); /* one thread serves in order */
    GOOD(memefs_open(fs, "/q/f", O_RDWR | O_CREAT, 0644, &f));
    GOOD(memefs_queue_pwrite(q, f, "abcd", 4, 2, NULL));
    GOOD(memefs_queue_fsync(q, f, NULL));
    GOOD(memefs_queue_pread(q, f, got, sizeof got, 0, got));
    GOOD(memefs_queue_get(q, "/q/none", got, sizeof got, NULL));
    EQUAL(1, memefs_queue_reap(q, &done, 1, 1, -1));
    EQUAL(4, done.result);
    EQUAL(1, memefs_queue_reap(q, &done, 1, 1, -1));
    EQUAL(0, done.result);
    EQUAL(1, memefs_queue_reap(q, &done, 1, 1, -1));
    EQUAL(6, done.result);
    CHECK(done.data == got && memcmp(got, "\0\0abcd", 6) == 0);
    EQUAL(1, memefs_queue_reap(q, &done, 1, 1, -1));
    EQUAL(-ENOENT, done.result);
    GOOD(memefs_close(f));
    memefs_queue_destroy(q);
}

static void test_queued_batches(void)
{
    struct memefs_item items[] = {{.path = "/q/m0", .buf = "zero", .len = 4},
                                  {.path = "/q/none/m1", .buf = "one", .len = 3},
                                  {.path = "/q/m2", .buf = "second", .len = 6}};
    struct memefs_completion done;
    struct memefs_queue *q;
    struct stat st;

    GOOD(memefs_queue_create(fs, 4, 1, &q));
    EQUAL(-EINVAL, memefs_queue_mput(q, NULL, 1, 0, NULL));
    EQUAL(-EINVAL, memefs_queue_stat(q, "/q", NULL, 0, NULL));
    GOOD(memefs_queue_mput(q, items, 3, 0, items));
    EQUAL(1, memefs_queue_reap(q, &done, 1, 1, -1));
    CHECK(done.result == 1 && done.data == items);
    EQUAL(-ENOENT, items[1].result);
    for (size_t i = 0; i < 3; i++)
        items[i] = (struct memefs_item){.path = items[i].path};
    GOOD(memefs_queue_mget(q, items, 3, NULL));
    GOOD(memefs_queue_stat(q, "/q/m2", &st, 0, &st));
    EQUAL(1, memefs_queue_reap(q, &done, 1, 1, -1));
    EQUAL(1, done.result);
    CHECK(items[0].result == 4 && memcmp(items[0].buf, "zero", 4) == 0);
    CHECK(items[1].result == -ENOENT && items[2].result == 6);
    for (size_t i = 0; i < 3; i++)
        memefs_free(items[i].buf);
    EQUAL(1, memefs_queue_reap(q, &done, 1, 1, -1));
    CHECK(done.result == 0 && done.data == &st && st.st_size == 6);
    memefs_queue_destroy(q);
}

static int count_lost(void *arg, const struct memefs_lost_file *file)
{
    (void)file;
    ++*(int *)arg;
    return 0;
}

static void *look_for_lost(void *arg)
{
    int lost = 0;

    (void)arg;
    for (int i = 0; i < 5; i++)
        GOOD(memefs_lost(fs, count_lost, &lost));
    EQUAL(0, lost);
    return NULL;
}

static void test_lost_by_threads(void)
{
    pthread_t thread[3];

    for (int i = 0; i < 3; i++)
        EQUAL(0, pthread_create(&thread[i], NULL, look_for_lost, NULL));
    for (int i = 0; i < 3; i++)
        EQUAL(0, pthread_join(thread[i], NULL));
}

static void test_places(void)
{
    struct memefs_node nodes[8];
    struct memefs_piece pieces[64];
    static char data[10 << 20];
    ssize_t n, all;
    uint64_t at = 0;
    int lost = 0;

    EQUAL(4, memefs_nodes(fs, nodes, sizeof *nodes, 8));
    for (uint32_t i = 0; i < 4; i++) {
        EQUAL(i, nodes[i].id);
        CHECK(nodes[i].partitions > 0 && nodes[i].host[0] != '\0');
        EQUAL(i == 0, nodes[i].is_here);
    }
    EQUAL(4, memefs_nodes(fs, NULL, 0, 0));
    GOOD(memefs_put(fs, "/q/big", data, sizeof data, 0));
    all = memefs_layout(fs, "/q/big", 0, 0, pieces, sizeof *pieces, 64);
    CHECK(all > 1 && all < 64);
    for (ssize_t i = 0; i < all; i++) {
        EQUAL(at, pieces[i].offset);
        CHECK(pieces[i].length > 0 && pieces[i].node < 4);
        at += pieces[i].length;
    }
    EQUAL(sizeof data, at);
    n = memefs_layout(fs, "/q/big", 5, 10, pieces, sizeof *pieces, 1);
    EQUAL(1, n);
    EQUAL(5, pieces[0].offset);
    EQUAL(10, pieces[0].length);
    EQUAL(0, memefs_layout(fs, "/q/big", sizeof data, 0, NULL, 0, 0));
    EQUAL(-EISDIR, memefs_layout(fs, "/q", 0, 0, NULL, 0, 0));
    GOOD(memefs_lost(fs, count_lost, &lost));
    EQUAL(0, lost);
}

int main(void)
{
    fs = lib_connect();
    GOOD(memefs_mkdir(fs, "/q", 0755));
    test_queue();
    test_queued_files();
    test_queued_batches();
    test_places();
    test_lost_by_threads();
    GOOD(memefs_disconnect(fs));
    return 0;
}
