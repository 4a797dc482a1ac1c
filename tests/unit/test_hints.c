/* Hints: their texts, what directories hand on, and where files are made because of them: two
 * clients of one store, without a mount. ctest: threaded timeout=60 waits */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "base/ino.h"
#include "cluster/table.h"
#include "meta/hints.h"
#include "meta/meta.h"
#include "partition/protocol.h"
#include "vfs_test.h"

#define PLACE    MFS_XATTR_PLACE
#define TTL      MFS_XATTR_TTL
#define READS    MFS_XATTR_READS
#define PIN      MFS_XATTR_PIN
#define REPLICAS MFS_XATTR_REPLICAS
#define SIZE     MFS_XATTR_STRIPE
#define NPARTS   3 /* of the fixture; here partition p is at node p */

/* The value as the attribute `name` shows it, once it has been set on a directory that has `had`.
 */
static int parsed(const char *name, const char *value, size_t len, uint32_t had, char *text)
{
    struct mfs_attr attr = {.mode = S_IFDIR | 0755, .hints = had};
    const struct mfs_hint_kind *kind = mfs_hint_kind(name);
    int rc;

    assert_non_null(kind);
    rc = mfs_hint_parse(kind, value, len, &attr);
    if (rc == 0) {
        assert_int_equal((attr.hints ^ had) & ~mfs_set_bits(kind->set), 0);
        mfs_hint_show(kind, &attr, text);
    } else {
        assert_int_equal(attr.hints, had);
        assert_int_equal(attr.ttl, 0);
    }
    return rc;
}

struct texts {
    const char *name;
    const char *right[6], *wrong[20];
};

/* Whatever the other hints are. */
static void texts(void **state)
{
    static const struct texts all[] = {
        {PLACE,
         {"local", "spread", "node:node-0", "node:node-65535"},
         {"Local", "local ", "node", "node:", "node:x", "node:-1", "node:node-", "node: 1",
          "spread\n", "node:65536", "node:node-1x", "node:1 ", "nodes:one", "local,spread",
          "node:0x1"}},
        {TTL, {"1", "4294967295"}, {"0", "-1", "+1", "1.5", "1 ", "0x1", "4294967296", "1s"}},
        {READS, {"1", "2", "255"}, {"0", "-1", "+1", "1.5", "1 ", "0x1", "256", "two"}},
        {REPLICAS, {"0"}, {"2", "-1", "00", "0 ", "no"}},
        {PIN, {"1"}, {"0", "2", "-1", "01", "1 ", "yes"}},
        {SIZE,
         {"124K", "252K", "508K", "1020K", "4092K"},
         {"0", "-1", "1", "123K", "126975", "K", "1020 K", "1M ", "1Q", "0x40000", "large"}},
    };
    static const char *const sizes[][2] = {{"128K", "124K"},  {"126976", "124K"}, {"251k", "124K"},
                                           {"1M", "1020K"},   {"1MiB", "1020K"},  {"1.5M", "1020K"},
                                           {"2M", "2044K"},   {"4M", "4092K"},    {"8M", "8188K"},
                                           {"100G", "8188K"}, {"0.25M", "252K"}};
    char text[MFS_HINT_TEXT_MAX], longer[200];

    (void)state;
    memset(longer, '1', sizeof longer);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (uint64_t had = 0; had <= UINT32_MAX; had += UINT32_MAX) {
            const char *name = all[k].name, *const *right = all[k].right;

            for (size_t i = 0; right[i]; i++) {
                assert_int_equal(parsed(name, right[i], strlen(right[i]), (uint32_t)had, text), 0);
                assert_string_equal(text, right[i]);
                assert_int_equal(parsed(name, right[i], strlen(right[i]) + 1, (uint32_t)had, text),
                                 -EINVAL); /* with its NUL */
            }
            for (size_t i = 0; all[k].wrong[i]; i++)
                assert_int_equal(
                    parsed(name, all[k].wrong[i], strlen(all[k].wrong[i]), (uint32_t)had, text),
                    -EINVAL);
            assert_int_equal(parsed(name, longer, sizeof longer, (uint32_t)had, text), -EINVAL);
            assert_int_equal(parsed(name, NULL, 0, (uint32_t)had, text), -EINVAL);
        }
    assert_int_equal(parsed(REPLICAS, "1", 1, UINT32_MAX, text), 0);
    assert_string_equal(text, "");
    assert_int_equal(parsed(PLACE, "node:7", 6, 0, text), 0);
    assert_string_equal(text, "node:node-7");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(parsed(SIZE, sizes[i][0], strlen(sizes[i][0]), 0, text), 0);
        assert_string_equal(text, sizes[i][1]);
    }
}

/* Each hint has bits of its own. */
static void bits(void **state)
{
    const struct mfs_hint_kind *kind;
    struct mfs_attr attr = {.mode = S_IFDIR | 0755, .hints = UINT32_MAX, .ttl = 5};
    uint32_t seen = 0;
    char text[MFS_HINT_TEXT_MAX];

    (void)state;
    for (size_t i = 0; (kind = mfs_hint_kind_at(i)); i++) {
        assert_int_equal(seen & mfs_set_bits(kind->set), 0);
        assert_int_equal(kind->set & ~MFS_SET_HINTS, 0);
        assert_true(mfs_set_bits(kind->set) || kind->set == MFS_SET_TTL);
        seen |= mfs_set_bits(kind->set);
        assert_true(mfs_hint_is_listed(kind, &attr));
        attr.mode = S_IFREG | 0644; /* there, what could not be set for a copy is not listed */
        mfs_hint_show(kind, &attr, text);
        assert_int_equal(mfs_hint_is_listed(kind, &attr), !kind->fixed);
        assert_int_equal(text[0] == '\0', kind->set == MFS_SET_TTL);
        attr.mode = S_IFCHR | 0644; /* a number of a device */
        mfs_hint_show(kind, &attr, text);
        assert_string_equal(text, "");
        attr.mode = S_IFDIR | 0755;
    }
}

