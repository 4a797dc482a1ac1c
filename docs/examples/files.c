/* Connects to a deployment, writes a file and reads it again.
 *
 *     cc files.c $(pkg-config --cflags --libs memefs) -o files
 *     ./files [DEPLOYMENT [STATE-DIR]] */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <memefs/memefs.h>

/* Calls return a negative errno when they fail. */
static long good(long result)
{
    if (result < 0)
        errx(1, "%s", memefs_error());
    return result;
}

int main(int argc, char **argv)
{
    struct memefs_options options = MEMEFS_OPTIONS_INIT;
    const char text[] = "What is written here, a mount shows, too.\n";
    char back[sizeof text] = "";
    struct memefs_file *file;
    struct memefs *fs;
    struct stat st;

    options.deployment = argc > 1 ? argv[1] : NULL;
    options.state_dir = argc > 2 ? argv[2] : NULL;
    good(memefs_connect(&options, &fs));
    good(memefs_makedirs(fs, "/examples", 0755));

    good(memefs_open(fs, "/examples/file", O_WRONLY | O_CREAT | O_TRUNC, 0644, &file));
    good(memefs_write(file, text, strlen(text)));
    good(memefs_close(file)); /* from now on other clients see it; tells what could not be stored */

    good(memefs_open(fs, "/examples/file", O_RDONLY, 0, &file));
    good(memefs_read(file, back, sizeof back - 1));
    good(memefs_close(file));

    good(memefs_stat(fs, "/examples/file", &st));
    printf("%lld bytes: %s", (long long)st.st_size, back);
    good(memefs_disconnect(fs));
    return 0;
}
