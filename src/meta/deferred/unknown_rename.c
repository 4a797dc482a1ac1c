#include "meta/deferred/unknown_outcomes.h"

#include "meta/cache/cache.h"
#include "meta/coherence/revoke.h"
#include "meta/txn/txn.h"

#define MAX_AFFECTED 6 /* two places: as known before, as the rename met them, as they are now */

struct affected {
    struct mfs_entry of[MAX_AFFECTED];
    unsigned n;
};

static void add(struct affected *s, uint64_t ino, mode_t type)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->of[i].ino == ino)
            return;
    if (ino != 0 && s->n < MAX_AFFECTED)
        s->of[s->n++] = (struct mfs_entry){.ino = ino, .type = type & S_IFMT};
}

static void notify_directory(struct mfs_meta *meta, uint64_t ino, uint32_t part)
{
    uint32_t home = mfs_placement_home(ino);
    const struct mfs_lease_change changes[] = {{ino, part, true}, {ino, home, true}};

    mfs_leases_revoke(meta, changes, home == part ? 1 : 2, NULL);
    if (meta->opts.revoked) /* this client's kernel may show it where the request says it is */
        meta->opts.revoked(meta->opts.arg, ino, true, false, NULL, NULL);
}

int mfs_outcomes_notify(struct mfs_meta *meta, uint64_t ino, mode_t type, uint32_t part)
{
    if (S_ISREG(type))
        return mfs_leases_file_changed_at(meta, ino, part);
    if (S_ISDIR(type))
        notify_directory(meta, ino, part);
    return 0;
}

/* What this client knew of the name, which it forgets, and what the rename found there. */
static void recall(const struct mfs_rename *r, const struct mfs_place *p, struct affected *s)
{
    struct mfs_attr attr;

    if (mfs_filecache_name(r->meta->files, p->dir, p->name, &attr))
        add(s, attr.ino, attr.mode);
    mfs_filecache_forget(r->meta->files, p->dir, p->name, 0);
    add(s, p->entry.ino, p->entry.type);
}

static int look(const struct mfs_rename *r, const struct mfs_place *p, struct affected *s)
{
    struct mfs_attr attr;
    int rc = mfs_meta_lookup(r->meta, p->dir, p->name, &attr);

    if (rc == 0)
        add(s, attr.ino, attr.mode);
    return mfs_outcome_is_unknown(rc) ? rc : 0;
}

void mfs_outcomes_rename(const struct mfs_rename *r)
{
    struct affected s = {.n = 0};
    int rc = 0;

    recall(r, &r->from, &s);
    recall(r, &r->to, &s);
    mfs_outcomes_added(r->meta, r->to.dir, r->to.part, -EIO);
    if (r->from.part != r->to.part)
        rc = mfs_intent_end_of(r->meta, r->from.dir, r->from.name, r->txn);
    if (rc == 0)
        rc = look(r, &r->from, &s);
    if (rc == 0)
        rc = look(r, &r->to, &s);
    for (unsigned i = 0; i < s.n; i++) {
        if (rc == 0)
            rc = mfs_outcomes_notify(r->meta, s.of[i].ino, s.of[i].type, r->from.part);
        if (rc == 0 && r->from.part != r->to.part)
            rc = mfs_outcomes_notify(r->meta, s.of[i].ino, s.of[i].type, r->to.part);
        if (S_ISREG(s.of[i].type)) /* later, then */
            mfs_outcomes_attributes(r->meta, s.of[i].ino, rc);
    }
}
