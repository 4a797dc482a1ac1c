#include "fuse/mount/stats.h"

#include "base/buf.h"
#include "base/log.h"
#include "store/store.h"

static const char *const names[MFS_OP_COUNT] = {
#define OP(name, NAME, opcode, waits) #name,
#include "fuse/ops.def"
#undef OP
};

unsigned long mfs_fuse_stats_requests(const struct mfs_fuse_stats *s)
{
    unsigned long n = 0;

    for (unsigned i = 0; i < MFS_OP_COUNT; i++)
        n += atomic_load_explicit(&s->requests[i], memory_order_relaxed);
    return n;
}

void mfs_fuse_stats_log(struct mfs_fuse_stats *s, struct mfs_store *store)
{
    struct mfs_store_stats st;
    struct mfs_buf line;
    int rc = 0;

    mfs_buf_init(&line);
    for (unsigned i = 0; i < MFS_OP_COUNT && rc >= 0; i++) {
        unsigned long n = atomic_load(&s->requests[i]);

        if (n > 0)
            rc = mfs_buf_printf(&line, " %s=%lu", names[i], n);
    }
    if (rc >= 0 && mfs_buf_len(&line) > 0)
        mfs_info("stats", "requests:%.*s", (int)mfs_buf_len(&line), mfs_buf_data(&line));
    mfs_buf_fini(&line);
    mfs_store_stats(store, &st);
    mfs_info("stats",
             "read=%lu written=%lu bytes; round_trips=%llu commands=%llu sent=%llu received=%llu",
             atomic_load(&s->bytes_read), atomic_load(&s->bytes_written),
             (unsigned long long)st.round_trips, (unsigned long long)st.commands,
             (unsigned long long)st.bytes_out, (unsigned long long)st.bytes_in);
}
