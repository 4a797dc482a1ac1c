/* A call waits until the version is known, which the first of them has found out: of
 * /slurm/v0.0.45/ping, …44, … the first that is there counts, whatever it says of slurmctld, until
 * slurmrestd says that it is there no more. */
#include "cm/provider/slurm/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/provider/http.h"
#include "cm/provider/slurm/rest_text.h"
#include "cm/provider/slurm/token.h"

#define PROBE_TIME (5 * MFS_SEC) /* for each version */
#define UNIX       "unix:"

struct mfs_slurm_link {
    struct mfs_loop *loop;
    struct mfs_http *http;
    struct mfs_slurm_token *token;
    char url[300], socket[108]; /* socket "": by TCP */
    char shown[300];            /* as it was given */
    int version;                /* 0: not known */
    int probing;                /* this one, now; 0: none */
    bool renewed;               /* the token, in this search for the version */
    struct mfs_http_call *probe;
    struct mfs_slurm_call *first;
    struct mfs_timer *soon; /* to begin what waits, or to end it, from the loop */
    struct mfs_err failure; /* of the search; code 0: none */
};

struct mfs_slurm_call {
    struct mfs_slurm_link *of;
    struct mfs_slurm_request request;
    char path[64];
    int64_t until;
    bool renewed; /* the token has been refused once */
    bool doomed;  /* the version could not be found out */
    bool sent;    /* it may have been done */
    struct mfs_http_call *http;
    mfs_slurm_link_done *done;
    void *arg;
    struct mfs_slurm_call *next;
};

static void search(struct mfs_slurm_link *l);

/* ---- the end --------------------------------------------------------------------------------- */

void mfs_slurm_link_drop(struct mfs_slurm_call *c)
{
    struct mfs_slurm_call **at;

    if (!c)
        return;
    for (at = &c->of->first; *at != c;)
        at = &(*at)->next;
    *at = c->next;
    mfs_http_drop(c->http);
    free(c);
}

static void finish(struct mfs_slurm_call *c, const struct mfs_err *why, const char *text,
                   size_t len)
{
    mfs_slurm_link_done *done = c->done;
    void *arg = c->arg;

    mfs_slurm_link_drop(c);
    done(arg, why, text, len);
}

static void fail(struct mfs_slurm_call *c, const struct mfs_err *why)
{
    finish(c, why, "", 0);
}

/* ---- one request ----------------------------------------------------------------------------- */

static struct mfs_http_call *request(struct mfs_slurm_link *l, const char *method, int version,
                                     const char *path, const char *body, int64_t limit,
                                     mfs_http_done *done, void *arg, struct mfs_err *err)
{
    const char *token = mfs_slurm_token_text(l->token);
    const char *user = mfs_slurm_token_user(l->token);
    char url[400], token_line[MFS_SLURM_TOKEN_MAX + 32], user_line[100];
    const char *headers[] = {"Content-Type: application/json", "Accept: application/json",
                             token_line, user_line, NULL};
    const struct mfs_http_request r = {.method = method,
                                       .url = url,
                                       .socket = l->socket[0] ? l->socket : NULL,
                                       .body = body,
                                       .headers = headers,
                                       .limit = limit,
                                       .direct = true};
    struct mfs_http_call *call;

    snprintf(url, sizeof url, "%s/slurm/v0.0.%d/%s", l->url, version, path);
    snprintf(token_line, sizeof token_line, "X-SLURM-USER-TOKEN: %s", token);
    snprintf(user_line, sizeof user_line, "X-SLURM-USER-NAME: %s", user);
    headers[2] = token[0] ? token_line : NULL;
    headers[3] = user[0] ? user_line : NULL;
    call = mfs_http_begin(l->http, &r, done, arg, err);
    explicit_bzero(token_line, sizeof token_line);
    return call;
}

static void refused_token(const struct mfs_slurm_link *l, struct mfs_err *err)
{
    mfs_err_set(err, -EACCES, "slurmrestd at %s refuses the token, which may have ended; %s",
                l->shown, mfs_slurm_token_advice(l->token));
}

/* slurmrestd before 23.11 has no word for a token that slurmctld refuses. */
static bool is_refused(const struct mfs_slurm_link *l, long status)
{
    return status == 401 || status == 511 ||
           (status >= 400 && status != 404 && mfs_slurm_token_has_ended(l->token));
}

/* Answers of a web server that is not slurmrestd, or has an error in itself, are no JSON. */
static bool is_json(const char *text, size_t len)
{
    return len && text[strspn(text, " \t\r\n")] == '{';
}

