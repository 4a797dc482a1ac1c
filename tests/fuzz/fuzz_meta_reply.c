/* What metadata operations make of partitions' replies: entries, records, intents, seals, what a
 * transaction entails, listings, attributes, leases, locks, chores. The input tells which
 * operations are done and what each command of theirs is answered (see fuzz_reply). Whatever that
 * is, an operation ends, fills no buffer beyond its end, and asks for memory in proportion to what
 * it was told. ctest: timeout=60 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/ino.h"
#include "data/stripes/stripe_keys.h"
#include "meta/deferred/deferred.h"
#include "world.h"

#define OPERATIONS     3
#define REPLIES        128  /* to one operation */
#define BYTES_PER_BYTE 1024 /* allocated for one that was told */

static struct fuzz_world world;
static struct fuzz_input input;
static unsigned replies;
static _Thread_local bool ours;

/* Answers before the command is sent, which comes to the same. */
static int answer(void *arg, uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct mfs_buf b;
    bool said;

    (void)arg;
    (void)argv;
    (void)argc;
    if (!ours || fuzz_world_posted(&world) || !input.n || replies++ == REPLIES)
        return -EIO;
    mfs_buf_init(&b);
    fuzz_reply(&input, &b);
    said = fuzz_partition_say(&world.parts, part, mfs_buf_data(&b), mfs_buf_len(&b));
    mfs_buf_fini(&b);
    return said ? 0 : -EIO;
}

/* ---- operations ------------------------------------------------------------------------------ */

struct operands {
    struct mfs_meta *meta;
    uint64_t ino, dir;
    const char *name, *other;
    size_t len;
};

static void check_attr(const struct mfs_attr *a)
{
    FUZZ_CHECK((int64_t)a->size >= 0 && (int64_t)a->data_end >= 0);
    FUZZ_CHECK(a->mtime.tv_nsec >= 0 && a->mtime.tv_nsec < 1000000000);
    FUZZ_CHECK(a->atime.tv_nsec >= 0 && a->atime.tv_nsec < 1000000000);
}

static void check_rc(int rc, const struct mfs_attr *a)
{
    FUZZ_CHECK(rc <= 0 && rc > -4096);
    if (!rc && a)
        check_attr(a);
}

static void lookup(const struct operands *o)
{
    struct mfs_attr a = {0};

    check_rc(mfs_meta_lookup(o->meta, o->dir, o->name, &a), &a);
    check_rc(mfs_meta_lookup(o->meta, o->dir, o->name, &a), &a);
}

static void attributes(const struct operands *o)
{
    struct mfs_attr a = {0};

    check_rc(mfs_meta_getattr(o->meta, o->ino, &a), &a);
    check_rc(mfs_meta_getattr_leased(o->meta, o->ino, &a), &a);
    check_rc(mfs_meta_dir(o->meta, o->dir, 0, &a), &a);
    check_rc(mfs_meta_setattr(o->meta, o->ino, (uint32_t)o->len, &a, NULL), &a);
}

static void list(const struct operands *o)
{
    struct mfs_listing *l = NULL;
    struct mfs_attr a;
    int rc = mfs_meta_list(o->meta, o->dir, &l);

    check_rc(rc, NULL);
    FUZZ_CHECK(!rc == (l != NULL));
    for (size_t i = 0; l && i < mfs_listing_count(l); i++) {
        struct mfs_dirent e = mfs_listing_at(l, i);

        FUZZ_CHECK(e.len && e.len <= MFS_NAME_LEN_MAX && !e.name[e.len]);
        FUZZ_CHECK(!(e.type & ~(uint32_t)S_IFMT));
    }
    if (l) {
        mfs_meta_learn(o->meta, o->dir, l, NULL, 0, MFS_META_LEARN);
        for (size_t i = 0; i < mfs_listing_count(l); i++) {
            struct mfs_dirent e = mfs_listing_at(l, i);

            if (mfs_meta_show(o->meta, o->dir, &e, &a))
                mfs_meta_shown(o->meta, &e.ino, 1, 0);
        }
    }
    mfs_listing_free(l);
}

static void create(const struct operands *o)
{
    struct mfs_xattr acl = {"system.posix_acl_default", o->other, strlen(o->other)};
    struct mfs_new file = {.mode = S_IFREG | 0644, .xattrs = &acl, .nxattrs = o->len % 2};
    struct mfs_attr a = {0};
    bool created;

    check_rc(mfs_meta_create_open(o->meta, o->dir, o->name, &file, o->len & 2, &a, &created), &a);
    check_rc(mfs_meta_lookup(o->meta, o->dir, o->name, &a), &a);
    check_rc(mfs_meta_create_open(o->meta, o->dir, o->other, &file, false, &a, &created), &a);
}

