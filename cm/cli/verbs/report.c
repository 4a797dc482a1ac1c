/* `cm report`: what cm has kept of the past, written into files. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "cm/ask/client.h"
#include "cm/cli/stages.h"
#include "cm/cli/svg.h"
#include "cm/cli/verbs.h"
#include "cm/history/history.h"
#include "cm/state/event_reader.h"
#include "cm/state/mark.h"
#include "cm/ui/assets.h"

#define TIME_LIMIT (10 * MFS_SEC)
#define EVENTS     200 /* the last ones */

/* cm is asked to write the file, which may be a minute old; where it does not answer the file is
 * what there is. */
static int read_history(const struct mfs_paths *p, struct mfs_history *h, struct mfs_err *err)
{
    char address[MFS_ADDRESS_MAX];
    struct mfs_msg_empty reply;
    struct mfs_err why;
    struct mfs_buf b;
    int rc;

    if (mfs_client_is_elsewhere(p, address))
        return mfs_err_set(err, -ENOENT, "cm is at %s, and so is what it has kept: go there",
                           address);
    rc = mfs_client_call(p, MFS_MSG_HISTORY, NULL, TIME_LIMIT, &reply, &why);
    if (rc)
        fprintf(stderr, "cm: report: up to a minute is missing: %s\n", why.msg);
    mfs_buf_init(&b);
    rc = mfs_trusted_read(p->history, MFS_HISTORY_FILE_MAX, &b);
    if (!rc)
        rc = mfs_history_load(h, mfs_buf_data(&b), mfs_buf_len(&b));
    mfs_buf_fini(&b);
    return rc ? mfs_err_set(err, rc, "%s: %s", p->history, strerror(-rc)) : 0;
}

/* What is no plain file (/dev/stdout, a link, a pipe) stays, and is written to. Who may read it is
 * as with events, which it tells. */
