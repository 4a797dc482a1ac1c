/* Load on two mounts of one deployment while it changes, with a shadow of all that was
 * acknowledged:
 *
 *   elastic_load [-m MEGABYTES] [-p PAUSE_US] DIR_A DIR_B SECONDS SEED
 *
 * Large sequential files, small files, rewrites in place, a tree of names, appends and locked
 * counters from both mounts, each by threads of their own that verify what they find all the time,
 * through the other mount, too, and everything once more at the end. Every second a line tells the
 * throughput and the longest single call. Exit status 1 upon any wrong byte, name or errno, or a
 * call that hangs. SIGTERM ends it early, with all checks. -m bounds the data held at one time
 * (default 256), -p slows every thread down. Works in a directory of its own, which it removes when
 * all was well. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BLOCK  4096U
#define CHUNK  (1U << 20)
#define SMALL  (64U << 10) /* largest small file */
#define SLOTS  128U        /* small files of one thread */
#define NAMES  48U         /* in the tree of names */
#define RECORD 192U        /* of an append */
#define PATHS  512U
#define HANG   180U /* s that the last calls and checks may take */

static char root[2][256];
static uint64_t seed;
static uint64_t budget = 256; /* MiB, later bytes */
static unsigned pause_us;
static atomic_bool stop, failed;

/* --- what is counted ------------------------------------------------------------------------ */

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

static const char *const kind_name[KINDS] = {"open",   "close",  "write", "read",  "fsync",
                                             "rename", "unlink", "mkdir", "rmdir", "list",
                                             "stat",   "lock",   "append"};

static atomic_ullong calls, written, fetched;
static _Atomic int64_t longest[KINDS], longest_now[KINDS]; /* ns */

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void raise_to(_Atomic int64_t *to, int64_t ns)
{
    int64_t old = atomic_load(to);

    while (ns > old && !atomic_compare_exchange_weak(to, &old, ns))
        ;
}

static void took(enum kind kind, int64_t since)
{
    int64_t ns = now_ns() - since;

    atomic_fetch_add(&calls, 1);
    raise_to(&longest[kind], ns);
    raise_to(&longest_now[kind], ns);
}

__attribute__((format(printf, 1, 2))) static bool wrong(const char *fmt, ...)
{
    char line[1024], when[32];
    time_t t = time(NULL);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    strftime(when, sizeof when, "%H:%M:%S", localtime(&t));
    fprintf(stderr, "%s WRONG: %s\n", when, line);
    atomic_store(&failed, true);
    atomic_store(&stop, true);
    return false;
}

/* --- calls, timed and checked: false (0, −1) upon an error, which has been told ------------- */

static bool check(enum kind kind, int64_t since, int rc, const char *path)
{
    int e = errno;

    took(kind, since);
    return rc >= 0 || wrong("%s %s: %s", kind_name[kind], path, strerror(e));
}

static int do_open(const char *path, int flags)
{
    int64_t t = now_ns();
    int fd = open(path, flags, 0644);

    check(OPEN, t, fd, path);
    return fd;
}

static bool do_close(int fd, const char *path)
{
    int64_t t = now_ns();

    return check(CLOSE, t, close(fd), path);
}

static bool do_write(int fd, const void *p, size_t n, uint64_t off, const char *path)
{
    int64_t t = now_ns();
    ssize_t got = pwrite(fd, p, n, (off_t)off);

    if (!check(WRITE, t, got < 0 ? -1 : 0, path))
        return false;
    atomic_fetch_add(&written, n);
    return (size_t)got == n ||
           wrong("write %s: %zd of %zu bytes at %llu", path, got, n, (unsigned long long)off);
}

static ssize_t do_read(int fd, void *p, size_t n, uint64_t off, const char *path)
{
    int64_t t = now_ns();
    ssize_t got = pread(fd, p, n, (off_t)off);

    if (!check(READ, t, got < 0 ? -1 : 0, path))
        return -1;
    atomic_fetch_add(&fetched, (uint64_t)got);
    return got;
}

static bool do_fsync(int fd, const char *path)
{
    int64_t t = now_ns();

    return check(FSYNC, t, fsync(fd), path);
}

static bool do_unlink(const char *path)
{
    int64_t t = now_ns();

    return check(UNLINK, t, unlink(path), path);
}

