/* libcurl says which descriptors and which time it waits for; the loop tells it what came. */
#include "cm/provider/http.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/buf.h"
#include "base/clock.h"

struct mfs_http {
    struct mfs_loop *loop;
    CURLM *multi;
    struct mfs_timer *timer;
    struct mfs_http_call *first;
};

struct mfs_http_call {
    struct mfs_http *of;
    CURL *easy;
    struct curl_slist *headers;
    struct mfs_buf text;
    char why[CURL_ERROR_SIZE];
    mfs_http_done *done;
    void *arg;
    struct mfs_http_call *next;
};

/* What the loop watches for libcurl. */
struct socket {
    struct mfs_http *of;
    curl_socket_t fd;
    struct mfs_watch *watch;
};

/* ---- the end of a call ----------------------------------------------------------------------- */

void mfs_http_drop(struct mfs_http_call *c)
{
    struct mfs_http_call **at;

    if (!c)
        return;
    at = &c->of->first;
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at) {
        *at = c->next;
        curl_multi_remove_handle(c->of->multi, c->easy);
    }
    curl_easy_cleanup(c->easy);
    curl_slist_free_all(c->headers);
    mfs_buf_fini(&c->text);
    free(c);
}

static int code_of(CURLcode code)
{
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return -ETIMEDOUT;
    case CURLE_OUT_OF_MEMORY:
        return -ENOMEM;
    case CURLE_WRITE_ERROR:
        return -EMSGSIZE;
    default:
        return -EIO;
    }
}

static void finish(struct mfs_http_call *c, CURLcode code)
{
    struct mfs_http_call end = {.done = c->done, .arg = c->arg, .text = c->text};
    struct mfs_err err;
    long status = 0, sent = 0;

    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(c->easy, CURLINFO_REQUEST_SIZE, &sent);
    if (code == CURLE_WRITE_ERROR)
        mfs_err_set(&err, -EMSGSIZE, "the answer is longer than %u MiB", MFS_HTTP_ANSWER_MAX >> 20);
    else if (code)
        mfs_err_set(&err, sent ? code_of(code) : -ENOTCONN, "%s",
                    c->why[0] ? c->why : curl_easy_strerror(code));
    mfs_buf_init(&c->text);
    mfs_http_drop(c);
    if (!code && mfs_buf_append(&end.text, "", 1))
        code = CURLE_OUT_OF_MEMORY, mfs_err_set(&err, -ENOMEM, "out of memory");
    if (code)
        end.done(end.arg, &err, 0, "", 0);
    else
        end.done(end.arg, NULL, status, mfs_buf_data(&end.text), mfs_buf_len(&end.text) - 1);
    mfs_buf_fini(&end.text);
}

/* Each `done` may begin and drop calls. */
static void finish_all(struct mfs_http *h)
{
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(h->multi, &left))) {
        struct mfs_http_call *c = NULL;
        CURLcode code = m->data.result;

        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&c);
        finish(c, code);
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void act(struct mfs_http *h, curl_socket_t fd, int what)
{
    int running;

    curl_multi_socket_action(h->multi, fd, what, &running);
    finish_all(h);
}

static void ready(void *arg, uint32_t events)
{
    const struct socket *s = arg;
    int what = 0;

    if (events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP))
        what |= CURL_CSELECT_IN;
    if (events & EPOLLOUT)
        what |= CURL_CSELECT_OUT;
    if (events & EPOLLERR)
        what |= CURL_CSELECT_ERR;
    act(s->of, s->fd, what);
}

