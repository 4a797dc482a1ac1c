/* Deadlocks among owners of fcntl locks, over all clients. Each owner's newest note says which
 * owner it waits for; all notes are in one partition, where taking one and following it is one
 * atomic step, so the owner that closes a cycle there sees it. Notes may be old, so a cycle is only
 * a suspicion:
 *
 *   1. the notes were all there (mfs_wait);
 *   2. each holder does have a lock in the way of the owner that waits for it, and all sessions
 *      live;
 *   3. the notes are still all there, and in the same step one's own goes (mfs_wait_over).
 *
 * A note goes before its owner's call returns. So from 1 to 3 all of them waited, and gave nothing
 * back; then none of their locks was granted either: the first of those would have needed that
 * another one gave something back. What 2 has seen was true at once, hence for ever. Only one of a
 * cycle can succeed in 3, the others go on waiting and get what that one gives back.
 *
 * As in Linux, an owner counts as one that waits, though a process may have several threads. */
#include "meta/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "meta/call.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"
#include "partition/protocol.h"

#define PART      0U /* where all notes are */
#define OWNER_LEN 16 /* session, owner */
#define NOTE_LEN  49 /* holder (16), session's number of the wait, ino, type (1), start, end */
#define CYCLE_MAX (MFS_WAIT_STEPS + 1) /* and oneself */

struct note {
    char owner[OWNER_LEN];
    char text[NOTE_LEN];
};

static void put_owner(char out[OWNER_LEN], uint64_t session, uint64_t owner)
{
    mfs_put_be64(out, session);
    mfs_put_be64(out + 8, owner);
}

static struct note note_of(const struct mfs_meta_wait *w)
{
    struct note n;

    put_owner(n.owner, w->session, w->lock.owner);
    put_owner(n.text, w->noted.session, w->noted.owner);
    mfs_put_be64(n.text + 16, w->number);
    mfs_put_be64(n.text + 24, w->ino);
    n.text[32] = w->lock.type == F_RDLCK ? MFS_LOCK_READ : MFS_LOCK_WRITE;
    mfs_put_be64(n.text + 33, w->lock.start);
    mfs_put_be64(n.text + 41, w->lock.end);
    return n;
}

/* The holder has a lock in the way of what the note's owner wants: 1, 0 or an error. */
static int stands(struct mfs_meta *meta, const struct note *n)
{
    uint64_t ino = mfs_get_be64(n->text + 24);
    char owner[1 + OWNER_LEN] = {'P'}, holder[1 + OWNER_LEN] = {'P'};
    struct mfs_call c;
    int rc;

    memcpy(owner + 1, n->owner, OWNER_LEN);
    memcpy(holder + 1, n->text, OWNER_LEN);
    mfs_call_command(&c, "mfs_in_way");
    c.cmd.idempotent = true;
    mfs_args_bin(&c.args, n->text + 24, 8);
    mfs_args_bin(&c.args, owner, sizeof owner);
    mfs_args_int(&c.args, n->text[32]);
    mfs_args_int(&c.args, (int64_t)mfs_get_be64(n->text + 33));
    mfs_args_int(&c.args, (int64_t)mfs_get_be64(n->text + 41));
    mfs_args_bin(&c.args, holder, sizeof holder);
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    if (!rc)
        rc = mfs_reply_int(c.cmd.reply) == 1;
    mfs_call_fini(&c);
    return rc;
}

/* Takes the first note out if all stand: 1, 0 or an error. */
static int take_out(struct mfs_meta *meta, const struct note *cycle, size_t n)
{
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_wait_over");
    for (size_t i = 0; i < n; i++) {
        mfs_args_bin(&c.args, cycle[i].owner, OWNER_LEN);
        mfs_args_bin(&c.args, cycle[i].text, NOTE_LEN);
    }
    rc = mfs_call_run(meta, &c, PART);
    if (!rc)
        rc = mfs_reply_int(c.cmd.reply) == 1;
    mfs_call_fini(&c);
    return rc;
}

/* A cycle of notes: true if it is one of waits, and ours is out of it now. */
static bool is_deadlock(struct mfs_meta *meta, const struct note *cycle, size_t n)
{
    uint64_t session[CYCLE_MAX];
    bool alive[CYCLE_MAX];

    for (size_t i = 0; i < n; i++)
        session[i] = mfs_get_be64(cycle[i].owner);
    mfs_session_alive(meta, session, n, alive);
    for (size_t i = 0; i < n; i++)
        if (!alive[i] || stands(meta, &cycle[i]) != 1)
            return false;
    return take_out(meta, cycle, n) == 1;
}

/* The notes behind cycle[0], as mfs_wait answered; how many there are with it, 0 if none. */
static size_t read_cycle(const struct mfs_reply *r, struct note *cycle)
{
    size_t n = mfs_reply_count(r);

    if (!n || n % 2 || n / 2 + 1 > CYCLE_MAX)
        return 0;
    for (size_t i = 0; i < n; i += 2) {
        struct mfs_bytes owner = mfs_reply_bytes(mfs_reply_at(r, i));
        struct mfs_bytes text = mfs_reply_bytes(mfs_reply_at(r, i + 1));

        if (owner.n != OWNER_LEN || text.n != NOTE_LEN)
            return 0;
        memcpy(cycle[1 + i / 2].owner, owner.p, OWNER_LEN);
        memcpy(cycle[1 + i / 2].text, text.p, NOTE_LEN);
    }
    return n / 2 + 1;
}

int mfs_meta_wait_note(struct mfs_meta *meta, struct mfs_meta_wait *w)
{
    struct note cycle[CYCLE_MAX];
    struct mfs_call c;
    size_t n = 0;
    int rc;

    if (w->number && w->session != meta->sid)
        mfs_meta_wait_over(meta, w);
    if (!w->number) {
        w->session = meta->sid;
        w->number = ++meta->waits;
    }
    w->noted = w->holder;
    cycle[0] = note_of(w);
    mfs_call_command(&c, "mfs_wait");
    mfs_args_bin(&c.args, cycle[0].owner, OWNER_LEN);
    mfs_args_bin(&c.args, cycle[0].text, NOTE_LEN);
    mfs_args_int(&c.args, MFS_META_WAIT_TTL / MFS_MSEC);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, PART);
    if (!rc)
        n = read_cycle(c.cmd.reply, cycle);
    mfs_call_fini(&c);
    if (!n || !is_deadlock(meta, cycle, n))
        return rc;
    w->number = 0;
    mfs_debug("meta", "%zu owners of locks waited for each other, for inode %" PRIx64, n, w->ino);
    return -EDEADLK;
}

void mfs_meta_wait_over(struct mfs_meta *meta, struct mfs_meta_wait *w)
{
    struct note own;

    if (!w->number)
        return;
    own = note_of(w);
    take_out(meta, &own, 1);
    w->number = 0;
}
