/* `cm status`: what the deployment is and how its nodes do; with --watch again and again, also
 * while cm is away. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "cm/cli/verbs.h"

#define TIME_LIMIT   (10 * MFS_SEC)
#define MOUNTS_LIMIT MFS_SEC
#define WATCH_LIMIT  (5 * MFS_SEC)
#define STEP         2 /* s between two looks, unless given */
#define STEP_MOST    3600

static int render(const struct mfs_status *s, bool json, struct mfs_buf *out)
{
    return json ? mfs_render_json(&mfs_status_schema, s, out) : mfs_render_status(s, out);
}

/* What mounts have done comes by a question of its own, as nodes are asked for it; where it does
 * not, the rest is shown all the same. */
static void add_mounts(const struct mfs_paths *p, struct mfs_status *s)
{
    struct mfs_mounts list;
    struct mfs_err err;

    if (mfs_client_call(p, MFS_MSG_CLIENTS, NULL, MOUNTS_LIMIT, &list, &err))
        return;
    s->mount = list.mount;
    s->nmounts = list.n;
    for (uint32_t i = 0; i < list.n; i++) {
        s->errors += list.mount[i].errors;
        s->no_space += list.mount[i].no_space;
        s->io_errors += list.mount[i].io_errors;
    }
    list.mount = NULL; /* s has it now */
    list.n = 0;
    mfs_schema_clear(&mfs_mounts_schema, &list);
}

static int show_once(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_status s;
    struct mfs_buf b;
    int rc = mfs_client_call(&call->paths, MFS_MSG_STATUS, NULL, TIME_LIMIT, &s, err);

    if (rc)
        return rc;
    if (mfs_conf_flag(call->conf, "json"))
        add_mounts(&call->paths, &s);
    mfs_buf_init(&b);
    rc = mfs_render_print(render(&s, mfs_conf_flag(call->conf, "json"), &b), &b, err);
    mfs_schema_clear(&mfs_status_schema, &s);
    return rc;
}

/* ---- watching -------------------------------------------------------------------------------- */

struct watch {
    const struct mfs_paths *paths;
    bool json, redraws;
    pid_t cm;          /* that answered last; 0: none yet, or it is elsewhere */
    bool away;         /* it did not answer the last time */
    struct mfs_buf at; /* the last block */
};

static void put_heading(const struct watch *w, const char *note, struct mfs_buf *out)
{
    char text[32];
    time_t now = time(NULL);
    struct tm tm;

    localtime_r(&now, &tm);
    strftime(text, sizeof text, "%H:%M:%S", &tm);
    mfs_buf_printf(out, "%s  %s%s%s\n", text, w->paths->name, *note ? ": " : "", note);
}

/* How many bytes there fill so many columns: none of the characters is taken for a wide one. */
static int cut(const char *line, const char *end, int columns)
{
    const char *at = line;

    for (; at < end && columns; columns--)
        do
            at++;
        while (at < end && ((unsigned char)*at & 0xc0) == 0x80);
    return (int)(at - line);
}

static unsigned count_lines(const char *text, const char *end)
{
    unsigned n = 0;

    for (; text < end; text++)
        n += *text == '\n';
    return n;
}

/* As many lines as the terminal has, each over what was there before, and cut at its edge, as one
 * that goes on below would push the first ones off it. */
static void draw(const char *text, size_t len)
{
    struct winsize size;
    bool known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    int rows = known && size.ws_row > 1 ? size.ws_row : 24, columns = known ? size.ws_col : 0;
    const char *end = text + len, *stop;
    unsigned left = count_lines(text, end);

    columns = columns ? columns : 80;
    fputs("\033[H", stdout);
    for (int row = 1; left && row < rows; row++, left--, text = stop + 1) {
        if (left > 1 && row + 1 == rows) {
            printf("... %u more lines\033[K\n", left);
            break;
        }
        stop = memchr(text, '\n', (size_t)(end - text));
        printf("%.*s\033[K\n", cut(text, stop, columns), text);
    }
    fputs("\033[J", stdout);
}

