#include "stage/remote/http.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "stage/remote/libcurl.h"

#define TRIES      6         /* without getting on */
#define GETS_ON    (1 << 16) /* bytes that count as getting on */
#define FIRST_WAIT (200 * MFS_MSEC)
#define TEXT_MOST  (16U << 20)
#define CONNECT    10L /* s */
#define SILENCE    30L /* s, in which something must come or go */

#define SUM            "x-amz-content-sha256: "
#define SUM_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct
try {
    struct mfs_stage_http_call *call;
    const struct mfs_libcurl *curl;
    CURL *easy;
    uint64_t taken;  /* by the sink */
    uint64_t put;    /* of the body */
    int rc;          /* of the sink, or of reading the body */
    bool unexpected; /* not the range that was asked for */
    char why[CURL_ERROR_SIZE];
};

/* ---- what comes and goes --------------------------------------------------------------------- */

static void keep(const char *line, size_t len, const char *name, char *to, size_t n)
{
    size_t head = strlen(name);
    const char *p = line + head, *end = line + len;

    if (len <= head || strncasecmp(line, name, head) != 0)
        return;
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    mfs_text_format(to, n, "%.*s", (int)(end - p), p);
}

static size_t header(char *line, size_t size, size_t n, void *arg)
{
    struct try *t = arg;
    struct mfs_stage_http_call *c = t->call;
    char text[64] = "", ranges[32] = "";

    (void)size;
    if (n > 5 && !strncmp(line, "HTTP/", 5)) { /* of another answer than those before */
        c->etag[0] = c->range[0] = c->mtime[0] = c->mode[0] = '\0';
        c->modified = 0;
        c->has_length = c->ranges = false;
    }
    keep(line, n, "ETag:", c->etag, sizeof c->etag);
    keep(line, n, "Content-Range:", c->range, sizeof c->range);
    keep(line, n, "x-amz-meta-mtime:", c->mtime, sizeof c->mtime);
    keep(line, n, "x-amz-meta-mode:", c->mode, sizeof c->mode);
    keep(line, n, "x-amz-bucket-region:", c->bucket_region, sizeof c->bucket_region);
    keep(line, n, "Accept-Ranges:", ranges, sizeof ranges);
    c->ranges |= !strcasecmp(ranges, "bytes");
    keep(line, n, "Content-Length:", text, sizeof text);
    if (*text)
        c->has_length = !mfs_text_u64(text, &c->length);
    *text = '\0';
    keep(line, n, "Last-Modified:", text, sizeof text);
    if (*text)
        c->modified = t->curl->getdate(text, NULL);
    return n;
}

/* Is what comes the range that was asked for? */
static bool is_right(const struct mfs_stage_http_call *c)
{
    uint64_t lo;

    return !c->ranged ||
           (c->status == 206 && sscanf(c->range, "bytes %" SCNu64 "-", &lo) == 1 && lo == c->lo) ||
           (c->status == 200 && c->lo == 0);
}

static size_t take(char *p, size_t size, size_t n, void *arg)
{
    struct try *t = arg;
    struct mfs_stage_http_call *c = t->call;

    (void)size;
    t->curl->getinfo(t->easy, CURLINFO_RESPONSE_CODE, &c->status);
    if (c->status / 100 != 2 || !c->sink) {
        if (mfs_buf_len(&c->text) + n > TEXT_MOST)
            t->rc = -EMSGSIZE;
        else
            t->rc = mfs_buf_append(&c->text, p, n);
        return t->rc ? 0 : n;
    }
    t->unexpected = !is_right(c);
    if (t->unexpected)
        return 0;
    if (c->ranged && n > c->hi - c->lo - t->taken)
        t->rc = -EMSGSIZE;
    else
        t->rc = c->sink(c->arg, p, n);
    t->taken += t->rc ? 0 : n;
    return t->rc ? 0 : n;
}

static size_t give(char *to, size_t size, size_t n, void *arg)
{
    struct try *t = arg;
    const struct mfs_stage_http_call *c = t->call;
    uint64_t left = c->body_len - t->put;
    ssize_t got;

    n = size * n < left ? size * n : (size_t)left;
    got = n ? pread(c->body, to, n, (off_t)(c->body_at + t->put)) : 0;
    if (got < 0 || (n && !got)) {
        t->rc = got < 0 ? -errno : -ENODATA;
        return CURL_READFUNC_ABORT;
    }
    t->put += (uint64_t)got;
    return (size_t)got;
}