static void names(void **state)
{
    (void)state;
    assert_false(mfs_hint_name_is_kept("user.place"));
    assert_false(mfs_hint_name_is_kept("user.memefs"));
    assert_true(mfs_hint_name_is_kept("user.memefs."));
    assert_true(mfs_hint_name_is_kept("user.memefs.places"));
    assert_string_equal(mfs_hint_kind(PLACE)->name, PLACE);
    assert_null(mfs_hint_kind("user.memefs.places"));
    assert_null(mfs_hint_kind("user.memefs."));
    assert_null(mfs_hint_kind("user.place"));
}

static void apart(struct client *c)
{
    struct mfs_table *t = redis_fixture_table(vfs_redis);

    assert_non_null(t);
    for (uint32_t p = 0; p < t->nparts; p++)
        t->part[p].node = p;
    t->epoch++;
    assert_int_equal(mfs_store_set_table(c->store, t), 0);
}

static int setup_apart(void **state)
{
    int rc = setup(state);

    apart(&a);
    apart(&b);
    return rc;
}

static uint64_t new_dir(uint64_t parent, const char *name)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_vfs_mknod(a.vfs, parent, name, S_IFDIR | 0755, 0, &root, &attr), 0);
    return attr.ino;
}

static int set(struct client *c, uint64_t ino, const char *value, int flags)
{
    return mfs_vfs_setxattr(c->vfs, ino, PLACE, value, strlen(value), flags, &root);
}

static void has_place(struct client *c, uint64_t ino, const char *value)
{
    char text[64] = "";
    ssize_t n = mfs_vfs_getxattr(c->vfs, ino, PLACE, text, sizeof text);

    if (value == NULL) {
        assert_int_equal(n, -ENODATA);
        return;
    }
    assert_int_equal(n, strlen(value));
    assert_memory_equal(text, value, strlen(value));
    assert_int_equal(mfs_vfs_getxattr(c->vfs, ino, PLACE, NULL, 0), n);
    assert_int_equal(mfs_vfs_getxattr(c->vfs, ino, PLACE, text, (size_t)n - 1), -ERANGE);
}

static void of_directories(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d"), sub;
    char list[64];

    (void)state;
    has_place(&a, dir, NULL);
    assert_int_equal(mfs_vfs_listxattr(a.vfs, dir, false, list, sizeof list), 0);
    assert_int_equal(set(&a, dir, "nowhere", 0), -EINVAL);
    assert_int_equal(set(&a, dir, "node:3", 0), -EINVAL); /* there is none */
    assert_int_equal(set(&a, dir, "local", XATTR_REPLACE), -ENODATA);
    assert_int_equal(mfs_vfs_removexattr(a.vfs, dir, PLACE, NULL), -ENODATA);
    has_place(&b, dir, NULL);

    assert_int_equal(set(&a, dir, "node:2", XATTR_CREATE), 0);
    has_place(&b, dir, "node:node-2");
    assert_int_equal(set(&b, dir, "local", XATTR_CREATE), -EEXIST);
    assert_int_equal(set(&b, dir, "spread", XATTR_REPLACE), 0);
    has_place(&a, dir, "spread");
    assert_int_equal(mfs_vfs_listxattr(b.vfs, dir, false, list, sizeof list), sizeof PLACE);
    assert_string_equal(list, PLACE);
    assert_int_equal(mfs_vfs_listxattr(b.vfs, dir, true, list, sizeof PLACE - 1), -ERANGE);
    assert_int_equal(mfs_vfs_setxattr(a.vfs, dir, "user.x", "1", 1, 0, &root), 0);
    assert_int_equal(mfs_vfs_listxattr(b.vfs, dir, false, NULL, 0), sizeof PLACE + 7);

    sub = new_dir(dir, "sub");
    has_place(&b, sub, "spread");
    assert_int_equal(mfs_vfs_removexattr(b.vfs, dir, PLACE, NULL), 0);
    has_place(&a, dir, NULL);
    has_place(&a, sub, "spread");
    assert_int_equal(mfs_vfs_listxattr(a.vfs, dir, false, list, sizeof list), 7);
    has_place(&a, new_dir(dir, "next"), NULL);

    assert_int_equal(mfs_vfs_setxattr(a.vfs, dir, "user.memefs.x", "5", 1, 0, &root), -EINVAL);
}

static int set_replicas(struct client *c, uint64_t ino, const char *value, int flags)
{
    return mfs_vfs_setxattr(c->vfs, ino, REPLICAS, value, strlen(value), flags, &root);
}

static void has_replicas(struct client *c, uint64_t ino, const char *value)
{
    char text[16] = "";
    ssize_t n = mfs_vfs_getxattr(c->vfs, ino, REPLICAS, text, sizeof text - 1);

    assert_int_equal(n, value ? (ssize_t)strlen(value) : -ENODATA);
    if (value)
        assert_string_equal(text, value);
}

