/* The agent's clients: hooks of mfs_clients and of the mounter, and ending all of them. */
#include "lm/agent/agent_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/hung_mount.h"
#include "base/text.h"
#include "cluster/capacity.h"
#include "lm/mount/unmount.h"
#include "proto/times.h"

#define AREA      "clients"
#define LOOK_EACH (2 * MFS_SEC) /* longer than a job of it takes */

/* ---- hooks ----------------------------------------------------------------------------------- */

struct release_job {
    struct mfs_job job;
    struct mfs_proc client;
    char path[MFS_PATH_MAX];
    bool detach;
};

static void run_release(struct mfs_job *job)
{
    struct release_job *j = (struct release_job *)job;

    mfs_hung_mount_abort(&j->client, j->path);
    if (j->detach)
        mfs_unmount_dead(j->path);
}

static void free_job(struct mfs_job *job)
{
    free(job);
}

/* A mount whose client died answers "Transport endpoint is not connected" until it is detached, or
 * nothing at all while the client can't end. */
static void release(struct mfs_agent *a, const struct mfs_client *client, bool detach)
{
    struct release_job *j =
        mfs_client_may_mount(client) && client->mount[0] ? calloc(1, sizeof *j) : NULL;

    if (!j)
        return;
    j->job = (struct mfs_job){run_release, free_job, NULL};
    j->client = client->proc;
    j->detach = detach;
    memcpy(j->path, client->mount, sizeof j->path);
    mfs_worker_submit(a->mount_worker, &j->job);
}

/* Nothing tells of the end of a process some of whose threads can't end. */
static void look_for_stuck(void *arg)
{
    struct mfs_agent *a = arg;
    size_t n = 0; /* at the end there is no list any more */
    struct mfs_client *list = a->clients ? mfs_clients_list(a->clients, &n) : NULL;

    for (size_t i = 0; list && i < n; i++)
        if (mfs_proc_dying(&list[i].proc))
            release(a, &list[i], false);
    free(list);
}

static void client_ready(void *arg, const struct mfs_client *client)
{
    struct mfs_agent *a = arg;

    mfs_mounter_ready(a->mounter, client);
}

static void client_gone(void *arg, const struct mfs_client *client, int status)
{
    struct mfs_agent *a = arg;
    bool clean = status >= 0 && WIFEXITED(status) && !WEXITSTATUS(status);

    mfs_info(AREA, "client %d at %s is gone", (int)client->proc.pid, client->mount);
    if (!clean)
        mfs_agent_end_session(a, client->session);
    /* The mounter's next attempt detaches its own, which this job lets answer: they come in turn.
     */
    release(a, client, !mfs_mounter_gone(a->mounter, client, status));
    if (a->phase == MFS_AGENT_RUNNING)
        mfs_agent_save(a);
}

static void clients_changed(void *arg)
{
    struct mfs_agent *a = arg;

    if (a->phase == MFS_AGENT_RUNNING)
        mfs_agent_save(a);
}

static int64_t last_heartbeat(void *arg, struct mfs_msg_beat_reply *m)
{
    const struct mfs_agent *a = arg;

    m->lost = a->link.lost;
    m->nlost = a->link.nlost;
    return a->link.last_heartbeat;
}

static void mount_event(void *arg, const char *what, const char *text)
{
    mfs_agent_event(arg, what, "%s", text);
}

static int client_started(void *arg, const struct mfs_client *client)
{
    struct mfs_agent *a = arg;

    return mfs_clients_expect(a->clients, client);
}

static uint64_t client_memory(void *arg)
{
    const struct mfs_agent *a = arg;

    return a->memory ? mfs_capacity_client(a->memory) : 0;
}

static const struct mfs_clients_hooks client_hooks = {client_ready, client_gone, clients_changed,
                                                      last_heartbeat, mfs_agent_relay};
static const struct mfs_mounter_hooks mounter_hooks = {mount_event, clients_changed, client_memory,
                                                       client_started};

int mfs_agent_clients_open(struct mfs_agent *a, struct mfs_err *err)
{
    struct mfs_mounter_opts opts = {.loop = a->loop,
                                    .worker = a->mount_worker,
                                    .name = a->opts.name,
                                    .state_dir = a->opts.state_dir,
                                    .dir = a->path.dir,
                                    .address = a->path.client_address,
                                    .log_format = a->opts.log_format,
                                    .hooks = &mounter_hooks,
                                    .arg = a};

    a->mounter = mfs_mounter_create(&opts);
    if (!a->mounter)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    a->clients = mfs_clients_create(a->loop, a->path.client_address, &a->secret, a->metrics,
                                    &client_hooks, a, err);
    if (a->clients && !mfs_loop_timer(a->loop, LOOK_EACH, LOOK_EACH, look_for_stuck, a))
        return mfs_err_set(err, -ENOMEM, "out of memory");
    return a->clients ? 0 : err->code;
}

/* ---- the end --------------------------------------------------------------------------------- */

struct end_job {
    struct mfs_job job;
    struct mfs_agent *agent;
    void (*done)(struct mfs_agent *a);
    struct mfs_unmount *u;
    size_t n;
};

static void run_end(struct mfs_job *job)
{
    struct end_job *j = (struct end_job *)job;

    mfs_unmount(j->u, j->n, MFS_CLIENT_END_TIME);
}

static void all_ended(struct mfs_job *job)
{
    struct end_job *j = (struct end_job *)job;

    for (size_t i = 0; i < j->n; i++) {
        if (!j->u[i].gone)
            mfs_error(AREA, "client %d at %s can't be ended", (int)j->u[i].client.pid,
                      j->u[i].path);
    }
    j->done(j->agent);
    free(j->u);
    free(j);
}

/* The managed mount is gone by now: what is left was mounted by hand. */
static void end_the_rest(struct mfs_agent *a, void (*done)(struct mfs_agent *a))
{
    size_t n;
    struct mfs_client *list = mfs_clients_list(a->clients, &n);
    struct end_job *j = calloc(1, sizeof *j);
    struct mfs_unmount *u = calloc(n + 1, sizeof *u);

    if (j && u) {
        *j = (struct end_job){{run_end, all_ended, NULL}, a, done, u, 0};
        for (size_t i = 0; i < n; i++) {
            if (!list[i].proc.pid)
                continue; /* its process can't be reached from here, nor its mount */
            if (!mfs_client_may_mount(&list[i]))
                continue; /* a program without a mount: its calls fail, and it goes on */
            u[j->n].client = list[i].proc;
            memcpy(u[j->n++].path, list[i].mount, sizeof u->path);
        }
        mfs_worker_submit(a->mount_worker, &j->job);
    } else {
        mfs_error(AREA, "out of memory, clients are left running");
        free(j);
        free(u);
        done(a);
    }
    free(list);
}

struct unmounting {
    struct mfs_agent *agent;
    void (*done)(struct mfs_agent *a);
};

static void managed_gone(void *arg, const struct mfs_err *err)
{
    struct unmounting u = *(struct unmounting *)arg;

    free(arg);
    if (err)
        mfs_error(AREA, "%s", err->msg);
    end_the_rest(u.agent, u.done);
}

void mfs_agent_clients_unmount(struct mfs_agent *a, void (*done)(struct mfs_agent *a))
{
    struct unmounting *u = calloc(1, sizeof *u);

    if (!u) {
        end_the_rest(a, done);
        return;
    }
    *u = (struct unmounting){a, done};
    mfs_mounter_stop(a->mounter, managed_gone, u);
}
