/* How a command of a partition is called: arguments in, bytes out; one, several at
 * once, or the same to many partitions. Any thread; blocks until all have answered, as
 * store/store.h says. */
#ifndef MFS_META_CALL_H
#define MFS_META_CALL_H

#include <errno.h>

#include "meta/internal.h"

/* One command, its arguments and its answer; fits on the stack. */
struct mfs_call {
    struct mfs_args args;
    struct mfs_cmd cmd;
};

struct mfs_bytes {
    const char *p;
    size_t n;
};

void mfs_call_command(struct mfs_call *c, const char *name); /* redis' own, or src/partition's */
/* Runs it; 0 or -errno. mfs_call_fini in any case. */
int mfs_call_run(struct mfs_meta *meta, struct mfs_call *c, uint32_t part);
void mfs_call_post(struct mfs_meta *meta, struct mfs_call *c, uint32_t part);
void mfs_call_fini(struct mfs_call *c);
/* The answer's text; p is NULL when it is no string. */
struct mfs_bytes mfs_call_text(const struct mfs_call *c);
struct mfs_bytes mfs_reply_bytes(const struct mfs_reply *r);

/* Several calls, all at once. */
#define MFS_CALLS_MAX 12
struct mfs_calls {
    struct mfs_call call[MFS_CALLS_MAX];
    uint32_t part[MFS_CALLS_MAX];
    size_t n;
};
/* The next call, a command for `part`; its arguments are to be added before the batch runs. */
struct mfs_call *mfs_calls_add(struct mfs_calls *b, const char *name, uint32_t part);
/* 0 or the first error; each call's cmd.rc tells its own. mfs_calls_fini in any case. */
int mfs_calls_run(struct mfs_meta *meta, struct mfs_calls *b);
void mfs_calls_fini(struct mfs_calls *b);
/* And in the same round trip `c` to every partition of the bitmap; those answers are dropped, but
 * their errors count. */
int mfs_calls_run_bits(struct mfs_meta *meta, struct mfs_calls *b, struct mfs_call *c,
                       const unsigned char *bits, size_t nbits);

/* The same call to many partitions at once: those whose bit is set. Each answer is handed to `each`
 * (which may be NULL). */
typedef void mfs_call_each_fn(void *arg, uint32_t part, int rc, struct mfs_bytes answer);
int mfs_call_bits(struct mfs_meta *meta, struct mfs_call *c, const unsigned char *bits, size_t n,
                  mfs_call_each_fn *each, void *arg);

/* How many partitions a bitmap of so many bytes can name, at most. */
size_t mfs_bits_most(const struct mfs_meta *meta, size_t nbits);

/* Arguments in the form that commands take them. */
struct mfs_ino_arg {
    char b[8];
};
struct mfs_time_arg {
    char b[MFS_TIME_LEN];
};
struct mfs_ino_arg mfs_ino_arg(uint64_t ino);
struct mfs_time_arg mfs_time_arg(struct timespec ts);
struct mfs_time_arg mfs_now_arg(void);
void mfs_part_arg(uint32_t part, char out[2]);

/* A call failed with this: it may have happened nevertheless. */
static inline bool mfs_outcome_is_unknown(int rc)
{
    return rc == -EIO || rc == -ETIMEDOUT;
}

#endif
