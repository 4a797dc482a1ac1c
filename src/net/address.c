/* Addresses. */
#include "net/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static int parse_unix(const char *path, struct mfs_address *a, struct mfs_err *err)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    if (!*path || mfs_text_copy(un.sun_path, sizeof un.sun_path, path))
        return mfs_err_set(err, -EINVAL, "unix:%s: a socket's path has 1 to %zu bytes", path,
                           sizeof un.sun_path - 1);
    memcpy(&a->sa, &un, sizeof un);
    a->len = sizeof un;
    return 0;
}

static int parse_inet(const char *host, const char *port, struct mfs_address *a)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    if (getaddrinfo(strcmp(host, "localhost") ? host : "127.0.0.1", port, &hints, &found))
        return -EINVAL;
    memcpy(&a->sa, found->ai_addr, found->ai_addrlen);
    a->len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

int mfs_address_parse(const char *text, struct mfs_address *a, struct mfs_err *err)
{
    const char *colon = strrchr(text, ':'), *host = text;
    char copy[128];
    uint64_t port;
    int len;

    memset(a, 0, sizeof *a);
    if (!strncmp(text, "unix:", 5))
        return parse_unix(text + 5, a, err);
    len = colon ? (int)(colon - text) : 0;
    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
    }
    if (!colon || mfs_text_u64(colon + 1, &port) || port > 65535 ||
        mfs_text_format(copy, sizeof copy, "%.*s", len, host) || parse_inet(copy, colon + 1, a))
        return mfs_err_set(err, -EINVAL, "\"%s\" is not an address like 127.0.0.1:7000", text);
    return 0;
}

void mfs_address_format(const struct mfs_address *a, char *out, size_t n)
{
    char host[64] = "?", port[8] = "?";

    if (a->sa.ss_family == AF_UNIX) {
        snprintf(out, n, "unix:%s", ((const struct sockaddr_un *)&a->sa)->sun_path);
        return;
    }
    getnameinfo((const struct sockaddr *)&a->sa, a->len, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(out, n, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

int mfs_address_join(const char *host, uint32_t port, char *out, size_t n)
{
    return mfs_text_format(out, n, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}
