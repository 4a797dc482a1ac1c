/* A node's link is measured; see the header. */
#include "lm/measure/probe.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "lm/measure/meters.h"
#include "lm/measure/probe_link.h"
#include "net/address.h"

#define AREA        "probe"
#define WAYS        2 /* in and out: a connection for each */
#define ROLE_SENDS  "probe-sends"
#define ROLE_TAKES  "probe-takes"
#define LINKS_MOST  (WAYS * MFS_PROBE_PEERS_MAX)
#define STEP        (10 * MFS_MSEC) /* from one count to the next */
#define SLOW_BYTES  (1U << 20)      /* a link that has carried less in the time … */
#define SLOW_TIMES  3               /* … has so much more of it */
#define COUNTS_MOST 1024
#define PATIENCE    (3 * MFS_SEC) /* of helpers, beyond the time */

/* ---- the rates ------------------------------------------------------------------------------- */

double mfs_probe_rate(const struct mfs_probe_count *c, size_t n)
{
    const struct mfs_probe_count *last = n ? &c[n - 1] : NULL;
    size_t half = 0;
    double seconds;

    if (n < 3)
        return 0;
    while (half < n - 2 && c[half].when - c[0].when < (last->when - c[0].when) / 2)
        half++;
    seconds = (double)(last->when - c[half].when) / (double)MFS_SEC;
    return seconds > 0 && last->bytes > c[half].bytes
               ? (double)(last->bytes - c[half].bytes) / seconds
               : 0;
}

/* ---- the node that is measured --------------------------------------------------------------- */

struct probe {
    const struct mfs_probe_plan *plan;
    bool inward; /* the others send */
    int listener;
    struct mfs_probe_link link[LINKS_MOST];
    uint64_t carried[LINKS_MOST]; /* by each */
    size_t nlinks;
    struct mfs_probe_count *count;
    size_t ncounts;
};

int mfs_probe_listen(const char *address, uint16_t *port)
{
    char text[128], *colon;
    struct mfs_address a;
    int fd, rc;

    rc = mfs_address_join(address, 0, text, sizeof text);
    rc = rc ? rc : mfs_address_parse(text, &a, NULL);
    if (rc)
        return rc;
    fd = socket(a.sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&a.sa, a.len) || listen(fd, LINKS_MOST) ||
        getsockname(fd, (struct sockaddr *)&a.sa, &a.len)) {
        rc = -errno;
        close(fd);
        return rc;
    }
    mfs_address_format(&a, text, sizeof text);
    colon = strrchr(text, ':');
    *port = (uint16_t)strtoul(colon ? colon + 1 : "0", NULL, 10);
    return fd;
}

