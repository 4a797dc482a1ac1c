/* The life of a client's session: it begins, is prolonged every so often, is followed by another
 * one when it has ended, and ends with the client. What the client has open is registered anew in
 * each, and all that others may have changed unheard is forgotten. */
#include "meta/coherence/notices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/deferred/unknown_outcomes.h"
#include "meta/session/key.h"
#include "meta/session/opens.h"
#include "meta/session/session.h"

#define BEGIN_TRIES 8U

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
    rc = mfs_call_run(meta, &c, mfs_session_part(meta, sid));
    if (!rc)
        rc = mfs_reply_int(c.cmd.reply) == 1;
    mfs_call_fini(&c);
    return rc;
}

static int begin_session(struct mfs_meta *meta, uint64_t sid)
{
    struct mfs_ino_arg key = mfs_ino_arg(sid);
    char node[MFS_SESSION_NODE_TEXT];
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_session");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_int(&c.args, meta->opts.session_ttl / MFS_MSEC);
    mfs_session_format_node(meta, node);
    mfs_args_str(&c.args, node);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, mfs_session_part(meta, sid));
    mfs_call_fini(&c);
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
    meta->refreshed_at = before;
    return 0;
}

/* At once, as others may take away by now what only the old session had open; whether that was done
 * a thread finds out (meta/session/unregistered_opens.h), by the same number. */
static void post_opens(struct mfs_meta *meta, uint64_t sid, const struct mfs_open_state *list,
                       size_t n)
{
    struct mfs_ino_arg who = mfs_ino_arg(sid);

    for (size_t i = 0; i < n; i++) {
        struct mfs_ino_arg key = mfs_ino_arg(list[i].ino);
        struct mfs_call c;

        if (!list[i].count)
            continue;
        mfs_call_command(&c, "mfs_reopen");
        mfs_args_bin(&c.args, key.b, sizeof key.b);
        mfs_args_bin(&c.args, who.b, sizeof who.b);
        mfs_args_int(&c.args, list[i].count);
        mfs_args_int(&c.args, (int64_t)list[i].number);
        mfs_call_post(meta, &c, mfs_placement_home(list[i].ino));
    }
}

/* Has notices for this session heard; else a later tick tries again. What came before, which others
 * may have given up to tell, is relied on no more. */
static void subscribe(struct mfs_meta *meta)
{
    int rc = mfs_notices_rename(meta);

    if (rc) {
        mfs_error("meta", "session %016" PRIx64 " can't be told of others' changes: %s", meta->sid,
                  strerror(-rc));
        return;
    }
    mfs_leases_forget(meta);
    meta->unsubscribed = false;
}

/* The old session is dead for all clients: its locks are lost, its opens are registered anew. */
static void renew_session(struct mfs_meta *meta)
{
    int64_t before = mfs_clock_mono();
    struct mfs_open_state *list;
    uint64_t sid, old = meta->sid;
    size_t n;

    if (begin_somewhere(meta, &sid))
        return;
    meta->unsubscribed = true;
    mfs_ticker_work(&meta->contact_ticker);
    n = mfs_opens_renew(meta, sid, &list);
    meta->session_began = mfs_clock_mono();
    mfs_warn("meta", "session %016" PRIx64 " had expired; %016" PRIx64 " takes over %zu open files",
             old, sid, n);
    post_opens(meta, sid, list, n);
    free(list);
    /* A client that changes something from here on tells the new session. What was known before
     * counts no more, and not until that is forgotten is this session relied on. */
    mfs_leases_forget(meta);
    mfs_leases_renewed(meta);
    meta->leftovers.answer_lost =
        true; /* in the name of the old one something may have come late */
    if (meta->opts.changed)
        meta->opts.changed(meta->opts.arg, 0, 0, NULL, NULL);
    meta->refreshed_at = before;
    if (meta->opts.revoked)
        meta->opts.revoked(meta->opts.arg, 0, true, false, NULL, NULL);
    subscribe(meta);
}

/* What this client may have left is searched for as if it had died: by a session that hardly lived,
 * which is allowed when memory is full of it. Kept by this one's partition: another may hang, and a
 * thread that waits for it does not prolong its session's life. */
static void request_search(struct mfs_meta *meta)
{
    struct mfs_ino_arg key;
    struct mfs_call c;
    uint64_t sid;

    if (new_sid(&sid))
        return;
    sid >>= 1; /* so that the sum does not overflow */
    sid += mfs_session_part(meta, meta->sid) + meta->nparts - mfs_session_part(meta, sid);
    key = mfs_ino_arg(sid);
    mfs_call_command(&c, "mfs_session");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_int(&c.args, 1);
    mfs_args_str(&c.args, "");
    c.cmd.idempotent = true;
    mfs_call_run(meta, &c, mfs_session_part(meta, sid));
    mfs_call_fini(&c);
}

/* It can't be alive any more: it is gone with its partition, or its life could not be prolonged. */
static bool is_expired(struct mfs_meta *meta)
{
    return mfs_store_gone(meta->store, mfs_session_part(meta, meta->sid), 0) ||
           mfs_clock_mono() - meta->refreshed_at > meta->opts.session_ttl;
}

void mfs_session_tick(void *arg)
{
    struct mfs_meta *meta = arg;
    int64_t before = mfs_clock_mono();
    int rc = refresh(meta, meta->sid);

    if (rc > 0)
        meta->refreshed_at = before;
    if (rc < 0)
        mfs_warn("meta", "session %016" PRIx64 " could not be refreshed: %s", meta->sid,
                 strerror(-rc));
    if (rc == 0 || (rc < 0 && is_expired(meta)))
        renew_session(meta);
    else if (rc > 0 && meta->unsubscribed)
        subscribe(meta);
    if (rc > 0 && atomic_exchange(&meta->leftovers.answer_lost, false)) {
        meta->leftovers.ever_lost_answer = true;
        request_search(meta); /* if the outcome of that is unknown, too, once more */
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
        mfs_call_command(&c, "mfs_session_end");
        mfs_args_bin(&c.args, who.b, sizeof who.b);
    } else {
        mfs_call_command(&c, "DEL");
        mfs_args_bin(&c.args, key, sizeof key);
    }
    mfs_call_run(meta, &c, mfs_session_part(meta, sid));
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
    end_session(meta, sid,
                !rc && !mfs_store_posts_lost(meta->store) && !meta->leftovers.ever_lost_answer &&
                    !meta->leftovers.answer_lost);
}
