/* A client's session: a key with a time to live that says that it is alive. Others take the opens
 * and locks of a session without such a key for nobody's. */
#include "meta/coherence/notices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "meta/deferred/doubt.h"
#include "meta/session/opens.h"

#define BEGIN_TRIES 8U
#define PROVE_WAIT  (2 * MFS_SEC)

static uint32_t session_part(const struct mfs_meta *meta, uint64_t sid)
{
    return (uint32_t)(sid % meta->nparts);
}

/* Prolongs its life. 1: done; 0: it is dead. */
static int refresh(struct mfs_meta *meta, uint64_t sid)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_call c;
    int rc;

    mfs_key_ino(key, 'Z', sid);
    mfs_call_command(&c, "PEXPIRE");
    mfs_args_bin(&c.args, key, sizeof key);
    mfs_args_int(&c.args, meta->opts.session_ttl / MFS_MSEC);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, session_part(meta, sid));
    if (!rc)
        rc = mfs_reply_int(c.cmd.reply) == 1;
    mfs_call_fini(&c);
    return rc;
}

#define NODE_MARK 'n'
#define NODE_TEXT 16

/* What its key holds: of which node it is. Who has no leases need not be waited for, and what he
 * learns of cm is not asked for. */
static void tell_node(const struct mfs_meta *meta, char text[NODE_TEXT])
{
    uint32_t node = meta->opts.revoked ? mfs_store_node(meta->store) : MFS_NO_NODE;

    snprintf(text, NODE_TEXT, "-");
    if (node != MFS_NO_NODE)
        snprintf(text, NODE_TEXT, "%c%" PRIu32, NODE_MARK, node);
}

static uint32_t node_told(struct mfs_bytes text)
{
    char number[NODE_TEXT] = "", *end;
    unsigned long node;

    if (text.n < 2 || text.n > sizeof number || text.p[0] != NODE_MARK)
        return MFS_NO_NODE;
    memcpy(number, text.p + 1, text.n - 1);
    node = strtoul(number, &end, 10);
    return *end || node > MFS_NO_NODE ? MFS_NO_NODE : (uint32_t)node;
}

static int begin_session(struct mfs_meta *meta, uint64_t sid)
{
    struct mfs_ino_arg key = mfs_ino_arg(sid);
    char node[NODE_TEXT];
    struct mfs_call c;
    int rc;

    mfs_call_function(&c, "mfs_session");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_int(&c.args, meta->opts.session_ttl / MFS_MSEC);
    tell_node(meta, node);
    mfs_args_str(&c.args, node);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, session_part(meta, sid));
    mfs_call_fini(&c);
    return rc;
}

int mfs_session_doubt(struct mfs_meta *meta, int rc)
{
    if (mfs_is_doubtful(rc))
        meta->unsure = true;
    return rc;
}

static int new_sid(uint64_t *sid)
{
    int rc;

    do {
        rc = mfs_random(sid, sizeof *sid);
    } while (!rc && *sid == 0);
    return rc;
}

/* Begins one at a partition that answers. */
static int begin_somewhere(struct mfs_meta *meta, uint64_t *sid)
{
    int rc = -EIO;

    for (unsigned i = 0; i < BEGIN_TRIES && rc; i++) {
        rc = new_sid(sid);
        if (!rc)
            rc = begin_session(meta, *sid);
    }
    return rc;
}

int mfs_session_start(struct mfs_meta *meta)
{
    int64_t before = mfs_clock_mono();
    uint64_t sid;
    int rc = begin_somewhere(meta, &sid);

    if (rc)
        return rc;
    meta->sid = sid;
    meta->session_began = mfs_clock_mono();
    meta->proved = before;
    return 0;
}

/* At once, as others may take away by now what only the old session had open; whether that was done
 * a thread finds out (meta/session/untold.h), by the same number. */
