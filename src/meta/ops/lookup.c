/* From a name to an inode. */
#include "meta/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "cluster/trust.h"
#include "meta/cache/cache.h"
#include "meta/cache/contents.h"
#include "meta/cache/dirnames.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/coherence/notices.h"
#include "meta/metrics.h"
#include "meta/ops/ops.h"
#include "meta/session/session.h"
#include "meta/txn/txn.h"
#include "partition/protocol.h"

/* An entry whose inode is gone for good (a crash left it) is in the way of new ones. */
static void drop_entry(struct mfs_meta *meta, uint64_t parent, const char *name, uint64_t ino,
                       uint32_t part)
{
    struct mfs_ino_arg dir = mfs_ino_arg(parent), target = mfs_ino_arg(ino);
    struct mfs_call c;

    mfs_call_command(&c, "mfs_drop_entry");
    mfs_args_bin(&c.args, dir.b, sizeof dir.b);
    mfs_args_str(&c.args, name);
    mfs_args_bin(&c.args, target.b, sizeof target.b);
    mfs_call_run(meta, &c, part);
    mfs_call_fini(&c);
}

struct found {
    bool leased;
    struct mfs_entry entry;
    struct mfs_bytes record; /* p NULL: its home is elsewhere; n 0: missing there */
    struct mfs_bytes content;
};

static int take_answer(struct mfs_bytes text, uint32_t part, struct found *f)
{
    size_t n;

    if (!text.p)
        return -ENOENT;
    n = text.n > 1 ? (unsigned char)text.p[1] : 0;
    if (text.n < 2 + n || mfs_entry_decode(text.p + 2, n, &f->entry))
        return -EIO;
    f->leased = text.p[0] == 1;
    f->record = (struct mfs_bytes){text.p + 2 + n, text.n - 2 - n};
    if (mfs_placement_home(f->entry.ino) != part)
        f->record = (struct mfs_bytes){NULL, 0};
    if (S_ISREG(f->entry.type))
        f->content = mfs_record_rest(&f->record);
    return 0;
}

/* A look-up and its arguments. */
struct question {
    struct mfs_ino_arg dir, sid;
    char prefix[2], content[MFS_ARGS_NUM_MAX];
    struct mfs_arg argv[6];
};

/* So much content is to be brought: no more than stripe 0 has, which is all that is there. */
static size_t wanted(struct mfs_meta *meta)
{
    size_t most = mfs_contents_wanted(meta->contents);

    return most < meta->stripe_size ? most : meta->stripe_size;
}

/* Its command points into *q, and to the name. `content`: bytes that are to come along at most. */
static struct mfs_cmd question_cmd(struct mfs_meta *meta, struct question *q, uint64_t parent,
                                   const char *name, size_t len, uint32_t part, size_t content)
{
    q->dir = mfs_ino_arg(parent);
    q->sid = mfs_ino_arg(meta->sid);
    mfs_part_arg(part, q->prefix);
    q->argv[0] = (struct mfs_arg){"mfs_lookup", strlen("mfs_lookup")};
    q->argv[1] = (struct mfs_arg){q->dir.b, sizeof q->dir.b};
    q->argv[2] = (struct mfs_arg){name, len};
    q->argv[3] = (struct mfs_arg){q->prefix, sizeof q->prefix};
    q->argv[4] = (struct mfs_arg){q->sid.b, meta->opts.revoked ? sizeof q->sid.b : 0};
    q->argv[5].p = q->content;
    q->argv[5].len = (size_t)snprintf(q->content, sizeof q->content, "%zu", content);
    return (struct mfs_cmd){.part = part, .argv = q->argv, .argc = 6, .idempotent = true};
}

/* In a directory that this client has just made, a look-up is as a rule the beginning of a create.
 * So what that would need first goes along, unless it is known: that the partition may have names
 * of it. */
static bool is_filled(struct mfs_meta *meta, uint64_t parent, uint32_t part)
{
    return mfs_dircache_is_new(meta->dirs, parent) &&
           !mfs_dircache_bit(meta->dirs, parent, part, MFS_DIR_AGE);
}

