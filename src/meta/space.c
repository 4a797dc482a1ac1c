/* How much memory the partitions have and use. */
#include "meta/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPACE_AGE MFS_SEC

static uint64_t field(struct mfs_bytes info, const char *name)
{
    size_t len = strlen(name);
    const char *p = info.p;

    while (p && (p = strstr(p, name))) {
        if ((p == info.p || p[-1] == '\n') && p[len] == ':')
            return strtoull(p + len + 1, NULL, 10);
        p += len;
    }
    return 0;
}

/* INFO memory and DBSIZE of every partition; keys beside inodes are rare enough for an estimate. */
static int ask(struct mfs_meta *meta, struct mfs_meta_space *space)
{
    struct mfs_args info, size;
    struct mfs_cmd *cmds = calloc(2 * (size_t)meta->nparts, sizeof *cmds);
    int rc;

    if (!cmds)
        return -ENOMEM;
    mfs_args_init(&info, "INFO");
    mfs_args_str(&info, "memory");
    mfs_args_init(&size, "DBSIZE");
    for (uint32_t p = 0; p < meta->nparts; p++) {
        cmds[2 * p] = mfs_args_cmd(&info, p);
        cmds[2 * p + 1] = mfs_args_cmd(&size, p);
        cmds[2 * p].idempotent = cmds[2 * p + 1].idempotent = true;
    }
    rc = mfs_store_exec(meta->store, cmds, 2 * (size_t)meta->nparts);
    memset(space, 0, sizeof *space);
    for (uint32_t p = 0; p < meta->nparts && !rc; p++) {
        struct mfs_bytes text = mfs_reply_bytes(cmds[2 * p].reply);
        uint64_t max = field(text, "maxmemory");

        space->total += max ? max : field(text, "total_system_memory");
        space->used += field(text, "used_memory");
        space->files += (uint64_t)mfs_reply_int(cmds[2 * p + 1].reply);
    }
    mfs_cmds_fini(cmds, 2 * (size_t)meta->nparts);
    free(cmds);
    return rc;
}

int mfs_meta_statfs(struct mfs_meta *meta, struct mfs_meta_space *space)
{
    int64_t now = mfs_clock_mono();
    bool fresh;
    int rc;

    pthread_mutex_lock(&meta->space_mutex);
    fresh = meta->space_at && now - meta->space_at < SPACE_AGE;
    *space = meta->space;
    pthread_mutex_unlock(&meta->space_mutex);
    if (fresh)
        return 0;
    rc = ask(meta, space);
    if (rc)
        return rc;
    pthread_mutex_lock(&meta->space_mutex);
    meta->space = *space;
    meta->space_at = now;
    pthread_mutex_unlock(&meta->space_mutex);
    return 0;
}
