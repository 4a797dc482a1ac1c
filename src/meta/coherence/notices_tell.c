/* Telling: notices to others, and waiting until they have answered, or are dead. */
#include "meta/coherence/notices_impl.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/log.h"
#include "base/phases.h"
#include "base/threads/thread.h"
#include "meta/call.h"
#include "meta/session/session.h"

#define RESEND_FIRST                                                                               \
    (10 * MFS_MSEC) /* unanswered: perhaps the other was not subscribed, in a move, say; … */
#define RESEND_LAST (100 * MFS_MSEC) /* … or it takes its time */
#define CHECK_FIRST                                                                                \
    (100 * MFS_MSEC) /* then an unanswered session is looked up: it may have ended … */
#define CHECK   (200 * MFS_MSEC) /* … and again this often */
#define AT_ONCE 64U              /* notices that are looked at together */

static_assert(RESEND_FIRST < CHECK_FIRST && RESEND_LAST < CHECK,
              "a session is taken for dead only after notices were sent again");

void mfs_notices_answered(struct mfs_notices *n, uint64_t number)
{
    struct pending *p;

    pthread_mutex_lock(&n->lock);
    DL_SEARCH_SCALAR(n->list, p, number, number);
    if (p) {
        DL_DELETE(n->list, p);
        free(p);
        pthread_cond_broadcast(&n->answered);
    }
    pthread_mutex_unlock(&n->lock);
}

/* No thread waits for it any more, and those that have waited learn that; lock held. */
static void give_up(struct mfs_notices *n, struct pending *p)
{
    struct mfs_notices_unconfirmed *slot = &n->unconfirmed[n->nunconfirmed++ % MFS_NOTICES_DEAD];

    if (slot->since > n->forgotten)
        n->forgotten = slot->since;
    *slot = (struct mfs_notices_unconfirmed){p->ino, p->since};
    DL_DELETE(n->list, p);
    free(p);
    pthread_cond_broadcast(&n->answered);
}

void mfs_notices_unconfirmed(struct mfs_notices *n, uint64_t number)
{
    struct pending *p;

    pthread_mutex_lock(&n->lock);
    DL_SEARCH_SCALAR(n->list, p, number, number);
    if (p)
        give_up(n, p);
    pthread_mutex_unlock(&n->lock);
}

/* Notices that no thread waited for and no client answered; lock held. */
static void forget_old(struct mfs_meta *meta, int64_t now)
{
    struct mfs_notices *n = meta->notices;
    struct pending *p;

    /* In the order of their age. */
    while ((p = n->list) && now - p->since > 2 * meta->opts.session_ttl)
        give_up(n, p);
}

static bool is_dead(struct mfs_notices *n, uint64_t sid)
{
    bool found = false;

    pthread_mutex_lock(&n->lock);
    for (unsigned i = 0; i < MFS_NOTICES_DEAD; i++)
        found = found || n->dead[i] == sid;
    pthread_mutex_unlock(&n->lock);
    return found;
}

static void post_notice(struct mfs_meta *meta, const struct pending *p)
{
    mfs_notice_post(meta, p->kind,
                    &(struct incoming){
                        .ino = p->ino, .version = p->version, .sid = p->sid, .number = p->number});
}

static void send_one(struct mfs_meta *meta, char kind, uint64_t ino, uint64_t version, uint64_t sid)
{
    struct mfs_notices *n = meta->notices;
    struct pending *p = malloc(sizeof *p), copy;

    if (!p) {
        mfs_warn("meta", "inode %" PRIx64 ": no memory to tell session %016" PRIx64, ino, sid);
        pthread_mutex_lock(&n->lock);
        n->forgotten = mfs_clock_mono();
        pthread_mutex_unlock(&n->lock);
        return;
    }
    *p = (struct pending){
        .kind = kind, .ino = ino, .version = version, .sid = sid, .since = mfs_clock_mono()};
    pthread_mutex_lock(&n->lock);
    p->number = ++n->numbers;
    forget_old(meta, p->since);
    DL_APPEND(n->list, p);
    copy = *p;
    pthread_mutex_unlock(&n->lock);
    post_notice(meta, &copy);
}

struct mfs_bytes mfs_record_rest(struct mfs_bytes *record)
{
    struct mfs_bytes rest = {NULL, 0};

