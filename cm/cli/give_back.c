/* The state says that it is to end: so its cm gives back each node, also one that it finds by its
 * name alone, and ends. */
#include "cm/cli/give_back.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cm/ask/client.h"
#include "cm/life/shutdown.h"
#include "cm/provider/provider.h"
#include "cm/state/state.h"

#define TIME        (MFS_STOP_CLIENTS_TIME + MFS_STOP_TIME + MFS_RELEASE_TIME + 10 * MFS_SEC)
#define STEP        (20 * MFS_MSEC)
#define FAILURE_MAX 65536

/* False: there is none that may have nodes elsewhere, or the state can't be changed. */
static bool is_to_end(const struct mfs_paths *p)
{
    const struct mfs_provider *provider;
    struct mfs_cm_state st;
    struct mfs_err err;
    bool is;

    if (mfs_cm_state_load(&st, p->state, &err))
        return false;
    provider = mfs_provider_find(st.provider);
    is = provider && !provider->traits->sees_processes && st.phase[0] &&
         strcmp(st.phase, MFS_PHASE_RUNNING) != 0;
    if (is) {
        mfs_text_copy(st.phase, sizeof st.phase, MFS_PHASE_STOPPING);
        is = !mfs_cm_state_save(&st, p->state);
    }
    mfs_cm_state_clear(&st);
    return is;
}

static void say_left(const struct mfs_paths *p)
{
    struct mfs_buf b;

    mfs_buf_init(&b);
    if (!mfs_file_read(p->failure, FAILURE_MAX, &b) && !mfs_buf_append(&b, "", 1))
        fputs(mfs_buf_data(&b), stderr);
    mfs_buf_fini(&b);
}

void mfs_give_back(const struct mfs_paths *p)
{
    int64_t until = mfs_clock_mono() + TIME;
    struct mfs_proc daemon = {0};
    struct mfs_err err;

    /* One that has ended by itself has given back what it had, and says why. */
    if (!access(p->failure, F_OK) || !is_to_end(p))
        return;
    if (mfs_client_start_daemon(p, &daemon, &err)) {
        fprintf(stderr, "cm: nodes of a start that was killed are not given back: %s\n", err.msg);
        return;
    }
    mfs_file_write(p->failure, "", 0, 0600); /* to which it adds */
    while (mfs_proc_alive(&daemon) && mfs_clock_mono() < until)
        mfs_clock_sleep(STEP);
    mfs_proc_end(&daemon, 0);
    say_left(p);
}
