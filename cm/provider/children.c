#include "cm/provider/children.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "base/trusted_dir.h"
#include "host/proc.h"

struct child {
    struct mfs_children *of;
    uint32_t node;
    struct mfs_proc proc;
    struct mfs_watch *watch;
    bool dropped; /* watched only to be reaped */
    struct child *next;
};

struct mfs_children {
    const struct mfs_provider_context *context;
    struct mfs_notices *notices;
    struct child *first;
};

struct mfs_children *mfs_children_create(const struct mfs_provider_context *c,
                                         struct mfs_notices *notices)
{
    struct mfs_children *l = calloc(1, sizeof *l);

    if (l)
        *l = (struct mfs_children){c, notices, NULL};
    return l;
}

static void unlist(struct child *c)
{
    struct child **at = &c->of->first;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

void mfs_children_destroy(struct mfs_children *l)
{
    while (l && l->first) {
        mfs_watch_remove(l->first->watch);
        unlist(l->first);
    }
    free(l);
}

static struct child *find(const struct mfs_children *l, uint32_t node)
{
    struct child *c = l->first;

    while (c && (c->node != node || c->dropped))
        c = c->next;
    return c;
}

void mfs_children_how(int status, char *out, size_t n)
{
    if (status == -1)
        snprintf(out, n, "ended");
    else if (WIFSIGNALED(status))
        snprintf(out, n, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(out, n, "exited with status %d", WEXITSTATUS(status));
}

static void gone(void *arg, pid_t pid, int status)
{
    struct child *c = arg;
    char how[96];

    (void)pid;
    if (!c->dropped) {
        mfs_children_how(status, how, sizeof how);
        mfs_notices_ended(c->of->notices, c->node, how);
    }
    unlist(c);
}

/* Lists the process, which it watches. NULL: errno. */
static struct child *watch(struct mfs_children *l, uint32_t node, const struct mfs_proc *p)
{
    struct child *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    *c = (struct child){.of = l, .node = node, .proc = *p, .next = l->first};
    c->watch = mfs_loop_process(l->context->loop, p->pid, gone, c);
    if (!c->watch) {
        free(c);
        return NULL;
    }
    l->first = c;
    return c;
}

static void describe(const struct child *c, char what[MFS_PROVIDER_WHAT_MAX])
{
    snprintf(what, MFS_PROVIDER_WHAT_MAX, "process %d", (int)c->proc.pid);
}

/* A node's directory is its lm's where that runs elsewhere; what stands for it here has files of
 * its own. `what` is "log" or "pid". */
static int name_file(const struct mfs_children *l, uint32_t node, const char *what,
                     char out[PATH_MAX])
{
    char file[8];

    if (!l->context->here)
        return mfs_paths_start(l->context->paths, node, what, out);
    snprintf(file, sizeof file, "lm.%s", what);
    return mfs_paths_node(l->context->paths, node, file, out);
}

static int make_dir(const struct mfs_children *l, uint32_t node, struct mfs_err *err)
{
    char dir[PATH_MAX];
    int rc;

    if (!l->context->here)
        return 0;
    rc = mfs_paths_node(l->context->paths, node, "", dir);
    return rc ? mfs_err_set(err, rc, "%s", strerror(-rc)) : mfs_trusted_dir_make(dir, err);
}

/* A shell becomes what it is told to exec, and is the same process: its start time tells. */
static void forget_name(struct mfs_proc *p, const char *pid_file)
{
    mfs_text_copy(p->comm, sizeof p->comm, "?");
    if (p->start)
        mfs_proc_save(p, pid_file);
}

static int spawn(const struct mfs_children *l, const struct mfs_provider_node *n,
                 const char *const *argv, struct mfs_proc *p, struct mfs_err *err)
{
    struct mfs_provider_input in;
    char log[PATH_MAX], pid_file[PATH_MAX];
    int rc = name_file(l, n->id, "log", log);

    if (!rc)
        rc = name_file(l, n->id, "pid", pid_file);
    if (rc)
        return mfs_err_set(err, rc, "%s", strerror(-rc));
    rc = make_dir(l, n->id, err);
    if (rc)
        return rc;
    if (mfs_provider_input(l->context, &in))
        return mfs_err_set(err, -EINVAL,
                           "%s has bytes that can't be handed over: let cm start "
                           "make it",
                           l->context->paths->secret);
    rc = mfs_proc_spawn_given(argv, log, pid_file, &in.input, p);
    mfs_provider_input_wipe(&in);
    if (!rc && !l->context->here)
        forget_name(p, pid_file);
    return rc ? mfs_err_set(err, rc, "%s: %s", argv[0], strerror(-rc)) : 0;
}

int mfs_children_start(struct mfs_children *l, const struct mfs_provider_node *n,
                       const char *const *argv, struct mfs_err *err)
{
    char what[MFS_PROVIDER_WHAT_MAX];
    const struct child *c;
    struct mfs_proc p = {0};
    int rc = spawn(l, n, argv, &p, err);

    if (rc)
        return rc;
    /* One that has ended already is watched all the same, which tells how it ended. */
    c = watch(l, n->id, &p);
    if (!c)
        return mfs_err_set(err, -errno, "its lm ended at once");
    describe(c, what);
    mfs_notices_ready(l->notices, n->id, what);
    return 0;
}

bool mfs_children_adopt(struct mfs_children *l, const struct mfs_provider_node *n,
                        char what[MFS_PROVIDER_WHAT_MAX])
{
    char path[PATH_MAX];
    const struct child *c;
    struct mfs_proc p;

    if (name_file(l, n->id, "pid", path) || mfs_proc_load(path, &p) || !mfs_proc_alive(&p))
        return false;
    c = watch(l, n->id, &p);
    if (c)
        describe(c, what);
    return c != NULL;
}

int mfs_children_signal(struct mfs_children *l, uint32_t node, int signo)
{
    const struct child *c = find(l, node);

    return c ? mfs_proc_kill(&c->proc, signo) : -ESRCH;
}

void mfs_children_drop(struct mfs_children *l, uint32_t node)
{
    struct child *c = find(l, node);
    char path[PATH_MAX];

    if (!l->context->here && !name_file(l, node, "pid", path))
        unlink(path);
    if (!c)
        return;
    c->dropped = true;
    mfs_proc_kill_group(&c->proc);
}
