/* The one that starts workers on nodes, gives them the plan and reads what they tell. One thread:
 * it polls both ends of all of them. */
#include "stage/nodes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "memefs/memefs.h"
#include "stage/crew.h"
#include "stage/impl.h"
#include "stage/words.h"

#define TOKEN     MFS_STAGE_TEMPORARY "token."
#define TOKEN_NEW 600             /* s: the call may be beginning */
#define LOOK_EACH 100             /* ms */
#define LINE_MOST ((size_t)65536) /* bytes */
#define SILENT    (10 * MFS_SEC)  /* since a word of it, when all is there: it is given up */
#define QUIET     (60 * MFS_SEC)  /* likewise, when all is not there but no other one works */
#define END_TIME  (15 * MFS_SEC)  /* for what is told to end, then SIGTERM, … */
#define TERM_TIME (2 * MFS_SEC)   /* … then SIGKILL, … */
#define KILL_TIME (5 * MFS_SEC)   /* … then nobody waits: a dead server's files may hold it */

/* A command that was started. */
struct command {
    const struct mfs_stage_node *node;
    uint32_t number;
    pid_t pid;                  /* 0: it has ended */
    int input, output;          /* of it; -1: closed */
    struct mfs_buf head, lines; /* of the plan; that came */
    size_t given;               /* of head and the body */
    int64_t heard;              /* the last time, mono */
    int64_t told;               /* to end, then; 0: it is not */
    int signal;                 /* the last one it got */
    bool spoken;                /* it has said a word */
    bool given_up;
};

struct run {
    const struct mfs_stage_nodes *nodes;
    const struct mfs_stage_plan *plan;
    struct mfs_buf body; /* the entries */
    struct mfs_stage_tally *tally;
    struct mfs_stage_crew *crew;
    uint32_t n;
    struct command *command;
    struct pollfd *poll;
    int target;     /* the directory that the copies come into; -1: it is not open */
    char token[64]; /* a file in it, which is locked; "": none */
    int lock;       /* the token's; -1: there is none */
};

/* ---- the plan -------------------------------------------------------------------------------- */

static int put_head(const struct run *r, bool in, struct command *c)
{
    const struct mfs_stage_plan *p = r->plan;
    char call[24], jobs[16], flags[4];

    snprintf(call, sizeof call, "%" PRIu64, mfs_stage_call(p->list));
    snprintf(jobs, sizeof jobs, "%u", p->threads);
    snprintf(flags, sizeof flags, "%s%s%s", p->exact ? "e" : "", p->verify ? "v" : "",
             p->progress ? "c" : "");
    return mfs_stage_words_put(&c->head,
                               (const char *const[]){"memefs-stage", "3", in ? "in" : "out",
                                                     p->target, call, jobs, flags, r->nodes->root,
                                                     c->node->root, r->token, NULL});
}

static int put_body(struct run *r)
{
    int rc = 0;

    for (uint32_t i = 0; !rc && i < r->plan->list->n; i++) {
        const struct mfs_stage_entry *e = &r->plan->list->entry[i];
        char sum[2 * MFS_STAGE_SUM + 1] = "";

        if (e->has_sum)
            mfs_text_hex(e->sum, sizeof e->sum, sum);
        rc = mfs_stage_words_put(
            &r->body, (const char *const[]){"entry", e->from, e->to ? e->to : "", sum, NULL});
    }
    return rc ? rc : mfs_buf_append(&r->body, "go\n", 3);
}

/* ---- the target ------------------------------------------------------------------------------ */

/* Outside of deployments a lock may be this node's alone: then another node's call may have it,
 * whose workers look for it when they begin. */
static bool is_new(const struct stat *st, bool mount)
{
    return !mount && mfs_clock_real().tv_sec - st->st_mtim.tv_sec < TOKEN_NEW;
}

