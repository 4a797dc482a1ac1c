#include "vfs_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

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
