/* Open files: which sessions have them, and what is written to them becoming known. */
#include "meta/cache/contents.h"
#include "meta/coherence/notices.h"
#include "meta/deferred/unknown_outcomes.h"
#include "meta/session/unregistered_opens.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"

static void take_head(struct mfs_head *head, const struct mfs_reply *r)
{
    struct mfs_bytes content = mfs_reply_bytes(r);

    head->len = -1;
    if (!content.p)
        return;
    head->len = (ssize_t)(content.n < head->cap ? content.n : head->cap);
    memcpy(head->buf, content.p, (size_t)head->len);
}

/* Asks for one more open, of a file that is to be cut with `cut`. -EAGAIN and *holder: another
 * session has a lease of its end, or appends to what would be cut. */
static int try_open(struct mfs_meta *meta, struct mfs_call *c, uint64_t ino, uint64_t session,
                    const struct mfs_cut *cut, const struct mfs_head *head, uint64_t *holder)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(session);
    struct mfs_time_arg time = mfs_now_arg();
    struct mfs_bytes answer;
    int rc;

    mfs_call_command(c, "mfs_open");
    mfs_args_bin(&c->args, key.b, sizeof key.b);
    mfs_args_bin(&c->args, sid.b, sizeof sid.b);
    mfs_args_int(&c->args, head ? (int64_t)head->cap : 0);
    if (cut) {
        mfs_args_bin(&c->args, time.b, sizeof time.b);
        mfs_args_int(&c->args, (int64_t)cut->trimmed);
        mfs_args_int(&c->args, meta->stripe_size);
        mfs_args_int(&c->args, cut->drop);
    }
    rc = mfs_call_run(meta, c, mfs_placement_home(ino));
    answer = mfs_reply_bytes(mfs_reply_at(c->cmd.reply, 0));
    if (!rc && answer.n == 8) {
        *holder = mfs_get_be64(answer.p);
        rc = -EAGAIN;
    }
    return rc;
}

/* As try_open, for as long as it takes. *c is to be freed in any case. */
static int ask_open(struct mfs_meta *meta, struct mfs_call *c, uint64_t ino, uint64_t session,
                    const struct mfs_cut *cut, const struct mfs_head *head)
{
    struct mfs_place_wait wait = {0};
    uint64_t holder = 0;
    int rc;

    for (;;) {
        rc = try_open(meta, c, ino, session, cut, head, &holder);
        if (rc == -EAGAIN)
            rc = mfs_place_wait(meta, ino, holder, &wait);
        if (rc != -EAGAIN)
            return rc;
        mfs_call_fini(c);
    }
}

int mfs_meta_open(struct mfs_meta *meta, uint64_t ino, const struct mfs_cut *cut,
                  struct mfs_attr *attr, struct mfs_head *head)
{
    uint64_t session = meta->sid;
    int64_t asked = mfs_clock_mono();
    struct mfs_call c;
    int rc;

    if (!cut && mfs_unregistered_open(meta->unregistered, ino, attr)) {
        if (head)
            head->len = -1;
        return 0;
    }
    rc = ask_open(meta, &c, ino, session, cut, head);
    if (rc == -ESTALE)
        mfs_filecache_revoke(meta->files, ino);
    if (rc)
        goto out;
    mfs_opens_add_registered(meta, ino, session);
    if (head)
        take_head(head, mfs_reply_at(c.cmd.reply, 1));
    rc = mfs_meta_take(meta, ino, mfs_reply_bytes(mfs_reply_at(c.cmd.reply, 0)), asked, attr);
    if (rc) {
        mfs_filecache_revoke(meta->files, ino);
        mfs_meta_close(meta, ino, false);
    } else if (cut) {
        mfs_filecache_update(meta->files, attr, asked);
        mfs_notices_send(meta, ino, attr->version, mfs_reply_bytes(mfs_reply_at(c.cmd.reply, 1)));
    }
out:
    mfs_call_fini(&c);
    if (cut && mfs_outcome_is_unknown(rc)) {
        mfs_outcomes_content(meta, ino, rc);
        mfs_meta_settle(meta, ino);
    }
    return rc;
}

