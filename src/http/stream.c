/* Pages that go on: each second their next piece is made, once for all who read. A reader has the
 * piece that it is being sent, and none waits behind it: who is slow gets fewer of them. While
 * there is nothing to send the connection is suspended; who takes nothing for a minute is cut off
 * by the look of each second (server.c), as with any answer.
 *
 * A piece is JSON, which shrinks to a third, to a fifth where there are many nodes. That is done
 * once for all, too: each piece is a run of whole blocks of a deflate stream (RFC 1951) that refer
 * to none before them, and so follow whatever pieces a reader has had. What a reader is sent before
 * its first one is the head of the gzip file (RFC 1952) that they belong to, which has no end. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <zlib.h>

#include "base/log.h"
#include "http/httpd_impl.h"

#define AREA "http"

#define LEVEL 1 /* of 9: the others take longer for little less */

/* Shared by those that are being sent it: as it was made, or shrunk. */
struct piece {
    struct mfs_httpd *http;
    unsigned users;
    struct mfs_buf text;
};

/* Of deflate, without a name, a time or flags; 255: of no known system. */
static const char gzip_head[] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, (char)255};

struct mfs_httpd_stream {
    struct mfs_httpd *http;
    struct MHD_Connection *connection;
    struct mfs_httpd_peer *peer;
    const struct mfs_httpd_page *page;
    bool shrunk;         /* it takes gzip */
    size_t head;         /* bytes of gzip_head that it has had */
    struct piece *piece; /* NULL: none is under way */
    size_t sent;         /* of it */
    bool suspended;
    struct mfs_httpd_stream *next;
};

static void drop(struct piece *p)
{
    if (!p || --p->users)
        return;
    p->http->held -= mfs_buf_len(&p->text);
    mfs_buf_fini(&p->text);
    free(p);
}

/* The caller is a user of it. NULL: it can't be made just now. */
static struct piece *make(struct mfs_httpd *h, const struct mfs_httpd_page *page)
{
    struct mfs_httpd_answer a = {0};
    struct piece *p = h->held > MFS_HTTPD_HELD_MOST ? NULL : calloc(1, sizeof *p);
    int rc;

    if (!p)
        return NULL;
    mfs_buf_init(&a.out);
    rc = page->make(h->arg, false, &a);
    *p = (struct piece){h, 1, a.out};
    h->held += mfs_buf_len(&p->text);
    if (!rc)
        return p;
    mfs_warn(AREA, "%s: %s", page->path, strerror(-rc));
    drop(p);
    return NULL;
}

/* 0 or a negative errno. */
static int shrink(const struct mfs_buf *text, struct mfs_buf *to)
{
    z_stream z = {0};
    uLong most;
    char *out;
    int rc;

    if (deflateInit2(&z, LEVEL, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    most = deflateBound(&z, mfs_buf_len(text)) + 16; /* and what flushing adds */
    out = mfs_buf_reserve(to, most);
    rc = out ? 0 : -ENOMEM;
    if (out) {
        z.next_in = (Bytef *)(uintptr_t)mfs_buf_data(text);
        z.avail_in = (uInt)mfs_buf_len(text);
        z.next_out = (Bytef *)out;
        z.avail_out = (uInt)most;
        rc = deflate(&z, Z_FULL_FLUSH) == Z_OK && z.avail_in == 0 && z.avail_out > 0 ? 0
                                                                                     : -EOVERFLOW;
    }
    if (!rc)
        mfs_buf_commit(to, most - z.avail_out);
    deflateEnd(&z);
    return rc;
}

/* The same piece for those that take gzip; NULL: it can't be made just now. */
static struct piece *make_shrunk(const struct piece *whole)
{
    struct piece *p = calloc(1, sizeof *p);
    int rc;

    if (!p)
        return NULL;
    *p = (struct piece){.http = whole->http, .users = 1};
    mfs_buf_init(&p->text);
    rc = shrink(&whole->text, &p->text);
    p->http->held += mfs_buf_len(&p->text);
    if (!rc)
        return p;
    mfs_warn(AREA, "a piece of a page can't be made smaller: %s", strerror(-rc));
    drop(p);
    return NULL;
}

static void give(struct mfs_httpd_stream *s, struct piece *p)
{
    s->piece = p;
    s->sent = 0;
    p->users++;
    s->peer->until = mfs_clock_mono() + MFS_HTTPD_ANSWER_TIME;
}

/* libmicrohttpd asks for the next bytes. */
static ssize_t next_bytes(void *arg, uint64_t at, char *out, size_t most)
{
    struct mfs_httpd_stream *s = arg;
    size_t n;

    (void)at;
    if (s->http->ends)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!s->piece) {
        s->suspended = true;
        MHD_suspend_connection(s->connection);
        return 0;
    }
    if (s->shrunk && s->head < sizeof gzip_head) {
        n = sizeof gzip_head - s->head;
        n = n < most ? n : most;
        memcpy(out, gzip_head + s->head, n);
        s->head += n;
        return (ssize_t)n;
    }
    n = mfs_buf_len(&s->piece->text) - s->sent;
    n = n < most ? n : most;
    memcpy(out, mfs_buf_data(&s->piece->text) + s->sent, n);
    s->sent += n;
    if (s->sent == mfs_buf_len(&s->piece->text)) {
        drop(s->piece);
        s->piece = NULL;
    }
    return (ssize_t)n;
}

static void gone(void *arg)
{
    struct mfs_httpd_stream *s = arg, **at = &s->http->streams;

    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
    s->http->nstreams--;
    drop(s->piece);
    free(s);
}

static const struct sockaddr *address_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

    return info ? info->client_addr : NULL;
}

