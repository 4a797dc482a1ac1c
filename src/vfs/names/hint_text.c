#include "vfs/names/hint_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "meta/meta.h"

#define PREFIX "user.memefs."
#define NODE   "node:"
#define NAME   "node-" /* of a node, before its id */

/* Not followed, and said so: a hint that is taken and has no effect would be a promise broken. */
static const char *const refused[] = {"replicas", "pin", "stripe"};

enum mfs_hint mfs_hint_of(const char *name)
{
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0)
        return MFS_HINT_IS_NONE;
    if (strcmp(name, MFS_XATTR_PLACE) == 0)
        return MFS_HINT_IS_PLACE;
    if (strcmp(name, MFS_XATTR_TTL) == 0)
        return MFS_HINT_IS_TTL;
    if (strcmp(name, MFS_XATTR_READS) == 0)
        return MFS_HINT_IS_READS;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(name + sizeof PREFIX - 1, refused[i]) == 0)
            return MFS_HINT_IS_REFUSED;
    return MFS_HINT_IS_UNKNOWN;
}

static int parse_node(const char *text, uint32_t *hints)
{
    uint64_t id;

    if (strncmp(text, NAME, sizeof NAME - 1) == 0)
        text += sizeof NAME - 1;
    if (mfs_text_u64(text, &id) < 0 || id >= MFS_HINT_NODES)
        return -EINVAL;
    *hints = MFS_HINT_NODE | (uint32_t)id << MFS_HINT_NODE_AT;
    return 0;
}

static int take_text(const char *value, size_t len, char out[MFS_HINT_TEXT_MAX])
{
    if (len == 0 || len >= MFS_HINT_TEXT_MAX || memchr(value, '\0', len) != NULL)
        return -EINVAL;
    memcpy(out, value, len);
    out[len] = '\0';
    return 0;
}

/* A number from 1 to `most`. */
static int parse_number(const char *value, size_t len, uint64_t most, uint64_t *n)
{
    char text[MFS_HINT_TEXT_MAX];

    if (take_text(value, len, text) < 0 || mfs_text_u64(text, n) < 0 || *n == 0 || *n > most)
        return -EINVAL;
    return 0;
}

int mfs_hint_parse_ttl(const char *value, size_t len, int64_t *ttl)
{
    uint64_t seconds;
    int rc = parse_number(value, len, MFS_TTL_MAX, &seconds);

    if (rc == 0)
        *ttl = (int64_t)seconds;
    return rc;
}

int mfs_hint_parse_reads(const char *value, size_t len, uint32_t *reads)
{
    uint64_t n;
    int rc = parse_number(value, len, MFS_HINT_READS, &n);

    if (rc == 0)
        *reads = (uint32_t)n;
    return rc;
}

int mfs_hint_parse_place(const char *value, size_t len, uint32_t *hints)
{
    char text[MFS_HINT_TEXT_MAX];

    if (take_text(value, len, text) < 0)
        return -EINVAL;
    if (strcmp(text, "local") == 0)
        *hints = MFS_HINT_LOCAL;
    else if (strcmp(text, "spread") == 0)
        *hints = MFS_HINT_SPREAD;
    else if (strncmp(text, NODE, sizeof NODE - 1) == 0)
        return parse_node(text + sizeof NODE - 1, hints);
    else
        return -EINVAL;
    return 0;
}

void mfs_hint_place_text(uint32_t hints, char out[MFS_HINT_TEXT_MAX])
{
    static const char *const texts[] = {
        [0] = "", [MFS_HINT_LOCAL] = "local", [MFS_HINT_SPREAD] = "spread"};
    uint32_t place = hints & MFS_HINT_PLACE;

    if (place == MFS_HINT_NODE)
        snprintf(out, MFS_HINT_TEXT_MAX, NODE NAME "%u", mfs_hint_node(hints));
    else
        snprintf(out, MFS_HINT_TEXT_MAX, "%s", texts[place]);
}
