#include "listener.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/threads/thread.h"
#include "input.h"

void fuzz_listener_open(struct fuzz_listener *l)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(l->dir, sizeof l->dir, "/tmp/mfs-fuzz-XXXXXX");
    FUZZ_CHECK(mkdtemp(l->dir));
    snprintf(l->path, sizeof l->path, "%s/sock", l->dir);
    memcpy(a.sun_path, l->path, sizeof l->path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FUZZ_CHECK(l->fd >= 0 && !bind(l->fd, (struct sockaddr *)&a, sizeof a) && !listen(l->fd, 8));
}

void fuzz_listener_close(struct fuzz_listener *l)
{
    close(l->fd);
    unlink(l->path);
    rmdir(l->dir);
}

/* libFuzzer's clock interrupts what waits. */
void fuzz_listener_answer(int fd, const char *text)
{
    char asked[4096];

    FUZZ_CHECK(TEMP_FAILURE_RETRY(recv(fd, asked, sizeof asked, 0)) > 0);
    FUZZ_CHECK(TEMP_FAILURE_RETRY(send(fd, text, strlen(text), MSG_NOSIGNAL)) ==
               (ssize_t)strlen(text));
}

int fuzz_listener_accept(struct fuzz_listener *l)
{
    int fd = TEMP_FAILURE_RETRY(accept(l->fd, NULL, NULL));

    FUZZ_CHECK(fd >= 0);
    fuzz_listener_answer(fd, "+OK\r\n");
    return fd;
}

static void *accept_one(void *arg)
{
    struct fuzz_listener *l = arg;

    l->accepted = fuzz_listener_accept(l);
    if (l->then)
        l->then(l->accepted);
    return NULL;
}

void fuzz_listener_expect(struct fuzz_listener *l, void (*then)(int fd))
{
    l->then = then;
    FUZZ_CHECK(!mfs_thread_start(&l->thread, "fuzz-accept", accept_one, l));
}

int fuzz_listener_accepted(struct fuzz_listener *l)
{
    pthread_join(l->thread, NULL);
    return l->accepted;
}