/* As cm says of a deployment with --replicas 1. */
static void replicated(struct client *c)
{
    struct mfs_table *t = redis_fixture_table(vfs_redis);

    assert_non_null(t);
    t->epoch += 2;
    t->replicated = true;
    assert_int_equal(mfs_store_set_table(c->store, t), 0);
}

static uint64_t new_file(struct client *c, uint64_t dir, const char *name)
{
    struct mfs_attr attr;

    assert_int_equal(mfs_vfs_mknod(c->vfs, dir, name, S_IFREG | 0600, 0, &root, &attr), 0);
    return attr.ino;
}

/* A file's number says it, and for ever. */
static void without_replicas(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d"), sub, file, plain;

    (void)state;
    assert_int_equal(set_replicas(&a, dir, "1", 0), -EINVAL);
    replicated(&a);
    replicated(&b);
    assert_int_equal(set_replicas(&a, dir, "1", 0), 0);
    has_replicas(&b, dir, NULL);
    plain = new_file(&a, dir, "plain");
    assert_int_equal(set_replicas(&a, dir, "0", XATTR_CREATE), 0);
    assert_int_equal(set_replicas(&b, dir, "0", XATTR_CREATE), -EEXIST);
    has_replicas(&b, dir, "0");
    sub = new_dir(dir, "sub");
    file = new_file(&b, sub, "file");
    assert_int_equal(sub & MFS_INO_ALONE, 0);
    assert_int_equal(plain & MFS_INO_ALONE, 0);
    assert_int_equal(file & MFS_INO_ALONE, MFS_INO_ALONE);
    has_replicas(&a, file, "0");
    assert_int_equal(set_replicas(&b, sub, "1", 0), 0);
    has_replicas(&a, sub, NULL);
    assert_int_equal(new_file(&a, sub, "other") & MFS_INO_ALONE, 0);
    assert_int_equal(set_replicas(&a, file, "0", 0), 0);
    assert_int_equal(set_replicas(&a, file, "1", 0), -EOPNOTSUPP);
    assert_int_equal(set_replicas(&a, plain, "1", 0), 0);
    assert_int_equal(set_replicas(&a, plain, "0", 0), -EOPNOTSUPP);
    assert_int_equal(mfs_vfs_removexattr(a.vfs, file, REPLICAS, NULL), -EOPNOTSUPP);
    assert_int_equal(mfs_vfs_removexattr(a.vfs, dir, REPLICAS, NULL), 0);
    has_replicas(&b, dir, NULL);
}

static int set_ttl(struct client *c, uint64_t dir, const char *value, int flags)
{
    return mfs_vfs_setxattr(c->vfs, dir, TTL, value, strlen(value), flags, &root);
}

/* What goes must be what was looked at, and as it was then. */
static void only_what_was_seen(void **state)
{
    struct mfs_meta *meta = mfs_vfs_meta(a.vfs);
    uint64_t dir = new_dir(MFS_ROOT_INO, "d");
    struct mfs_attr seen, other;

    (void)state;
    new_file(&b, dir, "f");
    assert_int_equal(mfs_vfs_lookup(a.vfs, dir, "f", &seen), 0);
    other = seen;
    other.ino++;
    assert_int_equal(mfs_meta_unlink_seen(meta, dir, "f", &other), -ENOENT);
    other = seen;
    other.mode = 0644;
    assert_int_equal(mfs_vfs_setattr(b.vfs, seen.ino, MFS_SET_MODE, &other, NULL), 0);
    assert_int_equal(mfs_meta_unlink_seen(meta, dir, "f", &seen), -ENOENT);
    assert_int_equal(mfs_vfs_lookup(a.vfs, dir, "f", &seen), 0);
    assert_int_equal(mfs_meta_unlink_seen(meta, dir, "f", &seen), 0);
    assert_int_equal(mfs_vfs_lookup(b.vfs, dir, "f", &seen), -ENOENT);
    assert_int_equal(mfs_meta_unlink_seen(meta, dir, "f", &seen), -ENOENT);
}

static void files_whose_time_is_over(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d"), sub, ino, kept;
    struct mfs_attr attr;
    char value[16], list[64];

    (void)state;
    assert_int_equal(set_ttl(&a, dir, "0", 0), -EINVAL);
    assert_int_equal(set_ttl(&a, dir, "1", XATTR_REPLACE), -ENODATA);
    assert_int_equal(set_ttl(&a, dir, "1", XATTR_CREATE), 0);
    assert_int_equal(set_ttl(&b, dir, "1", XATTR_CREATE), -EEXIST);
    assert_int_equal(mfs_vfs_getxattr(b.vfs, dir, TTL, value, sizeof value), 1);
    assert_int_equal(value[0], '1');
    assert_int_equal(mfs_vfs_listxattr(b.vfs, dir, false, list, sizeof list), sizeof TTL);
    sub = new_dir(dir, "sub");
    assert_int_equal(mfs_vfs_getxattr(b.vfs, sub, TTL, NULL, 0), 1);
    ino = new_file(&a, sub, "f");
    assert_int_equal(mfs_vfs_getxattr(b.vfs, ino, TTL, NULL, 0), -ENODATA);
    assert_int_equal(set_ttl(&b, ino, "5", 0), -EOPNOTSUPP);
    kept = new_file(&a, MFS_ROOT_INO, "kept");
    assert_true(gone_in_time(&b, ino)); /* by housekeeping of one of the two */
    assert_int_equal(mfs_vfs_lookup(a.vfs, sub, "f", &attr), -ENOENT);
    assert_int_equal(mfs_vfs_lookup(a.vfs, dir, "sub", &attr), 0);
    assert_int_equal(mfs_vfs_getattr(a.vfs, kept, &attr), 0);
    assert_int_equal(mfs_vfs_removexattr(b.vfs, sub, TTL, NULL), 0);
    assert_int_equal(mfs_vfs_getxattr(a.vfs, sub, TTL, NULL, 0), -ENODATA);
    assert_int_equal(mfs_vfs_removexattr(b.vfs, sub, TTL, NULL), -ENODATA);
    assert_int_equal(mfs_vfs_rmdir(a.vfs, dir, "sub"), 0);
}

