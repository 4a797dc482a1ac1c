/* Processes, by fork and /proc. The spawned child and its starter share a close-on-exec pair of
 * sockets: the child waits there for leave to become the program, and reports a failed exec, so
 * that the caller learns it at once and with the true errno. */
#include "host/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/trusted_dir.h"

#define KILL_WAIT    (2 * MFS_SEC)
#define POLL_STEP    (5 * MFS_MSEC)
#define CMDLINE_MOST (1 << 20)
#define STATUS_MOST  65536 /* bytes of /proc/self/status */
#define ANY_NAME     "?"
#define PREFERRED    (-10)

static bool preferred;
static int nice_before; /* what children go back to */

/* State letter and start time, /proc/PID/stat fields 3 and 22. The name in field 2 may contain
 * anything, so fields are counted from the last ')'. */
static int read_stat(pid_t pid, char *state, uint64_t *start)
{
    char path[64], *at;
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    rc = mfs_file_read(path, 8192, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "", 1);
    if (rc)
        goto out;
    rc = -ESRCH;
    at = strrchr(mfs_buf_data(&b), ')');
    if (!at || at[1] != ' ')
        goto out;
    *state = at[2];
    for (int field = 2; field < 22 && at; field++)
        at = strchr(at + 1, ' ');
    if (at) {
        *start = strtoull(at + 1, NULL, 10);
        rc = 0;
    }
out:
    mfs_buf_fini(&b);
    return rc;
}

static int read_name(pid_t pid, char *out, size_t n)
{
    char link[64], target[PATH_MAX], *deleted;
    const char *slash;
    ssize_t len;

    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    len = readlink(link, target, sizeof target - 1);
    if (len < 0)
        return -errno;
    target[len] = '\0';
    /* An executable replaced by a newer build is still the same process. */
    deleted = strstr(target, " (deleted)");
    if (deleted)
        *deleted = '\0';
    slash = strrchr(target, '/');
    snprintf(out, n, "%.*s", (int)n - 1, slash ? slash + 1 : target);
    return 0;
}

int mfs_proc_identify(pid_t pid, struct mfs_proc *p)
{
    char state;

    *p = (struct mfs_proc){0};
    if (pid <= 0 || read_stat(pid, &state, &p->start) || state == 'Z' || state == 'X')
        return -ESRCH;
    if (read_name(pid, p->comm, sizeof p->comm))
        return -ESRCH;
    p->pid = pid;
    return 0;
}

/* 1: it is that very process, alive; 0: that is gone; a negative errno: something is there, and
 * what can't be seen (no descriptors left, say). */
static int is_it(const struct mfs_proc *p)
{
    struct mfs_proc now;
    char state;
    int rc = p->pid > 0 ? read_stat(p->pid, &state, &now.start) : -ESRCH;

    if (!rc && (now.start != p->start || state == 'Z' || state == 'X'))
        return 0;
    if (!rc)
        rc = read_name(p->pid, now.comm, sizeof now.comm);
    if (!rc)
        return !strcmp(now.comm, p->comm) || !strcmp(p->comm, ANY_NAME);
    if (rc == -ESRCH || rc == -ENOENT || (kill(p->pid, 0) && errno == ESRCH))
        return 0;
    return rc;
}

bool mfs_proc_alive(const struct mfs_proc *p)
{
    return is_it(p) != 0;
}

static unsigned count_threads(pid_t pid)
{
    char path[64];
    unsigned n = 0;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

bool mfs_proc_dying(const struct mfs_proc *p)
{
    uint64_t start;
    char state;

    return p->pid > 0 && !read_stat(p->pid, &state, &start) && start == p->start && state == 'Z' &&
           count_threads(p->pid) > 1;
}

uint64_t mfs_proc_anonymous(const struct mfs_proc *p)
{
    unsigned long long all, resident, shared, bytes = 0;
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)p->pid);
    f = p->pid > 0 ? fopen(path, "re") : NULL;
    if (!f)
        return 0;
    if (fscanf(f, "%llu %llu %llu", &all, &resident, &shared) == 3 && resident > shared)
        bytes = (resident - shared) * (unsigned long long)sysconf(_SC_PAGESIZE);
    fclose(f);
    return bytes;
}

