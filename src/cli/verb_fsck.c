/* Checks a running deployment, as one more client of it, and says what is wrong. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/verbs.h"
#include "client/client.h"
#include "fsck/fsck.h"

/* --- what is told -------------------------------------------------------------------------------
 */

static void progress(void *arg, const char *what, uint64_t done, uint64_t all)
{
    bool *shown = arg;

    if (all)
        fprintf(stderr, "\r%s: %d %%\033[K", what, (int)(100 * done / all));
    else
        fprintf(stderr, "\r%s: %" PRIu64 "\033[K", what, done);
    *shown = true;
}

static const char *state_word(enum mfs_fsck_state state)
{
    static const char *const words[] = {
        [MFS_FSCK_FOUND] = "found", [MFS_FSCK_MENDED] = "mended", [MFS_FSCK_LEFT] = "left"};

    return words[state];
}

static void print_one(const struct mfs_fsck_finding *f)
{
    printf("%s:", f->kind);
    if (f->ino)
        printf(" inode %" PRIu64 ",", f->ino);
    printf(" partition %" PRIu32, f->part);
    if (f->path[0] != '\0') {
        fputs(", ", stdout);
        mfs_verb_shell_text(f->path);
    }
    printf(": %s", f->text);
    if (f->state != MFS_FSCK_FOUND)
        printf(f->why[0] != '\0' ? " (%s: %s)" : " (%s)", state_word(f->state), f->why);
    putchar('\n');
}

static void print_text(const struct mfs_fsck_report *r, bool verbose)
{
    for (size_t i = 0; i < r->n; i++)
        print_one(&r->findings[i]);
    if (verbose)
        printf("%" PRIu64 " keys, %u passes; %zu things that looked wrong had changed at the "
               "next look\n",
               r->keys, r->passes, r->changed);
    printf("%" PRIu64 " inodes, %" PRIu64 " names, %" PRIu64 " stripes: ", r->inodes, r->names,
           r->stripes);
    if (r->lost > 0)
        printf("%" PRIu64 " of them lost (memefs lost lists the files): ", r->lost);
    if (r->n == 0)
        printf("clean\n");
    else if (r->left == 0)
        printf("%zu mended, clean now\n", r->n);
    else
        printf("%zu %s\n", r->left, r->left == 1 ? "thing is wrong" : "things are wrong");
}

static void print_field(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    mfs_verb_json_text(text);
}

static void print_json(const char *name, const struct mfs_fsck_report *r)
{
    printf("{\"name\": ");
    mfs_verb_json_text(name);
    printf(", \"clean\": %s, \"left\": %zu, \"inodes\": %" PRIu64 ", \"names\": %" PRIu64
           ", \"stripes\": %" PRIu64 ", \"keys\": %" PRIu64 ", \"lost\": %" PRIu64
           ", \"passes\": %u, \"changed\": %zu, \"findings\": [",
           r->left == 0 ? "true" : "false", r->left, r->inodes, r->names, r->stripes, r->keys,
           r->lost, r->passes, r->changed);
    for (size_t i = 0; i < r->n; i++) {
        const struct mfs_fsck_finding *f = &r->findings[i];

        printf("%s\n  {\"kind\": \"%s\", \"leak\": %s, \"inode\": \"%" PRIu64
               "\", \"partition\": %" PRIu32,
               i > 0 ? "," : "", f->kind, f->leak ? "true" : "false", f->ino, f->part);
        print_field("path", f->path);
        print_field("text", f->text);
        print_field("state", state_word(f->state));
        print_field("why", f->why);
        putchar('}');
    }
    printf("%s]}\n", r->n > 0 ? "\n" : "");
}

/* --- the verb -----------------------------------------------------------------------------------
 */

static int check(const struct mfs_verb_call *call, struct mfs_client *c, struct mfs_err *err)
{
    const struct mfs_conf *conf = call->conf;
    bool shown = false;
    struct mfs_fsck_opts opts = {.mend = mfs_conf_flag(conf, "repair"),
                                 .pause = (int64_t)mfs_conf_uint(conf, "pause") * MFS_SEC,
                                 .progress = isatty(STDERR_FILENO) ? progress : NULL,
                                 .arg = &shown};
    struct mfs_fsck_report *report;
    int rc = mfs_fsck_run(mfs_client_store(c), &opts, &report, err);

    if (shown)
        fputs("\r\033[K", stderr);
    if (rc < 0)
        return rc;
    if (mfs_conf_flag(conf, "json"))
        print_json(call->paths.name, report);
    else
        print_text(report, mfs_conf_flag(conf, "verbose"));
    rc = report->left == 0 ? MFS_EXIT_OK : MFS_EXIT_FAILED;
    mfs_fsck_report_free(report);
    if (fflush(stdout) != 0)
        return mfs_err_set(err, -errno, "output: %s", strerror(errno));
    return rc;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_client *c;
    int rc;

    mfs_log_set_level(MFS_LOG_ERROR);
    rc = mfs_verb_join(&c, call, err);
    if (rc == 0)
        rc = check(call, c, err);
    mfs_client_destroy(c);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"repair", MFS_CONF_FLAG, NULL, NULL, 0, 0, "mend what is wrong, where that is safe"},
    {"pause", MFS_CONF_UINT, "SECONDS", NULL, 1, 3600,
     "before another look (8; with --repair 35 at last); less only if nobody uses it"},
    {"verbose", MFS_CONF_FLAG, NULL, NULL, 0, 0, "tell more of what was looked at; also -v"},
    {"v", MFS_CONF_ALIAS, "verbose", NULL, 0, 0, NULL},
    {0}};

const struct mfs_verb mfs_verb_fsck = {
    .name = "fsck",
    .summary = "check a running deployment, and repair it",
    .about = "Looks in a running deployment for leaks and contradictions between names, inodes\n"
             "and data. Files may be used meanwhile. Exit status: 0 all is well, or mended;\n"
             "1 something is left, or the check could not be made; 2 wrong usage.",
    .options = MFS_OPTIONS(mfs_deployment_options, options, mfs_json_options),
    .run = run};