static int write_out(const char *path, const struct mfs_buf *b)
{
    struct stat st;
    int fd, rc;

    if (lstat(path, &st) || S_ISREG(st.st_mode))
        return mfs_file_write(path, mfs_buf_data(b), mfs_buf_len(b), 0640);
    fd = open(path, O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    rc = mfs_file_write_all(fd, mfs_buf_data(b), mfs_buf_len(b));
    return close(fd) && !rc ? -errno : rc;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_row(const struct mfs_history_ring *r, int64_t t, struct mfs_buf *out)
{
    char text[32];
    time_t when = t;
    struct tm tm;

    gmtime_r(&when, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    mfs_buf_printf(out, "%s", text);
    for (uint32_t f = 0; f < MFS_HISTORY_FIGURES; f++) {
        float v = mfs_history_ring_mean(r, f, t, mfs_history_ring_step(r));

        if (isnan(v))
            mfs_buf_printf(out, ",");
        else
            mfs_buf_printf(out, v >= 1e6F ? ",%.0f" : ",%.7g", (double)v);
    }
    mfs_buf_printf(out, "\n");
}

/* Steps of which nothing is known are left out. */
static int write_table(const struct mfs_history_ring *r, uint32_t length, const char *dir,
                       const char *file, struct mfs_err *err)
{
    int64_t last = mfs_history_ring_last(r);
    char path[PATH_MAX];
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    mfs_buf_printf(&b, "time");
    for (uint32_t f = 0; f < MFS_HISTORY_FIGURES; f++)
        mfs_buf_printf(&b, ",%s", mfs_history_names[f]);
    mfs_buf_printf(&b, "\n");
    for (int64_t t = last - length + 1; last >= 0 && t <= last; t++)
        if (t % mfs_history_ring_step(r) == 0 &&
            !isnan(mfs_history_ring_mean(r, MFS_HISTORY_NODES_THERE, t, mfs_history_ring_step(r))))
            put_row(r, t, &b);
    rc = mfs_text_format(path, sizeof path, "%s/%s", dir, file);
    if (!rc)
        rc = write_out(path, &b);
    mfs_buf_fini(&b);
    return rc ? mfs_err_set(err, rc, "%s/%s: %s", dir, file, strerror(-rc)) : 0;
}

static int write_stages(const struct mfs_stages *s, const char *dir, struct mfs_err *err)
{
    char path[PATH_MAX];
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_stages_csv(s, &b);
    if (!rc)
        rc = mfs_text_format(path, sizeof path, "%s/stages.csv", dir);
    if (!rc)
        rc = write_out(path, &b);
    mfs_buf_fini(&b);
    return rc ? mfs_err_set(err, rc, "%s/stages.csv: %s", dir, strerror(-rc)) : 0;
}

static int write_tables(const struct mfs_history *h, const struct mfs_stages *s, const char *dir,
                        struct mfs_err *err)
{
    int rc = mfs_file_mkdirs(dir, 0777);

    if (rc)
        return mfs_err_set(err, rc, "%s: %s", dir, strerror(-rc));
    rc = write_table(h->hour, 3600, dir, "hour.csv", err);
    if (!rc)
        rc = write_table(h->day, 86400, dir, "day.csv", err);
    return rc ? rc : write_stages(s, dir, err);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* What curves bend at: the page's marks (cm/ui/page.js), and the run's stages. */
struct marks {
    struct mfs_event *event;
    struct mfs_svg_mark *list;
    size_t n;
};

static bool is_marked(void *arg, const struct mfs_event *e)
{
    static const char *const parts[] = {"scal", "node-", "lost", "failover", "moved"};

    (void)arg;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(e->what, parts[i]))
            return true;
    return !strcmp(e->what, MFS_MARK_EVENT);
}

static void free_marks(struct marks *m)
{
    free(m->event);
    free(m->list);
}

static int read_marks(const struct mfs_paths *p, struct marks *m, struct mfs_err *err)
{
    int n;

    *m = (struct marks){calloc(EVENTS, sizeof *m->event), calloc(EVENTS, sizeof *m->list), 0};
    n = m->event && m->list ? mfs_event_last(p, is_marked, NULL, m->event, EVENTS) : -ENOMEM;
    if (n == -ENOMEM)
        return mfs_err_set(err, n, "out of memory");
    for (int i = 0; i < n; i++) { /* without events there are no marks */
        const struct mfs_event *e = &m->event[i];
        int64_t at = mfs_event_seconds(e);
        bool stage = !strcmp(e->what, MFS_MARK_EVENT);

        if (at >= 0)
            m->list[m->n++] = (struct mfs_svg_mark){at, e->text[0] ? e->text : e->what, stage};
    }
    return 0;
}

static int write_picture(const struct mfs_svg_chart *c, const struct mfs_history_ring *r,
                         const struct marks *m, const char *dir, const char *span,
                         struct mfs_err *err)
{
    char path[PATH_MAX];
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_svg_draw(c, r, mfs_history_ring_step(r), m->list, m->n, &b);
    if (!rc)
        rc = mfs_text_format(path, sizeof path, "%s/%s-%s.svg", dir, span, c->name);
    if (!rc)
        rc = write_out(path, &b);
    mfs_buf_fini(&b);
    return rc ? mfs_err_set(err, rc, "%s/%s-%s.svg: %s", dir, span, c->name, strerror(-rc)) : 0;
}

static int write_pictures(const struct mfs_paths *p, const struct mfs_history *h, const char *dir,
                          struct mfs_err *err)
{
    int rc = mfs_file_mkdirs(dir, 0777);
    struct marks m;

    if (rc)
        return mfs_err_set(err, rc, "%s: %s", dir, strerror(-rc));
    rc = read_marks(p, &m, err);
    for (const struct mfs_svg_chart *c = mfs_svg_charts; c->name && !rc; c++) {
        rc = write_picture(c, h->hour, &m, dir, "hour", err);
        if (!rc)
            rc = write_picture(c, h->day, &m, dir, "day", err);
    }
    free_marks(&m);
    return rc;
}

/* ---- the page as a file ---------------------------------------------------------------------- */

/* So that nothing in it ends the script that it is in. */
static int put_json_text(const char *text, size_t n, struct mfs_buf *out)
{
    int rc = 0;

    for (size_t i = 0; i < n && !rc; i++)
        rc = text[i] == '<' ? mfs_buf_append(out, "\\u003c", 6) : mfs_buf_append(out, &text[i], 1);
    return rc;
}

static bool any_event(void *arg, const struct mfs_event *e)
{
    (void)arg;
    (void)e;
    return true;
}

static int put_events(const struct mfs_paths *p, struct mfs_buf *out)
{
    struct mfs_event *list = calloc(EVENTS, sizeof *list);
    int n = list ? mfs_event_last(p, any_event, NULL, list, EVENTS) : -ENOMEM, rc;

    rc = mfs_buf_printf(out, ",\"events\":[");
    for (int i = 0; i < n && !rc; i++) {
        rc = i ? mfs_buf_append(out, ",", 1) : 0;
        if (!rc)
            rc = mfs_schema_encode(&mfs_event_schema, &list[i], false, out);
    }
    free(list);
    if (n == -ENOMEM)
        return n;
    return rc ? rc : mfs_buf_append(out, "]", 1);
}

/* What the page draws (cm/ui/page.js, "a report"). */
static int put_data(const struct mfs_paths *p, const struct mfs_history *h,
                    const struct mfs_stages *s, struct mfs_buf *out)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_buf_printf(&b, "{\"name\":\"%s\",\"time\":%lld,\"history\":", p->name,
                        (long long)mfs_clock_real().tv_sec);
    if (!rc)
        rc = mfs_history_json(h, &b);
    if (!rc)
        rc = put_events(p, &b);
    if (!rc)
        rc = mfs_buf_printf(&b, ",\"stages\":");
    if (!rc)
        rc = mfs_stages_json(s, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "}", 1);
    if (!rc)
        rc = put_json_text(mfs_buf_data(&b), mfs_buf_len(&b), out);
    mfs_buf_fini(&b);
    return rc;
}

/* As a policy names what may be run or used: by its hash. What it is in begins with a line feed. */
static int put_hash(const char *directive, enum mfs_ui_file which, struct mfs_buf *out)
{
    unsigned char sum[EVP_MAX_MD_SIZE], text[2 * EVP_MAX_MD_SIZE];
    unsigned n = 0;
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_buf_append(&b, "\n", 1);
    if (!rc)
        rc = mfs_buf_append(&b, mfs_ui_assets[which].text, mfs_ui_assets[which].len);
    if (!rc && !EVP_Digest(mfs_buf_data(&b), mfs_buf_len(&b), sum, &n, EVP_sha256(), NULL))
        rc = -ENOMEM;
    mfs_buf_fini(&b);
    if (rc)
        return rc;
    EVP_EncodeBlock(text, sum, (int)n);
    return mfs_buf_printf(out, "; %s 'sha256-%s'", directive, (const char *)text);
}

static int put_policy(struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "<meta http-equiv=\"Content-Security-Policy\" content=\""
                                 "default-src 'none'; img-src data:");

    if (!rc)
        rc = put_hash("script-src", MFS_UI_JS, out);
    if (!rc)
        rc = put_hash("style-src", MFS_UI_CSS, out);
    return rc ? rc : mfs_buf_printf(out, "\">\n");
}

static int put_asset(const char *begin, enum mfs_ui_file which, const char *end,
                     struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "%s", begin);

    if (!rc)
        rc = mfs_buf_append(out, mfs_ui_assets[which].text, mfs_ui_assets[which].len);
    return rc ? rc : mfs_buf_printf(out, "%s", end);
}

