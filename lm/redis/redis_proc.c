/* Starting and ending redis processes.
 *
 * A port is found by binding one and letting it go again, so between that and redis' own bind
 * another program may take it: redis then exits, and the next port is tried. A process that was
 * started by a Local Manager which died before noting it down is in no table and holds nothing; it
 * is recognised by its pid file, which is there before the process is, and ended by the next Local
 * Manager. */
#include "lm/redis/redis_proc.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/inet.h"
#include "base/log.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "lm/redis/dump_dir.h"
#include "lm/redis/image_verify.h"
#include "lm/redis/redis_conf.h"
#include "store/admin/admin.h"
#include "store/admin/module.h"

#define AREA       "redis"
#define PORT_TRIES 5
#define POLL_STEP  (1 * MFS_MSEC)
#define CALL_LIMIT (5 * MFS_SEC)
#define KILL_WAIT  (2 * MFS_SEC)
#define END_LIMIT  (1 * MFS_SEC)
#define LOAD_SLOW  (4ULL << 20) /* bytes/s */

static_assert(CALL_LIMIT < MFS_REDIS_START_TIMEOUT * MFS_SEC, "a new process is asked again");
static_assert(END_LIMIT < MFS_REDIS_STOP_TIMEOUT * MFS_SEC, "it has time to end once asked");

#define REPLAY_LEAST (10U << 20) /* bytes of a journal per second, on a bad day */

static const char *const suffixes[] = {"conf", "sock", "pid"};

static int file_path(char path[PATH_MAX], const char *dir, uint32_t part, const char *suffix)
{
    return mfs_text_format(path, PATH_MAX, "%s/redis-%u.%s", dir, part, suffix);
}

int mfs_redis_unix_path(const char *dir, uint32_t part, char path[MFS_UNIXPATH_MAX])
{
    return mfs_text_format(path, MFS_UNIXPATH_MAX, "%s/redis-%u.sock", dir, part);
}

/* Beside the socket: a state directory is in memory as a rule. */
static int journal_path(char path[PATH_MAX], const char *dir, uint32_t part)
{
    return file_path(path, dir, part, "journal");
}

uint64_t mfs_redis_journal_bytes(const struct mfs_redis_node *node, uint32_t part)
{
    char path[PATH_MAX], next[PATH_MAX];
    uint64_t bytes = 0;
    struct stat st;

    if (!journal_path(path, node->dir, part) && !stat(path, &st))
        bytes += (uint64_t)st.st_blocks * 512;
    if (!file_path(next, node->dir, part, "journal.new") && !stat(next, &st))
        bytes += (uint64_t)st.st_blocks * 512;
    return bytes;
}

static void remove_journal(const struct mfs_redis_node *node, uint32_t part)
{
    char path[PATH_MAX];

    if (!journal_path(path, node->dir, part))
        unlink(path);
    if (!file_path(path, node->dir, part, "journal.new"))
        unlink(path);
}

/* The log stays: it is what is looked at when something went wrong. */
static void remove_files(const struct mfs_redis_node *node, uint32_t part)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (!file_path(path, node->dir, part, suffixes[i]))
            unlink(path);
    }
    if (!file_path(path, node->dump_dir, part, "rdb"))
        unlink(path);
}

static int free_port(const char *address, uint16_t *port)
{
    char host[INET6_ADDRSTRLEN];
    union mfs_inet a;
    socklen_t len;
    int rc = mfs_inet_parse(address, 0, &a), fd;

    if (rc)
        return rc;
    fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    len = mfs_inet_len(&a);
    if (bind(fd, &a.any, len) || getsockname(fd, &a.any, &len))
        rc = -errno;
    else
        rc = mfs_inet_format(&a, host, port);
    close(fd);
    return rc;
}

static int write_conf(const struct mfs_redis_node *node, const struct mfs_redis *r, bool again,
                      const char *module, const char *path)
{
    char journal[PATH_MAX];
    struct mfs_redis_conf conf = {.module = module,
                                  .journal = journal,
                                  .replay = again,
                                  .dir = node->dir,
                                  .dump_dir = node->dump_dir,
                                  .fenced = r->incoming || again,
                                  .part = r->part,
                                  .address = node->address,
                                  .port = r->port,
                                  .maxmemory = r->maxmemory,
                                  /* Which containers often lack the right to. */
                                  .protect = mfs_proc_capable(CAP_SYS_RESOURCE),
                                  .user_password = r->password,
                                  .admin_password = r->admin_password};
    struct mfs_buf text;
    int rc = journal_path(journal, node->dir, r->part);

    mfs_buf_init(&text);
    if (!rc)
        rc = mfs_redis_conf_render(&conf, &text);
    if (!rc)
        rc = mfs_file_note(path, mfs_buf_data(&text), mfs_buf_len(&text), 0600);
    mfs_buf_fini(&text);
    return rc;
}

