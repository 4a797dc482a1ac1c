/* Many small files of one directory read at once, by name. No lease is given and nothing is marked:
 * the answer is how things are now, and no client is told when they change. */
#include "partition/commands.h"

#include "base/bytes.h"
#include "partition/inode.h"
#include "partition/files/files.h"
#include "partition/files/voids.h"
#include "partition/journal/lost.h"
#include "partition/names/shard.h"

#define MOST_ROOM (16 << 20)                 /* bytes of an answer, whatever is asked for */
#define FILE_MORE (8 + MFS_RECORD_FIXED + 4) /* of a file, beside its status and its content */

struct look {
    const struct mfs_request *r;
    struct RedisModuleKey *shard; /* NULL: the directory has no names here */
    struct mfs_answer a;
    int64_t most, room;
    int64_t left; /* names behind this one: a byte at least for each */
};

enum { PARENT = 1, HERE, MOST, ROOM, NAMES }; /* of mfs_glance */

/* Files of a batch are as a rule of about one size: what grows is copied. */
static void reserve(struct look *l, size_t file)
{
    size_t all = file * (size_t)(l->left + 1), most = (size_t)l->room - l->a.n;

    if (l->a.room < l->a.n + file)
        mfs_answer_reserve(&l->a, all < most ? all : most);
}

static void add_file(struct look *l, struct mfs_span ino, const struct mfs_inode *i,
                     struct mfs_span content)
{
    char length[4];

    mfs_put_le32(length, (uint32_t)content.n);
    reserve(l, 1 + FILE_MORE + content.n);
    mfs_answer_byte(&l->a, MFS_GLANCE_FILE);
    mfs_answer_span(&l->a, ino);
    mfs_answer_add(&l->a, i->rec, MFS_RECORD_FIXED);
    mfs_answer_add(&l->a, length, sizeof length);
    mfs_answer_span(&l->a, content);
}

/* A file whose content can be told from here alone: a session that appends may have more. */
static bool is_plain(struct look *l, struct mfs_span ino, const struct mfs_inode *i)
{
    struct mfs_span none = {"", 0};
    char holder[MFS_SESSION_LEN];

    return i->rec && mfs_inode_is_sound(i) && mfs_inode_type(i) == MFS_TYPE_FILE &&
           mfs_rec_i64(i->rec, MFS_REC_SIZE) <= l->most &&
           !mfs_file_end_is_leased(l->r->ctx, ino, none, holder);
}

static void look_at_file(struct look *l, struct mfs_span ino)
{
    struct mfs_inode i = mfs_inode_open(l->r->ctx, ino, MFS_REDIS_READ);
    struct RedisModuleKey *stripe = NULL;
    struct mfs_span content = {"", 0};
    bool told = is_plain(l, ino, &i);

    if (told && mfs_rec_i64(i.rec, MFS_REC_SIZE) > 0) {
        stripe = mfs_key_stripe0(l->r->ctx, ino, MFS_REDIS_READ);
        told = mfs_voids_head(&i, stripe, &content) && mfs_lost_bytes(l->r->ctx, stripe) < 0;
        if ((int64_t)content.n > mfs_rec_i64(i.rec, MFS_REC_SIZE))
            content.n = (size_t)mfs_rec_i64(i.rec, MFS_REC_SIZE);
    }
    if (!told)
        mfs_answer_byte(&l->a, MFS_GLANCE_LOOK);
    else if ((int64_t)(l->a.n + 1 + FILE_MORE + content.n) + l->left > l->room)
        mfs_answer_byte(&l->a, MFS_GLANCE_ROOM);
    else
        add_file(l, ino, &i, content);
    mfs_key_close(stripe);
    mfs_inode_close(&i);
}

static void look_at(struct look *l, struct RedisModuleString *name)
{
    struct RedisModuleString *held = mfs_key_field(l->shard, name);
    struct mfs_span entry;

    if (!held) {
        mfs_answer_byte(&l->a, MFS_GLANCE_ABSENT);
        return;
    }
    entry = mfs_string_span(held);
    if (mfs_entry_is(entry) && entry.n == MFS_ENTRY_LEN && mfs_entry_type(entry) == MFS_TYPE_FILE &&
        mfs_inode_is_here(entry, mfs_request_arg(l->r, HERE)))
        look_at_file(l, mfs_entry_ino(entry));
    else
        mfs_answer_byte(&l->a, MFS_GLANCE_LOOK);
    mfs_redis.FreeString(l->r->ctx, held);
}

/* mfs_glance parent here most room name…: for each name, in their order, MFS_GLANCE_*; behind FILE
 * its number, its record, u32 (little-endian) and so many bytes of content. A file of more than
 * `most` bytes (no more than a stripe) is not told, nor is one that the answer, of at most `room`
 * bytes, has no room for. */
int mfs_command_glance(const struct mfs_request *r)
{
    struct look l = {.r = r, .most = mfs_request_int(r, MOST), .room = mfs_request_int(r, ROOM)};

    if (l.room > MOST_ROOM)
        l.room = MOST_ROOM;
    l.shard = mfs_key_open(r->ctx, 'D', mfs_request_arg(r, PARENT), MFS_REDIS_READ);
    for (int i = NAMES; i < r->argc; i++) {
        l.left = r->argc - i - 1;
        look_at(&l, r->argv[i]);
    }
    mfs_key_close(l.shard);
    return mfs_answer_send(&l.a, r->ctx);
}
