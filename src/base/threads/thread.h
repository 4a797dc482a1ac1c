/* The few things that pthreads leave to each program: condition variables on the monotonic clock
 * and named threads. */
#ifndef MFS_BASE_THREADS_THREAD_H
#define MFS_BASE_THREADS_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* As pthread_cond_init, with CLOCK_MONOTONIC. Returns 0 or a negative errno. */
int mfs_cond_init(pthread_cond_t *cond);

/* Waits at most ns nanoseconds. Returns 0 or -ETIMEDOUT; spurious wake-ups happen. */
int mfs_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t ns);

/* Starts a thread with all signals blocked and the name (at most 15 bytes) that ps and the log
 * show. Returns 0 or a negative errno. */
int mfs_thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

#endif