/* As programs' clients are: they know names, under leases. */
static void leased(struct client *c)
{
    struct mfs_store_opts opts = {.node = REDIS_FIXTURE_NODE};

    assert_int_equal(mfs_store_create(&c->store, redis_fixture_table(vfs_redis), &opts), 0);
    assert_int_equal(mfs_vfs_create(&c->vfs, c->store, &(struct mfs_vfs_opts){.leases = true}), 0);
    mfs_vfs_on_invalidate(c->vfs, drop, c);
}

static int setup_leased(void **state)
{
    (void)state;
    assert_int_equal(redis_fixture_reset(vfs_redis), 0);
    leased(&a);
    leased(&b);
    return 0;
}

static int set_reads(struct client *c, uint64_t ino, const char *value, int flags)
{
    return mfs_vfs_setxattr(c->vfs, ino, READS, value, strlen(value), flags, &root);
}

static void has_reads(struct client *c, uint64_t ino, const char *value)
{
    char text[16] = "";
    ssize_t n = mfs_vfs_getxattr(c->vfs, ino, READS, text, sizeof text - 1);

    assert_int_equal(n, value ? (ssize_t)strlen(value) : -ENODATA);
    if (value)
        assert_string_equal(text, value);
}

/* One hint does not change another. */
static void together(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d"), sub;
    char list[128];

    (void)state;
    assert_int_equal(set_reads(&a, dir, "256", 0), -EINVAL);
    assert_int_equal(set_reads(&a, dir, "3", XATTR_REPLACE), -ENODATA);
    assert_int_equal(set_reads(&a, dir, "255", XATTR_CREATE), 0);
    assert_int_equal(set_reads(&b, dir, "3", XATTR_CREATE), -EEXIST);
    assert_int_equal(set(&b, dir, "node:2", XATTR_CREATE), 0);
    assert_int_equal(set_ttl(&a, dir, "1000", 0), 0);
    sub = new_dir(dir, "sub");
    has_reads(&b, sub, "255");
    has_place(&b, sub, "node:node-2");
    assert_int_equal(mfs_vfs_getxattr(b.vfs, sub, TTL, NULL, 0), 4);
    assert_int_equal(mfs_vfs_listxattr(b.vfs, sub, false, list, sizeof list),
                     sizeof PLACE + sizeof TTL + sizeof READS);
    assert_int_equal(set(&b, sub, "spread", 0), 0);
    has_reads(&a, sub, "255");
    assert_int_equal(set_reads(&a, sub, "7", XATTR_REPLACE), 0);
    has_place(&b, sub, "spread");
    assert_int_equal(mfs_vfs_removexattr(b.vfs, sub, PLACE, NULL), 0);
    has_reads(&a, sub, "7");
    assert_int_equal(mfs_vfs_removexattr(a.vfs, dir, READS, NULL), 0);
    has_reads(&b, dir, NULL);
    has_place(&b, dir, "node:node-2");
    assert_int_equal(mfs_vfs_removexattr(a.vfs, dir, READS, NULL), -ENODATA);
}

static uint64_t written(struct client *c, uint64_t dir, const char *name)
{
    struct mfs_attr attr;
    struct mfs_file *f;
    bool keep;

    assert_int_equal(mfs_vfs_create_open(c->vfs, dir, name, 0600, O_RDWR, &root, &attr, &f, &keep),
                     0);
    put(f, "content", 0);
    close_file(f);
    return attr.ino;
}

static void read_once(struct client *c, uint64_t dir, const char *name)
{
    struct mfs_attr attr;
    struct mfs_file *f;

    assert_int_equal(mfs_vfs_lookup(c->vfs, dir, name, &attr), 0);
    f = open_file(c, attr.ino, O_RDONLY);
    expect(f, "content", 0);
    close_file(f);
}

/* All that clients have to tell is told. */
static void told(void)
{
    mfs_clock_sleep(500 * MFS_MSEC);
}

static bool is_there(struct client *c, uint64_t dir, const char *name)
{
    struct mfs_attr attr;
    int rc = mfs_vfs_lookup(c->vfs, dir, name, &attr);

    assert_true(rc == 0 || rc == -ENOENT);
    return rc == 0;
}

static void expect_removed(struct client *c, uint64_t dir, const char *name)
{
    for (int i = 0; i < 200 && is_there(c, dir, name); i++)
        mfs_clock_sleep(50 * MFS_MSEC);
    assert_false(is_there(c, dir, name));
}

