/* The load of the soak (tests/support/soak_cluster.sh): processes that write and read on several
 * mounts of one deployment while a driver kills, stops and cuts its parts. Each knows what it was
 * told of every file: what a call acknowledged must be there, what a call failed at may have
 * happened or not, and nothing else may ever be seen. A call may fail, but neither give something
 * wrong nor last longer than the bound. */
#ifndef MFS_TESTS_SOAK_H
#define MFS_TESTS_SOAK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define SOAK_BLOCK    4096U /* within one stripe, one page: stored and seen as a whole */
#define SOAK_MOUNTS   4U
#define SOAK_WORKERS  32U
#define SOAK_FAULTS   64U
#define SOAK_PATH     512U
#define SOAK_ERRNOS   134U
#define SOAK_SETTLE   60U
#define SOAK_STALE    31U /* s that other clients may show what one changed that died meanwhile */
#define SOAK_COUNTERS 64U /* files with a counter, one after another */
#define SOAK_COUNTS   (1U << 16) /* values of one */
#define SOAK_APPENDS  600U       /* records of each appender in one file */

enum soak_call {
    SOAK_OPEN,
    SOAK_CLOSE,
    SOAK_WRITE,
    SOAK_READ,
    SOAK_FSYNC,
    SOAK_TRUNCATE,
    SOAK_RENAME,
    SOAK_LINK,
    SOAK_UNLINK,
    SOAK_MKDIR,
    SOAK_RMDIR,
    SOAK_LIST,
    SOAK_STAT,
    SOAK_LOCK,
    SOAK_APPEND,
    SOAK_CALLS
};

/* What was seen while a fault, told by the driver, was the last one. */
struct soak_fault {
    char name[32];
    atomic_ullong calls, errors;
    _Atomic int64_t longest; /* ns */
};

/* In memory that all processes share. */
struct soak {
    /* set before the processes begin */
    char mount[SOAK_MOUNTS][256];
    unsigned mounts;
    uint64_t seed;
    unsigned bound; /* s that a call may take */
    unsigned pause; /* us after each step */
    int lost_fd;    /* what can't be read in the end, a path per line; -1: nothing may be lost */

    atomic_bool stop;        /* no more changes */
    _Atomic int64_t stopped; /* ns: since when; 0: not yet */
    atomic_bool failed;      /* something is wrong */
    atomic_ullong calls[SOAK_CALLS], errors[SOAK_CALLS], errnos[SOAK_ERRNOS];
    _Atomic int64_t longest[SOAK_CALLS]; /* ns */
    atomic_ullong written, fetched, verified, unsure, wrong, lost;
    struct soak_fault fault[SOAK_FAULTS];
    atomic_uint now, faults; /* the fault that is, and how many kinds there were */

    struct {
        _Atomic int64_t since; /* ns: begin of the call under way; 0: none */
        _Atomic int call;
        char path[SOAK_PATH]; /* for messages: may be torn */
    } under_way[SOAK_WORKERS];

    /* of soak_shared.c */
    atomic_uint counter_file;
    _Atomic uint32_t counter_acked[SOAK_COUNTERS], counter_tried[SOAK_COUNTERS];
    atomic_uchar acked[SOAK_COUNTERS][SOAK_COUNTS];
    unsigned char appended[2][SOAK_APPENDS];
    atomic_uint append_ready[2];
    atomic_bool append_end;
};

struct soak_worker {
    struct soak *s;
    unsigned id, mount;
    uint64_t random;
    unsigned char *buf; /* SOAK_BUF, aligned to a page */
};

#define SOAK_BUF (4U << 20)

/* --- soak_calls.c: calls, timed. They return what the system call does, or a negative errno. An
 * errno that no fault explains has been told as wrong. ---------------------------------------- */

extern const char *const soak_call_name[SOAK_CALLS];

int64_t soak_now(void); /* ns, monotonic */

/* Tells on stderr that the file system is at fault, and counts it. The run goes on. Always false.
 */
__attribute__((format(printf, 2, 3))) bool soak_wrong(struct soak *s, const char *fmt, ...);
/* The same of a file; the line names its inode as logs do, if it is known (not 0). */
__attribute__((format(printf, 4, 5))) bool soak_wrong_file(struct soak *s, const char *path,
                                                           uint64_t ino, const char *fmt, ...);

/* The inode of an open file, as its kernel knows it: the file system is not asked. 0: unknown. */
uint64_t soak_ino(int fd);

/* PATH of mount `mount`, in `out`. */
__attribute__((format(printf, 4, 5))) char *soak_path(const struct soak_worker *w, unsigned mount,
                                                      char out[SOAK_PATH], const char *fmt, ...);

int soak_open(struct soak_worker *w, const char *path, int flags);
int soak_close(struct soak_worker *w, int fd, const char *path);
int soak_fsync(struct soak_worker *w, int fd, const char *path);
/* All of it, or an error. */
int soak_write(struct soak_worker *w, int fd, const void *p, size_t n, uint64_t off,
               const char *path);
int soak_append(struct soak_worker *w, int fd, const void *p, size_t n, const char *path);
/* As much as there is, up to n. */
ssize_t soak_read(struct soak_worker *w, int fd, void *p, size_t n, uint64_t off, const char *path);
int soak_truncate(struct soak_worker *w, const char *path, uint64_t size);
int soak_rename(struct soak_worker *w, const char *from, const char *to);
int soak_link(struct soak_worker *w, const char *from, const char *to);
int soak_unlink(struct soak_worker *w, const char *path);
int soak_mkdir(struct soak_worker *w, const char *path);
int soak_rmdir(struct soak_worker *w, const char *path);
int soak_lock(struct soak_worker *w, int fd, bool lock, const char *path);
/* A call of another kind, from here … to here. `rc` is a count or a negative errno, and returned.
 */
void soak_begin(struct soak_worker *w, enum soak_call call, const char *path);
int soak_end(struct soak_worker *w, enum soak_call call, int rc, const char *path);

/* Whether the path is there; 0, or -ENOENT only if the mount surely was there all the while, not
 * the directory below it. */
int soak_stat(struct soak_worker *w, unsigned mount, const char *path, struct stat *st);

/* Until when (soak_now) others may show what was before, after a change that failed with rc
 * (docs/design/consistency.md, "A client that dies"); 0: no longer. */
int64_t soak_stale_until(int rc);

/* Between two steps: false when it is time to stop. */
bool soak_go_on(struct soak_worker *w);

/* Repeats look(arg) until it is 0, but in the end, all faults being over, not for longer than
 * SOAK_SETTLE s since then. */
int soak_settle(struct soak_worker *w, int (*look)(struct soak_worker *w, void *arg), void *arg);

/* A directory for a worker's files; false when it can't be made, which has been told. */
bool soak_make_dir(struct soak_worker *w, char *path);

/* In the end a file can't be read: that is lost, or wrong where nothing may be lost. */
void soak_gone(struct soak_worker *w, const char *path, int rc);

uint64_t soak_mix(uint64_t x);
uint64_t soak_rnd(struct soak_worker *w, uint64_t below);

/* --- the kinds of load: each runs until soak_go_on() says no, then checks all of its own ------ */

void soak_files(struct soak_worker *w);    /* contents of files of its own */
void soak_names(struct soak_worker *w);    /* names of its own */
void soak_counter(struct soak_worker *w);  /* a counter under a lock, of all */
void soak_appender(struct soak_worker *w); /* appends to a file of two */

#endif
