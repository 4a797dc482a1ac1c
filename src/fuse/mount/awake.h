/* Keeps processors from halting while requests come one after the other.
 *
 * Each request of the kernel wakes a thread of ours, most of these a partition, and their answers
 * wake the caller. In a virtual machine a processor without work halts by leaving to the host, and
 * is back some 50 µs after it is woken, far more than the work takes. Linux can poll instead
 * (cpuidle driver haltpoll), mostly has that switched off, and takes the wish of programs by PM
 * QoS: Documentation/power/pm_qos_interface.rst. While at least 500 requests per second come, we
 * wish for no latency. The wish ends with the file descriptor, so with us at the latest.
 *
 * Elsewhere, or without the device or the right to it, this does nothing. */
#ifndef MFS_FUSE_MOUNT_AWAKE_H
#define MFS_FUSE_MOUNT_AWAKE_H

struct mfs_awake;
struct mfs_metric_set;

/* Follows the figures of requests (request_metrics.h), which must outlive it. NULL where there is
 * nothing to do, or no memory. */
struct mfs_awake *mfs_awake_start(const struct mfs_metric_set *requests);
/* A request has come. Any thread until mfs_awake_stop; costs next to nothing; NULL is fine. */
void mfs_awake_request(struct mfs_awake *a);
void mfs_awake_stop(struct mfs_awake *a); /* NULL is fine */

#endif
