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
 * With --ship another ssh carries the programs over before (ship.c), and one more removes them
 * when the node is given back.
 *
 * The node with the index N is at place N (hosts.h); of it nothing has to be noted but the
 * directory of what was shipped. The secret goes over ssh's standard input. ssh is told to ask
 * nothing; all else is as the user's configuration has it, host keys above all. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cm/provider/notices.h"
#include "cm/provider/options.h"
#include "cm/provider/run.h"
#include "cm/provider/ssh/impl.h"

#define CONNECT_SECONDS 10
#define SHIP_TIME       (60 * MFS_SEC)
#define REMOVE_TIME     (25 * MFS_SEC)
#define START_TIME      (45 * MFS_SEC) /* for the lm to join or to give up (20 s), too */

static_assert(REMOVE_TIME < MFS_RELEASE_TIME, "the provider says first what is wrong");

struct ssh {
    const struct mfs_provider_context *context;
    struct mfs_notices *notices;
    struct call *first;               /* under way */
    bool failed[MFS_SSH_PLACES_MOST]; /* by place: the last start there did */
};

/* An ssh that runs. */
struct call {
    struct ssh *of;
    uint32_t node, place;
    bool dropped; /* it was killed, as the node is given back */
    struct mfs_host host;
    char dir[MFS_PROVIDER_HANDLE_MAX]; /* of what is shipped; "": nothing is */
    bool whole;                        /* all of it is there */
    char lm[PATH_MAX];                 /* there */
    struct mfs_buf line;               /* for it */
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
    mfs_buf_fini(&c->line);
    free(c);
}

static const char *ssh_command(const struct ssh *s)
{
    return mfs_provider_option(s->context, "ssh-command");
}

