/* Inside elastic_load: what its parts share. What returns bool is false upon an error, and what
 * returns a descriptor or a count is negative; it has been told then. */
#ifndef MFS_TESTS_ELASTIC_LOAD_H
#define MFS_TESTS_ELASTIC_LOAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BLOCK 4096U
#define CHUNK (1U << 20)
#define PATHS 512U

enum kind {
    OPEN,
    CLOSE,
    WRITE,
    READ,
    FSYNC,
    RENAME,
    UNLINK,
    MKDIR,
    RMDIR,
    LIST,
    STAT,
    LOCK,
    APPEND,
    KINDS
};

struct worker {
    pthread_t thread;
    unsigned id, mount; /* the other one is 1 − mount */
    uint64_t random;
    unsigned char *buf; /* CHUNK and some */
    struct worker *peer;
    uint64_t done; /* what the worker counts for its peer */
};

extern struct load {
    char root[2][256]; /* as each mount names it */
    uint64_t seed;
    uint64_t budget; /* MiB, later bytes */
    unsigned pause_us;
    atomic_bool stop, failed;
    atomic_ullong calls, written, fetched;
    _Atomic int64_t longest[KINDS], longest_now[KINDS]; /* ns */
    pthread_barrier_t append_barrier;                   /* of two */
} load;

/* --- elastic_load_calls.c: calls, timed and checked ---------------------------------------------
 */

extern const char *const load_kind_name[KINDS];

int64_t load_now_ns(void);
void load_took(enum kind kind, int64_t since);
/* Tells it, and ends the load. Always false. */
__attribute__((format(printf, 1, 2))) bool load_wrong(const char *fmt, ...);
/* A call has ended with rc, and errno. */
bool load_check(enum kind kind, int64_t since, int rc, const char *path);
int load_open(const char *path, int flags);
bool load_close(int fd, const char *path);
bool load_write(int fd, const void *p, size_t n, uint64_t off, const char *path);
ssize_t load_read(int fd, void *p, size_t n, uint64_t off, const char *path);
bool load_fsync(int fd, const char *path);
bool load_unlink(const char *path);
bool load_rename(const char *from, const char *to);
bool load_mkdir(const char *path);
bool load_rmdir(const char *path);
bool load_lock(int fd, int type, const char *path);
/* Whether the path exists, and, when it should, has the size. */
bool load_is_there(const char *path, bool expected, int64_t size);

/* --- elastic_load_content.c ---------------------------------------------------------------------
 */

uint64_t load_mix(uint64_t x);
uint64_t load_rnd(uint64_t *state, uint64_t below);
uint64_t load_new_key(struct worker *w);
/* What a file with that key has at `off`, a multiple of 8. The buffer has room up to the next. */
void load_fill(unsigned char *p, size_t n, uint64_t key, uint64_t off);
bool load_same(const unsigned char *p, size_t n, uint64_t key, uint64_t off, const char *path);
bool load_read_same(int fd, unsigned char *buf, size_t n, uint64_t key, uint64_t off,
                    const char *path);
/* The whole file has this size and the key's content. */
bool load_file_same(const char *path, uint64_t size, uint64_t key, unsigned char *buf);
bool load_file_write(const char *path, int flags, uint64_t size, uint64_t key, unsigned char *buf);

bool load_go_on(void); /* between two steps: false when it is time to stop */
/* A path below the root, as that mount names it; returns `out`. */
__attribute__((format(printf, 3, 4))) char *load_at(char out[PATHS], unsigned mount,
                                                    const char *fmt, ...);

/* --- the kinds of load, each in a thread of each mount: a struct worker -------------------------
 */

void *load_large_files(void *arg);
void *load_small_files(void *arg);
void *load_rewrites(void *arg);
void *load_names(void *arg);
void *load_appends(void *arg);
void *load_counters(void *arg);
void load_check_counter(const struct worker *a, const struct worker *b); /* when both have ended */

#endif
