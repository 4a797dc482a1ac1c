/* libmicrohttpd inside our event loop. It does all of HTTP; here is who may read what, and what
 * bounds that: libmicrohttpd knows how long a connection was silent, not how long it takes. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crypto/mac.h"
#include "base/inet.h"
#include "base/log.h"
#include "base/text.h"
#include "http/httpd_impl.h"
#include "http/listen.h"

#define AREA          "http"
#define CONNECTIONS   64U
#define OF_AN_ADDRESS 16U
#define HEAD_MOST     (16U << 10)
#define SILENCE       10U            /* s */
#define REQUEST_TIME  (10 * MFS_SEC) /* until a request has come */
#define KEPT          (MFS_SEC / 2)
#define KEPT_TIMES    10 /* as long as it took to make, at least */
/* A page runs what this program serves, shows and asks nothing else, and is in no other's frame. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " \
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

#define LOOK MFS_SEC
#define REST (MFS_SEC / 10)

/* The content of an answer, for as long as somebody reads it. */
struct content {
    struct mfs_httpd *http;
    struct mfs_buf text;
};

int mfs_httpd_token(const struct mfs_secret *secret, char token[MFS_HTTPD_TOKEN_TEXT])
{
    const char *const fields[] = {"memefs1", "http token"};

    static_assert(MFS_HTTPD_TOKEN_TEXT == MFS_MAC_TEXT, "a token is a MAC");
    return mfs_mac(secret->bytes, secret->len, fields, 2, token);
}

int mfs_httpd_write_token(const struct mfs_secret *secret, char token[MFS_HTTPD_TOKEN_TEXT])
{
    const char *const fields[] = {"memefs1", "http changes"};

    return mfs_mac(secret->bytes, secret->len, fields, 2, token);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void drop_content(void *arg)
{
    struct content *c = arg;

    c->http->held -= mfs_buf_len(&c->text);
    mfs_buf_fini(&c->text);
    free(c);
}

void mfs_httpd_head(struct MHD_Response *r, const char *type)
{
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(r, "Content-Security-Policy", POLICY);
}

/* Takes the text over. NULL: no memory. */
static struct MHD_Response *respond(struct mfs_httpd *h, struct mfs_buf *text, const char *type)
{
    struct content *c = malloc(sizeof *c);
    struct MHD_Response *r;

    if (!c) {
        mfs_buf_fini(text);
        return NULL;
    }
    *c = (struct content){h, *text};
    h->held += mfs_buf_len(text);
    r = MHD_create_response_from_buffer_with_free_callback_cls(
        mfs_buf_len(&c->text), mfs_buf_data(&c->text), drop_content, c);
    if (!r) {
        drop_content(c);
        return NULL;
    }
    mfs_httpd_head(r, type);
    return r;
}

/* An answer of one line, with one more header (NULL: none). */
enum MHD_Result mfs_httpd_refuse(struct mfs_httpd *h, struct MHD_Connection *c, unsigned status,
                                 const char *header, const char *value, const char *why)
{
    struct MHD_Response *r;
    enum MHD_Result done;
    struct mfs_buf text;

    mfs_buf_init(&text);
    mfs_buf_printf(&text, "%s\n", why);
    r = respond(h, &text, "text/plain; charset=utf-8");
    if (!r)
        return MHD_NO;
    if (header)
        MHD_add_response_header(r, header, value);
    done = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return done;
}

static void forget(struct mfs_httpd_kept *k)
{
    if (k->response)
        MHD_destroy_response(k->response);
    k->response = NULL;
}

static int make(struct mfs_httpd *h, const struct mfs_httpd_page *page, bool other,
                struct mfs_httpd_kept *k)
{
    struct mfs_httpd_answer a = {.type = "text/plain; charset=utf-8"};
    int64_t began = mfs_clock_mono(), now;
    int rc;

    forget(k);
    mfs_buf_init(&a.out);
    rc = page->make(h->arg, other, &a);
    if (rc) {
        mfs_buf_fini(&a.out);
        return rc;
    }
    k->response = respond(h, &a.out, a.type);
    now = mfs_clock_mono();
    k->until = now + (KEPT_TIMES * (now - began) > KEPT ? KEPT_TIMES * (now - began) : KEPT);
    return k->response ? 0 : -ENOMEM;
}

const char *mfs_httpd_header(struct MHD_Connection *c, const char *name)
{
    const char *value = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);

    return value ? value : "";
}

