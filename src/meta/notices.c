#include "meta/notices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <utlist.h>

#include "base/log.h"
#include "base/thread.h"
#include "meta/shown.h"
#include "meta/untold.h"
#include "store/subscriber.h"

#define CROSSED      (30 * MFS_MSEC)
#define RESEND_FIRST (10 * MFS_MSEC)  /* unanswered: perhaps nobody listened, in a move, say; … */
#define RESEND_LAST  (100 * MFS_MSEC) /* … or it takes its time */
#define CHECK        (200 * MFS_MSEC) /* an unanswered session is looked up this often */
#define NOTICE       'N'              /* content */
#define NAME         'D'              /* a directory's name */
#define ATTRIBUTES   'T'              /* a directory's attributes */
#define FILE_LEASE   'F'              /* a file's name or attributes */
#define SHARD        'S'              /* names were added; the partition is in `version` */
#define ANSWER       'A'
#define DEAD         32 /* sessions remembered */
#define MESSAGE      33 /* kind, ino, version, sender's session, number */
#define CHANNEL      9  /* NOTICE, session */

/* A notice that has not been answered. */
struct pending {
    char kind;
    uint64_t number, ino, version, sid;
    int64_t since;
    struct pending *prev, *next;
};

struct mfs_notices {
    struct mfs_subscriber *subscriber;
    struct mfs_shown *shown;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t answered;
    struct pending *list;
    struct owed *names; /* of directories, that the kernel is asked to drop */
    uint64_t numbers;
    uint64_t dead[DEAD]; /* sessions, a ring */
    unsigned ndead;
};

/* An answer on its way: the other's changes are being dropped here. */
struct owed {
    struct mfs_meta *meta;
    char kind;
    uint64_t ino, version, sid, number;
    bool answered; /* already, see below */
    int64_t since;
    struct owed *prev, *next;
};

static void channel_of(uint64_t sid, char out[CHANNEL])
{
    out[0] = NOTICE;
    mfs_put_be64(out + 1, sid);
}

static void post_message(struct mfs_meta *meta, char kind, const struct owed *m)
{
    char channel[CHANNEL], text[MESSAGE];
    struct mfs_call c;

    channel_of(m->sid, channel);
    text[0] = kind;
    mfs_put_be64(text + 1, m->ino);
    mfs_put_be64(text + 9, m->version);
    mfs_put_be64(text + 17, meta->sid);
    mfs_put_be64(text + 25, m->number);
    mfs_call_command(&c, "PUBLISH");
    mfs_args_bin(&c.args, channel, sizeof channel);
    mfs_args_bin(&c.args, text, sizeof text);
    mfs_call_post(meta, &c, (uint32_t)(m->sid % meta->nparts));
}

/* --- being told ----------------------------------------------------------------------------- */

static void answer(void *arg)
{
    struct owed *m = arg;
    struct mfs_notices *n = m->meta->notices;

    if (m->kind == NAME) {
        pthread_mutex_lock(&n->lock);
        DL_DELETE(n->names, m);
        pthread_mutex_unlock(&n->lock);
    }
    if (!m->answered)
        post_message(m->meta, ANSWER, m);
    free(m);
}

/* Of a file, which is known here no more. */
static void answer_file(void *arg)
{
    struct owed *m = arg;

    if (!mfs_shown_over(m->meta->notices->shown, m->ino, answer, m))
        free(m); /* it will be sent again */
}

static void answer_opened(struct owed *m)
{
    if (!mfs_untold_over(m->meta->untold, m->ino, answer_file, m))
        free(m); /* likewise */
}

/* The oldest name that is about to be dropped for too long, and that counts as answered from now
 * on; false: none. */
static bool take_overdue(struct mfs_notices *n, struct owed *copy)
{
    struct owed *m;

    pthread_mutex_lock(&n->lock);
    DL_SEARCH_SCALAR(n->names, m, answered, false);
    if (m && mfs_clock_mono() - m->since < CROSSED)
        m = NULL;
    if (m) {
        m->answered = true;
        *copy = *m;
    }
    pthread_mutex_unlock(&n->lock);
    return m;
}

/* The kernel drops a name with its lock on the parent. That may be held by a call which waits for
 * another client's answer, as ours does who calls this; and that client for ours. So now it has to
 * do that no name is used without asking. */
static void answer_names(struct mfs_meta *meta)
{
    struct owed m;

    while (take_overdue(meta->notices, &m)) {
        if (meta->opts.distrust)
            meta->opts.distrust(meta->opts.arg);
        post_message(meta, ANSWER, &m);
    }
}

static void tell_changed(struct mfs_meta *meta, struct owed *m)
{
    if (meta->opts.changed)
        meta->opts.changed(meta->opts.arg, m->ino, m->version, answer_file, m);
    else
        answer_file(m);
}

