/* What a node does: bytes per second in and out. Parsing and rates are pure; finding the interface
 * asks the kernel. */
#ifndef MFS_LM_MEASURE_METERS_H
#define MFS_LM_MEASURE_METERS_H

#include <stdbool.h>
#include <stdint.h>

#define MFS_METERS_IFACE_MAX 16 /* IFNAMSIZ */

struct mfs_meter_count {
    uint64_t in, out; /* bytes since some start */
};

/* The counters of one interface out of the text of /proc/net/dev (proc_net_dev(5)). 0, or -ENOENT
 * when the interface is not in it, or -EINVAL when its line is not understood. */
int mfs_meters_parse_net_dev(const char *text, const char *iface, struct mfs_meter_count *count);

/* The name of the interface that carries an address (as text, IPv4 or IPv6), into iface. -ENOENT
 * for none, and for loopback addresses, whose interface carries all traffic of the machine. */
int mfs_meters_iface(const char *address, char iface[MFS_METERS_IFACE_MAX]);

/* Reads /proc/net/dev for it. 0 or a negative errno. Blocks only on procfs. */
int mfs_meters_read(const char *iface, struct mfs_meter_count *count);

/* A rate out of counters that may start anew (a process ended, an interface was reset): then the
 * interval gives no rate and the last one stays. */
struct mfs_meter {
    bool started;
    int64_t when; /* mfs_clock_mono */
    struct mfs_meter_count last;
    double in, out; /* bytes per second over the last interval */
};

void mfs_meter_update(struct mfs_meter *m, int64_t now, const struct mfs_meter_count *count);

#endif