static void files_that_were_read(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d"), ino;
    struct mfs_file *held;
    struct mfs_attr attr;

    (void)state;
    ino = written(&a, dir, "before");
    assert_int_equal(set_reads(&a, dir, "2", 0), 0);
    has_reads(&b, ino, NULL);
    assert_int_equal(set_reads(&b, ino, "2", 0), -EOPNOTSUPP);
    ino = written(&a, dir, "f");
    has_reads(&b, ino, "2");
    assert_int_equal(set_reads(&b, ino, "2", 0), 0); /* as it is */
    assert_int_equal(mfs_vfs_removexattr(b.vfs, ino, READS, NULL), -EOPNOTSUPP);

    close_file(open_file(&a, ino, O_RDWR)); /* none of these counts */
    close_file(open_file(&b, ino, O_WRONLY));
    close_file(open_file(&b, ino, O_RDWR));
    read_once(&a, dir, "f");
    told();
    assert_true(is_there(&b, dir, "f"));
    held = open_file(&b, ino, O_RDONLY);
    told();
    read_once(&b, dir, "f");
    expect_removed(&a, dir, "f");
    expect_removed(&b, dir, "f");
    expect(held, "content", 0);
    close_file(held);
    assert_true(gone_in_time(&a, ino));

    for (int i = 0; i < 3; i++)
        read_once(&a, dir, "before");
    told();
    assert_true(is_there(&b, dir, "before"));
    assert_int_equal(mfs_vfs_lookup(b.vfs, dir, "before", &attr), 0);
}

/* What has been read is what was there; what comes after it has all its readings left. */
static int set_pin(struct client *c, uint64_t ino, const char *value, int flags)
{
    return mfs_vfs_setxattr(c->vfs, ino, PIN, value, strlen(value), flags, &root);
}

/* Whether they were made so, or pinned later; no other hint takes them away, until they are free.
 */
static void pinned_files_stay(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d"), sub = new_dir(dir, "sub"), made, later;
    char list[64];

    (void)state;
    assert_int_equal(set_pin(&a, sub, "0", 0), -EINVAL);
    assert_int_equal(set_pin(&a, sub, "1", XATTR_CREATE), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(set_ttl(&a, i ? sub : dir, "2", 0), 0);
        assert_int_equal(set_reads(&a, i ? sub : dir, "1", 0), 0);
    }
    later = written(&a, dir, "later");
    assert_int_equal(set_pin(&b, later, "1", XATTR_REPLACE), -ENODATA);
    assert_int_equal(set_pin(&b, later, "1", XATTR_CREATE), 0);
    assert_int_equal(set_pin(&a, later, "1", XATTR_CREATE), -EEXIST);
    assert_int_equal(set_pin(&a, later, "1", 0), 0);
    assert_int_equal(mfs_vfs_listxattr(a.vfs, later, false, list, sizeof list), sizeof PIN);
    made = written(&a, sub, "made");
    assert_int_equal(mfs_vfs_getxattr(b.vfs, made, PIN, list, sizeof list), 1);
    written(&a, dir, "read");
    written(&a, dir, "old");
    read_once(&b, dir, "later");
    read_once(&b, sub, "made");
    read_once(&b, dir, "read");
    expect_removed(&a, dir, "read");
    expect_removed(&a, dir, "old");
    mfs_clock_sleep(6 * MFS_SEC); /* each directory is looked at each 4 s */
    assert_true(is_there(&a, dir, "later") && is_there(&b, sub, "made"));
    assert_int_equal(mfs_vfs_removexattr(b.vfs, made, PIN, NULL), 0);
    assert_int_equal(mfs_vfs_removexattr(b.vfs, made, PIN, NULL), -ENODATA);
    expect_removed(&a, sub, "made");
    assert_true(is_there(&a, dir, "later"));
}

static void content_that_changes(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d"), ino;
    struct mfs_file *old, *f;

    (void)state;
    assert_int_equal(set_reads(&a, dir, "2", 0), 0);
    ino = written(&a, dir, "f");
    read_once(&b, dir, "f");
    old = open_file(&b, ino, O_RDONLY);
    told();
    f = open_file(&a, ino, O_WRONLY | O_TRUNC);
    put(f, "content", 0);
    close_file(f);
    close_file(old); /* of what is no more */
    read_once(&b, dir, "f");
    told();
    assert_true(is_there(&a, dir, "f"));
    read_once(&a, dir, "f");
    expect_removed(&b, dir, "f");
    ino = new_file(&a, dir, "empty");
    for (int i = 0; i < 3; i++)
        close_file(open_file(&b, ino, O_RDONLY));
    told();
    assert_true(is_there(&a, dir, "empty"));
}

static bool is_telling(const struct mfs_arg *word)
{
    return word->len == strlen("mfs_reads") && !memcmp(word->p, "mfs_reads", word->len);
}

/* A call that fails is not sent again: it may have been executed. */
static int lose_call(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)part;
    (void)argc;
    if (!is_telling(&argv[0]))
        return 0;
    atomic_fetch_add((atomic_uint *)arg, 1);
    return -EIO;
}

