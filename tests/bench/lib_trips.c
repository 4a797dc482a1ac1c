/* Usage: lib_trips MOUNT…
 *
 * Counts what calls of libmemefs for small objects cost: round trips that the caller waits for, and
 * commands, both per object, with the directory known. Fails when any takes more than is said here
 * and in docs/reference/performance.md. MEMEFS_TEST_NAME and MEMEFS_TEST_STATE name the deployment
 * (tests/support/with_deployment).
 * ctest: release */
#include "lib/lib.h"
#include "lib_check.h"
#include "store/store.h"

#define COUNT 512 /* two batches of mput, one of mget */
#define SIZE  4096

static struct memefs *maker, *fs; /* what one has made, the other gets */
static char data[SIZE], got[COUNT][SIZE], paths[COUNT][64];
static struct memefs_item items[COUNT];

static void name_all(const char *dir)
{
    for (int i = 0; i < COUNT; i++) {
        snprintf(paths[i], sizeof paths[i], "/trips/%s/%d", dir, i);
        items[i] = (struct memefs_item){.path = paths[i], .buf = got[i], .len = SIZE};
    }
}

static void put_each(void)
{
    for (int i = 0; i < COUNT; i++)
        GOOD(memefs_put(fs, paths[i], data, SIZE, 0));
}

static void get_in_turn(void)
{
    for (int i = 0; i < COUNT; i++)
        CHECK(memefs_get(fs, paths[i], got[0], SIZE) == SIZE && memcmp(got[0], data, SIZE) == 0);
}

/* Too few of them for the directory to be listed. */
static void get_some(void)
{
    for (int i = 0; i < 4; i++)
        CHECK(memefs_get(fs, paths[97 * i], got[0], SIZE) == SIZE);
}

static void mput(void)
{
    EQUAL(0, memefs_mput(fs, items, COUNT, 0));
}

static void mget(void)
{
    EQUAL(0, memefs_mget(fs, items, COUNT));
    for (int i = 0; i < COUNT; i++)
        CHECK(items[i].result == SIZE && memcmp(got[i], data, SIZE) == 0);
}

/* Whatever that has put. */
static void mget_own(void)
{
    EQUAL(0, memefs_mget(fs, items, COUNT));
}

/* Round trips and commands of `n` objects, at most. */
static const struct row {
    const char *name, *dir;
    void (*run)(void);
    int n;
    bool made; /* the maker has put them */
    double trips, commands;
} rows[] = {
    {"memefs_put", "put", put_each, COUNT, false, 1, 1},
    {"memefs_put, replacing", "put", put_each, COUNT, false, 1, 1},
    {"memefs_get of its own", "put", get_in_turn, COUNT, false, 0, 0},
    {"memefs_get", "some", get_some, 4, true, 1, 1},
    {"memefs_get, in turn", "turn", get_in_turn, COUNT, true, 0.1, 1},
    {"memefs_mput", "mput", mput, COUNT, false, 1. / 256, 1},
    {"memefs_mget of its own", "mput", mget_own, COUNT, false, 1. / 1024, 0.1},
    {"memefs_mget", "mget", mget, COUNT, true, 1. / 1024, 0.1},
    {"memefs_mget, again", "mget", mget, COUNT, false, 1. / 256, 1},
    {"memefs_mget, once more", "mget", mget, COUNT, false, 0, 0},
};

static struct mfs_store_stats figures(void)
{
    struct mfs_store_stats stats;

    mfs_store_stats(mfs_vfs_store(fs->vfs), &stats);
    return stats;
}

static void make(const struct row *row)
{
    char dir[64];

    snprintf(dir, sizeof dir, "/trips/%s", row->dir);
    GOOD(memefs_makedirs(maker, dir, 0755));
    name_all(row->dir);
    for (int i = 0; i < COUNT && row->made; i++) {
        items[i].buf = data;
        GOOD(memefs_put(maker, paths[i], data, SIZE, 0));
    }
    name_all(row->dir);
}

/* What is done once for a directory (a partition's first name in it is one round trip), a
 * connection or in the background, all in all. */
#define SLACK    40
#define TOGETHER 8 /* the same of trips, where a directory's partitions are asked at once */

static bool is_more(double is, double most, int n, double slack)
{
    return is * n > most * n + slack;
}

static bool measure(const struct row *row)
{
    struct mfs_store_stats before, after;
    struct stat st;
    double trips, commands, slack = row->n == COUNT ? SLACK : 4; /* the path's directories */

    make(row);
    GOOD(memefs_stat(fs, "/trips", &st));
    before = figures();
    row->run();
    after = figures();
    trips = (double)(after.round_trips - before.round_trips) / row->n;
    commands = (double)(after.commands - before.commands) / row->n;
    printf("| %s | %.3f | %.3f |\n", row->name, trips, commands);
    return is_more(trips, row->trips, row->n, row->trips < 0.01 ? TOGETHER : slack) ||
           is_more(commands, row->commands, row->n, slack);
}

int main(void)
{
    bool more = false;

    memset(data, 'x', sizeof data);
    maker = lib_connect();
    fs = lib_connect();
    printf("| call | round trips in sequence | commands |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        more = measure(&rows[i]) || more;
    GOOD(memefs_disconnect(maker));
    GOOD(memefs_disconnect(fs));
    if (more)
        fs_fail(__FILE__, __LINE__, "more round trips or commands than the table allows");
    return 0;
}
