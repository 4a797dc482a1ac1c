/* A process that is stopped while it puts, for longer than its session lives: the file without a
 * name that it was writing is gone when it goes on, and it puts all of the object once more.
 * ctest: slow waits leaves timeout=240 */
#include "lib_putter.h"

#define LAPSE 45 /* s: a session's life, 20, and housekeeping's time to come to what it had */

int main(int argc, char **argv)
{
    struct memefs *fs = lib_connect();
    struct stat st;
    int status;

    CHECK(argc > 1 && argv[1][0] == '/');
    lib_begin_put(fs, "/late");
    OK(kill(lib_putter.pid, SIGSTOP));
    sleep(LAPSE);
    EQUAL(-ENOENT, memefs_stat(fs, "/late", &st));
    EQUAL(1, write(lib_putter.go, "", 1));
    OK(kill(lib_putter.pid, SIGCONT));
    OK(waitpid(lib_putter.pid, &status, 0));
    EQUAL(0, status);
    GOOD(memefs_stat(fs, "/late", &st));
    EQUAL(LIB_PUT, st.st_size);
    CHECK((size_t)st.st_blocks * 512 >= LIB_PUT);
    GOOD(memefs_unlink(fs, "/late"));
    GOOD(memefs_disconnect(fs));
    return 0;
}
