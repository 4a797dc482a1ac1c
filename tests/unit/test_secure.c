/* The secret and the keys of connections get neither into swap nor into core dumps: as the kernel
 * tells it of their pages, and as a core dump shows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/log.h"
#include "base/crypto/secure.h"
#include "base/text.h"
#include "net/auth.h"
#include "proto/frame.h"
#include "base/crypto/mac.h"

#define CORE_MAX  (256U << 20)
#define SECRET    64 /* digits of one */
#define NOBODY    65534
#define MEMLOCK   65536                    /* what users had for long */
#define CHECK(ok) check(ok, #ok, __LINE__) /* in a child */

static char dir[] = "/tmp/memefs-unit-XXXXXX";

static void check(bool ok, const char *what, int line)
{
    if (ok)
        return;
    dprintf(STDERR_FILENO, "%d: %s\n", line, what);
    _exit(1);
}

static void in_dir(char out[64], const char *name)
{
    snprintf(out, 64, "%s/%s", dir, name);
}

static void load(const char *name, struct mfs_secret *s)
{
    char path[64];
    struct mfs_err err;

    in_dir(path, name);
    CHECK(!mfs_secret_load(path, s, &err));
}

/* What smaps(5) tells of the page: " rd wr … " */
static void flags_of(const void *p, char out[256])
{
    FILE *f = fopen("/proc/self/smaps", "re");
    unsigned long from, to;
    bool here = false;
    char line[256];

    out[0] = '\0';
    CHECK(f != NULL);
    while (!out[0] && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)p >= from && (uintptr_t)p < to;
        else if (here && !strncmp(line, "VmFlags:", 8))
            mfs_text_copy(out, 256, line + 8);
    }
    fclose(f);
}

