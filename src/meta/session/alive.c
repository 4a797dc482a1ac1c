/* Whether a session is alive: this client's own, and others'. Other clients drop the opens and
 * locks of a dead session. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "meta/call.h"
#include "meta/session/key.h"
#include "meta/deferred/deferred.h"
#include "meta/session/session.h"

#define REFRESH_WAIT (2 * MFS_SEC)

void mfs_session_leaves(struct mfs_meta *meta)
{
    meta->leftovers.answer_lost = true;
    mfs_chores_doubt(meta);
}

int mfs_session_note_outcome(struct mfs_meta *meta, int rc)
{
    if (mfs_outcome_is_unknown(rc))
        mfs_session_leaves(meta);
    return rc;
}

/* A session that was silent for as long as others take for dead is told of nothing, and owns
 * nothing that it takes. */
bool mfs_session_is_fresh(const struct mfs_meta *meta)
{
    return mfs_clock_mono() - meta->refreshed_at < meta->opts.session_ttl / 4 * 3;
}

bool mfs_session_gets_notices(const struct mfs_meta *meta)
{
    return !meta->unsubscribed && mfs_session_is_fresh(meta);
}

int mfs_session_ensure_fresh(struct mfs_meta *meta)
{
    int64_t until = mfs_clock_mono() + REFRESH_WAIT;

    if (mfs_session_is_fresh(meta))
        return 0;
    mfs_ticker_hurry(&meta->session_ticker);
    while (!mfs_session_is_fresh(meta)) {
        if (mfs_clock_mono() >= until)
            return -EIO;
        mfs_clock_sleep(MFS_MSEC);
    }
    return 0;
}

void mfs_session_alive(struct mfs_meta *meta, const uint64_t *sids, size_t n, bool *alive)
{
    mfs_session_find(meta, sids, n, alive, NULL);
}

void mfs_session_find(struct mfs_meta *meta, const uint64_t *sids, size_t n, bool *alive,
                      uint32_t *node)
{
    struct mfs_cmd *cmds = calloc(n, sizeof *cmds);
    struct mfs_args *args = calloc(n, sizeof *args);
    char(*keys)[MFS_KEY_INO_LEN] = calloc(n, sizeof *keys);

    memset(alive, true, n * sizeof *alive);
    for (size_t i = 0; node && i < n; i++)
        node[i] = MFS_NO_NODE;
    if (!cmds || !args || !keys)
        goto out;
    for (size_t i = 0; i < n; i++) {
        mfs_key_ino(keys[i], 'Z', sids[i]);
        mfs_args_init(&args[i], "GET");
        mfs_args_bin(&args[i], keys[i], sizeof keys[i]);
        cmds[i] = mfs_args_cmd(&args[i], mfs_session_part(meta, sids[i]));
        cmds[i].idempotent = true;
    }
    mfs_store_exec(meta->store, cmds, n);
    for (size_t i = 0; i < n; i++) {
        struct mfs_bytes text = cmds[i].rc ? (struct mfs_bytes){0} : mfs_reply_bytes(cmds[i].reply);

        if (cmds[i].rc) /* as long as its client may rely on what it knew */
            alive[i] = !mfs_store_gone(meta->store, mfs_session_part(meta, sids[i]),
                                       meta->opts.session_ttl);
        else
            alive[i] = text.p;
        if (node)
            node[i] = mfs_session_parse_node(text);
    }
    mfs_cmds_fini(cmds, n);
out:
    free(cmds);
    free(args);
    free(keys);
}
