/* Tells on which nodes the pieces of a file are, to work near them.
 *
 *     cc layout.c $(pkg-config --cflags --libs memefs) -o layout
 *     ./layout [DEPLOYMENT [STATE-DIR]] */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include <memefs/memefs.h>

#define PIECES 64
#define NODES  256

static long good(long result)
{
    if (result < 0)
        errx(1, "%s", memefs_error());
    return result;
}

int main(int argc, char **argv)
{
    struct memefs_options options = MEMEFS_OPTIONS_INIT;
    static struct memefs_piece pieces[PIECES];
    static struct memefs_node nodes[NODES];
    const size_t size = 8 << 20;
    void *bytes = calloc(1, size);
    struct memefs *fs;
    long n, told;

    if (bytes == NULL)
        err(1, "memory");
    options.deployment = argc > 1 ? argv[1] : NULL;
    options.state_dir = argc > 2 ? argv[2] : NULL;
    good(memefs_connect(&options, &fs));
    good(memefs_put(fs, "/examples/large", bytes, size, MEMEFS_PUT_PARENTS));
    free(bytes);

    /* Both return how many there are, which may be more than there was room for. */
    n = good(memefs_nodes(fs, nodes, sizeof *nodes, NODES));
    for (long i = 0; i < n && i < NODES; i++)
        printf("node %u at %s: %u partitions%s\n", nodes[i].id, nodes[i].host, nodes[i].partitions,
               nodes[i].is_here ? ", this machine's" : "");
    n = good(memefs_layout(fs, "/examples/large", 0, 0, pieces, sizeof *pieces, PIECES));
    told = n < PIECES ? n : PIECES;
    for (long i = 0; i < told; i++)
        printf("%llu bytes at %llu: node %u\n", (unsigned long long)pieces[i].length,
               (unsigned long long)pieces[i].offset, pieces[i].node);
    good(memefs_disconnect(fs));
    return 0;
}
