#include "fsck_damage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "cluster/placement.h"
#include "fsck_world.h"
#include "meta/call.h"
#include "meta/internal.h"
#include "meta/txn/txn.h"

static char refused[16]; /* a name */
static const char txn[MFS_TXN_LEN] = "0123456789abcde";

static void dangling(void)
{
    set_entry(fsck_tree.d, "gone", nobody_at(1), S_IFREG);
}

static void wrong_type(void)
{
    set_entry(fsck_tree.d, "f", fsck_tree.f, S_IFIFO);
}

static void misplaced_name(void)
{
    drop_entry(fsck_tree.d, "f");
    RAW((place(fsck_tree.d, "f") + 1) % NPARTS, TEXT("HSET"), key('D', fsck_tree.d), TEXT("f"),
        entry(fsck_tree.f, S_IFREG));
}

/* Where it belongs, which is not where the directory is, nothing can be added for now. */
static void refused_name(void)
{
    uint32_t right = (home(fsck_tree.d) + 1) % NPARTS;
    uint64_t ino;

    meta_name_at(&fsck_client, fsck_tree.d, right, "r", refused, sizeof refused);
    assert_int_equal(meta_client_file(&fsck_client, fsck_tree.d, refused, &ino), 0);
    drop_entry(fsck_tree.d, refused);
    RAW((right + 1) % NPARTS, TEXT("HSET"), key('D', fsck_tree.d), text(refused),
        entry(ino, S_IFREG));
    RAW(right, TEXT("HSET"), key('D', fsck_tree.d), TEXT(""), TEXT("X"));
}

static void missing_bit(void)
{
    static const char none[1];

    patch(fsck_tree.b, "108", none, sizeof none);
}

static void lost_shard(void)
{
    set_entry(nobody_at(2), "q", nobody_at(3), S_IFREG);
}

static void lost_seal(void)
{
    RAW(1, TEXT("HSET"), key('D', nobody_at(2)), TEXT(""), {"0123456789abcdef\0\1", 18});
}

static void lost_tomb(void)
{
    RAW(1, TEXT("HSET"), key('D', nobody_at(2)), TEXT(""), TEXT("X"));
}

static void living_tomb(void)
{
    RAW(home(fsck_tree.e), TEXT("HSET"), key('D', fsck_tree.e), TEXT(""), TEXT("X"));
}

static void nameless_data(void)
{
    drop_entry(fsck_tree.d, "f");
}

static void nameless_empty(void)
{
    drop_entry(fsck_tree.b, "z");
}

static void nameless_full_directory(void)
{
    drop_entry(fsck_tree.d, "x");
}

static void nameless_empty_directory(void)
{
    drop_entry(fsck_tree.d, "e");
}

static void unlisted_orphan(void)
{
    drop_entry(fsck_tree.d, "f");
    set_nlink(fsck_tree.f, 0);
}

static void many_links(void)
{
    set_nlink(fsck_tree.g, 5);
}

static void few_links(void)
{
    set_nlink(fsck_tree.g, 1);
}

static void directory_links(void)
{
    set_nlink(fsck_tree.d, 9);
}

static void wrong_parent(void)
{
    char b[8];

    mfs_put_be64(b, ROOT);
    patch(fsck_tree.e, "92", b, sizeof b);
}

static void two_names(void)
{
    set_entry(ROOT, "e2", fsck_tree.e, S_IFDIR);
}

static void cycle(void)
{
    uint64_t c;
    char b[8];

    assert_int_equal(meta_client_mkdir(&fsck_client, fsck_tree.x, "c", &c), 0);
    fsck_know_everywhere(c);
    drop_entry(fsck_tree.d, "x");
    set_entry(c, "x", fsck_tree.x, S_IFDIR);
    mfs_put_be64(b, c);
    patch(fsck_tree.x, "92", b, sizeof b);
    set_nlink(c, 3);
    set_nlink(fsck_tree.d, 3);
}

static void set_stripe(uint64_t ino, uint32_t n, uint32_t part, size_t len)
{
    RAW(part, TEXT("SET"), stripe(ino, n), {fsck_content, len});
}

static void lost_stripes(void)
{
    for (uint32_t n = 0; n < 40; n += 13)
        set_stripe(nobody_at(1), n, mfs_placement_stripe(nobody_at(1), n, NPARTS), 10);
}

static void beyond_end(void)
{
    set_stripe(fsck_tree.n, 7, mfs_placement_stripe(fsck_tree.n, 7, NPARTS), 10);
}

static void long_stripe(void)
{
    RAW(mfs_placement_stripe(fsck_tree.n, 1, NPARTS), TEXT("APPEND"), stripe(fsck_tree.n, 1),
        TEXT("too much"));
}