static void make(const struct operands *o)
{
    struct mfs_new new = {.mode = (o->len & 1 ? S_IFDIR : S_IFLNK) | 0755,
                          .target = o->len & 1 ? NULL : o->other};
    struct mfs_attr a = {0};

    check_rc(mfs_meta_mknod(o->meta, o->dir, o->name, &new, &a), &a);
    check_rc(mfs_meta_rmdir(o->meta, o->dir, o->name), NULL);
}

static void open_close(const struct operands *o)
{
    char content[256];
    struct mfs_head head = {.buf = content, .cap = o->len % sizeof content};
    struct mfs_cut cut = {.trimmed = o->len};
    struct mfs_attr a = {0};
    int rc = mfs_meta_open(o->meta, o->ino, o->len & 1 ? &cut : NULL, &a, &head);

    check_rc(rc, &a);
    FUZZ_CHECK(rc || o->len & 1 || (head.len >= -1 && head.len <= (ssize_t)head.cap));
    check_rc(mfs_meta_close(o->meta, o->ino, o->len & 2), NULL);
    mfs_closes_flush(o->meta);
}

static void write_file(const struct operands *o)
{
    struct mfs_part part = {0, (uint32_t)strlen(o->name), o->name};
    struct mfs_commit c = {.end = o->len, .parts = &part, .nparts = o->len % 2};
    uint64_t off, number, version;
    struct mfs_range place;
    struct mfs_attr a = {0};

    check_rc(mfs_meta_commit(o->meta, o->ino, &c, &version, &a), &a);
    check_rc(mfs_meta_truncate(o->meta, o->ino, o->len, o->len, 0, &version, &a), &a);
    if (mfs_meta_append(o->meta, o->ino, o->name, part.len, 0, &off, &number, &version, &a))
        return;
    place = (struct mfs_range){off, off + part.len};
    check_rc(mfs_meta_append_end(o->meta, o->ino, number, true, &place, 0, &version, &a), &a);
}

static void unlink_name(const struct operands *o)
{
    check_rc(mfs_meta_unlink(o->meta, o->dir, o->name), NULL);
}

static void remove_directory(const struct operands *o)
{
    check_rc(mfs_meta_rmdir(o->meta, o->dir, o->name), NULL);
}

static void rename_name(const struct operands *o)
{
    static const unsigned flags[] = {0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};

    check_rc(mfs_meta_rename(o->meta, o->dir, o->name, o->len & 4 ? o->dir : o->ino, o->other,
                             flags[o->len % 4]),
             NULL);
}

static void link_name(const struct operands *o)
{
    struct mfs_attr a = {0};

    check_rc(mfs_meta_link(o->meta, o->ino, o->dir, o->name, &a), &a);
}

static void read_link(const struct operands *o)
{
    char target[128];
    int rc = mfs_meta_readlink(o->meta, o->ino, target, o->len % sizeof target);

    FUZZ_CHECK(rc <= (int)(o->len % sizeof target));
}

static void xattrs(const struct operands *o)
{
    size_t cap = o->len % 512;
    char *buf = malloc(cap ? cap : 1);
    ssize_t rc;

    FUZZ_CHECK(buf);
    rc = mfs_meta_listxattr(o->meta, o->ino, buf, cap);
    FUZZ_CHECK(!cap || rc <= (ssize_t)cap);
    rc = mfs_meta_getxattr(o->meta, o->ino, o->name, buf, cap);
    FUZZ_CHECK(!cap || rc <= (ssize_t)cap);
    check_rc(mfs_meta_setxattr(o->meta, o->ino, o->name, o->other, o->len, 0, false, NULL), NULL);
    check_rc(mfs_meta_setxattr(o->meta, o->ino, "system.posix_acl_access", o->other, o->len, 0,
                               true, NULL),
             NULL);
    check_rc(mfs_meta_removexattr(o->meta, o->ino, o->name, NULL), NULL);
    free(buf);
}

