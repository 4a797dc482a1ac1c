/* A small tree in partitions, and commands to these partitions that no client would give, for tests
 * that damage it. Functions fail the test. */
#ifndef MFS_TESTS_FSCK_WORLD_H
#define MFS_TESTS_FSCK_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "cluster/placement.h"
#include "meta/internal.h"
#include "meta_fixture.h"

#define ROOT         MFS_ROOT_INO
#define NPARTS       4U
#define STRIPE       4096U
#define FSCK_CONTENT (3 * STRIPE)
#define NOBODY       0x7777777777777777ULL /* a session that never lived */

/* /d/{f,g,h,e/,x/y}, /b/z, /n: f and n have data, h is g, e is empty. */
struct fsck_tree {
    uint64_t d, f, g, e, x, y, b, z, n;
};

extern struct meta_client fsck_client;
extern struct fsck_tree fsck_tree;      /* inodes */
extern char fsck_content[FSCK_CONTENT]; /* its first bytes are what files have */

/* cmocka's setup and teardown, of a group and of a test. */
int fsck_redis_start(void **state);
int fsck_redis_stop(void **state);
int fsck_world_setup(void **state);
int fsck_world_setup_large(void **state); /* its inodes' numbers begin shortly before 2^53 */
int fsck_world_teardown(void **state);

void fsck_world_flush(void);                       /* what is told later is told */
void fsck_world_order(const char *command);        /* to all partitions, as an administrator */
void fsck_check_content(uint64_t ino, size_t len); /* it has so much of fsck_content */
void fsck_know_everywhere(uint64_t dir);           /* that it has entries in all partitions */

/* --- commands to partitions ----------------------------------------------------------------- */

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

static inline void raw(uint32_t part, const struct mfs_arg *argv, uint32_t argc)
{
    struct mfs_cmd cmd = {.part = part, .argv = argv, .argc = argc};

    assert_int_equal(mfs_store_exec(fsck_client.store, &cmd, 1), 0);
    mfs_cmds_fini(&cmd, 1);
}

/* Good until eight more are made. */
static inline char *slot(void)
{
    static char slots[8][64];
    static unsigned next;

    return slots[next++ % 8];
}

static inline struct mfs_arg key(char letter, uint64_t ino)
{
    char *p = slot();

    mfs_key_ino(p, letter, ino);
    return (struct mfs_arg){p, MFS_KEY_INO_LEN};
}

static inline struct mfs_arg stripe(uint64_t ino, uint32_t n)
{
    char *p = slot();

    mfs_key_stripe(p, ino, n);
    return (struct mfs_arg){p, MFS_KEY_STRIPE_LEN};
}

static inline struct mfs_arg number(uint64_t v)
{
    char *p = slot();

    mfs_put_be64(p, v);
    return (struct mfs_arg){p, 8};
}

static inline struct mfs_arg entry(uint64_t ino, uint32_t mode)
{
    char *p = slot();

    mfs_entry_encode(ino, mode, p);
    return (struct mfs_arg){p, MFS_ENTRY_LEN};
}

static inline struct mfs_arg text(const char *s)
{
    return (struct mfs_arg){s, strlen(s)};
}

static inline uint32_t place(uint64_t dir, const char *name)
{
    return mfs_placement_entry(dir, name, strlen(name), NPARTS);
}

static inline uint32_t home(uint64_t ino)
{
    return mfs_placement_home(ino);
}

static inline uint64_t nobody_at(uint32_t part)
{
    return mfs_ino_make(part, 999999);
}

static inline void set_entry(uint64_t dir, const char *name, uint64_t ino, uint32_t mode)
{
    RAW(place(dir, name), TEXT("HSET"), key('D', dir), text(name), entry(ino, mode));
}

static inline void drop_entry(uint64_t dir, const char *name)
{
    RAW(place(dir, name), TEXT("HDEL"), key('D', dir), text(name));
}

/* Bytes of a record. */
static inline void patch(uint64_t ino, const char *at, const void *bytes, size_t n)
{
    RAW(home(ino), TEXT("SETRANGE"), key('I', ino), text(at), {bytes, n});
}

static inline void set_nlink(uint64_t ino, uint32_t nlink)
{
    char b[4];

    mfs_put_le32(b, nlink);
    patch(ino, "16", b, sizeof b);
}

static inline int64_t at(uint64_t dir, const char *name)
{
    return meta_client_ino(&fsck_client, dir, name);
}

#endif