    if (record->n > MFS_RECORD_FIXED) {
        rest = (struct mfs_bytes){record->p + MFS_RECORD_FIXED, record->n - MFS_RECORD_FIXED};
        record->n = MFS_RECORD_FIXED;
    }
    return rest;
}

static void send_all(struct mfs_meta *meta, char kind, uint64_t ino, uint64_t version,
                     struct mfs_bytes sids)
{
    for (size_t at = 0; at + 8 <= sids.n; at += 8) {
        uint64_t sid = mfs_get_be64(sids.p + at);

        if (sid != meta->sid && !is_dead(meta->notices, sid))
            send_one(meta, kind, ino, version, sid);
    }
}

void mfs_notices_send(struct mfs_meta *meta, uint64_t ino, uint64_t version, struct mfs_bytes sids)
{
    send_all(meta, MFS_NOTICE_CONTENT, ino, version, sids);
}

void mfs_notices_granted(struct mfs_meta *meta, uint64_t ino, uint64_t version,
                         struct mfs_bytes sids)
{
    send_all(meta, MFS_NOTICE_GRANTED, ino, version, sids);
}

void mfs_notices_revoke(struct mfs_meta *meta, uint64_t ino, bool name, struct mfs_bytes sids)
{
    send_all(meta, name ? MFS_NOTICE_NAME : MFS_NOTICE_ATTRIBUTES, ino, 0, sids);
}

static bool is_among(struct mfs_bytes sids, const char *sid)
{
    for (size_t at = 0; at + 8 <= sids.n; at += 8)
        if (!memcmp(sids.p + at, sid, 8))
            return true;
    return false;
}

static bool is_in_any(const struct mfs_bytes *lists, size_t n, const char *sid)
{
    for (size_t i = 0; i < n; i++)
        if (is_among(lists[i], sid))
            return true;
    return false;
}

void mfs_notices_file(struct mfs_meta *meta, uint64_t ino, const struct mfs_bytes *sids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t at = 0; at + 8 <= sids[i].n; at += 8)
            if (!is_in_any(sids, i, sids[i].p + at))
                send_all(meta, MFS_NOTICE_FILE, ino, 0, (struct mfs_bytes){sids[i].p + at, 8});
    }
}

void mfs_notices_shard(struct mfs_meta *meta, uint64_t dir, uint32_t part, struct mfs_bytes sids)
{
    send_all(meta, MFS_NOTICE_SHARD, dir, part, sids);
}

void mfs_notices_ask_end(struct mfs_meta *meta, uint64_t ino, uint64_t sid)
{
    mfs_notice_post(meta, MFS_NOTICE_END, &(struct incoming){.ino = ino, .sid = sid});
}

/* A copy of what is unanswered for the inode: at most `most`, their number is returned. */
static size_t unanswered(struct mfs_notices *n, uint64_t ino, struct pending *out, size_t most)
{
    struct pending *p;
    size_t count = 0;

    pthread_mutex_lock(&n->lock);
    DL_FOREACH(n->list, p)
    {
        if (p->ino == ino && count < most)
            out[count++] = *p;
    }
    pthread_mutex_unlock(&n->lock);
    return count;
}

/* Has anything got no answer that was sent since then? Perhaps, if that is forgotten. */
static bool any_unconfirmed(struct mfs_notices *n, uint64_t ino, int64_t since)
{
    bool any;

    pthread_mutex_lock(&n->lock);
    any = n->forgotten >= since;
    for (unsigned i = 0; i < MFS_NOTICES_DEAD && i < n->nunconfirmed; i++)
        any = any || (n->unconfirmed[i].ino == ino && n->unconfirmed[i].since >= since);
    pthread_mutex_unlock(&n->lock);
    return any;
}

static void wait_answer(struct mfs_notices *n, uint64_t ino, int64_t ns)
{
    struct pending *p;

    pthread_mutex_lock(&n->lock);
    DL_SEARCH_SCALAR(n->list, p, ino, ino);
    if (p) {
        mfs_phase_wait(MFS_PHASE_MOUNTS);
        mfs_cond_wait(&n->answered, &n->lock, ns);
        mfs_phase_over();
    }
    pthread_mutex_unlock(&n->lock);
}

