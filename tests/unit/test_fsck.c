/* memefs fsck finds every kind of damage, and nothing else; mends it; and leaves the rest as it
 * was. Damage is done by commands to the partitions, as no client would do it. ctest: timeout=200
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/placement.h"
#include "data/stripes.h"
#include "fsck/fsck.h"
#include "fsck/tidy.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT   MFS_ROOT_INO
#define NPARTS 4U
#define STRIPE 4096U
#define MANY   1500
#define NOBODY 0x7777777777777777ULL /* a session that never lived */

static struct redis_fixture *redis;
static struct meta_client a;
static char content[3 * STRIPE];

/* /d/{f,g,h,e/,x/y}, /b/z, /n: f and n have data, h is g, e is empty. */
static struct {
    uint64_t d, f, g, e, x, y, b, z, n;
} w;

/* --- the world ----------------------------------------------------------------------------------
 */

static void store(uint64_t ino, size_t len)
{
    struct mfs_range stored = {0, len};
    struct mfs_commit c = {.end = len, .stored = &stored, .nstored = 1, .mtime = mfs_clock_real()};
    struct mfs_attr attr;

    assert_int_equal(mfs_stripes_write(a.store, ino, 0, len, content, &c.alloc), 0);
    assert_int_equal(mfs_meta_commit(a.meta, ino, &c, NULL, &attr), 0);
}

static void check_content(uint64_t ino, size_t len)
{
    static char buf[sizeof content];

    memset(buf, 0, sizeof buf);
    assert_int_equal(mfs_stripes_read(a.store, ino, 0, len, buf), 0);
    assert_memory_equal(buf, content, len);
}

static void know_everywhere(uint64_t dir)
{
    for (uint32_t part = 0; part < NPARTS; part++)
        assert_int_equal(mfs_meta_spread(a.meta, dir, part), 0);
}

static void build(void)
{
    struct mfs_attr attr;

    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (char)('a' + i % 23);
    assert_int_equal(meta_client_mkdir(&a, ROOT, "d", &w.d), 0);
    assert_int_equal(meta_client_mkdir(&a, ROOT, "b", &w.b), 0);
    assert_int_equal(meta_client_file(&a, ROOT, "n", &w.n), 0);
    assert_int_equal(meta_client_file(&a, w.b, "z", &w.z), 0);
    assert_int_equal(meta_client_file(&a, w.d, "f", &w.f), 0);
    assert_int_equal(meta_client_file(&a, w.d, "g", &w.g), 0);
    assert_int_equal(meta_client_mkdir(&a, w.d, "e", &w.e), 0);
    assert_int_equal(meta_client_mkdir(&a, w.d, "x", &w.x), 0);
    assert_int_equal(meta_client_file(&a, w.x, "y", &w.y), 0);
    assert_int_equal(mfs_meta_link(a.meta, w.g, w.d, "h", &attr), 0);
    know_everywhere(ROOT);
    know_everywhere(w.d);
    store(w.n, 2 * STRIPE);
    store(w.f, 3 * STRIPE);
    mfs_parents_flush(a.meta);
    mfs_debts_flush(a.meta);
    assert_int_equal(mfs_store_drain(a.store, 5 * MFS_SEC), 0);
}

static int setup(void **state)
{
    (void)state;
    if (redis_fixture_reset(redis) || meta_client_start(&a, redis, 0))
        return -1;
    build();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    meta_client_stop(&a);
    return 0;
}

/* --- commands to partitions ---------------------------------------------------------------------
 */

#define TEXT(s)                                                                                    \
    {                                                                                              \
        s, strlen(s)                                                                               \
    }
#define BYTES(b)                                                                                   \
    {                                                                                              \
        b, sizeof(b)                                                                               \
    }
#define RAW(part, ...)                                                                             \
    raw(part, (const struct mfs_arg[]){__VA_ARGS__},                                               \
        sizeof((const struct mfs_arg[]){__VA_ARGS__}) / sizeof(struct mfs_arg))

