/* Usage: lib_bench MOUNT [--count N] [--size BYTES] [--large BYTES]
 *
 * Small and large objects by libmemefs and by a mount of the same deployment (MEMEFS_TEST_NAME and
 * MEMEFS_TEST_STATE name it), in turns within one run: operations a second, or MB/s, the best of
 * three turns. What is read, another client has written. The mount is there for long, and so is the
 * connection that a batch is read by, which has read others; what a new connection needs on top of
 * that is told by itself. A batch's list of paths is there before it is asked for. */
#include <stdbool.h>
#include <time.h>

#include "lib_check.h"

#define TURNS 3

static struct memefs *fs, *reader;
static const char *mount;
static int count = 1000;
static size_t size = 4096, large = 256 << 20;
static char *buf;
static struct memefs_item *items;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char *path_of(const char *top, int turn, int i)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/bench/t%d-%d", top, turn, i);
    return path;
}

static void mount_put(int turn)
{
    for (int i = 0; i < count; i++) {
        int fd = open(path_of(mount, turn, i), O_WRONLY | O_CREAT | O_TRUNC, 0644);

        OK(fd);
        CHECK(write(fd, buf, size) == (ssize_t)size);
        OK(close(fd));
    }
}

static void mount_get(int turn)
{
    for (int i = 0; i < count; i++) {
        int fd = open(path_of(mount, turn, i), O_RDONLY);

        OK(fd);
        CHECK(read(fd, buf, size) == (ssize_t)size);
        OK(close(fd));
    }
}

static void lib_put(int turn)
{
    for (int i = 0; i < count; i++)
        GOOD(memefs_put(fs, path_of("", turn, i), buf, size, 0));
}

static void lib_get(int turn)
{
    for (int i = 0; i < count; i++)
        CHECK(memefs_get(fs, path_of("", turn, i), buf, size) == (ssize_t)size);
}

static void fill_items(int turn)
{
    for (int i = 0; i < count; i++) {
        free((char *)items[i].path);
        items[i].path = strdup(path_of("", turn, i));
        items[i].buf = buf + (size_t)i * size;
        items[i].len = size;
    }
}

static void lib_mput(int turn)
{
    (void)turn;
    EQUAL(0, memefs_mput(fs, items, (size_t)count, 0));
}

static void lib_mget(int turn)
{
    (void)turn;
    EQUAL(0, memefs_mget(reader, items, (size_t)count));
}

static void lib_mget_anew(int turn)
{
    (void)turn;
    EQUAL(0, memefs_mget(fs, items, (size_t)count));
}

static void large_of(const char *top, bool put)
{
    int fd = open(path_of(top, 99, 0), put ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0644);
    size_t done = 0;

    OK(fd);
    while (done < large) {
        size_t piece = large - done < 4 << 20 ? large - done : 4 << 20;
        ssize_t n = put ? write(fd, buf + done, piece) : read(fd, buf + done, piece);

        CHECK(n > 0);
        done += (size_t)n;
    }
    OK(close(fd));
}

static void mount_put_large(int turn)
{
    (void)turn;
    large_of(mount, true);
}

static void mount_get_large(int turn)
{
    (void)turn;
    large_of(mount, false);
}

static void lib_put_large(int turn)
{
    (void)turn;
    GOOD(memefs_put(fs, path_of("", 98, 0), buf, large, 0));
}

static void lib_get_large(int turn)
{
    (void)turn;
    CHECK(memefs_get(fs, path_of("", 98, 0), buf, large) == (ssize_t)large);
}

static const struct way {
    const char *name;
    void (*run)(int turn);
    int turn;                /* whose objects: the ways of one number follow each other */
    bool large, batch, anew; /* anew: by a connection that knows nothing yet */
} ways[] = {{"mount: create, write, close", mount_put, 0, .large = false},
            {"mount: open, read, close", mount_get, 10, .large = false},
            {"memefs_put", lib_put, 20, .large = false},
            {"memefs_put, replacing", lib_put, 20, .large = false},
            {"memefs_get", lib_get, 10, .anew = true},
            {"memefs_mput", lib_mput, 30, .batch = true},
            {"memefs_mget", lib_mget, 30, .batch = true},
            {"memefs_mget, new connection", lib_mget_anew, 20, .batch = true, .anew = true},
            {"mount: write, large", mount_put_large, 0, .large = true},
            {"memefs_put, large", lib_put_large, 0, .large = true},
            {"mount: read, large", mount_get_large, 0, .large = true},
            {"memefs_get, large", lib_get_large, 0, .large = true, .anew = true}};
#define WAYS (sizeof ways / sizeof *ways)

static double one(const struct way *w, int turn)
{
    double start, time;

    if (w->anew) {
        GOOD(memefs_disconnect(fs));
        fs = lib_connect();
    }
    if (w->batch)
        fill_items(w->turn + turn);
    start = now();
    w->run(w->turn + turn);
    time = now() - start;
    return w->large ? (double)large / time / 1e6 : count / time;
}

int main(int argc, char **argv)
{
    double best[WAYS] = {0};

    CHECK(argc > 1);
    mount = argv[argc - 1];
    for (int i = 1; i + 2 < argc; i += 2) {
        if (strcmp(argv[i], "--count") == 0)
            count = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--size") == 0)
            size = strtoull(argv[i + 1], NULL, 10);
        else
            large = strtoull(argv[i + 1], NULL, 10);
    }
    buf = calloc(1, large > (size_t)count * size ? large : (size_t)count * size);
    items = calloc((size_t)count, sizeof *items);
    CHECK(buf != NULL && items != NULL);
    fs = lib_connect();
    GOOD(memefs_makedirs(fs, "/bench", 0755));
    /* What the mount reads, another client has written. */
    for (int turn = 0; turn < TURNS; turn++)
        lib_put(10 + turn);
    reader = lib_connect();
    fill_items(10);
    lib_mget(10);
    for (int turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < WAYS; i++) {
            double rate = one(&ways[i], turn);

            best[i] = rate > best[i] ? rate : best[i];
        }
    printf("%d objects of %zu bytes, large: %zu MiB\n", count, size, large >> 20);
    for (size_t i = 0; i < WAYS; i++)
        printf("%-28s %9.0f %s\n", ways[i].name, best[i], ways[i].large ? "MB/s" : "/s");
    GOOD(memefs_disconnect(reader));
    GOOD(memefs_disconnect(fs));
    return 0;
}