/* An error that slurmrestd tells is an answer; one of what stands before it says nothing of jobs.
 */
static bool is_answer(long status, const char *text, size_t len)
{
    struct mfs_slurm_answer a;
    struct mfs_err err;

    return is_json(text, len) &&
           (status < 400 || (!mfs_slurm_rest_read(text, len, NULL, NULL, &a, &err) && a.error[0]));
}

static void not_slurm(const struct mfs_slurm_link *l, long status, struct mfs_err *err)
{
    mfs_err_set(err, -EPROTO, "what answers at %s is not slurmrestd, or has failed: status %ld",
                l->shown, status);
}

static void answered(void *arg, const struct mfs_err *why, long status, const char *text,
                     size_t len);

static void try(struct mfs_slurm_call *c)
{
    int64_t left = c->until - mfs_clock_mono();
    struct mfs_err err;
    struct mfs_buf body;
    int rc = 0;

    mfs_buf_init(&body);
    if (c->request.body)
        rc = c->request.body(c->arg, c->of->version, &body);
    rc = rc || !c->request.body ? rc : mfs_buf_append(&body, "", 1);
    if (rc)
        mfs_err_set(&err, rc, "%s", strerror(-rc));
    else if (left <= MFS_MSEC)
        mfs_err_set(&err, -ETIMEDOUT, "slurmrestd at %s has not answered in time", c->of->shown);
    else
        c->http = request(c->of, c->request.method, c->of->version, c->path, mfs_buf_data(&body),
                          left, answered, c, &err);
    c->sent |= c->http != NULL;
    mfs_buf_wipe(&body);
    if (!c->http)
        fail(c, &err);
}

static void answered(void *arg, const struct mfs_err *why, long status, const char *text,
                     size_t len)
{
    struct mfs_slurm_call *c = arg;
    struct mfs_slurm_link *l = c->of;
    struct mfs_err err;

    c->http = NULL;
    if (why) {
        mfs_err_set(&err, why->code, "slurmrestd at %s: %s", l->shown, why->msg);
    } else if (is_refused(l, status)) {
        if (!c->renewed && mfs_slurm_token_refused(l->token)) {
            c->renewed = true;
            try(c);
            return;
        }
        refused_token(l, &err);
    } else if (is_answer(status, text, len)) {
        finish(c, NULL, text, len);
        return;
    } else {
        if (status == 404)
            l->version = 0; /* another slurmrestd, which is asked anew next time */
        not_slurm(l, status, &err);
    }
    fail(c, &err);
}

/* ---- the version ----------------------------------------------------------------------------- */

static struct mfs_slurm_call *next_waiting(const struct mfs_slurm_link *l, bool doomed)
{
    struct mfs_slurm_call *c = l->first;

    while (c && (c->http || c->doomed != doomed))
        c = c->next;
    return c;
}

/* Each `done` may begin and drop calls: those that come now wait for the next search. */
static void fail_all(struct mfs_slurm_link *l)
{
    const struct mfs_err why = l->failure;
    struct mfs_slurm_call *c;

    l->failure.code = 0;
    for (c = l->first; c; c = c->next)
        c->doomed = !c->http;
    while ((c = next_waiting(l, true))) {
        struct mfs_err err = why;

        if (!c->sent && err.code != -EACCES)
            err.code = -ENOTCONN;
        fail(c, &err);
    }
}

static void begin_all(void *arg)
{
    struct mfs_slurm_link *l = arg;
    struct mfs_slurm_call *c;

    l->soon = NULL;
    if (l->failure.code) {
        fail_all(l);
        return;
    }
    if (!l->version) {
        search(l);
        return;
    }
    while ((c = next_waiting(l, false)))
        try(c);
}

static void soon(struct mfs_slurm_link *l)
{
    if (!l->soon && !l->probing)
        l->soon = mfs_loop_timer(l->loop, 0, 0, begin_all, l);
}

static void found(struct mfs_slurm_link *l, const struct mfs_err *why)
{
    if (why)
        l->failure = *why;
    else
        l->version = l->probing;
    l->probing = 0;
    if (!why)
        mfs_info("slurm", "slurmrestd at %s speaks v0.0.%d", l->shown, l->version);
    begin_all(l);
}

static void probe(struct mfs_slurm_link *l);