static void tell_revoked(struct mfs_meta *meta, struct owed *m)
{
    struct mfs_notices *n = meta->notices;
    bool name = m->kind == NAME;

    if (name) {
        pthread_mutex_lock(&n->lock);
        m->since = mfs_clock_mono();
        DL_APPEND(n->names, m);
        pthread_mutex_unlock(&n->lock);
    }
    mfs_dircache_revoke(meta->dirs, m->ino);
    if (!meta->opts.revoked || meta->opts.revoked(meta->opts.arg, m->ino, name, false, answer, m))
        answer(m);
}

static void take_answer(struct mfs_notices *n, uint64_t number)
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

static void take_notice(struct mfs_meta *meta, struct owed *m)
{
    switch (m->kind) {
    case NOTICE:
        mfs_filecache_revoke(meta->files, m->ino);
        tell_changed(meta, m);
        break;
    case FILE_LEASE:
        mfs_filecache_revoke(meta->files, m->ino);
        answer_opened(m);
        break;
    case SHARD:
        mfs_shards_revoke(meta->shards, m->ino, (uint32_t)m->version);
        answer(m);
        break;
    default:
        tell_revoked(meta, m);
    }
}

static void on_message(void *arg, const void *text, size_t len)
{
    struct mfs_meta *meta = arg;
    const char *p = text;
    struct owed *m;

    if (len != MESSAGE)
        return;
    if (p[0] == ANSWER) {
        take_answer(meta->notices, mfs_get_be64(p + 25));
        return;
    }
    if (!memchr("NDTFS", p[0], 5))
        return;
    m = malloc(sizeof *m);
    if (!m)
        return; /* it will be sent again */
    *m = (struct owed){.meta = meta,
                       .kind = p[0],
                       .ino = mfs_get_be64(p + 1),
                       .version = mfs_get_be64(p + 9),
                       .sid = mfs_get_be64(p + 17),
                       .number = mfs_get_be64(p + 25)};
    take_notice(meta, m);
}

static void on_up(void *arg)
{
    struct mfs_meta *meta = arg;

    mfs_filecache_revoke(meta->files, 0);
    mfs_shards_revoke_all(meta->shards);
    if (meta->opts.changed)
        meta->opts.changed(meta->opts.arg, 0, 0, NULL, NULL);
}

static int listen_for(struct mfs_meta *meta, struct mfs_subscriber **subscriber)
{
    char channel[CHANNEL];
    struct mfs_subscriber_opts opts = {.part = (uint32_t)(meta->sid % meta->nparts),
                                       .channel = channel,
                                       .channel_len = sizeof channel,
                                       .up = on_up,
                                       .message = on_message,
                                       .arg = meta};

    channel_of(meta->sid, channel);
    return mfs_subscriber_create(subscriber, meta->store, &opts);
}

/* --- what the kernel is shown --------------------------------------------------------------- */

bool mfs_meta_show(struct mfs_meta *meta, uint64_t dir, const struct mfs_dirent *e,
                   struct mfs_attr *attr)
{
    struct mfs_shown *shown = meta->notices->shown;

    if (e->type != S_IFREG || !mfs_shown_begin(shown, e->ino, MFS_META_SHOWN))
        return false;
    if (mfs_leases_name(meta, dir, e->name, attr) && attr->ino == e->ino)
        return true;
    mfs_shown_end(shown, &e->ino, 1, 0);
    return false;
}

bool mfs_meta_show_new(struct mfs_meta *meta, struct mfs_attr *attr)
{
    struct mfs_shown *shown = meta->notices->shown;

    if (!mfs_shown_begin(shown, attr->ino, MFS_META_SHOWN_NEW))
        return false;
    if (mfs_leases_attr(meta, attr->ino, attr))
        return true;
    mfs_shown_end(shown, &attr->ino, 1, 0);
    return false;
}

void mfs_meta_shown(struct mfs_meta *meta, const uint64_t *inos, size_t n, int64_t life)
{
    mfs_shown_end(meta->notices->shown, inos, n, life);
}

/* --- telling -------------------------------------------------------------------------------- */

/* What nobody waited for and nobody answered; lock held. */
static void forget_old(struct mfs_meta *meta, int64_t now)
{
    struct mfs_notices *n = meta->notices;
    struct pending *p;

    /* In the order of their age. */
    while ((p = n->list) && now - p->since > 2 * meta->opts.session_ttl) {
        DL_DELETE(n->list, p);
        free(p);
    }
}

static bool is_dead(struct mfs_notices *n, uint64_t sid)
{
    bool found = false;

    pthread_mutex_lock(&n->lock);
    for (unsigned i = 0; i < DEAD; i++)
        found = found || n->dead[i] == sid;
    pthread_mutex_unlock(&n->lock);
    return found;
}