static void calls_that_are_lost(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d");
    atomic_uint lost = 0;

    (void)state;
    assert_int_equal(set_reads(&a, dir, "1", 0), 0);
    written(&a, dir, "f");
    mfs_store_set_fault(b.store, lose_call, &lost);
    read_once(&b, dir, "f");
    for (int i = 0; i < 200 && atomic_load(&lost) == 0; i++)
        mfs_clock_sleep(50 * MFS_MSEC);
    told();
    mfs_store_set_fault(b.store, NULL, NULL);
    told();
    assert_int_equal(atomic_load(&lost), 1);
    assert_true(is_there(&a, dir, "f"));
    read_once(&b, dir, "f");
    expect_removed(&a, dir, "f");
}

/* As by a table that says that a replica has taken over each partition; its process stays here. */
static void take_over(struct client *c, uint32_t times)
{
    struct mfs_table *t = redis_fixture_table(vfs_redis);

    assert_non_null(t);
    t->epoch += times;
    t->failovers = times;
    t->replicated = true;
    for (uint32_t p = 0; p < t->nparts; p++) {
        t->part[p].era = times;
        t->part[p].node = 100 + times;
    }
    assert_int_equal(mfs_store_set_table(c->store, t), 0);
    mfs_store_set_contact(c->store, mfs_clock_mono() + 600 * MFS_SEC, NULL, 0);
}

static int take_over_then(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    atomic_uint *left = arg;

    (void)part;
    (void)argc;
    if (!is_telling(&argv[0]) || !atomic_exchange(left, 0))
        return 0;
    take_over(&b, 2);
    return 0;
}

/* The versions that it gives may be those of other content: until the very moment in which its
 * partition is told, and that of its opening. */
static void replicas_that_take_over(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d"), ino;
    struct mfs_meta *meta = mfs_vfs_meta(b.vfs);
    atomic_uint left = 1;
    struct mfs_attr attr;
    struct mfs_file *f;
    uint64_t mark;

    (void)state;
    assert_int_equal(set_reads(&a, dir, "1", 0), 0);
    ino = written(&a, dir, "f");
    written(&a, dir, "g");
    mark = mfs_meta_read_mark(meta);
    assert_int_equal(mfs_vfs_lookup(b.vfs, dir, "f", &attr), 0);
    f = open_file(&b, ino, O_RDONLY);
    take_over(&b, 1);
    close_file(f);
    assert_null(mfs_meta_read_begin(meta, mark, &attr, dir, "f"));
    told();
    assert_true(is_there(&a, dir, "f"));

    mfs_store_set_fault(b.store, take_over_then, &left);
    read_once(&b, dir, "g");
    for (int i = 0; i < 200 && atomic_load(&left) > 0; i++)
        mfs_clock_sleep(50 * MFS_MSEC);
    assert_int_equal(atomic_load(&left), 0);
    told();
    mfs_store_set_fault(b.store, NULL, NULL);
    assert_true(is_there(&a, dir, "g"));

    read_once(&b, dir, "f");
    read_once(&b, dir, "g");
    expect_removed(&a, dir, "f");
    expect_removed(&a, dir, "g");
}

#define MANY_READ 400 /* more than one command tells of */

/* In all partitions. */
static void many_at_once(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d");
    char name[16];

    (void)state;
    assert_int_equal(set_reads(&a, dir, "1", 0), 0);
    for (int i = 0; i < MANY_READ; i++) {
        snprintf(name, sizeof name, "f%d", i);
        written(&a, dir, name);
    }
    for (int i = 0; i < MANY_READ; i++) {
        snprintf(name, sizeof name, "f%d", i);
        read_once(&b, dir, name);
    }
    for (int i = 0; i < MANY_READ; i++) {
        snprintf(name, sizeof name, "f%d", i);
        expect_removed(&a, dir, name);
    }
}

static atomic_bool held_up;

static int hold_up(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)part;
    (void)argc;
    if (is_telling(&argv[0]) && mfs_get_be32((const char *)argv[1].p + 16) > 0 &&
        atomic_exchange((atomic_bool *)arg, false))
        while (atomic_load(&held_up))
            mfs_clock_sleep(10 * MFS_MSEC);
    return 0;
}

static uint32_t counted(uint64_t ino)
{
    char key[8], value[MFS_READS_LEN];
    const struct mfs_arg argv[] = {{"HGET", 4}, {"#reads", 6}, {key, sizeof key}};
    struct mfs_cmd cmd = {.part = mfs_placement_home(ino),
                          .argc = 3,
                          .argv = argv,
                          .into = value,
                          .into_cap = sizeof value};
    uint32_t n;

    mfs_put_be64(key, ino);
    assert_int_equal(mfs_store_exec(a.store, &cmd, 1), 0);
    n = cmd.into_len == sizeof value ? mfs_get_be32(value + 8) : 0;
    mfs_cmds_fini(&cmd, 1);
    return n;
}

#define WAITING_MOST 262144U

/* While a partition does not answer readings wait, but not without end: what is more is not
 * counted. */
