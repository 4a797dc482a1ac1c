#include "cm/provider/ec2/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/provider/ec2/keys.h"

#define TRY_TIME     (30 * MFS_SEC) /* for one answer */
#define CONNECT_TIME (15 * MFS_SEC) /* while nothing of a call could be sent */
#define FIRST_WAIT   (500 * MFS_MSEC)
#define WAIT_MOST    (8 * MFS_SEC)

struct mfs_ec2_api {
    struct mfs_loop *loop;
    struct mfs_http *http;
    struct mfs_ec2_keys *keys;
    char url[300], sign[100];
    struct mfs_ec2_call *first;
};

struct mfs_ec2_call {
    struct mfs_ec2_api *of;
    const char *action;
    struct mfs_buf body;
    int64_t until, connect, wait;
    bool renewed; /* the key has been refused once */
    bool sent;    /* a try has reached EC2, or may have */
    bool unsure;  /* one of them may have been done: its answer is not known */
    struct mfs_http_call *http;
    struct mfs_timer *timer;
    mfs_ec2_done *done;
    void *arg;
    struct mfs_ec2_call *next;
};

/* ---- the end --------------------------------------------------------------------------------- */

void mfs_ec2_drop(struct mfs_ec2_call *c)
{
    struct mfs_ec2_call **at;

    if (!c)
        return;
    for (at = &c->of->first; *at != c;)
        at = &(*at)->next;
    *at = c->next;
    mfs_ec2_keys_forget(c->of->keys, c);
    mfs_http_drop(c->http);
    mfs_timer_cancel(c->timer);
    mfs_buf_wipe(&c->body); /* a node's secret */
    free(c);
}

static void finish(struct mfs_ec2_call *c, const struct mfs_err *why,
                   const struct mfs_ec2_answer *a)
{
    mfs_ec2_done *done = c->done;
    void *arg = c->arg;

    mfs_ec2_drop(c);
    done(arg, why, a);
}

/* A refusal is one of this try alone. */
static int code_of(const struct mfs_ec2_call *c, int code)
{
    return c->unsure ? -EIO : code;
}

static void fail(struct mfs_ec2_call *c, int code, const char *why)
{
    const struct mfs_ec2_answer none = {0};
    struct mfs_err err;

    mfs_err_set(&err, code_of(c, code), "%s: %s", c->action, why);
    finish(c, &err, &none);
}

static void fail_to_reach(struct mfs_ec2_call *c, const struct mfs_err *why)
{
    char more[512];

    snprintf(more, sizeof more, "%s: %.140s%s", c->of->url, why->msg,
             c->sent ? "" : " (can this machine reach it, and is --ec2-region right?)");
    fail(c, why->code, more);
}

/* ---- tries ----------------------------------------------------------------------------------- */

static void try(struct mfs_ec2_call *c);

static void again(void *arg)
{
    struct mfs_ec2_call *c = arg;

    c->timer = NULL;
    try(c);
}

/* Between half of the wait and all of it, so that many that were refused do not come together. */
static bool wait(struct mfs_ec2_call *c)
{
    int64_t half = c->wait / 2, until = c->sent ? c->until : c->connect;
    uint32_t any = 0;

    if (mfs_clock_mono() + c->wait >= until)
        return false;
    mfs_random(&any, sizeof any);
    c->timer = mfs_loop_timer(c->of->loop, half + half * (any % 1024) / 1024, 0, again, c);
    c->wait = 2 * c->wait < WAIT_MOST ? 2 * c->wait : WAIT_MOST;
    return c->timer != NULL;
}

static bool key_is_refused(const char *code)
{
    return !strcmp(code, "RequestExpired") || !strcmp(code, "ExpiredToken") ||
           !strcmp(code, "AuthFailure") || !strcmp(code, "InvalidClientTokenId");
}

/* Of an answer that is an error: the call goes on, or ends by it. */
static void refused(struct mfs_ec2_call *c, long status, const struct mfs_ec2_answer *a)
{
    const char *help = mfs_ec2_advice(a->code);
    char why[400];
    struct mfs_err err;

    c->unsure |= mfs_ec2_try_again(status, a->code) && !mfs_ec2_throttled(a->code);
    if (mfs_ec2_try_again(status, a->code) && wait(c)) {
        mfs_debug("ec2", "%s: %s, again", c->action, a->code);
        return;
    }
    if (key_is_refused(a->code) && !c->renewed) {
        c->renewed = true;
        mfs_ec2_keys_refused(c->of->keys);
        try(c);
        return;
    }
    if (a->code[0]) /* EC2's own words may be long, and what helps comes behind them */
        snprintf(why, sizeof why, "%.90s (%s)%s%s", a->message, a->code, *help ? ": " : "", help);
    else
        snprintf(why, sizeof why, "status %ld", status);
    mfs_err_set(&err, code_of(c, -EREMOTEIO), "%s: %s", c->action, why);
    finish(c, &err, a);
}

