#include "client/address.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "store/store.h"

/* Partitions of the node whose lm serves the client have their sockets here: ".../node-7/lm.sock".
 */
static uint32_t node_of(const char *socket)
{
    const char *last = strrchr(socket, '/'), *from = last;
    unsigned id;
    int end = 0;

    if (last == NULL)
        return MFS_NO_NODE;
    while (from > socket && from[-1] != '/')
        from--;
    if (sscanf(from, "node-%u/%n", &id, &end) == 1 && from + end == last + 1)
        return id;
    return MFS_NO_NODE;
}

int mfs_client_address(const struct mfs_paths *paths, const char *lm, const char *cm,
                       char out[MFS_ADDRESS_MAX], uint32_t *node)
{
    int rc;

    *node = MFS_NO_NODE;
    if (cm != NULL)
        return mfs_text_copy(out, MFS_ADDRESS_MAX, cm);
    if (lm == NULL)
        rc = mfs_text_format(out, MFS_ADDRESS_MAX, "unix:%s/node-0/lm.sock", paths->dir);
    else
        rc = mfs_text_format(out, MFS_ADDRESS_MAX, "unix:%s",
                             strncmp(lm, "unix:", 5) == 0 ? lm + 5 : lm);
    *node = node_of(out);
    return rc;
}
