#include "move_writer.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"

static void write_on(struct move_writer *w, const struct mfs_redis *r)
{
    struct mfs_channel *c = move_client(r);
    char key[32], *value = malloc(w->size + 32);
    int rc = 0;

    memset(value, '.', w->size + 31);
    value[w->size + 31] = '\0';
    while (!rc && !atomic_load(&w->stop) && (!w->most || w->written < w->most)) {
        int len = snprintf(value, 24, "%020llu", (unsigned long long)w->written);

        value[len] = '.';
        snprintf(key, sizeof key, "Sw%llu", (unsigned long long)w->written % 512);
        rc = move_run(c, "SET", key, value, NULL, 0);
        if (!rc)
            atomic_fetch_add(&w->written, 1);
    }
    atomic_store(&w->rc, rc);
}

struct move_writer *move_writer_start_some(const struct move_source *s, uint64_t size,
                                           uint64_t most)
{
    struct move_writer *w =
        mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;

    assert_ptr_not_equal(w, MAP_FAILED);
    *w = (struct move_writer){.size = size, .most = most};
    pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_on(w, &s->redis);
        _exit(0);
    }
    w->pid = pid;
    for (int i = 0; i < 20000 && atomic_load(&w->written) < 100; i++)
        mfs_clock_sleep(MFS_MSEC);
    assert_true(atomic_load(&w->written) >= 100);
    return w;
}

struct move_writer *move_writer_start(const struct move_source *s, uint64_t size)
{
    return move_writer_start_some(s, size, 0);
}

void move_writer_end(struct move_writer *w)
{
    int status;

    assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
    assert_int_equal(status, 0);
}

void move_check_written(const struct move_writer *w, const struct mfs_redis *r)
{
    /* The one that nobody was told of may be there as well, in place of the oldest. */
    uint64_t first = w->written > 511 ? w->written - 511 : 0;
    struct mfs_channel *c = move_client(r);
    char key[32], got[64];

    for (uint64_t i = first; i < w->written; i++) {
        snprintf(key, sizeof key, "Sw%llu", (unsigned long long)i % 512);
        assert_int_equal(move_run(c, "GET", key, NULL, got, sizeof got), 0);
        assert_int_equal(strtoull(got, NULL, 10), i);
    }
    mfs_channel_close(c);
}
