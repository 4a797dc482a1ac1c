/* Inside the fixture: what its parts share. */
#ifndef MFS_TESTS_REDIS_FIXTURE_IMPL_H
#define MFS_TESTS_REDIS_FIXTURE_IMPL_H

#include "base/clock.h"
#include "redis_fixture.h"
#include "store/admin/admin.h"
#include "store/rights.h"

#define START_NS (10 * MFS_SEC)

/* Clients may do what they may in a deployment, so that a test finds what is missing there; with
 * what tests themselves need. */
#define CLIENT_RIGHTS MFS_CLIENT_RIGHTS FOR_TESTS
#define FOR_TESTS                                                                                  \
    " +append +incr +incrby +rpush +lrange +pttl +ttl +expire +hset +hlen +hgetall +sadd +srem "   \
    "+smembers +unlink +time"

struct server {
    pid_t pid;
    unsigned generation; /* a moved partition's process has its own files */
};

struct redis_fixture {
    struct redis_fixture_opts opts;
    struct mfs_table *table;
    char dir[32];
    struct server *server; /* nparts */
    pid_t *old;            /* left behind by moves */
    size_t nold;
};

/* redis_fixture.c */
int redis_fixture_complain(int rc, const char *what);

/* Waits until the process answers its administrator. */
int redis_fixture_open_admin(struct redis_fixture *f, uint32_t part, struct mfs_admin **admin);
int redis_fixture_format(struct redis_fixture *f, uint32_t part);

/* Gives the partition an address and a password of the server's generation and starts it. */
int redis_fixture_launch(struct redis_fixture *f, uint32_t part);

/* The partition is about to get another process at another place. */
int redis_fixture_leave_behind(struct redis_fixture *f, uint32_t part);

#endif