/* No session comes back. */
static void note_dead(struct mfs_notices *n, uint64_t sid)
{
    pthread_mutex_lock(&n->lock);
    n->dead[n->ndead++ % MFS_NOTICES_DEAD] = sid;
    pthread_mutex_unlock(&n->lock);
}

/* ---- nodes that are lost --------------------------------------------------------------------- */

static void note_away(struct mfs_notices *n, uint64_t sid, uint32_t node)
{
    pthread_mutex_lock(&n->lock);
    n->away[n->naway++ % MFS_NOTICES_DEAD] = (struct mfs_notices_where){sid, node};
    pthread_mutex_unlock(&n->lock);
}

/* The node of a session whose node was lost once; no session goes to another. */
static uint32_t node_away(struct mfs_notices *n, uint64_t sid)
{
    uint32_t node = MFS_NO_NODE;

    pthread_mutex_lock(&n->lock);
    for (unsigned i = 0; i < MFS_NOTICES_DEAD && i < n->naway; i++)
        if (n->away[i].sid == sid)
            node = n->away[i].node;
    pthread_mutex_unlock(&n->lock);
    return node;
}

/* Waits no more for clients that rely on nothing that they learned before the notice was made: then
 * the holders had been read, and before that was the change. */
static bool pass_over_lost(struct mfs_meta *meta, const struct pending *list, size_t count)
{
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (!mfs_store_lost(meta->store, node_away(meta->notices, list[i].sid), list[i].since))
            continue;
        mfs_notices_unconfirmed(meta->notices, list[i].number);
        any = true;
    }
    return any;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool is_of_file(char kind)
{
    return kind == MFS_NOTICE_CONTENT || kind == MFS_NOTICE_GRANTED || kind == MFS_NOTICE_FILE;
}

/* Dead sessions need not be told. */
static void drop_dead(struct mfs_meta *meta, const struct pending *list, size_t count)
{
    uint64_t sids[AT_ONCE];
    uint32_t node[AT_ONCE];
    bool alive[AT_ONCE];

    assert(count <= AT_ONCE);
    for (size_t i = 0; i < count; i++)
        sids[i] = list[i].sid;
    mfs_session_find(meta, sids, count, alive, node);
    for (size_t i = 0; i < count; i++) {
        if (alive[i] && mfs_store_lost(meta->store, node[i], list[i].since))
            note_away(meta->notices, sids[i], node[i]);
        if (alive[i])
            continue;
        mfs_notices_answered(meta->notices, list[i].number);
        note_dead(meta->notices, list[i].sid);
        if (is_of_file(list[i].kind))
            mfs_session_disown(meta, list[i].ino, list[i].sid);
    }
}

bool mfs_notices_settle(struct mfs_meta *meta, uint64_t ino, int64_t since)
{
    struct mfs_notices *n = meta->notices;
    struct pending list[AT_ONCE];
    int64_t start = mfs_clock_mono(), sent = start, checked = start, now = start;
    int64_t pause = RESEND_FIRST, check = CHECK_FIRST;
    size_t count;

    while ((count = unanswered(n, ino, list, AT_ONCE)) > 0) {
        if (pass_over_lost(meta, list, count))
            continue;
        if (now - start > 2 * meta->opts.session_ttl) {
            mfs_warn("meta",
                     "inode %" PRIx64 ": session %016" PRIx64 " is alive but does not answer", ino,
                     list[0].sid);
            return false;
        }
        wait_answer(n, ino, pause);
        now = mfs_clock_mono();
        if (now - start > MFS_NOTICE_CROSSED && list[0].kind == MFS_NOTICE_NAME)
            mfs_notices_answer_names(meta);
        if (now - checked > check) {
            check = CHECK;
            drop_dead(meta, list, count);
            checked = mfs_clock_mono();
            start += checked - now; /* a session's partition that is being moved is no silence */
            now = checked;
        }
        if (now - sent < pause)
            continue;
        for (size_t i = 0; i < count; i++)
            post_notice(meta, &list[i]);
        sent = now;
        pause = 2 * pause < RESEND_LAST ? 2 * pause : RESEND_LAST;
    }
    return !any_unconfirmed(n, ino, since);
}

void mfs_meta_settle(struct mfs_meta *meta, uint64_t ino)
{
    mfs_notices_settle(meta, ino, mfs_clock_mono());
}