static void end_stray(const char *dir, const struct mfs_redis *r)
{
    char path[PATH_MAX];
    struct mfs_proc stray;

    if (file_path(path, dir, r->part, "pid") || mfs_proc_load(path, &stray) ||
        !mfs_proc_alive(&stray))
        return;
    mfs_warn(AREA, "partition %u: ending process %d, which nobody knows of", r->part,
             (int)stray.pid);
    mfs_proc_end(&stray, MFS_REDIS_STOP_TIMEOUT * MFS_SEC);
}

/* Without it, a child of ours that ended would stay a zombie. Not for adopted ones. The kernel
 * takes a process' memory, and with it what tells that it is alive, before it can be waited for. */
static void reap(struct mfs_redis *r)
{
    int64_t until = mfs_clock_mono() + KILL_WAIT;

    if (r->proc.pid <= 0 || mfs_proc_alive(&r->proc))
        return;
    while (!waitpid(r->proc.pid, NULL, WNOHANG) && mfs_clock_mono() < until)
        mfs_clock_sleep(POLL_STEP);
}

/* `again`: where it was, with what its journal says. */
static int spawn(const struct mfs_redis_node *node, struct mfs_redis *r, bool again,
                 struct mfs_err *err)
{
    char conf[PATH_MAX], log[PATH_MAX], pidfile[PATH_MAX], module[PATH_MAX];
    const char *argv[] = {"redis-server", conf, NULL};
    int rc = mfs_module_path(module, sizeof module);

    if (rc)
        return mfs_err_set(err, rc,
                           "no memefs-partition.so beside this program, nor where it is "
                           "installed: install or build all of MemEFS");
    rc = again ? 0 : free_port(node->address, &r->port);
    if (rc)
        return mfs_err_set(err, rc, "no free port on %s: %s", node->address, strerror(-rc));
    rc = file_path(conf, node->dir, r->part, "conf");
    if (!rc)
        rc = file_path(log, node->dir, r->part, "log");
    if (!rc)
        rc = file_path(pidfile, node->dir, r->part, "pid");
    if (!rc)
        rc = write_conf(node, r, again, module, conf);
    if (rc)
        return mfs_err_set(err, rc, "can't write redis-%u.conf in %s: %s", r->part, node->dir,
                           strerror(-rc));
    /* One that is gone already is found out, and tried again, by await(). */
    rc = mfs_proc_spawn_noted(argv, log, pidfile, &r->proc);
    return rc ? mfs_err_set(err, rc, "can't start redis-server: %s", strerror(-rc)) : 0;
}

/* Waits until it answers: 0, -ECHILD when it exited, or -ETIMEDOUT. */
static int await(const struct mfs_redis_node *node, const struct mfs_redis *r, int64_t until,
                 struct mfs_admin **admin, struct mfs_err *err)
{
    int rc;

    for (;;) {
        if (waitpid(r->proc.pid, NULL, WNOHANG) == r->proc.pid)
            return mfs_err_set(err, -ECHILD,
                               "redis-server of partition %u exited, see %s/redis-%u.log", r->part,
                               node->dir, r->part);
        if (!access(r->unix_path, F_OK)) {
            rc = mfs_admin_open(admin, r->unix_path, NULL, 0, r->admin_password, CALL_LIMIT, err);
            if (!rc)
                return 0;
        }
        if (mfs_clock_mono() >= until)
            return mfs_err_set(err, -ETIMEDOUT,
                               "redis-server of partition %u does not answer, see %s/redis-%u.log",
                               r->part, node->dir, r->part);
        mfs_clock_sleep(POLL_STEP);
    }
}

/* ---- ending ---------------------------------------------------------------------------------- */

static size_t wait_all(struct mfs_redis *r, size_t n, int64_t ns)
{
    int64_t until = mfs_clock_mono() + ns;
    size_t alive;

    for (;;) {
        alive = 0;
        for (size_t i = 0; i < n; i++) {
            if (mfs_proc_alive(&r[i].proc))
                alive++;
            else
                reap(&r[i]);
        }
        if (!alive || mfs_clock_mono() >= until)
            return alive;
        mfs_clock_sleep(POLL_STEP);
    }
}

/* How many still live. Nothing of them is kept, so they need not end in good order: a process looks
 * for SIGTERM only twice a second (hz in redis_conf.c). One that is sending a copy has a child. */
