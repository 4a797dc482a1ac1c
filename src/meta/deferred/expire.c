/* Files of directories with the hint ttl, which have not changed for as long, lose their names
 * there: as by unlink(2), so whoever has one open goes on with it. A partition has such directories
 * in #ttl, and lets one client at a time look at each, once in an eighth of the time.
 *
 * What counts is the change of the inode (ctime), by the clock of the client that made it, against
 * that of the directory's partition: nobody can set it, so that a file which was copied with the
 * times of an old one is new. What a file is and when it changed is read first, and the name goes
 * only if that still holds; of an inode that is elsewhere than its name only the first is checked
 * again.
 *
 * Directories with the hint delete-after-reads are looked at in the same way, for what the client
 * that read a file last has not taken away (reads.c): it has died, knew no name, or not this one.
 */
#include "meta/deferred/deferred.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/log.h"
#include "meta/ops/ops.h"

#define AT_ONCE   128U    /* inodes that are asked for in one round trip */
#define LOOK_MOST MFS_SEC /* at the directories of a partition; the next look goes on */

/* Inodes of one directory's files, and what they say. */
struct records {
    size_t n;
    size_t at[AT_ONCE];                 /* in the listing */
    char what[AT_ONCE][MFS_READS_ITEM]; /* is asked for: a key, or an item of mfs_reads */
    struct mfs_arg argv[AT_ONCE][2];
    struct mfs_cmd cmds[AT_ONCE];
};

struct look {
    struct mfs_meta *meta;
    uint64_t dir;
    int64_t before; /* in seconds: what changed then has had its time */
    bool reads;     /* … or has been read as often as it is to be */
    const struct mfs_listing *listing;
    size_t removed;
    int64_t until; /* mono */
    bool whole;    /* it came to the end */
};

static_assert(MFS_KEY_INO_LEN <= MFS_READS_ITEM, "either fits");

static void add(struct records *r, const struct look *look, size_t at)
{
    uint64_t ino = mfs_listing_at(look->listing, at).ino;
    size_t i = r->n++;

    r->at[i] = at;
    if (look->reads) {
        mfs_reads_item(r->what[i], ino, 0, 0);
        r->argv[i][0] = (struct mfs_arg){"mfs_reads", strlen("mfs_reads")};
        r->argv[i][1] = (struct mfs_arg){r->what[i], MFS_READS_ITEM};
    } else {
        mfs_key_ino(r->what[i], 'I', ino);
        r->argv[i][0] = (struct mfs_arg){"GET", 3};
        r->argv[i][1] = (struct mfs_arg){r->what[i], MFS_KEY_INO_LEN};
    }
    r->cmds[i] = (struct mfs_cmd){
        .part = mfs_placement_home(ino), .argv = r->argv[i], .argc = 2, .idempotent = true};
}

/* Has it been as it is for so long, or been read so often? Then there is a record in the answer. */
static bool is_over(const struct look *look, uint64_t ino, const struct mfs_reply *answer,
                    struct mfs_attr *attr)
{
    struct mfs_bytes record = mfs_reply_bytes(look->reads ? mfs_reply_at(answer, 1) : answer);
    const char *tail;
    size_t n;

    return record.p && mfs_meta_record_decode(record.p, record.n, ino, attr, &tail, &n) == 0 &&
           S_ISREG(attr->mode) && attr->nlink > 0 && !(attr->hints & MFS_HINT_PIN) &&
           (look->reads || attr->ctime.tv_sec < look->before);
}

/* What removes a name sees whether the file has changed since only if its inode is in the same
 * partition; of others it is asked once more, so that what has changed while the names before it
 * went is seen. */
static bool is_still_over(const struct look *look, struct mfs_cmd *cmd, const struct mfs_dirent *e,
                          struct mfs_attr *attr)
{
    uint32_t part = mfs_placement_entry(look->dir, e->name, strlen(e->name), look->meta->nparts);

    if (cmd->rc != 0 || !is_over(look, e->ino, cmd->reply, attr))
        return false;
    if (part == cmd->part)
        return true;
    mfs_cmds_fini(cmd, 1);
    mfs_store_exec(look->meta->store, cmd, 1);
    return cmd->rc == 0 && is_over(look, e->ino, cmd->reply, attr);
}