static void raw(uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct mfs_cmd cmd = {.part = part, .argv = argv, .argc = argc};

    assert_int_equal(mfs_store_exec(a.store, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
}

/* Good until eight more are made. */
static char *slot(void)
{
    static char slots[8][64];
    static unsigned next;

    return slots[next++ % 8];
}

static struct mfs_arg key(char letter, uint64_t ino)
{
    char *p = slot();

    mfs_key_ino(p, letter, ino);
    return (struct mfs_arg){p, MFS_KEY_INO_LEN};
}

static struct mfs_arg stripe(uint64_t ino, uint32_t n)
{
    char *p = slot();

    mfs_key_stripe(p, ino, n);
    return (struct mfs_arg){p, MFS_KEY_STRIPE_LEN};
}

static struct mfs_arg number(uint64_t v)
{
    char *p = slot();

    mfs_put_be64(p, v);
    return (struct mfs_arg){p, 8};
}

static struct mfs_arg entry(uint64_t ino, uint32_t mode)
{
    char *p = slot();

    mfs_entry_encode(ino, mode, p);
    return (struct mfs_arg){p, MFS_ENTRY_LEN};
}

static struct mfs_arg text(const char *s)
{
    return (struct mfs_arg){s, strlen(s)};
}

static uint32_t place(uint64_t dir, const char *name)
{
    return mfs_placement_entry(dir, name, strlen(name), NPARTS);
}

static uint32_t home(uint64_t ino)
{
    return mfs_placement_home(ino);
}

static uint64_t nobody_at(uint32_t part)
{
    return (uint64_t)part << 48 | 999999;
}

static void set_entry(uint64_t dir, const char *name, uint64_t ino, uint32_t mode)
{
    RAW(place(dir, name), TEXT("HSET"), key('D', dir), text(name), entry(ino, mode));
}

static void drop_entry(uint64_t dir, const char *name)
{
    RAW(place(dir, name), TEXT("HDEL"), key('D', dir), text(name));
}

/* Bytes of a record. */
static void patch(uint64_t ino, const char *at, const void *bytes, size_t n)
{
    RAW(home(ino), TEXT("SETRANGE"), key('I', ino), text(at), {bytes, n});
}

static void set_nlink(uint64_t ino, uint32_t nlink)
{
    char b[4];

    mfs_put_le32(b, nlink);
    patch(ino, "16", b, sizeof b);
}

/* --- damage -------------------------------------------------------------------------------------
 */

static const char txn[MFS_TXN_LEN] = "0123456789abcde";

static void dangling(void)
{
    set_entry(w.d, "gone", nobody_at(1), S_IFREG);
}

static void wrong_type(void)
{
    set_entry(w.d, "f", w.f, S_IFIFO);
}

static void misplaced_name(void)
{
    drop_entry(w.d, "f");
    RAW((place(w.d, "f") + 1) % NPARTS, TEXT("HSET"), key('D', w.d), TEXT("f"),
        entry(w.f, S_IFREG));
}

static void missing_bit(void)
{
    static const char none[1];

    patch(w.b, "108", none, sizeof none);
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
    RAW(home(w.e), TEXT("HSET"), key('D', w.e), TEXT(""), TEXT("X"));
}

static void nameless_data(void)
{
    drop_entry(w.d, "f");
}

static void nameless_empty(void)
{
    drop_entry(w.b, "z");
}

static void nameless_full_directory(void)
{
    drop_entry(w.d, "x");
}

static void nameless_empty_directory(void)
{
    drop_entry(w.d, "e");
}

static void unlisted_orphan(void)
{
    drop_entry(w.d, "f");
    set_nlink(w.f, 0);
}

static void many_links(void)
{
    set_nlink(w.g, 5);
}

static void few_links(void)
{
    set_nlink(w.g, 1);
}

static void directory_links(void)
{
    set_nlink(w.d, 9);
}

static void wrong_parent(void)
{
    char b[8];

    mfs_put_be64(b, ROOT);
    patch(w.e, "92", b, sizeof b);
}

static void two_names(void)
{
    set_entry(ROOT, "e2", w.e, S_IFDIR);
}

static void cycle(void)
{
    uint64_t c;
    char b[8];

    assert_int_equal(meta_client_mkdir(&a, w.x, "c", &c), 0);
    know_everywhere(c);
    drop_entry(w.d, "x");
    set_entry(c, "x", w.x, S_IFDIR);
    mfs_put_be64(b, c);
    patch(w.x, "92", b, sizeof b);
    set_nlink(c, 3);
    set_nlink(w.d, 3);
}

static void set_stripe(uint64_t ino, uint32_t n, uint32_t part, size_t len)
{
    RAW(part, TEXT("SET"), stripe(ino, n), {content, len});
}

static void lost_stripes(void)
{
    for (uint32_t n = 0; n < 40; n += 13)
        set_stripe(nobody_at(1), n, mfs_placement_stripe(nobody_at(1), n, NPARTS), 10);
}

static void beyond_end(void)
{
    set_stripe(w.n, 7, mfs_placement_stripe(w.n, 7, NPARTS), 10);
}

static void long_stripe(void)
{
    RAW(mfs_placement_stripe(w.n, 1, NPARTS), TEXT("APPEND"), stripe(w.n, 1), TEXT("too much"));
}

static void misplaced_stripe_of_nobody(void)
{
    uint64_t ino = nobody_at(1);

    set_stripe(ino, 3, (mfs_placement_stripe(ino, 3, NPARTS) + 1) % NPARTS, 10);
}

static void misplaced_stripe(void)
{
    set_stripe(w.n, 1, (mfs_placement_stripe(w.n, 1, NPARTS) + 1) % NPARTS, 10);
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

static void the_dead(void)
{
    char field[17] = {'F'};

    mfs_put_be64(field + 1, NOBODY);
    RAW(home(w.g), TEXT("HSET"), key('O', w.g), number(NOBODY), TEXT("2"));
    RAW(home(w.g), TEXT("HSET"), key('L', w.g), BYTES(field), TEXT("?"));
    RAW(home(w.g), TEXT("SET"), key('P', w.g),
        TEXT("wwwwwwww"
             "1"));
}

static void for_ever(void)
{
    char outcome[17] = {'T'}, wait[17] = {'W'};

    RAW(home(w.g), TEXT("SET"), key('Y', w.g), number(NOBODY));
    RAW(1, TEXT("SET"), key('K', w.d), number(NOBODY));
    RAW(3, TEXT("SET"), BYTES(outcome), TEXT("A"));
    RAW(0, TEXT("SET"), BYTES(wait), TEXT("whom"));
    RAW(NOBODY % NPARTS, TEXT("SET"), key('Z', NOBODY), TEXT("1"));
}

static void stale_intent(void)
{
    char value[MFS_INTENT_LEN];

    mfs_entry_encode(w.f, S_IFREG, value);
    memcpy(value + MFS_ENTRY_LEN, txn, sizeof txn);
    mfs_put_be16(value + MFS_ENTRY_LEN + MFS_TXN_LEN, 2);
    RAW(place(w.d, "f"), TEXT("HSET"), key('D', w.d), TEXT("f"), BYTES(value));
}

static void stale_seal(void)
{
    char seal[MFS_SEAL_LEN];

    memcpy(seal, txn, sizeof txn);
    mfs_put_be16(seal + MFS_TXN_LEN, 2);
    RAW(home(w.e), TEXT("HSET"), key('D', w.e), TEXT(""), BYTES(seal));
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
    RAW(home(w.g), TEXT("SADD"), TEXT("#orphans"), number(w.g));
}

static void misplaced_inode(void)
{
    char record[MFS_RECORD_FIXED] = {MFS_RECORD_FORMAT};

    RAW((home(w.g) + 1) % NPARTS, TEXT("SET"), key('I', w.g), BYTES(record));
}

static void low_sequence(void)
{
    RAW(home(w.g), TEXT("SET"), TEXT("#seq"), TEXT("0"));
}

static void bad_keys(void)
{
    RAW(1, TEXT("SET"), TEXT("hello"), TEXT("world"));
    RAW(1, TEXT("SET"), key('I', nobody_at(1)), TEXT("short"));
    RAW(1, TEXT("SADD"), stripe(nobody_at(1), 0), TEXT("member"));
    RAW(1, TEXT("HSET"), key('D', w.d), TEXT("bad"), TEXT("no entry"));
    RAW(1, TEXT("HSET"), key('D', w.d), TEXT("a/b"), entry(w.g, S_IFREG));
}

/* --- what is there after mending ----------------------------------------------------------------
 */

static int64_t at(uint64_t dir, const char *name)
{
    return meta_client_ino(&a, dir, name);
}

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
    assert_int_equal(at(w.d, "f"), w.f);
}

static void f_is_found(void)
{
    struct mfs_attr attr;

    assert_int_equal(in_lost_found(w.f), w.f);
    assert_int_equal(mfs_meta_getattr(a.meta, w.f, &attr), 0);
    assert_int_equal(attr.nlink, 1);
    assert_int_equal(attr.size, 3 * STRIPE);
    assert_int_equal(mfs_meta_getattr(a.meta, (uint64_t)at(ROOT, "lost+found"), &attr), 0);
    assert_int_equal(attr.mode, S_IFDIR | 0700);
}

static void z_is_gone(void)
{
    struct mfs_attr attr;

    assert_int_equal(in_lost_found(w.z), -ENOENT);
    assert_int_equal(mfs_meta_getattr(a.meta, w.z, &attr), -ESTALE);
}

static void x_is_found(void)
{
    assert_int_equal(in_lost_found(w.x), w.x);
    assert_int_equal(at(w.x, "y"), w.y);
}

static void e_is_gone(void)
{
    struct mfs_attr attr;

    assert_int_equal(in_lost_found(w.e), -ENOENT);
    assert_int_equal(mfs_meta_getattr(a.meta, w.e, &attr), -ESTALE);
}

static void g_counts_two(void)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr(a.meta, w.g, &attr), 0);
    assert_int_equal(attr.nlink, 2);
}

