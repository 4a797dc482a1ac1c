/* Two redis processes that are reached by TCP, too, for all tests of a group (redis_fixture.h), and
 * bare sockets to and beside them. */
#ifndef MFS_TESTS_TCP_PAIR_H
#define MFS_TESTS_TCP_PAIR_H

#include <netinet/in.h>
#include <stdint.h>

#include "cluster/table.h"
#include "redis_fixture.h"

struct tcp_pair {
    struct redis_fixture *fixture;
    struct mfs_table *table; /* of partitions 0 and 1 */
};

/* For cmocka: set it, and end the processes. */
extern struct tcp_pair tcp_pair;
int tcp_pair_setup(void **state);
int tcp_pair_teardown(void **state);

struct sockaddr_in tcp_pair_address(uint16_t port); /* of the loopback interface */
int tcp_pair_dial(uint16_t port);                   /* a connection, or -1 */

#endif