static size_t end_all(struct mfs_redis *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mfs_proc_kill_group(&r[i].proc);
    return wait_all(r, n, MFS_REDIS_STOP_TIMEOUT * MFS_SEC);
}

/* ---- images ---------------------------------------------------------------------------------- */

static int check_images(const struct mfs_redis *r, size_t n, struct mfs_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < n && !rc; i++)
        if (r[i].image)
            rc = mfs_image_verify(r[i].image->path, r[i].image->bytes, r[i].image->sum, err);
    return rc;
}

/* Redis loads what it finds under the name of its dump. */
static int lay_image(const struct mfs_redis_node *node, const struct mfs_redis *r,
                     struct mfs_err *err)
{
    char path[PATH_MAX];
    int rc;

    if (!r->image)
        return 0;
    rc = file_path(path, node->dump_dir, r->part, "rdb");
    if (!rc && symlink(r->image->path, path))
        rc = -errno;
    return rc ? mfs_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

/* A process answers, in its way, while it loads. Then the way to the image goes, so that nothing is
 * ever written through it. */
static int await_load(const struct mfs_redis_node *node, const struct mfs_redis *r,
                      struct mfs_admin *admin, struct mfs_err *err)
{
    int64_t most = (int64_t)(r->image->bytes / LOAD_SLOW + MFS_REDIS_START_TIMEOUT) * MFS_SEC;
    int64_t until = mfs_clock_mono() + most;
    struct mfs_admin_replication how = {.loading = true};
    char path[PATH_MAX];
    int rc = 0;

    while (!rc && how.loading) {
        rc = mfs_admin_replication(admin, true, &how, err);
        if (!rc && how.loading && mfs_clock_mono() > until)
            rc = mfs_err_set(err, -ETIMEDOUT, "partition %u: has not loaded %s in %lld s", r->part,
                             r->image->path, (long long)(most / MFS_SEC));
        if (!rc && how.loading)
            mfs_clock_sleep(POLL_STEP);
    }
    if (!rc)
        rc = mfs_admin_restored(admin, node->deployment, err);
    if (!file_path(path, node->dump_dir, r->part, "rdb"))
        unlink(path);
    return rc ? mfs_err_prefix(err, "partition %u cannot begin with %s", r->part, r->image->path)
              : 0;
}

/* ---- starting -------------------------------------------------------------------------------- */

static struct mfs_admin_format format_of(const struct mfs_redis_node *node,
                                         const struct mfs_redis *r)
{
    return (struct mfs_admin_format){.deployment = node->deployment,
                                     .index = r->part,
                                     .nparts = node->nparts,
                                     .stripe_size = node->stripe_size};
}

static int make_ready(const struct mfs_redis_node *node, struct mfs_redis *r, struct mfs_err *err)
{
    struct mfs_admin_format format = format_of(node, r);
    int64_t until = mfs_clock_mono() + MFS_REDIS_START_TIMEOUT * MFS_SEC;
    struct mfs_admin *admin = NULL;
    int rc;

    for (int tries = 1;; tries++) {
        rc = await(node, r, until, &admin, err);
        if (rc != -ECHILD || tries == PORT_TRIES)
            break;
        mfs_warn(AREA, "partition %u: redis-server exited at once, trying another port", r->part);
        r->proc = (struct mfs_proc){0};
        rc = spawn(node, r, false, err);
        if (rc)
            break;
    }
    if (!rc && r->image)
        rc = await_load(node, r, admin, err);
    if (!rc && r->format)
        rc = mfs_admin_format(admin, &format, err);
    mfs_admin_close(admin);
    return rc;
}

int mfs_redis_start(const struct mfs_redis_node *node, struct mfs_redis *r, size_t n,
                    struct mfs_err *err)
{
    int rc = mfs_trusted_dir_make(node->dump_dir, err);

    if (rc)
        return rc;
    rc = check_images(r, n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n && !rc; i++) {
        r[i].proc = (struct mfs_proc){0};
        rc = mfs_redis_unix_path(node->dir, r[i].part, r[i].unix_path);
        if (rc)
            return mfs_err_set(
                err, rc, "the path of the state directory %s is too long for sockets", node->dir);
    }
    for (size_t i = 0; i < n && !rc; i++) {
        end_stray(node->dir, &r[i]);
        remove_files(node, r[i].part);
        remove_journal(node, r[i].part);
        rc = lay_image(node, &r[i], err);
        if (!rc)
            rc = spawn(node, &r[i], false, err);
    }
    for (size_t i = 0; i < n && !rc; i++)
        rc = make_ready(node, &r[i], err);
    if (rc)
        mfs_redis_stop(node, r, n);
    return rc;
}

/* The process that replays answers when it is through with that. Whether it took up the right
 * partition is checked, then clients are let in, unless they were refused. */
static int serve_again(const struct mfs_redis_node *node, struct mfs_redis *r, int64_t until,
                       struct mfs_admin_journal *journal, struct mfs_err *err)
{
    struct mfs_admin_format format = format_of(node, r);
    struct mfs_admin *admin = NULL;
    int rc = await(node, r, until, &admin, err);