static void fire(void *arg)
{
    struct mfs_http *h = arg;

    h->timer = NULL;
    act(h, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long ms, void *arg)
{
    struct mfs_http *h = arg;

    (void)multi;
    mfs_timer_cancel(h->timer);
    h->timer = ms < 0 ? NULL : mfs_loop_timer(h->loop, ms * MFS_MSEC, 0, fire, h);
    return ms >= 0 && !h->timer ? -1 : 0;
}

static int forget(CURLM *multi, struct socket *s)
{
    if (!s)
        return 0;
    mfs_watch_remove(s->watch);
    curl_multi_assign(multi, s->fd, NULL);
    free(s);
    return 0;
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
    struct socket *s = of_socket;
    struct mfs_http *h = arg;

    (void)easy;
    if (what == CURL_POLL_REMOVE)
        return forget(h->multi, s);
    if (s)
        return mfs_watch_events(s->watch, events) ? -1 : 0;
    s = malloc(sizeof *s);
    if (!s)
        return -1;
    *s = (struct socket){.of = h, .fd = fd};
    s->watch = mfs_loop_watch(h->loop, fd, events, ready, s);
    if (s->watch && !curl_multi_assign(h->multi, fd, s))
        return 0;
    mfs_watch_remove(s->watch);
    free(s);
    return -1;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static size_t take(char *from, size_t size, size_t n, void *arg)
{
    struct mfs_http_call *c = arg;

    (void)size; /* 1, as libcurl promises */
    if (mfs_buf_len(&c->text) + n > MFS_HTTP_ANSWER_MAX || mfs_buf_append(&c->text, from, n))
        return 0;
    return n;
}

static int add_headers(struct mfs_http_call *c, const char *const *header)
{
    struct curl_slist *longer;

    for (; header && *header; header++) {
        longer = curl_slist_append(c->headers, *header);
        if (!longer)
            return -ENOMEM;
        c->headers = longer;
    }
    return 0;
}

/* Of what may fail only for want of memory, or because this libcurl is built without it. */
static CURLcode set_up(struct mfs_http_call *c, const struct mfs_http_request *r)
{
    CURL *e = c->easy;
    CURLcode rc = curl_easy_setopt(e, CURLOPT_URL, r->url);

#define SET(option, value) rc = rc ? rc : curl_easy_setopt(e, option, value)
    SET(CURLOPT_CUSTOMREQUEST, r->method);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)(r->limit / MFS_MSEC));
    SET(CURLOPT_ERRORBUFFER, c->why);
    SET(CURLOPT_WRITEFUNCTION, take);
    SET(CURLOPT_WRITEDATA, c);
    SET(CURLOPT_PRIVATE, c);
    SET(CURLOPT_HTTPHEADER, c->headers);
    if (r->body)
        SET(CURLOPT_COPYPOSTFIELDS, r->body);
    if (r->socket)
        SET(CURLOPT_UNIX_SOCKET_PATH, r->socket);
    if (r->direct)
        SET(CURLOPT_NOPROXY, "*");
    if (r->sign)
        SET(CURLOPT_AWS_SIGV4, r->sign);
    if (r->sign)
        SET(CURLOPT_USERPWD, r->user);
#undef SET
    return rc;
}

struct mfs_http_call *mfs_http_begin(struct mfs_http *h, const struct mfs_http_request *r,
                                     mfs_http_done *done, void *arg, struct mfs_err *err)
{
    struct mfs_http_call *c = calloc(1, sizeof *c);
    CURLcode rc = CURLE_OUT_OF_MEMORY;

    assert(r->limit > 0);
    if (!c) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    *c = (struct mfs_http_call){.of = h, .easy = curl_easy_init(), .done = done, .arg = arg};
    mfs_buf_init(&c->text);
    if (c->easy && !add_headers(c, r->headers))
        rc = set_up(c, r);
    if (!rc && !curl_multi_add_handle(h->multi, c->easy)) {
        c->next = h->first;
        h->first = c;
        return c;
    }
    mfs_err_set(err, rc ? code_of(rc) : -EIO, "%s: %s", r->url,
                rc ? curl_easy_strerror(rc) : "the request can't be made");
    mfs_http_drop(c);
    return NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct mfs_http *mfs_http_create(struct mfs_loop *loop)
{
    struct mfs_http *h = calloc(1, sizeof *h);

    if (!h || curl_global_init(CURL_GLOBAL_DEFAULT)) {
        free(h);
        return NULL;
    }
    h->loop = loop;
    h->multi = curl_multi_init();
    if (!h->multi || curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, set_socket) ||
        curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h) ||
        curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, set_timer) ||
        curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h)) {
        mfs_http_destroy(h);
        return NULL;
    }
    return h;
}

void mfs_http_destroy(struct mfs_http *h)
{
    if (!h)
        return;
    while (h->first)
        mfs_http_drop(h->first);
    curl_multi_cleanup(h->multi); /* closes its connections, which ends their watches */
    mfs_timer_cancel(h->timer);
    free(h);
    curl_global_cleanup();
}
