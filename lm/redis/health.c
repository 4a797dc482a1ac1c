/* One connection, and at most one question on it. Whatever goes wrong with it, the question stays
 * open and is asked again on another one. */
#include "lm/redis/health.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "cluster/table.h"

#define QUESTION   "mfs_term\r\n"
#define LOGON_MAX  256
#define REPLY_MAX  128
#define STARVED_MS 600                 /* half a term: three questions in vain (decisions/0017) */
#define HELD_UP    (4 * MFS_HEALTH_NS) /* between two checks: lm itself was held up */

static_assert(STARVED_MS * MFS_MSEC > 2 * MFS_HEALTH_NS, "more than one question in vain");

struct mfs_health {
    struct mfs_loop *loop;
    void (*changed)(void *arg);
    void *arg;
    struct sockaddr_un to;
    char logon[LOGON_MAX];
    int fd; /* -1: not connected */
    struct mfs_watch *watch;
    bool greeted;       /* the answer to `logon` has come */
    int64_t open;       /* since when the question has been; 0: it is answered */
    int64_t checked_at; /* the last check */
    bool silent, starved;
    char reply[REPLY_MAX];
    size_t len;
};

bool mfs_health_silent(const struct mfs_health *p)
{
    return p && p->silent;
}

bool mfs_health_starved(const struct mfs_health *p)
{
    return p && p->starved && !p->silent;
}

static void tell(struct mfs_health *p, bool silent, bool starved)
{
    bool news = p->silent != silent || p->starved != starved;

    p->silent = silent;
    p->starved = starved;
    if (news)
        p->changed(p->arg);
}

static void hang_up(struct mfs_health *p)
{
    mfs_watch_remove(p->watch);
    p->watch = NULL;
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

/* ---- what it says ---------------------------------------------------------------------------- */

/* 1: the whole answer is there, 0: not yet, -EPROTO. */
static int parse(struct mfs_health *p, bool *starved)
{
    static const char ok[] = "+OK\r\n";
    long long terms, left;
    int end = 0;

    p->reply[p->len] = '\0';
    if (!p->greeted) {
        if (p->len < sizeof ok - 1)
            return strncmp(p->reply, ok, p->len) ? -EPROTO : 0;
        if (memcmp(p->reply, ok, sizeof ok - 1))
            return -EPROTO;
        p->greeted = true;
        p->len -= sizeof ok - 1;
        memmove(p->reply, p->reply + sizeof ok - 1, p->len + 1);
    }
    if (p->len && p->reply[0] != '*')
        return -EPROTO;
    if (sscanf(p->reply, "*2 :%lld :%lld%n", &terms, &left, &end) < 2 ||
        strncmp(p->reply + end, "\r\n", 2))
        return p->len == REPLY_MAX - 1 ? -EPROTO : 0;
    p->len = 0;
    *starved = terms && left <= STARVED_MS;
    return 1;
}

/* 1: it has answered. */
static int hear(struct mfs_health *p, bool *starved)
{
    while (p->fd >= 0) {
        ssize_t n = recv(p->fd, p->reply + p->len, REPLY_MAX - 1 - p->len, MSG_DONTWAIT);
        int rc;

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n > 0)
            p->len += (size_t)n;
        rc = n > 0 ? parse(p, starved) : -ECONNRESET;
        if (rc > 0)
            return 1;
        if (rc < 0)
            hang_up(p);
    }
    return 0;
}

static void listen_to(struct mfs_health *p)
{
    bool starved;

    if (!hear(p, &starved))
        return;
    p->open = 0;
    tell(p, false, starved);
}

static void ready(void *arg, uint32_t events)
{
    (void)events;
    listen_to(arg);
}

/* ---- what it is asked ------------------------------------------------------------------------ */

static void dial(struct mfs_health *p)
{
    p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    p->greeted = false;
    p->len = 0;
    /* A process that hangs has connections made until its backlog is full. */
    if (p->fd >= 0 && !connect(p->fd, (struct sockaddr *)&p->to, sizeof p->to))
        p->watch = mfs_loop_watch(p->loop, p->fd, EPOLLIN, ready, p);
    if (!p->watch)
        hang_up(p);
}

static void say(struct mfs_health *p, const char *text)
{
    size_t n = strlen(text);

    if (p->fd >= 0 && send(p->fd, text, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
        hang_up(p);
}

static void ask(struct mfs_health *p)
{
    if (p->fd < 0) {
        dial(p);
        say(p, p->logon);
    }
    say(p, QUESTION);
}

void mfs_health_check(struct mfs_health *p, int64_t now)
{
    bool late = p->checked_at && now - p->checked_at > HELD_UP, lost;

    p->checked_at = now;
    if (p->open)
        listen_to(p); /* before anything is said about it */
    if (p->open && late)
        p->open = now;
    if (p->open && now - p->open >= MFS_HEALTH_SILENT_NS)
        tell(p, true, p->starved);
    lost = p->fd < 0;
    if (p->open && !lost)
        return;
    if (!p->open)
        p->open = now;
    ask(p);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct mfs_health *mfs_health_begin(struct mfs_loop *loop, const char *unix_path,
                                    const char *admin_password, void (*changed)(void *arg),
                                    void *arg)
{
    struct mfs_health *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    *p = (struct mfs_health){
        .loop = loop, .changed = changed, .arg = arg, .fd = -1, .to.sun_family = AF_UNIX};
    if (mfs_text_format(p->to.sun_path, sizeof p->to.sun_path, "%s", unix_path) ||
        mfs_text_format(p->logon, sizeof p->logon, "AUTH %s %s\r\n", MFS_REDIS_ADMIN,
                        admin_password)) {
        free(p);
        return NULL;
    }
    return p;
}

void mfs_health_end(struct mfs_health *p)
{
    if (!p)
        return;
    hang_up(p);
    free(p);
}
