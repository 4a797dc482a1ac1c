/* Clearing away. The order matters: a Local Manager would start a client anew that it sees dying,
 * and a client without its redis processes could not flush. */
#include "cm/nodes/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/bind_mounts.h"
#include "base/clock.h"
#include "host/dead_mount.h"
#include "base/file.h"
#include "base/log.h"
#include "host/proc.h"
#include "host/hung_mount.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "cm/provider/traits.h"
#include "cm/state/state.h"
#include "cm/state/walk.h"
#include "proto/times.h"

#define LM_GRACE    (15 * MFS_SEC)
#define REDIS_GRACE (3 * MFS_SEC)
#define KILL_GRACE  (3 * MFS_SEC)
#define STEP        (10 * MFS_MSEC)
#define LOOK_LIMIT  (1 * MFS_SEC)

static_assert(MFS_CLIENT_END_TIME + KILL_GRACE < LM_GRACE,
              "a Local Manager ends its clients itself");
#define STACKED_MOST 16

/* Are the nodes' processes and files of this machine, and ours to clear away? Not where a provider
 * has them elsewhere: what is in the same place here may belong to others. Without a state that can
 * be read, which only an accident explains, it is taken for ours. */
static bool are_here(const struct mfs_paths *p)
{
    struct mfs_cm_state st;
    struct mfs_err err;
    bool here;

    if (mfs_cm_state_load(&st, p->state, &err))
        return !mfs_cleanup_is_node(p);
    here = mfs_provider_traits(st.provider)->sees_processes;
    mfs_cm_state_clear(&st);
    return here;
}

/* ---- processes ------------------------------------------------------------------------------- */

struct procs {
    struct mfs_proc *proc;
    size_t n;
};

static int add_proc(void *arg, const struct mfs_proc *p)
{
    struct procs *l = arg;
    struct mfs_proc *more = reallocarray(l->proc, l->n + 1, sizeof *more);

    if (!more)
        return -ENOMEM;
    l->proc = more;
    l->proc[l->n++] = *p;
    return 0;
}

static int add_recorded(void *arg, const char *path)
{
    struct mfs_proc p;

    if (mfs_proc_load(path, &p) || !mfs_proc_alive(&p))
        return 0;
    return add_proc(arg, &p);
}

static void drop_dead(struct procs *l)
{
    for (size_t i = 0; i < l->n;) {
        if (mfs_proc_alive(&l->proc[i]))
            i++;
        else
            l->proc[i] = l->proc[--l->n];
    }
}

static void signal_all(struct procs *l, int sig, int64_t grace)
{
    int64_t until = mfs_clock_mono() + grace;

    for (size_t i = 0; i < l->n; i++)
        mfs_proc_kill(&l->proc[i], sig);
    for (drop_dead(l); l->n && mfs_clock_mono() < until; drop_dead(l))
        mfs_clock_sleep(STEP);
}

/* Frees the list. SIGTERM would have a Local Manager wait for cm to move what it has, and a redis
 * process take no notice. */
static int end_procs(struct procs *l, const char *kind, int signo, int64_t grace,
                     struct mfs_err *err)
{
    int rc = 0;

    if (l->n) {
        mfs_info("cleanup", "ending %zu processes of %s", l->n, kind);
        signal_all(l, signo, grace);
    }
    if (l->n)
        signal_all(l, SIGKILL, KILL_GRACE);
    if (l->n)
        rc = mfs_err_set(err, -EBUSY, "process %d (%s) cannot be ended", (int)l->proc[0].pid,
                         l->proc[0].comm);
    free(l->proc);
    return rc;
}

static int end_recorded(const struct mfs_paths *p, const char *pattern, int signo, int64_t grace,
                        struct mfs_err *err)
{
    struct procs l = {NULL, 0};
    int rc = mfs_walk_nodes(p, pattern, add_recorded, &l),
        ended = end_procs(&l, pattern, signo, grace, err);

    return rc ? mfs_err_set(err, rc, "%s: %s", p->dir, strerror(-rc)) : ended;
}

/* By their command lines: a cm that was killed between starting one and recording it leaves no pid
 * file. */
