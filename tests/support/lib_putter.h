/* A process that puts a large object and is held up half-way, for what happens to it then. */
#ifndef MFS_TESTS_LIB_PUTTER_H
#define MFS_TESTS_LIB_PUTTER_H

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "lib_check.h"

#define LIB_PUT    ((size_t)64 << 20)
#define LIB_READ   ((size_t)32 << 20) /* so much of it is read before */
#define LIB_STORED (LIB_READ / 4)     /* and so much of this is stored by then, at least */

/* A process that puts, and comes to bytes that may not be read until it is told so. */
static struct {
    pid_t pid;
    int came, go; /* pipes: it says that it is there; it may read on */
    char *rest;   /* the process' own */
} lib_putter;

static inline void lib_fault(int signal)
{
    char byte = 0;

    (void)signal;
    if (write(lib_putter.came, "", 1) != 1 || read(lib_putter.go, &byte, 1) != 1 ||
        mprotect(lib_putter.rest, LIB_PUT - LIB_READ, PROT_READ))
        _exit(1);
}

static inline void lib_put_large(const char *path)
{
    struct memefs *own = lib_connect();
    char *buf = mmap(NULL, LIB_PUT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(buf != MAP_FAILED);
    memset(buf, 'x', LIB_READ);
    lib_putter.rest = buf + LIB_READ;
    OK(mprotect(lib_putter.rest, LIB_PUT - LIB_READ, PROT_NONE));
    CHECK(signal(SIGSEGV, lib_fault) != SIG_ERR);
    GOOD(memefs_put(own, path, buf, LIB_PUT, 0));
    GOOD(memefs_disconnect(own));
    _exit(0);
}

static inline size_t lib_used(struct memefs *fs)
{
    struct statvfs space;

    GOOD(memefs_statfs(fs, &space));
    return (size_t)(space.f_blocks - space.f_bfree) * space.f_frsize;
}

/* Begins a put in a process of its own, and returns when a part of it is stored. */
static inline void lib_begin_put(struct memefs *fs, const char *path)
{
    size_t before = lib_used(fs);
    int came[2], go[2];
    char byte;

    OK(pipe(came));
    OK(pipe(go));
    OK(lib_putter.pid = fork());
    lib_putter.came = came[1];
    lib_putter.go = lib_putter.pid == 0 ? go[0] : go[1];
    if (lib_putter.pid == 0) {
        OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
        lib_put_large(path);
    }
    OK(close(came[1]));
    OK(close(go[0]));
    EQUAL(1, read(came[0], &byte, 1));
    OK(close(came[0]));
    for (int i = 0; i < 600 && lib_used(fs) < before + LIB_STORED; i++)
        usleep(100000); /* stored in the background, mostly: how much is not certain … */
    CHECK(lib_used(fs) >= before + LIB_STORED); /* … but there is something to come back */
}

#endif
