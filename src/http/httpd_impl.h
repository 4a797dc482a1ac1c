/* Inside src/http: what its files share. */
#ifndef MFS_HTTP_HTTPD_IMPL_H
#define MFS_HTTP_HTTPD_IMPL_H

#include <microhttpd.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/crypto/mac.h"
#include "http/httpd.h"

#define MFS_HTTPD_PAGES_MOST            16
#define MFS_HTTPD_STREAMS_MOST          32
#define MFS_HTTPD_STREAMS_OF_AN_ADDRESS 10
#define MFS_HTTPD_HELD_MOST             (64U << 20)
#define MFS_HTTPD_ANSWER_TIME           (60 * MFS_SEC) /* until an answer has gone */

struct mfs_httpd_peer {
    struct MHD_Connection *connection;
    int64_t until; /* mono: then it is cut off */
    struct mfs_httpd_peer *next;
};

/* A page as it was made, both ways. */
struct mfs_httpd_kept {
    struct MHD_Response *response; /* NULL: none */
    int64_t until;                 /* mono */
};

struct mfs_httpd_stream; /* stream.c */

struct mfs_httpd {
    struct mfs_loop *loop;
    struct MHD_Daemon *daemon;
    struct mfs_watch *watch;
    struct mfs_timer *soon, *look; /* soon: there is more to do at once; look: while one is open */
    struct mfs_timer *rest;        /* while nothing is watched */
    uint64_t begun;                /* connections */
    const struct mfs_httpd_page *pages;
    void *arg;
    char address[128];
    char token[MFS_HTTPD_TOKEN_TEXT];
    char write_token[MFS_HTTPD_TOKEN_TEXT]; /* for what is posted; "": nobody may */
    char cookie[MFS_MAC_TEXT]; /* what a browser shows instead; made of the token, and less */
    char key[MFS_MAC_TEXT];    /* of this server, of which those of pages are made; "": none yet */
    bool open_to_all;          /* at a loopback address */
    struct mfs_httpd_peer *peers;
    size_t held; /* bytes of answers and of pieces of streams */
    struct mfs_httpd_kept kept[MFS_HTTPD_PAGES_MOST][2];
    struct mfs_httpd_stream *streams;
    unsigned nstreams;
    bool ends; /* streams are to end, and nothing more is answered */
};

/* server.c */
const char *mfs_httpd_header(struct MHD_Connection *c, const char *name); /* "": none */
/* An answer of one line, with one more header (NULL: none). */
enum MHD_Result mfs_httpd_refuse(struct mfs_httpd *h, struct MHD_Connection *c, unsigned status,
                                 const char *header, const char *value, const char *why);
/* What every answer has. */
void mfs_httpd_head(struct MHD_Response *r, const char *type);

/* access.c */
int mfs_httpd_make_cookie(
    struct mfs_httpd *h); /* of its token and address; 0 or a negative errno */
/* True: it may read; else it has been answered with *done. */
bool mfs_httpd_may(struct mfs_httpd *h, struct MHD_Connection *c, const char *path,
                   enum MHD_Result *done);

/* True: it may change something; else likewise. */
bool mfs_httpd_may_change(struct mfs_httpd *h, struct MHD_Connection *c, enum MHD_Result *done);

/* post.c */
enum MHD_Result mfs_httpd_answer_key(struct mfs_httpd *h, struct MHD_Connection *c);
bool mfs_httpd_is_key(const struct mfs_httpd *h, const char *key);
/* The head has come: *known is what is kept of it until mfs_httpd_post_end, NULL where it has been
 * answered. */
enum MHD_Result mfs_httpd_post_begin(struct mfs_httpd *h, struct MHD_Connection *c,
                                     const struct mfs_httpd_page *page, void **known);
/* More of the body, or (n 0) its end, with which the page takes it. */
enum MHD_Result mfs_httpd_post_more(struct mfs_httpd *h, struct MHD_Connection *c, void *known,
                                    const char *body, size_t n);
void mfs_httpd_post_end(void *known); /* takes NULL */

/* stream.c */
enum MHD_Result mfs_httpd_stream(struct mfs_httpd *h, struct MHD_Connection *c,
                                 struct mfs_httpd_peer *p, const struct mfs_httpd_page *page);
/* What HEAD gets. */
enum MHD_Result mfs_httpd_stream_head(struct MHD_Connection *c, const struct mfs_httpd_page *page);
/* Each second: all streams get what there is by now. */
void mfs_httpd_streams_tell(struct mfs_httpd *h);
/* Before the daemon ends. */
void mfs_httpd_streams_end(struct mfs_httpd *h);

#endif
