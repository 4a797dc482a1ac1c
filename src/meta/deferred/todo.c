/* What a committed transaction entails beyond the partition that decided it. It is kept there, as
 * bytes, until all of it is done; every part of it can be done again, by any client.
 *
 * Bytes: format = 1, source partition (u16), source directory, moved inode, its new parent, other
 * inode, its new parent, generation, dead directory (u64 each), time (12), length of the source
 * name (u8), that name, bitmap of the dead directory's shards. Big-endian. */
#include "meta/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/txn/txn.h"

#define TODO_FORMAT 1
#define TODO_FIXED  (MFS_TODO_NAME_AT + 1)

char *mfs_todo_encode(const struct mfs_todo *t, size_t *n)
{
    const uint64_t ids[] = {t->src_dir,      t->moved,      t->moved_parent, t->other,
                            t->other_parent, t->generation, t->dead};
    size_t name = t->src_name ? strlen(t->src_name) : 0;
    char *out = malloc(TODO_FIXED + name + t->nbits), *p = out;

    if (!out)
        return NULL;
    *p++ = TODO_FORMAT;
    mfs_put_be16(p, (uint16_t)t->src_part);
    p += 2;
    for (size_t i = 0; i < 7; i++, p += 8)
        mfs_put_be64(p, ids[i]);
    memcpy(p, t->time.b, MFS_TIME_LEN);
    p += MFS_TIME_LEN;
    *p++ = (char)name;
    if (name)
        memcpy(p, t->src_name, name);
    p += name;
    if (t->nbits)
        memcpy(p, t->bits, t->nbits);
    *n = TODO_FIXED + name + t->nbits;
    return out;
}

int mfs_todo_decode(const void *bytes, size_t n, struct mfs_todo *t)
{
    const char *p = bytes;
    uint64_t ids[7];
    size_t name;

    memset(t, 0, sizeof *t);
    if (n < TODO_FIXED || p[0] != TODO_FORMAT)
        return -EIO;
    name = (unsigned char)p[TODO_FIXED - 1];
    if (n < TODO_FIXED + name)
        return -EIO;
    for (size_t i = 0; i < 7; i++)
        ids[i] = mfs_get_be64(p + 3 + 8 * i);
    t->src_part = mfs_get_be16(p + 1);
    t->src_dir = ids[0];
    t->moved = ids[1];
    t->moved_parent = ids[2];
    t->other = ids[3];
    t->other_parent = ids[4];
    t->generation = ids[5];
    t->dead = ids[6];
    memcpy(t->time.b, p + 3 + 7 * 8, MFS_TIME_LEN);
    memcpy(t->name, p + TODO_FIXED, name);
    t->src_name = t->name;
    t->bits = (const unsigned char *)p + TODO_FIXED + name;
    t->nbits = n - TODO_FIXED - name;
    return 0;
}

/* The arguments' bytes, which must outlive the calls. */
struct todo_keys {
    struct mfs_ino_arg src, moved, moved_parent, other, other_parent, generation, dead, sid;
};

static struct mfs_call *add_settle(struct mfs_calls *b, const struct mfs_todo *t,
                                   const struct todo_keys *k, const char *txn,
                                   struct mfs_bytes becomes)
{
    struct mfs_call *c = mfs_calls_add(b, "mfs_settle", t->src_part);

    mfs_args_bin(&c->args, k->src.b, sizeof k->src.b);
    mfs_args_str(&c->args, t->src_name);
    mfs_args_bin(&c->args, txn, MFS_TXN_LEN);
    mfs_args_bin(&c->args, becomes.p, becomes.n);
    return c;
}

static void add_reparent(struct mfs_calls *b, const struct mfs_todo *t, const struct todo_keys *k,
                         uint64_t ino, const struct mfs_ino_arg *key,
                         const struct mfs_ino_arg *parent)
{
    struct mfs_call *c = mfs_calls_add(b, "mfs_reparent", mfs_placement_home(ino));

    mfs_args_bin(&c->args, key->b, sizeof key->b);
    mfs_args_bin(&c->args, parent->b, sizeof parent->b);
    mfs_args_bin(&c->args, k->generation.b, sizeof k->generation.b);
    mfs_args_bin(&c->args, t->time.b, sizeof t->time.b);
}

static void add_kill(struct mfs_calls *b, const struct mfs_todo *t, const struct todo_keys *k)
{
    struct mfs_call *c = mfs_calls_add(b, "mfs_kill", mfs_placement_home(t->dead));

    mfs_args_bin(&c->args, k->dead.b, sizeof k->dead.b);
    mfs_args_bin(&c->args, t->time.b, sizeof t->time.b);
}

/* No client may add names by an old copy of the dead directory's inode. */
static void add_tombstone(struct mfs_call *c, const struct todo_keys *k)
{
    mfs_call_command(c, "mfs_tomb");
    mfs_args_bin(&c->args, k->dead.b, sizeof k->dead.b);
}

static void post_end(struct mfs_meta *meta, const char *command, const char *txn, uint32_t part)
{
    struct mfs_call c;

    mfs_call_command(&c, command);
    mfs_args_bin(&c.args, txn, MFS_TXN_LEN);
    mfs_call_post(meta, &c, part);
}

int mfs_todo_run(struct mfs_meta *meta, const struct mfs_todo *t, const char *txn,
                 struct mfs_bytes becomes, uint32_t decider, struct mfs_calls *calls)
{
    struct todo_keys k = {mfs_ino_arg(t->src_dir),      mfs_ino_arg(t->moved),
                          mfs_ino_arg(t->moved_parent), mfs_ino_arg(t->other),
                          mfs_ino_arg(t->other_parent), mfs_ino_arg(t->generation),
                          mfs_ino_arg(t->dead),         mfs_ino_arg(0)};
    struct mfs_calls own, *b = calls ? calls : &own;
    struct mfs_call tomb, *settle;
    int rc;

    own.n = 0;
    if (t->src_dir) {
        settle = add_settle(b, t, &k, txn, becomes);
        if (calls)
            mfs_lease_arg(meta, settle, &k.sid);
    }
    if (t->moved)
        add_reparent(b, t, &k, t->moved, &k.moved, &k.moved_parent);
    if (t->other)
        add_reparent(b, t, &k, t->other, &k.other, &k.other_parent);
    if (t->dead)
        add_kill(b, t, &k);
    add_tombstone(&tomb, &k);
    rc = mfs_calls_run_bits(meta, b, &tomb, t->bits, t->dead ? t->nbits : 0);
    mfs_calls_fini(&own);
    if (rc)
        return rc;
    post_end(meta, "mfs_forget", txn, decider);
    if (t->generation)
        mfs_move_unlock(meta, txn);
    return 0;
}

void mfs_move_unlock(struct mfs_meta *meta, const char *txn)
{
    post_end(meta, "mfs_move_unlock", txn, 0);
}
