/* `cm events`: what has happened, and with --follow what happens until the deployment is stopped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "show/clients.h"
#include "cm/cli/verbs.h"
#include "cm/cli/when.h"
#include "cm/state/event_reader.h"
#include "cm/state/event_types.h"

#define LOOK_STEP (100 * MFS_MSEC)
#define TAIL_MOST 65536

/* What is to be shown. */
struct wanted {
    const char *types;    /* separated by commas; NULL: all */
    int64_t since, until; /* us since 1970 */
};

static int64_t now_us(void)
{
    struct timespec now = mfs_clock_real();

    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool is_type(const char *types, const char *what)
{
    size_t len = strlen(what);

    for (const char *at = types; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, what, len) && (at[len] == ',' || !at[len]))
            return true;
    return false;
}

static bool is_wanted(void *arg, const struct mfs_event *e)
{
    const struct wanted *w = arg;
    int64_t when = 0;

    if (w->types && !is_type(w->types, e->what))
        return false;
    return !mfs_when_parse(e->time, 0, &when) && when >= w->since && when <= w->until;
}

static int print(const struct mfs_event *e, bool json, struct mfs_err *err)
{
    struct mfs_buf b;

    mfs_buf_init(&b);
    return mfs_render_print(
        json ? mfs_render_json(&mfs_event_schema, e, &b) : mfs_show_event(e, &b), &b, err);
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static int take_time(const struct mfs_conf *conf, const char *key, int64_t now, int64_t *when,
                     struct mfs_err *err)
{
    const char *text = mfs_conf_str(conf, key);

    if (!text || !mfs_when_parse(text, now, when))
        return 0;
    return mfs_err_set(err, -EINVAL,
                       "%s: \"" MFS_CONF_SHOWN "\" is no time like 2026-01-31T12:00:00Z, 10m or "
                       "\"2h ago\"",
                       key, text);
}

static int say_unknown(const char *word, size_t len, struct mfs_err *err)
{
    fprintf(stderr, "types of events:\n");
    for (const char *const *t = mfs_event_types; *t; t++)
        fprintf(stderr, "  %s\n", *t);
    return mfs_err_set(err, -EINVAL, "type: \"%.*s\" is none of those above", (int)len, word);
}

static int take_types(struct wanted *w, struct mfs_err *err)
{
    size_t len;

    for (const char *at = w->types; at; at = at[len] ? at + len + 1 : NULL) {
        len = strcspn(at, ",");
        if (!mfs_event_type_known(at, len))
            return say_unknown(at, len, err);
    }
    return 0;
}

static int take_wanted(const struct mfs_conf *conf, struct wanted *w, struct mfs_err *err)
{
    int64_t now = now_us();
    int rc;

    *w = (struct wanted){mfs_conf_str(conf, "type"), INT64_MIN, INT64_MAX};
    rc = take_time(conf, "since", now, &w->since, err);
    if (!rc)
        rc = take_time(conf, "until", now, &w->until, err);
    return rc ? rc : take_types(w, err);
}

/* ---- showing --------------------------------------------------------------------------------- */

/* The events that there are, or the last `tail` of them. */
static int show(struct mfs_event_reader *r, struct wanted *w, uint32_t tail, bool json,
                struct mfs_err *err)
{
    struct mfs_event *kept = tail ? calloc(tail, sizeof *kept) : NULL, e;
    uint64_t n = 0;
    int rc = tail && !kept ? -ENOMEM : 0, more;

    while (!rc && (more = mfs_event_reader_next(r, &e)) != 0) {
        if (more < 0)
            rc = more;
        else if (!is_wanted(w, &e))
            continue;
        else if (tail)
            kept[n++ % tail] = e;
        else
            rc = print(&e, json, err);
    }
    for (uint64_t i = n > tail ? n - tail : 0; tail && i < n && !rc; i++)
        rc = print(&kept[i % tail], json, err);
    free(kept);
    if (!rc && fflush(stdout))
        rc = -errno;
    return rc && !err->code ? mfs_err_set(err, rc, "%s", strerror(-rc)) : rc;
}

/* With the deployment ends its state; the file of events may be kept. */
static bool ended(const struct mfs_paths *p, const struct mfs_event_reader *r)
{
    return mfs_event_reader_gone(r) || access(p->state, F_OK);
}

static int follow(const struct mfs_paths *p, struct mfs_event_reader *r, struct wanted *w,
                  bool json, struct mfs_err *err)
{
    int over = 0; /* looks, one after the other, that found the end */
    int rc = 0;

    while (!rc && over < 2) { /* one may be between cm's renaming a file and beginning another */
        over = now_us() > w->until ? 2 : ended(p, r) ? over + 1 : 0;
        mfs_clock_sleep(LOOK_STEP);
        rc = show(r, w, 0, json, err);
    }
    return rc;
}

static int open_events(const struct mfs_paths *p, struct mfs_event_reader **r, struct mfs_err *err)
{
    char cm[MFS_ADDRESS_MAX];
    int rc = mfs_event_reader_open(p, r);

    if (rc && mfs_client_is_elsewhere(p, cm))
        return mfs_err_set(err, -ESRCH, "the events of deployment %s are where its cm is, at %s",
                           p->name, cm);
    return rc ? mfs_err_set(err, rc, "deployment %s has no events: %s: %s", p->name, p->events,
                            strerror(-rc))
              : 0;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    bool json = mfs_conf_flag(call->conf, "json");
    struct mfs_event_reader *r = NULL;
    struct wanted w;
    int rc = take_wanted(call->conf, &w, err);

    err->code = rc;
    call->usage = rc != 0;
    if (!rc)
        rc = open_events(&call->paths, &r, err);
    if (!rc)
        rc = show(r, &w, (uint32_t)mfs_conf_uint(call->conf, "tail"), json, err);
    if (!rc && mfs_conf_flag(call->conf, "follow"))
        rc = follow(&call->paths, r, &w, json, err);
    if (r && mfs_event_reader_torn(r))
        fprintf(stderr, "cm: events: what is in no whole line is left out\n");
    mfs_event_reader_close(r);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"since", MFS_CONF_STRING, "TIME", NULL, 1, 63,
     "not those before: 2026-01-31T12:00:00Z, or how long ago, as in 10m, 2h, 1d"},
    {"until", MFS_CONF_STRING, "TIME", NULL, 1, 63, "not those after, likewise"},
    {"type", MFS_CONF_LIST, "TYPE[,TYPE...]", NULL, 1, 511, "only these; an unknown one lists all"},
    {"tail", MFS_CONF_UINT, "N", NULL, 1, TAIL_MOST, "only the last N of them"},
    {"follow", MFS_CONF_FLAG, NULL, NULL, 0, 0, "go on until the deployment is stopped"},
    {"json", MFS_CONF_FLAG, NULL, NULL, 0, 0, "one JSON object per line"},
    {0}};

const struct mfs_verb mfs_cm_events = {.name = "events",
                                       .summary = "show what has happened",
                                       .options = MFS_OPTIONS(options, mfs_deployment_options),
                                       .run = run};
