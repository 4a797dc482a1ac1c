/* Copies files and trees into a deployment and out of it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/stage_nodes.h"
#include "cli/verbs.h"
#include "memefs/memefs.h"
#include "stage/stage.h"

static atomic_bool stop;

static void interrupted(int signal)
{
    (void)signal;
    stop = true;
}

/* A second one ends the process at once. Programs on other nodes end with it. */
static void catch_signals(void)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = interrupted, .sa_flags = (int)SA_RESETHAND};

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

/* ---- the result ------------------------------------------------------------------------------ */

static void print_parts(const struct mfs_stage_result *r)
{
    printf(", \"nodes\": [");
    for (uint32_t i = 0; i < r->nparts; i++) {
        const struct mfs_stage_part *p = &r->part[i];

        printf("%s{\"node\": ", i ? ", " : "");
        mfs_verb_json_text(p->node);
        printf(", \"files\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"failed\": %" PRIu64
               ", \"whole\": %s}",
               p->files, p->bytes, p->failed, p->whole ? "true" : "false");
    }
    printf("]");
}

static void print_json(const struct mfs_stage_result *r)
{
    const struct mfs_stage_counts *c = &r->counts;

    printf("{\"files\": %" PRIu64 ", \"directories\": %" PRIu64 ", \"others\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"skipped\": %" PRIu64 ", \"skipped_bytes\": %" PRIu64
           ", \"left_out\": %" PRIu64 ", \"failed\": %" PRIu64
           ", \"full\": %s, \"stopped\": %s, \"duration_ms\": %.0f, "
           "\"rate\": %.0f, \"errors\": [",
           c->files, c->directories, c->others, c->bytes, c->skipped, c->skipped_bytes, c->left_out,
           c->failed, r->full ? "true" : "false", r->stopped ? "true" : "false", r->seconds * 1e3,
           r->seconds > 0 ? (double)c->bytes / r->seconds : 0);
    for (uint32_t i = 0; i < r->nfailures; i++) {
        printf("%s{\"path\": ", i ? ", " : "");
        mfs_verb_json_text(r->failure[i].path);
        printf(", \"errno\": %d, \"error\": ", -r->failure[i].code);
        mfs_verb_json_text(r->failure[i].why);
        printf("}");
    }
    printf("]");
    if (r->nparts)
        print_parts(r);
    printf("}\n");
}

static void print_text(const struct mfs_stage_result *r, bool to_server)
{
    const struct mfs_stage_counts *c = &r->counts;

    printf("%s, %s in %.1f s, %s/s", MFS_TEXT_COUNT(c->files, "file"), MFS_TEXT_BYTES(c->bytes),
           r->seconds,
           MFS_TEXT_BYTES(r->seconds > 0 ? (uint64_t)((double)c->bytes / r->seconds) : 0));
    if (r->nparts)
        printf(" on %s", MFS_TEXT_COUNT(r->nparts, "node"));
    if (c->skipped)
        printf("; %" PRIu64 " with %s there already", c->skipped, MFS_TEXT_BYTES(c->skipped_bytes));
    printf("\n");
    if (c->left_out)
        printf("%" PRIu64 " left out: %sunfinished copies of earlier calls (.memefs-stage.*)\n",
               c->left_out, to_server ? "empty directories, which a server can't have, or " : "");
}

