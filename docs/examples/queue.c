/* Reads while the program goes on: requests of a queue, and their completions.
 *
 *     cc queue.c $(pkg-config --cflags --libs memefs) -o queue
 *     ./queue [DEPLOYMENT [STATE-DIR]] */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include <memefs/memefs.h>

#define COUNT 32

static char paths[COUNT][64], bytes[COUNT][4096]; /* they stay until the completion is reaped */

static long good(long result)
{
    if (result < 0)
        errx(1, "%s", memefs_error());
    return result;
}

/* Waits for all that is under way. */
static void reap_all(struct memefs_queue *queue)
{
    struct memefs_completion done[COUNT];
    long n = good(memefs_queue_reap(queue, done, COUNT, COUNT, -1));

    for (long i = 0; i < n; i++)
        if (done[i].result < 0)
            errx(1, "%s: %s", (char *)done[i].data, strerror((int)-done[i].result));
}

int main(int argc, char **argv)
{
    struct memefs_options options = MEMEFS_OPTIONS_INIT;
    struct memefs_queue *queue;
    struct memefs *fs;

    options.deployment = argc > 1 ? argv[1] : NULL;
    options.state_dir = argc > 2 ? argv[2] : NULL;
    good(memefs_connect(&options, &fs));
    good(memefs_queue_create(fs, COUNT, 4, &queue));
    for (int i = 0; i < COUNT; i++) {
        snprintf(paths[i], sizeof paths[i], "/examples/queue/%d", i);
        good(memefs_queue_put(queue, paths[i], bytes[i], 1000, MEMEFS_PUT_PARENTS, paths[i]));
    }
    reap_all(queue);
    for (int i = 0; i < COUNT; i++)
        good(memefs_queue_get(queue, paths[i], bytes[i], sizeof bytes[i], paths[i]));
    /* Here the program computes; memefs_queue_fd() can be polled meanwhile. */
    reap_all(queue);
    printf("%d objects put and got\n", COUNT);
    memefs_queue_destroy(queue);
    good(memefs_disconnect(fs));
    return 0;
}
