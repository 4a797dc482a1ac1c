#include "cm/life/serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/life/ui.h"
#include "cm/life/ui_doctor.h"
#include "cm/nodes/mounts.h"
#include "cm/state/events.h"
#include "http/httpd.h"
#include "net/address.h"
#include "proto/encode.h"

#define AREA  "metrics"
#define AGAIN (5 * MFS_SEC)

static int make_metrics(void *arg, bool other, struct mfs_httpd_answer *a)
{
    struct mfs_exposition e = {.out = &a->out, .open = other};

    a->type = other ? MFS_EXPOSITION_OPEN1 : MFS_EXPOSITION_PLAIN;
    return mfs_serve_figures(arg, &e);
}

/* Who serves says itself which node it is. */
static int put_target(const struct mfs_node *n, bool first, struct mfs_buf *out)
{
    char address[MFS_ADDRESS_MAX];
    int rc = mfs_address_join(n->record->address, n->record->metrics, address, sizeof address);

    if (!rc)
        rc = mfs_buf_printf(
            out, "%s{\"targets\":[\"%s\"],\"labels\":{\"deployment\":", first ? "" : ",", address);
    if (!rc)
        rc = mfs_string_encode(n->cm->state.name, out);
    return rc ? rc : mfs_buf_printf(out, "}}");
}

/* As http_sd_configs of Prometheus wants it. A node that is away stays: that it does not answer is
 * what is to be seen. */
static int make_targets(void *arg, bool other, struct mfs_httpd_answer *a)
{
    const struct mfs_cm *cm = arg;
    bool first = true;
    int rc = mfs_buf_printf(&a->out, "[");

    (void)other;
    a->type = "application/json";
    for (uint32_t i = 0; i < cm->state.nnodes && !rc; i++) {
        const struct mfs_node *n = cm->nodes[i];

        if (!n->record->metrics || !n->record->address[0])
            continue;
        rc = put_target(n, first, &a->out);
        first = false;
    }
    return rc ? rc : mfs_buf_printf(&a->out, "]\n");
}

#define FIGURES                                                                                    \
    {.path = "/metrics", .alternative = MFS_EXPOSITION_OPEN, .make = make_metrics},                \
    {                                                                                              \
        .path = "/targets", .make = make_targets                                                   \
    }
#define UI                                                                                         \
    {.path = "/ui", .make = mfs_ui_page, .entrance = true},                                        \
        {.path = "/ui/page.css", .make = mfs_ui_style},                                            \
        {.path = "/ui/page.js", .make = mfs_ui_script},                                            \
        {.path = "/ui/history.json", .make = mfs_ui_past},                                         \
        {.path = "/ui/doctor.json", .make = mfs_ui_doctor_page},                                   \
    {                                                                                              \
        .path = "/ui/stream", .make = mfs_ui_now, .stream = "text/event-stream"                    \
    }

#define CHANGES                                                                                    \
    {.path = "/ui/key", .key = true},                                                              \
    {                                                                                              \
        .path = "/ui/change", .take = mfs_ui_change                                                \
    }

static const struct mfs_httpd_page figures[] = {FIGURES, {0}}, ui[] = {UI, {0}},
                                   both[] = {FIGURES, UI, {0}}, ui_write[] = {UI, CHANGES, {0}},
                                   both_write[] = {FIGURES, UI, CHANGES, {0}};

/* The same port at the address at which cm itself listens. */
static int own_address(const struct mfs_cm *cm, const char *address, char out[MFS_ADDRESS_MAX])
{
    const char *host_end = strrchr(cm->address, ':'), *port = strrchr(address, ':');

    if (!host_end || !port)
        return -EINVAL;
    return mfs_text_format(out, MFS_ADDRESS_MAX, "%.*s%s", (int)(host_end - cm->address),
                           cm->address, port);
}

/* For reading, and for changes: "" where the page makes none. */
struct tokens {
    char read[MFS_HTTPD_TOKEN_TEXT], write[MFS_HTTPD_TOKEN_TEXT];
};

static struct mfs_httpd *listen_at(struct mfs_cm *cm, const char *address, const struct tokens *t,
                                   const struct mfs_httpd_page *pages, struct mfs_err *err)
{
    struct mfs_httpd *h = mfs_httpd_create(cm->loop, address, t->read, t->write, pages, cm, err);
    char elsewhere[MFS_ADDRESS_MAX];

    if (!h && err->code == -EADDRNOTAVAIL && cm->state.term && !own_address(cm, address, elsewhere))
        h = mfs_httpd_create(cm->loop, elsewhere, t->read, t->write, pages, cm, err);
    return h;
}