static int put(const struct watch *w, const char *note, const struct mfs_buf *block,
               struct mfs_err *err)
{
    struct mfs_buf b;

    mfs_buf_init(&b);
    if (!w->json)
        put_heading(w, note, &b);
    if (!w->json || !*note)
        mfs_buf_append(&b, mfs_buf_data(block), mfs_buf_len(block));
    if (mfs_buf_append(&b, "", 1)) {
        mfs_buf_fini(&b);
        return mfs_err_set(err, -ENOMEM, "out of memory");
    }
    mfs_render_tame(&b);
    if (w->redraws)
        draw(mfs_buf_data(&b), mfs_buf_len(&b) - 1);
    else
        fwrite(mfs_buf_data(&b), 1, mfs_buf_len(&b) - 1, stdout);
    if (!w->redraws && !w->json)
        putchar('\n');
    mfs_buf_fini(&b);
    return fflush(stdout) ? mfs_err_set(err, -errno, "output: %s", strerror(errno)) : 0;
}

static int look(struct watch *w, struct mfs_err *err)
{
    static const struct mfs_buf nothing;
    const char *note = "";
    struct mfs_status s;
    struct mfs_err why;
    pid_t cm;
    int rc = mfs_client_call(w->paths, MFS_MSG_STATUS, NULL, WATCH_LIMIT, &s, &why);

    if (rc) {
        w->away = true;
        if (w->json)
            fprintf(stderr, "cm: status: %s\n", why.msg);
        return put(w, why.msg, w->redraws ? &w->at : &nothing, err);
    }
    cm = mfs_client_daemon(w->paths).pid;
    if (w->cm && cm != w->cm)
        note = "cm was restarted";
    else if (w->away)
        note = "cm answers again";
    w->cm = cm;
    w->away = false;
    if (w->json)
        add_mounts(w->paths, &s);
    mfs_buf_clear(&w->at);
    rc = render(&s, w->json, &w->at);
    mfs_schema_clear(&mfs_status_schema, &s);
    if (rc)
        return mfs_err_set(err, rc, "out of memory");
    return put(w, w->json ? "" : note, &w->at, err);
}

static bool is_over(const struct mfs_paths *p)
{
    char address[MFS_ADDRESS_MAX];

    return access(p->state, F_OK) && !mfs_client_is_elsewhere(p, address);
}

/* Ends by a signal, or with the deployment. */
static int watch(struct mfs_verb_call *call, int64_t step, struct mfs_err *err)
{
    const char *term = getenv("TERM");
    struct watch w = {.paths = &call->paths,
                      .json = mfs_conf_flag(call->conf, "json"),
                      .redraws = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0};
    int rc = 0;

    w.redraws &= !w.json;
    mfs_buf_init(&w.at);
    if (w.redraws)
        fputs("\033[2J", stdout);
    while (!rc && !is_over(&call->paths)) {
        rc = look(&w, err);
        if (!rc)
            mfs_clock_sleep(step);
    }
    mfs_buf_fini(&w.at);
    if (!rc && !w.json)
        printf("%s: stopped\n", call->paths.name);
    return rc;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    uint64_t step = STEP;

    if (call->nargs && (!mfs_conf_flag(call->conf, "watch") || mfs_text_u64(call->args[0], &step) ||
                        !step || step > STEP_MOST)) {
        call->usage = true;
        return mfs_err_set(err, -EINVAL, "give seconds, 1 to %d, behind --watch, and nothing else",
                           STEP_MOST);
    }
    if (mfs_conf_flag(call->conf, "watch") && !is_over(&call->paths))
        return watch(call, (int64_t)step * MFS_SEC, err);
    return show_once(call, err);
}

static const struct mfs_conf_option options[] = {
    {"watch", MFS_CONF_FLAG, NULL, NULL, 0, 0, "again and again, each SECONDS (2)"}, {0}};

const struct mfs_verb mfs_cm_status = {
    .name = "status",
    .args = "[SECONDS]",
    .summary = "show the nodes, their memory, partitions and shares",
    .most = 1,
    .options = MFS_OPTIONS(options, mfs_json_options, mfs_deployment_options),
    .run = run};
