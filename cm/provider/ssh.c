/* The ssh provider: nodes are on the machines that --hosts names. A connection by ssh lasts only
 * until the lm there has gone into the background and cm has taken it; from then on the two have
 * their own connection, and nothing of ssh is left that could break.
 *
 *              ssh HOST lm            it ends with 0, as the lm has joined
 *     none -------------------> runs --------------------------------------> ready
 *      ^                        |  | release: it is killed
 *      +------------------------+  +----------------------------------------> released
 *        it ends otherwise: failed
 *
 * The node with the index N is at place N (hosts.h), so nothing has to be noted. The secret goes
 * over ssh's standard input. ssh is told to ask nothing; all else is as the user's configuration
 * has it, host keys above all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cm/provider/notices.h"
#include "cm/provider/options.h"
#include "cm/provider/run.h"
#include "cm/provider/ssh_impl.h"

#define CONNECT_SECONDS 10
#define START_TIME      (45 * MFS_SEC) /* for the lm to join or to give up (20 s), too */

struct ssh {
    const struct mfs_provider_context *context;
    struct mfs_notices *notices;
    struct call *first; /* under way */
};

/* An ssh that runs. */
struct call {
    struct ssh *of;
    uint32_t node;
    bool dropped; /* it was killed, as the node is given back */
    struct mfs_host host;
    char lm[PATH_MAX]; /* there */
    struct mfs_run *run;
    struct call *next;
};

static struct call *find(const struct ssh *s, uint32_t node)
{
    struct call *c = s->first;

    while (c && c->node != node)
        c = c->next;
    return c;
}

static void unlist(struct call *c)
{
    struct call **at = &c->of->first;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

/* ---- starting -------------------------------------------------------------------------------- */

static void ended(void *arg, const struct mfs_err *why, const char *output)
{
    struct call *c = arg;
    char what[MFS_PROVIDER_WHAT_MAX];
    struct mfs_err err;

    if (output[0])
        mfs_info("ssh", "node %u on %s: %s", c->node, c->host.name, output);
    if (c->dropped) {
        mfs_notices_released(c->of->notices, c->node, NULL);
    } else if (why) {
        mfs_ssh_explain(c->host.name, c->lm, why, output, &err);
        mfs_notices_failed(c->of->notices, c->node, &err);
    } else {
        snprintf(what, sizeof what, "lm on %.48s", c->host.name);
        mfs_notices_ready(c->of->notices, c->node, what);
    }
    unlist(c);
}

/* The lm's command line for the shell there, with a NUL. */
static int make_line(struct call *c, const struct mfs_provider_node *n, struct mfs_buf *out)
{
    const char *dir = mfs_provider_option(c->of->context, "programs");
    struct mfs_lm_command lm;
    int rc = mfs_provider_command(c->of->context, n, &lm);

    if (!rc && dir)
        rc = mfs_text_format(lm.lm, sizeof lm.lm, "%s/lm", dir);
    if (!rc)
        rc = mfs_text_copy(c->lm, sizeof c->lm, lm.lm);
    if (!rc)
        rc = mfs_provider_quote(&lm, out);
    return rc ? rc : mfs_buf_append(out, "", 1);
}

static int run(struct call *c, const char *line, struct mfs_err *err)
{
    const struct mfs_run_options options = {.limit = START_TIME, .read = true, .secret = true};
    char command[1024];
    const char *argv[] = {"/bin/sh", "-c", command, c->host.name /* $0 */, line, NULL};
    int rc = mfs_ssh_command(mfs_provider_option(c->of->context, "ssh-command"), CONNECT_SECONDS,
                             command, sizeof command);

    if (rc)
        return mfs_err_set(err, rc, "ssh-command: %s", strerror(-rc));
    c->run = mfs_run_begin(c->of->context, argv, &options, ended, c, err);
    return c->run ? 0 : err->code;
}

static int start(struct ssh *s, const struct mfs_provider_node *n, struct mfs_err *err)
{
    const struct mfs_provider_context *x = s->context;
    struct call *c = calloc(1, sizeof *c);
    struct mfs_buf line;
    int rc;

    if (!c)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    *c = (struct call){.of = s, .node = n->id, .next = s->first};
    s->first = c;
    mfs_buf_init(&line);
    rc = mfs_ssh_host(x->option, x->noptions, n->slot, &c->host, err);
    if (!rc) {
        rc = make_line(c, n, &line);
        rc = rc ? mfs_err_set(err, rc, "%s: %s", c->host.name, strerror(-rc))
                : run(c, mfs_buf_data(&line), err);
    }
    mfs_buf_fini(&line);
    if (rc)
        unlist(c);
    return rc;
}

static int request(void *state, const struct mfs_provider_node *n, uint32_t count,
                   struct mfs_err *err)
{
    struct ssh *s = state;

    for (uint32_t i = 0; i < count; i++)
        if (start(s, &n[i], err))
            mfs_notices_failed(s->notices, n[i].id, err);
    return 0;
}

/* Its lm finds the new cm by itself, also where the ssh of an earlier one is under way. */
static enum mfs_provided adopt(void *state, const struct mfs_provider_node *n,
                               char what[MFS_PROVIDER_WHAT_MAX])
{
    (void)state;
    (void)n;
    what[0] = '\0';
    return MFS_PROVIDED_NONE;
}

static int pass_signal(void *state, uint32_t node, int signo)
{
    (void)signo;
    return find(state, node) ? -ENOSYS : -ESRCH;
}

/* ---- giving back ----------------------------------------------------------------------------- */

/* An lm that was about to start finds no cm that takes it, and ends. */
static int release(void *state, const struct mfs_provider_node *n)
{
    struct call *c = find(state, n->id);

    if (!c)
        return 1;
    c->dropped = true;
    mfs_run_kill(c->run);
    return 0;
}

/* ---- the provider ---------------------------------------------------------------------------- */

static void close_ssh(void *state)
{
    struct ssh *s = state;

    while (s->first) {
        mfs_run_drop(s->first->run);
        unlist(s->first);
    }
    mfs_notices_destroy(s->notices);
    free(s);
}

static int open_ssh(const struct mfs_provider_context *c, void **state, struct mfs_err *err)
{
    struct ssh *s = calloc(1, sizeof *s);

    if (!s)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    s->context = c;
    s->notices = mfs_notices_create(c);
    if (!s->notices) {
        close_ssh(s);
        return mfs_err_set(err, -ENOMEM, "out of memory");
    }
    *state = s;
    return 0;
}

static const struct mfs_provider_traits traits = {
    .name = "ssh", .detached = true, .own_machines = true};

const struct mfs_provider mfs_provider_ssh = {.traits = &traits,
                                              .options = mfs_ssh_options,
                                              .is_here = mfs_ssh_is_here,
                                              .environment = mfs_ssh_environment,
                                              .check = mfs_ssh_check,
                                              .place = mfs_ssh_place,
                                              .probe = mfs_ssh_probe,
                                              .explain = mfs_ssh_explain_probe,
                                              .open = open_ssh,
                                              .close = close_ssh,
                                              .adopt = adopt,
                                              .request = request,
                                              .signal = pass_signal,
                                              .release = release};
