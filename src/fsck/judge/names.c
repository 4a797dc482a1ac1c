/* Names, inodes and directories, compared with each other. */
#include "fsck/judge/judge.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "cluster/placement.h"

enum { UNSEEN, ON_PATH, DONE }; /* marks of the walk for cycles */

/* --- entries: each is counted at its inode -------------------------------------------------------
 */

static int judge_entry(struct mfs_census *c, const struct mfs_seen_entry *e)
{
    struct mfs_seen_inode *inode = mfs_census_inode(c, e->ino), *dir = mfs_census_inode(c, e->dir);
    const char *name = mfs_census_name(c, e->name);
    struct mfs_found *f = NULL;

    if (e->intent) { /* one name or two, as its transaction is decided; so its directories */
        if (inode)
            inode->moving = true;
        if (dir)
            dir->moving = true;
        return 0;
    }
    if (!mfs_census_has(c, e->ino)) { /* only its directory is judged */
        if (S_ISDIR((mode_t)e->type << 12) && dir)
            dir->subdirs++;
        return 0;
    }
    if (e->misplaced) {
        f = mfs_findings_add(&c->found, MFS_FAULT_NAME_PLACE, e->part, e->ino, e->dir, 0, name,
                             e->len, "the name belongs into partition %u",
                             mfs_placement_entry(e->dir, name, e->len, c->nparts));
        if (!f)
            return -ENOMEM;
        f->a = e->type;
    }
    if (!inode) {
        f = mfs_findings_add(&c->found, MFS_FAULT_DANGLING, e->part, e->ino, e->dir, 0, name,
                             e->len, "the name's inode does not exist");
        if (f)
            f->a = e->type;
        return f ? 0 : -ENOMEM;
    }
    inode->names++;
    if (S_ISDIR(inode->mode) && dir)
        dir->subdirs++;
    if ((inode->mode >> 12) == e->type)
        return 0;
    f = mfs_findings_add(&c->found, MFS_FAULT_TYPE, e->part, e->ino, e->dir, 0, name, e->len,
                         "the name says type %o, the inode %o", (unsigned)e->type << 12,
                         inode->mode & S_IFMT);
    if (!f)
        return -ENOMEM;
    f->a = e->type;
    f->b = inode->mode >> 12;
    return 0;
}

/* --- inodes -------------------------------------------------------------------------------------
 */

static int add(struct mfs_census *c, enum mfs_fault fault, const struct mfs_seen_inode *i,
               uint64_t evidence, uint64_t right, const char *text, uint32_t is, uint32_t should)
{
    struct mfs_found *f = mfs_findings_add(&c->found, fault, mfs_placement_home(i->ino), i->ino, 0,
                                           i->digest ^ mfs_hash64(&evidence, sizeof evidence, 1),
                                           NULL, 0, text, is, should);

    if (!f)
        return -ENOMEM;
    f->a = right;
    return 0;
}

/* Whoever frees the last of what is open, or tells of it, has it in #orphans. */
static int judge_nameless(struct mfs_census *c, const struct mfs_seen_inode *i)
{
    bool orphan = mfs_census_orphan(c, i->ino);

    if ((i->nlink == 0 && orphan) || mfs_census_open(c, i->ino))
        return 0;
    return add(c, MFS_FAULT_NAMELESS, i, 0, 0, "no name leads to the inode (it counts %u links)",
               i->nlink, 0);
}

static int judge_file(struct mfs_census *c, const struct mfs_seen_inode *i)
{
    if (i->names == 0)
        return judge_nameless(c, i);
    if (i->nlink == i->names)
        return 0;
    return add(c, i->nlink > i->names ? MFS_FAULT_LINKS_MANY : MFS_FAULT_LINKS_FEW, i, i->names,
               i->names, "it counts %u links and has %u names", i->nlink, i->names);
}

/* Of the first name. */
static uint64_t named_in(const struct mfs_census *c, uint64_t ino)
{
    return mfs_census_entry(c, mfs_census_first_entry(c, ino))->dir;
}

static int judge_dir_links(struct mfs_census *c, const struct mfs_seen_inode *i)
{
    if (i->nlink == 2 + i->subdirs || i->nlink == 0)
        return 0;
    return add(c, MFS_FAULT_DIR_LINKS, i, i->subdirs, 2 + i->subdirs,
               "the directory counts %u links and should %u", i->nlink, 2 + i->subdirs);
}

static int judge_directory(struct mfs_census *c, const struct mfs_seen_inode *i)
{
    int rc = 0;

    if (i->ino == MFS_ROOT_INO)
        return judge_dir_links(c, i);
    if (i->names == 0)
        return judge_nameless(c, i);
    if (i->names > 1)
        rc = add(c, MFS_FAULT_TWO_NAMES, i, i->names, i->parent, "the directory has %u names",
                 i->names, 0);
    else if (i->parent != named_in(c, i->ino))
        rc = add(c, MFS_FAULT_PARENT, i, named_in(c, i->ino), named_in(c, i->ino),
                 "its parent is recorded as another directory than has its name", 0, 0);
    return rc ? rc : judge_dir_links(c, i);
}

