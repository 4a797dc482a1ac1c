/* What a crash has left: records of processes that are gone, sockets at which no process listens,
 * and processes in no record. Recognised as cleanup.c does: by pid, start time and executable, and
 * Local Managers by their command lines. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cm/nodes/cleanup.h"
#include "cm/doctor/impl.h"
#include "cm/provider/traits.h"
#include "cm/state/walk.h"

#define REMAINS "remains"

struct remains {
    struct mfs_doctor_case *c;
    struct mfs_proc *known; /* recorded and alive */
    size_t nknown;
    size_t pid_files, sockets; /* void, and of nothing that another check has looked at */
    char example[PATH_MAX];
    bool all; /* count those, too, that other checks look at */
};

/* Does another check look at it? "…/node-3/redis-7.sock" and so on. */
static bool looked_at(const struct mfs_doctor_case *c, const char *path)
{
    const char *rest = path + strlen(c->paths->dir);
    const struct mfs_cm_node *node;
    uint32_t id, part;
    char file[32];

    if (sscanf(rest, "/node-%u/%31s", &id, file) != 2)
        return false;
    node = c->node ? mfs_cm_state_node(&c->state, id) : NULL;
    if (!node)
        return false;
    if (sscanf(file, "redis-%u.", &part) == 1) {
        for (uint32_t i = 0; i < c->state.nmoves; i++)
            if (c->state.move[i].part == part)
                return true;
        return c->state.table && part < c->state.nparts && c->state.table->part[part].node == id;
    }
    return !strncmp(file, "lm.", 3) || (!strcmp(file, "client.pid") && node->mount[0]);
}

static void note(struct remains *r, size_t *count, const char *path)
{
    if (!r->all && looked_at(r->c, path))
        return;
    ++*count;
    mfs_text_copy(r->example, sizeof r->example, path);
}

static int see_pid_file(void *arg, const char *path)
{
    struct remains *r = arg;
    struct mfs_proc p, *more;

    if (mfs_proc_load(path, &p))
        return 0;
    if (!mfs_proc_alive(&p)) {
        note(r, &r->pid_files, path);
        return 0;
    }
    more = reallocarray(r->known, r->nknown + 1, sizeof *more);
    if (!more)
        return -ENOMEM;
    r->known = more;
    r->known[r->nknown++] = p;
    return 0;
}

static int see_socket(void *arg, const char *path)
{
    struct remains *r = arg;

    if (!mfs_doctor_listens(path))
        note(r, &r->sockets, path);
    return 0;
}

/* ---- processes in no record ------------------------------------------------------------------ */

static int see_process(void *arg, const struct mfs_proc *p)
{
    struct remains *r = arg;

    for (size_t i = 0; i < r->nknown; i++)
        if (r->known[i].pid == p->pid)
            return 0;
    mfs_doctor_add(r->c->d, MFS_DOCTOR_WARN, "unknown process",
                   "%s, process %d, is of this deployment, and no record tells of it", p->comm,
                   (int)p->pid);
    mfs_doctor_advise(r->c->d, "kill %d, if it is still there in a moment", (int)p->pid);
    return 0;
}

static void see_processes(struct remains *r)
{
    char below[PATH_MAX];

    mfs_proc_search("lm", NULL, "--state-dir", r->c->paths->dir, see_process, r);
    if (!mfs_text_format(below, sizeof below, "%s/node-", r->c->paths->dir))
        mfs_proc_search_text("redis-server", below, see_process, r);
}

/* ---- what it means --------------------------------------------------------------------------- */

static void report_dead(const struct remains *r)
{
    struct mfs_doctor *d = r->c->d;

    mfs_doctor_add(d, MFS_DOCTOR_FAIL, REMAINS,
                   "a deployment has died here, its data with it: records of %zu processes that "
                   "are gone and %zu that still run, %zu sockets at which nobody listens",
                   r->pid_files, r->nknown, r->sockets);
    mfs_doctor_advise(d,
                      "cm stop%s: it clears it away; so does cm start, with the options of before, "
                      "and begins afresh",
                      r->c->which);
}

static void report_living(const struct remains *r)
{
    struct mfs_doctor *d = r->c->d;

    if (!r->pid_files && !r->sockets)
        return;
    mfs_doctor_add(d, MFS_DOCTOR_WARN, REMAINS,
                   "%zu records of processes that are gone, %zu sockets at which nobody listens; "
                   "one is %s",
                   r->pid_files, r->sockets, r->example);
    mfs_doctor_advise(d, "they are in nobody's way; cm stop%s removes them with all else",
                      r->c->which);
}

void mfs_doctor_remains(struct mfs_doctor_case *c, bool dead)
{
    struct remains r = {.c = c, .all = dead};

    if (dead && !mfs_cleanup_needed(c->paths)) {
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, "deployment", "%s does not run, and left nothing",
                       c->paths->name);
        return;
    }
    /* On other machines there are processes and sockets that we can't see. */
    if (!dead && !mfs_provider_traits(c->state.provider)->sees_processes)
        return;
    mfs_walk_nodes(c->paths, "*.pid", see_pid_file, &r);
    mfs_walk_nodes(c->paths, "*.sock", see_socket, &r);
    if (dead)
        see_pid_file(&r, c->paths->pid);
    see_processes(&r);
    if (dead)
        report_dead(&r);
    else
        report_living(&r);
    if (dead)
        mfs_doctor_mounts(c);
    free(r.known);
}