/* Where a redirection or another try has it sent again. */
static int rewind_body(void *arg, curl_off_t offset, int origin)
{
    struct try *t = arg;

    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    t->put = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static int watch(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct try *t = arg;

    (void)a, (void)b, (void)c, (void)d;
    return t->call->stop && *t->call->stop;
}

/* ---- a try ----------------------------------------------------------------------------------- */

static struct curl_slist *headers_of(const struct try *t)
{
    const struct mfs_stage_http_call *c = t->call;
    char token[sizeof c->key->token + 32];
    struct curl_slist *list = NULL;
    bool summed = false;

    for (int i = 0; i < MFS_STAGE_HEADERS; i++) {
        if (!c->header[i])
            continue;
        list = t->curl->slist_append(list, c->header[i]);
        summed |= !strncmp(c->header[i], SUM, strlen(SUM));
    }
    if (c->key && !summed) /* which S3 wants to see, and libcurl 7.88 only signs */
        list = t->curl->slist_append(list, SUM SUM_OF_NOTHING);
    if (c->key && c->key->token[0]) {
        snprintf(token, sizeof token, "x-amz-security-token: %s", c->key->token);
        list = t->curl->slist_append(list, token);
        explicit_bzero(token, sizeof token);
    }
    return list;
}

static CURLcode sign(const struct try *t)
{
    const struct mfs_stage_http_call *c = t->call;
    char how[100], user[sizeof c->key->id + sizeof c->key->secret];
    CURLcode rc;

    snprintf(how, sizeof how, "aws:amz:%s:s3", c->region);
    snprintf(user, sizeof user, "%s:%s", c->key->id, c->key->secret);
    rc = t->curl->setopt(t->easy, CURLOPT_AWS_SIGV4, how);
    rc = rc ? rc : t->curl->setopt(t->easy, CURLOPT_USERPWD, user);
    explicit_bzero(user, sizeof user);
    return rc;
}

static CURLcode set_up(struct try *t, struct curl_slist *headers)
{
    const struct mfs_stage_http_call *c = t->call;
    char range[64];
    CURLcode rc = t->curl->setopt(t->easy, CURLOPT_URL, c->url);

#define SET(option, value) rc = rc ? rc : t->curl->setopt(t->easy, option, value)
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR,
        strncasecmp(c->url, "https:", 6) == 0 ? "https" : "http,https");
    SET(CURLOPT_FOLLOWLOCATION, c->key ? 0L : 1L); /* a signature is for one host */
    SET(CURLOPT_MAXREDIRS, 10L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_CONNECTTIMEOUT, CONNECT);
    SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
    SET(CURLOPT_LOW_SPEED_TIME, SILENCE);
    SET(CURLOPT_BUFFERSIZE, 512L * 1024);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, 512L * 1024);
    SET(CURLOPT_EXPECT_100_TIMEOUT_MS, 100L);
    SET(CURLOPT_ERRORBUFFER, t->why);
    SET(CURLOPT_HEADERFUNCTION, header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, take);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, watch);
    SET(CURLOPT_XFERINFODATA, t);
    SET(CURLOPT_HTTPHEADER, headers);
    if (!strcmp(c->method, "HEAD")) {
        SET(CURLOPT_NOBODY, 1L);
    } else if (!strcmp(c->method, "PUT")) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)c->body_len);
        SET(CURLOPT_READFUNCTION, give);
        SET(CURLOPT_READDATA, t);
        SET(CURLOPT_SEEKFUNCTION, rewind_body);
        SET(CURLOPT_SEEKDATA, t);
    } else if (c->post) {
        SET(CURLOPT_POSTFIELDSIZE, (long)strlen(c->post));
        SET(CURLOPT_POSTFIELDS, c->post);
    } else if (strcmp(c->method, "GET") != 0) {
        SET(CURLOPT_CUSTOMREQUEST, c->method);
    }
    if (c->ranged && (c->lo || c->hi != UINT64_MAX)) {
        snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, c->lo, c->hi - 1);
        SET(CURLOPT_RANGE, range);
    }
    if (!rc && c->key)
        rc = sign(t);
#undef SET
    return rc;
}

/* What an answer, or its want, means. `again`: another try may have another one. */
static int code_of(const struct try *t, CURLcode code)
{
    const struct mfs_stage_http_call *c = t->call;
    long status = c->status;

    if (c->stop && *c->stop)
        return -EINTR;
    if (t->rc)
        return t->rc;
    if (t->unexpected)
        return -ESTALE;
    if (code == CURLE_OUT_OF_MEMORY)
        return -ENOMEM;
    if (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
        code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_TOO_MANY_REDIRECTS)
        return -EIO;
    if (code || status >= 500 || status == 429 || status == 408)
        return -EAGAIN;
    if (status / 100 == 2)
        return c->sink && c->ranged && c->hi != UINT64_MAX && t->taken < c->hi - c->lo ? -EAGAIN
                                                                                       : 0;
    if (status == 404 || status == 410)
        return -ENOENT;
    if (status == 401 || status == 403)
        return -EACCES;
    return status == 412 || status == 416 ? -ESTALE : -EIO;
}

/* Of S3's errors: what is between <NAME> and </NAME>. */
static void element(const struct mfs_buf *text, const char *name, char *out, size_t n)
{
    char begin[32];
    const char *at;

    *out = '\0';
    snprintf(begin, sizeof begin, "<%s>", name);
    at = mfs_buf_len(text) ? memmem(mfs_buf_data(text), mfs_buf_len(text), begin, strlen(begin))
                           : NULL;
    if (at) {
        const char *end = mfs_buf_data(text) + mfs_buf_len(text), *stop;

        at += strlen(begin);
        stop = memchr(at, '<', (size_t)(end - at));
        if (stop)
            mfs_text_format(out, n, "%.*s", (int)(stop - at), at);
    }
}

