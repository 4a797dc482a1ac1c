/* O_APPEND: the end of the file is taken at its home, in one step for all clients. */
#include "meta/coherence/notices.h"
#include "meta/deferred/unknown_outcomes.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"
#include "partition/protocol.h"

/* Data are sent along only where they are likely to fit into stripe 0, which the size that this
 * client saw last tells; to be wrong is harmless. */
static bool likely_small(struct mfs_meta *meta, uint64_t ino, size_t len)
{
    struct mfs_hint *hint = &meta->hints[ino % MFS_HINTS];
    uint64_t size = hint->ino == ino ? hint->size : 0;
    uint32_t stripe_size = mfs_store_stripe_of(meta->store, ino);

    return len <= stripe_size && size <= stripe_size - len;
}

static void remember(struct mfs_meta *meta, const struct mfs_attr *attr)
{
    struct mfs_hint *hint = &meta->hints[attr->ino % MFS_HINTS];

    hint->size = attr->size;
    hint->ino = attr->ino;
}

static struct mfs_time_arg time_of(const struct mfs_end_lease *lease)
{
    return lease->mtime.tv_sec ? mfs_time_arg(lease->mtime) : mfs_now_arg();
}

static uint32_t how(uint32_t drop, const struct mfs_end_lease *lease)
{
    return drop | (lease->wanted ? MFS_APPEND_KEEP : 0);
}

/* The bytes of append `number` are stored, and the place was kept if that was wanted: that is a
 * lease if no other session may have the file open. */
static void take_lease(struct mfs_meta *meta, uint64_t ino, uint64_t number, int64_t asked,
                       struct mfs_bytes others, struct mfs_end_lease *lease)
{
    lease->number = lease->wanted ? number : 0;
    lease->since = asked;
    if (others.n > 0)
        mfs_meta_end_give_back(meta, ino, lease);
}

static int take_record(struct mfs_meta *meta, uint64_t ino, struct mfs_bytes record, int64_t asked,
                       struct mfs_attr *attr)
{
    int rc = mfs_meta_take(meta, ino, record, asked, attr);

    if (rc)
        mfs_filecache_revoke(meta->files, ino);
    else
        mfs_filecache_update(meta->files, attr, asked);
    return rc;
}

/* One attempt; -EAGAIN and *holder when another has the place. */
static int try_append(struct mfs_meta *meta, uint64_t ino, const struct mfs_arg *data,
                      uint32_t drop, struct mfs_end_lease *lease, uint64_t *off, uint64_t *number,
                      struct mfs_attr *attr, uint64_t *holder)
{
    uint64_t own = *number;
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(meta->sid);
    struct mfs_ino_arg num = mfs_ino_arg(*number);
    struct mfs_time_arg time = time_of(lease);
    int64_t asked = mfs_clock_mono();
    struct mfs_bytes text, others;
    struct mfs_call c;
    int rc;

    mfs_call_command(&c, data->p ? "mfs_append" : "mfs_append_place");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, time.b, sizeof time.b);
    mfs_args_int(&c.args, (int64_t)data->len);
    mfs_args_int(&c.args, meta->stripe_size);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_args_bin(&c.args, num.b, sizeof num.b);
    mfs_args_int(&c.args, how(drop, lease));
    if (data->p && likely_small(meta, ino, data->len))
        mfs_args_bin(&c.args, data->p, data->len);
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    if (rc)
        goto out;
    text = mfs_call_text(&c);
    rc = -EIO;
    if (!text.p || text.n < 8)
        goto out;
    rc = -EAGAIN;
    *holder = mfs_get_be64(text.p);
    if (text.n == 8)
        goto out;
    if (text.p[--text.n] == 'S')
        *number = 0;
    others = mfs_record_rest(&text);
    rc = take_record(meta, ino, text, asked, attr);
    if (rc)
        goto out;
    *off = *number ? attr->size : attr->size - data->len;
    if (!*number) {
        mfs_notices_send(meta, ino, attr->version, others);
        take_lease(meta, ino, own, asked, others, lease);
    }
out:
    mfs_call_fini(&c);
    mfs_outcomes_place(meta, ino, mfs_get_be64(sid.b),
                       lease->wanted || lease->number ? own : *number, rc);
    mfs_outcomes_content(meta, ino, rc);
    return rc;
}

/* Takes the place from a session that is dead. */
static void break_dead(struct mfs_meta *meta, uint64_t ino, uint64_t holder)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(holder);
    struct mfs_call c;
    bool alive;

    mfs_session_alive(meta, &holder, 1, &alive);
    if (alive)
        return;
    mfs_call_command(&c, "mfs_append_break");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_call_run(meta, &c, mfs_placement_home(ino));
    mfs_call_fini(&c);
}

/* For the place behind the end, over all appenders before us; one of them may wait for a partition
 * that is being moved. */
#define PLACE_WAIT  (150 * MFS_SEC)
#define PAUSE_FIRST (MFS_MSEC / 8)
#define PAUSE_LAST  (4 * MFS_MSEC)
#define ASK_AGAIN   (50 * MFS_MSEC) /* the holder may not have been listening */