static void remove_some(struct look *look, struct records *r)
{
    mfs_store_exec(look->meta->store, r->cmds, r->n);
    for (size_t i = 0; i < r->n; i++) {
        struct mfs_dirent e = mfs_listing_at(look->listing, r->at[i]);
        struct mfs_attr attr;

        if (is_still_over(look, &r->cmds[i], &e, &attr) &&
            mfs_meta_unlink_seen(look->meta, look->dir, e.name, &attr) == 0)
            look->removed++;
    }
    mfs_cmds_fini(r->cmds, r->n);
    r->n = 0;
}

/* From the name `first` on, and around: where there are too many for one look others are looked at
 * another time. */
static void look_through(struct look *look, size_t first)
{
    struct records *r = malloc(sizeof *r);
    size_t n = mfs_listing_count(look->listing), i = 0;

    if (!r)
        return;
    r->n = 0;
    for (; i < n && mfs_clock_mono() < look->until; i++) {
        size_t at = (first + i) % n;

        if (mfs_listing_at(look->listing, at).type == S_IFREG)
            add(r, look, at);
        if (r->n == AT_ONCE)
            remove_some(look, r);
    }
    if (r->n)
        remove_some(look, r);
    look->whole = i == n;
    free(r);
}

/* When names of a directory's files go: so many seconds after their last change, after so many
 * readings. 0: not so. */
struct ends {
    int64_t ttl, reads;
};

/* Both are 0 if this client is not to look now. `cut_off`: it did not come to the end, so the next
 * look is to be soon. */
static struct ends ask(struct mfs_meta *meta, uint64_t dir, int64_t now, bool cut_off)
{
    struct mfs_ino_arg key = mfs_ino_arg(dir);
    struct ends e = {0};
    struct mfs_call c;

    mfs_call_command(&c, "mfs_expire");
    mfs_args_bin(&c.args, key.b, sizeof key.b);
    mfs_args_int(&c.args, now);
    if (cut_off)
        mfs_args_str(&c.args, "1");
    if (!mfs_call_run(meta, &c, mfs_placement_home(dir)) && mfs_reply_count(c.cmd.reply) == 2) {
        e.ttl = mfs_reply_int(mfs_reply_at(c.cmd.reply, 0));
        e.reads = mfs_reply_int(mfs_reply_at(c.cmd.reply, 1));
    } else if (!c.cmd.rc) {
        e.ttl = mfs_reply_int(c.cmd.reply);
    }
    mfs_call_fini(&c);
    return e;
}

static void look_for_old(struct look look, int64_t ttl, int64_t now, bool alone)
{
    int64_t mono = mfs_clock_mono();

    if (!alone && mono < look.until)
        look.until = mono + (look.until - mono) / 2;
    look.before = now - ttl;
    look_through(&look, 0);
    if (look.removed > 0)
        mfs_info("meta",
                 "directory %" PRIx64 ": %zu files had not changed for %" PRId64 " s and are gone",
                 look.dir, look.removed, ttl);
    if (!look.whole)
        ask(look.meta, look.dir, now, true);
}

static void look_for_read(struct look look)
{
    size_t n = mfs_listing_count(look.listing);

    look.reads = true;
    look_through(&look, n ? (uint64_t)mfs_clock_mono() % n : 0);
    if (look.removed > 0)
        mfs_info("meta",
                 "directory %" PRIx64 ": %zu files had been read as often as they were to be, and "
                 "are gone",
                 look.dir, look.removed);
}

static void look_at(struct mfs_meta *meta, uint64_t dir, const struct ends *e, int64_t now,
                    int64_t until)
{
    struct look look = {.meta = meta, .dir = dir, .until = until};
    struct mfs_listing *listing;

    if (mfs_meta_list(meta, dir, &listing))
        return;
    look.listing = listing;
    if (e->ttl > 0)
        look_for_old(look, e->ttl, now, e->reads == 0);
    if (e->reads > 0)
        look_for_read(look);
    mfs_listing_free(listing);
}

void mfs_expire_look(struct mfs_meta *meta, uint32_t part, const struct mfs_reply *list,
                     int64_t now)
{
    int64_t until = mfs_clock_mono() + LOOK_MOST;

    for (size_t i = 0; i + 1 < mfs_reply_count(list) && mfs_clock_mono() < until; i += 2) {
        struct mfs_bytes ino = mfs_reply_bytes(mfs_reply_at(list, i));
        uint64_t dir = ino.n == 8 ? mfs_get_be64(ino.p) : 0;
        struct ends e = {0};

        if (dir && mfs_placement_home(dir) == part)
            e = ask(meta, dir, now, false);
        if (e.ttl > 0 || e.reads > 0)
            look_at(meta, dir, &e, now, until);
    }
}