static void e_is_in_d(void)
{
    struct mfs_attr attr;

    assert_int_equal(at(w.d, "e"), w.e);
    assert_int_equal(at(ROOT, "e2"), -ENOENT);
    assert_int_equal(mfs_meta_getattr(a.meta, w.e, &attr), 0);
    assert_int_equal(attr.parent, w.d);
}

static void e_takes_names(void)
{
    assert_int_equal(meta_client_file(&a, w.e, "new", NULL), 0);
}

static void y_is_somewhere(void)
{
    int64_t found = at(ROOT, "lost+found");
    struct mfs_listing *l;

    assert_true(found > 0);
    assert_int_equal(mfs_meta_list(a.meta, (uint64_t)found, &l), 0);
    assert_int_equal(mfs_listing_count(l), 3);
    mfs_listing_free(l);
    assert_int_equal(at(w.x, "y"), w.y);
}

static void new_numbers_are_new(void)
{
    char name[16];
    uint64_t ino;

    meta_name_at(&a, w.d, home(w.g), "new", name, sizeof name);
    assert_int_equal(meta_client_file(&a, w.d, name, &ino), 0);
    assert_true(ino > w.g);
}

static void beyond_is_void(void)
{
    struct mfs_ranges voids;
    struct mfs_attr attr;

    assert_int_equal(mfs_meta_getattr(a.meta, w.n, &attr), 0);
    assert_int_equal(attr.data_end, 7 * STRIPE + 10);
    assert_true(attr.flags & MFS_ATTR_VOIDS);
    mfs_ranges_init(&voids);
    assert_int_equal(mfs_meta_voids(a.meta, w.n, &voids), 0);
    assert_true(voids.n == 1 && mfs_ranges_covers(&voids, 2 * STRIPE, attr.data_end));
    mfs_ranges_fini(&voids);
}

