/* ctest: timeout=180 nodes=2 workers=2 races
 *
 * On both mounts more processes write and close one file than there are workers, and others read
 * it: a close that waits for the other mount to drop its pages must not keep that one from it. */
#include "fs_pair.h"

enum { WRITERS = 3, READERS = 1, CALLS = 40, PART = 100, SIZE = 8 * 4096, LONG = 30 };

static unsigned char blob[SIZE];

/* Parts of pages that are not there: the kernel keeps those locked until they are written. */
static void writer(struct pair *p, const char *path)
{
    int fd = pair_open(path, O_WRONLY);

    fs_write_at(fd, blob, PART, 1 + (off_t)pair_own_random(p, SIZE - PART));
    OK(close(fd));
}

static void reader(struct pair *p, const char *path)
{
    int fd = pair_open(path, O_RDONLY);

    (void)p;
    fs_read_at(fd, blob, SIZE, 0);
    OK(close(fd));
}

static pid_t start(struct pair *p, unsigned i, const char *path)
{
    pid_t pid = fork();

    OK(pid);
    if (pid)
        return pid;
    p->own = p->own * 31 + i;
    for (unsigned call = 0; call < CALLS; call++) {
        double begin = pair_now();

        if (i < WRITERS)
            writer(p, path);
        else
            reader(p, path);
        if (pair_now() - begin > LONG)
            fs_fail(__FILE__, __LINE__, "a %s took %.1f s", i < WRITERS ? "write" : "read",
                    pair_now() - begin);
    }
    exit(0);
}

static void crowd(struct pair *p)
{
    const char *path = pair_mine(p, "crowd");
    int status, failed = 0;

    if (p->side == 0)
        fs_put(path, blob, SIZE);
    pair_meet(p);
    for (unsigned i = 0; i < WRITERS + READERS; i++)
        start(p, i, path);
    for (unsigned i = 0; i < WRITERS + READERS; i++) {
        OK(wait(&status));
        failed += status != 0;
    }
    EQUAL(0, failed);
}

int main(int argc, char **argv)
{
    static const struct pair_scenario scenarios[] = {
        {"crowd", .race = crowd, .cost = 10},
        {NULL},
    };

    return pair_main(argc, argv, scenarios);
}
