/* Requests by HTTP, in the loop: bounded, none blocks, the answer comes as one text. For providers;
 * the loop's thread. Source: libcurl-multi(3). */
#ifndef MFS_CM_PROVIDER_HTTP_H
#define MFS_CM_PROVIDER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/loop.h"

#define MFS_HTTP_ANSWER_MAX (16U << 20) /* bytes; a longer answer is a failure */

struct mfs_http;      /* connections, kept for the next request */
struct mfs_http_call; /* a request under way */

struct mfs_http *mfs_http_create(struct mfs_loop *loop); /* NULL: ENOMEM */
void mfs_http_destroy(struct mfs_http *h); /* drops its calls; not inside `done`. Takes NULL */

/* Texts are copied. Certificates are checked, redirections not followed, and of the environment's
 * proxies those used that curl(1) would use, unless `direct`. */
struct mfs_http_request {
    const char *method;         /* "GET", "POST", "PUT", "DELETE" */
    const char *url;            /* http or https */
    const char *socket;         /* of the server, a UNIX domain socket's path; NULL: by the url */
    const char *body;           /* NULL: none */
    const char *const *headers; /* "Name: value", the last one NULL; NULL: none */
    const char *sign;           /* how AWS' signature, version 4, is made; NULL: without */
    const char *user;           /* "KEY:SECRET" for the signature */
    int64_t limit;              /* ns */
    bool direct;                /* past any proxy: an address of this machine's own link */
};

/* Tells the end, once and from the loop, unless the call is dropped. `why` is NULL and `status` the
 * answer's, or there is none, and the text is "": -ENOTCONN, nothing of the request has been sent
 * (no such host, no connection, a certificate that is not trusted); or else what it asks for may
 * have been done (-ETIMEDOUT, …). */
typedef void mfs_http_done(void *arg, const struct mfs_err *why, long status, const char *text,
                           size_t len);

/* NULL with the reason. */
struct mfs_http_call *mfs_http_begin(struct mfs_http *h, const struct mfs_http_request *r,
                                     mfs_http_done *done, void *arg, struct mfs_err *err);
void mfs_http_drop(
    struct mfs_http_call *c); /* nothing is told of it. Takes NULL; not after `done` */

#endif
