/* Limits of memory that control groups set: a node that grows beyond one is killed, whatever the
 * machine still has. */
#include <stdlib.h>
#include <string.h>

#include "host/cgroup.h"
#include "base/text.h"
#include "cm/doctor/impl.h"

#define GROUPS_MOST 64 /* with a limit, of all nodes; more are not looked at */

struct group {
    char dir[PATH_MAX];
    uint64_t limit, promised; /* bytes; to all nodes in it */
    uint32_t nodes;
};

struct groups {
    uint64_t memory; /* of the node that is being looked at */
    uint32_t n;
    struct group group[GROUPS_MOST];
};

static void add(void *arg, const char *dir, uint64_t limit, uint64_t used)
{
    struct groups *g = arg;
    uint32_t i = 0;

    (void)used;
    while (i < g->n && strcmp(g->group[i].dir, dir) != 0)
        i++;
    if (i == GROUPS_MOST || (i == g->n && mfs_text_copy(g->group[i].dir, PATH_MAX, dir)))
        return;
    if (i == g->n)
        g->n++;
    g->group[i].limit = limit;
    g->group[i].promised += g->memory;
    g->group[i].nodes++;
}

/* The groups of the nodes that run here; of ourselves, when there are none. */
static void collect(const struct mfs_doctor_case *c, struct groups *g)
{
    bool any = false;

    for (uint32_t i = 0; i < c->state.nnodes; i++) {
        struct mfs_proc lm = mfs_doctor_noted(c, c->state.node[i].id, "lm.pid");

        g->memory = c->state.node[i].memory;
        any |= mfs_proc_alive(&lm) && !mfs_cgroup_of((int)lm.pid, add, g);
    }
    g->memory = 0;
    if (!any)
        mfs_cgroup_of(0, add, g);
}

static void judge(struct mfs_doctor_case *c, const struct group *g)
{
    static const char check[] = "memory limit";

    if (g->promised <= g->limit) {
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, check, "%s allows %s%s%s", g->dir,
                       MFS_TEXT_BYTES(g->limit),
                       g->nodes && g->promised ? "; nodes in it may take " : "",
                       g->promised ? MFS_TEXT_BYTES(g->promised) : "");
        return;
    }
    mfs_doctor_add(c->d, MFS_DOCTOR_WARN, check,
                   "%s allows %s, and the %s in it may take %s: beyond that the kernel kills "
                   "processes of it",
                   g->dir, MFS_TEXT_BYTES(g->limit), MFS_TEXT_COUNT(g->nodes, "node"),
                   MFS_TEXT_BYTES(g->promised));
    mfs_doctor_advise(
        c->d,
        "raise it (memory.max, docker --memory, MemoryMax= of the unit), or next time "
        "cm start --memory %lluM",
        (unsigned long long)(g->limit / g->nodes >> 20));
}

void mfs_doctor_cgroup(struct mfs_doctor_case *c)
{
    struct groups *g = calloc(1, sizeof *g);

    if (!g)
        return;
    collect(c, g);
    for (uint32_t i = 0; i < g->n; i++)
        judge(c, &g->group[i]);
    free(g);
}