static struct mfs_cmd dirbit_cmd(struct mfs_args *args, const struct mfs_ino_arg *dir,
                                 uint32_t part)
{
    struct mfs_cmd cmd;

    mfs_args_init(args, "mfs_dirbit");
    mfs_args_bin(args, dir->b, sizeof dir->b);
    mfs_args_int(args, part);
    cmd = mfs_args_cmd(args, mfs_placement_home(mfs_get_be64(dir->b)));
    cmd.idempotent = true;
    return cmd;
}

static void take_dirbit(struct mfs_meta *meta, uint64_t parent, struct mfs_bytes answer,
                        int64_t asked)
{
    struct mfs_attr attr;

    if (answer.n > 1 && answer.p[0] == MFS_ANSWER_DONE)
        mfs_meta_take(meta, parent, (struct mfs_bytes){answer.p + 1, answer.n - 1}, asked, &attr);
}

/* Asks the entry's partition. *cmd holds the answer. */
static int ask(struct mfs_meta *meta, uint64_t parent, const char *name, uint32_t part,
               struct mfs_cmd *cmd, struct found *f)
{
    int64_t asked = mfs_clock_mono();
    struct mfs_cmd cmds[2];
    struct mfs_args args;
    struct question q;
    size_t n = 1;

    cmds[0] = question_cmd(meta, &q, parent, name, strlen(name), part, wanted(meta));
    if (is_filled(meta, parent, part))
        cmds[n++] = dirbit_cmd(&args, &q.dir, part);
    mfs_store_exec(meta->store, cmds, n);
    *cmd = cmds[0];
    if (n > 1 && !cmds[1].rc)
        take_dirbit(meta, parent, mfs_reply_bytes(cmds[1].reply), asked);
    mfs_cmds_fini(cmds + 1, n - 1);
    return cmd->rc ? cmd->rc : take_answer(mfs_reply_bytes(cmd->reply), part, f);
}

/* What was found is remembered for as long as it is leased. */
static int learn(struct mfs_meta *meta, uint64_t parent, const char *name, const struct found *f,
                 int64_t asked, struct mfs_attr *attr)
{
    int rc = mfs_meta_take(meta, f->entry.ino, f->record, asked, attr);

    if (!rc && f->content.n) {
        mfs_contents_put(meta->contents, attr->ino, attr->version, f->content.p, f->content.n);
        mfs_contents_brought(meta->contents);
    }
    if (!rc && f->leased && S_ISREG(attr->mode))
        mfs_filecache_put(meta->files, parent, name, attr, asked);
    else if (f->leased)
        mfs_dircache_lease(meta->dirs, f->entry.ino, asked);
    return rc;
}

/* A file whose home is elsewhere, and a lease of its attributes there; of its name there is one. */
static int ask_home(struct mfs_meta *meta, uint64_t ino, struct mfs_attr *attr, bool *leased)
{
    int64_t asked = mfs_clock_mono();
    int rc = mfs_lease_ask(meta, ino, asked, attr, leased);

    if (rc == -ESTALE)
        mfs_filecache_revoke(meta->files, ino);
    if (!rc)
        mfs_filecache_compare(meta->files, attr, asked);
    return rc;
}

static int look_elsewhere(struct mfs_meta *meta, uint64_t parent, const char *name,
                          const struct found *f, int64_t asked, struct mfs_attr *attr)
{
    bool leased = false, lease = f->leased && S_ISREG(f->entry.type);
    int rc = lease ? ask_home(meta, f->entry.ino, attr, &leased)
                   : mfs_meta_getattr(meta, f->entry.ino, attr);

    if (!rc && attr->nlink == 0)
        return -EAGAIN; /* its last name has just gone */
    if (!rc && leased && S_ISREG(attr->mode))
        mfs_filecache_put(meta->files, parent, name, attr, asked);
    return rc;
}

/* One attempt. -EAGAIN: the name changed under it; -ESTALE: there is no inode *ino, which the entry
 * names. */
