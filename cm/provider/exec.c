/* The exec provider: nodes are started by a command of the operator's, which runs the lm there in
 * whatever way: in a network namespace, by ssh, as a job step of a scheduler. The command is the
 * shell's, with these filled in:
 *
 *   {lm}       the Local Manager's whole command line, quoted for the shell
 *   {node}     the node's index, {name} its name, {address} its address
 *
 * It must stay until the lm has ended, as its end is taken for that. Nodes see the state directory
 * at the same path: the deployment's secret is there. */
#include "cm/provider/options.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cm/provider/children.h"
#include "cm/provider/run.h"

#define STOP_TIME (25 * MFS_SEC) /* for the command of --exec-stop */

static_assert(STOP_TIME < MFS_RELEASE_TIME, "the provider says first what is wrong");

struct exec {
    const struct mfs_provider_context *context;
    struct mfs_notices *notices;
    struct mfs_children *children;
    struct stop *stops; /* under way */
};

/* A command that gives a node back. */
struct stop {
    struct exec *of;
    uint32_t node;
    struct mfs_run *run;
    struct stop *next;
};

const struct mfs_conf_option mfs_exec_options[] = {
    {"exec-start", MFS_CONF_STRING, "COMMAND", NULL, 1, 511,
     "with --provider exec: runs a node's {lm} on {node}, {name}, {address}, as long as it lives"},
    {"exec-stop", MFS_CONF_STRING, "COMMAND", NULL, 1, 511,
     "likewise: gives the node back after its lm has ended"},
    {0}};

static int check(const struct mfs_conf *conf, struct mfs_err *err)
{
    if (!mfs_conf_str(conf, "exec-start"))
        return mfs_err_set(
            err, -EINVAL,
            "provider: exec needs --exec-start, the command that runs {lm} on a node");
    return 0;
}

/* ---- the command line ------------------------------------------------------------------------ */

/* Appends what stands for the mark at the beginning of *at and moves on behind it; any other
 * character stands for itself. */
static int append_next(struct mfs_buf *out, const char **at, const struct mfs_provider_node *node,
                       const struct mfs_lm_command *lm)
{
    static const char *const marks[] = {"{lm}", "{node}", "{name}", "{address}"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (strncmp(*at, marks[i], strlen(marks[i])))
            continue;
        *at += strlen(marks[i]);
        switch (i) {
        case 0:
            return mfs_provider_quote(lm, out);
        case 1:
            return mfs_buf_printf(out, "%u", node->slot);
        case 2:
            return mfs_buf_printf(out, "%s", node->name);
        default:
            return mfs_buf_printf(out, "%s", node->address);
        }
    }
    return mfs_buf_printf(out, "%c", *(*at)++);
}

static int fill_in(const struct exec *e, const struct mfs_provider_node *node, const char *command,
                   struct mfs_buf *out)
{
    struct mfs_lm_command lm;
    int rc = mfs_provider_command(e->context, node, &lm);

    while (rc >= 0 && *command)
        rc = append_next(out, &command, node, &lm);
    if (rc >= 0)
        rc = mfs_buf_append(out, "", 1);
    return rc < 0 ? rc : 0;
}

/* ---- starting -------------------------------------------------------------------------------- */

static int start(const struct exec *e, const struct mfs_provider_node *node, struct mfs_err *err)
{
    const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    struct mfs_buf line;
    int rc;

    mfs_buf_init(&line);
    rc = fill_in(e, node, mfs_provider_option(e->context, "exec-start"), &line);
    if (rc) {
        mfs_err_set(err, rc, "%s", strerror(-rc));
    } else {
        argv[2] = mfs_buf_data(&line);
        rc = mfs_children_start(e->children, node, argv, err);
    }
    mfs_buf_fini(&line);
    return rc;
}

static int request(void *state, const struct mfs_provider_node *n, uint32_t count,
                   struct mfs_err *err)
{
    const struct exec *e = state;

    for (uint32_t i = 0; i < count; i++)
        if (start(e, &n[i], err))
            mfs_notices_failed(e->notices, n[i].id, err);
    return 0;
}

static enum mfs_provided adopt(void *state, const struct mfs_provider_node *n,
                               char what[MFS_PROVIDER_WHAT_MAX])
{
    const struct exec *e = state;

    return mfs_children_adopt(e->children, n, what) ? MFS_PROVIDED_STARTED : MFS_PROVIDED_NONE;
}

static int pass_signal(void *state, uint32_t node, int signo)
{
    return mfs_children_signal(((struct exec *)state)->children, node, signo);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void unlist(struct stop *s)
{
    struct stop **at = &s->of->stops;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free(s);
}

static void stopped(void *arg, const struct mfs_err *why, const char *output)
{
    struct stop *s = arg;
    struct mfs_err err;

    (void)output;
    if (why)
        mfs_err_set(&err, why->code, "the stop command %s", why->msg);
    mfs_notices_released(s->of->notices, s->node, why ? &err : NULL);
    unlist(s);
}

static int run_stop(struct exec *e, const struct mfs_provider_node *n, const char *command,
                    struct mfs_err *err)
{
    const struct mfs_run_options options = {.limit = STOP_TIME};
    const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    struct stop *s = calloc(1, sizeof *s);
    struct mfs_buf line;
    int rc = s ? 0 : -ENOMEM;

    mfs_buf_init(&line);
    if (!rc)
        rc = fill_in(e, n, command, &line);
    if (rc) {
        mfs_err_set(err, rc, "the stop command: %s", strerror(-rc));
        free(s);
    } else {
        *s = (struct stop){.of = e, .node = n->id, .next = e->stops};
        e->stops = s;
        argv[2] = mfs_buf_data(&line);
        s->run = mfs_run_begin(e->context, argv, &options, stopped, s, err);
        rc = s->run ? 0 : err->code;
        if (rc)
            unlist(s);
    }
    mfs_buf_fini(&line);
    return rc;
}

static int release(void *state, const struct mfs_provider_node *n)
{
    struct exec *e = state;
    const char *command = mfs_provider_option(e->context, "exec-stop");
    struct mfs_err err;

    mfs_children_drop(e->children, n->id);
    if (!command)
        return 1;
    if (run_stop(e, n, command, &err))
        mfs_notices_released(e->notices, n->id, &err);
    return 0;
}

/* ---- the provider ---------------------------------------------------------------------------- */

static void close_exec(void *state)
{
    struct exec *e = state;

    while (e->stops) {
        mfs_run_drop(e->stops->run);
        unlist(e->stops);
    }
    mfs_children_destroy(e->children);
    mfs_notices_destroy(e->notices);
    free(e);
}

static int open_exec(const struct mfs_provider_context *c, void **state, struct mfs_err *err)
{
    struct exec *e = calloc(1, sizeof *e);

    if (!e)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    e->context = c;
    e->notices = mfs_notices_create(c);
    e->children = mfs_children_create(c, e->notices);
    if (!e->notices || !e->children) {
        close_exec(e);
        return mfs_err_set(err, -ENOMEM, "out of memory");
    }
    *state = e;
    return 0;
}

static const struct mfs_provider_traits traits = {.name = "exec"};

const struct mfs_provider mfs_provider_exec = {.traits = &traits,
                                               .options = mfs_exec_options,
                                               .check = check,
                                               .open = open_exec,
                                               .close = close_exec,
                                               .adopt = adopt,
                                               .request = request,
                                               .signal = pass_signal,
                                               .release = release};
