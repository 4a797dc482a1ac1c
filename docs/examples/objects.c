/* Puts and gets whole objects: one, and many at once.
 *
 *     cc objects.c $(pkg-config --cflags --libs memefs) -o objects
 *     ./objects [DEPLOYMENT [STATE-DIR]] */
#include <err.h>
#include <stdio.h>

#include <memefs/memefs.h>

#define COUNT 100

static long good(long result)
{
    if (result < 0)
        errx(1, "%s", memefs_error());
    return result;
}

int main(int argc, char **argv)
{
    struct memefs_options options = MEMEFS_OPTIONS_INIT;
    struct memefs_item items[COUNT] = {{0}};
    char paths[COUNT][64];
    struct memefs *fs;
    long long sum = 0;
    void *one;

    options.deployment = argc > 1 ? argv[1] : NULL;
    options.state_dir = argc > 2 ? argv[2] : NULL;
    good(memefs_connect(&options, &fs));

    /* In place of what was there, at once; the directories are made. */
    good(memefs_put(fs, "/examples/one", "first", 5, MEMEFS_PUT_PARENTS));
    printf("one: %ld bytes\n", good(memefs_get_alloc(fs, "/examples/one", &one)));
    memefs_free(one);

    for (int i = 0; i < COUNT; i++) {
        snprintf(paths[i], sizeof paths[i], "/examples/many/%d", i);
        items[i] = (struct memefs_item){.path = paths[i], .buf = paths[i], .len = sizeof paths[i]};
    }
    if (good(memefs_mput(fs, items, COUNT, MEMEFS_PUT_PARENTS)) > 0)
        errx(1, "some were not put"); /* each item's result says why */

    for (int i = 0; i < COUNT; i++)
        items[i].buf = NULL; /* the library allocates */
    if (good(memefs_mget(fs, items, COUNT)) > 0)
        errx(1, "some were not got");
    for (int i = 0; i < COUNT; i++) {
        sum += items[i].result;
        memefs_free(items[i].buf);
    }
    printf("%d objects: %lld bytes\n", COUNT, sum);
    good(memefs_disconnect(fs));
    return 0;
}
