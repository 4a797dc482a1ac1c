/* The redis processes: does each live, and answer with our password? */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cm/doctor/impl.h"
#include "store/admin/admin.h"

#define LIST_MAX 256 /* bytes of a list of partitions */

enum answer { GOOD, GONE, STOPPED, SILENT, UNASKED };

struct parts {
    struct mfs_doctor_case *c;
    struct mfs_doctor_node *node;
    uint32_t id; /* of the node */
    char check[MFS_NAME_MAX + 16];
    uint32_t n[UNASKED + 1];
    char gone[LIST_MAX], stopped[LIST_MAX]; /* partitions: "3, 7" */
    char pids[LIST_MAX];                    /* of those stopped: "4711 4712" */
};

static bool moves(const struct mfs_cm_state *s, uint32_t part)
{
    for (uint32_t i = 0; i < s->nmoves; i++)
        if (s->move[i].part == part)
            return true;
    return false;
}

static int ask(const struct parts *p, uint32_t part, struct mfs_admin_info *info,
               struct mfs_err *err)
{
    const struct mfs_partition *at = &p->c->state.table->part[part];
    const char *password = p->c->state.part[part].admin_password;
    struct mfs_admin *admin;
    int rc = mfs_admin_open(&admin, p->node->here ? at->unix_path : NULL, at->host, at->port,
                            password, mfs_doctor_time(p->c), err);

    if (rc)
        return rc;
    rc = mfs_admin_info(admin, info, err);
    mfs_admin_close(admin);
    return rc;
}

static void silent(const struct parts *p, uint32_t part, const struct mfs_proc *proc, int rc,
                   const char *why)
{
    mfs_doctor_add(p->c->d, MFS_DOCTOR_FAIL, p->check, "partition %u: %s", part, why);
    if (rc == -EACCES)
        mfs_doctor_advise(p->c->d,
                          "somebody else listens there: save what is left, cm stop%s, cm "
                          "start",
                          p->c->which);
    else if (p->node->here && proc->pid)
        mfs_doctor_advise(p->c->d,
                          "see %s/%s/redis-%u.log; if it never answers again: save what "
                          "is left, cm stop%s, cm start",
                          p->c->paths->dir, p->node->name, part, p->c->which);
    else
        mfs_doctor_advise(p->c->d, "look at the network to %s, and at that machine",
                          p->c->state.table->part[part].host);
}

/* Adds a number to a list, or "...", once, when there is no room for more. */
static void list(char out[LIST_MAX], const char *between, uint32_t number)
{
    size_t len = strlen(out);

    if (len + 16 < LIST_MAX)
        snprintf(out + len, LIST_MAX - len, "%s%u", len ? between : "", number);
    else if (out[len - 1] != '.')
        snprintf(out + len, LIST_MAX - len, " ...");
}

static enum answer check_part(struct parts *p, uint32_t part)
{
    struct mfs_admin_info info;
    struct mfs_proc proc = {0};
    struct mfs_err err;
    char file[32];
    int rc;

    if (p->node->here) {
        snprintf(file, sizeof file, "redis-%u.pid", part);
        proc = mfs_doctor_noted(p->c, p->id, file);
        if (!mfs_doctor_listens(p->c->state.table->part[part].unix_path)) {
            list(p->gone, ", ", part);
            return GONE;
        }
        if (mfs_proc_state(&proc) == 'T') {
            list(p->stopped, ", ", part);
            list(p->pids, " ", (uint32_t)proc.pid);
            return STOPPED;
        }
    }
    if (!mfs_doctor_time(p->c))
        return UNASKED;
    rc = ask(p, part, &info, &err);
    if (rc) {
        silent(p, part, &proc, rc, err.msg);
        return SILENT;
    }
    p->node->used += info.used_memory;
    return GOOD;
}

static void conclude(const struct parts *p)
{
    struct mfs_doctor *d = p->c->d;

    if (p->n[GONE]) {
        mfs_doctor_add(d, MFS_DOCTOR_FAIL, p->check,
                       "partition %s: no process listens any more, and the data are lost", p->gone);
        mfs_doctor_advise(d, "save what is left, cm stop%s, cm start with the options of before",
                          p->c->which);
    }
    if (p->n[STOPPED]) {
        mfs_doctor_add(d, MFS_DOCTOR_FAIL, p->check,
                       "partition %s: stopped by a signal, process %s", p->stopped, p->pids);
        mfs_doctor_advise(d, "kill -CONT %s", p->pids);
    }
    if (p->n[UNASKED]) {
        mfs_doctor_add(d, MFS_DOCTOR_WARN, p->check, "%u processes: no time was left to ask them",
                       p->n[UNASKED]);
        mfs_doctor_advise(d, "mend the others first");
    }
    if (p->n[GOOD])
        mfs_doctor_add(d, MFS_DOCTOR_OK, p->check, "%u processes answer, %s used", p->n[GOOD],
                       MFS_TEXT_BYTES(p->node->used));
}

static void check_node(struct mfs_doctor_case *c, uint32_t i)
{
    struct parts p = {.c = c, .node = &c->node[i], .id = c->state.node[i].id};

    snprintf(p.check, sizeof p.check, "%s: redis", p.node->name);
    for (uint32_t part = 0; part < c->state.nparts; part++) {
        if (c->state.table->part[part].node != p.id || moves(&c->state, part))
            continue;
        p.n[check_part(&p, part)]++;
    }
    c->parts_bad |= p.n[GONE] || p.n[STOPPED] || p.n[SILENT];
    conclude(&p);
}

void mfs_doctor_partitions(struct mfs_doctor_case *c)
{
    for (uint32_t i = 0; c->state.table && i < c->state.nnodes; i++)
        check_node(c, i);
    if (c->state.nmoves)
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, "moves", "%u partitions are on their way, not asked",
                       c->state.nmoves);
}