static enum MHD_Result serve(struct mfs_httpd *h, struct MHD_Connection *c,
                             const struct mfs_httpd_page *page)
{
    bool other = page->alternative && strcasestr(mfs_httpd_header(c, "Accept"), page->alternative);
    struct mfs_httpd_kept *k = &h->kept[page - h->pages][other];
    int rc;

    if (k->response && mfs_clock_mono() < k->until)
        return MHD_queue_response(c, MHD_HTTP_OK, k->response);
    if (h->held > MFS_HTTPD_HELD_MOST)
        return mfs_httpd_refuse(h, c, MHD_HTTP_SERVICE_UNAVAILABLE, MHD_HTTP_HEADER_RETRY_AFTER,
                                "60", "too many answers are not taken yet");
    rc = make(h, page, other, k);
    if (!rc)
        return MHD_queue_response(c, MHD_HTTP_OK, k->response);
    mfs_warn(AREA, "%s: %s", page->path, strerror(-rc));
    return mfs_httpd_refuse(h, c, MHD_HTTP_INTERNAL_SERVER_ERROR, NULL, NULL, strerror(-rc));
}

/* ---- requests ------------------------------------------------------------------------------- */

static enum MHD_Result answer(struct mfs_httpd *h, struct MHD_Connection *c,
                              struct mfs_httpd_peer *from, const char *path, bool head)
{
    enum MHD_Result done;

    if (!mfs_httpd_may(h, c, path, &done))
        return done;
    for (const struct mfs_httpd_page *p = h->pages; p->path; p++)
        if (!strcmp(p->path, path) && !p->take)
            return p->key       ? mfs_httpd_answer_key(h, c)
                   : !p->stream ? serve(h, c, p)
                   : head       ? mfs_httpd_stream_head(c, p)
                                : mfs_httpd_stream(h, c, from, p);
    return mfs_httpd_refuse(h, c, MHD_HTTP_NOT_FOUND, NULL, NULL, "there is no such page");
}

static struct mfs_httpd_peer *peer_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

/* The page that takes what is posted there, or NULL. */
static const struct mfs_httpd_page *taker(const struct mfs_httpd *h, const char *method,
                                          const char *path)
{
    if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
        return NULL;
    for (const struct mfs_httpd_page *p = h->pages; p->path; p++)
        if (p->take && !strcmp(p->path, path))
            return p;
    return NULL;
}

static enum MHD_Result on_post(struct mfs_httpd *h, struct MHD_Connection *c,
                               const struct mfs_httpd_page *page, const char *body,
                               size_t *body_len, void **known)
{
    size_t n = *body_len;

    if (!*known)
        return mfs_httpd_post_begin(h, c, page, known);
    *body_len = 0;
    if (!n)
        peer_of(c)->until = mfs_clock_mono() + MFS_HTTPD_ANSWER_TIME;
    return mfs_httpd_post_more(h, c, *known, body, n);
}