static void post_notice(struct mfs_meta *meta, const struct pending *p)
{
    post_message(
        meta, p->kind,
        &(struct owed){.ino = p->ino, .version = p->version, .sid = p->sid, .number = p->number});
}

static void send_one(struct mfs_meta *meta, char kind, uint64_t ino, uint64_t version, uint64_t sid)
{
    struct mfs_notices *n = meta->notices;
    struct pending *p = malloc(sizeof *p), copy;

    if (!p) {
        mfs_warn("meta", "inode %" PRIx64 ": no memory to tell session %016" PRIx64, ino, sid);
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
    send_all(meta, NOTICE, ino, version, sids);
}

void mfs_notices_revoke(struct mfs_meta *meta, uint64_t ino, bool name, struct mfs_bytes sids)
{
    send_all(meta, name ? NAME : ATTRIBUTES, ino, 0, sids);
}

void mfs_notices_file(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes sids)
{
    send_all(meta, FILE_LEASE, ino, 0, sids);
}

void mfs_notices_shard(struct mfs_meta *meta, uint64_t dir, uint32_t part, struct mfs_bytes sids)
{
    send_all(meta, SHARD, dir, part, sids);
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

static void wait_answer(struct mfs_notices *n, uint64_t ino, int64_t ns)
{
    struct pending *p;

    pthread_mutex_lock(&n->lock);
    DL_SEARCH_SCALAR(n->list, p, ino, ino);
    if (p)
        mfs_cond_wait(&n->answered, &n->lock, ns);
    pthread_mutex_unlock(&n->lock);
}

/* No session comes back. */
static void bury(struct mfs_notices *n, uint64_t sid)
{
    pthread_mutex_lock(&n->lock);
    n->dead[n->ndead++ % DEAD] = sid;
    pthread_mutex_unlock(&n->lock);
}

/* Nobody has to be told who is dead. */
static void drop_dead(struct mfs_meta *meta, const struct pending *list, size_t count)
{
    uint64_t sids[MFS_HINTS];
    bool alive[MFS_HINTS];

    for (size_t i = 0; i < count; i++)
        sids[i] = list[i].sid;
    mfs_session_alive(meta, sids, count, alive);
    for (size_t i = 0; i < count; i++) {
        if (alive[i])
            continue;
        take_answer(meta->notices, list[i].number);
        bury(meta->notices, list[i].sid);
        if (list[i].kind == NOTICE || list[i].kind == FILE_LEASE)
            mfs_session_disown(meta, list[i].ino, list[i].sid);
    }
}

void mfs_meta_settle(struct mfs_meta *meta, uint64_t ino)
{
    struct mfs_notices *n = meta->notices;
    struct pending list[MFS_HINTS];
    int64_t start = mfs_clock_mono(), sent = start, checked = start, now = start;
    int64_t pause = RESEND_FIRST;
    size_t count;

    while ((count = unanswered(n, ino, list, MFS_HINTS)) > 0) {
        if (now - start > 2 * meta->opts.session_ttl) {
            mfs_warn("meta",
                     "inode %" PRIx64 ": session %016" PRIx64 " is alive but does not answer", ino,
                     list[0].sid);
            return;
        }
        wait_answer(n, ino, pause);
        now = mfs_clock_mono();
        if (now - start > CROSSED && list[0].kind == NAME)
            answer_names(meta);
        if (now - checked > CHECK) {
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
}

/* --- life ----------------------------------------------------------------------------------- */

int mfs_notices_start(struct mfs_meta *meta)
{
    struct mfs_notices *n = calloc(1, sizeof *n);
    int rc;

    if (!n)
        return -ENOMEM;
    pthread_mutex_init(&n->lock, NULL);
    rc = mfs_cond_init(&n->answered);
    meta->notices = n;
    if (!rc)
        rc = mfs_shown_create(&n->shown);
    if (!rc)
        rc = mfs_untold_create(&meta->untold, meta);
    if (!rc)
        rc = listen_for(meta, &n->subscriber);
    return rc;
}

int mfs_notices_rename(struct mfs_meta *meta)
{
    struct mfs_subscriber *subscriber;
    int rc = listen_for(meta, &subscriber);

    if (rc)
        return rc;
    mfs_subscriber_destroy(meta->notices->subscriber);
    meta->notices->subscriber = subscriber;
    return 0;
}

void mfs_notices_stop(struct mfs_meta *meta)
{
    struct mfs_notices *n = meta->notices;
    struct pending *p;

    if (!n)
        return;
    mfs_subscriber_destroy(n->subscriber);
    mfs_untold_destroy(meta->untold);
    meta->untold = NULL;
    mfs_shown_destroy(n->shown);
    while ((p = n->list)) {
        DL_DELETE(n->list, p);
        free(p);
    }
    pthread_cond_destroy(&n->answered);
    pthread_mutex_destroy(&n->lock);
    free(n);
    meta->notices = NULL;
}