static void tell_address(const struct mfs_httpd *h, const char *what, const char *path)
{
    char address[MFS_ADDRESS_MAX];

    mfs_httpd_address(h, address, sizeof address);
    mfs_info(AREA, "%s served at http://%s%s", what, address, path);
}

/* One server for both where they have one address. A second try finds what the first has begun. */
static int listen_all(struct mfs_cm *cm, const struct tokens *t, struct mfs_err *err)
{
    const char *metrics = cm->state.metrics, *page = cm->state.ui;
    bool one = page[0] && !strcmp(metrics, page);
    const struct mfs_httpd_page *pages_of_both = !one                 ? figures
                                                 : cm->state.ui_write ? both_write
                                                                      : both;

    if (metrics[0] && !cm->http) {
        cm->http = listen_at(cm, metrics, t, pages_of_both, err);
        if (!cm->http)
            return err->code;
        tell_address(cm->http, "figures are", "/metrics");
    }
    if (page[0] && !one && !cm->ui) {
        cm->ui = listen_at(cm, page, t, cm->state.ui_write ? ui_write : ui, err);
        if (!cm->ui)
            return err->code;
    }
    if (page[0])
        tell_address(one ? cm->http : cm->ui, "the page is", "/ui");
    return 0;
}

static int keep_token(const char *path, const char *token, struct mfs_err *err)
{
    char line[MFS_HTTPD_TOKEN_TEXT + 1];
    int n = snprintf(line, sizeof line, "%s\n", token);
    int rc = mfs_file_write(path, line, (size_t)n, 0600);

    explicit_bzero(line, sizeof line);
    return rc ? mfs_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

static int make_tokens(struct mfs_cm *cm, struct tokens *t, struct mfs_err *err)
{
    int rc = mfs_httpd_token(&cm->secret, t->read);

    if (!rc && cm->state.ui_write)
        rc = mfs_httpd_write_token(&cm->secret, t->write);
    if (rc)
        return mfs_err_set(err, rc, "a token can't be made: %s", strerror(-rc));
    if (!cm->state.ui_write)
        unlink(cm->paths->token_write); /* of a cm before this one */
    rc = keep_token(cm->paths->token, t->read, err);
    if (!rc && cm->state.ui_write)
        rc = keep_token(cm->paths->token_write, t->write, err);
    return rc;
}

static int begin(struct mfs_cm *cm, struct mfs_err *err)
{
    struct tokens t = {0};
    int rc = make_tokens(cm, &t, err);

    if (!rc)
        rc = listen_all(cm, &t, err);
    explicit_bzero(&t, sizeof t);
    if (!rc && (cm->http || cm->ui))
        mfs_mounts_always(cm);
    return rc;
}

static void try_again(void *arg)
{
    struct mfs_cm *cm = arg;
    struct mfs_err err = {0};

    if (begin(cm, &err))
        return;
    mfs_timer_cancel(cm->serve);
    cm->serve = NULL;
}

int mfs_serve_begin(struct mfs_cm *cm, struct mfs_err *err)
{
    int rc;

    if (!cm->state.metrics[0] && !cm->state.ui[0] && !cm->state.node_metrics)
        return 0;
    if (cm->state.ui[0]) {
        mfs_event_recall(cm->paths->events);
        cm->ui_doctor = mfs_ui_doctor_create(cm);
        if (!cm->ui_doctor)
            return mfs_err_set(err, -ENOMEM, "out of memory");
    }
    rc = begin(cm, err);
    if (!rc || mfs_cm_in_phase(cm, MFS_PHASE_STARTING))
        return rc ? mfs_err_prefix(err, "metrics") : 0;
    mfs_event_add(cm->paths->events, "cm", "metrics-failed", "%s", err->msg);
    cm->serve = mfs_loop_timer(cm->loop, AGAIN, AGAIN, try_again, cm);
    return cm->serve ? 0 : mfs_err_set(err, -ENOMEM, "out of memory");
}

void mfs_serve_end(struct mfs_cm *cm)
{
    mfs_timer_cancel(cm->serve);
    cm->serve = NULL;
    mfs_httpd_destroy(cm->http);
    mfs_httpd_destroy(cm->ui);
    cm->http = cm->ui = NULL;
    mfs_ui_doctor_destroy(cm->ui_doctor);
    cm->ui_doctor = NULL;
}