static void post_opens(struct mfs_meta *meta, uint64_t sid, const struct mfs_open_state *list,
                       size_t n)
{
    struct mfs_ino_arg who = mfs_ino_arg(sid);

    for (size_t i = 0; i < n; i++) {
        struct mfs_ino_arg key = mfs_ino_arg(list[i].ino);
        struct mfs_call c;

        if (!list[i].count)
            continue;
        mfs_call_function(&c, "mfs_reopen");
        mfs_args_bin(&c.args, key.b, sizeof key.b);
        mfs_args_bin(&c.args, who.b, sizeof who.b);
        mfs_args_int(&c.args, list[i].count);
        mfs_args_int(&c.args, (int64_t)list[i].number);
        mfs_call_post(meta, &c, mfs_placement_home(list[i].ino));
    }
}

/* Has notices for this session heard; else a later tick tries again. What came before, which others
 * may have given up to tell, is relied on no more. */
static void listen_anew(struct mfs_meta *meta)
{
    int rc = mfs_notices_rename(meta);

    if (rc) {
        mfs_error("meta", "session %016" PRIx64 " can't be told of others' changes: %s", meta->sid,
                  strerror(-rc));
        return;
    }
    mfs_leases_forget(meta);
    meta->deaf = false;
}

/* The old session is dead for everyone: its locks are lost, its opens are registered anew. */
static void renew_session(struct mfs_meta *meta)
{
    int64_t before = mfs_clock_mono();
    struct mfs_open_state *list;
    uint64_t sid, old = meta->sid;
    size_t n;

    if (begin_somewhere(meta, &sid))
        return;
    meta->deaf = true;
    n = mfs_opens_renew(meta, sid, &list);
    meta->session_began = mfs_clock_mono();
    mfs_warn("meta", "session %016" PRIx64 " had expired; %016" PRIx64 " takes over %zu open files",
             old, sid, n);
    post_opens(meta, sid, list, n);
    free(list);
    /* Who changes something from here on tells the new session. What was known before counts no
     * more, and not until that is forgotten is this session relied on. */
    mfs_leases_forget(meta);
    meta->unsure = true; /* in the name of the old one something may have come late */
    if (meta->opts.changed)
        meta->opts.changed(meta->opts.arg, 0, 0, NULL, NULL);
    meta->proved = before;
    if (meta->opts.revoked)
        meta->opts.revoked(meta->opts.arg, 0, true, false, NULL, NULL);
    listen_anew(meta);
}

/* What this client may have left is searched for as if it had died: by a session that hardly lived,
 * which is allowed when memory is full of it. Kept by this one's partition: another may hang, and
 * who waits for it does not prolong his session's life. */
static void ask_for_search(struct mfs_meta *meta)
{
    struct mfs_ino_arg key;
    struct mfs_call c;
    uint64_t sid;

    if (new_sid(&sid))
        return;
    sid >>= 1; /* so that the sum does not overflow */
    sid += session_part(meta, meta->sid) + meta->nparts - session_part(meta, sid);
    key = mfs_ino_arg(sid);
    mfs_call_function(&c, "mfs_session");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_int(&c.args, 1);
    mfs_args_str(&c.args, "");
    c.cmd.idempotent = true;
    mfs_call_run(meta, &c, session_part(meta, sid));
    mfs_call_fini(&c);
}

/* It can't be alive any more: it is gone with its partition, or nobody could prolong its life. */
static bool is_over(struct mfs_meta *meta)
{
    return mfs_store_gone(meta->store, session_part(meta, meta->sid), 0) ||
           mfs_clock_mono() - meta->proved > meta->opts.session_ttl;
}

/* Who was silent for as long as others take for dead is told of nothing, and nothing that he takes
 * is his. */
bool mfs_session_sure(const struct mfs_meta *meta)
{
    return mfs_clock_mono() - meta->proved < meta->opts.session_ttl / 4 * 3;
}

bool mfs_session_hears(const struct mfs_meta *meta)
{
    return !meta->deaf && mfs_session_sure(meta);
}