static void let_in(struct probe *p)
{
    int fd = accept4(p->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    size_t i = 0;

    if (fd < 0)
        return;
    while (i < p->nlinks && p->link[i].fd >= 0)
        i++;
    if (i == LINKS_MOST) {
        close(fd);
        return;
    }
    if (i == p->nlinks)
        p->nlinks++;
    mfs_probe_link_open(&p->link[i], fd, &p->plan->secret, NULL);
}

static size_t proved(const struct probe *p)
{
    size_t n = 0;

    for (size_t i = 0; i < p->nlinks; i++)
        n += p->link[i].fd >= 0 && p->link[i].proved && !mfs_buf_len(&p->link[i].out);
    return n;
}

/* Waits until something happens, `until` at most, and does what can be done. 0 or a negative
 * errno. poll(2) passes over descriptors of -1. */
static int poll_links(struct probe *p, int64_t until)
{
    struct pollfd fds[LINKS_MOST + 1];
    int64_t left = until - mfs_clock_mono();

    fds[0] = (struct pollfd){.fd = p->listener, .events = POLLIN};
    for (size_t i = 0; i < p->nlinks; i++)
        fds[i + 1] =
            (struct pollfd){.fd = p->link[i].fd, .events = mfs_probe_link_wants(&p->link[i])};
    if (poll(fds, p->nlinks + 1, left > 0 ? (int)(left / MFS_MSEC) + 1 : 0) < 0)
        return errno == EINTR ? 0 : -errno;
    for (size_t i = 0; i < p->nlinks; i++) {
        if (fds[i + 1].revents && p->link[i].fd >= 0)
            mfs_probe_link_go(&p->link[i], fds[i + 1].revents);
    }
    if (fds[0].revents)
        let_in(p);
    return 0;
}

/* A link that is full of something makes its node come late: most are enough. */
static bool enough(const struct probe *p, int64_t began)
{
    size_t n = proved(p), all = (size_t)p->plan->peers * WAYS;

    return n >= all || (2 * n >= all && mfs_clock_mono() > began + MFS_PROBE_GATHER_NS / 5);
}

static int gather(struct probe *p, struct mfs_err *err)
{
    int64_t began = mfs_clock_mono(), until = began + MFS_PROBE_GATHER_NS;
    int rc = 0;

    while (!rc && !enough(p, began) && mfs_clock_mono() < until)
        rc = poll_links(p, mfs_clock_mono() + STEP);
    close(p->listener);
    p->listener = -1;
    mfs_debug(AREA, "%zu of %u connections after %lld ms", proved(p), WAYS * p->plan->peers,
              (long long)((mfs_clock_mono() - began) / MFS_MSEC));
    return rc ? mfs_err_set(err, rc, "poll: %s", strerror(-rc)) : 0;
}

static bool of_this_way(const struct probe *p, const struct mfs_probe_link *l)
{
    return !strcmp(l->auth.role, p->inward ? ROLE_SENDS : ROLE_TAKES);
}

static int start(struct probe *p, struct mfs_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < p->nlinks; i++) {
        struct mfs_probe_link *l = &p->link[i];

        if (!l->proved || (of_this_way(p, l) && mfs_probe_link_start(l, !p->inward)))
            mfs_probe_link_close(l);
        n += l->fd >= 0 && of_this_way(p, l);
    }
    return n ? 0 : mfs_err_set(err, -ETIMEDOUT, "nobody came to measure its link with");
}

static uint64_t count_links(struct probe *p)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->nlinks; i++) {
        uint64_t in = p->carried[i], out = p->carried[i];

        mfs_probe_link_count(&p->link[i], &in, &out);
        p->carried[i] = p->inward ? in : out;
        sum += p->carried[i];
    }
    return sum;
}

static uint64_t take_count(struct probe *p, int64_t now)
{
    struct mfs_probe_count *c = &p->count[p->ncounts];
    struct mfs_meter_count iface;

    *c = (struct mfs_probe_count){.when = now};
    if (!p->plan->iface[0])
        c->bytes = count_links(p);
    else if (!mfs_meters_read(p->plan->iface, &iface))
        c->bytes = p->inward ? iface.in : iface.out;
    else
        return 0;
    p->ncounts++;
    return c->bytes - p->count[0].bytes;
}

/* On a slow link TCP takes longer to find its pace, after a burst that a token bucket let through.
 */
static bool goes_on(const struct probe *p, int64_t lasted, uint64_t carried)
{
    if (p->ncounts >= COUNTS_MOST || carried >= p->plan->bytes)
        return false;
    return lasted < (carried < SLOW_BYTES ? SLOW_TIMES * p->plan->time : p->plan->time);
}

static int run(struct probe *p, struct mfs_err *err)
{
    int64_t began = mfs_clock_mono(), now = began, next = now + STEP;
    uint64_t carried = 0;
    int rc = 0;

    p->ncounts = 0;
    take_count(p, now);
    while (!rc && goes_on(p, now - began, carried)) {
        rc = poll_links(p, next);
        now = mfs_clock_mono();
        if (now < next)
            continue;
        carried = take_count(p, now);
        next = now + STEP;
    }
    return rc ? mfs_err_set(err, rc, "poll: %s", strerror(-rc)) : 0;
}

static void hang_up(struct probe *p)
{
    for (size_t i = 0; i < p->nlinks; i++) {
        if (of_this_way(p, &p->link[i]))
            mfs_probe_link_close(&p->link[i]);
    }
}