static bool do_rename(const char *from, const char *to)
{
    int64_t t = now_ns();

    return check(RENAME, t, rename(from, to), from);
}

static bool do_mkdir(const char *path)
{
    int64_t t = now_ns();

    return check(MKDIR, t, mkdir(path, 0755), path);
}

static bool do_rmdir(const char *path)
{
    int64_t t = now_ns();

    return check(RMDIR, t, rmdir(path), path);
}

static bool do_lock(int fd, int type, const char *path)
{
    struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET, .l_len = 8};
    int64_t t = now_ns();

    return check(LOCK, t, fcntl(fd, F_OFD_SETLKW, &lock), path);
}

/* Whether the path exists, and, when it should, has the size. */
static bool is_there(const char *path, bool expected, int64_t size)
{
    int64_t t = now_ns();
    struct stat st;
    int rc = stat(path, &st), e = errno;

    took(STAT, t);
    if (rc < 0 && e != ENOENT)
        return wrong("stat %s: %s", path, strerror(e));
    if ((rc == 0) != expected)
        return wrong("%s: %s", path, expected ? "is not there" : "should be gone");
    if (expected && size >= 0 && st.st_size != size)
        return wrong("%s: %lld bytes, not %lld", path, (long long)st.st_size, (long long)size);
    return true;
}

/* --- content -------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

static uint64_t rnd(uint64_t *state, uint64_t below)
{
    *state += 0x9e3779b97f4a7c15ULL;
    return mix(*state) % below;
}

/* What a file with that key has at `off`, a multiple of 8. The buffer has room up to the next. */
static void fill(unsigned char *p, size_t n, uint64_t key, uint64_t off)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = mix(key + (off + i) * 0x9e3779b97f4a7c15ULL);

        memcpy(p + i, &word, 8);
    }
}

static bool same(const unsigned char *p, size_t n, uint64_t key, uint64_t off, const char *path)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = mix(key + (off + i) * 0x9e3779b97f4a7c15ULL), has = 0;
        size_t len = n - i < 8 ? n - i : 8;

        memcpy(&has, p + i, len);
        if (memcmp(&has, &word, len) != 0)
            return wrong("%s: wrong bytes at %llu: %016llx, not %016llx", path,
                         (unsigned long long)(off + i), (unsigned long long)has,
                         (unsigned long long)word);
    }
    return true;
}

static bool read_same(int fd, unsigned char *buf, size_t n, uint64_t key, uint64_t off,
                      const char *path)
{
    ssize_t got = do_read(fd, buf, n, off, path);

    if (got < 0)
        return false;
    if ((size_t)got != n)
        return wrong("read %s: %zd of %zu bytes at %llu", path, got, n, (unsigned long long)off);
    return same(buf, n, key, off, path);
}

/* The whole file has this size and the key's content. */
static bool file_same(const char *path, uint64_t size, uint64_t key, unsigned char *buf)
{
    int fd = do_open(path, O_RDONLY);
    bool ok = fd >= 0;

    for (uint64_t off = 0; ok && off < size; off += CHUNK)
        ok = read_same(fd, buf, size - off < CHUNK ? size - off : CHUNK, key, off, path);
    if (ok && do_read(fd, buf, 8, size, path) != 0)
        ok = wrong("%s: longer than %llu bytes", path, (unsigned long long)size);
    return fd < 0 ? false : do_close(fd, path) && ok;
}

static bool file_write(const char *path, int flags, uint64_t size, uint64_t key, unsigned char *buf)
{
    int fd = do_open(path, O_WRONLY | flags);
    bool ok = fd >= 0;

    for (uint64_t off = 0; ok && off < size; off += CHUNK) {
        size_t n = size - off < CHUNK ? size - off : CHUNK;

        fill(buf, n, key, off);
        ok = do_write(fd, buf, n, off, path);
    }
    return fd < 0 ? false : do_close(fd, path) && ok;
}

/* --- threads -------------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    unsigned id, mount; /* the other one is 1 − mount */
    uint64_t random;
    unsigned char *buf; /* CHUNK and some */
    struct worker *peer;
    uint64_t done; /* what the worker counts for its peer */
};

