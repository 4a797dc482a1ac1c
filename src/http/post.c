/* What is posted to a page: its body, which is bounded, and the key of the page that it comes from.
 *
 * A key is the time until which it is valid and a MAC of it, by a secret that this server has made
 * for itself: nothing is kept of those that were given out, and none outlives the server. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/inet.h"
#include "base/text.h"
#include "http/httpd_impl.h"

#define KEY_TIME   (12 * 3600 * MFS_SEC)
#define KEY_DIGITS 16 /* hexadecimal, of the time */
#define KEY_TEXT   (KEY_DIGITS + MFS_MAC_TEXT)

struct post {
    const struct mfs_httpd_page *page;
    size_t n; /* above MFS_HTTPD_BODY_MOST: of which no more is kept */
    char body[MFS_HTTPD_BODY_MOST];
};

/* ---- keys ------------------------------------------------------------------------------------ */

static int make_secret(struct mfs_httpd *h)
{
    unsigned char bytes[(MFS_MAC_TEXT - 1) / 2];

    if (h->key[0])
        return 0;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -EIO;
    mfs_text_hex(bytes, sizeof bytes, h->key);
    return 0;
}

static int make_key(const struct mfs_httpd *h, uint64_t until, char out[KEY_TEXT])
{
    const char *const fields[] = {"memefs1", "http key", out};

    snprintf(out, KEY_TEXT, "%016" PRIx64, until);
    return mfs_mac(h->key, strlen(h->key), fields, 3, out + KEY_DIGITS);
}

bool mfs_httpd_is_key(const struct mfs_httpd *h, const char *key)
{
    char right[KEY_TEXT], digits[KEY_DIGITS + 1] = "";
    uint64_t until;

    if (!h->key[0] || strlen(key) != KEY_TEXT - 1)
        return false;
    memcpy(digits, key, KEY_DIGITS);
    until = strtoull(digits, NULL, 16);
    return !make_key(h, until, right) && mfs_mac_equal(key + KEY_DIGITS, right + KEY_DIGITS) &&
           !memcmp(key, right, KEY_DIGITS) && (int64_t)until > mfs_clock_mono();
}

enum MHD_Result mfs_httpd_answer_key(struct mfs_httpd *h, struct MHD_Connection *c)
{
    char key[KEY_TEXT];

    if (make_secret(h) || make_key(h, (uint64_t)(mfs_clock_mono() + KEY_TIME), key))
        return mfs_httpd_refuse(h, c, MHD_HTTP_INTERNAL_SERVER_ERROR, NULL, NULL, "no key");
    return mfs_httpd_refuse(h, c, MHD_HTTP_OK, NULL, NULL, key);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static enum MHD_Result too_long(struct mfs_httpd *h, struct MHD_Connection *c)
{
    return mfs_httpd_refuse(h, c, MHD_HTTP_CONTENT_TOO_LARGE, NULL, NULL, "that is too long");
}

enum MHD_Result mfs_httpd_post_begin(struct mfs_httpd *h, struct MHD_Connection *c,
                                     const struct mfs_httpd_page *page, void **known)
{
    enum MHD_Result done;
    struct post *p;

    if (!mfs_httpd_may_change(h, c, &done))
        return done;
    if (strtoull(mfs_httpd_header(c, MHD_HTTP_HEADER_CONTENT_LENGTH), NULL, 10) >
        MFS_HTTPD_BODY_MOST)
        return too_long(h, c);
    p = malloc(sizeof *p);
    if (!p)
        return MHD_NO;
    p->page = page;
    p->n = 0;
    *known = p;
    return MHD_YES;
}

static void name_peer(struct MHD_Connection *c, char out[INET6_ADDRSTRLEN])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    uint16_t port;

    if (!info || mfs_inet_format((const union mfs_inet *)info->client_addr, out, &port))
        snprintf(out, INET6_ADDRSTRLEN, "?");
}

enum MHD_Result mfs_httpd_post_more(struct mfs_httpd *h, struct MHD_Connection *c, void *known,
                                    const char *body, size_t n)
{
    struct mfs_httpd_verdict v = {.status = MHD_HTTP_OK};
    char from[INET6_ADDRSTRLEN];
    struct post *p = known;

    if (n) {
        if (n <= sizeof p->body - (p->n < sizeof p->body ? p->n : sizeof p->body))
            memcpy(p->body + p->n, body, n);
        p->n = n > SIZE_MAX - p->n ? SIZE_MAX : p->n + n;
        return MHD_YES;
    }
    if (p->n > sizeof p->body)
        return too_long(h, c);
    name_peer(c, from);
    p->page->take(h->arg, from, p->body, p->n, &v);
    return mfs_httpd_refuse(h, c, v.status, NULL, NULL, v.text);
}

void mfs_httpd_post_end(void *known)
{
    free(known);
}