/* A commit's arguments: their number depends on the parts. */
struct commit_args {
    struct mfs_arg *v;
    char (*num)[MFS_ARGS_NUM_MAX];
    uint32_t n;
};

static void add_bin(struct commit_args *a, const void *p, size_t len)
{
    a->v[a->n++] = (struct mfs_arg){p, len};
}

static void add_int(struct commit_args *a, int64_t v)
{
    char *num = a->num[a->n];

    add_bin(a, num, (size_t)snprintf(num, MFS_ARGS_NUM_MAX, "%" PRId64, v));
}

static void add_str(struct commit_args *a, const char *s)
{
    add_bin(a, s, strlen(s));
}

#define COMMIT_FIXED 10 /* name ino time size end room sid named cuts drop */

/* A file's record and behind it the sessions to be told of its change. */
static int take_changed(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes answer, int64_t asked,
                        struct mfs_attr *attr)
{
    struct mfs_bytes others = mfs_record_rest(&answer);
    int rc = mfs_meta_take(meta, ino, answer, asked, attr);

    if (!rc) {
        mfs_filecache_update(meta->files, attr, asked);
        mfs_notices_send(meta, ino, attr->version, others);
    } else {
        mfs_filecache_revoke(meta->files, ino);
    }
    return rc;
}

/* If that was all of it. */
static void keep_content(struct mfs_meta *meta, const struct mfs_commit *commit,
                         const struct mfs_attr *attr)
{
    const struct mfs_part *all = commit->parts;

    if (meta->opts.revoked && commit->nparts == 1 && all->off == 0 && all->len == attr->size)
        mfs_contents_put(meta->contents, attr->ino, attr->version, all->p, all->len);
}

#define PAIR 16 /* bytes of a range, as partitions know it */

/* NULL: out of memory. */
static char *encode_ranges(const struct mfs_range *v, size_t n)
{
    char *list = malloc(PAIR * n + 1);

    for (size_t i = 0; list && i < n; i++) {
        mfs_put_le64(list + PAIR * i, v[i].lo);
        mfs_put_le64(list + PAIR * i + 8, v[i].hi);
    }
    return list;
}

/* As mfs_room_parse in partition/voids.c. */
struct room_arg {
    char b[33];
};

static struct room_arg room_arg(const struct mfs_commit *c)
{
    struct room_arg a = {{c->room}};

    mfs_put_le64(a.b + 1, c->allocated.lo);
    mfs_put_le64(a.b + 9, c->allocated.hi);
    mfs_put_le64(a.b + 17, c->zeroed.lo);
    mfs_put_le64(a.b + 25, c->zeroed.hi);
    return a;
}

int mfs_meta_commit(struct mfs_meta *meta, uint64_t ino, const struct mfs_commit *commit,
                    uint64_t *old_version, struct mfs_attr *attr)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(meta->sid);
    struct mfs_time_arg time = mfs_time_arg(commit->mtime);
    size_t most = COMMIT_FIXED + 2 * commit->nparts;
    struct commit_args a = {malloc(most * sizeof *a.v), malloc(most * sizeof *a.num), 0};
    struct room_arg room = room_arg(commit);
    char *stored = encode_ranges(commit->stored, commit->nstored);
    int64_t asked = mfs_clock_mono();
    struct mfs_cmd cmd = {.part = mfs_placement_home(ino)};
    int rc = -ENOMEM;

    if (!a.v || !a.num || !stored)
        goto out;
    add_str(&a, commit->nparts ? "mfs_commit" : "mfs_commit0");
    add_bin(&a, key.b, sizeof key.b);
    add_bin(&a, time.b, commit->mtime.tv_sec ? sizeof time.b : 0);
    add_int(&a, (int64_t)commit->end);
    add_int(&a, (int64_t)commit->data_end);
    add_bin(&a, room.b, commit->room ? sizeof room.b : 0);
    add_bin(&a, sid.b, sizeof sid.b);
    add_bin(&a, stored, PAIR * commit->nstored);
    if (commit->cuts)
        add_int(&a, (int64_t)*commit->cuts);
    else
        add_str(&a, "");
    add_int(&a, commit->drop);
    for (size_t i = 0; i < commit->nparts; i++) {
        add_int(&a, commit->parts[i].off);
        add_bin(&a, commit->parts[i].p, commit->parts[i].len);
    }
    cmd.argv = a.v;
    cmd.argc = a.n;
    rc = mfs_store_exec(meta->store, &cmd, 1);
    if (!rc)
        rc = take_changed(meta, ino, mfs_reply_bytes(cmd.reply), asked, attr);
    if (!rc)
        keep_content(meta, commit, attr);
    if (!rc && old_version)
        *old_version = attr->version - 1;
    mfs_cmds_fini(&cmd, 1);
    mfs_outcomes_content(meta, ino, rc);