int mfs_session_prove(struct mfs_meta *meta)
{
    int64_t until = mfs_clock_mono() + PROVE_WAIT;

    if (mfs_session_sure(meta))
        return 0;
    mfs_ticker_hurry(&meta->session_ticker);
    while (!mfs_session_sure(meta)) {
        if (mfs_clock_mono() >= until)
            return -EIO;
        mfs_clock_sleep(MFS_MSEC);
    }
    return 0;
}

void mfs_session_tick(void *arg)
{
    struct mfs_meta *meta = arg;
    int64_t before = mfs_clock_mono();
    int rc = refresh(meta, meta->sid);

    if (rc > 0)
        meta->proved = before;
    if (rc < 0)
        mfs_warn("meta", "session %016" PRIx64 " could not be refreshed: %s", meta->sid,
                 strerror(-rc));
    if (rc == 0 || (rc < 0 && is_over(meta)))
        renew_session(meta);
    else if (rc > 0 && meta->deaf)
        listen_anew(meta);
    if (rc > 0 && atomic_exchange(&meta->unsure, false)) {
        meta->was_unsure = true;
        ask_for_search(meta); /* if that is doubtful, too, once more */
    }
}

void mfs_session_disown(struct mfs_meta *meta, uint64_t ino, uint64_t sid)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), who = mfs_ino_arg(sid);
    struct mfs_call c;

    mfs_call_command(&c, "mfs_disown");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_int(&c.args, meta->stripe_size);
    mfs_args_bin(&c.args, who.b, sizeof who.b);
    mfs_call_post(meta, &c, mfs_placement_home(ino));
}

static void post_unlock(struct mfs_meta *meta, uint64_t ino, uint64_t sid)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), who = mfs_ino_arg(sid);
    struct mfs_call c;

    mfs_call_command(&c, "mfs_unlock_session");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, who.b, sizeof who.b);
    mfs_call_post(meta, &c, mfs_placement_home(ino));
}

#define DRAIN (5 * MFS_SEC)

/* One of which something may be left ends as if it had died. */
static void end_session(struct mfs_meta *meta, uint64_t sid, bool clean)
{
    struct mfs_ino_arg who = mfs_ino_arg(sid);
    char key[MFS_KEY_INO_LEN];
    struct mfs_call c;

    mfs_key_ino(key, 'Z', sid);
    if (clean) {
        mfs_call_function(&c, "mfs_session_end");
        mfs_args_bin(&c.args, who.b, sizeof who.b);
    } else {
        mfs_call_command(&c, "DEL");
        mfs_args_bin(&c.args, key, sizeof key);
    }
    mfs_call_run(meta, &c, session_part(meta, sid));
    mfs_call_fini(&c);
}

void mfs_session_end(struct mfs_meta *meta)
{
    struct mfs_open_state *list;
    uint64_t sid = meta->sid;
    size_t n;
    int rc;

    n = mfs_opens_renew(meta, 0, &list);
    for (size_t i = 0; i < n; i++) {
        if (list[i].count)
            mfs_session_disown(meta, list[i].ino, sid);
        if (list[i].locked)
            post_unlock(meta, list[i].ino, sid);
    }
    free(list);
    rc = mfs_store_drain(meta->store, DRAIN);
    end_session(meta, sid, !rc && !meta->was_unsure && !meta->unsure);
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
        cmds[i] = mfs_args_cmd(&args[i], session_part(meta, sids[i]));
        cmds[i].idempotent = true;
    }
    mfs_store_exec(meta->store, cmds, n);
    for (size_t i = 0; i < n; i++) {
        struct mfs_bytes text = cmds[i].rc ? (struct mfs_bytes){0} : mfs_reply_bytes(cmds[i].reply);

        if (cmds[i].rc) /* as long as who had it may rely on what it knew */
            alive[i] =
                !mfs_store_gone(meta->store, session_part(meta, sids[i]), meta->opts.session_ttl);
        else
            alive[i] = text.p;
        if (node)
            node[i] = node_told(text);
    }
    mfs_cmds_fini(cmds, n);
out:
    free(cmds);
    free(args);
    free(keys);
}
