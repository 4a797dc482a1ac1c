/* A deployment that is there: is anything of it alive, and do its parts do what they should? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "cluster/capacity.h"
#include "cm/nodes/cleanup.h"
#include "cm/ask/client.h"
#include "cm/doctor/impl.h"
#include "cm/state/spec.h"
#include "cm/provider/traits.h"

#define NEAR_FULL 0.9 /* of a node's capacity */

int64_t mfs_doctor_time(const struct mfs_doctor_case *c)
{
    int64_t left = c->until - mfs_clock_mono();

    if (left > MFS_DOCTOR_CALL_TIME)
        return MFS_DOCTOR_CALL_TIME;
    return left > 0 ? left : 0;
}

struct mfs_proc mfs_doctor_noted(const struct mfs_doctor_case *c, uint32_t node, const char *file)
{
    struct mfs_proc p = {0};
    char path[PATH_MAX];

    if (!mfs_paths_node(c->paths, node, file, path))
        mfs_proc_load(path, &p);
    return p;
}

const char *mfs_doctor_quote(const char *path, char *out, size_t n)
{
    return mfs_text_quote(out, n, path) ? path : out;
}

bool mfs_doctor_listens(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd, rc;

    if (mfs_text_copy(a.sun_path, sizeof a.sun_path, path))
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    rc = connect(fd, (const struct sockaddr *)&a, sizeof a) ? errno : 0;
    close(fd);
    return !rc || rc == EAGAIN; /* EAGAIN: it listens, but does not keep up */
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A node that is too small for its processes takes more than it was given. */
static void check_size(struct mfs_doctor_case *c, const struct mfs_cm_node *n, uint32_t parts)
{
    uint64_t least = mfs_capacity_least(parts);
    char check[MFS_NAME_MAX + 16];

    if (n->memory >= least)
        return;
    snprintf(check, sizeof check, "%s: limit", n->name);
    mfs_doctor_add(c->d, MFS_DOCTOR_WARN, check,
                   "%s are too little for %u partitions and a client, which take most of it empty",
                   MFS_TEXT_BYTES(n->memory), parts);
    mfs_doctor_advise(c->d, "next time: cm start --memory %lluM or more, or fewer --partitions",
                      (unsigned long long)(least / MFS_CAPACITY_MIB + 1));
}

static void check_node_memory(struct mfs_doctor_case *c, const struct mfs_doctor_node *n,
                              uint64_t room)
{
    char check[MFS_NAME_MAX + 16];

    if ((double)n->used < NEAR_FULL * (double)room)
        return;
    snprintf(check, sizeof check, "%s: memory", n->name);
    mfs_doctor_add(c->d, MFS_DOCTOR_WARN, check, "%s of %s used: writes fail when it is full",
                   MFS_TEXT_BYTES(n->used), MFS_TEXT_BYTES(room));
    mfs_doctor_advise(c->d, "delete files, or cm scale +1%s", c->which);
}

/* May all nodes of this machine still take what they were promised? */
static void check_promises(struct mfs_doctor_case *c, uint64_t used, uint64_t promised)
{
    uint64_t available = mfs_spec_meminfo("MemAvailable"),
             open = promised > used ? promised - used : 0;

    if (mfs_provider_traits(c->state.provider)->one_machine && open > available) {
        mfs_doctor_add(c->d, MFS_DOCTOR_WARN, "memory promised",
                       "nodes may take %s more, and this machine has %s available",
                       MFS_TEXT_BYTES(open), MFS_TEXT_BYTES(available));
        mfs_doctor_advise(c->d,
                          "end other programs, or cm scale to fewer nodes%s: when memory runs out "
                          "the kernel kills something",
                          c->which);
        return;
    }
    mfs_doctor_add(c->d, MFS_DOCTOR_OK, "memory used", "%s of %s", MFS_TEXT_BYTES(used),
                   MFS_TEXT_BYTES(promised));
}

static void check_memory(struct mfs_doctor_case *c)
{
    uint64_t used = 0, promised = 0;

    for (uint32_t i = 0; i < c->state.nnodes; i++) {
        uint32_t parts = mfs_cm_state_count(&c->state, c->state.node[i].id);
        uint64_t room = mfs_capacity_used(c->state.node[i].memory, parts);

        check_size(c, &c->state.node[i], parts);
        used += c->node[i].used;
        promised += room;
        check_node_memory(c, &c->node[i], room);
    }
    check_promises(c, used, promised);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int make_nodes(struct mfs_doctor_case *c)
{
    bool local = mfs_provider_traits(c->state.provider)->sees_processes;

    c->node = calloc(c->state.nnodes, sizeof *c->node);
    if (!c->node)
        return -ENOMEM;
    for (uint32_t i = 0; i < c->state.nnodes; i++) {
        struct mfs_proc lm = mfs_doctor_noted(c, c->state.node[i].id, "lm.pid");

        memcpy(c->node[i].name, c->state.node[i].name, sizeof c->node[i].name);
        c->node[i].here = local || mfs_proc_alive(&lm);
    }
    return 0;
}

/* cm that says "degraded" has its reasons, which others have found, or which will pass. */
static void check_whole(struct mfs_doctor_case *c, size_t failed_before)
{
    if (!c->answered || !strcmp(c->status.state, "running") ||
        !strcmp(c->status.state, "scaling") ||
        mfs_doctor_count(c->d, MFS_DOCTOR_FAIL) > failed_before)
        return;
    mfs_doctor_add(c->d, MFS_DOCTOR_WARN, "deployment", "it is %s", c->status.state);
    mfs_doctor_advise(c->d, "cm events%s tells why; cm doctor again in half a minute", c->which);
}

static void check_living(struct mfs_doctor_case *c)
{
    size_t failed = mfs_doctor_count(c->d, MFS_DOCTOR_FAIL);

    mfs_doctor_managers(c);
    mfs_doctor_partitions(c);
    mfs_doctor_mounts(c);
    check_memory(c);
    mfs_doctor_damage(c);
    check_whole(c, failed);
    mfs_doctor_remains(c, false);
}

void mfs_doctor_deployment(struct mfs_doctor_case *c)
{
    bool alive;

    c->until = mfs_clock_mono() + MFS_DOCTOR_TIME;
    c->daemon = mfs_client_daemon(c->paths);
    alive = c->daemon.pid || mfs_cleanup_living(c->paths) ||
            (c->recorded && !mfs_provider_traits(c->state.provider)->sees_processes);
    if (!alive) {
        mfs_doctor_remains(c, true);
    } else if (!c->recorded) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, "deployment",
                       "processes of it run, and there is no state that tells which");
        mfs_doctor_advise(c->d, "cm stop%s: it ends them", c->which);
    } else if (make_nodes(c)) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, "deployment", "out of memory");
    } else {
        check_living(c);
    }
}
