/* A model of nodes whose links carry so much in and so much out, in total, and of clients that each
 * keep a bounded number of stripes under way, to partitions chosen at random in proportion to the
 * nodes' shares. Stripes on their way share the links max-min fairly, or as unfairly as TCP may. In
 * the end each waits for the slowest, as real applications do.
 *
 * It tells what Local Managers would: rates of interfaces, and per other node how much was sent and
 * for how long that waited for the network, with noise, each node at its own time, some reports
 * lost. No wall clock; the same seed gives the same run. */
#ifndef MFS_TESTS_HOSE_MODEL_H
#define MFS_TESTS_HOSE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/messages.h"

#define HOSE_NODES 8
#define HOSE_STEP  0.02 /* s */

enum hose_mode { HOSE_IDLE, HOSE_WRITE, HOSE_READ };

struct hose_node {
    double capacity; /* bytes/s each way */
    double share;    /* of the data, in proportion to the others' */
    /* Its client */
    enum hose_mode mode;
    unsigned window; /* stripes */
    double limit;    /* bytes/s that it can use at most; 0: none */
    double served;   /* bytes/s that its redis processes can take or give; 0: no limit */
    /* Out: in the last step */
    double load_in, load_out; /* bytes/s */
};

/* A partition on its way. */
struct hose_move {
    uint32_t from, to;
    double rate; /* bytes/s at most; 0: it does not run */
};

/* Stripes between a client and a node's partitions. */
struct hose_flow {
    uint32_t from, to;
    double backlog; /* bytes, known to the side that sends */
    double most; /* bytes/s that it can have for reasons that are not the network's; 0: no limit */
    double rate; /* in this step */
    double weight; /* beside other flows on a full link */
};

struct hose_figures {
    double in, out; /* bytes */
    double sent[HOSE_NODES], busy[HOSE_NODES];
    double since;
};

struct hose {
    uint64_t seed;
    uint32_t n;
    double stripe; /* bytes */
    double unfair; /* flows get up to so many times less than others; 0, 1: no */
    double rate_noise, busy_noise, lost; /* parts: of a rate, of a second, of the reports */
    struct hose_node node[HOSE_NODES];
    struct hose_move move;
    /* Inside */
    double now;
    uint64_t steps;
    struct hose_flow flow[2 * HOSE_NODES * HOSE_NODES + 1];
    struct hose_figures figures[HOSE_NODES];
    double tokens[HOSE_NODES];
};

typedef void hose_on_report(void *arg, double now, uint32_t node, double in, double out,
                            const struct mfs_report_peer *peer, uint32_t npeers);

void hose_init(struct hose *h, uint64_t seed, uint32_t n, double stripe);
double hose_random(struct hose *h); /* 0 … 1 */
void hose_change(struct hose *h);   /* clients forget what is under way: another stage begins */

/* A second goes by; every node reports once in it, unless that is lost. */
void hose_second(struct hose *h, hose_on_report *on_report, void *arg);

#endif