char mfs_proc_state(const struct mfs_proc *p)
{
    uint64_t start;
    char state;

    return mfs_proc_alive(p) && !read_stat(p->pid, &state, &start) ? state : '\0';
}

/* To it, or its group, as kill(2) has it. */
static int signal_to(const struct mfs_proc *p, pid_t to, int sig)
{
    int it = is_it(p);

    if (it <= 0)
        return it < 0 ? it : -ESRCH;
    return kill(to, sig) ? -errno : 0;
}

int mfs_proc_kill(const struct mfs_proc *p, int sig)
{
    return signal_to(p, p->pid, sig);
}

int mfs_proc_kill_group(const struct mfs_proc *p)
{
    return signal_to(p, -p->pid, SIGKILL);
}

static bool wait_gone(const struct mfs_proc *p, int64_t ns)
{
    int64_t until = mfs_clock_mono() + ns;

    while (mfs_proc_alive(p)) {
        if (mfs_clock_mono() >= until)
            return false;
        mfs_clock_sleep(POLL_STEP);
    }
    return true;
}

int mfs_proc_end(const struct mfs_proc *p, int64_t grace)
{
    if (mfs_proc_kill(p, SIGTERM) == -ESRCH || wait_gone(p, grace))
        return 0;
    mfs_proc_kill(p, SIGKILL);
    return wait_gone(p, KILL_WAIT) ? 0 : -ETIMEDOUT;
}

static void reset_signals(void)
{
    sigset_t none;

    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void mfs_proc_prefer(void)
{
    char value[16];
    int n = snprintf(value, sizeof value, "%d", PREFERRED), fd;

    nice_before = getpriority(PRIO_PROCESS, 0);
    preferred = !setpriority(PRIO_PROCESS, 0, PREFERRED);
    if (!preferred || getsid(0) != getpid())
        return;
    fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        mfs_file_write_all(fd, value, (size_t)n);
        close(fd);
    }
}