static const char *advice(const struct mfs_stage_http_call *c, const char *code, char *out,
                          size_t n)
{
    char region[40];

    element(&c->text, "Region", region, sizeof region);
    if (c->key && (c->bucket_region[0] || *region) &&
        strcmp(c->bucket_region[0] ? c->bucket_region : region, c->region) != 0)
        snprintf(out, n, "; the bucket is in another region: set AWS_REGION=%s",
                 c->bucket_region[0] ? c->bucket_region : region);
    else if (c->key && (!strcmp(code, "SignatureDoesNotMatch") ||
                        !strcmp(code, "InvalidAccessKeyId") || !strcmp(code, "ExpiredToken")))
        snprintf(out, n, "; is the key right (AWS_ACCESS_KEY_ID, or the credentials file)?");
    else
        *out = '\0';
    return out;
}

static void explain(const struct try *t, CURLcode code, int rc, struct mfs_err *err)
{
    const struct mfs_stage_http_call *c = t->call;
    char name[64], message[200], help[120];

    element(&c->text, "Code", name, sizeof name);
    element(&c->text, "Message", message, sizeof message);
    if (rc == -ESTALE)
        mfs_err_set(err, rc, "is another one than before: run the same again");
    else if (rc == -EMSGSIZE)
        mfs_err_set(err, rc, "the answer is longer than it should be");
    else if (t->rc)
        mfs_err_set(err, rc, "%s", strerror(-rc));
    else if (code)
        mfs_err_set(err, rc, "%s", t->why[0] ? t->why : t->curl->strerror(code));
    else if (c->status / 100 == 2)
        mfs_err_set(err, rc, "the answer is shorter than it should be");
    else
        mfs_err_set(err, rc, "status %ld%s%s%s%s%s", c->status, *name ? ", " : "", name,
                    *message ? ": " : "", message, advice(c, name, help, sizeof help));
}

static int try_once(struct try *t, struct mfs_err *err)
{
    struct mfs_stage_http_call *c = t->call;
    struct curl_slist *headers = headers_of(t);
    CURLcode code;
    int rc;

    t->taken = t->put = 0;
    t->rc = 0;
    t->unexpected = false;
    t->why[0] = '\0';
    c->status = 0;
    mfs_buf_fini(&c->text);
    mfs_buf_init(&c->text);
    t->easy = mfs_libcurl_handle(t->curl);
    code = t->easy ? set_up(t, headers) : CURLE_OUT_OF_MEMORY;
    if (!code)
        code = t->curl->perform(t->easy);
    if (t->easy)
        t->curl->getinfo(t->easy, CURLINFO_RESPONSE_CODE, &c->status);
    rc = code_of(t, code);
    if (rc)
        explain(t, code, rc, err);
    if (t->easy)
        t->curl->reset(t->easy); /* it points to what ends here */
    t->curl->slist_free(headers);
    return rc;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Between half of the wait and all of it. False: it was stopped. */
static bool pause_before(const struct mfs_stage_http_call *c, int64_t wait)
{
    uint32_t any = 0;
    int64_t until;

    mfs_random(&any, sizeof any);
    until = mfs_clock_mono() + wait / 2 + wait / 2 * (any % 1024) / 1024;
    while (mfs_clock_mono() < until) {
        if (c->stop && *c->stop)
            return false;
        mfs_clock_sleep(20 * MFS_MSEC);
    }
    return true;
}

/* Where the next try begins. */
static int go_on(struct mfs_stage_http_call *c, uint64_t taken)
{
    if (!c->sink || !taken)
        return 0;
    if (!c->ranged || !c->resumes)
        return c->sink(c->arg, NULL, 0);
    c->lo += taken;
    return 0;
}

int mfs_stage_http(struct mfs_stage_http_call *c, struct mfs_err *err)
{
    struct try t = {.call = c, .curl = mfs_libcurl(err)};
    uint64_t gone = 0;
    int rc;

    if (!t.curl)
        return err->code;
    for (int tries = 1;; tries++) {
        rc = try_once(&t, err);
        if (rc != -EAGAIN)
            return rc;
        gone += t.taken;
        if (gone >= GETS_ON)
            gone = 0, tries = 1;
        rc = go_on(c, t.taken);
        if (rc)
            return mfs_err_set(err, rc, "%s", strerror(-rc));
        if (tries == TRIES)
            return mfs_err_prefix(err, "%d tries", TRIES);
        if (!pause_before(c, FIRST_WAIT << (tries - 1)))
            return mfs_err_set(err, -EINTR, "interrupted");
    }
}

int mfs_stage_encode(struct mfs_buf *to, const char *text, bool path)
{
    int rc = 0;

    for (; *text && !rc; text++) {
        bool plain =
            isalnum((unsigned char)*text) || strchr("-_.~", *text) || (path && *text == '/');

        rc = plain ? mfs_buf_append(to, text, 1)
                   : mfs_buf_printf(to, "%%%02X", (unsigned)(unsigned char)*text);
    }
    return rc;
}