static const struct damage {
    const char *name;
    void (*plant)(void);
    const char *found; /* kinds, sorted */
    size_t left;       /* that can't be mended */
    void (*mended)(void);
} damages[] = {
    {"dangling name", dangling, "dangling-name", 0, NULL},
    {"wrong type", wrong_type, "wrong-type", 0, f_is_back},
    {"misplaced name", misplaced_name, "misplaced-name", 0, f_is_back},
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
    {"dead sessions", the_dead, "dead-appender dead-lock dead-opener", 0, NULL},
    {"no expiry", for_ever, "no-expiry no-expiry no-expiry no-expiry no-expiry", 0, NULL},
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

/* --- tests --------------------------------------------------------------------------------------
 */

static struct mfs_fsck_report *fsck(bool mend)
{
    struct mfs_fsck_opts opts = {.mend = mend, .pause = MFS_MSEC};
    struct mfs_fsck_report *r = NULL;
    struct mfs_err err;

    if (mfs_fsck_run(a.store, &opts, &r, &err))
        fail_msg("%s", err.msg);
    return r;
}

static int by_kind(const void *x, const void *y)
{
    return strcmp(((const struct mfs_fsck_finding *)x)->kind,
                  ((const struct mfs_fsck_finding *)y)->kind);
}

static void print(const struct mfs_fsck_report *r)
{
    for (size_t i = 0; i < r->n; i++)
        print_message("  %s ino %llx part %u path %s: %s (%d %s)\n", r->findings[i].kind,
                      (unsigned long long)r->findings[i].ino, r->findings[i].part,
                      r->findings[i].path, r->findings[i].text, r->findings[i].state,
                      r->findings[i].why);
}

static void expect_kinds(const struct mfs_fsck_report *r, const char *kinds, const char *name)
{
    char have[1024] = "";
    size_t len = 0;

    if (r->n > 1)
        qsort(r->findings, r->n, sizeof *r->findings, by_kind);
    for (size_t i = 0; i < r->n; i++) {
        assert_int_equal(mfs_text_format(have + len, sizeof have - len, "%s%s", i ? " " : "",
                                         r->findings[i].kind),
                         0);
        len += strlen(have + len);
    }
    if (strcmp(have, kinds) == 0)
        return;
    print(r);
    fail_msg("%s: found \"%s\", not \"%s\"", name, have, kinds);
}

static void test_clean(void **state)
{
    struct mfs_fsck_report *r = fsck(false);
    struct mfs_attr attr;

    (void)state;
    expect_kinds(r, "", "nothing");
    assert_int_equal(r->passes, 1);
    assert_int_equal(r->inodes, 10);
    assert_int_equal(r->names, 10);
    assert_int_equal(r->stripes, 5);
    mfs_fsck_report_free(r);
    assert_int_equal(mfs_meta_open(a.meta, w.f, NULL, &attr, NULL), 0); /* by who lives */
    assert_int_equal(mfs_meta_unlink(a.meta, w.d, "f"), 0);
    r = fsck(true);
    expect_kinds(r, "", "an orphan");
    mfs_fsck_report_free(r);
    check_content(w.f, 3 * STRIPE);
    assert_int_equal(mfs_meta_close(a.meta, w.f, true), 0);
}

static void neighbours(void)
{
    struct mfs_attr attr;

    assert_int_equal(at(ROOT, "n"), w.n);
    assert_int_equal(mfs_meta_getattr(a.meta, w.n, &attr), 0);
    assert_int_equal(attr.size, 2 * STRIPE);
    assert_int_equal(attr.nlink, 1);
    check_content(w.n, 2 * STRIPE);
    check_content(w.f, 3 * STRIPE);
    assert_int_equal(mfs_meta_getattr(a.meta, w.y, &attr), 0);
}

static void do_damage(const struct damage *d)
{
    struct mfs_fsck_report *r;

    d->plant();
    for (int i = 0; i < 2; i++) { /* looking changes nothing */
        r = fsck(false);
        expect_kinds(r, d->found, d->name);
        assert_int_equal(r->left, r->n);
        mfs_fsck_report_free(r);
    }
    r = fsck(true);
    if (r->left != d->left) {
        print(r);
        fail_msg("%s: %zu left", d->name, r->left);
    }
    mfs_fsck_report_free(r);
    r = fsck(false);
    expect_kinds(r, d->left ? d->found : "", d->name);
    mfs_fsck_report_free(r);
    neighbours();
    if (d->mended)
        d->mended();
    r = fsck(false);
    expect_kinds(r, d->left ? d->found : "", d->name);
    mfs_fsck_report_free(r);
}

static void test_damage(void **state)
{
    const char *only = getenv("MFS_ONLY");

    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        if (only && strcmp(only, damages[i].name) != 0)
            continue;
        do_damage(&damages[i]);
        teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

/* What housekeeping's search ends, and what it leaves exactly as it is: all that a stopped client
 * may be about to do itself, and what is for people. */
static bool is_tidied(const char *found)
{
    static const char *const others[] = {"nameless",  "links-too", "dangling", "type",
                                         "misplaced", "missing",   "shard",    "tomb",
                                         "parent",    "names",     "cycle",    "too-long",
                                         "expiry",    "low",       "bad",      "no-root"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(found, others[i]))
            return false;
    return true;
}

/* In slices of the inodes, or all at once. */
static void tidy(const char *name, uint64_t memory)
{
    struct mfs_tidy_opts opts = {.memory = memory, .pause = MFS_MSEC, .interval = 3600 * MFS_SEC};
    struct mfs_tidy *t;
    const uint64_t dead = NOBODY + NPARTS;
    int rc = -EAGAIN;

    assert_int_equal(mfs_tidy_start(&t, a.store, a.meta, &opts), 0);
    RAW(dead % NPARTS, TEXT("SADD"), TEXT("#sessions"), number(dead));
    for (int i = 0; i < 3 && rc == -EAGAIN; i++)
        rc = mfs_tidy_once(t);
    if (rc != 1)
        fail_msg("%s: a search: %d", name, rc);
    assert_int_equal(mfs_tidy_once(t), 0); /* nobody is dead any more */
    mfs_tidy_stop(t);
}

static void test_tidy(void **state)
{
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const struct damage *d = &damages[i];
        bool tidied = is_tidied(d->found);
        struct mfs_fsck_report *r;

        if (!tidied && strstr(d->found, "directory-links"))
            continue; /* a part of it is */
        d->plant();
        tidy(d->name, i % 2 ? 2000 : 0);
        r = fsck(false);
        expect_kinds(r, tidied ? "" : d->found, d->name);
        mfs_fsck_report_free(r);
        if (tidied) /* a stripe that is too long can't be read */
            neighbours();
        if (tidied && d->mended)
            d->mended();
        teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

/* All at once: each is found, whatever else is wrong. */
static void test_together(void **state)
{
    static void (*const plants[])(void) = {dangling,   many_links, missing_bit, lost_stripes,
                                           beyond_end, lost_keys,  stale_seal,  nameless_data};
    struct mfs_fsck_report *r;

    (void)state;
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++)
        plants[i]();
    r = fsck(false);
    expect_kinds(
        r,
        "dangling-name links-too-many lost-key lost-key lost-key lost-key lost-key lost-stripes "
        "missing-bit nameless-inode stale-seal stripes-beyond-end",
        "together");
    mfs_fsck_report_free(r);
    r = fsck(true);
    assert_int_equal(r->left, 0);
    mfs_fsck_report_free(r);
    f_is_found();
    neighbours();
}

static void test_paths(void **state)
{
    struct mfs_fsck_report *r;

    (void)state;
    many_links();
    dangling();
    r = fsck(false);
    expect_kinds(r, "dangling-name links-too-many", "paths");
    assert_string_equal(r->findings[0].path, "/d/gone");
    assert_true(!strcmp(r->findings[1].path, "/d/g") || !strcmp(r->findings[1].path, "/d/h"));
    assert_int_equal(r->findings[1].ino, w.g);
    assert_int_equal(r->findings[1].part, home(w.g));
    assert_true(r->findings[1].leak);
    assert_false(r->findings[0].leak);
    mfs_fsck_report_free(r);
}

/* Shards that no answer holds as a whole. */
static void test_large_directory(void **state)
{
    struct mfs_fsck_report *r;
    char name[16];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "m%d", i);
        assert_int_equal(meta_client_file(&a, w.b, name, NULL), 0);
    }
    r = fsck(false);
    expect_kinds(r, "", "many names");
    assert_int_equal(r->names, 10 + MANY);
    mfs_fsck_report_free(r);
    set_entry(w.b, "m700", nobody_at(3), S_IFREG);
    r = fsck(true);
    assert_int_equal(r->left, 0);
    mfs_fsck_report_free(r);
    assert_int_equal(at(w.b, "m700"), -ENOENT);
    assert_int_equal(at(w.b, "m701") > 0, 1);
}

