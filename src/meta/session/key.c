#include "meta/session/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_MARK 'n'

uint32_t mfs_session_part(const struct mfs_meta *meta, uint64_t sid)
{
    return (uint32_t)(sid % meta->nparts);
}

void mfs_session_format_node(const struct mfs_meta *meta, char text[MFS_SESSION_NODE_TEXT])
{
    uint32_t node = meta->opts.revoked ? mfs_store_node(meta->store) : MFS_NO_NODE;

    snprintf(text, MFS_SESSION_NODE_TEXT, "-");
    if (node != MFS_NO_NODE)
        snprintf(text, MFS_SESSION_NODE_TEXT, "%c%" PRIu32, NODE_MARK, node);
}

uint32_t mfs_session_parse_node(struct mfs_bytes text)
{
    char number[MFS_SESSION_NODE_TEXT] = "", *end;
    unsigned long node;

    if (text.n < 2 || text.n > sizeof number || text.p[0] != NODE_MARK)
        return MFS_NO_NODE;
    memcpy(number, text.p + 1, text.n - 1);
    node = strtoul(number, &end, 10);
    return *end || node > MFS_NO_NODE ? MFS_NO_NODE : (uint32_t)node;
}