static void misplaced_stripe_of_nobody(void)
{
    uint64_t ino = nobody_at(1);

    set_stripe(ino, 3, (mfs_placement_stripe(ino, 3, NPARTS) + 1) % NPARTS, 10);
}

static void misplaced_stripe(void)
{
    set_stripe(fsck_tree.n, 1, (mfs_placement_stripe(fsck_tree.n, 1, NPARTS) + 1) % NPARTS, 10);
}

static void lost_keys(void)
{
    uint64_t ino = nobody_at(2);
    char field[17] = {'P'};

    RAW(2, TEXT("HSET"), key('A', ino), TEXT("user.a"), TEXT("1"));
    RAW(2, TEXT("HSET"), key('O', ino), number(NOBODY), TEXT("1"));
    RAW(2, TEXT("HSET"), key('L', ino), BYTES(field), TEXT("?"));
    RAW(2, TEXT("SET"), key('P', ino),
        TEXT("12345678"
             "1"));
    RAW(2, TEXT("SET"), key('V', ino), TEXT("12345678abcdefgh"));
}

static uint64_t version_before;

static uint64_t version_of(uint64_t ino)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr(fsck_client.meta, ino, &attr), 0);
    return attr.version;
}

static void the_dead(void)
{
    char field[17] = {'F'};

    version_before = version_of(fsck_tree.g);
    mfs_put_be64(field + 1, NOBODY);
    RAW(home(fsck_tree.g), TEXT("HSET"), key('O', fsck_tree.g), number(NOBODY), TEXT("2"));
    RAW(home(fsck_tree.g), TEXT("HSET"), key('L', fsck_tree.g), BYTES(field), TEXT("?"));
    RAW(home(fsck_tree.g), TEXT("SET"), key('P', fsck_tree.g),
        TEXT("wwwwwwww"
             "1"));
}

/* Nobody goes on with pages of what the dead may have written over. */
static void version_is_raised(void)
{
    assert_true(version_of(fsck_tree.g) > version_before);
}

static void for_ever(void)
{
    char outcome[17] = {'T'}, wait[17] = {'W'};

    RAW(home(fsck_tree.g), TEXT("SET"), key('Y', fsck_tree.g), number(NOBODY));
    RAW(1, TEXT("SET"), key('K', fsck_tree.d), number(NOBODY));
    RAW(3, TEXT("SET"), BYTES(outcome), TEXT("A"));
    RAW(0, TEXT("SET"), BYTES(wait), TEXT("whom"));
    RAW(NOBODY % NPARTS, TEXT("SET"), key('Z', NOBODY), TEXT("1"));
}

/* That a transaction was aborted is known for longer than its client may be stopped. */
static void aborted_for_long(void)
{
    char outcome[17] = {'T'};
    struct mfs_call c;

    mfs_call_command(&c, "TTL");
    mfs_args_bin(&c.args, outcome, sizeof outcome);
    assert_int_equal(mfs_call_run(fsck_client.meta, &c, 3), 0);
    assert_true(mfs_reply_int(c.cmd.reply) > 20 * 3600);
    mfs_call_fini(&c);
}

static void stale_intent(void)
{
    char value[MFS_INTENT_LEN];

    mfs_entry_encode(fsck_tree.f, S_IFREG, value);
    memcpy(value + MFS_ENTRY_LEN, txn, sizeof txn);
    mfs_put_be16(value + MFS_ENTRY_LEN + MFS_TXN_LEN, 2);
    RAW(place(fsck_tree.d, "f"), TEXT("HSET"), key('D', fsck_tree.d), TEXT("f"), BYTES(value));
}

static void stale_seal(void)
{
    char seal[MFS_SEAL_LEN];

    memcpy(seal, txn, sizeof txn);
    mfs_put_be16(seal + MFS_TXN_LEN, 2);
    RAW(home(fsck_tree.e), TEXT("HSET"), key('D', fsck_tree.e), TEXT(""), BYTES(seal));
}

static struct mfs_arg txn_key(void)
{
    char *p = slot();

    p[0] = 'T';
    memcpy(p + 1, txn, sizeof txn);
    return (struct mfs_arg){p, 1 + sizeof txn};
}

static void stale_outcome(void)
{
    RAW(2, TEXT("SET"), txn_key(), {"C\0", 2});
}

static struct mfs_arg long_ago(void)
{
    return number((uint64_t)mfs_clock_real().tv_sec - 100);
}

static void stale_transaction(void)
{
    RAW(2, TEXT("HSET"), TEXT("#intents"), BYTES(txn), long_ago());
}

static void stale_move_lock(void)
{
    char lock[MFS_SEAL_LEN + 8];

    memcpy(lock, txn, sizeof txn);
    mfs_put_be16(lock + MFS_TXN_LEN, 1);
    memcpy(lock + MFS_SEAL_LEN, long_ago().p, 8);
    RAW(0, TEXT("SET"), TEXT("#moving"), BYTES(lock));
}