static bool go_on(void)
{
    if (pause_us)
        usleep(pause_us);
    return !atomic_load(&stop);
}

__attribute__((format(printf, 3, 4))) static char *at(char out[PATHS], unsigned mount,
                                                      const char *fmt, ...)
{
    int n = snprintf(out, PATHS, "%s/", root[mount]);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(out + n, PATHS - (size_t)n, fmt, ap);
    va_end(ap);
    return out;
}

static uint64_t new_key(struct worker *w)
{
    return mix(seed ^ rnd(&w->random, UINT64_MAX)) & ~7ULL;
}

/* --- large files ---------------------------------------------------------------------------- */

#define LARGE_FILES 4U

static void *large_files(void *arg)
{
    struct worker *w = arg;
    uint64_t size[LARGE_FILES] = {0}, key[LARGE_FILES] = {0};
    uint64_t most = budget / 4 / LARGE_FILES; /* two threads have half of it */
    char path[PATHS], other[PATHS];
    bool ok = true;

    while (ok && go_on()) {
        unsigned i = (unsigned)rnd(&w->random, LARGE_FILES);

        at(path, w->mount, "large%u-%u", w->id, i);
        at(other, 1 - w->mount, "large%u-%u", w->id, i);
        if (size[i] && rnd(&w->random, 3) == 0) {
            ok = do_unlink(path) && is_there(other, false, -1);
            size[i] = 0;
            continue;
        }
        size[i] = 1 + rnd(&w->random, most);
        key[i] = new_key(w);
        ok = file_write(path, O_CREAT | O_TRUNC, size[i], key[i], w->buf) &&
             is_there(other, true, (int64_t)size[i]) &&
             file_same(rnd(&w->random, 4) ? other : path, size[i], key[i], w->buf);
    }
    for (unsigned i = 0; ok && i < 2 * LARGE_FILES; i++)
        if (size[i / 2])
            ok = file_same(at(path, i % 2, "large%u-%u", w->id, i / 2), size[i / 2], key[i / 2],
                           w->buf);
    return NULL;
}

/* --- small files ---------------------------------------------------------------------------- */

struct small {
    bool there;
    uint64_t size, key;
};

/* A file without a name lives as long as it is open. */
static bool nameless(struct worker *w, const char *path)
{
    uint64_t size = 1 + rnd(&w->random, SMALL), key = new_key(w);
    int fd = do_open(path, O_RDWR | O_CREAT | O_EXCL);
    bool ok;

    if (fd < 0)
        return false;
    fill(w->buf, size, key, 0);
    ok = do_unlink(path) && do_write(fd, w->buf, size, 0, path) && do_fsync(fd, path);
    if (ok)
        ok = read_same(fd, w->buf, size, key, 0, path);
    return do_close(fd, path) && ok;
}

static bool small_step(struct worker *w, struct small *list)
{
    unsigned i = (unsigned)rnd(&w->random, SLOTS);
    char path[PATHS], other[PATHS], name[PATHS];
    struct small *f = &list[i];

    at(path, w->mount, "small%u/%u", w->id, i);
    at(other, 1 - w->mount, "small%u/%u", w->id, i);
    switch (rnd(&w->random, 8)) {
    case 0:
        if (!f->there)
            return is_there(other, false, -1);
        f->there = false;
        return do_unlink(path) && is_there(other, false, -1);
    case 1:
        return nameless(w, at(name, w->mount, "small%u/nameless", w->id));
    case 2:
    case 3:
    case 4:
        return f->there ? file_same(other, f->size, f->key, w->buf) : is_there(path, false, -1);
    default:
        f->size = rnd(&w->random, SMALL);
        f->key = new_key(w);
        if (!file_write(path, f->there ? O_TRUNC : O_CREAT | O_EXCL, f->size, f->key, w->buf))
            return false;
        f->there = true;
        return true;
    }
}

static void *small_files(void *arg)
{
    static struct small lists[2][SLOTS];
    struct worker *w = arg;
    struct small *list = lists[w->mount];
    char path[PATHS];
    bool ok = do_mkdir(at(path, w->mount, "small%u", w->id));

    while (ok && go_on())
        ok = small_step(w, list);
    for (unsigned i = 0; ok && i < 2 * SLOTS; i++) {
        struct small *f = &list[i / 2];

        at(path, i % 2, "small%u/%u", w->id, i / 2);
        ok = f->there ? file_same(path, f->size, f->key, w->buf) : is_there(path, false, -1);
    }
    return NULL;
}