static bool is_same(const struct sockaddr *a, const struct sockaddr *b)
{
    if (!a || !b || a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET6)
        return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
    return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)b)->sin_addr.s_addr;
}

/* Streams of one address leave some of its connections to others there, who only ask. */
static bool is_room(const struct mfs_httpd *h, struct MHD_Connection *c)
{
    const struct sockaddr *from = address_of(c);
    unsigned n = 0;

    for (const struct mfs_httpd_stream *s = h->streams; s; s = s->next)
        n += is_same(from, address_of(s->connection));
    return n < MFS_HTTPD_STREAMS_OF_AN_ADDRESS && h->nstreams < MFS_HTTPD_STREAMS_MOST;
}

static enum MHD_Result queue(struct MHD_Connection *c, const char *type, struct MHD_Response *r)
{
    enum MHD_Result done;

    mfs_httpd_head(r, type);
    done = MHD_queue_response(c, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return done;
}

/* RFC 9110, 12.5.3: as browsers write it. Who refuses it by a weight of 0, or names it otherwise,
 * gets the text. */
static bool takes_gzip(struct MHD_Connection *c)
{
    const char *list = mfs_httpd_header(c, MHD_HTTP_HEADER_ACCEPT_ENCODING);

    for (const char *at = list; *at;) {
        size_t n;

        at += strspn(at, ", \t");
        n = strcspn(at, ",");
        if (n == strlen("gzip") && !strncasecmp(at, "gzip", n))
            return true;
        at += n;
    }
    return false;
}

enum MHD_Result mfs_httpd_stream_head(struct MHD_Connection *c, const struct mfs_httpd_page *page)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);

    return r ? queue(c, page->stream, r) : MHD_NO;
}

/* Its first piece is the next one that all get: however many ask, no more are made for them. */
enum MHD_Result mfs_httpd_stream(struct mfs_httpd *h, struct MHD_Connection *c,
                                 struct mfs_httpd_peer *p, const struct mfs_httpd_page *page)
{
    struct mfs_httpd_stream *s;
    struct MHD_Response *r;

    if (!is_room(h, c))
        return mfs_httpd_refuse(h, c, MHD_HTTP_SERVICE_UNAVAILABLE, MHD_HTTP_HEADER_RETRY_AFTER,
                                "60", "too many watch already");
    s = calloc(1, sizeof *s);
    r = s ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 32768, next_bytes, s, gone) : NULL;
    if (!r) {
        free(s);
        return MHD_NO;
    }
    *s = (struct mfs_httpd_stream){h, c, p, page, takes_gzip(c), .next = h->streams};
    if (s->shrunk)
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    h->streams = s;
    h->nstreams++;
    return queue(c, page->stream, r);
}

static bool is_due(const struct mfs_httpd_stream *s, const struct mfs_httpd_page *page)
{
    return s->page == page && !s->piece;
}

static void tell(struct mfs_httpd *h, const struct mfs_httpd_page *page)
{
    struct piece *p = NULL, *shrunk = NULL;

    for (struct mfs_httpd_stream *s = h->streams; s; s = s->next) {
        if (!is_due(s, page))
            continue;
        if (!p)
            p = make(h, page);
        if (p && s->shrunk && !shrunk)
            shrunk = make_shrunk(p);
        if (!p || (s->shrunk && !shrunk))
            break;
        give(s, s->shrunk ? shrunk : p);
        if (s->suspended)
            MHD_resume_connection(s->connection);
        s->suspended = false;
    }
    drop(shrunk);
    drop(p);
}

void mfs_httpd_streams_tell(struct mfs_httpd *h)
{
    if (!h->streams)
        return;
    for (const struct mfs_httpd_page *page = h->pages; page->path; page++)
        if (page->stream)
            tell(h, page);
}

void mfs_httpd_streams_end(struct mfs_httpd *h)
{
    h->ends = true;
    for (struct mfs_httpd_stream *s = h->streams; s; s = s->next) {
        if (s->suspended)
            MHD_resume_connection(s->connection);
        s->suspended = false;
    }
}