static void stale_reap(void)
{
    RAW(2, TEXT("HSET"), TEXT("#reap"), number(nobody_at(2)), number(0));
}

static void stale_orphans(void)
{
    RAW(2, TEXT("SADD"), TEXT("#orphans"), number(nobody_at(2)));
    RAW(home(fsck_tree.g), TEXT("SADD"), TEXT("#orphans"), number(fsck_tree.g));
}

static void misplaced_inode(void)
{
    char record[MFS_RECORD_FIXED] = {MFS_RECORD_FORMAT};

    RAW((home(fsck_tree.g) + 1) % NPARTS, TEXT("SET"), key('I', fsck_tree.g), BYTES(record));
}

static void low_sequence(void)
{
    RAW(home(fsck_tree.g), TEXT("SET"), TEXT("#seq"), TEXT("0"));
}

static void bad_keys(void)
{
    RAW(1, TEXT("SET"), TEXT("hello"), TEXT("world"));
    RAW(1, TEXT("SET"), key('I', nobody_at(1)), TEXT("short"));
    RAW(1, TEXT("SADD"), stripe(nobody_at(1), 0), TEXT("member"));
    RAW(1, TEXT("HSET"), key('D', fsck_tree.d), TEXT("bad"), TEXT("no entry"));
    RAW(1, TEXT("HSET"), key('D', fsck_tree.d), TEXT("a/b"), entry(fsck_tree.g, S_IFREG));
}

/* --- what is there after mending ----------------------------------------------------------------
 */

/* Where the inode is in /lost+found, or a negative errno. */
static int64_t in_lost_found(uint64_t ino)
{
    int64_t dir = at(ROOT, "lost+found");
    char name[32];

    snprintf(name, sizeof name, "#%llu", (unsigned long long)ino);
    return dir < 0 ? dir : at((uint64_t)dir, name);
}

static void f_is_back(void)
{
    assert_int_equal(at(fsck_tree.d, "f"), fsck_tree.f);
}

static void refused_is_there(void)
{
    assert_true(at(fsck_tree.d, refused) > 0);
}

static void f_is_found(void)
{
    struct mfs_attr attr;

    assert_int_equal(in_lost_found(fsck_tree.f), fsck_tree.f);
    assert_int_equal(mfs_meta_getattr(fsck_client.meta, fsck_tree.f, &attr), 0);
    assert_int_equal(attr.nlink, 1);
    assert_int_equal(attr.size, 3 * STRIPE);
    assert_int_equal(mfs_meta_getattr(fsck_client.meta, (uint64_t)at(ROOT, "lost+found"), &attr),
                     0);
    assert_int_equal(attr.mode, S_IFDIR | 0700);
}

static void z_is_gone(void)
{
    struct mfs_attr attr;

    assert_int_equal(in_lost_found(fsck_tree.z), -ENOENT);
    assert_int_equal(mfs_meta_getattr(fsck_client.meta, fsck_tree.z, &attr), -ESTALE);
}

static void x_is_found(void)
{
    assert_int_equal(in_lost_found(fsck_tree.x), fsck_tree.x);
    assert_int_equal(at(fsck_tree.x, "y"), fsck_tree.y);
}

static void e_is_gone(void)
{
    struct mfs_attr attr;

    assert_int_equal(in_lost_found(fsck_tree.e), -ENOENT);
    assert_int_equal(mfs_meta_getattr(fsck_client.meta, fsck_tree.e, &attr), -ESTALE);
}

static void g_counts_two(void)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr(fsck_client.meta, fsck_tree.g, &attr), 0);
    assert_int_equal(attr.nlink, 2);
}

static void e_is_in_d(void)
{
    struct mfs_attr attr;

    assert_int_equal(at(fsck_tree.d, "e"), fsck_tree.e);
    assert_int_equal(at(ROOT, "e2"), -ENOENT);
    assert_int_equal(mfs_meta_getattr(fsck_client.meta, fsck_tree.e, &attr), 0);
    assert_int_equal(attr.parent, fsck_tree.d);
}

static void e_takes_names(void)
{
    assert_int_equal(meta_client_file(&fsck_client, fsck_tree.e, "new", NULL), 0);
}

static void y_is_somewhere(void)
{
    int64_t found = at(ROOT, "lost+found");
    struct mfs_listing *l;

    assert_true(found > 0);
    assert_int_equal(mfs_meta_list(fsck_client.meta, (uint64_t)found, &l), 0);
    assert_int_equal(mfs_listing_count(l), 3);
    mfs_listing_free(l);
    assert_int_equal(at(fsck_tree.x, "y"), fsck_tree.y);
}