static void answered(void *arg, const struct mfs_err *why, long status, const char *text,
                     size_t len)
{
    struct mfs_ec2_call *c = arg;
    struct mfs_ec2_answer a;
    struct mfs_err err;
    int rc;

    c->http = NULL;
    c->sent |= !why || why->code != -ENOTCONN;
    if (why) {
        c->unsure |= why->code != -ENOTCONN;
        if (!wait(c))
            fail_to_reach(c, why);
        return;
    }
    rc = mfs_ec2_read(text, len, &a, &err);
    c->unsure |= rc != 0;
    if (rc && !(status >= 500 && wait(c)))
        fail(c, rc, err.msg);
    else if (!rc && status == 200 && !a.code[0])
        finish(c, NULL, &a);
    else if (!rc)
        refused(c, status, &a);
    mfs_ec2_free(&a);
}

static void send_signed(void *arg, const struct mfs_aws_key *key, const struct mfs_err *why)
{
    struct mfs_ec2_call *c = arg;
    char user[sizeof key->id + sizeof key->secret], token[sizeof key->token + 32];
    const char *headers[] = {"Content-Type: application/x-www-form-urlencoded; charset=utf-8",
                             key && key->token[0] ? token : NULL, NULL};
    int64_t left = c->until - mfs_clock_mono();
    struct mfs_http_request r = {.method = "POST",
                                 .url = c->of->url,
                                 .body = mfs_buf_data(&c->body),
                                 .headers = headers,
                                 .sign = c->of->sign,
                                 .user = user,
                                 .limit = left < TRY_TIME ? left : TRY_TIME};
    struct mfs_err err = {0};

    if (!key || left < MFS_MSEC) {
        fail(c, key ? -ETIMEDOUT : why->code, key ? "no answer in time" : why->msg);
        return;
    }
    snprintf(user, sizeof user, "%s:%s", key->id, key->secret);
    snprintf(token, sizeof token, "X-Amz-Security-Token: %s", key->token);
    c->http = mfs_http_begin(c->of->http, &r, answered, c, &err);
    explicit_bzero(user, sizeof user);
    explicit_bzero(token, sizeof token);
    if (!c->http)
        fail(c, err.code, err.msg);
}

static void try(struct mfs_ec2_call *c)
{
    if (mfs_ec2_keys_get(c->of->keys, send_signed, c))
        fail(c, -ENOMEM, "out of memory");
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct mfs_ec2_call *mfs_ec2_begin(struct mfs_ec2_api *api, const char *action,
                                   const struct mfs_buf *form, int64_t limit, mfs_ec2_done *done,
                                   void *arg, struct mfs_err *err)
{
    struct mfs_ec2_call *c = calloc(1, sizeof *c);

    if (!c) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    *c = (struct mfs_ec2_call){.of = api,
                               .action = action,
                               .until = mfs_clock_mono() + limit,
                               .connect =
                                   mfs_clock_mono() + (limit < CONNECT_TIME ? limit : CONNECT_TIME),
                               .wait = FIRST_WAIT,
                               .done = done,
                               .arg = arg,
                               .next = api->first};
    api->first = c;
    mfs_buf_init(&c->body);
    if (!mfs_buf_printf(&c->body, "Action=%s&Version=" MFS_EC2_API, action) &&
        !mfs_buf_append(&c->body, mfs_buf_data(form), mfs_buf_len(form)) &&
        !mfs_buf_append(&c->body, "", 1) && !mfs_ec2_keys_get(api->keys, send_signed, c))
        return c;
    mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_ec2_drop(c);
    return NULL;
}

struct mfs_ec2_api *mfs_ec2_api_create(struct mfs_loop *loop, const char *region,
                                       const char *endpoint)
{
    struct mfs_ec2_api *api = calloc(1, sizeof *api);

    if (!api)
        return NULL;
    api->loop = loop;
    api->http = mfs_http_create(loop);
    api->keys = api->http ? mfs_ec2_keys_create(loop, api->http) : NULL;
    snprintf(api->sign, sizeof api->sign, "aws:amz:%.60s:ec2", region);
    if (endpoint)
        snprintf(api->url, sizeof api->url, "%s/", endpoint);
    else
        snprintf(api->url, sizeof api->url, "https://ec2.%.60s.amazonaws.com%s/", region,
                 !strncmp(region, "cn-", 3) ? ".cn" : "");
    if (api->keys)
        return api;
    mfs_ec2_api_destroy(api);
    return NULL;
}

void mfs_ec2_api_destroy(struct mfs_ec2_api *api)
{
    if (!api)
        return;
    while (api->first)
        mfs_ec2_drop(api->first);
    mfs_ec2_keys_destroy(api->keys);
    mfs_http_destroy(api->http);
    free(api);
}
