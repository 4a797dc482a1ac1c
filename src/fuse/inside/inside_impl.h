/* What the files of fuse/inside share. */
#ifndef MFS_FUSE_INSIDE_INSIDE_IMPL_H
#define MFS_FUSE_INSIDE_INSIDE_IMPL_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/buf.h"
#include "fuse/inside/inside.h"
#include "fuse/inside/names.h"
#include "fuse/inside/slow.h"
#include "fuse/mount/session.h"
#include "trace/hot.h"
#include "trace/ring.h"

#define MFS_INSIDE_EARLY 16U

struct mfs_inside_handle;
struct mfs_stream;

/* What cm told last of clients, or of events. */
struct mfs_inside_told {
    struct mfs_buf text; /* JSON of the message's schema */
    int64_t at;          /* mono; 0: nothing yet */
};

struct mfs_inside {
    struct mfs_inside_opts opts; /* slow INT64_MAX: none is */
    struct mfs_request_watch watch;
    uid_t uid;
    gid_t gid;
    struct mfs_names *names;
    struct mfs_slow *slow;
    struct mfs_trace_ring *ring;
    struct mfs_hot_sampler *hot;
    struct mfs_fuse *m;

    pthread_t thread; /* gives readers of streams their lines */
    bool started;
    sem_t wake;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards what follows; before the ring's */
    struct mfs_stream *streams;
    struct mfs_inside_handle *handles; /* open files */
    struct mfs_inside_told clients, events;
    uint64_t early[MFS_INSIDE_EARLY]; /* interrupts of requests that were not known */
    unsigned nearly;
};

/* Readers of `trace`. Each answers the request, now or later. */
int mfs_stream_open(struct mfs_inside *i, bool json, struct mfs_stream **stream);
void mfs_stream_read(struct mfs_inside *i, struct mfs_stream *s, uint64_t unique, size_t size,
                     bool wait);
void mfs_stream_close(struct mfs_inside *i, struct mfs_stream *s);
/* True: it was of a read that waited, which is answered. */
bool mfs_stream_interrupt(struct mfs_inside *i, uint64_t unique);
void *mfs_stream_run(void *inside);
void mfs_streams_end(struct mfs_inside *i); /* after the thread's end */

/* Takes a raw request that is for these files; false: it is not. */
bool mfs_inside_serve(struct mfs_fuse *m, const char *raw, size_t len);

/* They wait for nothing, but for cm where it is asked, and then not for long. */
enum mfs_workers_urgency mfs_inside_urgency(const char *raw, size_t len);

void mfs_inside_close_all(struct mfs_fuse *m); /* what its readers never closed */

/* An answer: 0 with n bytes, or -errno. */
void mfs_inside_reply(struct mfs_fuse *m, uint64_t unique, int error, const void *body, size_t n);

#endif