out:
    free(a.v);
    free(a.num);
    free(stored);
    return rc;
}

/* In the order of the file, as partition/voids.h says. */
static int decode_voids(struct mfs_bytes list, struct mfs_ranges *voids)
{
    uint64_t behind = 0;
    int rc = list.n % PAIR ? -EIO : 0;

    for (size_t at = 0; !rc && at < list.n; at += PAIR) {
        uint64_t lo = mfs_get_le64(list.p + at), hi = mfs_get_le64(list.p + at + 8);

        rc = lo < behind || lo >= hi || hi > INT64_MAX ? -EIO : mfs_ranges_add(voids, lo, hi);
        behind = hi;
    }
    return rc;
}

int mfs_meta_voids(struct mfs_meta *meta, uint64_t ino, struct mfs_ranges *voids)
{
    char key[MFS_KEY_INO_LEN];
    struct mfs_bytes list;
    struct mfs_call c;
    int rc;

    mfs_key_ino(key, 'V', ino);
    mfs_call_command(&c, "GET");
    mfs_args_bin(&c.args, key, sizeof key);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    list = mfs_call_text(&c);
    if (!rc && list.p)
        rc = decode_voids(list, voids);
    mfs_call_fini(&c);
    return rc;
}

void mfs_meta_want_content(struct mfs_meta *meta)
{
    mfs_contents_want(meta->contents);
}

bool mfs_meta_content(struct mfs_meta *meta, uint64_t ino, uint64_t version, uint64_t off,
                      size_t len, void *buf)
{
    return mfs_contents_get(meta->contents, ino, version, off, len, buf);
}

/* One attempt; -EAGAIN and *holder when another session appends. */
static int try_truncate(struct mfs_meta *meta, uint64_t ino, uint64_t size, uint64_t trimmed,
                        uint32_t drop, struct mfs_attr *attr, uint64_t *holder)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(meta->sid);
    struct mfs_time_arg time = mfs_now_arg();
    int64_t asked = mfs_clock_mono();
    struct mfs_bytes answer;
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_truncate");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, time.b, sizeof time.b);
    mfs_args_int(&c.args, (int64_t)size);
    mfs_args_int(&c.args, meta->stripe_size);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_args_int(&c.args, (int64_t)trimmed);
    mfs_args_int(&c.args, drop);
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    answer = mfs_call_text(&c);
    if (!rc && answer.n == 8) {
        *holder = mfs_get_be64(answer.p);
        rc = -EAGAIN;
    }
    if (!rc)
        rc = take_changed(meta, ino, answer, asked, attr);
    mfs_call_fini(&c);
    return rc;
}

int mfs_meta_truncate(struct mfs_meta *meta, uint64_t ino, uint64_t size, uint64_t trimmed,
                      uint32_t drop, uint64_t *old_version, struct mfs_attr *attr)
{
    struct mfs_place_wait wait = {0};
    uint64_t holder = 0;
    int rc;

    do {
        rc = try_truncate(meta, ino, size, trimmed, drop, attr, &holder);
        if (rc == -EAGAIN)
            rc = mfs_place_wait(meta, ino, holder, &wait);
    } while (rc == -EAGAIN);
    if (!rc && old_version)
        *old_version = attr->version - 1;
    if (mfs_outcome_is_unknown(rc)) {
        mfs_outcomes_content(meta, ino, rc);
        mfs_meta_settle(meta, ino);
    }
    return rc;
}