/* Called once when the head of a request has come, and again for its body and its end. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_len, void **known)
{
    struct mfs_httpd *h = arg;
    const struct mfs_httpd_page *to = taker(h, method, path);
    struct mfs_httpd_peer *p = peer_of(c);

    (void)version;
    if (p && to && !h->ends)
        return on_post(h, c, to, body, body_len, known);
    if (*body_len || !p || h->ends)
        return MHD_NO; /* nothing else that is served has use for a body: it hangs up */
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        p->until = mfs_clock_mono() + REQUEST_TIME;
        return mfs_httpd_refuse(h, c, MHD_HTTP_METHOD_NOT_ALLOWED, MHD_HTTP_HEADER_ALLOW,
                                "GET, HEAD", "there is nothing but to read");
    }
    if (!*known) {
        *known = h;
        return MHD_YES;
    }
    p->until = mfs_clock_mono() + MFS_HTTPD_ANSWER_TIME;
    return answer(h, c, p, path, !strcmp(method, MHD_HTTP_METHOD_HEAD));
}

static void on_answered(void *arg, struct MHD_Connection *c, void **known,
                        enum MHD_RequestTerminationCode how)
{
    struct mfs_httpd_peer *p = peer_of(c);

    (void)how;
    if (*known != arg)
        mfs_httpd_post_end(*known);
    *known = NULL;
    if (p)
        p->until = mfs_clock_mono() + REQUEST_TIME;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void turn(struct mfs_httpd *h);

static void cut_off(const struct mfs_httpd_peer *p)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(p->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (info)
        shutdown(info->connect_fd, SHUT_RDWR);
}

/* Where connections were at a limit libmicrohttpd listens again only with the first turn after one
 * of them has ended: the turn that ends the last of them is not the last look. */
static void look(void *arg)
{
    struct mfs_httpd *h = arg;
    int64_t now = mfs_clock_mono();
    bool none = !h->peers;

    for (const struct mfs_httpd_peer *p = h->peers; p; p = p->next)
        if (now >= p->until)
            cut_off(p);
    for (int i = 0; i < MFS_HTTPD_PAGES_MOST; i++)
        for (int k = 0; k < 2; k++)
            if (now >= h->kept[i][k].until)
                forget(&h->kept[i][k]);
    mfs_httpd_streams_tell(h);
    turn(h);
    if (!none || h->peers || !h->look)
        return;
    mfs_timer_cancel(h->look);
    h->look = NULL;
}

static void begin(struct mfs_httpd *h, struct MHD_Connection *c, void **context)
{
    struct mfs_httpd_peer *p = calloc(1, sizeof *p);

    *context = p;
    if (!p)
        return; /* its first request ends it, or its silence */
    h->begun++;
    *p = (struct mfs_httpd_peer){c, mfs_clock_mono() + REQUEST_TIME, h->peers};
    h->peers = p;
    if (!h->look)
        h->look = mfs_loop_timer(h->loop, LOOK, LOOK, look, h);
}

static void end(struct mfs_httpd *h, struct mfs_httpd_peer *p)
{
    struct mfs_httpd_peer **at = &h->peers;

    while (*at && *at != p)
        at = &(*at)->next;
    if (*at)
        *at = p->next;
    free(p);
}

static void on_connection(void *arg, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        begin(arg, c, context);
    else if (*context)
        end(arg, *context);
}

static void go_on(void *arg)
{
    struct mfs_httpd *h = arg;

    h->soon = NULL;
    turn(h);
}

/* Silence is seen by the look of each second. */
static void turn(struct mfs_httpd *h)
{
    MHD_UNSIGNED_LONG_LONG ms;

    MHD_run(h->daemon);
    if (!h->soon && MHD_get_timeout(h->daemon, &ms) == MHD_YES && !ms)
        h->soon = mfs_loop_timer(h->loop, 0, 0, go_on, h);
}

static void rested(void *arg)
{
    struct mfs_httpd *h = arg;

    h->rest = NULL;
    mfs_watch_events(h->watch, EPOLLIN);
}

/* What makes it ready while there is no connection is one that comes. If none has begun it could
 * not be accepted, for want of a descriptor, and it is ready again at once. */
static void ready(void *arg, uint32_t events)
{
    struct mfs_httpd *h = arg;
    uint64_t before = h->begun;
    bool none = !h->peers;

    (void)events;
    turn(h);
    if (!none || h->begun != before || h->rest)
        return;
    h->rest = mfs_loop_timer(h->loop, REST, 0, rested, h);
    if (h->rest)
        mfs_watch_events(h->watch, 0);
}

int mfs_httpd_add(struct mfs_httpd *h, int fd)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

