/* far_switch RATE DELAY NAMESPACE…: a switch with long cables, where the kernel has no netem(8).
 *
 * Makes a device eth0 in each network namespace (/run/netns/NAMESPACE; "-": the caller's own) and
 * carries IPv4 packets between them until it is ended: each port sends and receives RATE Mbit/s at
 * most (0: no bound), each packet takes DELAY ms (one way). Port i has the address 10.213.0.(i +
 * 1), "-" has 10.213.0.254; the caller gives these to the devices once the switch has printed
 * "ready". What would wait for longer than 20 ms or two delays at a port is dropped. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/if_tun.h>
#include <linux/virtio_net.h>

#include "base/clock.h"

#define PORTS_MAX  66
#define PACKET_MAX (sizeof(struct virtio_net_hdr) + 65536)
#define WHOLE                                                                                      \
    7.9 /* ns per byte: on faster links the kernel's large packets stay whole; on others they      \
           would be lost whole */
#define BURST   32 /* packets taken from a port before the others have their turn */
#define MACHINE 254U

/* The delay is the same for all, but not the ports' queues: so one queue of packets per receiving
 * port. */
struct packet {
    struct packet *next;
    int64_t due; /* mfs_clock_mono */
    size_t len;
    char bytes[];
};

struct port {
    int fd;
    uint32_t host;                  /* of its address, the last byte */
    int64_t out_free, in_free;      /* when what it sends, and is sent, has gone */
    struct packet *first, **behind; /* to deliver, by time */
};

static struct port port[PORTS_MAX];
static unsigned ports;
static double ns_per_byte;
static int64_t delay, patience;

static void die(const char *what)
{
    fprintf(stderr, "far_switch: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* A device in the namespace that the process is in. */
static int make_device(void)
{
    struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

    strcpy(r.ifr_name, "eth0");
    if (fd < 0 || ioctl(fd, TUNSETIFF, &r) < 0 ||
        ioctl(fd, TUNSETOFFLOAD, ns_per_byte > WHOLE ? 0 : TUN_F_CSUM | TUN_F_TSO4) < 0)
        die("/dev/net/tun");
    return fd;
}

static void enter(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
        die(path);
    close(fd);
}

static void add_port(const char *name, int home)
{
    struct port *p = &port[ports];
    char path[256];

    *p = (struct port){.host = strcmp(name, "-") == 0 ? MACHINE : ports + 1, .behind = &p->first};
    snprintf(path, sizeof path, "/run/netns/%s", name);
    if (p->host != MACHINE)
        enter(path);
    p->fd = make_device();
    if (setns(home, CLONE_NEWNET) < 0)
        die("setns");
    ports++;
}

static struct port *addressed(const char *packet, size_t len)
{
    uint32_t to;

    if (len < sizeof(struct virtio_net_hdr) + 20)
        return NULL;
    memcpy(&to, packet + sizeof(struct virtio_net_hdr) + 16, sizeof to);
    for (unsigned i = 0; i < ports; i++)
        if (port[i].host == (ntohl(to) & 255))
            return &port[i];
    return NULL;
}

/* When the last of so many bytes has passed, after what already waits there. */
static int64_t pass(int64_t *is_free, int64_t from, size_t bytes)
{
    int64_t begin = *is_free > from ? *is_free : from;

    *is_free = begin + (int64_t)((double)bytes * ns_per_byte);
    return *is_free;
}

static void forward(struct port *from, const char *bytes, size_t len, int64_t now)
{
    struct port *to = addressed(bytes, len);
    struct packet *p;
    int64_t sent;

    if (to == NULL || from->out_free > now + patience || to->in_free > now + patience)
        return;
    p = malloc(sizeof *p + len);
    if (p == NULL)
        return;
    sent = pass(&from->out_free, now, len);
    p->due = pass(&to->in_free, sent, len) + delay;
    p->next = NULL;
    p->len = len;
    memcpy(p->bytes, bytes, len);
    *to->behind = p;
    to->behind = &p->next;
}

static void take_in(struct port *p)
{
    static char bytes[PACKET_MAX];

    for (unsigned i = 0; i < BURST; i++) {
        ssize_t n = read(p->fd, bytes, sizeof bytes);

        if (n <= 0)
            return;
        forward(p, bytes, (size_t)n, mfs_clock_mono());
    }
}

static void deliver(struct port *to)
{
    while (to->first != NULL && to->first->due <= mfs_clock_mono()) {
        struct packet *p = to->first;

        if (write(to->fd, p->bytes, p->len) < 0 && errno != EINVAL && errno != EIO &&
            errno != EAGAIN && errno != ENOBUFS)
            die("write");
        to->first = p->next;
        if (to->first == NULL)
            to->behind = &to->first;
        free(p);
    }
}

/* Until the next packet is due; ns, negative: none waits. */
static int64_t until_next(void)
{
    int64_t next = INT64_MAX, now = mfs_clock_mono();

    for (unsigned i = 0; i < ports; i++)
        if (port[i].first != NULL && port[i].first->due < next)
            next = port[i].first->due;
    if (next == INT64_MAX)
        return -1;
    return next > now ? next - now : 0;
}

static void carry(void)
{
    struct pollfd fd[PORTS_MAX];

    for (unsigned i = 0; i < ports; i++)
        fd[i] = (struct pollfd){.fd = port[i].fd, .events = POLLIN};
    for (;;) {
        int64_t wait = until_next();
        struct timespec t = {.tv_sec = wait / MFS_SEC, .tv_nsec = wait % MFS_SEC};

        if (ppoll(fd, ports, wait < 0 ? NULL : &t, NULL) < 0 && errno != EINTR)
            die("ppoll");
        for (unsigned i = 0; i < ports; i++) {
            if (fd[i].revents)
                take_in(&port[i]);
            deliver(&port[i]);
        }
    }
}

int main(int argc, char **argv)
{
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

    if (argc < 4 || argc - 3 > PORTS_MAX) {
        fprintf(stderr, "usage: far_switch MBIT MS NAMESPACE…\n");
        return 2;
    }
    ns_per_byte = atof(argv[1]) > 0 ? 8e3 / atof(argv[1]) : 0;
    delay = (int64_t)(atof(argv[2]) * (double)MFS_MSEC);
    patience = 2 * delay > 20 * MFS_MSEC ? 2 * delay : 20 * MFS_MSEC;
    for (int i = 3; i < argc; i++)
        add_port(argv[i], home);
    puts("ready");
    fflush(stdout);
    carry();
}
