/* Being told: what others' notices ask for here, and the answers. And the notices' life. */
#include "meta/coherence/notices_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/threads/thread.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/giveback.h"
#include "meta/coherence/shown.h"
#include "meta/session/unregistered_opens.h"
#include "store/subscriber.h"

#define MESSAGE 33 /* kind, ino, version, sender's session, number */

void mfs_notice_channel(uint64_t sid, char out[MFS_NOTICE_CHANNEL])
{
    out[0] = MFS_NOTICE_CONTENT;
    mfs_put_be64(out + 1, sid);
}

void mfs_notice_post(struct mfs_meta *meta, char kind, const struct incoming *m)
{
    char channel[MFS_NOTICE_CHANNEL], text[MESSAGE];
    struct mfs_call c;

    mfs_notice_channel(m->sid, channel);
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
    struct incoming *m = arg;
    struct mfs_notices *n = m->meta->notices;

    if (m->kind == MFS_NOTICE_NAME) {
        pthread_mutex_lock(&n->lock);
        DL_DELETE(n->names, m);
        pthread_mutex_unlock(&n->lock);
    }
    if (!m->answered)
        mfs_notice_post(m->meta, m->keep ? MFS_NOTICE_KEEP : MFS_NOTICE_ANSWER, m);
    free(m);
}

/* Of a file of which the kernel uses nothing, but for what a listing has shown it. */
static void answer_recalled(void *arg)
{
    struct incoming *m = arg;

    if (!mfs_shown_over(m->meta->notices->shown, m->ino, answer, m))
        free(m); /* it will be sent again */
}

/* Of a file, which is known here no more. */
static void answer_file(void *arg)
{
    struct incoming *m = arg;
    const struct mfs_meta_opts *opts = &m->meta->opts;

    if (opts->recalled)
        opts->recalled(opts->arg, m->ino, answer_recalled, m);
    else
        answer_recalled(m);
}

/* Of what is open of it all is registered, or can't be. */
static void answer_registered(void *arg, bool registered)
{
    struct incoming *m = arg;

    m->keep = !registered;
    answer_file(m);
}

static void answer_opened(struct incoming *m)
{
    if (!mfs_unregistered_when_done(m->meta->unregistered, m->ino, answer_registered, m))
        free(m); /* likewise */
}

/* The oldest name that is about to be dropped for too long, and that counts as answered from now
 * on; false: none. */
static bool take_overdue(struct mfs_notices *n, struct incoming *copy)
{
    struct incoming *m;

    pthread_mutex_lock(&n->lock);
    DL_SEARCH_SCALAR(n->names, m, answered, false);
    if (m && mfs_clock_mono() - m->since < MFS_NOTICE_CROSSED)
        m = NULL;
    if (m) {
        m->answered = true;
        *copy = *m;
    }
    pthread_mutex_unlock(&n->lock);
    return m;
}

/* The kernel drops a name with its lock on the parent. That may be held by a call that waits for
 * another client's answer, as the caller of this does, while that client waits for ours. So now it
 * has to do that no name is used without asking. */
void mfs_notices_answer_names(struct mfs_meta *meta)
{
    struct incoming m;

    while (take_overdue(meta->notices, &m)) {
        if (meta->opts.distrust)
            meta->opts.distrust(meta->opts.arg);
        mfs_notice_post(meta, MFS_NOTICE_ANSWER, &m);
    }
}

static void tell_changed(struct mfs_meta *meta, struct incoming *m)
{
    bool granted = m->kind == MFS_NOTICE_GRANTED && meta->opts.granted;
    mfs_meta_changed_fn *changed = granted ? meta->opts.granted : meta->opts.changed;

    if (changed)
        changed(meta->opts.arg, m->ino, m->version, answer_file, m);
    else
        answer_file(m);
}

static void tell_revoked(struct mfs_meta *meta, struct incoming *m)
{
    struct mfs_notices *n = meta->notices;
    bool name = m->kind == MFS_NOTICE_NAME;

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

static void take_notice(struct mfs_meta *meta, struct incoming *m)
{
    switch (m->kind) {
    case MFS_NOTICE_CONTENT:
    case MFS_NOTICE_GRANTED:
        mfs_giveback_revoked(meta, m->ino);
        tell_changed(meta, m);
        break;
    case MFS_NOTICE_FILE:
        mfs_giveback_revoked(meta, m->ino);
        answer_opened(m);
        break;
    case MFS_NOTICE_SHARD:
        mfs_shards_revoke(meta->shards, m->ino, (uint32_t)m->version);
        mfs_giveback_keeper(meta, m->ino, (uint32_t)m->version);
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
    struct incoming *m;

    if (len != MESSAGE)
        return;
    if (p[0] == MFS_NOTICE_ANSWER) {
        mfs_notices_answered(meta->notices, mfs_get_be64(p + 25));
        return;
    }
    if (p[0] == MFS_NOTICE_KEEP) {
        mfs_notices_unconfirmed(meta->notices, mfs_get_be64(p + 25));
        return;
    }
    if (p[0] == MFS_NOTICE_END) {
        if (meta->opts.end_wanted)
            meta->opts.end_wanted(meta->opts.arg, mfs_get_be64(p + 1));
        return;
    }
    if (!memchr("NPDTFS", p[0], 6))
        return;
    m = malloc(sizeof *m);
    if (!m)
        return; /* it will be sent again */
    *m = (struct incoming){.meta = meta,
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
    char channel[MFS_NOTICE_CHANNEL];
    struct mfs_subscriber_opts opts = {.part = (uint32_t)(meta->sid % meta->nparts),
                                       .channel = channel,
                                       .channel_len = sizeof channel,
                                       .up = on_up,
                                       .message = on_message,
                                       .arg = meta};

    mfs_notice_channel(meta->sid, channel);
    return mfs_subscriber_create(subscriber, meta->store, &opts);
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
        rc = mfs_unregistered_create(&meta->unregistered, meta);
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

void mfs_notices_deafen(struct mfs_meta *meta)
{
    struct mfs_notices *n = meta->notices;

    if (!n)
        return;
    mfs_subscriber_destroy(n->subscriber);
    n->subscriber = NULL;
}

void mfs_notices_stop(struct mfs_meta *meta)
{
    struct mfs_notices *n = meta->notices;
    struct pending *p;

    if (!n)
        return;
    mfs_unregistered_destroy(meta->unregistered);
    meta->unregistered = NULL;
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