static void readings_that_wait(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d"), ino;
    struct mfs_meta *meta = mfs_vfs_meta(b.vfs);
    atomic_bool first = true;
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(set_reads(&a, dir, "255", 0), 0);
    ino = written(&a, dir, "f");
    assert_int_equal(mfs_vfs_lookup(b.vfs, dir, "f", &attr), 0);
    atomic_store(&held_up, true);
    mfs_store_set_fault(b.store, hold_up, &first);
    read_once(&b, dir, "f");
    for (int i = 0; i < 200 && atomic_load(&first); i++)
        mfs_clock_sleep(50 * MFS_MSEC);
    assert_false(atomic_load(&first));
    for (uint32_t i = 0; i < WAITING_MOST + 100; i++) /* of a name that is not known */
        mfs_meta_read_end(meta, mfs_meta_read_begin(meta, mfs_meta_read_mark(meta), &attr, 0, ""));
    assert_int_equal(counted(ino), 0);
    atomic_store(&held_up, false);
    for (int i = 0; i < 600 && counted(ino) < WAITING_MOST + 1; i++)
        mfs_clock_sleep(50 * MFS_MSEC);
    told();
    assert_int_equal(counted(ino), WAITING_MOST + 1);
    mfs_store_set_fault(b.store, NULL, NULL);
    assert_true(is_there(&a, dir, "f"));
}

/* A file keeps its hint, but its names only go where the directory has one. */
static void names_elsewhere(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d"), other = new_dir(MFS_ROOT_INO, "e"), ino;

    (void)state;
    assert_int_equal(set_reads(&a, dir, "1", 0), 0);
    ino = written(&a, dir, "f");
    assert_int_equal(mfs_vfs_rename(a.vfs, dir, "f", other, "f", 0, &root), 0);
    read_once(&b, other, "f");
    read_once(&a, other, "f");
    told();
    assert_true(is_there(&b, other, "f"));
    has_reads(&a, ino, "1");
    assert_int_equal(set_reads(&a, other, "9", 0), 0);
    read_once(&b, other, "f");
    expect_removed(&a, other, "f");
}

/* All of it is in one partition, and what is there is what was written. */
static void expect_together(struct client *reader, const struct mfs_attr *attr, uint32_t part)
{
    struct mfs_file *f;
    bool keep;

    assert_int_equal(mfs_placement_home(attr->ino), part);
    for (uint32_t n = 0; n < 10; n++)
        assert_int_equal(mfs_placement_stripe(attr->ino, n, NPARTS), part);
    assert_int_equal(mfs_vfs_open(reader->vfs, attr->ino, O_RDONLY, &f, &keep), 0);
    vfs_expect_all(f, 0, 5 * STRIPE, 'x', "the other client");
    mfs_vfs_release(f);
}

static void write_some(struct mfs_file *f)
{
    char *buf = malloc(5 * STRIPE);

    assert_non_null(buf);
    memset(buf, 'x', 5 * STRIPE);
    assert_int_equal(mfs_vfs_write(f, buf, 5 * STRIPE, 0, 0, 0), 5 * STRIPE);
    free(buf);
    assert_int_equal(mfs_vfs_flush(f, 0), 0);
    mfs_vfs_release(f);
}

/* Inodes in that partition, ever. */
static long long made(uint32_t part)
{
    const struct mfs_arg argv[] = {{"GET", 3}, {"#seq", 4}};
    char text[24] = "";
    struct mfs_cmd cmd = {
        .part = part, .argc = 2, .argv = argv, .into = text, .into_cap = sizeof text - 1};

    assert_int_equal(mfs_store_exec(a.store, &cmd, 1), 0);
    assert_true(cmd.into_len > 0);
    mfs_cmds_fini(&cmd, 1);
    return strtoll(text, NULL, 10);
}

/* Names are in all partitions, files in that of the node. */
static void of_files(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d");
    long long inodes;
    struct mfs_attr attr, seen;
    struct mfs_file *f;
    bool keep;

    (void)state;
    assert_int_equal(set(&a, dir, "node:node-1", 0), 0);
    for (int i = 0; i < 12; i++) {
        char name[16];

        snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(mfs_vfs_create_open(a.vfs, dir, name, 0640, O_RDWR | (i & 1 ? O_EXCL : 0),
                                             &root, &attr, &f, &keep),
                         0);
        write_some(f);
        expect_together(&b, &attr, 1);
        inodes = made(1);
        has_place(&b, attr.ino, "node:node-1");
        assert_int_equal(mfs_vfs_listxattr(b.vfs, attr.ino, true, NULL, 0), 0);
        assert_int_equal(mfs_vfs_lookup(b.vfs, dir, name, &seen), 0);
        assert_int_equal(seen.ino, attr.ino);
        assert_int_equal(seen.nlink, 1);
        assert_int_equal(seen.mode, S_IFREG | 0640);
        assert_int_equal(
            mfs_vfs_create_open(b.vfs, dir, name, 0640, O_RDWR | O_EXCL, &root, &seen, &f, &keep),
            -EEXIST);
        assert_int_equal(
            mfs_vfs_create_open(b.vfs, dir, name, 0640, O_RDWR, &root, &seen, &f, &keep), 0);
        assert_int_equal(seen.ino, attr.ino);
        mfs_vfs_release(f);
        assert_int_equal(made(1), inodes); /* none in vain */
        assert_int_equal(mfs_vfs_unlink(b.vfs, dir, name), 0);
        assert_true(gone_in_time(&a, attr.ino));
    }
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir, "n", S_IFREG | 0600, 0, &root, &attr), 0);
    assert_int_equal(mfs_placement_home(attr.ino), 1);
    assert_int_equal(attr.nlink, 1);
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir, "n", S_IFREG | 0600, 0, &root, &seen), -EEXIST);
    assert_int_equal(set(&b, attr.ino, "node:1", 0), 0); /* as it is */
    assert_int_equal(set(&b, attr.ino, "spread", 0), -EOPNOTSUPP);
    assert_int_equal(mfs_vfs_removexattr(b.vfs, attr.ino, PLACE, NULL), -EOPNOTSUPP);
    assert_int_equal(mfs_vfs_tmpfile(a.vfs, dir, NULL, 0600, O_RDWR, &root, &attr, &f, &keep), 0);
    write_some(f);
    assert_int_equal(mfs_placement_home(attr.ino), 1);

    /* what stays of a name is neither here nor there */
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir, "p", S_IFIFO | 0600, 0, &root, &attr), 0);
    assert_int_equal(attr.rdev, 0);
    assert_int_equal(set(&b, new_file(&b, MFS_ROOT_INO, "bare"), "local", XATTR_REPLACE), -ENODATA);
    assert_int_equal(mfs_vfs_mknod(b.vfs, dir, "c", S_IFCHR | 0600, 0x103, &root, &attr), 0);
    assert_int_equal(attr.rdev, 0x103);
}

