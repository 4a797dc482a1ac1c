#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "stage/remote/impl.h"

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

bool mfs_stage_is_url(const char *text)
{
    return begins(text, "http://") || begins(text, "https://") || begins(text, "s3://");
}

bool mfs_stage_is_prefix(const char *text)
{
    return begins(text, "s3://") &&
           (text[strlen(text) - 1] == '/' || !strchr(text + strlen("s3://"), '/'));
}

/* -1: there are no two digits. */
static int byte_of(const char *two)
{
    unsigned char byte;
    char digits[3] = {two[0], two[0] ? two[1] : '\0', '\0'};

    return isxdigit((unsigned char)digits[0]) && isxdigit((unsigned char)digits[1]) &&
                   !mfs_text_unhex(digits, &byte, 1)
               ? byte
               : -1;
}

const char *mfs_stage_url_name(const char *url, char *out, size_t n)
{
    bool s3 = begins(url, "s3://");
    size_t len = s3 ? strlen(url) : strcspn(url, "?#"), at = 0;
    const char *path = strchr(strstr(url, "://") + 3, '/'), *p = url + len;

    if (!path || path > p)
        return NULL;
    while (p > path && p[-1] != '/')
        p--;
    while (p < url + len && at + 1 < n) {
        int byte = !s3 && *p == '%' ? byte_of(p + 1) : -1;

        out[at++] = byte < 0 ? *p : (char)byte;
        p += byte < 0 ? 1 : 3;
    }
    out[at] = '\0';
    if (p < url + len || !at || strlen(out) != at || strchr(out, '/') || !strcmp(out, ".") ||
        !strcmp(out, ".."))
        return NULL;
    return out;
}

/* ---- S3 -------------------------------------------------------------------------------------- */

static const char *first_of(const char *a, const char *b, const char *otherwise)
{
    const char *x = getenv(a), *y = getenv(b);

    return x && *x ? x : y && *y ? y : otherwise;
}

static bool needs_key(const struct mfs_stage_plan *plan)
{
    bool any = begins(plan->target, "s3://");

    for (uint32_t i = 0; i < plan->list->n && !any; i++)
        any = begins(plan->list->entry[i].from, "s3://");
    return any;
}

int mfs_stage_remote_create(struct mfs_stage_remote **to, const struct mfs_stage_plan *plan,
                            struct mfs_err *err)
{
    struct mfs_stage_remote *r = calloc(1, sizeof *r);
    char why[160];

    *to = r;
    if (!r)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    r->has_key = needs_key(plan);
    if (!r->has_key)
        return 0;
    if (mfs_text_copy(r->region, sizeof r->region,
                      first_of("AWS_REGION", "AWS_DEFAULT_REGION", "us-east-1")) ||
        mfs_text_copy(r->endpoint, sizeof r->endpoint,
                      first_of("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "")))
        return mfs_err_set(err, -EINVAL, "AWS_REGION or AWS_ENDPOINT_URL is too long");
    if (r->endpoint[0] && r->endpoint[strlen(r->endpoint) - 1] == '/')
        r->endpoint[strlen(r->endpoint) - 1] = '\0';
    if (mfs_aws_key_of_environment(&r->key) || mfs_aws_key_of_file(&r->key, why, sizeof why))
        return 0;
    return mfs_err_set(err, -ENOKEY,
                       "there is no key for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                       "or have them in ~/.aws/credentials%s%s%s",
                       *why ? " (" : "", why, *why ? ")" : "");
}

void mfs_stage_remote_destroy(struct mfs_stage_remote *r)
{
    if (!r)
        return;
    explicit_bzero(r, sizeof *r);
    free(r);
}

/* A bucket's own host, but for names that no certificate has, and other addresses than AWS'. */
static int put_bucket(const struct mfs_stage_remote *r, const char *bucket, size_t len,
                      struct mfs_buf *out)
{
    if (r->endpoint[0])
        return mfs_buf_printf(out, "%s/%.*s", r->endpoint, (int)len, bucket);
    if (memchr(bucket, '.', len))
        return mfs_buf_printf(out, "https://s3.%s.amazonaws.com/%.*s", r->region, (int)len, bucket);
    return mfs_buf_printf(out, "https://%.*s.s3.%s.amazonaws.com", (int)len, bucket, r->region);
}

static bool is_bucket(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr(".-_", name[i]))
            return false;
    return len > 0;
}

int mfs_stage_url(const struct mfs_stage_remote *r, const char *url, const char *more,
                  const char *query, struct mfs_buf *out)
{
    const char *rest = url, *bucket = url + strlen("s3://");
    int rc = 0;

    if (begins(url, "s3://")) {
        size_t len = strcspn(bucket, "/");

        if (!is_bucket(bucket, len))
            return -EINVAL;
        rest = bucket + len;
        rc = put_bucket(r, bucket, len, out);
        rc = rc ? rc : mfs_stage_encode(out, *rest ? rest : "/", true);
    } else {
        rc = mfs_buf_append(out, rest, strlen(rest));
    }
    if (!rc && *more && mfs_buf_data(out)[mfs_buf_len(out) - 1] != '/')
        rc = mfs_buf_append(out, "/", 1);
    rc = rc ? rc : mfs_stage_encode(out, more, true);
    rc = rc ? rc : mfs_buf_printf(out, "%s%s", *query ? "?" : "", query);
    return rc ? rc : mfs_buf_append(out, "", 1);
}

struct mfs_stage_http_call mfs_stage_call_of(const struct mfs_stage *s, const char *method,
                                             const char *url, const struct mfs_buf *http)
{
    bool s3 = begins(url, "s3://");
    struct mfs_stage_http_call c = {.method = method,
                                    .url = mfs_buf_data(http),
                                    .key = s3 ? &s->remote->key : NULL,
                                    .region = s3 ? s->remote->region : NULL,
                                    .stop = s->plan->stop,
                                    .body = -1};

    mfs_buf_init(&c.text);
    return c;
}

int mfs_stage_mtime_parse(const char *text, struct timespec *t)
{
    char digits[10] = "000000000";
    const char *dot = strchr(text, '.');
    char *end;

    errno = 0;
    t->tv_sec = strtoll(text, &end, 10);
    if (errno || end == text || (*end && *end != '.'))
        return -EINVAL;
    for (size_t i = 0; dot && i < 9 && isdigit((unsigned char)dot[1 + i]); i++)
        digits[i] = dot[1 + i];
    t->tv_nsec = strtol(digits, NULL, 10);
    return 0;
}