static int ended(pid_t pid)
{
    int status;

    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void may_not_lock(void)
{
    struct rlimit few = {MEMLOCK, MEMLOCK};

    CHECK(!setrlimit(RLIMIT_MEMLOCK, &few));
    CHECK(geteuid() || (!setgid(NOBODY) && !setuid(NOBODY)));
}

static _Noreturn void run_unlocked(void)
{
    char flags[256], path[64];
    void *p;

    in_dir(path, "log");
    CHECK(!mfs_log_open("test", path, MFS_LOG_INFO));
    may_not_lock();
    mfs_secure_warn();
    p = mfs_secure_alloc(32);
    CHECK(p != NULL);
    flags_of(p, flags);
    CHECK(strstr(flags, " dd") && !strstr(flags, " lo"));
    mfs_secure_free(p, 32);
    _exit(0);
}

/* Has to come first: this process has no secure heap yet. */
static void a_small_limit_is_a_warning(void **state)
{
    struct mfs_buf log = {0};
    char path[64];
    pid_t pid = fork();

    (void)state;
    if (!pid)
        run_unlocked();
    assert_int_equal(ended(pid), 0);
    in_dir(path, "log");
    assert_int_equal(mfs_file_read(path, 65536, &log), 0);
    assert_non_null(memmem(mfs_buf_data(&log), mfs_buf_len(&log), "RLIMIT_MEMLOCK", 14));
    mfs_buf_fini(&log);
}

/* As much as the secret's heap, here? By the system call itself, as sanitizers make mlock()
 * nothing. */
static bool may_lock(void)
{
    size_t n = 5U << 20;
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool may = p != MAP_FAILED && !syscall(SYS_mlock, p, n);

    return p != MAP_FAILED && !munmap(p, n) && may;
}

static void the_secret_is_locked(void **state)
{
    struct mfs_secret s;
    char flags[256];

    (void)state;
    if (!may_lock())
        skip();
    load("secret", &s);
    flags_of(s.bytes, flags);
    assert_non_null(strstr(flags, " dd"));
    assert_non_null(strstr(flags, " lo"));
    mfs_secret_free(&s);
    assert_null(s.bytes);
}

static void what_is_freed_is_wiped(void **state)
{
    char *p = mfs_secure_alloc(64);

    (void)state;
    assert_non_null(p);
    memset(p, 'x', 64);
    mfs_secure_free(p, 64);
    assert_null(memchr(p, 'x', 64)); /* the heap's own list of free pieces begins there */
}

/* More than the secure heap has: it is ordinary memory, and there is still room for libcrypto. */
static void a_full_heap_goes_on(void **state)
{
    enum { N = 4096, SIZE = 1024 };
    static void *p[N];
    struct mfs_exchange x;
    char flags[256];

    (void)state;
    for (int i = 0; i < N; i++) {
        p[i] = mfs_secure_alloc(SIZE);
        assert_non_null(p[i]);
    }
    flags_of(p[N - 1], flags);
    assert_null(strstr(flags, " dd"));
    assert_int_equal(mfs_exchange_create(&x), 0);
    mfs_exchange_destroy(&x);
    for (int i = 0; i < N; i++)
        mfs_secure_free(p[i], SIZE);
}

/* ---- a core dump ----------------------------------------------------------------------------- */

/* What the dead process leaves behind for the other one to look for. */
struct traces {
    unsigned char key[MFS_CIPHER_KEY];
    char ordinary[32];
};

struct ends {
    struct mfs_auth listener, caller;
    struct mfs_cipher *l[2], *c[2];
};

static int give(struct mfs_auth *a, struct mfs_buf *from, struct mfs_buf *out)
{
    struct mfs_err err;
    char *body;
    size_t len;
    int rc;

    CHECK(mfs_frame_next(from, MFS_AUTH_FRAME_MAX, &body, &len) == 1);
    rc = mfs_auth_step(a, body, len, out, &err);
    mfs_frame_done(from, len);
    return rc;
}

static void meet(struct ends *e, const struct mfs_secret *s)
{
    struct mfs_buf there = {0}, back = {0};

    CHECK(!mfs_auth_begin(&e->listener, s, NULL, &back));
    CHECK(!mfs_auth_begin(&e->caller, s, "lm", NULL));
    CHECK(give(&e->caller, &back, &there) == MFS_AUTH_WAITING);
    CHECK(give(&e->listener, &there, &back) == MFS_AUTH_DONE);
    CHECK(give(&e->caller, &back, &there) == MFS_AUTH_DONE);
    CHECK(!mfs_auth_ciphers(&e->listener, &e->l[0], &e->l[1]));
    CHECK(!mfs_auth_ciphers(&e->caller, &e->c[0], &e->c[1]));
    mfs_buf_fini(&there);
    mfs_buf_fini(&back);
}

/* The key of the caller's frames once more, by what wire/auth.h says of it. */
static void derive(const struct ends *e, const struct mfs_secret *s,
                   unsigned char key[MFS_CIPHER_KEY])
{
    unsigned char theirs[MFS_EXCHANGE_KEY], shared[MFS_EXCHANGE_KEY];
    char shared_text[MFS_AUTH_KEY_TEXT], text[MFS_MAC_TEXT];
    const char *const fields[] = {"memefs1",      "caller's frames", "lm",
                                  e->caller.peer, e->caller.own,     shared_text};

    CHECK(!mfs_text_unhex(e->caller.peer, theirs, sizeof theirs));
    CHECK(!mfs_exchange_shared(&e->caller.exchange, theirs, shared));
    mfs_text_hex(shared, sizeof shared, shared_text);
    CHECK(!mfs_mac(s->bytes, s->len, fields, 6, text));
    CHECK(!mfs_text_unhex(text, key, MFS_CIPHER_KEY));
    explicit_bzero(shared, sizeof shared);
    explicit_bzero(shared_text, sizeof shared_text);
    explicit_bzero(text, sizeof text);
}

/* A frame of the caller's, which both the listener and who has `key` can open. */
static void talk(struct ends *e, const unsigned char key[MFS_CIPHER_KEY])
{
    struct mfs_cipher *same = mfs_cipher_create(key), *with[] = {same, e->l[1]};
    struct mfs_buf frame = {0};
    char copy[64], *body;

    CHECK(same && !mfs_frame_put(&frame, "{}", 2) && !mfs_cipher_seal(e->c[0], &frame, 0));
    for (int i = 0; i < 2; i++) {
        size_t len;

        CHECK(mfs_frame_next(&frame, sizeof copy, &body, &len) == 1);
        memcpy(copy, body, len);
        CHECK(!mfs_cipher_open(with[i], copy, &len));
    }
    mfs_cipher_destroy(same);
    mfs_buf_fini(&frame);
}

static _Noreturn void run_and_dump(int to)
{
    struct rlimit most = {CORE_MAX, CORE_MAX};
    struct traces t;
    struct mfs_secret s;
    struct ends e, next;
    char *ordinary = malloc(sizeof t.ordinary);

    CHECK(ordinary && !chdir(dir) && !setrlimit(RLIMIT_CORE, &most));
    CHECK(!mfs_random(ordinary, sizeof t.ordinary));
    memcpy(t.ordinary, ordinary, sizeof t.ordinary);
    load("dumped", &s);
    meet(&e, &s);
    derive(&e, &s, t.key);
    talk(&e, t.key);
    mfs_auth_end(&e.caller); /* as a connection does */
    mfs_auth_end(&e.listener);
    meet(&next, &s); /* vector registers have what was copied last, and are in the dump, too */
    CHECK(write(to, &t, sizeof t) == sizeof t);
    explicit_bzero(&t, sizeof t);
    abort();
}

/* The core dump, if there is one. */
static int find_core(struct mfs_buf *core)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[sizeof dir + sizeof e->d_name];
    int rc = -1;

    assert_non_null(d);
    while (rc && (e = readdir(d)))
        if (!strncmp(e->d_name, "core", 4)) {
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            rc = mfs_file_read(path, CORE_MAX, core);
        }
    closedir(d);
    return rc;
}

static bool has(const struct mfs_buf *core, const void *what, size_t n)
{
    return memmem(mfs_buf_data(core), mfs_buf_len(core), what, n) != NULL;
}

static void a_core_dump_has_no_secret(void **state)
{
    struct mfs_buf core = {0};
    struct mfs_secret s;
    struct traces t;
    int ends[2], status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (!pid)
        run_and_dump(ends[1]);
    status = ended(pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_int_equal(read(ends[0], &t, sizeof t), sizeof t);
    close(ends[0]);
    close(ends[1]);
    if (!WCOREDUMP(status) || find_core(&core))
        skip(); /* the machine sends core dumps elsewhere, or there are none */
    load("dumped", &s);
    assert_true(has(&core, t.ordinary, sizeof t.ordinary));
    assert_false(has(&core, s.bytes, SECRET));
    assert_false(has(&core, t.key, sizeof t.key));
    mfs_secret_free(&s);
    mfs_buf_fini(&core);
}

static int make(void **state)
{
    char path[64];

    (void)state;
    if (!mkdtemp(dir) || chmod(dir, 0777))
        return -1;
    in_dir(path, "secret");
    if (mfs_secret_create(path))
        return -1;
    in_dir(path, "dumped");
    return mfs_secret_create(path);
}

static int clear_away(void **state)
{
    (void)state;
    return mfs_file_remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_limit_is_a_warning), cmocka_unit_test(the_secret_is_locked),
        cmocka_unit_test(what_is_freed_is_wiped),     cmocka_unit_test(a_full_heap_goes_on),
        cmocka_unit_test(a_core_dump_has_no_secret),
    };

    return cmocka_run_group_tests(tests, make, clear_away);
}