    if (!rc)
        rc = mfs_admin_format(admin, &format, err);
    if (!rc)
        rc = mfs_admin_journal(admin, journal, err);
    if (!rc && !journal->fenced)
        rc = mfs_admin_set_user(admin, mfs_redis_user_rules(false), err);
    mfs_admin_close(admin);
    return rc;
}

int mfs_redis_revive(const struct mfs_redis_node *node, struct mfs_redis *r,
                     struct mfs_revived *how, struct mfs_err *err)
{
    uint64_t bytes = mfs_redis_journal_bytes(node, r->part);
    int64_t began = mfs_clock_mono();
    int64_t until =
        began + MFS_REDIS_START_TIMEOUT * MFS_SEC + (int64_t)(bytes / REPLAY_LEAST) * MFS_SEC;
    struct mfs_redis_node at = *node;
    int rc = 0;

    at.dump_dir = mfs_dump_dir_or(node->dump_dir, node->dir);
    if (!bytes)
        rc = mfs_err_set(err, -ENODATA, "partition %u has no journal", r->part);
    end_stray(node->dir, r);
    reap(r);
    remove_files(node, r->part);
    r->proc = (struct mfs_proc){0};
    if (!rc)
        rc = spawn(&at, r, true, err);
    if (!rc)
        rc = serve_again(node, r, until, &how->journal, err);
    how->us = (uint64_t)(mfs_clock_mono() - began) / 1000;
    if (rc && !end_all(r, 1))
        remove_files(node, r->part); /* not the journal: it may be tried again */
    return rc;
}

/* The partition in "redis-PART.pid", or -EINVAL. */
static int part_of(const char *name, uint32_t *part)
{
    char number[16];
    uint64_t n;
    int len = 0;

    if (sscanf(name, "redis-%15[0-9].pid%n", number, &len) != 1 || !len || name[len] ||
        mfs_text_u64(number, &n) || n > UINT32_MAX)
        return -EINVAL;
    *part = (uint32_t)n;
    return 0;
}

static void end_unlisted(const struct mfs_redis_node *node, uint32_t part, const struct mfs_proc *p)
{
    mfs_warn(AREA, "partition %u: ending process %d, which nobody knows of", part, (int)p->pid);
    if (mfs_proc_end(p, 0))
        mfs_error(AREA, "partition %u: process %d can't be killed", part, (int)p->pid);
    else
        remove_files(node, part);
}

int mfs_redis_end_unlisted(const struct mfs_redis_node *node,
                           bool (*listed)(void *arg, const struct mfs_proc *p), void *arg)
{
    DIR *d = opendir(node->dir);
    char path[PATH_MAX];
    struct mfs_proc p;
    struct dirent *e;
    uint32_t part;

    if (!d)
        return -errno;
    while ((e = readdir(d))) {
        if (!part_of(e->d_name, &part) && !file_path(path, node->dir, part, "pid") &&
            !mfs_proc_load(path, &p) && mfs_proc_alive(&p) && !listed(arg, &p))
            end_unlisted(node, part, &p);
    }
    closedir(d);
    return 0;
}

int mfs_redis_stop(const struct mfs_redis_node *node, struct mfs_redis *r, size_t n)
{
    size_t alive = end_all(r, n);

    for (size_t i = 0; i < n; i++) {
        if (mfs_proc_alive(&r[i].proc))
            mfs_error(AREA, "partition %u: process %d can't be killed", r[i].part,
                      (int)r[i].proc.pid);
        else {
            remove_files(node, r[i].part);
            remove_journal(node, r[i].part);
        }
    }
    return alive ? -ETIMEDOUT : 0;
}

int mfs_redis_end(const struct mfs_redis_node *node, struct mfs_redis *r)
{
    struct mfs_admin *admin;
    struct mfs_err err = {0};

    /* It looks for signals only now and then, and ends at once on this. */
    if (mfs_proc_alive(&r->proc) &&
        !mfs_admin_open(&admin, r->unix_path, NULL, 0, r->admin_password, END_LIMIT, &err)) {
        mfs_admin_shutdown(admin, &err);
        mfs_admin_close(admin);
    }
    return mfs_redis_stop(node, r, 1);
}
