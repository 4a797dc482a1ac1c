/* Locks, kept at the inode's home. A lock of a dead session is in no owner's way: it is dropped
 * when a client meets it. So a client takes one only while it knows that its session lives. */
#include "meta/deferred/unknown_outcomes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "meta/call.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"

#define OWNER_LEN 16              /* session, owner */
#define FIELD_LEN (1 + OWNER_LEN) /* kind first */
#define DEAD_MAX  64              /* dead sessions dropped on the way to one lock */

struct field {
    char b[FIELD_LEN];
};

static struct field field_of(const struct mfs_meta *meta, char kind, uint64_t owner)
{
    struct field f;

    f.b[0] = kind;
    mfs_put_be64(f.b + 1, meta->sid);
    mfs_put_be64(f.b + 9, owner);
    return f;
}

static int type_code(int type)
{
    return type == F_RDLCK ? MFS_LOCK_READ : type == F_WRLCK ? MFS_LOCK_WRITE : 0;
}

static void range_args(struct mfs_call *c, const struct mfs_ino_arg *ino, const struct field *f,
                       const struct mfs_lock *lock)
{
    mfs_args_bin(&c->args, ino->b, sizeof ino->b);
    mfs_args_bin(&c->args, f->b, sizeof f->b);
    mfs_args_int(&c->args, type_code(lock->type));
    mfs_args_int(&c->args, (int64_t)lock->start);
    mfs_args_int(&c->args, (int64_t)lock->end);
    mfs_args_int(&c->args, lock->pid);
}

/* The lock in the way: { session, owner, type, pid, first, last, closing }. */
static int read_blocker(const struct mfs_reply *r, struct mfs_lock *lock,
                        struct mfs_lock_holder *holder)
{
    struct mfs_bytes session = mfs_reply_bytes(mfs_reply_at(r, 0));
    struct mfs_bytes owner = mfs_reply_bytes(mfs_reply_at(r, 1));
    int64_t first = mfs_reply_int(mfs_reply_at(r, 4)), last = mfs_reply_int(mfs_reply_at(r, 5));

    if (session.n != 8 || owner.n != 8 || first < 0 || last < first)
        return -EIO;
    *holder = (struct mfs_lock_holder){.session = mfs_get_be64(session.p),
                                       .owner = mfs_get_be64(owner.p),
                                       .pid = (uint32_t)mfs_reply_int(mfs_reply_at(r, 3)),
                                       .closing = mfs_reply_int(mfs_reply_at(r, 6)) == 1};
    lock->owner = holder->owner;
    lock->type = mfs_reply_int(mfs_reply_at(r, 2)) == MFS_LOCK_READ ? F_RDLCK : F_WRLCK;
    lock->pid = holder->pid;
    lock->start = (uint64_t)first;
    lock->end = (uint64_t)last;
    return 0;
}

static int drop_session(struct mfs_meta *meta, uint64_t ino, uint64_t sid)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), who = mfs_ino_arg(sid);
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_unlock_session");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, who.b, sizeof who.b);
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    mfs_call_fini(&c);
    return rc;
}

/* The holder's session is dead: its locks are gone on return and the caller tries again (1). */
static int drop_if_dead(struct mfs_meta *meta, uint64_t ino, uint64_t sid)
{
    bool alive = true;
    int rc;

    if (sid == meta->sid)
        return 0;
    mfs_session_alive(meta, &sid, 1, &alive);
    if (alive)
        return 0;
    rc = drop_session(meta, ino, sid);
    return rc ? rc : 1;
}

/* What was granted is worth nothing if the session may have died on the way: 1, once more. */
static int not_ours(const struct mfs_meta *meta, const struct field *field)
{
    return mfs_get_be64(field->b + 1) != meta->sid || !mfs_session_is_fresh(meta);
}

static int set_once(struct mfs_meta *meta, uint64_t ino, char kind, const struct mfs_lock *lock,
                    struct mfs_attr *attr, struct mfs_lock_holder *in_way)
{
    struct field field = field_of(meta, kind, lock->owner);
    struct mfs_ino_arg key = mfs_ino_arg(ino);
    int64_t asked = mfs_clock_mono();
    struct mfs_lock other;
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, "mfs_setlk");
    range_args(&c, &key, &field, lock);
    c.cmd.idempotent =
        lock->type == F_UNLCK; /* what the owner takes meanwhile may as well come before */
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    if (!rc && mfs_call_text(&c).p) {
        rc = mfs_meta_take(meta, ino, mfs_call_text(&c), asked, attr);
        if (!rc && lock->type != F_UNLCK)
            rc = not_ours(meta, &field);
    } else if (!rc && lock->type == F_UNLCK) {
        rc = -EIO; /* no lock is in the way of that */
    } else if (!rc) {
        rc = read_blocker(c.cmd.reply, &other, in_way);
        if (!rc)
            rc = drop_if_dead(meta, ino, in_way->session);
        if (rc >= 0)
            rc = rc ? 1 : -EAGAIN;
    }
    mfs_call_fini(&c);
    return rc;
}