/* --- rewrites in place: one file, every other 16 blocks belong to each mount ---------------- */

#define RUN 16U

static uint64_t block_of(const struct worker *w, uint64_t i)
{
    return (2 * (i / RUN) + w->mount) * RUN + i % RUN;
}

static uint64_t stamp(uint64_t block, uint32_t version)
{
    return mix(seed ^ (block << 32 | version)) & ~7ULL;
}

static bool blocks_same(struct worker *w, int fd, const uint32_t *version, uint64_t i, uint64_t n,
                        const char *path)
{
    uint64_t off = block_of(w, i) * BLOCK;
    ssize_t got = do_read(fd, w->buf, n * BLOCK, off, path);
    bool ok = got >= 0;

    if (ok && (uint64_t)got != n * BLOCK)
        ok = wrong("read %s: %zd of %llu bytes at %llu", path, got, (unsigned long long)(n * BLOCK),
                   (unsigned long long)off);
    for (uint64_t b = 0; ok && b < n; b++)
        ok = same(w->buf + b * BLOCK, BLOCK, stamp(block_of(w, i + b), version[i + b]),
                  off + b * BLOCK, path);
    return ok;
}

static bool blocks_write(struct worker *w, int fd, uint32_t *version, uint64_t i, uint64_t n,
                         const char *path)
{
    uint64_t off = block_of(w, i) * BLOCK;

    for (uint64_t b = 0; b < n; b++)
        fill(w->buf + b * BLOCK, BLOCK, stamp(block_of(w, i + b), ++version[i + b]),
             off + b * BLOCK);
    return do_write(fd, w->buf, n * BLOCK, off, path);
}

static bool rewrite_step(struct worker *w, const int fd[2], uint32_t *version, uint64_t blocks,
                         char path[2][PATHS])
{
    uint64_t i = rnd(&w->random, blocks), n = 1 + rnd(&w->random, RUN - i % RUN);
    unsigned m = w->mount;

    switch (rnd(&w->random, 16)) {
    case 0: /* what is stored is seen everywhere */
        return do_fsync(fd[m], path[m]) && blocks_same(w, fd[1 - m], version, i, n, path[1 - m]);
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
        return blocks_same(w, fd[m], version, i, n, path[m]);
    default:
        return blocks_write(w, fd[m], version, i, n, path[m]);
    }
}

static void *rewrites(void *arg)
{
    struct worker *w = arg;
    uint64_t blocks = budget / 8 / BLOCK / RUN * RUN; /* of this mount */
    uint32_t *version = calloc(blocks, sizeof *version);
    char path[2][PATHS];
    int fd[2];
    bool ok;

    for (unsigned m = 0; m < 2; m++)
        fd[m] = do_open(at(path[m], m, "rewrites"), O_RDWR | O_CREAT);
    ok = version && fd[0] >= 0 && fd[1] >= 0;
    for (uint64_t i = 0; ok && i < blocks; i += RUN)
        ok = blocks_write(w, fd[w->mount], version, i, RUN, path[w->mount]);
    while (ok && go_on())
        ok = rewrite_step(w, fd, version, blocks, path);
    if (ok)
        ok = do_fsync(fd[w->mount], path[w->mount]);
    for (unsigned m = 0; m < 2; m++) {
        for (uint64_t i = 0; ok && i < blocks; i += RUN)
            ok = blocks_same(w, fd[m], version, i, RUN, path[m]);
        if (fd[m] >= 0)
            do_close(fd[m], path[m]);
    }
    free(version);
    return NULL;
}

/* --- names: a directory of files and directories, by turns through both mounts -------------- */

enum node { NOTHING, A_FILE, A_DIR };