/* A call that was killed has left its token, which nobody has locked. */
static void remove_old_tokens(int target)
{
    bool mount = fgetxattr(target, MEMEFS_XATTR_LAYOUT, NULL, 0) > 0;
    int dir = openat(target, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = dir < 0 ? NULL : fdopendir(dir);
    const struct dirent *e;

    if (!names && dir >= 0)
        close(dir);
    while (names && (e = readdir(names))) {
        struct stat st;
        int fd;

        if (strncmp(e->d_name, TOKEN, strlen(TOKEN)) != 0 ||
            (fd = openat(target, e->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) < 0)
            continue;
        if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && !st.st_size &&
            !is_new(&st, mount) && !flock(fd, LOCK_EX | LOCK_NB))
            unlinkat(target, e->d_name, 0);
        close(fd);
    }
    if (names)
        closedir(names);
}

/* It is locked as long as the call goes on, or till its process dies. Another call may have taken
 * it for an old one before that: then it is made again. */
static int make_token(struct run *r)
{
    for (;;) {
        struct stat ours, there;
        char random[33];
        int fd, rc = mfs_random_hex(random, sizeof random / 2);

        if (rc)
            return rc;
        snprintf(r->token, sizeof r->token, TOKEN "%s", random);
        fd = openat(r->target, r->token, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
            rc = -errno;
        else if (flock(fd, LOCK_EX) < 0 && errno == EINTR)
            rc = -EINTR;
        else if (!fstat(fd, &ours) && !fstatat(r->target, r->token, &there, AT_SYMLINK_NOFOLLOW) &&
                 ours.st_ino == there.st_ino)
            r->lock = fd;
        if (r->lock >= 0)
            return 0;
        *r->token = '\0';
        if (fd >= 0)
            close(fd);
        if (rc)
            return rc;
    }
}

/* Each worker looks for it, so that none copies into a directory of its own. */
static int put_token(struct run *r, struct mfs_err *err)
{
    char path[PATH_MAX];
    int rc = mfs_stage_target_directory(r->plan, path, sizeof path);

    if (!rc)
        rc = mfs_file_mkdirs(path, 0777);
    if (!rc && (r->target = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        rc = -errno;
    if (!rc) {
        remove_old_tokens(r->target);
        rc = make_token(r);
    }
    return rc ? mfs_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

/* The directory keeps the times that a worker may have given it, which this node may not know yet.
 */
static void remove_token(struct run *r)
{
    struct statx st;
    bool known;

    if (*r->token) {
        known = !statx(r->target, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC,
                       STATX_ATIME | STATX_MTIME, &st);
        unlinkat(r->target, r->token, 0);
        close(r->lock);
        remove_old_tokens(r->target); /* of which the locks may have been held till now */
        if (known)
            futimens(r->target,
                     (const struct timespec[2]){{st.stx_atime.tv_sec, st.stx_atime.tv_nsec},
                                                {st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec}});
    }
    if (r->target >= 0)
        close(r->target);
}

/* ---- a command ------------------------------------------------------------------------------- */

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int spawn(struct command *c, int input, int output)
{
    char *const argv[] = {(char *)"sh", (char *)"-c", c->node->command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t all;
    int rc;

    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    rc = posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
    if (!rc)
        rc = posix_spawn(&c->pid, "/bin/sh", &files, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    if (rc)
        c->pid = 0;
    return -rc;
}

static int start(struct command *c)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, rc = 0;

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        rc = -errno;
    if (!rc)
        rc = spawn(c, in[0], out[1]);
    close_end(&in[0]);
    close_end(&out[1]);
    if (rc) {
        close_end(&in[1]);
        close_end(&out[0]);
        return rc;
    }
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    c->input = in[1];
    c->output = out[0];
    c->heard = mfs_clock_mono();
    return 0;
}

static void give(const struct run *r, struct command *c)
{
    size_t head = mfs_buf_len(&c->head), body = mfs_buf_len(&r->body);
    const char *from = c->given < head ? (char *)mfs_buf_data(&c->head) + c->given
                                       : (char *)mfs_buf_data(&r->body) + (c->given - head);
    ssize_t n = write(c->input, from, c->given < head ? head - c->given : head + body - c->given);

    if (n > 0)
        c->given += (size_t)n;
    else if (errno != EAGAIN && errno != EINTR)
        close_end(&c->input);
}

static bool is_given(const struct run *r, const struct command *c)
{
    return c->given == mfs_buf_len(&c->head) + mfs_buf_len(&r->body);
}

/* What is no worker's is a launcher's, and somebody should see it. */
static void take_lines(const struct run *r, struct command *c)
{
    const char *name = r->n > 1 ? c->node->name : "";
    char *data = mfs_buf_data(&c->lines), *end;
    size_t len = mfs_buf_len(&c->lines), done = 0;

    while (done < len && (end = memchr(data + done, '\n', len - done))) {
        char *line = data + done, copy[512], plain[512];

        *end = '\0';
        mfs_text_copy(copy, sizeof copy, line);
        if (!mfs_stage_crew_take(r->crew, c->number, name, line)) {
            mfs_text_plain(plain, sizeof plain, copy);
            mfs_stage_tally_say(r->tally, "%s: %s\n", c->node->name, plain);
        }
        done = (size_t)(end + 1 - data);
    }
    mfs_buf_consume(&c->lines, done);
    if (mfs_buf_len(&c->lines) > LINE_MOST)
        mfs_buf_clear(&c->lines);
}

static void hear(const struct run *r, struct command *c)
{
    char *room = mfs_buf_reserve(&c->lines, LINE_MOST);
    ssize_t n = room ? read(c->output, room, LINE_MOST) : -1;

    if (n > 0) {
        mfs_buf_commit(&c->lines, (size_t)n);
        c->heard = mfs_clock_mono();
        c->spoken = true;
        take_lines(r, c);
    } else if (n == 0 || !room || (errno != EAGAIN && errno != EINTR)) {
        close_end(&c->output);
    }
}

/* The session is its own: what the shell has started is told as well. */
static void send(struct command *c, int signal)
{
    c->signal = signal;
    kill(-c->pid, signal);
}

/* Told to end, by the end of its input, and soon made to. */
static void press(struct command *c)
{
    int64_t now = mfs_clock_mono();

    if (!c->told) {
        c->told = now;
        close_end(&c->input);
    } else if (!c->signal && now - c->told > END_TIME) {
        send(c, SIGTERM);
    } else if (c->signal == SIGTERM && now - c->told > END_TIME + TERM_TIME) {
        send(c, SIGKILL);
        close_end(&c->output);
    }
}

static void tell_death(const struct run *r, const struct command *c, int status)
{
    if (*r->plan->stop || mfs_stage_crew_ended(r->crew, c->number))
        return;
    if (c->given_up)
        mfs_stage_tally_say(r->tally, "%s: has not answered: given up\n", c->node->name);
    else
        mfs_stage_tally_say(r->tally, "%s: ended before its part was done (%s %d): %s\n",
                            c->node->name, WIFSIGNALED(status) ? "signal" : "status",
                            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                            c->node->command);
}

static void look_for_end(const struct run *r, struct command *c)
{
    int status;

    if (waitpid(c->pid, &status, WNOHANG) != c->pid)
        return;
    if (c->output >= 0)
        hear(r, c); /* its last words */
    close_end(&c->input);
    close_end(&c->output);
    c->pid = 0;
    tell_death(r, c, status);
}

static void leave_behind(const struct run *r, struct command *c)
{
    if (c->signal != SIGKILL || mfs_clock_mono() - c->told <= END_TIME + TERM_TIME + KILL_TIME)
        return;
    mfs_stage_tally_say(r->tally, "%s: can't be ended: process %d is left\n", c->node->name,
                        (int)c->pid);
    c->pid = 0;
}

/* A worker tells four times a second how far it is. What is to start several may be waiting for
 * them, and has nothing to say then. */
static bool works(const struct command *c)
{
    return c->pid && !c->told &&
           ((c->node->many && !c->spoken) || mfs_clock_mono() - c->heard <= QUIET);
}

static bool is_to_give_up(const struct run *r, const struct command *c)
{
    if (mfs_stage_crew_whole(r->crew))
        return mfs_clock_mono() - c->heard > SILENT;
    for (uint32_t i = 0; i < r->n; i++)
        if (works(&r->command[i]))
            return false;
    return true;
}

/* Of a command for many, those that have not told yet would end with the first one's error. */
static bool has_ended(const struct run *r, const struct command *c)
{
    return mfs_stage_crew_ended(r->crew, c->number) &&
           (!c->node->many || mfs_stage_crew_whole(r->crew));
}

static void look_after(const struct run *r, struct command *c)
{
    if (c->pid)
        look_for_end(r, c);
    if (!c->pid)
        return;
    if (!c->told && is_to_give_up(r, c))
        c->given_up = true;
    if (*r->plan->stop || c->given_up || c->told || has_ended(r, c))
        press(c);
    leave_behind(r, c);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool go_on(struct run *r)
{
    uint32_t alive = 0;

    for (uint32_t i = 0; i < r->n; i++) {
        struct command *c = &r->command[i];

        look_after(r, c);
        alive += c->pid != 0;
        r->poll[2 * i] = (struct pollfd){.fd = c->output, .events = POLLIN};
        r->poll[2 * i + 1] =
            (struct pollfd){.fd = is_given(r, c) ? -1 : c->input, .events = POLLOUT};
    }
    return alive > 0;
}

static void follow(struct run *r)
{
    struct mfs_stage_counts sum;

    while (go_on(r)) {
        poll(r->poll, 2 * r->n, LOOK_EACH);
        for (uint32_t i = 0; i < r->n; i++) {
            if (r->poll[2 * i].revents)
                hear(r, &r->command[i]);
            if (r->poll[2 * i + 1].revents)
                give(r, &r->command[i]);
        }
        mfs_stage_crew_count(r->crew, &sum);
        mfs_stage_tally_set(r->tally, &sum);
    }
    mfs_stage_crew_count(r->crew, &sum);
    mfs_stage_tally_set(r->tally, &sum);
}

static int open_run(struct run *r, const struct mfs_stage_nodes *nodes,
                    const struct mfs_stage_plan *plan)
{
    *r = (struct run){.nodes = nodes, .plan = plan, .n = nodes->n, .target = -1, .lock = -1};
    mfs_buf_init(&r->body);
    r->tally = mfs_stage_tally_create(plan->progress, NULL);
    r->crew = mfs_stage_crew_create(r->tally);
    r->command = calloc(r->n, sizeof *r->command);
    r->poll = calloc(2 * (size_t)r->n, sizeof *r->poll);
    if (!r->tally || !r->crew || !r->command || !r->poll)
        return -ENOMEM;
    for (uint32_t i = 0; i < r->n; i++) {
        struct command *c = &r->command[i];

        c->node = &nodes->node[i];
        c->number = i;
        c->input = c->output = -1;
        mfs_buf_init(&c->head);
        mfs_buf_init(&c->lines);
    }
    return put_body(r);
}

static void close_run(struct run *r)
{
    remove_token(r);
    for (uint32_t i = 0; r->command && i < r->n; i++) {
        mfs_buf_fini(&r->command[i].head);
        mfs_buf_fini(&r->command[i].lines);
    }
    free(r->command);
    free(r->poll);
    mfs_stage_crew_destroy(r->crew);
    mfs_stage_tally_destroy(r->tally);
    mfs_buf_fini(&r->body);
}

int mfs_stage_run_on(const struct mfs_stage_nodes *nodes, bool in,
                     const struct mfs_stage_plan *plan, struct mfs_stage_result *result,
                     struct mfs_err *err)
{
    struct run r;
    int rc = open_run(&r, nodes, plan);
    bool whole;

    signal(SIGPIPE, SIG_IGN);
    if (!rc && (rc = put_token(&r, err))) {
        close_run(&r);
        return rc;
    }
    for (uint32_t i = 0; !rc && i < r.n; i++) {
        rc = put_head(&r, in, &r.command[i]);
        if (!rc)
            rc = start(&r.command[i]);
        if (rc)
            mfs_stage_tally_say(r.tally, "%s: %s\n", r.command[i].node->name, strerror(-rc));
        rc = rc == -ENOMEM ? rc : 0; /* the others will do */
    }
    if (rc) {
        for (uint32_t i = 0; i < r.n && r.command; i++)
            close_end(&r.command[i].input);
        close_run(&r);
        return mfs_err_set(err, rc, "%s", strerror(-rc));
    }
    follow(&r);
    mfs_stage_tally_result(r.tally, result);
    result->stopped = *plan->stop;
    whole = mfs_stage_crew_result(r.crew, result);
    close_run(&r);
    if (whole || result->stopped || result->full)
        return 0;
    mfs_stage_result_fini(result);
    return mfs_err_set(err, -EIO,
                       "no node has come to the end of it, see above; the same call goes on from "
                       "here");
}