static int end_managers(const struct mfs_paths *p, struct mfs_err *err)
{
    struct procs l = {NULL, 0};
    int rc = mfs_proc_search("lm", NULL, "--state-dir", p->dir, add_proc, &l);
    int ended = end_procs(&l, "lm", SIGINT, LM_GRACE, err);

    return rc ? mfs_err_set(err, rc, "/proc: %s", strerror(-rc)) : ended;
}

/* ---- mounts ---------------------------------------------------------------------------------- */

/* The one line of a file that names a path. */
static int read_path(const char *record, char path[PATH_MAX])
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_trusted_read(record, PATH_MAX - 1, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "\n", 2);
    if (!rc)
        snprintf(path, PATH_MAX, "%.*s", (int)strcspn(mfs_buf_data(&b), "\n"), mfs_buf_data(&b));
    mfs_buf_fini(&b);
    return rc;
}

/* To be called before the client is ended, which unmounts, but knows nothing of binds. */
static int note_binds(void *binds, const char *record)
{
    char path[PATH_MAX];

    if (!read_path(record, path))
        mfs_bind_mounts_note(binds, path);
    return 0;
}

static int release_from(void *mount, const char *pid_file)
{
    struct mfs_proc client;

    if (!mfs_proc_load(pid_file, &client))
        mfs_hung_mount_abort(&client, mount);
    return 0;
}

/* A node's directory names both its mount and the processes that were its clients. */
static int release_stuck(void *arg, const char *node)
{
    char record[PATH_MAX], mount[PATH_MAX];

    (void)arg;
    if (mfs_text_format(record, sizeof record, "%s/mount", node) || read_path(record, mount))
        return 0;
    return mfs_walk(node, "client*.pid", release_from, mount);
}

