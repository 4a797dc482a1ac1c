/* An event loop: one thread, epoll; descriptors, timers, signals, processes, and work posted from
 * other threads.
 *
 * Everything here is called from the loop's thread (or before mfs_loop_run), except mfs_loop_post
 * and mfs_loop_stop, which any thread may call. Callbacks must not block. A callback may remove any
 * watch or timer, its own included; a removed one is never called again, also not for events that
 * were already collected. */
#ifndef MFS_NET_LOOP_H
#define MFS_NET_LOOP_H

#include <stdint.h>
#include <sys/types.h>

struct mfs_loop;
struct mfs_watch;
struct mfs_timer;

struct mfs_loop *mfs_loop_create(void); /* NULL: errno tells why */

/* Frees the loop and every watch and timer that is left; posted work not yet run is dropped.
 * Descriptors stay open: they belong to the caller that added them. Takes NULL. */
void mfs_loop_destroy(struct mfs_loop *loop);

/* Runs until mfs_loop_stop. 0 or a negative errno of epoll. May be run again after a stop. */
int mfs_loop_run(struct mfs_loop *loop);
void mfs_loop_stop(struct mfs_loop *loop); /* any thread, also before mfs_loop_run */

/* Watches fd for EPOLLIN, EPOLLOUT, …; `ready` gets the events that came. NULL: errno. */
struct mfs_watch *mfs_loop_watch(struct mfs_loop *loop, int fd, uint32_t events,
                                 void (*ready)(void *arg, uint32_t events), void *arg);
int mfs_watch_events(struct mfs_watch *w, uint32_t events); /* changes what is watched for */
void mfs_watch_remove(struct mfs_watch *w);                 /* before closing fd. Takes NULL */

/* Calls `fire` after `after` ns and, when period > 0, then every `period` ns (missed ones are
 * skipped, not made up for); one-shot timers are freed after firing. NULL: ENOMEM. */
struct mfs_timer *mfs_loop_timer(struct mfs_loop *loop, int64_t after, int64_t period,
                                 void (*fire)(void *arg), void *arg);
void mfs_timer_cancel(struct mfs_timer *t); /* takes NULL; not after a one-shot has fired */

/* Runs work(arg) in the loop's thread, in order of posting. 0 or -ENOMEM. Any thread. */
int mfs_loop_post(struct mfs_loop *loop, void (*work)(void *arg), void *arg);

/* Blocks the signal in the calling thread and delivers it to the callback. 0 or negative errno. */
int mfs_loop_signal(struct mfs_loop *loop, int signo, void (*caught)(void *arg, int signo),
                    void *arg);

/* Calls `gone` once when the process ends. For a child it is reaped and `status` is waitpid's; for
 * any other process (adopted from an earlier run) status is -1. NULL: errno, ESRCH when it does not
 * exist. The watch is freed after the call. */
struct mfs_watch *mfs_loop_process(struct mfs_loop *loop, pid_t pid,
                                   void (*gone)(void *arg, pid_t pid, int status), void *arg);

#endif
