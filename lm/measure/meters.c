/* Bandwidth meters; see the header. */
#include "lm/measure/meters.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

#define NET_DEV     "/proc/net/dev"
#define NET_DEV_MAX (1U << 20)

/* A line is "  name: " and sixteen numbers: rx bytes first, tx bytes ninth. */
static int parse_line(const char *numbers, struct mfs_meter_count *count)
{
    int n = sscanf(numbers, "%" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &count->in,
                   &count->out);

    return n == 2 ? 0 : -EINVAL;
}

int mfs_meters_parse_net_dev(const char *text, const char *iface, struct mfs_meter_count *count)
{
    size_t len = strlen(iface);

    while (text && *text) {
        const char *line = text + strspn(text, " ");

        if (len && !strncmp(line, iface, len) && line[len] == ':')
            return parse_line(line + len + 1, count);
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return -ENOENT;
}

static bool same_address(const struct sockaddr *a, const char *address)
{
    char text[INET6_ADDRSTRLEN];
    const void *raw;

    if (!a || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
        return false;
    raw = a->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)a)->sin_addr
                                  : (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr;
    return inet_ntop(a->sa_family, raw, text, sizeof text) && !strcmp(text, address);
}

int mfs_meters_iface(const char *address, char iface[MFS_METERS_IFACE_MAX])
{
    struct ifaddrs *all;
    int rc = -ENOENT;

    if (getifaddrs(&all))
        return -errno;
    for (const struct ifaddrs *a = all; a && rc; a = a->ifa_next) {
        if (!(a->ifa_flags & IFF_LOOPBACK) && same_address(a->ifa_addr, address))
            rc = mfs_text_copy(iface, MFS_METERS_IFACE_MAX, a->ifa_name);
    }
    freeifaddrs(all);
    return rc;
}

int mfs_meters_read(const char *iface, struct mfs_meter_count *count)
{
    struct mfs_buf text;
    int rc;

    mfs_buf_init(&text);
    rc = mfs_file_read(NET_DEV, NET_DEV_MAX, &text);
    if (!rc)
        rc = mfs_buf_append(&text, "", 1);
    if (!rc)
        rc = mfs_meters_parse_net_dev(mfs_buf_data(&text), iface, count);
    mfs_buf_fini(&text);
    return rc;
}

void mfs_meter_update(struct mfs_meter *m, int64_t now, const struct mfs_meter_count *count)
{
    double seconds = (double)(now - m->when) / (double)MFS_SEC;

    if (m->started && now <= m->when)
        return;
    if (m->started && count->in >= m->last.in && count->out >= m->last.out) {
        m->in = (double)(count->in - m->last.in) / seconds;
        m->out = (double)(count->out - m->last.out) / seconds;
    }
    m->started = true;
    m->when = now;
    m->last = *count;
}