/* Up to where `mark` begins, behind which it goes on. */
static int put_until(const char **at, const char *end, const char *mark, struct mfs_buf *out)
{
    const char *found = memmem(*at, (size_t)(end - *at), mark, strlen(mark));
    int rc = found ? mfs_buf_append(out, *at, (size_t)(found - *at)) : -EINVAL;

    *at = found ? found + strlen(mark) : *at;
    return rc;
}

/* The page with its style, its script and the data in it: what it names of cm's is replaced. */
static int put_page(const struct mfs_paths *p, const struct mfs_history *h,
                    const struct mfs_stages *s, struct mfs_buf *out)
{
    const char *at = mfs_ui_assets[MFS_UI_HTML].text, *end = at + mfs_ui_assets[MFS_UI_HTML].len;
    int rc = put_until(&at, end, "<link rel=\"stylesheet\" href=\"/ui/page.css\">\n", out);

    if (!rc)
        rc = put_policy(out);
    if (!rc)
        rc = put_asset("<style>\n", MFS_UI_CSS, "</style>\n", out);
    if (!rc)
        rc = put_until(&at, end, "<script src=\"/ui/page.js\" defer></script>\n", out);
    if (!rc)
        rc = put_until(&at, end, "</body>", out);
    if (!rc)
        rc = mfs_buf_printf(out, "<script type=\"application/json\" id=\"report\">");
    if (!rc)
        rc = put_data(p, h, s, out);
    if (!rc)
        rc = put_asset("</script>\n<script>\n", MFS_UI_JS, "</script>\n</body>", out);
    return rc ? rc : mfs_buf_append(out, at, (size_t)(end - at));
}

static int write_page(const struct mfs_paths *p, const struct mfs_history *h,
                      const struct mfs_stages *s, const char *file, struct mfs_err *err)
{
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = put_page(p, h, s, &b);
    if (!rc)
        rc = write_out(file, &b);
    mfs_buf_fini(&b);
    return rc ? mfs_err_set(err, rc, "%s: %s", file, strerror(-rc)) : 0;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    const char *dir = mfs_conf_str(call->conf, "csv"), *svg = mfs_conf_str(call->conf, "svg");
    struct mfs_stages *stages = NULL;
    struct mfs_history *h;
    int rc;

    if (!dir && !svg && !call->nargs) {
        call->usage = true;
        return mfs_err_set(err, -EINVAL, "say what to write: FILE.html, --csv DIR, --svg DIR");
    }
    h = mfs_history_create();
    if (!h)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = read_history(&call->paths, h, err);
    if (!rc) {
        rc = mfs_stages_read(&call->paths, h, &stages);
        if (rc)
            mfs_err_set(err, rc, "%s: %s", call->paths.events, strerror(-rc));
    }
    if (!rc && dir)
        rc = write_tables(h, stages, dir, err);
    if (!rc && svg)
        rc = write_pictures(&call->paths, h, svg, err);
    if (!rc && call->nargs)
        rc = write_page(&call->paths, h, stages, call->args[0], err);
    mfs_stages_free(stages);
    mfs_history_destroy(h);
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"csv", MFS_CONF_STRING, "DIR", NULL, 1, 4000,
     "write hour.csv, by the second, day.csv, by the minute, and stages.csv into that directory"},
    {"svg", MFS_CONF_STRING, "DIR", NULL, 1, 4000,
     "write the curves there as pictures, hour-memory.svg and so on"},
    {0}};

const struct mfs_verb mfs_cm_report = {.name = "report",
                                       .args = "[FILE.html]",
                                       .most = 1,
                                       .summary = "write what the last hour and day have been like",
                                       .options = MFS_OPTIONS(options, mfs_deployment_options),
                                       .run = run};