static int judge_inodes(struct mfs_census *c)
{
    int rc = 0;

    if (mfs_census_has(c, MFS_ROOT_INO) && !mfs_census_inode(c, MFS_ROOT_INO) &&
        !mfs_findings_add(&c->found, MFS_FAULT_ROOT, 0, MFS_ROOT_INO, 0, 0, NULL, 0,
                          "the root directory does not exist"))
        return -ENOMEM;
    for (size_t n = 0; n < c->inodes.n && !rc; n++) {
        const struct mfs_seen_inode *i = mfs_flat_at(&c->inodes, n);

        if (i->moving)
            continue;
        rc = S_ISDIR(i->mode) ? judge_directory(c, i) : judge_file(c, i);
    }
    return rc;
}

/* --- cycles -------------------------------------------------------------------------------------
 */

/* The directory that has the (first) name; NULL: none, or the root. */
static struct mfs_seen_inode *above(const struct mfs_census *c, const struct mfs_seen_inode *i)
{
    return i->ino == MFS_ROOT_INO || i->names == 0 || i->moving
               ? NULL
               : mfs_census_inode(c, named_in(c, i->ino));
}

static int tell_cycle(struct mfs_census *c, struct mfs_seen_inode *from)
{
    const struct mfs_seen_inode *least = from, *i = from;
    unsigned length = 0;

    do {
        least = i->ino < least->ino ? i : least;
        i = above(c, i);
        length++;
    } while (i != from);
    return add(c, MFS_FAULT_CYCLE, least, length, named_in(c, least->ino),
               "the directory is in itself, %u levels below: no path leads there", length, 0);
}

static int climb(struct mfs_census *c, struct mfs_seen_inode *from)
{
    struct mfs_seen_inode *i = from;
    int rc = 0;

    for (; i && i->mark == UNSEEN; i = above(c, i))
        i->mark = ON_PATH;
    if (i && i->mark == ON_PATH)
        rc = tell_cycle(c, i);
    for (i = from; i && i->mark == ON_PATH; i = above(c, i))
        i->mark = DONE;
    return rc;
}

static int judge_cycles(struct mfs_census *c)
{
    int rc = 0;

    for (size_t n = 0; n < c->inodes.n && !rc; n++) {
        struct mfs_seen_inode *i = mfs_flat_at(&c->inodes, n);

        if (S_ISDIR(i->mode) && i->mark == UNSEEN)
            rc = climb(c, i);
    }
    return rc;
}

/* --- shards -------------------------------------------------------------------------------------
 */

static int add_shard(struct mfs_census *c, enum mfs_fault fault, const struct mfs_seen_shard *s,
                     uint64_t evidence, const char *text)
{
    struct mfs_found *f = mfs_findings_add(&c->found, fault, s->part, s->dir, 0, evidence, NULL, 0,
                                           "%s (partition %u)", text, s->part);

    if (!f)
        return -ENOMEM;
    memcpy(f->txn, s->seal, sizeof f->txn);
    f->a = s->names;
    return 0;
}

/* Of a directory that is being removed, or open, without a name. */
static int judge_dead_shard(struct mfs_census *c, const struct mfs_seen_shard *s, bool exists)
{
    if (s->tomb && !s->names)
        return s->expires ? 0
                          : add_shard(c, MFS_FAULT_SHARD, s, 1,
                                      "the tombstone of a directory has no time to live");
    if (!s->names && (exists || mfs_census_noted(c, s->seal)))
        return 0;
    return add_shard(c, MFS_FAULT_SHARD, s, s->names ? 2 : 3,
                     s->names ? "names in a directory that does not exist"
                              : "the seal of a directory that does not exist");
}

static int judge_shard(struct mfs_census *c, const struct mfs_seen_shard *s)
{
    const struct mfs_seen_inode *dir = mfs_census_inode(c, s->dir);
    const unsigned char *bits;
    int rc = 0;

    if (!dir || !S_ISDIR(dir->mode) || dir->nlink == 0)
        return judge_dead_shard(c, s, dir && S_ISDIR(dir->mode));
    bits = (const unsigned char *)mfs_census_name(c, dir->end);
    if (s->names && !mfs_bits_test(bits, dir->nbits, s->part))
        rc =
            add_shard(c, MFS_FAULT_BIT, s, 0, "the directory does not know that it has names here");
    if (!rc && s->tomb)
        rc = add_shard(c, MFS_FAULT_TOMB, s, 0,
                       "the directory exists, and its shard is a tombstone");
    else if (!rc && s->sealed && !mfs_census_noted(c, s->seal))
        rc = add_shard(c, MFS_FAULT_SEAL, s, mfs_hash64(s->seal, sizeof s->seal, 0),
                       "the directory was about to be removed, and is still sealed");
    if (!rc && s->expires && s->names)
        rc = add_shard(c, MFS_FAULT_TOMB, s, 1, "the directory's names will vanish by themselves");
    return rc;
}

static int judge_shards(struct mfs_census *c)
{
    int rc = 0;

    for (size_t i = 0; i < c->shards.n && !rc; i++) {
        const struct mfs_seen_shard *s = mfs_flat_at(&c->shards, i);

        if (mfs_census_has(c, s->dir))
            rc = judge_shard(c, s);
    }
    return rc;
}

int mfs_judge_names(struct mfs_census *c)
{
    int rc = 0;

    for (size_t i = 0; i < c->entries.n && !rc; i++)
        rc = judge_entry(c, mfs_census_entry(c, i));
    if (!rc)
        rc = judge_inodes(c);
    if (!rc)
        rc = judge_cycles(c);
    return rc ? rc : judge_shards(c);
}