static bool list_same(const enum node *shadow, unsigned id, unsigned mount)
{
    bool seen[NAMES] = {false};
    char path[PATHS];
    int64_t t = now_ns();
    DIR *dir = opendir(at(path, mount, "names%u", id));
    struct dirent *e;
    bool ok = true;

    if (!dir)
        return wrong("list %s: %s", path, strerror(errno));
    while (ok && (errno = 0, e = readdir(dir))) {
        unsigned long i = strtoul(e->d_name, NULL, 10);

        if (e->d_name[0] == '.')
            continue;
        if (i >= NAMES || seen[i] || shadow[i] == NOTHING)
            ok = wrong("list %s: \"%s\" should not be there", path, e->d_name);
        else
            seen[i] = true;
    }
    if (ok && errno)
        ok = wrong("list %s: %s", path, strerror(errno));
    closedir(dir);
    took(LIST, t);
    for (unsigned i = 0; ok && i < NAMES; i++)
        if (shadow[i] != NOTHING && !seen[i])
            ok = wrong("list %s: \"%u\" is missing", path, i);
    return ok;
}

static bool make_node(enum node *node, uint64_t dice, const char *path)
{
    int fd;

    *node = dice % 3 ? A_FILE : A_DIR;
    if (*node == A_DIR)
        return do_mkdir(path);
    fd = do_open(path, O_WRONLY | O_CREAT | O_EXCL);
    return fd >= 0 && do_close(fd, path);
}

/* rename(2) replaces what is of the same kind; directories here are empty. */
static bool may_replace(enum node from, enum node to)
{
    return to == NOTHING || from == to;
}

static bool names_step(struct worker *w, enum node *shadow)
{
    unsigned i = (unsigned)rnd(&w->random, NAMES), j = (unsigned)rnd(&w->random, NAMES);
    unsigned m = (unsigned)rnd(&w->random, 2);
    char path[PATHS], to[PATHS];

    at(path, m, "names%u/%u", w->id, i);
    at(to, m, "names%u/%u", w->id, j);
    switch (rnd(&w->random, 8)) {
    case 0:
        return list_same(shadow, w->id, m);
    case 1:
    case 2:
        return is_there(path, shadow[i] != NOTHING, -1);
    case 3:
    case 4:
        if (shadow[i] == NOTHING || i == j || !may_replace(shadow[i], shadow[j]))
            return true;
        shadow[j] = shadow[i];
        shadow[i] = NOTHING;
        return do_rename(path, to);
    default:
        break;
    }
    if (shadow[i] == NOTHING)
        return make_node(&shadow[i], rnd(&w->random, 3), path);
    if (shadow[i] == A_DIR) {
        shadow[i] = NOTHING;
        return do_rmdir(path);
    }
    shadow[i] = NOTHING;
    return do_unlink(path);
}

static void *names(void *arg)
{
    struct worker *w = arg;
    enum node shadow[NAMES] = {NOTHING};
    char path[PATHS];
    bool ok = do_mkdir(at(path, w->mount, "names%u", w->id));

    while (ok && go_on())
        ok = names_step(w, shadow);
    if (ok && list_same(shadow, w->id, 0))
        list_same(shadow, w->id, 1);
    return NULL;
}

/* --- appends: both mounts to one file, until it is full; then it is read and emptied -------- */

#define APPENDS 2000U /* of each mount to one file */

static pthread_barrier_t append_barrier;
static atomic_bool append_end;

struct record {
    uint64_t round, writer, number;
    unsigned char rest[RECORD - 24];
};

static bool append_all(struct worker *w, uint64_t round, uint64_t count, const char *path)
{
    int fd = do_open(path, O_WRONLY | O_APPEND | O_CREAT);
    bool ok = fd >= 0;
    struct record r;

    for (uint64_t i = 0; ok && i < count && !atomic_load(&failed); i++) {
        int64_t t = now_ns();
        ssize_t n;

        r.round = round;
        r.writer = w->mount;
        r.number = i;
        fill(r.rest, sizeof r.rest, mix(seed + round * 2 + w->mount) & ~7ULL, i * 8);
        n = write(fd, &r, sizeof r);
        ok = check(APPEND, t, n < 0 ? -1 : 0, path);
        if (ok && n != (ssize_t)sizeof r)
            ok = wrong("append %s: %zd of %zu bytes", path, n, sizeof r);
        atomic_fetch_add(&written, sizeof r);
        if (pause_us)
            usleep(pause_us);
    }
    return fd < 0 ? false : do_close(fd, path) && ok;
}

