/* `cm top`: a live screen; without a terminal, or with --once, one sample as text or JSON. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "cm/cli/top/sampler.h"
#include "cm/cli/top/screen.h"
#include "cm/cli/verbs.h"
#include "show/paint.h"

#define TICK_MS     1000 /* the clock on the screen, and a look whether a signal has come */
#define CHECK_LIMIT (10 * MFS_SEC)
#define EXIT_SIGNAL 128 /* and its number: as a shell says it */

static volatile sig_atomic_t ended_by;

static void on_end(int signo)
{
    ended_by = signo;
}

static int show_once(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_top_sample s = {0};
    struct mfs_buf b;
    int rc = mfs_top_sample_once(&call->paths, &s, err);

    if (rc)
        return rc;
    mfs_buf_init(&b);
    rc = mfs_conf_flag(call->conf, "json") ? mfs_render_json(&mfs_top_schema, &s, &b)
                                           : mfs_top_render(&s, &b);
    rc = mfs_render_print(rc, &b, err);
    mfs_top_clear(&s);
    return rc;
}

/* All that has come; while it is paused samples are left where they are. */
static void take(struct mfs_top_sampler *t, struct mfs_top_sample *s, struct mfs_top_view *v)
{
    struct mfs_err why;

    if (v->paused)
        return;
    mfs_top_sampler_take(t, s, &why);
    mfs_text_copy(v->notice, sizeof v->notice, why.code ? why.msg : "");
}

static int serve(struct mfs_top_sampler *t, int wake)
{
    struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {wake, POLLIN, 0}};
    struct mfs_top_sample s = {0};
    struct mfs_top_view v = {0};
    enum mfs_top_key key = MFS_TOP_KEY_NONE;
    char bytes[64];

    while (!ended_by && key != MFS_TOP_KEY_QUIT) {
        mfs_top_screen_draw(&s, &v);
        poll(fds, 2, TICK_MS);
        if (fds[0].revents & (POLLHUP | POLLERR))
            break; /* the terminal has gone */
        while (read(wake, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
            ;
        do
            key = mfs_top_screen_key(&s, &v);
        while (key != MFS_TOP_KEY_NONE && key != MFS_TOP_KEY_QUIT);
        take(t, &s, &v);
    }
    mfs_top_clear(&s);
    return ended_by ? EXIT_SIGNAL + ended_by : 0;
}

static void hear_signals(void)
{
    static const int ends[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    struct sigaction end = {.sa_handler = on_end};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigaction(ends[i], &end, NULL);
}

/* The terminal is taken before there is another thread, which its locale would change under. */
static int run_screen(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_top_sampler *t;
    int fds[2], rc;

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
        return mfs_err_set(err, -errno, "pipe: %s", strerror(errno));
    rc = mfs_paint_open(err);
    if (rc) {
        close(fds[0]);
        close(fds[1]);
        return rc;
    }
    hear_signals();
    t = mfs_top_sampler_start(&call->paths, fds[1]); /* may write to it until the process ends */
    rc = t ? serve(t, fds[0]) : mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_paint_close();
    if (t && !mfs_top_sampler_end(t))
        _exit(rc);
    return rc;
}

/* A wrong name, say, is told on the terminal as it is. */
static int check(const struct mfs_paths *p, struct mfs_err *err)
{
    struct mfs_status s;
    int rc = mfs_client_call(p, MFS_MSG_STATUS, NULL, CHECK_LIMIT, &s, err);

    if (!rc)
        mfs_schema_clear(&mfs_status_schema, &s);
    return rc;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    int rc;

    if (mfs_conf_flag(call->conf, "once") || mfs_conf_flag(call->conf, "json") || !mfs_paint_can())
        return show_once(call, err);
    rc = check(&call->paths, err);
    return rc ? rc : run_screen(call, err);
}

static const struct mfs_conf_option options[] = {
    {"once", MFS_CONF_FLAG, NULL, NULL, 0, 0, "one sample as text, as where there is no terminal"},
    {"json", MFS_CONF_FLAG, NULL, NULL, 0, 0, "one sample as JSON"},
    {0}};

const struct mfs_verb mfs_cm_top = {.name = "top",
                                    .summary = "watch nodes, moves and events on the terminal",
                                    .options = MFS_OPTIONS(options, mfs_deployment_options),
                                    .run = run};