static int look(struct mfs_meta *meta, uint64_t parent, const char *name, uint32_t part,
                struct mfs_attr *attr, uint64_t *ino)
{
    int64_t asked = mfs_clock_mono();
    struct mfs_cmd cmd;
    struct found f = {0};
    int rc = ask(meta, parent, name, part, &cmd, &f);

    if (rc)
        goto out;
    *ino = f.entry.ino;
    if (f.entry.intent) {
        uint64_t before = f.entry.ino;

        rc = mfs_intent_read(meta, parent, name, &f.entry);
        if (rc < 0)
            goto out;
        rc = f.entry.ino ? 0 : -ENOENT;
        if (rc)
            goto out;
        *ino = f.entry.ino;
        if (*ino != before)
            f.record.p = NULL;
    }
    mfs_filecache_forget(meta->files, parent, name, *ino);
    if (!f.record.p) {
        rc = look_elsewhere(meta, parent, name, &f, asked, attr);
    } else if (f.record.n == 0) {
        drop_entry(meta, parent, name, *ino, part);
        rc = -ENOENT;
    } else {
        rc = learn(meta, parent, name, &f, asked, attr);
    }
    if (!rc)
        attr->leased =
            f.leased && S_ISDIR(attr->mode) && !mfs_dircache_revoked(meta->dirs, *ino, asked)
                ? asked
                : 0;
    if (!rc && attr->leased && meta->dirnames)
        mfs_dirnames_put(meta->dirnames, parent, name, *ino, asked);
out:
    /* Whatever this client went by before: a program that has seen the new must not see the old
     * again. */
    if (rc == -ENOENT)
        mfs_filecache_forget(meta->files, parent, name, 0);
    mfs_cmds_fini(&cmd, 1);
    return rc;
}

static int lookup_dots(struct mfs_meta *meta, uint64_t dir, const char *name, struct mfs_attr *attr)
{
    int rc = mfs_meta_getattr(meta, dir, attr);

    if (rc || name[1] == 0)
        return rc;
    return mfs_meta_getattr(meta, attr->parent, attr);
}

/* Is the name that of a directory, under a lease? Whatever takes the name from it, here or by
 * another client, revokes that lease (meta/ops/rename_after.c, rmdir.c). Its attributes are those
 * that are known, or asked for. */
static bool known_dir(struct mfs_meta *meta, uint64_t parent, const char *name,
                      struct mfs_attr *attr)
{
    int64_t asked;
    uint64_t ino;

    if (!meta->dirnames || !mfs_dirnames_find(meta->dirnames, parent, name, &ino, &asked) ||
        mfs_clock_mono() - asked >= MFS_META_LEASE || mfs_meta_getattr_leased(meta, ino, attr) ||
        !mfs_contact_leases(meta, MFS_TRUST) || mfs_dircache_revoked(meta->dirs, ino, asked))
        return false;
    attr->leased = asked;
    return true;
}

static void count(struct mfs_meta *meta, enum mfs_meta_answer by)
{
    mfs_metric_add(meta->metrics, MFS_META_LOOKUPS, by, 1);
}

static int ask_for(struct mfs_meta *meta, uint64_t parent, const char *name, uint32_t part,
                   struct mfs_attr *attr)
{
    struct mfs_backoff backoff = {0};
    uint64_t ino = 0, last = 0;
    int rc;

    for (;;) {
        rc = look(meta, parent, name, part, attr, &ino);
        if (rc != -EAGAIN && rc != -ESTALE)
            return rc;
        /* The entry names the same inode again, yet it is gone: it will not come back. */
        if (rc == -ESTALE && ino == last) {
            drop_entry(meta, parent, name, ino, part);
            return -ENOENT;
        }
        last = rc == -ESTALE ? ino : 0;
        if (!mfs_backoff_wait(meta, &backoff))
            return -EBUSY;
    }
}

