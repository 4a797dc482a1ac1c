/* Redis processes and clients of the layer that serves the kernel, for unit tests without one. */
#ifndef MFS_TESTS_VFS_FIXTURE_H
#define MFS_TESTS_VFS_FIXTURE_H

#include <stdint.h>

#include "redis_fixture.h"
#include "vfs/vfs.h"

extern struct redis_fixture *vfs_redis; /* 3 partitions */

int vfs_redis_start(uint32_t stripe_size); /* 0: the default */
int vfs_redis_stop(void **state);

/* Fails the test if it can't. */
void vfs_client_start(struct mfs_store **store, struct mfs_vfs **vfs);
void vfs_client_stop(struct mfs_store *store, struct mfs_vfs *vfs);

/* The file's bytes there are all `what`. Fails the test if not, and says who reads. */
void vfs_expect_all(struct mfs_file *f, uint64_t off, size_t len, char what, const char *who);

struct vfs_client {
    struct mfs_store *store;
    struct mfs_vfs *vfs;
};

/* Two clients of empty partitions, and a new file that the first has open to read and write. */
void vfs_pair_start(struct vfs_client *a, struct vfs_client *b, struct mfs_file **file,
                    uint64_t *ino);
void vfs_pair_stop(struct vfs_client *a, struct vfs_client *b, struct mfs_file *file);

#endif
