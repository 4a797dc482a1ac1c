/* What a manager serves over HTTP: a table of pages, from inside its event loop. Most are to be
 * read (GET, HEAD); one that takes something is posted to.
 *
 * A thin layer over libmicrohttpd (decisions/0036): its epoll descriptor is watched by our loop, so
 * there are no threads, and pages are made in the loop's thread.
 *
 * Who may read: at a loopback address everybody on this machine, provided that the request names
 * the host by a number or as "localhost" (a web page of elsewhere whose name was made to lead here
 * names it otherwise); at any other address who shows the token ("Authorization: Bearer TOKEN"). A
 * browser shows it once, behind the address of a page that is an entrance (?token=), or in the
 * field that it is shown there, and gets a cookie (HttpOnly, SameSite=Strict), which is not the
 * token and opens only that page and what is below its path.
 *
 * Who may change (decisions/0040): who shows the token for changes, which is another one than that
 * for reading, also at a loopback address; from a page of this very server, as Origin says; with
 * the key that such a page has got from here, of which nobody else knows; and what is posted is
 * JSON.
 *
 * Bounded: 64 connections, 16 of one address, 16 KiB for the head of a request, 4 KiB for its body,
 * where one is taken; 10 s for a
 * request to come whole, and for silence; 60 s for an answer to be taken; 64 MiB of answers that
 * are not taken yet, beyond which more are refused with 503. A page that was made is kept for half
 * a second: however often it is asked for, it is not made more often than that.
 *
 * A page may go on as long as somebody reads: each second its next piece is made once for all of
 * them, at most 32, 10 of one address. Pieces are of those 64 MiB, and none is made beyond. Who is
 * slow gets fewer of them, and who takes nothing for a minute is cut off.
 *
 * All of it belongs to the loop's thread. */
#ifndef MFS_HTTP_HTTPD_H
#define MFS_HTTP_HTTPD_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/auth.h"
#include "net/loop.h"

#define MFS_HTTPD_TOKEN_TEXT 65 /* bytes of a token, with its NUL */

struct mfs_httpd;

struct mfs_httpd_answer {
    const char *type;   /* Content-Type, static */
    struct mfs_buf out; /* an empty one is given; the content */
};

#define MFS_HTTPD_BODY_MOST 4096

/* What came of what was posted. */
struct mfs_httpd_verdict {
    unsigned status; /* of HTTP; 200 is given */
    char text[512];  /* one line, for people; "" is given */
};

struct mfs_httpd_page {
    const char *path; /* NULL: the end of the table */
    /* A media type that the page can be, too, when a request's Accept names it; NULL: none. */
    const char *alternative;
    /* Makes the page. `other`: as the alternative. 0, or a negative errno: 500 is answered. */
    int (*make)(void *arg, bool other, struct mfs_httpd_answer *a);
    const char
        *stream;   /* its Content-Type, where `make` makes the next piece; NULL: a whole page */
    bool entrance; /* for people: who shows no token is asked for it */
    bool key;      /* it is the key for what is posted, valid for 12 h; `make` is not called */
    /* Takes n bytes that `from`, an address, has posted: fills *v. It is not read then, `make` is
     * not called. NULL: it is only read. */
    void (*take)(void *arg, const char *from, const char *body, size_t n,
                 struct mfs_httpd_verdict *v);
};

/* The tokens of a deployment, for reading and for changes: each is made of its secret, tells
 * neither that nor the other. 0 or a negative errno. */
int mfs_httpd_token(const struct mfs_secret *secret, char token[MFS_HTTPD_TOKEN_TEXT]);
int mfs_httpd_write_token(const struct mfs_secret *secret, char token[MFS_HTTPD_TOKEN_TEXT]);

/* Listens at "HOST:PORT" (port 0: any free one; NULL: nowhere, see mfs_httpd_add). The tokens
 * are copied, that for changes may be NULL: then nobody may change anything. Pages and arg must
 * outlive it. NULL: *err; -EADDRINUSE: the port is taken. */
struct mfs_httpd *mfs_httpd_create(struct mfs_loop *loop, const char *address, const char *token,
                                   const char *write_token, const struct mfs_httpd_page *pages,
                                   void *arg, struct mfs_err *err);
/* Closes all connections. Takes NULL. Not from a page. */
void mfs_httpd_destroy(struct mfs_httpd *h);

void mfs_httpd_address(const struct mfs_httpd *h, char *out, size_t n); /* that it listens at */

/* Serves a stream socket that was connected otherwise, as one of a loopback address. Takes it over.
 * 0 or a negative errno. */
int mfs_httpd_add(struct mfs_httpd *h, int fd);

#endif
