/* What the tests of peers share. */
#ifndef MFS_TESTS_PEERS_TEST_H
#define MFS_TESTS_PEERS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "lm/measure/peers.h"

/* Of two partitions: one here, one on the other node. */
static inline struct mfs_table *two_nodes(const char *there, uint16_t port)
{
    struct mfs_table *t = mfs_table_new(2);

    assert_non_null(t);
    t->epoch = 1;
    snprintf(t->part[0].host, sizeof t->part[0].host, "10.0.0.1");
    t->part[0].port = 4000;
    snprintf(t->part[1].host, sizeof t->part[1].host, "%s", there);
    t->part[1].port = port;
    t->part[1].node = 7;
    return t;
}

#endif