/* Mounts may be stacked. */
static int detach(void *arg, const char *record)
{
    struct mfs_err *err = arg;
    char path[PATH_MAX];
    int rc = read_path(record, path);

    for (int i = 0; i < STACKED_MOST && !rc && mfs_dead_mount(path, LOOK_LIMIT); i++)
        if (umount2(path, MNT_DETACH))
            rc = mfs_err_set(err, -errno, "umount %s: %s", path, strerror(errno));
    return rc == -ENOENT ? 0 : rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Their mounts, and binds of these, go with them. */
static int end_clients(const struct mfs_paths *p, struct mfs_err *err)
{
    struct mfs_bind_mounts *binds = mfs_bind_mounts_create();
    int rc, one;

    if (!binds)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_walk_nodes(p, "mount", note_binds, binds);
    rc = end_recorded(p, "client*.pid", SIGTERM, MFS_CLIENT_END_TIME, err);
    mfs_walk_node_dirs(p, release_stuck, NULL);
    one = mfs_walk_nodes(p, "mount", detach, err);
    mfs_bind_mounts_detach(binds);
    mfs_bind_mounts_destroy(binds);
    return rc ? rc : one;
}

/* The commands that stand for nodes which are elsewhere: as a rule they have ended with these. */
static int end_commands(const struct mfs_paths *p, struct mfs_err *err)
{
    struct procs l = {NULL, 0};
    int rc = mfs_walk(p->dir, "start-*.pid", add_recorded, &l),
        ended = end_procs(&l, "commands", SIGINT, LM_GRACE, err);

    return rc ? mfs_err_set(err, rc, "%s: %s", p->dir, strerror(-rc)) : ended;
}

int mfs_cleanup_processes(const struct mfs_paths *p, struct mfs_err *err)
{
    int rc, one;

    if (!are_here(p))
        return end_commands(p, err);
    rc = end_managers(p, err);
    one = end_recorded(p, "lm.pid", SIGINT, LM_GRACE, err);
    if (!rc)
        rc = one;
    one = end_clients(p, err);
    if (!rc)
        rc = one;
    one = end_recorded(p, "redis-*.pid", SIGINT, REDIS_GRACE, err);
    return rc ? rc : one;
}

static int found(void *arg, const char *path)
{
    (void)path;
    *(bool *)arg = true;
    return 0;
}

bool mfs_cleanup_needed(const struct mfs_paths *p)
{
    bool any = !access(p->state, F_OK);

    mfs_walk_nodes(p, "*.pid", found, &any);
    return any;
}

/* Where nothing of ours is yet. */
struct place {
    const struct mfs_paths *paths;
    struct mfs_err *err;
};

static int check_ours(void *arg, const char *path)
{
    static const char *const patterns[] = {"mount-*.log", "start-*.log", "start-*.pid", "*.new.*",
                                           "*.log.*"};
    const struct place *place = arg;
    const struct mfs_paths *p = place->paths;
    const char *const own[] = {p->secret,  p->address, p->pid,   p->events,      p->old_events,
                               p->failure, p->log,     p->token, p->token_write, p->history};
    const char *name = strrchr(path, '/') + 1;
    bool ours = mfs_walk_is_node(path) || !strcmp(name, "..");
    struct stat st;

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        ours |= !strcmp(path, own[i]);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        ours |= !fnmatch(patterns[i], name, 0);
    /* Any user may have put it there before the directory was ours alone. */
    if (ours && !lstat(path, &st) && (st.st_uid != geteuid() || S_ISLNK(st.st_mode)))
        ours = !strcmp(name, "..");
    return ours
               ? 0
               : mfs_err_set(place->err, -EEXIST,
                             "state-dir: %s is there already; choose a directory that is empty, or "
                             "yet to be made",
                             path);
}

int mfs_cleanup_check_place(const struct mfs_paths *p, struct mfs_err *err)
{
    struct place place = {p, err};
    int rc;

    if (!access(p->state, F_OK))
        return 0;
    err->code = 0;
    rc = mfs_walk(p->dir, "*", check_ours, &place);
    if (!rc)
        rc = mfs_walk(p->dir, ".?*", check_ours, &place);
    return rc && !err->code ? mfs_err_set(err, rc, "%s: %s", p->dir, strerror(-rc)) : rc;
}

static int found_living(void *arg, const char *path)
{
    struct mfs_proc p;

    *(bool *)arg |= !mfs_proc_load(path, &p) && mfs_proc_alive(&p);
    return 0;
}

bool mfs_cleanup_living(const struct mfs_paths *p)
{
    bool any = false;

    if (are_here(p))
        mfs_walk_nodes(p, "redis-*.pid", found_living, &any);
    return any;
}

static int remove_tree(void *arg, const char *path)
{
    (void)arg;
    return mfs_file_remove_tree(path);
}

bool mfs_cleanup_is_node(const struct mfs_paths *p)
{
    bool copied = false, alive = false;

    if (!access(p->state, F_OK))
        return false;
    mfs_walk_nodes(p, "cm.json", found, &copied);
    if (copied)
        mfs_walk_nodes(p, "*.pid", found_living, &alive);
    return alive;
}

static int found_node(void *arg, const char *path)
{
    (void)arg;
    (void)path;
    return 1;
}

/* Those of clients that were mounted by hand, and what logrotate has put aside. */
static void remove_other_logs(const struct mfs_paths *p)
{
    mfs_walk(p->dir, "mount-*.log", remove_tree, NULL);
    mfs_walk(p->dir, "*.log.*", remove_tree, NULL);
}

void mfs_cleanup_moved(const struct mfs_paths *p)
{
    const char *const own[] = {p->state, p->address,     p->pid,    p->failure,
                               p->token, p->token_write, p->history};
    const char *const last[] = {p->secret, p->events, p->old_events, p->log};

    mfs_walk(p->dir, "start-*", remove_tree, NULL);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        unlink(own[i]);
    if (mfs_walk_node_dirs(p, found_node, NULL))
        return; /* the last one's lm removes the rest */
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        unlink(last[i]);
    remove_other_logs(p);
    rmdir(p->dir);
}

/* A node's directory for dumps is elsewhere, see lm/redis/dump_dir.h; only what looks like one, and
 * is ours alone, is removed. */
static int remove_dumps(void *arg, const char *record)
{
    char path[PATH_MAX], *node, *above;
    int rc = read_path(record, path);

    (void)arg;
    node = rc ? NULL : strrchr(path, '/');
    if (!node || path[0] != '/' || fnmatch("/node-*", node, 0))
        return 0;
    rc = mfs_trusted_dir_remove(path);
    if (rc)
        mfs_warn("cleanup", "dumps in %s are left there: %s", path, strerror(-rc));
    *node = '\0';
    above = strrchr(path, '/');
    if (!rc && above && !fnmatch("/memefs-*", above, 0))
        rmdir(path); /* the last one of this machine succeeds in that */
    return 0;
}

static int remove_but_log(void *arg, const char *path)
{
    const char *name = strrchr(path, '/') + 1; /* of a file in a node's directory */

    (void)arg;
    if (!fnmatch("*.log", name, 0) || !fnmatch("*.log.*", name, 0))
        return 0;
    return mfs_file_remove_tree(path);
}

static int kill_recorded(void *arg, const char *path)
{
    struct mfs_proc p;

    if (mfs_proc_load(path, &p) || !mfs_proc_alive(&p))
        return 0;
    *(bool *)arg = true;
    mfs_proc_kill(&p, SIGKILL);
    return 0;
}

bool mfs_cleanup_node_processes(const struct mfs_paths *p, uint32_t node)
{
    char dir[PATH_MAX];
    bool alive = false;

    if (mfs_paths_node(p, node, "", dir))
        return false;
    mfs_walk(dir, "client*.pid", kill_recorded, &alive);
    mfs_walk(dir, "redis-*.pid", kill_recorded, &alive);
    return alive;
}

int mfs_cleanup_node_files(const struct mfs_paths *p, uint32_t node, struct mfs_err *err)
{
    struct mfs_bind_mounts *binds = mfs_bind_mounts_create();
    char dir[PATH_MAX];
    int rc = binds ? mfs_paths_node(p, node, "", dir) : -ENOMEM;

    if (!rc) {
        mfs_walk(dir, "mount", note_binds, binds);
        mfs_walk(dir, "mount", detach, err);
        mfs_bind_mounts_detach(binds);
        mfs_walk(dir, "dumps", remove_dumps, NULL);
        rc = mfs_file_remove_tree(dir);
    }
    mfs_bind_mounts_destroy(binds);
    return rc && rc != -ENOENT ? mfs_err_set(err, rc, "%s: %s", dir, strerror(-rc)) : 0;
}

void mfs_cleanup_start_files(const struct mfs_paths *p, uint32_t node)
{
    static const char *const kinds[] = {"pid", "log"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!mfs_paths_start(p, node, kinds[i], path))
            unlink(path);
}

int mfs_cleanup_files(const struct mfs_paths *p, bool keep_logs, struct mfs_err *err)
{
    const char *const own[] = {p->secret, p->address,     p->pid,     p->failure,    p->state,
                               p->token,  p->token_write, p->history, p->old_events, p->events};
    const size_t nown = sizeof own / sizeof *own - (keep_logs ? 2 : 0);
    bool here = are_here(p);
    int rc = 0;

    if (here)
        mfs_walk_nodes(p, "dumps", remove_dumps, NULL);
    mfs_walk(p->dir, "*.new.*", remove_tree,
             NULL); /* of writers that were killed (mfs_file_write) */
    mfs_walk(p->dir, keep_logs ? "start-*.pid" : "start-*", remove_tree, NULL);
    if (here)
        rc = keep_logs ? mfs_walk_nodes(p, "*", remove_but_log, NULL)
                       : mfs_walk_node_dirs(p, remove_tree, NULL);
    /* The state comes last but for the events, which count as a log: while it is there, another
     * start knows that there is more to do. */
    for (size_t i = 0; i < nown; i++)
        if (unlink(own[i]) && errno != ENOENT && !rc)
            rc = -errno;
    if (!keep_logs)
        remove_other_logs(p);
    if (!keep_logs && unlink(p->log) && errno != ENOENT && !rc)
        rc = -errno;
    if (!keep_logs && rmdir(p->dir) && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST &&
        !rc)
        rc = -errno;
    return rc ? mfs_err_set(err, rc, "%s: %s", p->dir, strerror(-rc)) : 0;
}