int mfs_place_wait(struct mfs_meta *meta, uint64_t ino, uint64_t holder, struct mfs_place_wait *w)
{
    int64_t now = mfs_clock_mono();

    w->since = w->since ? w->since : now;
    w->pause = w->pause ? w->pause : PAUSE_FIRST;
    if (now - w->since > PLACE_WAIT)
        return -EBUSY;
    if (!w->asked || now - w->asked > ASK_AGAIN) {
        mfs_notices_ask_end(meta, ino, holder);
        w->asked = now;
    }
    if (w->pause >= PAUSE_LAST)
        break_dead(meta, ino, holder);
    else
        w->pause *= 2;
    mfs_clock_sleep(w->pause);
    return -EAGAIN;
}

/* Under the lease if there is one, else in a place of its own. */
int mfs_meta_append_leased(struct mfs_meta *meta, uint64_t ino, const void *data, size_t len,
                           uint32_t drop, struct mfs_end_lease *lease, uint64_t *off,
                           uint64_t *number, uint64_t *old_version, struct mfs_attr *attr)
{
    struct mfs_arg bytes = {data, len};
    struct mfs_place_wait wait = {0};
    uint64_t holder = 0;
    int rc;

    do {
        rc = mfs_session_ensure_fresh(meta);
        *number = lease->number && mfs_meta_append_holds(meta, lease->since)
                      ? lease->number
                      : atomic_fetch_add(&meta->appends, 1) + 1;
        if (!rc)
            rc = try_append(meta, ino, &bytes, drop, lease, off, number, attr, &holder);
        if (rc == -EAGAIN)
            rc = mfs_place_wait(meta, ino, holder, &wait);
    } while (rc == -EAGAIN);
    if (rc) {
        mfs_meta_end_give_back(meta, ino, lease);
        return rc;
    }
    if (old_version)
        *old_version = attr->version - 1;
    remember(meta, attr);
    return 0;
}

int mfs_meta_append(struct mfs_meta *meta, uint64_t ino, const void *data, size_t len,
                    uint32_t drop, uint64_t *off, uint64_t *number, uint64_t *old_version,
                    struct mfs_attr *attr)
{
    struct mfs_end_lease none = {0};

    return mfs_meta_append_leased(meta, ino, data, len, drop, &none, off, number, old_version,
                                  attr);
}

bool mfs_meta_append_holds(const struct mfs_meta *meta, int64_t since)
{
    return mfs_session_is_fresh(meta) && meta->session_began <= since;
}

int mfs_meta_append_end_leased(struct mfs_meta *meta, uint64_t ino, uint64_t number, bool stored,
                               const struct mfs_range *place, uint32_t drop,
                               struct mfs_end_lease *lease, uint64_t *old_version,
                               struct mfs_attr *attr)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino), sid = mfs_ino_arg(meta->sid);
    struct mfs_ino_arg num = mfs_ino_arg(number);
    struct mfs_time_arg time = time_of(lease);
    int64_t asked = mfs_clock_mono();
    struct mfs_bytes text, others;
    struct mfs_call c;
    int rc;

    lease->wanted = lease->wanted && stored;
    mfs_call_command(&c, "mfs_append_end");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_bin(&c.args, time.b, sizeof time.b);
    mfs_args_int(&c.args, (int64_t)place->lo);
    mfs_args_int(&c.args, stored ? (int64_t)place->hi : 0);
    mfs_args_bin(&c.args, sid.b, sizeof sid.b);
    mfs_args_bin(&c.args, num.b, sizeof num.b);
    mfs_args_int(&c.args, how(drop, lease));
    rc = mfs_call_run(meta, &c, mfs_placement_home(ino));
    if (rc)
        goto out;
    text = mfs_call_text(&c);
    others = mfs_record_rest(&text);
    rc = take_record(meta, ino, text, asked, attr);
    if (rc)
        goto out;
    mfs_notices_send(meta, ino, attr->version, others);
    take_lease(meta, ino, number, asked, others, lease);
    if (old_version)
        *old_version = attr->version - 1;
    remember(meta, attr);
out:
    mfs_call_fini(&c);
    mfs_outcomes_place(meta, ino, mfs_get_be64(sid.b), number, rc);
    mfs_outcomes_content(meta, ino, rc);
    if (rc) {
        lease->number = lease->wanted && rc != -ECANCELED ? number : 0;
        lease->wanted = false;
        mfs_meta_end_give_back(meta, ino, lease);
    }
    return rc;
}

int mfs_meta_append_end(struct mfs_meta *meta, uint64_t ino, uint64_t number, bool stored,
                        const struct mfs_range *place, uint32_t drop, uint64_t *old_version,
                        struct mfs_attr *attr)
{
    struct mfs_end_lease none = {0};

    return mfs_meta_append_end_leased(meta, ino, number, stored, place, drop, &none, old_version,
                                      attr);
}

void mfs_meta_end_give_back(struct mfs_meta *meta, uint64_t ino, struct mfs_end_lease *lease)
{
    struct mfs_range nothing = {0};
    uint64_t number = lease->number;
    struct mfs_attr attr;

    lease->number = 0;
    if (number)
        mfs_meta_append_end(meta, ino, number, false, &nothing, 0, NULL, &attr);
}