    if (MHD_add_connection(h->daemon, fd, (struct sockaddr *)&from, sizeof from) != MHD_YES)
        return -errno;
    turn(h);
    return 0;
}

/* ---- its life -------------------------------------------------------------------------------- */

static void log_line(void *arg, const char *fmt, va_list ap)
{
    char line[256];

    (void)arg;
    vsnprintf(line, sizeof line, fmt, ap);
    line[strcspn(line, "\n")] = '\0';
    mfs_debug(AREA, "%s", line);
}

static struct MHD_Daemon *start(struct mfs_httpd *h, int fd)
{
    const struct MHD_OptionItem listens[] = {{MHD_OPTION_LISTEN_SOCKET, fd, NULL},
                                             {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem no_more[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME |
                     (fd < 0 ? MHD_USE_NO_LISTEN_SOCKET : 0);

    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER, log_line, NULL,
        MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT, OF_AN_ADDRESS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_MOST, MHD_OPTION_CONNECTION_TIMEOUT,
        SILENCE, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, on_answered, h,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_ARRAY,
        fd < 0 ? no_more : listens, MHD_OPTION_END);
}

static int join_loop(struct mfs_httpd *h)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    h->watch = info ? mfs_loop_watch(h->loop, info->epoll_fd, EPOLLIN, ready, h) : NULL;
    return h->watch ? 0 : -ENOMEM;
}

struct mfs_httpd *mfs_httpd_create(struct mfs_loop *loop, const char *address, const char *token,
                                   const char *write_token, const struct mfs_httpd_page *pages,
                                   void *arg, struct mfs_err *err)
{
    struct mfs_httpd *h = calloc(1, sizeof *h);
    int fd = -1, n = 0;

    while (pages[n].path)
        n++;
    assert(n <= MFS_HTTPD_PAGES_MOST);
    if (!h) {
        mfs_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    h->loop = loop;
    h->pages = pages;
    h->arg = arg;
    h->open_to_all = true;
    mfs_text_copy(h->token, sizeof h->token, token);
    mfs_text_copy(h->write_token, sizeof h->write_token, write_token ? write_token : "");
    fd = address ? mfs_httpd_listen(address, h->address, sizeof h->address, &h->open_to_all, err)
                 : -1;
    if (address && fd < 0) {
        mfs_httpd_destroy(h);
        return NULL;
    }
    h->daemon = mfs_httpd_make_cookie(h) ? NULL : start(h, fd); /* the socket is its own now */
    if (h->daemon && !join_loop(h))
        return h;
    mfs_err_set(err, -ENOMEM, "libmicrohttpd can't begin");
    mfs_httpd_destroy(h);
    return NULL;
}

void mfs_httpd_address(const struct mfs_httpd *h, char *out, size_t n)
{
    mfs_text_copy(out, n, h->address);
}

void mfs_httpd_destroy(struct mfs_httpd *h)
{
    if (!h)
        return;
    mfs_watch_remove(h->watch);
    if (h->daemon) {
        mfs_httpd_streams_end(h);
        MHD_run(h->daemon);
        MHD_stop_daemon(h->daemon);
    }
    for (int i = 0; i < MFS_HTTPD_PAGES_MOST; i++)
        for (int k = 0; k < 2; k++)
            forget(&h->kept[i][k]);
    mfs_timer_cancel(h->soon);
    mfs_timer_cancel(h->look);
    mfs_timer_cancel(h->rest);
    explicit_bzero(h->token, sizeof h->token);
    explicit_bzero(h->write_token, sizeof h->write_token);
    explicit_bzero(h->cookie, sizeof h->cookie);
    explicit_bzero(h->key, sizeof h->key);
    free(h);
}
