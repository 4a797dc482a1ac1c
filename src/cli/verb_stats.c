/* memefs stats: the figures that a node's Local Manager has of its clients, and its own. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/stats_interval.h"
#include "cli/verbs.h"
#include "client/address.h"
#include "net/call.h"

#define CALL_TIMEOUT (10 * MFS_SEC)

static int ask(const struct mfs_verb_call *call, struct mfs_stats *s, struct mfs_err *err)
{
    char address[MFS_ADDRESS_MAX];
    struct mfs_secret secret;
    uint32_t node;
    int rc = mfs_client_address(&call->paths, mfs_conf_str(call->conf, "lm"), NULL, address, &node);

    if (rc < 0)
        return mfs_err_set(err, rc, "the Local Manager's address: %s", strerror(-rc));
    rc = mfs_paths_check(&call->paths, err);
    if (rc == 0)
        rc = mfs_secret_load(call->paths.secret, &secret, err);
    if (rc < 0)
        return rc;
    rc = mfs_call(address, &secret, "cli", MFS_MSG_STATS, NULL, CALL_TIMEOUT, s, err);
    mfs_secret_free(&secret);
    return rc;
}

/* Keeps the client that is mounted there, alone. */
static int pick(struct mfs_stats *s, const char *mount, struct mfs_err *err)
{
    for (uint32_t i = 0; i < s->nsources; i++) {
        struct mfs_stats_source found = s->source[i];

        if (strcmp(found.mount, mount) != 0)
            continue;
        s->source[i] = s->source[0];
        s->source[0] = found;
        for (uint32_t k = 1; k < s->nsources; k++)
            mfs_metric_snapshot_free(&s->source[k].figures);
        s->nsources = 1;
        return 0;
    }
    return mfs_err_set(err, -ENOENT,
                       "%s: the Local Manager has no figures of a mount there; they come some "
                       "seconds after the mount; --lm chooses another node's",
                       mount);
}

static void print_figure(const struct mfs_metric_sample *f)
{
    char name[MFS_METRIC_NAME_MAX + MFS_METRIC_LABELS_MAX + 2];

    snprintf(name, sizeof name, f->labels[0] ? "%s{%s}" : "%s%s", f->name, f->labels);
    if (f->kind == MFS_METRIC_HISTOGRAM)
        printf("  %-72s %12" PRIu64 " %11.6f %11.6f %11.6f %11.6f\n", name, f->value, f->p50,
               f->p90, f->p99, f->max);
    else
        printf("  %-72s %12" PRIu64 "\n", name, f->value);
}

static void print_source(const struct mfs_stats_source *s)
{
    printf("%s %" PRIu32, s->program, s->pid);
    if (s->mount[0] != '\0') {
        printf(" at ");
        mfs_verb_shell_text(s->mount);
        printf(", %.1f s ago", (double)s->age_ms / 1000);
    }
    printf("\n  %-72s %12s %11s %11s %11s %11s\n", "", "count", "p50 s", "p90 s", "p99 s", "max s");
    for (uint32_t i = 0; i < s->figures.n; i++)
        if (s->figures.sample[i].value > 0)
            print_figure(&s->figures.sample[i]);
}

static int print_json(const struct mfs_stats *s)
{
    struct mfs_buf out;
    int rc;

    mfs_buf_init(&out);
    rc = mfs_schema_encode(&mfs_stats_schema, s, true, &out);
    if (rc == 0)
        printf("%.*s\n", (int)mfs_buf_len(&out), mfs_buf_data(&out));
    mfs_buf_fini(&out);
    return rc;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_stats s = {0};
    int rc;

    mfs_log_set_level(MFS_LOG_ERROR);
    if (mfs_conf_given(call->conf, "interval"))
        return mfs_stats_interval(
            call->nargs > 0 ? call->args[0] : NULL, mfs_conf_real(call->conf, "interval"),
            mfs_conf_uint(call->conf, "count"), mfs_conf_flag(call->conf, "json"), err);
    if (mfs_conf_given(call->conf, "count")) {
        call->usage = true;
        return mfs_err_set(err, -EINVAL, "--count goes with --interval");
    }
    rc = ask(call, &s, err);
    if (rc < 0)
        return rc;
    if (call->nargs > 0)
        rc = pick(&s, call->args[0], err);
    if (rc == 0 && mfs_conf_flag(call->conf, "json"))
        rc = print_json(&s) < 0 ? mfs_err_set(err, -ENOMEM, "out of memory") : 0;
    else
        for (uint32_t i = 0; rc == 0 && i < s.nsources; i++)
            print_source(&s.source[i]);
    mfs_schema_clear(&mfs_stats_schema, &s);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"lm", MFS_CONF_STRING, "SOCKET", NULL, 1, 100,
     "the Local Manager's socket (default: that of the first node here that answers)"},
    {"interval", MFS_CONF_REAL, "SECONDS", NULL, 0.1, 86400,
     "a line each so many seconds, of what the mount did in them"},
    {"count", MFS_CONF_UINT, "N", NULL, 1, 1e9, "so many of them (default: until it is ended)"},
    {0}};

const struct mfs_verb mfs_verb_stats = {
    .name = "stats",
    .args = "[MOUNT]",
    .summary = "show what a node's mounts have done, and how long it took",
    .about =
        "Shows what each mount of a node, or the one at MOUNT, has counted since it began, as\n"
        "it told the node's Local Manager some seconds ago: operations, errors, bytes, times;\n"
        "and the Local Manager's own figures. What is 0 is left out.\n\n"
        "With --interval it reads the figures of the mount at MOUNT (without it, the only one on\n"
        "this machine) from the mount itself, and shows what it does: operations each second,\n"
        "those that are no reads or writes first; bytes; how long operations take; errors, but\n"
        "look-ups of what is not there; look-ups that asked no partition; and how often writers\n"
        "waited for the write window.",
    .most = 1,
    .options = MFS_OPTIONS(mfs_deployment_options, mfs_json_options, options),
    .run = run};
