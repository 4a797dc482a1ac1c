/* A key is kept until it is refused or about to expire. While one is looked for, calls wait in a
 * list; the answer comes by a timer of no time, so that `got` is never called from inside get. */
#include "cm/provider/ec2/keys.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "proto/schema.h"

#define METADATA  "http://169.254.169.254" /* of the instance, by its own link */
#define ROLES     "/latest/meta-data/iam/security-credentials/"
#define STEP_TIME (2 * MFS_SEC) /* where there is no such service nothing answers */
#define EARLY     (5 * 60)      /* s before it expires a key is of no use any more */

struct waiting {
    mfs_ec2_got_key *got;
    void *arg;
    struct waiting *next;
};

/* How the key of the instance's role is asked for. */
enum step { STEP_NONE, STEP_TOKEN, STEP_ROLE, STEP_KEY };

struct mfs_ec2_keys {
    struct mfs_loop *loop;
    struct mfs_http *http;
    struct mfs_aws_key key; /* id "": none */
    struct waiting *first;
    struct mfs_timer *timer;
    enum step step;
    struct mfs_http_call *call;
    char file[160]; /* why the credentials file has none; "": there is no such file */
    char metadata_token[256], role[128];
};

/* ---- texts ----------------------------------------------------------------------------------- */

static bool is_good(const struct mfs_aws_key *key)
{
    return mfs_aws_key_whole(key) &&
           (!key->expires || mfs_clock_real().tv_sec < key->expires - EARLY);
}

static int take_pair(void *arg, const char *name, const char *value, struct mfs_err *err)
{
    struct mfs_aws_key *key = arg;
    struct tm tm = {0};

    (void)err;
    mfs_aws_key_take(key, name, strlen(name), value);
    if (!strcmp(name, "Expiration") && strptime(value, "%Y-%m-%dT%H:%M:%SZ", &tm))
        key->expires = timegm(&tm);
    return 0;
}

int mfs_ec2_key_of_role(const char *text, size_t len, struct mfs_aws_key *key)
{
    struct mfs_err err;

    memset(key, 0, sizeof *key);
    if (mfs_json_pairs(text, len, take_pair, key, &err) || !mfs_aws_key_whole(key))
        return -EPROTO;
    return 0;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void answer(struct mfs_ec2_keys *k, const struct mfs_err *why)
{
    struct waiting *w;

    k->step = STEP_NONE;
    while ((w = k->first)) {
        k->first = w->next;
        w->got(w->arg, why ? NULL : &k->key, why);
        free(w);
    }
}

static void no_key(struct mfs_ec2_keys *k, const char *role)
{
    struct mfs_err err;

    explicit_bzero(&k->key, sizeof k->key);
    mfs_err_set(
        &err, -ENOKEY,
        "there is no key for AWS: neither AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY in "
        "the environment, nor a profile \"%.32s\" in the credentials file%s%s%s, nor a role "
        "of this instance (%.60s)",
        getenv("AWS_PROFILE") ? getenv("AWS_PROFILE") : "default", k->file[0] ? " (" : "", k->file,
        k->file[0] ? ")" : "", role);
    answer(k, &err);
}

/* ---- the role of the instance ---------------------------------------------------------------- */

static void ask(struct mfs_ec2_keys *k);

static void answered(void *arg, const struct mfs_err *why, long status, const char *text,
                     size_t len)
{
    struct mfs_ec2_keys *k = arg;
    char reason[160];

    k->call = NULL;
    if (why || status != 200) {
        mfs_text_format(reason, sizeof reason, "its metadata: status %ld", status);
        no_key(k, why ? why->msg : reason);
        return;
    }
    switch (k->step) {
    case STEP_TOKEN:
        mfs_text_copy(k->metadata_token, sizeof k->metadata_token, text);
        break;
    case STEP_ROLE: /* the first of the lines */
        mfs_text_format(k->role, sizeof k->role, "%.*s", (int)strcspn(text, "\r\n"), text);
        break;
    default:
        if (mfs_ec2_key_of_role(text, len, &k->key))
            no_key(k, "its metadata make no sense");
        else
            answer(k, NULL);
        return;
    }
    k->step++;
    ask(k);
}

static void ask(struct mfs_ec2_keys *k)
{
    const char *base = getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    char url[512], header[300];
    const char *headers[] = {header, NULL};
    struct mfs_http_request r = {
        .method = "GET", .url = url, .headers = headers, .limit = STEP_TIME, .direct = true};
    struct mfs_err err;

    snprintf(header, sizeof header, "X-aws-ec2-metadata-token: %s", k->metadata_token);
    snprintf(url, sizeof url, "%.200s" ROLES "%s", base ? base : METADATA,
             k->step == STEP_KEY ? k->role : "");
    if (k->step == STEP_TOKEN) {
        r.method = "PUT";
        snprintf(header, sizeof header, "X-aws-ec2-metadata-token-ttl-seconds: 300");
        snprintf(url, sizeof url, "%.200s/latest/api/token", base ? base : METADATA);
    }
    k->call = mfs_http_begin(k->http, &r, answered, k, &err);
    if (!k->call)
        no_key(k, err.msg);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void look(void *arg)
{
    const char *disabled = getenv("AWS_EC2_METADATA_DISABLED");
    struct mfs_ec2_keys *k = arg;

    k->timer = NULL;
    if (!k->first || k->step != STEP_NONE)
        return;
    if (is_good(&k->key) || mfs_aws_key_of_environment(&k->key) ||
        mfs_aws_key_of_file(&k->key, k->file, sizeof k->file)) {
        answer(k, NULL);
    } else if (disabled && !strcmp(disabled, "true")) {
        no_key(k, "AWS_EC2_METADATA_DISABLED is true");
    } else {
        k->step = STEP_TOKEN;
        ask(k);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

int mfs_ec2_keys_get(struct mfs_ec2_keys *k, mfs_ec2_got_key *got, void *arg)
{
    struct waiting *w = malloc(sizeof *w), **end = &k->first;

    if (w && !k->timer)
        k->timer = mfs_loop_timer(k->loop, 0, 0, look, k);
    if (!w || !k->timer) {
        free(w);
        return -ENOMEM;
    }
    *w = (struct waiting){.got = got, .arg = arg};
    while (*end)
        end = &(*end)->next;
    *end = w;
    return 0;
}

void mfs_ec2_keys_forget(struct mfs_ec2_keys *k, const void *arg)
{
    for (struct waiting **at = &k->first, *w; (w = *at);) {
        if (w->arg != arg) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        free(w);
    }
}

void mfs_ec2_keys_refused(struct mfs_ec2_keys *k)
{
    explicit_bzero(&k->key, sizeof k->key);
}

struct mfs_ec2_keys *mfs_ec2_keys_create(struct mfs_loop *loop, struct mfs_http *http)
{
    struct mfs_ec2_keys *k = calloc(1, sizeof *k);

    if (k) {
        k->loop = loop;
        k->http = http;
    }
    return k;
}

void mfs_ec2_keys_destroy(struct mfs_ec2_keys *k)
{
    if (!k)
        return;
    while (k->first)
        mfs_ec2_keys_forget(k, k->first->arg);
    mfs_timer_cancel(k->timer);
    mfs_http_drop(k->call);
    explicit_bzero(k, sizeof *k);
    free(k);
}