static int lock_it(struct mfs_meta *meta, uint64_t ino, char kind, const struct mfs_lock *lock,
                   struct mfs_attr *attr, struct mfs_lock_holder *holder)
{
    struct mfs_lock_holder unused;
    int rc = 1;

    mfs_outcomes_unlock_cancel(meta, ino, kind == 'F', lock->owner);
    mfs_opens_locked(meta, ino);
    for (unsigned i = 0; i < DEAD_MAX && rc == 1; i++) {
        rc = mfs_session_ensure_fresh(meta);
        if (!rc)
            rc = set_once(meta, ino, kind, lock, attr, holder ? holder : &unused);
    }
    return rc == 1 ? -EAGAIN : rc;
}

/* An owner that waits for a lock that its holder believes to have given back waits for ever. */
static int unlock_it(struct mfs_meta *meta, uint64_t ino, char kind, const struct mfs_lock *lock,
                     struct mfs_attr *attr)
{
    struct mfs_lock_holder unused;
    uint64_t session = meta->sid;
    int rc = set_once(meta, ino, kind, lock, attr, &unused);

    if (lock->start == 0 && lock->end == INT64_MAX)
        mfs_outcomes_unlock(meta, ino, kind == 'F', session, lock->owner, rc);
    return rc;
}

static int set(struct mfs_meta *meta, uint64_t ino, char kind, const struct mfs_lock *lock,
               struct mfs_attr *attr, struct mfs_lock_holder *holder)
{
    return lock->type == F_UNLCK ? unlock_it(meta, ino, kind, lock, attr)
                                 : lock_it(meta, ino, kind, lock, attr, holder);
}

int mfs_lock_give_back(struct mfs_meta *meta, uint64_t ino, bool flock, const struct mfs_lock *lock)
{
    struct mfs_lock_holder unused;
    struct mfs_attr attr;

    return set_once(meta, ino, flock ? 'F' : 'P', lock, &attr, &unused);
}

int mfs_meta_setlk(struct mfs_meta *meta, uint64_t ino, const struct mfs_lock *lock,
                   struct mfs_attr *attr, struct mfs_lock_holder *holder)
{
    return set(meta, ino, 'P', lock, attr, holder);
}

int mfs_meta_flock(struct mfs_meta *meta, uint64_t ino, uint64_t owner, uint32_t pid, int type,
                   struct mfs_attr *attr, struct mfs_lock_holder *holder)
{
    struct mfs_lock whole = {
        .type = type, .start = 0, .end = INT64_MAX, .owner = owner, .pid = pid};

    return set(meta, ino, 'F', &whole, attr, holder);
}

int mfs_meta_closing(struct mfs_meta *meta, uint64_t ino, const uint64_t *owners, size_t n)
{
    char *list = malloc(n * OWNER_LEN);
    struct mfs_ino_arg key = mfs_ino_arg(ino);
    struct mfs_call c;
    int rc;

    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        mfs_put_be64(list + i * OWNER_LEN, meta->sid);
        mfs_put_be64(list + i * OWNER_LEN + 8, owners[i]);
    }
    mfs_call_command(&c, "mfs_closing");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, list, n * OWNER_LEN);
    c.cmd.idempotent = true;
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    mfs_call_fini(&c);
    free(list);
    return rc;
}

int mfs_meta_getlk(struct mfs_meta *meta, uint64_t ino, struct mfs_lock *lock,
                   struct mfs_lock_holder *holder)
{
    struct field field = field_of(meta, 'P', lock->owner);
    struct mfs_ino_arg key = mfs_ino_arg(ino);
    struct mfs_lock_holder in_way = {0};
    struct mfs_lock other;
    int rc = 1;

    for (unsigned i = 0; i < DEAD_MAX && rc == 1; i++) {
        struct mfs_call c;

        mfs_call_command(&c, "mfs_getlk");
        c.cmd.idempotent = true;
        range_args(&c, &key, &field, lock);
        rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
        if (!rc && !mfs_reply_count(c.cmd.reply)) {
            lock->type = F_UNLCK;
        } else if (!rc) {
            rc = read_blocker(c.cmd.reply, &other, &in_way);
            if (!rc)
                rc = drop_if_dead(meta, ino, in_way.session);
            if (rc == 0) {
                *lock = other;
                if (in_way.session != meta->sid)
                    lock->pid = 0; /* of another client, where pids mean nothing here */
            }
        }
        mfs_call_fini(&c);
    }
    if (holder)
        *holder = in_way;
    return rc == 1 ? -EAGAIN : rc;
}