/* Runs a command on the host. 0 or a negative errno with the reason. */
static int run(struct call *c, const char *line, const struct mfs_run_options *o,
               mfs_run_done *done, struct mfs_err *err)
{
    char command[1024];
    const char *argv[] = {"/bin/sh", "-c", command, c->host.name /* $0 */, line, NULL};
    int rc = mfs_ssh_command(ssh_command(c->of), CONNECT_SECONDS, command, sizeof command);

    if (rc)
        return mfs_err_set(err, rc, "ssh-command: %s", strerror(-rc));
    c->run = mfs_run_begin(c->of->context, argv, o, done, c, err);
    return c->run ? 0 : err->code;
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void removed(void *arg, const struct mfs_err *why, const char *output)
{
    struct call *c = arg;
    struct mfs_err err;

    if (why) {
        mfs_ssh_explain(c->host.name, "rm", why, output, &err);
        mfs_err_prefix(&err, "%s is left", c->dir);
    }
    mfs_notices_released(c->of->notices, c->node, why ? &err : NULL);
    unlist(c);
}

/* Gives the node back, with what was shipped to it. */
static void remove_shipped(struct call *c)
{
    const struct mfs_run_options options = {.limit = REMOVE_TIME, .read = true};
    char line[2 * MFS_PROVIDER_HANDLE_MAX + 40];
    struct mfs_err err;

    if (c->dir[0]) {
        /* What was cut off may still write there for a moment. */
        snprintf(line, sizeof line, "rm -rf %s || { sleep 1; rm -rf %s; }", c->dir, c->dir);
        if (!run(c, line, &options, removed, &err))
            return;
        mfs_notices_released(c->of->notices, c->node, &err);
    } else {
        mfs_notices_released(c->of->notices, c->node, NULL);
    }
    unlist(c);
}

/* ---- starting -------------------------------------------------------------------------------- */

static void fail(struct call *c, const struct mfs_err *why)
{
    c->of->failed[c->place] = true;
    mfs_notices_failed(c->of->notices, c->node, why);
    unlist(c);
}

static void ended(void *arg, const struct mfs_err *why, const char *output)
{
    struct call *c = arg;
    char what[MFS_PROVIDER_WHAT_MAX];
    struct mfs_err err;

    if (output[0])
        mfs_info("ssh", "node %u on %s: %s", c->node, c->host.name, output);
    if (c->dropped) {
        remove_shipped(c);
    } else if (why) {
        mfs_ssh_explain(c->host.name, c->dir[0] ? c->dir : c->lm, why, output, &err);
        fail(c, &err);
    } else {
        snprintf(what, sizeof what, "lm on %.48s", c->host.name);
        c->of->failed[c->place] = false;
        mfs_notices_ready(c->of->notices, c->node, what);
        unlist(c);
    }
}

static int run_lm(struct call *c, struct mfs_err *err)
{
    const struct mfs_run_options options = {.limit = START_TIME, .read = true, .secret = true};
    const char *lm = mfs_buf_data(&c->line);
    struct mfs_buf line;
    int rc;

    mfs_buf_init(&line);
    rc = c->dir[0] ? mfs_ssh_put_environment(c->dir, &line) : 0;
    if (!rc && c->dir[0])
        rc = mfs_buf_append(&line, c->dir, strlen(c->dir));
    if (!rc && c->dir[0])
        rc = mfs_buf_append(&line, "/", 1);
    if (!rc)
        rc = mfs_buf_append(&line, lm, strlen(lm) + 1);
    rc = rc ? mfs_err_set(err, rc, "%s: %s", c->host.name, strerror(-rc))
            : run(c, mfs_buf_data(&line), &options, ended, err);
    mfs_buf_fini(&line);
    return rc;
}

static void note(const struct call *c, const char *before)
{
    const struct mfs_provider_context *x = c->of->context;
    char handle[MFS_PROVIDER_HANDLE_MAX];
    int rc = mfs_text_format(handle, sizeof handle, "%s%s", before, c->dir);

    rc = rc ? rc : x->calls->note(x->arg, c->node, handle);
    if (rc)
        mfs_warn("ssh", "%s of node %u could not be noted", c->dir, c->node);
}

/* After a failure cm gives the node back, and with it what is noted of it. */
static void shipped(void *arg, const struct mfs_err *why, const char *output)
{
    char told[MFS_PROVIDER_HANDLE_MAX];
    struct call *c = arg;
    struct mfs_err err;

    if (c->dropped) {
        remove_shipped(c);
    } else if (why) {
        mfs_ssh_explain(c->host.name, "tar", why, output, &err);
        fail(c, &err);
    } else if (mfs_ssh_shipped(output, told, sizeof told) || strcmp(told, c->dir) != 0) {
        mfs_err_set(&err, -EPROTO, "%s: no directory for the programs was told: %.200s",
                    c->host.name, output);
        fail(c, &err);
    } else {
        c->whole = true;
        note(c, "");
        if (run_lm(c, &err))
            fail(c, &err);
    }
}

static int ship(struct call *c, struct mfs_err *err)
{
    const struct mfs_run_options options = {.limit = SHIP_TIME, .read = true};
    struct mfs_ssh_shipping s;
    char command[1024];
    int rc = mfs_ssh_command(ssh_command(c->of), CONNECT_SECONDS, command, sizeof command);

    if (!rc && !c->dir[0])
        rc = mfs_ssh_name_place(c->dir, sizeof c->dir);
    if (!rc)
        rc = mfs_ssh_carry(command, c->host.name, c->dir, &s);
    if (rc)
        return mfs_err_set(err, rc, "%s: %s", c->host.name, strerror(-rc));
    note(c, MFS_SSH_BEGUN);
    c->run = mfs_run_begin(c->of->context, s.argv, &options, shipped, c, err);
    return c->run ? 0 : err->code;
}

/* The lm's command line for the shell there, with a NUL. What is shipped has its directory put
 * before. */
static int make_line(struct call *c, const struct mfs_provider_node *n)
{
    const struct mfs_provider_context *x = c->of->context;
    const char *dir = mfs_provider_option(x, "programs");
    struct mfs_lm_command lm;
    int rc = mfs_provider_command(x, n, &lm);

    if (!rc && mfs_ssh_ships(x->option, x->noptions))
        rc = mfs_text_copy(lm.lm, sizeof lm.lm, "lm");
    else if (!rc && dir)
        rc = mfs_text_format(lm.lm, sizeof lm.lm, "%s/lm", dir);
    if (!rc)
        rc = mfs_text_copy(c->lm, sizeof c->lm, lm.lm);
    if (!rc)
        rc = mfs_provider_quote(&lm, &c->line);
    return rc ? rc : mfs_buf_append(&c->line, "", 1);
}

static struct call *list(struct ssh *s, const struct mfs_provider_node *n, struct mfs_err *err)
{
    struct call *c = calloc(1, sizeof *c);

    if (!c) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    *c = (struct call){.of = s, .node = n->id, .place = n->slot, .next = s->first};
    s->first = c;
    mfs_buf_init(&c->line);
    c->whole = mfs_ssh_is_shipped(n->handle);
    if (c->whole)
        mfs_text_copy(c->dir, sizeof c->dir, n->handle);
    else if (mfs_ssh_is_begun(n->handle))
        mfs_text_copy(c->dir, sizeof c->dir, n->handle + strlen(MFS_SSH_BEGUN));
    if (!mfs_ssh_host(s->context->option, s->context->noptions, n->slot, &c->host, err))
        return c;
    unlist(c);
    return NULL;
}

static int start(struct ssh *s, const struct mfs_provider_node *n, struct mfs_err *err)
{
    bool ships = mfs_ssh_ships(s->context->option, s->context->noptions);
    struct call *c = list(s, n, err);
    int rc;

    if (!c)
        return err->code;
    rc = make_line(c, n);
    if (rc)
        mfs_err_set(err, rc, "%s: %s", c->host.name, strerror(-rc));
    else
        rc = ships && !c->whole ? ship(c, err) : run_lm(c, err);
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

static bool avoids(const void *state, uint32_t slot)
{
    return slot < MFS_SSH_PLACES_MOST && ((const struct ssh *)state)->failed[slot];
}

static int pass_signal(void *state, uint32_t node, int signo)
{
    (void)signo;
    return find(state, node) ? -ENOSYS : -ESRCH;
}

/* An lm that was about to start finds no cm that takes it, and ends. */
static int release(void *state, const struct mfs_provider_node *n)
{
    struct call *c = find(state, n->id);
    struct mfs_err err;

    if (c) {
        c->dropped = true;
        mfs_run_kill(c->run);
        return 0;
    }
    if (!mfs_ssh_is_shipped(n->handle) && !mfs_ssh_is_begun(n->handle))
        return 1;
    c = list(state, n, &err);
    if (c)
        remove_shipped(c);
    else
        mfs_notices_released(((struct ssh *)state)->notices, n->id, &err);
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
                                              .avoids = avoids,
                                              .request = request,
                                              .signal = pass_signal,
                                              .release = release};
