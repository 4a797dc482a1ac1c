#include "cm/cli/stages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cm/history/stages.h"
#include "cm/state/event_reader.h"
#include "cm/state/mark.h"
#include "proto/encode.h"

struct stage {
    char name[MFS_TEXT_MAX];
    int64_t from, to;
    struct mfs_stage_figures of;
};

struct mfs_stages {
    uint32_t n;
    struct stage stage[MFS_STAGES_MOST];
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_mark(void *arg, const struct mfs_event *e)
{
    (void)arg;
    return !strcmp(e->what, MFS_MARK_EVENT);
}

/* The last one goes on as far as anything is known. */
static void take(struct mfs_stages *s, const struct mfs_event *list, uint32_t n,
                 const struct mfs_history *h)
{
    for (uint32_t i = 0; i < n; i++) {
        struct stage *to = &s->stage[s->n];

        to->from = mfs_event_seconds(&list[i]);
        if (to->from < 0)
            continue;
        memcpy(to->name, list[i].text, sizeof to->name);
        if (s->n++)
            to[-1].to = to->from;
    }
    if (s->n)
        s->stage[s->n - 1].to = mfs_history_ring_last(h->hour) + 1;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->stage[i].to < s->stage[i].from)
            s->stage[i].to = s->stage[i].from; /* the clock was set back, or nothing is known yet */
        mfs_stage_measure(h, s->stage[i].from, s->stage[i].to, &s->stage[i].of);
    }
}

int mfs_stages_read(const struct mfs_paths *p, const struct mfs_history *h, struct mfs_stages **out)
{
    struct mfs_event *list = calloc(MFS_STAGES_MOST, sizeof *list);
    struct mfs_stages *s = calloc(1, sizeof *s);
    int n = list && s ? mfs_event_last(p, is_mark, NULL, list, MFS_STAGES_MOST) : -ENOMEM;

    if (n == -ENOENT)
        n = 0;
    if (n >= 0)
        take(s, list, (uint32_t)n, h);
    else
        mfs_stages_free(s);
    free(list);
    *out = n >= 0 ? s : NULL;
    return n >= 0 ? 0 : n;
}

void mfs_stages_free(struct mfs_stages *s)
{
    free(s);
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *const names[] = {"written", "read", "memory_most", "nodes_most", "node_hours"};
#define FIGURES (sizeof names / sizeof *names)

static double figure(const struct stage *s, size_t i)
{
    const double all[FIGURES] = {s->of.written, s->of.read, s->of.memory, s->of.nodes,
                                 s->of.node_hours};

    return all[i];
}

static int put_time(int64_t t, struct mfs_buf *out)
{
    char text[32];
    time_t when = t;
    struct tm tm;

    gmtime_r(&when, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return mfs_buf_printf(out, ",%s", text);
}

static int put_quoted(const char *text, struct mfs_buf *out)
{
    int rc = mfs_buf_append(out, "\"", 1);

    for (const char *c = text; *c && !rc; c++)
        rc = *c == '"' ? mfs_buf_append(out, "\"\"", 2) : mfs_buf_append(out, c, 1);
    return rc ? rc : mfs_buf_append(out, "\"", 1);
}

static int put_row(const struct stage *s, struct mfs_buf *out)
{
    int rc = put_quoted(s->name, out);

    if (!rc)
        rc = put_time(s->from, out);
    if (!rc)
        rc = put_time(s->to, out);
    if (!rc)
        rc = mfs_buf_printf(out, ",%lld", (long long)(s->to - s->from));
    for (size_t i = 0; i < FIGURES && !rc; i++) {
        double v = figure(s, i);

        rc = isnan(v) ? mfs_buf_append(out, ",", 1)
                      : mfs_buf_printf(out, v >= 1e6 ? ",%.0f" : ",%.7g", v);
    }
    return rc ? rc : mfs_buf_append(out, "\n", 1);
}

int mfs_stages_csv(const struct mfs_stages *s, struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "stage,from,to,seconds");

    for (size_t i = 0; i < FIGURES && !rc; i++)
        rc = mfs_buf_printf(out, ",%s", names[i]);
    if (!rc)
        rc = mfs_buf_append(out, "\n", 1);
    for (uint32_t i = 0; i < s->n && !rc; i++)
        rc = put_row(&s->stage[i], out);
    return rc;
}

static int put_object(const struct stage *s, bool first, struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "%s{\"stage\":", first ? "" : ",");

    if (!rc)
        rc = mfs_string_encode(s->name, out);
    if (!rc)
        rc =
            mfs_buf_printf(out, ",\"from\":%lld,\"to\":%lld", (long long)s->from, (long long)s->to);
    for (size_t i = 0; i < FIGURES && !rc; i++) {
        double v = figure(s, i);

        rc = isnan(v) ? mfs_buf_printf(out, ",\"%s\":null", names[i])
                      : mfs_buf_printf(out, ",\"%s\":%.9g", names[i], v);
    }
    return rc ? rc : mfs_buf_append(out, "}", 1);
}

int mfs_stages_json(const struct mfs_stages *s, struct mfs_buf *out)
{
    int rc = mfs_buf_append(out, "[", 1);

    for (uint32_t i = 0; i < s->n && !rc; i++)
        rc = put_object(&s->stage[i], !i, out);
    return rc ? rc : mfs_buf_append(out, "]", 1);
}