static int judge(const struct mfs_stage_result *r, bool in, const char *target, struct mfs_err *err)
{
    if (r->stopped)
        return mfs_err_set(err, -EINTR, "interrupted; the same call goes on from here");
    if (r->full && in)
        return mfs_err_set(err, -ENOSPC,
                           "%s is full: \"cm scale +1\" makes room, then the same call goes on "
                           "from here",
                           target);
    if (r->full)
        return mfs_err_set(err, -ENOSPC,
                           "%s: no space left: make room there, then the same call "
                           "goes on from here",
                           target);
    if (r->differs)
        return mfs_err_set(err, -EIO,
                           "the nodes have not found the same sources, see above, so that what is "
                           "missing is not known");
    return r->counts.failed ? mfs_err_set(err, -EIO, "%s failed; all else is there",
                                          MFS_TEXT_COUNT(r->counts.failed, "file"))
                            : 0;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static bool is_url(const char *path)
{
    return strstr(path, "://") != NULL;
}

/* Is the path, or what it is to be made in, in a deployment? */
static bool is_in_deployment(const char *name)
{
    char path[PATH_MAX], text[16], *slash;

    if (is_url(name) || mfs_file_absolute(name, path, sizeof path))
        return false;
    while (access(path, F_OK) < 0 && errno == ENOENT && (slash = strrchr(path, '/'))) {
        slash[slash == path] = '\0';
        if (slash == path)
            break;
    }
    return getxattr(path, MEMEFS_XATTR_LAYOUT, text, sizeof text) >= 0 || errno == ERANGE;
}

static int check(const struct mfs_stage_list *l, const char *target, bool in, bool shared,
                 struct mfs_err *err)
{
    if (shared && is_url(target))
        return mfs_err_set(err, -EINVAL, "%s: servers have no locks, which --shared needs", target);
    if (in && !is_in_deployment(target))
        return mfs_err_set(err, -EINVAL, "%s: not on a MemEFS mount: stage-in copies into one",
                           target);
    for (uint32_t i = 0; i < l->n && !in; i++)
        if (is_url(l->entry[i].from))
            return mfs_err_set(err, -EINVAL, "%s: stage-out copies out of a MemEFS mount",
                               l->entry[i].from);
    for (uint32_t i = 0; i < l->n && !in; i++)
        if (access(l->entry[i].from, F_OK) == 0 && !is_in_deployment(l->entry[i].from))
            return mfs_err_set(err, -EINVAL,
                               "%s: not on a MemEFS mount: stage-out copies out of one",
                               l->entry[i].from);
    return 0;
}

static int make_list(struct mfs_stage_list *l, struct mfs_verb_call *call, struct mfs_err *err)
{
    const char *manifest = mfs_conf_str(call->conf, "manifest");
    bool exact = mfs_conf_flag(call->conf, "no-target-directory");
    int rc = 0;

    for (int i = 0; !rc && i + 1 < call->nargs; i++)
        rc = mfs_stage_list_add(l, call->args[i], NULL);
    if (rc)
        return mfs_err_set(err, rc, "out of memory");
    if (manifest)
        rc = mfs_stage_list_read(l, manifest, err);
    if (rc)
        return rc;
    call->usage = (!l->n && !manifest) || (exact && l->n != 1);
    if (call->usage)
        return mfs_err_set(err, -EINVAL,
                           exact ? "-T is for one SRC" : "SRC or --manifest is missing");
    return 0;
}

/* Other directories are current on other nodes. */
static int make_absolute(struct mfs_stage_list *l, struct mfs_err *err)
{
    char here[PATH_MAX], *whole;

    for (uint32_t i = 0; i < l->n; i++) {
        char **from = &l->entry[i].from;

        if (**from == '/' || is_url(*from))
            continue;
        if (!getcwd(here, sizeof here))
            return mfs_err_set(err, -errno, "the working directory: %s", strerror(errno));
        if (asprintf(&whole, "%s/%s", here, *from) < 0)
            return mfs_err_set(err, -ENOMEM, "out of memory");
        free(*from);
        *from = whole;
    }
    return 0;
}

/* A path of the deployment. */
static const char *path_on_mount(const struct mfs_stage_plan *plan, bool in)
{
    return in ? plan->target : plan->list->n ? plan->list->entry[0].from : "";
}

static int run_on_nodes(struct mfs_verb_call *call, bool in, struct mfs_stage_list *l,
                        struct mfs_stage_plan plan, struct mfs_stage_result *result,
                        struct mfs_err *err)
{
    struct mfs_stage_nodes nodes = {0};
    char target[PATH_MAX];
    int rc = mfs_file_absolute(plan.target, target, sizeof target);

    if (rc)
        return mfs_err_set(err, rc, "%s: %s", plan.target, strerror(-rc));
    plan.target = target;
    rc = make_absolute(l, err);
    if (!rc)
        rc = mfs_stage_nodes_find(&nodes, mfs_conf_str(call->conf, "nodes"),
                                  mfs_conf_str(call->conf, "launch"), path_on_mount(&plan, in),
                                  call->verb->name, err);
    if (!rc)
        rc = mfs_stage_run_on(&nodes, in, &plan, result, err);
    mfs_stage_nodes_fini(&nodes);
    return rc;
}

static int show(struct mfs_verb_call *call, bool in, const char *target,
                const struct mfs_stage_result *result, struct mfs_err *err)
{
    if (mfs_conf_flag(call->conf, "json"))
        print_json(result);
    else
        print_text(result, is_url(target));
    return fflush(stdout) == 0 ? judge(result, in, target, err)
                               : mfs_err_set(err, -errno, "output: %s", strerror(errno));
}

static int stage(struct mfs_verb_call *call, bool in, struct mfs_err *err)
{
    const char *target = call->args[call->nargs - 1];
    bool on_nodes = mfs_conf_str(call->conf, "nodes") || mfs_conf_str(call->conf, "launch");
    struct mfs_stage_list list = {0};
    const struct mfs_stage_plan plan = {.list = &list,
                                        .target = target,
                                        .exact = mfs_conf_flag(call->conf, "no-target-directory"),
                                        .verify = mfs_conf_flag(call->conf, "verify"),
                                        .shared = on_nodes || mfs_conf_flag(call->conf, "shared"),
                                        .threads = (unsigned)mfs_conf_uint(call->conf, "jobs"),
                                        .progress = isatty(STDERR_FILENO) &&
                                                    !mfs_conf_flag(call->conf, "json"),
                                        .stop = &stop};
    struct mfs_stage_result result = {0};
    int rc = make_list(&list, call, err);

    if (!rc)
        rc = check(&list, target, in, plan.shared, err);
    if (!rc) {
        catch_signals();
        rc = on_nodes ? run_on_nodes(call, in, &list, plan, &result, err)
                      : mfs_stage_run(&plan, &result, err);
    }
    if (!rc) {
        rc = show(call, in, target, &result, err);
        mfs_stage_result_fini(&result);
    }
    mfs_stage_list_fini(&list);
    return rc;
}

/* ---- on one of several nodes ----------------------------------------------------------------- */

static int check_in(const struct mfs_stage_plan *plan, struct mfs_err *err)
{
    return check(plan->list, plan->target, true, true, err);
}

static int check_out(const struct mfs_stage_plan *plan, struct mfs_err *err)
{
    return check(plan->list, plan->target, false, true, err);
}

static int run(struct mfs_verb_call *call, bool in, struct mfs_err *err)
{
    bool worker = mfs_conf_flag(call->conf, "worker");

    call->usage = worker ? call->nargs > 0 : call->nargs == 0;
    if (call->usage)
        return mfs_err_set(err, -EINVAL, worker ? "--worker has no arguments" : "DST is missing");
    return worker ? mfs_stage_work(in, STDIN_FILENO, STDOUT_FILENO, in ? check_in : check_out, err)
                  : stage(call, in, err);
}

static int run_in(struct mfs_verb_call *call, struct mfs_err *err)
{
    return run(call, true, err);
}

static int run_out(struct mfs_verb_call *call, struct mfs_err *err)
{
    return run(call, false, err);
}

static const struct mfs_conf_option options[] = {
    {"no-target-directory", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "DST is the copy's own name, not the directory that it comes into"},
    {"T", MFS_CONF_ALIAS, "no-target-directory", NULL, 0, 0, NULL},
    {"manifest", MFS_CONF_STRING, "FILE", NULL, 0, 0,
     "also what FILE lists: lines PATH, SRC<TAB>DST, or of sha256sum"},
    {"verify", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "read back what was written, and compare what is there already"},
    {"shared", MFS_CONF_FLAG, NULL, NULL, 0, 0, "share the work with the same call on other nodes"},
    {"nodes", MFS_CONF_STRING, "all|NAME,…", NULL, 0, 0,
     "start it on all nodes that have a mount, or on these, and follow it"},
    {"launch", MFS_CONF_STRING, "COMMAND", NULL, 0, 0,
     "how memefs is started there: default \"ssh -o BatchMode=yes -o ConnectTimeout=10 -o "
     "ServerAliveInterval=15 {host}\"; also {node}; without either it starts it on all by itself, "
     "as \"srun --ntasks-per-node=1\" does"},
    {"worker", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "what --nodes and --launch start: the call comes on the standard input"},
    {"jobs", MFS_CONF_UINT, "N", "16", 1, 1024, "files, and pieces of large ones, at a time"},
    {0}};

#define ABOUT                                                                                      \
    "Each SRC comes into the directory DST under its own name, with all below it; of \"SRC/\" "    \
    "what\n"                                                                                       \
    "is in it. Kept are modes, owners, times, links, xattrs, ACLs and holes, as by cp -a. A "      \
    "file\n"                                                                                       \
    "has its name when it is whole. What is there with the same size and time is skipped: a "      \
    "call\n"                                                                                       \
    "that was interrupted is simply repeated."

const struct mfs_verb mfs_verb_stage_in = {
    .name = "stage-in",
    .args = "SRC… DST",
    .summary = "copy files and trees into a deployment",
    .about = "Copies into a deployment; DST is on a mount of it.\n\n" ABOUT,
    .least = 0,
    .most = INT_MAX,
    .options = MFS_OPTIONS(mfs_json_options, options),
    .run = run_in};

const struct mfs_verb mfs_verb_stage_out = {
    .name = "stage-out",
    .args = "SRC… DST",
    .summary = "copy files and trees out of a deployment",
    .about = "Copies out of a deployment; each SRC is on a mount of it.\n\n" ABOUT,
    .least = 0,
    .most = INT_MAX,
    .options = MFS_OPTIONS(mfs_json_options, options),
    .run = run_out};