int mfs_meta_lookup(struct mfs_meta *meta, uint64_t parent, const char *name, struct mfs_attr *attr)
{
    size_t len = strlen(name);
    uint32_t part;
    int rc;

    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return lookup_dots(meta, parent, name, attr);
    if (len > MFS_NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (mfs_leases_name(meta, parent, name, attr) || known_dir(meta, parent, name, attr)) {
        count(meta, MFS_META_BY_LEASE);
        mfs_meta_cached(meta, MFS_CACHE_NAMES, true);
        return 0;
    }
    part = mfs_placement_entry(parent, name, len, meta->nparts);
    if (mfs_leases_absent(meta, parent, part, name)) {
        count(meta, MFS_META_BY_FILLING);
        mfs_meta_cached(meta, MFS_CACHE_ABSENT, true);
        return -ENOENT;
    }
    count(meta, MFS_META_BY_PARTITION);
    rc = ask_for(meta, parent, name, part, attr);
    if (rc == 0 || rc == -ENOENT)
        mfs_meta_cached(meta, rc == 0 ? MFS_CACHE_NAMES : MFS_CACHE_ABSENT, false);
    return rc;
}

bool mfs_meta_knows(struct mfs_meta *meta, uint64_t dir, const char *name)
{
    struct mfs_attr attr;

    return mfs_leases_name(meta, dir, name, &attr) ||
           mfs_leases_absent(meta, dir, mfs_placement_entry(dir, name, strlen(name), meta->nparts),
                             name);
}

/* --- many names at once --------------------------------------------------------------------- */

/* One of them. */
struct one {
    uint64_t dir;
    const char *name;
    struct question question;
    struct mfs_ino_arg ino; /* of an inode elsewhere, which is asked for in a second step */
    struct mfs_arg argv[3];
};

struct many {
    size_t n, elsewhere, content;
    int rc; /* the first error */
    unsigned char ailing[(MFS_PARTITIONS_MAX + 7) / 8];
    struct one of[MFS_META_LEARN];
    struct mfs_cmd cmds[MFS_META_LEARN];
    struct one *moved[MFS_META_LEARN]; /* the first `elsewhere`; their commands in homes */
    struct mfs_cmd homes[MFS_META_LEARN];
};

static void many_add(struct mfs_meta *meta, struct many *m, uint64_t dir, const char *name,
                     size_t len)
{
    uint32_t part = mfs_placement_entry(dir, name, len, meta->nparts);
    struct one *o = &m->of[m->n];

    if (mfs_bits_test(m->ailing, sizeof m->ailing, part))
        return;
    o->dir = dir;
    o->name = name;
    m->cmds[m->n++] = question_cmd(meta, &o->question, dir, name, len, part, m->content);
}

/* Its name is leased; so will be its attributes. */
static void many_add_home(struct many *m, struct one *o, uint64_t ino)
{
    if (mfs_bits_test(m->ailing, sizeof m->ailing, mfs_placement_home(ino)))
        return;
    o->ino = mfs_ino_arg(ino);
    o->argv[0] = (struct mfs_arg){"mfs_lease", strlen("mfs_lease")};
    o->argv[1] = (struct mfs_arg){o->ino.b, sizeof o->ino.b};
    o->argv[2] = o->question.argv[4];
    m->moved[m->elsewhere] = o;
    m->homes[m->elsewhere++] = (struct mfs_cmd){
        .part = mfs_placement_home(ino), .argv = o->argv, .argc = 3, .idempotent = true};
}

/* One round trip; what it leaves to the homes is added there. */
static void many_run(struct mfs_meta *meta, struct many *m, int64_t asked)
{
    struct mfs_attr attr;

    if (m->n)
        m->rc = mfs_store_exec(meta->store, m->cmds, m->n);
    for (size_t i = 0; i < m->n; i++) {
        struct mfs_bytes text = mfs_reply_bytes(m->cmds[i].reply);
        struct found f = {0};

        if (m->cmds[i].rc || take_answer(text, m->cmds[i].part, &f))
            continue;
        if (f.record.n)
            learn(meta, m->of[i].dir, m->of[i].name, &f, asked, &attr);
        else if (!f.record.p && f.leased && S_ISREG(f.entry.type))
            many_add_home(m, &m->of[i], f.entry.ino);
    }
    mfs_cmds_fini(m->cmds, m->n);
}

static void many_run_homes(struct mfs_meta *meta, struct many *m, int64_t asked)
{
    int64_t asked_home = mfs_clock_mono();
    int rc;

    if (!m->elsewhere)
        return;
    rc = mfs_store_exec(meta->store, m->homes, m->elsewhere);
    m->rc = m->rc ? m->rc : rc;
    for (size_t i = 0; i < m->elsewhere; i++) {
        struct mfs_bytes text = mfs_reply_bytes(m->homes[i].reply);
        uint64_t ino = mfs_get_be64(m->moved[i]->ino.b);
        struct mfs_attr attr;

        if (m->homes[i].rc || text.n < 1 || text.p[0] != 1 ||
            mfs_meta_take(meta, ino, (struct mfs_bytes){text.p + 1, text.n - 1}, asked_home, &attr))
            continue;
        mfs_filecache_compare(meta->files, &attr, asked_home);
        if (attr.nlink && S_ISREG(attr.mode))
            mfs_filecache_put(meta->files, m->moved[i]->dir, m->moved[i]->name, &attr, asked);
    }
    mfs_cmds_fini(m->homes, m->elsewhere);
}

/* NULL: what would be learned could not be remembered. */
static struct many *many_create(struct mfs_meta *meta, size_t content)
{
    struct many *m = meta->opts.revoked ? malloc(sizeof *m) : NULL;

    if (!m)
        return NULL;
    m->n = m->elsewhere = 0;
    m->content = content < meta->stripe_size ? content : meta->stripe_size;
    m->rc = 0;
    mfs_store_ailing(meta->store, m->ailing);
    return m;
}

static int many_end(struct mfs_meta *meta, struct many *m, int64_t asked)
{
    int rc;

    many_run(meta, m, asked);
    many_run_homes(meta, m, asked);
    rc = m->rc;
    free(m);
    return rc;
}

static bool knows_content(struct mfs_meta *meta, const struct mfs_attr *attr)
{
    char none;

    return attr->size == 0 || attr->size > MFS_META_CONTENT ||
           mfs_contents_get(meta->contents, attr->ino, attr->version, 0, 0, &none);
}

int mfs_meta_learn_names(struct mfs_meta *meta, const struct mfs_name *names, size_t n)
{
    struct many *m = many_create(meta, MFS_META_CONTENT);
    int64_t asked = mfs_clock_mono();
    struct mfs_attr attr;

    if (!m)
        return 0;
    for (size_t i = 0; i < n && i < MFS_META_LEARN; i++) {
        size_t len = names[i].name ? strlen(names[i].name) : 0;

        if (len > 0 && len <= MFS_NAME_LEN_MAX &&
            !(mfs_leases_name(meta, names[i].dir, names[i].name, &attr) &&
              knows_content(meta, &attr)))
            many_add(meta, m, names[i].dir, names[i].name, len);
    }
    return many_end(meta, m, asked);
}

int mfs_meta_learn(struct mfs_meta *meta, uint64_t dir, const struct mfs_listing *l,
                   const uint32_t *order, size_t from, size_t n)
{
    size_t end = from + (n < MFS_META_LEARN ? n : MFS_META_LEARN);
    struct many *m = many_create(meta, wanted(meta));
    int64_t asked = mfs_clock_mono();
    struct mfs_attr attr;

    if (!m)
        return 0;
    if (end > mfs_listing_count(l))
        end = mfs_listing_count(l);
    for (size_t i = from; i < end; i++) {
        struct mfs_dirent e = mfs_listing_at(l, order ? order[i] : i);

        if (e.type == S_IFREG && !mfs_leases_name(meta, dir, e.name, &attr))
            many_add(meta, m, dir, e.name, e.len);
    }
    return many_end(meta, m, asked);
}
