#include "net/supervisor.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define AREA "supervisor"

static struct {
    struct sockaddr_un socket;
    socklen_t len;  /* of `socket`; 0 is none */
    int64_t period; /* ns, of the watchdog; 0 is none */
    bool ready;     /* was said */
} manager;

/* A path, or with @ an abstract name. */
static void take_socket(const char *name)
{
    size_t n = name ? strlen(name) : 0;

    if (n < 2 || (*name != '/' && *name != '@'))
        return;
    if (n >= sizeof manager.socket.sun_path) {
        mfs_warn(AREA, "NOTIFY_SOCKET is too long: %s", name);
        return;
    }
    manager.socket.sun_family = AF_UNIX;
    memcpy(manager.socket.sun_path, name, n);
    if (*name == '@')
        manager.socket.sun_path[0] = '\0';
    manager.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

static void take_watchdog(const char *usec, const char *pid)
{
    long long n = usec ? strtoll(usec, NULL, 10) : 0;

    if (n > 0 && n < INT64_MAX / 1000 && (!pid || strtoll(pid, NULL, 10) == getpid()))
        manager.period = n * 1000;
}

void mfs_supervisor_init(void)
{
    memset(&manager, 0, sizeof manager);
    take_socket(getenv("NOTIFY_SOCKET"));
    take_watchdog(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"));
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void tell(const char *what)
{
    int fd;

    if (!manager.len)
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    /* It never waits: a manager that reads nothing must not hold a file system up. */
    if (fd < 0 || sendto(fd, what, strlen(what), MSG_DONTWAIT | MSG_NOSIGNAL,
                         (const struct sockaddr *)&manager.socket, manager.len) < 0)
        mfs_warn(AREA, "%s: %s", what, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void alive(void *arg)
{
    (void)arg;
    tell("WATCHDOG=1");
}

void mfs_supervisor_ready(struct mfs_loop *loop)
{
    if (manager.ready)
        return;
    manager.ready = true;
    tell("READY=1");
    if (manager.len && manager.period && !mfs_loop_timer(loop, 0, manager.period / 2, alive, NULL))
        mfs_warn(AREA, "out of memory: the watchdog will end this process");
}

void mfs_supervisor_stopping(void)
{
    tell("STOPPING=1");
}