/* Every record of both is there, once and in order. */
static bool appends_same(struct worker *w, uint64_t round, const uint64_t count[2],
                         const char *path)
{
    uint64_t next[2] = {0}, off = 0;
    int fd = do_open(path, O_RDONLY);
    bool ok = fd >= 0;
    struct record r;
    ssize_t n;

    while (ok && (n = do_read(fd, w->buf, CHUNK / RECORD * RECORD, off, path)) > 0) {
        for (ssize_t at_ = 0; ok && at_ < n; at_ += RECORD, off += RECORD) {
            memcpy(&r, w->buf + at_, sizeof r);
            if (n - at_ < (ssize_t)RECORD || r.round != round || r.writer > 1 ||
                r.number != next[r.writer]++)
                ok = wrong("%s: no such record at %llu: round %llu, %llu's number %llu", path,
                           (unsigned long long)off, (unsigned long long)r.round,
                           (unsigned long long)r.writer, (unsigned long long)r.number);
            else
                ok = same(r.rest, sizeof r.rest, mix(seed + round * 2 + r.writer) & ~7ULL,
                          r.number * 8, path);
        }
    }
    if (ok && (next[0] != count[0] || next[1] != count[1]))
        ok = wrong("%s: %llu and %llu records, not %llu and %llu", path,
                   (unsigned long long)next[0], (unsigned long long)next[1],
                   (unsigned long long)count[0], (unsigned long long)count[1]);
    return fd < 0 ? false : do_close(fd, path) && ok;
}

static void *appends(void *arg)
{
    struct worker *w = arg;
    char path[PATHS];
    uint64_t count[2];

    for (uint64_t round = 0;; round++) {
        at(path, w->mount, "appends%llu", (unsigned long long)round);
        w->done = 1 + rnd(&w->random, APPENDS);
        append_all(w, round, w->done, path);
        pthread_barrier_wait(&append_barrier);
        count[w->mount] = w->done;
        count[1 - w->mount] = w->peer->done;
        if (!atomic_load(&failed))
            appends_same(w, round, count, path);
        pthread_barrier_wait(&append_barrier);
        if (w->mount == 0) {
            if (!atomic_load(&failed))
                do_unlink(path);
            atomic_store(&append_end, !go_on());
        }
        pthread_barrier_wait(&append_barrier);
        if (atomic_load(&append_end))
            return NULL;
    }
}

/* --- a counter that both mounts raise under a lock ------------------------------------------ */

static bool raise_counter(struct worker *w, int fd, const char *path)
{
    uint64_t value = 0;
    bool ok;

    if (!do_lock(fd, F_WRLCK, path))
        return false;
    ok = do_read(fd, &value, sizeof value, 0, path) >= 0;
    value++;
    ok = ok && do_write(fd, &value, sizeof value, 0, path);
    if (ok)
        w->done++;
    return do_lock(fd, F_UNLCK, path) && ok;
}

static void *counters(void *arg)
{
    struct worker *w = arg;
    char path[PATHS];
    int fd = do_open(at(path, w->mount, "counter"), O_RDWR | O_CREAT);
    bool ok = fd >= 0;

    while (ok && go_on())
        ok = raise_counter(w, fd, path);
    if (fd >= 0)
        do_close(fd, path);
    return NULL;
}

static void check_counter(const struct worker *a, const struct worker *b)
{
    uint64_t value = 0;
    char path[PATHS];
    int fd = do_open(at(path, 1, "counter"), O_RDONLY);

    if (fd < 0)
        return;
    do_read(fd, &value, sizeof value, 0, path);
    if (value != a->done + b->done)
        wrong("%s: %llu, not %llu", path, (unsigned long long)value,
              (unsigned long long)(a->done + b->done));
    do_close(fd, path);
}

/* --- all of it ------------------------------------------------------------------------------ */

static void *(*const kinds[])(void *) = {large_files, small_files, rewrites,
                                         names,       appends,     counters};
#define COUNTERS 5U
#define WORKERS  12U

static struct worker worker[WORKERS];

