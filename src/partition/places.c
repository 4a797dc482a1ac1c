#include "partition/places.h"

#include <stdint.h>

#include "base/bytes.h"
#include "partition/journal/api.h"
#include "partition/protocol.h"

/* 4 KiB: only where very many files were appended to by turns, some are looked for in vain. */
#define BITS    15
#define INO     8
#define SPREADS 0x9e3779b97f4a7c15ULL

static unsigned char filter[(1U << BITS) / 8];

static size_t bit_of(struct mfs_span ino)
{
    return mfs_get_be64(ino.p) * SPREADS >> (64 - BITS);
}

void mfs_places_note(struct mfs_span ino)
{
    if (ino.n == INO)
        filter[bit_of(ino) / 8] |= (unsigned char)(1U << bit_of(ino) % 8);
}

bool mfs_places_maybe(struct mfs_span ino)
{
    return ino.n != INO || filter[bit_of(ino) / 8] & 1U << bit_of(ino) % 8;
}

void mfs_places_note_key(struct mfs_span name)
{
    if (name.n == 1 + INO && name.p[0] == 'P')
        mfs_places_note((struct mfs_span){name.p + 1, INO});
}

static int on_key(struct RedisModuleCtx *ctx, int type, const char *event,
                  struct RedisModuleString *name)
{
    (void)ctx;
    (void)type;
    (void)event;
    mfs_places_note_key(mfs_string_span(name));
    return MFS_REDIS_OK;
}

int mfs_places_load(struct RedisModuleCtx *ctx)
{
    return mfs_journal_api.SubscribeToKeyspaceEvents(ctx, MFS_NOTIFY_CHANGES | MFS_NOTIFY_LOADED,
                                                     on_key);
}