static void new_numbers_are_new(void)
{
    char name[16];
    uint64_t ino;

    meta_name_at(&fsck_client, fsck_tree.d, home(fsck_tree.g), "new", name, sizeof name);
    assert_int_equal(meta_client_file(&fsck_client, fsck_tree.d, name, &ino), 0);
    assert_true(ino > fsck_tree.g);
}

static void beyond_is_void(void)
{
    struct mfs_ranges voids;
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr(fsck_client.meta, fsck_tree.n, &attr), 0);
    assert_int_equal(attr.data_end, 7 * STRIPE + 10);
    assert_true(attr.flags & MFS_ATTR_VOIDS);
    mfs_ranges_init(&voids);
    assert_int_equal(mfs_meta_voids(fsck_client.meta, fsck_tree.n, &voids), 0);
    assert_true(voids.n == 1 && mfs_ranges_covers(&voids, 2 * STRIPE, attr.data_end));
    mfs_ranges_fini(&voids);
}

const struct fsck_damage fsck_damages[] = {
    {"dangling name", dangling, "dangling-name", 0, NULL},
    {"wrong type", wrong_type, "wrong-type", 0, f_is_back},
    {"misplaced name", misplaced_name, "misplaced-name", 0, f_is_back},
    {"refused name", refused_name, "misplaced-name tomb-of-the-living", 0, refused_is_there},
    {"missing bit", missing_bit, "missing-bit", 0, NULL},
    {"lost shard", lost_shard, "dangling-name lost-shard", 0, NULL},
    {"lost seal", lost_seal, "lost-shard", 0, NULL},
    {"tombstone for ever", lost_tomb, "lost-shard", 0, NULL},
    {"tombstone of the living", living_tomb, "tomb-of-the-living", 0, e_takes_names},
    {"nameless, with data", nameless_data, "nameless-inode", 0, f_is_found},
    {"nameless, empty", nameless_empty, "nameless-inode", 0, z_is_gone},
    {"nameless directory", nameless_full_directory, "directory-links nameless-inode", 0,
     x_is_found},
    {"nameless empty directory", nameless_empty_directory, "directory-links nameless-inode", 0,
     e_is_gone},
    {"orphan not listed", unlisted_orphan, "nameless-inode", 0, f_is_found},
    {"too many links", many_links, "links-too-many", 0, g_counts_two},
    {"too few links", few_links, "links-too-few", 0, g_counts_two},
    {"directory's links", directory_links, "directory-links", 0, NULL},
    {"wrong parent", wrong_parent, "wrong-parent", 0, e_is_in_d},
    {"two names", two_names, "directory-links two-names", 0, e_is_in_d},
    {"cycle", cycle, "cycle", 0, y_is_somewhere},
    {"lost stripes", lost_stripes, "lost-stripes", 0, NULL},
    {"stripes beyond the end", beyond_end, "stripes-beyond-end", 0, beyond_is_void},
    {"long stripe", long_stripe, "stripe-too-long", 0, NULL},
    {"misplaced stripe of nobody", misplaced_stripe_of_nobody, "misplaced-stripe", 0, NULL},
    {"misplaced stripe", misplaced_stripe, "misplaced-stripe", 1, NULL},
    {"lost keys", lost_keys, "lost-key lost-key lost-key lost-key lost-key", 0, NULL},
    {"dead sessions", the_dead, "dead-appender dead-lock dead-opener", 0, version_is_raised},
    {"no expiry", for_ever, "no-expiry no-expiry no-expiry no-expiry no-expiry", 0,
     aborted_for_long},
    {"stale intent", stale_intent, "stale-intent", 0, f_is_back},
    {"stale seal", stale_seal, "stale-seal", 0, e_takes_names},
    {"stale outcome", stale_outcome, "stale-outcome", 0, NULL},
    {"stale transaction", stale_transaction, "stale-transaction", 0, NULL},
    {"stale lock on moves", stale_move_lock, "stale-move-lock", 0, NULL},
    {"stale reap", stale_reap, "stale-reap", 0, NULL},
    {"stale orphans", stale_orphans, "stale-orphan stale-orphan", 0, g_counts_two},
    {"misplaced inode", misplaced_inode, "misplaced-inode", 1, NULL},
    {"low sequence", low_sequence, "low-sequence", 0, new_numbers_are_new},
    {"bad keys", bad_keys, "bad-key bad-key bad-key bad-key bad-key", 5, NULL},
};

const size_t fsck_ndamages = sizeof fsck_damages / sizeof *fsck_damages;

const struct fsck_damage *fsck_damage_named(const char *name)
{
    for (size_t i = 0; i < fsck_ndamages; i++)
        if (!strcmp(fsck_damages[i].name, name))
            return &fsck_damages[i];
    fail_msg("there is no damage \"%s\"", name);
    return NULL;
}