static void report(int second)
{
    static unsigned long long w0, r0, c0;
    unsigned long long w = atomic_load(&written), r = atomic_load(&fetched),
                       c = atomic_load(&calls);
    int64_t most = 0;
    unsigned kind = 0;

    for (unsigned k = 0; k < KINDS; k++) {
        int64_t ns = atomic_exchange(&longest_now[k], 0);

        if (ns > most) {
            most = ns;
            kind = k;
        }
    }
    printf("%4d s: written %7.1f MB/s, read %7.1f MB/s, %6llu calls/s, longest %8.2f ms (%s)\n",
           second, (double)(w - w0) / 1e6, (double)(r - r0) / 1e6, c - c0, (double)most / 1e6,
           kind_name[kind]);
    fflush(stdout);
    w0 = w;
    r0 = r;
    c0 = c;
}

static void end_early(int signo)
{
    (void)signo;
    atomic_store(&stop, true);
}

static void summary(int64_t start)
{
    int64_t most = 0;
    unsigned kind = 0;

    printf("longest by kind (ms):");
    for (unsigned k = 0; k < KINDS; k++) {
        int64_t ns = atomic_load(&longest[k]);

        printf(" %s %.2f", kind_name[k], (double)ns / 1e6);
        if (ns > most) {
            most = ns;
            kind = k;
        }
    }
    printf("\n%s: %.1f s, %.1f MB written, %.1f MB read, %llu calls, longest %.2f ms (%s)\n",
           atomic_load(&failed) ? "FAILED" : "OK", (double)(now_ns() - start) / 1e9,
           (double)atomic_load(&written) / 1e6, (double)atomic_load(&fetched) / 1e6,
           (unsigned long long)atomic_load(&calls), (double)most / 1e6, kind_name[kind]);
}

static void launch(void)
{
    pthread_barrier_init(&append_barrier, NULL, 2);
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *w = &worker[i];

        *w = (struct worker){.id = i, .mount = i % 2, .random = mix(seed + i)};
        w->peer = &worker[i ^ 1];
        w->buf = malloc(CHUNK + 64);
        if (!w->buf)
            abort();
    }
    for (unsigned i = 0; i < WORKERS; i++)
        if (pthread_create(&worker[i].thread, NULL, kinds[i / 2], &worker[i]))
            abort();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void hung(int signo)
{
    static const char text[] = "WRONG: hangs\n";

    (void)signo;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(2);
    _exit(1);
}

/* A directory of our own, as both mounts name it. */
static bool make_root(char *const dirs[2])
{
    for (unsigned m = 0; m < 2; m++)
        snprintf(root[m], sizeof root[m], "%s/load-%llu-%d", dirs[m], (unsigned long long)seed,
                 (int)getpid());
    return do_mkdir(root[0]);
}

static int usage(void)
{
    fputs("usage: elastic_load [-m MEGABYTES] [-p PAUSE_US] DIR_A DIR_B SECONDS SEED\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    int64_t start = now_ns();
    int seconds, c;

    while ((c = getopt(argc, argv, "m:p:")) != -1) {
        if (c == 'm')
            budget = strtoull(optarg, NULL, 10);
        else if (c == 'p')
            pause_us = (unsigned)strtoul(optarg, NULL, 10);
        else
            return usage();
    }
    if (argc - optind != 4 || budget < 16)
        return usage();
    seconds = atoi(argv[optind + 2]);
    seed = strtoull(argv[optind + 3], NULL, 10);
    budget <<= 20;
    printf("seed %llu\n", (unsigned long long)seed);
    if (!make_root(argv + optind))
        return 1;
    signal(SIGALRM, hung);
    signal(SIGTERM, end_early);
    alarm((unsigned)seconds + HANG);
    launch();
    for (int s = 1; s <= seconds && !atomic_load(&stop); s++) {
        while (now_ns() < start + (int64_t)s * 1000000000 && !atomic_load(&stop))
            usleep(10000);
        report(s);
    }
    atomic_store(&stop, true);
    alarm(HANG);
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(worker[i].thread, NULL);
        free(worker[i].buf);
    }
    if (!atomic_load(&failed))
        check_counter(&worker[2 * COUNTERS], &worker[2 * COUNTERS + 1]);
    summary(start);
    if (!atomic_load(&failed) && nftw(root[0], remove_one, 16, FTW_DEPTH | FTW_PHYS))
        wrong("remove %s: %s", root[0], strerror(errno));
    return atomic_load(&failed) ? 1 : 0;
}
