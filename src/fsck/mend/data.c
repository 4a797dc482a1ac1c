/* Mending stripes, and what is kept beside inodes. */
#include "fsck/mend/mend_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/ino.h"
#include "data/stripes/stripe_keys.h"
#include "data/stripes/stripes.h"
#include "meta/call.h"
#include "meta/deferred/unknown_outcomes.h"
#include "meta/internal.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"

static int delete_run(struct mfs_mender *m, const struct mfs_census *c, uint64_t ino, size_t from,
                      size_t to)
{
    uint32_t *stripes = calloc(to - from + 1, sizeof *stripes);
    int64_t grown = 0;
    int rc = stripes ? 0 : -ENOMEM;

    for (size_t i = from; i < to && !rc; i++)
        stripes[i - from] = ((struct mfs_seen_stripe *)mfs_flat_at(&c->stripes, i))->n;
    for (size_t i = 0; i < to - from && !rc; i += 4096)
        rc = mfs_stripe_delete(m->store, ino, NULL, 0, stripes + i,
                               to - from - i < 4096 ? to - from - i : 4096, &grown);
    free(stripes);
    return rc;
}

int mfs_mend_stripes(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    int rc = mfs_mend_absent(m, f->ino);

    return rc ? rc : delete_run(m, c, f->ino, f->a, f->b);
}

/* A commit of nothing, which is right whatever has become of the record since: one version on, and
 * the end of data at least there. */
static int commit_nothing(struct mfs_mender *m, uint64_t ino, uint64_t end)
{
    struct mfs_ino_arg key = mfs_ino_arg(ino);
    struct mfs_call call;

    mfs_call_command(&call, "mfs_commit0");
    mfs_args_bin(&call.args, key.b, sizeof key.b);
    mfs_args_str(&call.args, ""); /* its times stay */
    mfs_args_int(&call.args, 0);
    mfs_args_int(&call.args, (int64_t)end);
    mfs_args_str(&call.args, "");
    mfs_args_str(&call.args, "");
    mfs_args_str(&call.args, "");
    mfs_args_str(&call.args, "");
    mfs_args_int(&call.args, 0); /* and its privileges */
    return mfs_mend_done(m, &call, mfs_placement_home(ino));
}

static bool is_file(const struct mfs_census *c, uint64_t ino)
{
    const struct mfs_seen_inode *seen = mfs_census_inode(c, ino);

    return seen && S_ISREG(seen->mode);
}

/* The end of data follows, and they are void, as a client may be about to write there: so they go
 * with the file. */
int mfs_mend_beyond(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    return is_file(c, f->ino) ? commit_nothing(m, f->ino, f->a) : -EOPNOTSUPP;
}

static int edit_stripe(struct mfs_mender *m, const char *command, const struct mfs_found *f,
                       int64_t keep)
{
    char key[MFS_KEY_STRIPE_LEN];
    struct mfs_call c;

    mfs_key_stripe(key, f->ino, (uint32_t)f->a);
    mfs_call_command(&c, command);
    mfs_args_bin(&c.args, key, sizeof key);
    if (keep > 0)
        mfs_args_int(&c.args, keep);
    return mfs_mend_done(m, &c, f->part);
}

/* What is beyond a stripe's size can't be read. */
int mfs_mend_stripe_long(struct mfs_mender *m, const struct mfs_census *c,
                         const struct mfs_found *f)
{
    return edit_stripe(m, "mfs_strim", f, mfs_ino_stripe_size(f->ino, c->stripe_size));
}

int mfs_mend_stripe_place(struct mfs_mender *m, const struct mfs_census *c,
                          const struct mfs_found *f)
{
    int rc = mfs_mend_exists(m, f->ino);

    (void)c;
    if (rc > 0)
        return -EOPNOTSUPP; /* it may be the only copy */
    return rc ? rc : edit_stripe(m, "mfs_sdel", f, 0);
}

/* --- beside inodes ------------------------------------------------------------------------------
 */

int mfs_mend_loose(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    struct mfs_ino_arg key = mfs_ino_arg(f->ino);
    const char letter = (char)f->a;
    struct mfs_call call;
    int rc = mfs_mend_absent(m, f->ino);

    (void)c;
    if (rc)
        return rc;
    mfs_call_command(&call, "mfs_fsck_loose");
    mfs_args_bin(&call.args, &letter, 1);
    mfs_args_bin(&call.args, key.b, sizeof key.b);
    return mfs_mend_changed(m, &call, f->part);
}

/* What the appender stored in the place of content, and did not commit, is seen by a client that
 * has no pages of the file. So no client is to go on with those that it has. Comes before the
 * appender is forgotten. */
static void revoke_dead_appends(struct mfs_mender *m, uint64_t ino)
{
    if (commit_nothing(m, ino, 0))
        return;
    mfs_outcomes_content(m->meta, ino, -EIO);
    mfs_meta_settle(m->meta, ino);
}

int mfs_mend_dead(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    struct mfs_ino_arg ino = mfs_ino_arg(f->ino), sid = mfs_ino_arg(f->a);
    uint64_t session = f->a;
    struct mfs_call call;
    bool alive;
    int rc;

    mfs_session_alive(m->meta, &session, 1, &alive);
    if (alive)
        return -ESTALE;
    if (f->fault == MFS_FAULT_DEAD_OPENER && is_file(c, f->ino))
        revoke_dead_appends(m, f->ino);
    if (f->fault == MFS_FAULT_DEAD_APPENDER)
        mfs_call_command(&call, "mfs_append_break");
    else
        mfs_call_command(&call,
                         f->fault == MFS_FAULT_DEAD_LOCK ? "mfs_unlock_session" : "mfs_disown");
    mfs_args_bin(&call.args, ino.b, sizeof ino.b);
    if (f->fault == MFS_FAULT_DEAD_OPENER)
        mfs_args_int(&call.args, m->meta->stripe_size);
    mfs_args_bin(&call.args, sid.b, sizeof sid.b);
    rc = mfs_call_run(m->meta, &call, f->part);
    if (!rc && f->fault == MFS_FAULT_DEAD_OPENER)
        mfs_meta_freed(m->meta, f->ino, mfs_call_text(&call));
    mfs_call_fini(&call);
    return rc;
}

int mfs_mend_forever(struct mfs_mender *m, const struct mfs_census *c, const struct mfs_found *f)
{
    static const struct {
        char letter;
        int64_t seconds;
    } lives[] = {{'Y', 120}, {'K', 120}, {'Z', 20}, {'W', 15}, {'T', 86400}};

    (void)c;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        if (lives[i].letter == f->name[0])
            return mfs_mend_expire(m, f->part, f->name, f->name_len, lives[i].seconds);
    return -EOPNOTSUPP;
}