void mfs_proc_raise_files(void)
{
    struct rlimit r;

    if (!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

/* What a child has for its standard streams. */
struct streams {
    int in;               /* -1: /dev/null */
    int out;              /* -1: log_path tells */
    const char *log_path; /* NULL: /dev/null */
};

/* The order matters: each of the three may be open already, or be what `in` or `out` is. */
static int child_streams(const struct streams *s)
{
    int null = open("/dev/null", O_RDWR), log = s->out;

    if (null < 0)
        return -errno;
    if (log < 0)
        log = s->log_path ? open(s->log_path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0640)
                          : null;
    if (log < 0 || dup2(s->in < 0 ? null : s->in, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        return -errno;
    return 0;
}

static int child_setup(const struct streams *s, int keep)
{
    int rc = child_streams(s);

    if (rc)
        return rc;
    if (keep > 3 && close_range(3, (unsigned)keep - 1, 0))
        return -errno;
    if (close_range((unsigned)keep + 1, ~0U, 0))
        return -errno;
    setsid();
    if (preferred)
        setpriority(PRIO_PROCESS, 0, nice_before);
    reset_signals();
    return 0;
}

/* Waits for the starter's word: one that was killed says nothing, and what it began ends here. */
static _Noreturn void child(const char *const *argv, const struct streams *s,
                            const struct mfs_proc_input *input, int starter)
{
    int rc = child_setup(s, starter);
    ssize_t n;
    char go;

    while ((n = read(starter, &go, 1)) < 0 && errno == EINTR)
        ;
    if (n != 1)
        _exit(127);
    if (!rc && input && input->name && setenv(input->name, input->value, 1))
        rc = -errno;
    if (!rc) {
        execvp(argv[0], (char *const *)argv);
        rc = -errno;
    }
    mfs_file_write_all(starter, &rc, sizeof rc);
    _exit(127);
}

/* Its name is yet to come; pid and start time stay. */
static int note_unborn(pid_t pid, const char *pid_file)
{
    struct mfs_proc p;
    int rc = mfs_proc_identify(pid, &p);

    if (rc)
        return rc;
    mfs_text_copy(p.comm, sizeof p.comm, ANY_NAME);
    return mfs_proc_save(&p, pid_file);
}

/* Lets the child go on, and waits until it has become the program. */
static int let_go(int child_end)
{
    int failed = 0;
    ssize_t n;

    if (send(child_end, "", 1, MSG_NOSIGNAL) != 1)
        return 0; /* it has been killed, which its watcher finds out */
    while ((n = read(child_end, &failed, sizeof failed)) < 0 && errno == EINTR)
        ;
    return n == (ssize_t)sizeof failed ? failed : 0;
}

/* A pipe that has the text in it already, as it holds a page. */
static int open_input(const struct mfs_proc_input *input)
{
    size_t len = strlen(input->text);
    int fds[2], rc = 0;

    if (len > PIPE_BUF)
        return -E2BIG;
    if (pipe2(fds, O_CLOEXEC))
        return -errno;
    if (write(fds[1], input->text, len) != (ssize_t)len)
        rc = -EIO;
    close(fds[1]);
    if (!rc)
        return fds[0];
    close(fds[0]);
    return rc;
}

static pid_t spawn(const char *const *argv, const char *log_path, int out, const char *pid_file,
                   const struct mfs_proc_input *input)
{
    int fds[2], rc = 0, in = input && input->text ? open_input(input) : -1;
    const struct streams streams = {in, out, log_path};
    pid_t pid;

    if (in < -1)
        return in;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
        rc = -errno;
        if (in >= 0)
            close(in);
        return rc;
    }
    pid = fork();
    if (pid < 0)
        rc = -errno;
    if (!pid) {
        close(fds[0]); /* at once: whatever fails, it must see its starter go */
        child(argv, &streams, input, fds[1]);
    }
    close(fds[1]);
    if (in >= 0)
        close(in);
    if (!rc && pid_file)
        rc = note_unborn(pid, pid_file);
    if (!rc)
        rc = let_go(fds[0]);
    close(fds[0]);
    if (rc && pid > 0)
        waitpid(pid, NULL, 0);
    return rc ? rc : pid;
}

pid_t mfs_proc_spawn(const char *const *argv, const char *log_path)
{
    return spawn(argv, log_path, -1, NULL, NULL);
}

pid_t mfs_proc_spawn_to(const char *const *argv, int output, const struct mfs_proc_input *input)
{
    return spawn(argv, NULL, output, NULL, input);
}

int mfs_proc_spawn_noted(const char *const *argv, const char *log_path, const char *pid_file,
                         struct mfs_proc *p)
{
    return mfs_proc_spawn_given(argv, log_path, pid_file, NULL, p);
}

int mfs_proc_spawn_given(const char *const *argv, const char *log_path, const char *pid_file,
                         const struct mfs_proc_input *input, struct mfs_proc *p)
{
    pid_t pid = spawn(argv, log_path, -1, pid_file, input);

    if (pid < 0)
        return pid;
    if (mfs_proc_identify(pid, p)) {
        *p = (struct mfs_proc){.pid = pid};
        return 0;
    }
    /* What stands there already says which process it is; this adds the name. */
    mfs_proc_save(p, pid_file);
    return 0;
}

int mfs_proc_save(const struct mfs_proc *p, const char *path)
{
    char line[MFS_PROC_NAME_MAX + 48];
    int n = snprintf(line, sizeof line, "%d %llu %s\n", (int)p->pid, (unsigned long long)p->start,
                     p->comm);

    return mfs_file_note(path, line, (size_t)n, 0640);
}

int mfs_proc_load(const char *path, struct mfs_proc *p)
{
    unsigned long long start;
    struct mfs_buf b;
    int pid, rc;

    *p = (struct mfs_proc){0};
    mfs_buf_init(&b);
    rc = mfs_trusted_read(path, 256, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "", 1);
    if (!rc && (sscanf(mfs_buf_data(&b), "%d %llu %31s", &pid, &start, p->comm) != 3 || pid <= 0))
        rc = -EINVAL;
    if (!rc) {
        p->pid = pid;
        p->start = start;
    }
    mfs_buf_fini(&b);
    return rc;
}

/* The argument after `at` in a command line as /proc has it, or NULL. */
static const char *next_arg(const char *at, const char *end)
{
    at += strnlen(at, (size_t)(end - at)) + 1;
    return at < end ? at : NULL;
}

/* What a command line must have: either `text` anywhere, or the others as in mfs_proc_search. */
struct wanted {
    const char *text, *verb, *option, *value;
};

static bool fits(const struct wanted *w, const char *line, const char *end)
{
    const char *arg = next_arg(line, end);

    if (w->text)
        return memmem(line, (size_t)(end - line), w->text, strlen(w->text)) != NULL;
    if (!arg || !w->option || !w->value || (w->verb && strcmp(arg, w->verb)))
        return false;
    for (; arg; arg = next_arg(arg, end)) {
        const char *after = next_arg(arg, end);

        if (!strcmp(arg, w->option) && after && !strcmp(after, w->value))
            return true;
    }
    return false;
}

static bool started_as(pid_t pid, const struct wanted *w)
{
    struct mfs_buf b;
    char path[64];
    bool found = false;

    mfs_buf_init(&b);
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    if (!mfs_file_read(path, CMDLINE_MOST, &b) && mfs_buf_len(&b) && !mfs_buf_append(&b, "", 1))
        found = fits(w, mfs_buf_data(&b), mfs_buf_data(&b) + mfs_buf_len(&b) - 1);
    mfs_buf_fini(&b);
    return found;
}

static int search(const char *comm, const struct wanted *w,
                  int (*each)(void *arg, const struct mfs_proc *p), void *arg)
{
    struct mfs_proc p;
    struct dirent *e;
    uint64_t pid;
    int rc = 0;
    DIR *proc = opendir("/proc");

    if (!proc)
        return -errno;
    while (rc >= 0 && (e = readdir(proc))) {
        if (mfs_text_u64(e->d_name, &pid) || mfs_proc_identify((pid_t)pid, &p) ||
            strcmp(p.comm, comm) || !started_as(p.pid, w))
            continue;
        rc = each(arg, &p);
    }
    closedir(proc);
    return rc < 0 ? rc : 0;
}

int mfs_proc_search(const char *comm, const char *verb, const char *option, const char *value,
                    int (*each)(void *arg, const struct mfs_proc *p), void *arg)
{
    return search(comm, &(struct wanted){NULL, verb, option, value}, each, arg);
}

int mfs_proc_search_text(const char *comm, const char *text,
                         int (*each)(void *arg, const struct mfs_proc *p), void *arg)
{
    return search(comm, &(struct wanted){.text = text}, each, arg);
}

bool mfs_proc_capable(int capability)
{
    const char *line;
    struct mfs_buf text;
    uint64_t caps = 0;

    mfs_buf_init(&text);
    if (!mfs_file_read("/proc/self/status", STATUS_MOST, &text) && !mfs_buf_append(&text, "", 1)) {
        line = strstr(mfs_buf_data(&text), "\nCapEff:");
        caps = line ? strtoull(line + strlen("\nCapEff:"), NULL, 16) : 0;
    }
    mfs_buf_fini(&text);
    return caps >> capability & 1;
}

/* Of this program; "" when it can't be found out. */
static char own_directory[PATH_MAX];

static void find_own_directory(void)
{
    ssize_t len = readlink("/proc/self/exe", own_directory, sizeof own_directory - 1);
    char *slash = len < 0 ? NULL : strrchr(own_directory, '/');

    *(slash ? slash : own_directory) = '\0';
}

int mfs_proc_sibling(const char *name, char *out, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    /* Looked up once: in another mount namespace the kernel tells another path. */
    pthread_once(&once, find_own_directory);
    if (!own_directory[0])
        return -ENOENT;
    return mfs_text_format(out, n, "%s/%s", own_directory, name);
}