/* Of a partition whose data are lost nothing is mended: everything would look wrong. */
static void test_lost_partition(void **state)
{
    struct mfs_fsck_opts opts = {.mend = true, .pause = MFS_MSEC};
    struct mfs_fsck_report *r;
    struct mfs_err err;

    (void)state;
    RAW(2, TEXT("DEL"), TEXT("#super"));
    assert_int_equal(mfs_fsck_run(a.store, &opts, &r, &err), -EINVAL);
    assert_null(r);
    assert_non_null(strstr(err.msg, "partition 2"));
    neighbours();
}

/* A cursor is of one process. */
static void test_scan_of_another_process(void **state)
{
    static const char other[8] = "another";
    const struct mfs_arg argv[] = {TEXT("mfs_scan"), BYTES(other), TEXT("0"), TEXT("10")};
    const struct mfs_arg odd[] = {TEXT("mfs_scan"), TEXT(""), TEXT("x"), TEXT("10")};
    struct mfs_cmd cmd = {.argv = argv, .argc = 4};

    (void)state;
    assert_int_equal(mfs_store_exec(a.store, &cmd, 1), -ECANCELED);
    mfs_cmds_fini(&cmd, 1);
    cmd = (struct mfs_cmd){.argv = odd, .argc = 4};
    assert_int_equal(mfs_store_exec(a.store, &cmd, 1), -EINVAL);
    mfs_cmds_fini(&cmd, 1);
}

static int start_all(void **state)
{
    (void)state;
    mfs_log_set_level(MFS_LOG_ERROR);
    return redis_fixture_start(
        &redis, &(struct redis_fixture_opts){.nparts = NPARTS, .stripe_size = STRIPE});
}

static int stop_all(void **state)
{
    (void)state;
    redis_fixture_stop(redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clean, setup, teardown),
        cmocka_unit_test_setup_teardown(test_paths, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tidy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_partition, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scan_of_another_process, setup, teardown),
    };

    return cmocka_run_group_tests(tests, start_all, stop_all);
}