static void locks(const struct operands *o)
{
    struct mfs_lock lock = {.type = F_WRLCK, .end = INT64_MAX, .owner = 7};
    struct mfs_meta_wait wait = {.ino = o->ino, .lock = lock};
    struct mfs_attr a = {0};

    check_rc(mfs_meta_setlk(o->meta, o->ino, &lock, &a, &wait.holder), &a);
    check_rc(mfs_meta_wait_note(o->meta, &wait), NULL);
    mfs_meta_wait_over(o->meta, &wait);
    check_rc(mfs_meta_getlk(o->meta, o->ino, &lock, NULL), NULL);
    check_rc(mfs_meta_flock(o->meta, o->ino, 7, 0, F_UNLCK, &a, NULL), &a);
}

static int see_stripes(void *arg, const uint32_t *list, size_t n)
{
    (void)list;
    *(size_t *)arg += n;
    return 0;
}

/* What src/data asks partitions about stripes. */
static void stripes(const struct operands *o)
{
    struct mfs_store *store = world.parts.store;
    uint32_t lengths[4], some[] = {1, 2, 3, 7};
    int64_t grown = 0;
    size_t seen = 0;
    bool pays;

    check_rc(mfs_stripe_scan(store, o->ino, see_stripes, &seen), NULL);
    check_rc(mfs_stripe_lengths(store, o->ino, 1, 4, lengths), NULL);
    check_rc(mfs_stripe_scan_pays(store, UINT32_MAX, &pays), NULL);
    check_rc(mfs_stripe_delete(store, o->ino, NULL, 0, some, 4, &grown), NULL);
}

static void chores(const struct operands *o)
{
    struct mfs_meta_space space;

    mfs_chores_tick(o->meta);
    mfs_parents_flush(o->meta);
    mfs_closes_flush(o->meta);
    check_rc(mfs_meta_statfs(o->meta, &space), NULL);
}

static void check_told(void *arg, size_t i, int rc, const struct mfs_attr *attr,
                       const void *content, size_t n)
{
    unsigned *told = arg;

    FUZZ_CHECK(i < 2 && !told[i]++);
    FUZZ_CHECK(rc == 0 || rc == -ENOENT);
    if (rc)
        return;
    check_attr(attr);
    FUZZ_CHECK(S_ISREG(attr->mode) && n <= attr->size && n <= MFS_META_CONTENT);
    for (size_t at = 0; at < n; at++) /* all of it can be read */
        told[2] += ((const unsigned char *)content)[at];
}

static void glance(const struct operands *o)
{
    struct mfs_name names[] = {{o->dir, o->name}, {o->len % 2 ? o->dir : o->ino, o->other}};
    struct mfs_glances *g = mfs_glances_create(o->meta);
    unsigned told[3] = {0};

    FUZZ_CHECK(g);
    mfs_meta_glance(g, names, 2, check_told, told);
    mfs_glances_destroy(g);
}

static void (*const operations[])(const struct operands *o) = {
    lookup,      attributes,       list,        create,    make,      open_close, write_file,
    unlink_name, remove_directory, rename_name, link_name, read_link, xattrs,     locks,
    chores,      stripes,          glance};

/* ---- one input ------------------------------------------------------------------------------- */

/* Inodes that a partition has, mostly. */
static uint64_t take_ino(struct fuzz_input *in)
{
    uint8_t which = fuzz_u8(in);

    return which == 0xff ? fuzz_u64(in) : mfs_ino_make(which % FUZZ_PARTITIONS, (which >> 4) + 1U);
}

static void operate(uint8_t which)
{
    struct operands o = {.meta = world.meta};
    struct fuzz_input text;
    char *name, *other;

    o.dir = take_ino(&input);
    o.ino = take_ino(&input);
    name = fuzz_text(fuzz_take(&input, fuzz_u8(&input) % 32));
    text = fuzz_take(&input, fuzz_u8(&input));
    other = fuzz_text(text);
    o.name = name;
    o.other = other;
    o.len = text.n;
    replies = 0;
    operations[which % (sizeof operations / sizeof *operations)](&o);
    free(name);
    free(other);
}

static void init(void)
{
    int fd;

    if (world.meta)
        return;
    fuzz_world_init(&world, &fd);
    fuzz_world_seclude(&world, fd);
    mfs_store_set_fault(world.parts.store, answer, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    init();
    fuzz_world_renew(&world);
    input = (struct fuzz_input){p, n};
    ours = true;
    fuzz_heap_begin();
    for (int i = 0; i < OPERATIONS && input.n; i++)
        operate(fuzz_u8(&input));
    FUZZ_CHECK(fuzz_heap_end() <= (1U << 20) + BYTES_PER_BYTE * n);
    ours = false;
    return 0;
}
