#include "vfs_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/placement.h"

struct redis_fixture *vfs_redis;

int vfs_redis_start(uint32_t stripe_size)
{
    struct redis_fixture_opts opts = {.nparts = 3, .stripe_size = stripe_size};

    return redis_fixture_start(&vfs_redis, &opts);
}

int vfs_redis_stop(void **state)
{
    (void)state;
    redis_fixture_stop(vfs_redis);
    return 0;
}

void vfs_client_start(struct mfs_store **store, struct mfs_vfs **vfs)
{
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE};

    assert_int_equal(mfs_store_create(store, redis_fixture_table(vfs_redis), &opts), 0);
    assert_int_equal(mfs_vfs_create(vfs, *store, &(struct mfs_vfs_opts){0}), 0);
}

void vfs_client_stop(struct mfs_store *store, struct mfs_vfs *vfs)
{
    mfs_vfs_destroy(vfs);
    mfs_store_destroy(store);
}

void vfs_expect_all(struct mfs_file *f, uint64_t off, size_t len, char what, const char *who)
{
    char *buf = malloc(len);

    assert_non_null(buf);
    memset(buf, '?', len);
    assert_int_equal(mfs_vfs_read(f, buf, len, off, true, NULL), len);
    for (size_t at = 0; at < len; at++)
        if (buf[at] != what)
            fail_msg("%s: byte %llu is %d, not %d", who, (unsigned long long)(off + at), buf[at],
                     what);
    free(buf);
}

void vfs_pair_start(struct vfs_client *a, struct vfs_client *b, struct mfs_file **file,
                    uint64_t *ino)
{
    const struct mfs_cred root = {.umask = 022, .in_group = true};
    struct mfs_attr attr;
    bool keep;

    assert_int_equal(redis_fixture_reset(vfs_redis), 0);
    vfs_client_start(&a->store, &a->vfs);
    vfs_client_start(&b->store, &b->vfs);
    assert_int_equal(mfs_vfs_create_open(a->vfs, MFS_ROOT_INO, "f", 0644, O_RDWR | O_CREAT, &root,
                                         &attr, file, &keep),
                     0);
    *ino = attr.ino;
}

void vfs_pair_stop(struct vfs_client *a, struct vfs_client *b, struct mfs_file *file)
{
    mfs_vfs_release(file);
    vfs_client_stop(a->store, a->vfs);
    vfs_client_stop(b->store, b->vfs);
}