static int measure(struct probe *p, bool inward, double *rate, struct mfs_err *err)
{
    int rc;

    p->inward = inward;
    memset(p->carried, 0, sizeof p->carried);
    rc = start(p, err);
    if (!rc)
        rc = run(p, err);
    hang_up(p);
    if (!rc)
        *rate = mfs_probe_rate(p->count, p->ncounts);
    return rc;
}

static int measure_both(struct probe *p, struct mfs_probe_rates *r, struct mfs_err *err)
{
    int rc = gather(p, err);

    if (!rc)
        rc = measure(p, true, &r->in, err);
    if (!rc)
        rc = measure(p, false, &r->out, err);
    for (size_t i = 0; i < p->nlinks; i++)
        mfs_probe_link_close(&p->link[i]);
    return rc;
}

int mfs_probe_measure(int listener, const struct mfs_probe_plan *plan, struct mfs_probe_rates *r,
                      struct mfs_err *err)
{
    struct probe *p = calloc(1, sizeof *p);
    int rc;

    if (p)
        *p = (struct probe){
            .plan = plan, .listener = listener, .count = calloc(COUNTS_MOST, sizeof *p->count)};
    rc = p && p->count ? measure_both(p, r, err) : mfs_err_set(err, -ENOMEM, "out of memory");
    if (!p || p->listener >= 0)
        close(listener);
    free(p ? p->count : NULL);
    free(p);
    return rc;
}

/* ---- the helpers ----------------------------------------------------------------------------- */

static int reach(const char *host, uint16_t port, struct mfs_err *err)
{
    char text[128];
    struct mfs_address a;
    int fd, rc;

    if (mfs_address_join(host, port, text, sizeof text))
        return mfs_err_set(err, -ENAMETOOLONG, "%s: too long", host);
    rc = mfs_address_parse(text, &a, err);
    if (rc)
        return rc;
    fd = socket(a.sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return mfs_err_set(err, -errno, "socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&a.sa, a.len) && errno != EINPROGRESS) {
        rc = mfs_err_set(err, -errno, "%s: %s", text, strerror(errno));
        close(fd);
        return rc;
    }
    return fd;
}

static int open_link(struct mfs_probe_link *l, const char *host, uint16_t port,
                     const struct mfs_probe_plan *plan, bool sends, struct mfs_err *err)
{
    int fd = reach(host, port, err), rc;

    l->fd = -1;
    if (fd < 0)
        return fd;
    rc = mfs_probe_link_open(l, fd, &plan->secret, sends ? ROLE_SENDS : ROLE_TAKES);
    l->sends = sends;
    return rc ? mfs_err_set(err, rc, "%s", strerror(-rc)) : 0;
}

/* Until the other end has hung up both. */
static void serve(struct mfs_probe_link link[WAYS], int64_t until)
{
    while ((link[0].fd >= 0 || link[1].fd >= 0) && mfs_clock_mono() < until) {
        struct pollfd fds[WAYS];

        for (int i = 0; i < WAYS; i++)
            fds[i] = (struct pollfd){.fd = link[i].fd, .events = mfs_probe_link_wants(&link[i])};
        if (poll(fds, WAYS, 100) < 0)
            continue;
        for (int i = 0; i < WAYS; i++) {
            if (link[i].fd >= 0 && fds[i].revents)
                mfs_probe_link_go(&link[i], fds[i].revents);
        }
    }
}

int mfs_probe_meet(const char *host, uint16_t port, const struct mfs_probe_plan *plan,
                   struct mfs_err *err)
{
    int64_t until =
        mfs_clock_mono() + MFS_PROBE_GATHER_NS + WAYS * SLOW_TIMES * plan->time + PATIENCE;
    struct mfs_probe_link link[WAYS] = {{.fd = -1}, {.fd = -1}};
    int rc = open_link(&link[0], host, port, plan, true, err);

    if (!rc)
        rc = open_link(&link[1], host, port, plan, false, err);
    if (!rc)
        serve(link, until);
    mfs_probe_link_close(&link[0]);
    mfs_probe_link_close(&link[1]);
    if (!rc && !link[0].started && !link[1].started)
        rc = mfs_err_set(err, -ECONNREFUSED, "%s:%u: can't be met", host, port);
    return rc;
}
