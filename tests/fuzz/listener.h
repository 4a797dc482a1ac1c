/* Where code connects that makes its own connections to a partition: a UNIX socket at which a fuzz
 * target lets them log on. */
#ifndef MFS_FUZZ_LISTENER_H
#define MFS_FUZZ_LISTENER_H

#include <pthread.h>

struct fuzz_listener {
    int fd;
    char dir[32], path[64];
    pthread_t thread;
    int accepted;
    void (*then)(int fd);
};

void fuzz_listener_open(struct fuzz_listener *l);
void fuzz_listener_close(struct fuzz_listener *l);

/* Waits for the next connection and lets it log on; our end of it. */
int fuzz_listener_accept(struct fuzz_listener *l);

/* The same in another thread, for a connection that this one is about to make; `then` (may be NULL)
 * is called there with our end. _accepted waits for that and returns it. */
void fuzz_listener_expect(struct fuzz_listener *l, void (*then)(int fd));
int fuzz_listener_accepted(struct fuzz_listener *l);

/* Waits for a command, whatever it is, and answers it. */
void fuzz_listener_answer(int fd, const char *text);

#endif
