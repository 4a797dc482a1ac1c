/* Ends the sessions of clients that have died, so that nothing waits for what these had: locks, and
 * answers to notices. As with the client its node may have died, or its partitions, it may take
 * some tries until a partition answers where a newer table says that it is. */
#include "lm/agent/agent_impl.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "lm/jobs/job_threads.h"
#include "store/args.h"
#include "store/keys.h"
#include "store/store.h"

#define AREA  "sessions"
#define TRY   (2 * MFS_SEC)
#define AGAIN (500 * MFS_MSEC)
#define LIFE  (20 * MFS_SEC) /* then it has ended by itself (meta/life.c) */

static_assert(TRY + AGAIN < LIFE, "it is tried more than once");

struct mfs_agent_session {
    struct mfs_job job;
    struct mfs_agent *agent;
    uint32_t node;
    uint64_t sid;
    int64_t until;
    struct mfs_table *table; /* the job's, while it runs */
    int rc;
    struct mfs_timer *again; /* the next try; NULL: one is under way */
    struct mfs_agent_session *next;
};

static void remove_session(struct mfs_agent_session *s)
{
    struct mfs_agent_session **at = &s->agent->sessions;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free(s);
}

static int end_at(struct mfs_store *store, uint32_t part, uint64_t sid)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_args args;
    struct mfs_cmd cmd;
    int rc;

    mfs_key_ino(key, 'Z', sid);
    mfs_args_init(&args, "DEL");
    mfs_args_bin(&args, key, sizeof key);
    cmd = mfs_args_cmd(&args, part);
    rc = mfs_store_exec(store, &cmd, 1);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

static void run(struct mfs_job *job)
{
    struct mfs_agent_session *s = (struct mfs_agent_session *)job;
    struct mfs_store_opts opts = {.node = s->node, .io_timeout = TRY};
    uint32_t part = (uint32_t)(s->sid % s->table->nparts);
    struct mfs_store *store;

    s->rc = mfs_store_create(&store, s->table, &opts); /* takes the table over */
    s->table = NULL;
    if (s->rc)
        return;
    s->rc = end_at(store, part, s->sid);
    mfs_store_destroy(store);
}

static void try_once(void *arg);

static void try_again(struct mfs_agent_session *s)
{
    struct mfs_agent *a = s->agent;

    if (a->phase != MFS_AGENT_ENDED && mfs_clock_mono() < s->until)
        s->again = mfs_loop_timer(a->loop, AGAIN, 0, try_once, s);
    if (s->again)
        return;
    mfs_warn(AREA, "can't end session %016" PRIx64 ", it ends by itself: %s", s->sid,
             strerror(-s->rc));
    remove_session(s);
}

static void done(struct mfs_job *job)
{
    struct mfs_agent_session *s = (struct mfs_agent_session *)job;

    if (s->rc)
        try_again(s);
    else
        remove_session(s);
}

static void try_once(void *arg)
{
    struct mfs_agent_session *s = arg;
    int rc;

    s->again = NULL;
    s->job = (struct mfs_job){run, done, NULL};
    s->table = mfs_table_dup(s->agent->table);
    rc = s->table ? mfs_job_threads_run(s->agent->job_threads, "session", &s->job) : -ENOMEM;
    if (!rc)
        return; /* it is the job's now */
    s->rc = rc;
    free(s->table);
    try_again(s);
}

void mfs_agent_end_session(struct mfs_agent *a, const char *session)
{
    struct mfs_agent_session *s;
    char raw[8];

    if (!a->table || strlen(session) != 2 * sizeof raw || mfs_text_unhex(session, raw, sizeof raw))
        return;
    s = calloc(1, sizeof *s);
    if (!s)
        return;
    s->agent = a;
    s->node = a->opts.node;
    s->sid = mfs_get_be64(raw);
    s->until = mfs_clock_mono() + LIFE;
    s->next = a->sessions;
    a->sessions = s;
    try_once(s);
}

void mfs_agent_sessions_free(struct mfs_agent *a)
{
    while (a->sessions) {
        mfs_timer_cancel(a->sessions->again);
        remove_session(a->sessions);
    }
}
