/* How much memory the partitions have and use. */
#include "meta/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "meta/call.h"

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

static uint64_t number(const struct mfs_cmd *cmd)
{
    struct mfs_bytes text = mfs_reply_bytes(cmd->reply);

    return text.p ? strtoull(text.p, NULL, 10) : 0;
}

enum { INFO, SEQ, FREED, QUESTIONS };

/* Of every partition its memory, and how many inodes it has made and freed. */
static int ask(struct mfs_meta *meta, struct mfs_meta_space *space)
{
    static const char *const words[QUESTIONS][2] = {
        [INFO] = {"INFO", "memory"}, [SEQ] = {"GET", "#seq"}, [FREED] = {"GET", "#freed"}};
    size_t n = QUESTIONS * (size_t)meta->nparts;
    struct mfs_cmd *cmds = calloc(n, sizeof *cmds);
    struct mfs_args args[QUESTIONS];
    int rc;

    if (!cmds)
        return -ENOMEM;
    for (size_t q = 0; q < QUESTIONS; q++) {
        mfs_args_init(&args[q], words[q][0]);
        mfs_args_str(&args[q], words[q][1]);
    }
    for (size_t i = 0; i < n; i++) {
        cmds[i] = mfs_args_cmd(&args[i % QUESTIONS], (uint32_t)(i / QUESTIONS));
        cmds[i].idempotent = true;
    }
    rc = mfs_store_exec(meta->store, cmds, n);
    memset(space, 0, sizeof *space);
    for (uint32_t p = 0; p < meta->nparts && !rc; p++) {
        const struct mfs_cmd *answer = cmds + QUESTIONS * (size_t)p;
        struct mfs_bytes text = mfs_reply_bytes(answer[INFO].reply);
        uint64_t max = field(text, "maxmemory"), seq = number(&answer[SEQ]),
                 freed = number(&answer[FREED]);

        space->total += max ? max : field(text, "total_system_memory");
        space->used += field(text, "used_memory");
        space->files += seq > freed ? seq - freed : 0;
    }
    mfs_cmds_fini(cmds, n);
    free(cmds);
    return rc;
}

int mfs_meta_statfs(struct mfs_meta *meta, struct mfs_meta_space *space)
{
    int64_t now = mfs_clock_mono();
    bool fresh;
    int rc;

    pthread_mutex_lock(&meta->room.mutex);
    fresh = meta->room.at && now - meta->room.at < SPACE_AGE;
    *space = meta->room.space;
    pthread_mutex_unlock(&meta->room.mutex);
    if (fresh)
        return 0;
    rc = ask(meta, space);
    if (rc)
        return rc;
    pthread_mutex_lock(&meta->room.mutex);
    meta->room.space = *space;
    meta->room.at = now;
    pthread_mutex_unlock(&meta->room.mutex);
    return 0;
}
