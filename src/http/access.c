/* Who may read what. A browser, which can't be told to show a token with each request, shows it
 * once in the address; it becomes a cookie then, which no script and no other site can use. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/crypto/mac.h"
#include "base/inet.h"
#include "base/text.h"
#include "http/httpd_impl.h"

#define REALM "Bearer realm=\"memefs\""

static const char login[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>MemEFS</title>"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
    "<meta name=\"color-scheme\" content=\"light dark\"></head><body><main><h1>MemEFS</h1>"
    "<form method=\"get\" autocomplete=\"off\"><p><label>Token of the deployment (the file token "
    "in its state directory)<br><input name=\"token\" type=\"password\" required autofocus "
    "size=\"40\"></label></p><p><button>Show</button></p></form></main></body></html>\n";

static bool shows_bearer(struct MHD_Connection *c, const char *token)
{
    const char *given = mfs_httpd_header(c, MHD_HTTP_HEADER_AUTHORIZATION);

    if (!token[0] || strncasecmp(given, "Bearer ", 7) != 0)
        return false;
    given += 7;
    return mfs_mac_equal(given + strspn(given, " "), token);
}

int mfs_httpd_make_cookie(struct mfs_httpd *h)
{
    const char *const fields[] = {"memefs1", "http cookie", h->address};

    return mfs_mac(h->token, strlen(h->token), fields, 3, h->cookie);
}

/* Cookies are a host's, whatever the port: each deployment there has one of its own. A browser
 * shows it to other servers on that host, too, so it is not the token, and opens the page alone. */
static void cookie_name(const struct mfs_httpd *h, char out[32])
{
    const char *colon = strrchr(h->address, ':');

    snprintf(out, 32, "memefs_%s", colon ? colon + 1 : "");
}

static bool shows_cookie(const struct mfs_httpd *h, struct MHD_Connection *c)
{
    const char *given;
    char name[32];

    cookie_name(h, name);
    given = MHD_lookup_connection_value(c, MHD_COOKIE_KIND, name);
    return given && mfs_mac_equal(given, h->cookie);
}

/* "localhost", or an address, each maybe with a port. */
static bool names_this_host(const char *host)
{
    char name[INET6_ADDRSTRLEN + 1];
    bool bracket = host[0] == '[';
    size_t len = strcspn(host + bracket, bracket ? "]" : ":");
    union mfs_inet a;

    if (!host[0])
        return true; /* HTTP/1.0 may leave it out; a browser never does */
    if (mfs_text_format(name, sizeof name, "%.*s", (int)len, host + bracket))
        return false;
    return !strcasecmp(name, "localhost") || !mfs_inet_parse(name, 0, &a);
}

/* The same address without the token, and the cookie. */
static enum MHD_Result let_in(const struct mfs_httpd *h, struct MHD_Connection *c, const char *path)
{
    char name[32], cookie[MFS_MAC_TEXT + 128];
    struct MHD_Response *r = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
    enum MHD_Result done;

    if (!r)
        return MHD_NO;
    cookie_name(h, name);
    snprintf(cookie, sizeof cookie, "%s=%s; Path=%s; HttpOnly; SameSite=Strict", name, h->cookie,
             path);
    mfs_httpd_head(r, "text/plain; charset=utf-8");
    MHD_add_response_header(r, MHD_HTTP_HEADER_LOCATION, path);
    MHD_add_response_header(r, MHD_HTTP_HEADER_SET_COOKIE, cookie);
    explicit_bzero(cookie, sizeof cookie);
    done = MHD_queue_response(c, MHD_HTTP_SEE_OTHER, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result ask_for_token(struct MHD_Connection *c)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(
        sizeof login - 1, (void *)(uintptr_t)login, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result done;

    if (!r)
        return MHD_NO;
    mfs_httpd_head(r, "text/html; charset=utf-8");
    MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, REALM);
    done = MHD_queue_response(c, MHD_HTTP_UNAUTHORIZED, r);
    MHD_destroy_response(r);
    return done;
}

/* A page of this server, not of another at the same host. A browser says where a page is from that
 * posts, and no page can have it say something else. */
static bool is_from_here(struct MHD_Connection *c)
{
    const char *host = mfs_httpd_header(c, MHD_HTTP_HEADER_HOST);
    const char *origin = strstr(mfs_httpd_header(c, "Origin"), "://");
    const char *site = mfs_httpd_header(c, "Sec-Fetch-Site");

    return host[0] && origin && !strcasecmp(origin + 3, host) &&
           (!site[0] || !strcmp(site, "same-origin"));
}

static bool is_json(struct MHD_Connection *c)
{
    const char *type = mfs_httpd_header(c, MHD_HTTP_HEADER_CONTENT_TYPE);
    size_t n = strlen("application/json");

    return !strncasecmp(type, "application/json", n) && strchr("; ", type[n]);
}

bool mfs_httpd_may_change(struct mfs_httpd *h, struct MHD_Connection *c, enum MHD_Result *done)
{
    const char *why = NULL, *header = NULL;
    unsigned status = MHD_HTTP_FORBIDDEN;

    if (h->open_to_all && !names_this_host(mfs_httpd_header(c, MHD_HTTP_HEADER_HOST))) {
        why = "name this host by its address, or as localhost";
    } else if (!is_from_here(c)) {
        why = "only the page that is served here may change something; programs: see cm --help";
    } else if (!is_json(c)) {
        status = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
        why = "what is posted is application/json";
    } else if (!shows_bearer(c, h->write_token)) {
        status = MHD_HTTP_UNAUTHORIZED;
        header = MHD_HTTP_HEADER_WWW_AUTHENTICATE;
        why = shows_bearer(c, h->token)
                  ? "this token is for reading; that for changes is in the file token-write"
                  : "this is not the deployment's token for changes, which is in token-write";
    } else if (!mfs_httpd_is_key(h, mfs_httpd_header(c, "X-Memefs-Key"))) {
        why = "the page is too old: open it anew";
    }
    if (why)
        *done = mfs_httpd_refuse(h, c, status, header, REALM, why);
    return !why;
}

static const struct mfs_httpd_page *page_of(const struct mfs_httpd *h, const char *path)
{
    for (const struct mfs_httpd_page *p = h->pages; p->path; p++)
        if (!strcmp(p->path, path))
            return p;
    return NULL;
}

/* An entrance, or below one. */
static bool is_for_people(const struct mfs_httpd *h, const char *path)
{
    for (const struct mfs_httpd_page *p = h->pages; p->path; p++) {
        size_t n = strlen(p->path);

        if (p->entrance && !strncmp(path, p->path, n) && (!path[n] || path[n] == '/'))
            return true;
    }
    return false;
}

bool mfs_httpd_may(struct mfs_httpd *h, struct MHD_Connection *c, const char *path,
                   enum MHD_Result *done)
{
    const struct mfs_httpd_page *page = page_of(h, path);
    const char *given = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");

    if (h->open_to_all) {
        if (names_this_host(mfs_httpd_header(c, MHD_HTTP_HEADER_HOST)))
            return true;
        *done = mfs_httpd_refuse(h, c, MHD_HTTP_FORBIDDEN, NULL, NULL,
                                 "name this host by its address, or as localhost");
        return false;
    }
    if (shows_bearer(c, h->token) || (is_for_people(h, path) && shows_cookie(h, c)))
        return true;
    if (page && page->entrance)
        *done = given && mfs_mac_equal(given, h->token) ? let_in(h, c, path) : ask_for_token(c);
    else
        *done = mfs_httpd_refuse(h, c, MHD_HTTP_UNAUTHORIZED, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                                 REALM, "the deployment's token is needed");
    return false;
}