static void probed(void *arg, const struct mfs_err *why, long status, const char *text, size_t len)
{
    struct mfs_slurm_link *l = arg;
    struct mfs_err err;

    l->probe = NULL;
    if (!why && status == 404 && !is_answer(status, text, len)) {
        l->probing--;
        probe(l);
        return;
    }
    if (!why && status == 401 && !l->renewed && mfs_slurm_token_refused(l->token)) {
        l->renewed = true;
        probe(l);
        return;
    }
    if (why)
        mfs_err_set(&err, why->code, "slurmrestd at %s: %s", l->shown, why->msg);
    else if (status == 401)
        refused_token(l, &err);
    else if (!is_answer(status, text, len))
        not_slurm(l, status, &err);
    found(l, why || status == 401 || !is_answer(status, text, len) ? &err : NULL);
}

static void probe(struct mfs_slurm_link *l)
{
    struct mfs_err err;

    if (l->probing < MFS_SLURM_API_FIRST)
        mfs_err_set(&err, -EPROTO,
                    "slurmrestd at %s speaks none of the versions v0.0.%d to v0.0.%d", l->shown,
                    MFS_SLURM_API_FIRST, MFS_SLURM_API_LAST);
    else
        l->probe = request(l, "GET", l->probing, "ping", NULL, PROBE_TIME, probed, l, &err);
    if (!l->probe)
        found(l, &err);
}

static void search(struct mfs_slurm_link *l)
{
    l->probing = MFS_SLURM_API_LAST;
    l->renewed = false;
    probe(l);
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct mfs_slurm_call *mfs_slurm_link_begin(struct mfs_slurm_link *l,
                                            const struct mfs_slurm_request *r,
                                            mfs_slurm_link_done *done, void *arg,
                                            struct mfs_err *err)
{
    struct mfs_slurm_call *c = calloc(1, sizeof *c);

    if (!c) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    *c = (struct mfs_slurm_call){.of = l,
                                 .request = *r,
                                 .until = mfs_clock_mono() + r->limit,
                                 .done = done,
                                 .arg = arg,
                                 .next = l->first};
    l->first = c;
    soon(l);
    if (!mfs_text_copy(c->path, sizeof c->path, r->path) && (l->soon || l->probing))
        return c;
    mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_slurm_link_drop(c);
    return NULL;
}

int mfs_slurm_link_version(const struct mfs_slurm_link *l)
{
    return l->version;
}

int mfs_slurm_link_check(const char *url, struct mfs_err *err)
{
    if (!strncmp(url, UNIX, strlen(UNIX)) && url[strlen(UNIX)] == '/') {
        if (strlen(url) - strlen(UNIX) >= sizeof((struct mfs_slurm_link *)0)->socket)
            return mfs_err_set(err, -EINVAL, "slurm-rest: the socket's path is too long");
        return 0;
    }
    if ((strncmp(url, "http://", 7) && strncmp(url, "https://", 8)) ||
        url[strcspn(url, " \t\r\n@?#")] || strlen(url) >= sizeof((struct mfs_slurm_link *)0)->url)
        return mfs_err_set(err, -EINVAL,
                           "slurm-rest: give http://HOST:PORT, https://HOST:PORT or unix:/PATH");
    return 0;
}

struct mfs_slurm_link *mfs_slurm_link_create(struct mfs_loop *loop, const char *url,
                                             const char *token_file, struct mfs_err *err)
{
    struct mfs_slurm_link *l = calloc(1, sizeof *l);
    bool by_socket = !strncmp(url, UNIX, strlen(UNIX));

    if (!l) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    l->loop = loop;
    mfs_text_copy(l->shown, sizeof l->shown, url);
    mfs_text_copy(l->url, sizeof l->url, by_socket ? "http://localhost" : url);
    if (l->url[0] && l->url[strlen(l->url) - 1] == '/')
        l->url[strlen(l->url) - 1] = '\0';
    if (by_socket)
        mfs_text_copy(l->socket, sizeof l->socket, url + strlen(UNIX));
    l->http = mfs_http_create(loop);
    if (!l->http)
        mfs_err_set(err, -ENOMEM, "out of memory");
    else
        l->token = mfs_slurm_token_create(token_file, err);
    if (l->token)
        return l;
    mfs_slurm_link_destroy(l);
    return NULL;
}

void mfs_slurm_link_destroy(struct mfs_slurm_link *l)
{
    if (!l)
        return;
    while (l->first)
        mfs_slurm_link_drop(l->first);
    mfs_http_drop(l->probe);
    mfs_timer_cancel(l->soon);
    mfs_slurm_token_destroy(l->token);
    mfs_http_destroy(l->http);
    free(l);
}
