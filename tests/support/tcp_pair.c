#include "tcp_pair.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct tcp_pair tcp_pair;

int tcp_pair_setup(void **state)
{
    (void)state;
    if (redis_fixture_start(&tcp_pair.fixture,
                            &(struct redis_fixture_opts){.nparts = 2, .tcp = true}))
        return -1;
    tcp_pair.table = redis_fixture_table(tcp_pair.fixture);
    return 0;
}

int tcp_pair_teardown(void **state)
{
    (void)state;
    free(tcp_pair.table);
    redis_fixture_stop(tcp_pair.fixture);
    return 0;
}

struct sockaddr_in tcp_pair_address(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int tcp_pair_dial(uint16_t port)
{
    struct sockaddr_in to = tcp_pair_address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to)) {
        close(fd);
        fd = -1;
    }
    return fd;
}