static int no_memory(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    (void)part;
    (void)argc;
    if (argv[0].len != strlen("mfs_tmpfile") || memcmp(argv[0].p, "mfs_tmpfile", argv[0].len) != 0)
        return 0;
    ++*(unsigned *)arg;
    return -ENOSPC;
}

/* The file is made as without a hint where the node has no memory. */
static void full_nodes(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d");
    unsigned refused = 0, elsewhere = 0;
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(set(&a, dir, "node:1", 0), 0);
    mfs_store_set_fault(a.store, no_memory, &refused);
    for (int i = 0; i < 8; i++) {
        char name[8];
        uint32_t part;

        snprintf(name, sizeof name, "f%d", i);
        part = mfs_placement_entry(dir, name, strlen(name), NPARTS);
        assert_int_equal(mfs_vfs_mknod(a.vfs, dir, name, S_IFREG | 0600, 0, &root, &attr), 0);
        assert_int_equal(mfs_placement_home(attr.ino), part);
        assert_int_equal(!!(attr.ino & MFS_INO_TOGETHER), part == 1);
        assert_int_equal(attr.nlink, 1);
        elsewhere += part != 1;
    }
    mfs_store_set_fault(a.store, NULL, NULL);
    assert_true(elsewhere > 0);
    assert_int_equal(refused, elsewhere);
}

/* A node that has no partition any more, and a client that is at none. */
static void nodes_that_are_gone(void **state)
{
    uint64_t dir = new_dir(MFS_ROOT_INO, "d");
    struct mfs_table *t = redis_fixture_table(vfs_redis);
    struct mfs_attr attr;

    (void)state;
    assert_int_equal(set(&a, dir, "node:2", 0), 0);
    assert_non_null(t);
    for (uint32_t p = 0; p < t->nparts; p++)
        t->part[p].node = p % 2;
    t->epoch += 2;
    assert_int_equal(mfs_store_set_table(a.store, t), 0);
    assert_int_equal(mfs_vfs_mknod(a.vfs, dir, "f", S_IFREG | 0600, 0, &root, &attr), 0);
    assert_int_equal(mfs_placement_home(attr.ino), mfs_placement_entry(dir, "f", 1, NPARTS));
    assert_false(attr.ino & MFS_INO_TOGETHER);
    has_place(&b, attr.ino, "node:node-2");
    assert_int_equal(set(&a, attr.ino, "node:2", 0), 0); /* as it is */
    assert_int_equal(set(&a, dir, "node:2", 0), -EINVAL);
    has_place(&b, dir, "node:node-2");
    assert_int_equal(set(&a, dir, "local", 0), 0);
    assert_int_equal(mfs_vfs_mknod(a.vfs, dir, "g", S_IFREG | 0600, 0, &root, &attr), 0);
    assert_int_equal(!!(attr.ino & MFS_INO_TOGETHER), mfs_store_node(a.store) != MFS_NO_NODE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(bits),
        cmocka_unit_test(names),
        cmocka_unit_test_setup_teardown(only_what_was_seen, setup_apart, teardown),
        cmocka_unit_test_setup_teardown(files_whose_time_is_over, setup_apart, teardown),
        cmocka_unit_test_setup_teardown(together, setup_apart, teardown),
        cmocka_unit_test_setup_teardown(files_that_were_read, setup_leased, teardown),
        cmocka_unit_test_setup_teardown(pinned_files_stay, setup_leased, teardown),
        cmocka_unit_test_setup_teardown(content_that_changes, setup_leased, teardown),
        cmocka_unit_test_setup_teardown(calls_that_are_lost, setup_leased, teardown),
        cmocka_unit_test_setup_teardown(replicas_that_take_over, setup_leased, teardown),
        cmocka_unit_test_setup_teardown(many_at_once, setup_leased, teardown),
        cmocka_unit_test_setup_teardown(readings_that_wait, setup_leased, teardown),
        cmocka_unit_test_setup_teardown(names_elsewhere, setup_leased, teardown),
        cmocka_unit_test_setup_teardown(of_directories, setup_apart, teardown),
        cmocka_unit_test_setup_teardown(without_replicas, setup, teardown),
        cmocka_unit_test_setup_teardown(of_files, setup_apart, teardown),
        cmocka_unit_test_setup_teardown(full_nodes, setup_apart, teardown),
        cmocka_unit_test_setup_teardown(nodes_that_are_gone, setup_apart, teardown),
    };

    return cmocka_run_group_tests(tests, setup_all, vfs_redis_stop);
}
