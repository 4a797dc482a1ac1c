#include "meta/hints.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/ino.h"
#include "base/text.h"

#define PREFIX "user.memefs."
#define NODE   "node:"
#define NAME   "node-" /* of a node, before its id */

/* The hint's bits of the word become these. */
static void set_bits(struct mfs_attr *attr, uint32_t set, uint32_t bits)
{
    attr->hints = (attr->hints & ~mfs_set_bits(set)) | bits;
}

/* A number from 1 to `most`. */
static int parse_number(const char *text, uint64_t most, uint64_t *n)
{
    return mfs_text_u64(text, n) < 0 || *n == 0 || *n > most ? -EINVAL : 0;
}

/* --- place ------------------------------------------------------------------------------------ */

static int parse_node(const char *text, uint32_t *bits)
{
    uint64_t id;

    if (strncmp(text, NAME, sizeof NAME - 1) == 0)
        text += sizeof NAME - 1;
    if (mfs_text_u64(text, &id) < 0 || id >= MFS_HINT_NODES)
        return -EINVAL;
    *bits = MFS_HINT_NODE | (uint32_t)id << MFS_HINT_NODE_AT;
    return 0;
}

static int parse_place(const char *text, struct mfs_attr *attr)
{
    uint32_t bits;
    int rc = 0;

    if (strcmp(text, "local") == 0)
        bits = MFS_HINT_LOCAL;
    else if (strcmp(text, "spread") == 0)
        bits = MFS_HINT_SPREAD;
    else if (strncmp(text, NODE, sizeof NODE - 1) == 0)
        rc = parse_node(text + sizeof NODE - 1, &bits);
    else
        rc = -EINVAL;
    if (rc == 0)
        set_bits(attr, MFS_SET_PLACE, bits);
    return rc;
}

static void show_place(const struct mfs_attr *attr, char out[MFS_HINT_TEXT_MAX])
{
    static const char *const texts[] = {
        [0] = "", [MFS_HINT_LOCAL] = "local", [MFS_HINT_SPREAD] = "spread"};
    uint32_t place = attr->hints & MFS_HINT_PLACE;

    if (place == MFS_HINT_NODE)
        snprintf(out, MFS_HINT_TEXT_MAX, NODE NAME "%u", mfs_hint_node(attr->hints));
    else
        snprintf(out, MFS_HINT_TEXT_MAX, "%s", texts[place]);
}

/* --- when names go ---------------------------------------------------------------------------- */

static int parse_ttl(const char *text, struct mfs_attr *attr)
{
    uint64_t seconds;
    int rc = parse_number(text, MFS_TTL_MAX, &seconds);

    if (rc == 0)
        attr->ttl = (int64_t)seconds;
    return rc;
}

/* A file's record has something else there. */
static void show_ttl(const struct mfs_attr *attr, char out[MFS_HINT_TEXT_MAX])
{
    if (S_ISDIR(attr->mode) && attr->ttl > 0)
        snprintf(out, MFS_HINT_TEXT_MAX, "%lld", (long long)attr->ttl);
}

static int parse_reads(const char *text, struct mfs_attr *attr)
{
    uint64_t n;
    int rc = parse_number(text, MFS_HINT_READS, &n);

    if (rc == 0)
        set_bits(attr, MFS_SET_READS, (uint32_t)n << MFS_HINT_READS_AT);
    return rc;
}

static void show_reads(const struct mfs_attr *attr, char out[MFS_HINT_TEXT_MAX])
{
    if (mfs_hint_reads(attr->hints) > 0)
        snprintf(out, MFS_HINT_TEXT_MAX, "%u", mfs_hint_reads(attr->hints));
}

static int parse_pin(const char *text, struct mfs_attr *attr)
{
    if (strcmp(text, "1") != 0)
        return -EINVAL;
    set_bits(attr, MFS_SET_PIN, MFS_HINT_PIN);
    return 0;
}

static void show_pin(const struct mfs_attr *attr, char out[MFS_HINT_TEXT_MAX])
{
    if (attr->hints & MFS_HINT_PIN)
        snprintf(out, MFS_HINT_TEXT_MAX, "1");
}

/* --- how a file is kept ----------------------------------------------------------------------- */

static_assert(MFS_HINT_STRIPES == MFS_INO_STRIPE, "a size of its own in the number for each");

/* The largest that is not above it. */
static int parse_stripe(const char *text, struct mfs_attr *attr)
{
    unsigned which = MFS_HINT_STRIPES;
    uint64_t bytes;

    if (mfs_text_size(text, &bytes) < 0)
        return -EINVAL;
    while (which > 0 && mfs_stripe_bytes(which) > bytes)
        which--;
    if (which == 0)
        return -EINVAL;
    set_bits(attr, MFS_SET_STRIPE, which << MFS_HINT_STRIPE_AT);
    return 0;
}

static void show_stripe(const struct mfs_attr *attr, char out[MFS_HINT_TEXT_MAX])
{
    unsigned which = mfs_hint_stripe(attr->hints);

    if (which > 0)
        snprintf(out, MFS_HINT_TEXT_MAX, "%uK", mfs_stripe_bytes(which) >> 10);
}

/* 1 is as without. */
static int parse_replicas(const char *text, struct mfs_attr *attr)
{
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return -EINVAL;
    set_bits(attr, MFS_SET_REPLICAS, text[0] == '0' ? MFS_HINT_ALONE : 0);
    return 0;
}

static void show_replicas(const struct mfs_attr *attr, char out[MFS_HINT_TEXT_MAX])
{
    if (attr->hints & MFS_HINT_ALONE)
        snprintf(out, MFS_HINT_TEXT_MAX, "0");
}

/* --- all -------------------------------------------------------------------------------------- */

static const struct mfs_hint_kind kinds[] = {
    {MFS_XATTR_PLACE, MFS_SET_PLACE, "local, spread, or node:NAME",
     "a file stays where it was made: set it for its directory, and make the file anew",
     parse_place, show_place},
    {MFS_XATTR_TTL, MFS_SET_TTL, "seconds, from 1 to 4294967295",
     "is a directory's, for the files in it: set it for that", parse_ttl, show_ttl},
    {MFS_XATTR_READS, MFS_SET_READS, "a number from 1 to 255",
     "is a directory's, for the files that are made in it; a file keeps what it was made with",
     parse_reads, show_reads},
    {MFS_XATTR_REPLICAS, MFS_SET_REPLICAS, "0, or 1 as without it",
     "a file has its data as it was made: set it for its directory, and make the file anew",
     parse_replicas, show_replicas},
    {MFS_XATTR_PIN, MFS_SET_PIN, "1; to take it away, remove the attribute", NULL, parse_pin,
     show_pin},
    {MFS_XATTR_STRIPE, MFS_SET_STRIPE, "a size from 124K",
     "a file keeps the stripes that it was made with: set it for its directory, and make it anew",
     parse_stripe, show_stripe},
};

const struct mfs_hint_kind *mfs_hint_kind_at(size_t i)
{
    return i < sizeof kinds / sizeof *kinds ? &kinds[i] : NULL;
}

const struct mfs_hint_kind *mfs_hint_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

bool mfs_hint_name_is_kept(const char *name)
{
    return strncmp(name, PREFIX, sizeof PREFIX - 1) == 0;
}

int mfs_hint_parse(const struct mfs_hint_kind *kind, const void *value, size_t len,
                   struct mfs_attr *attr)
{
    char text[MFS_HINT_TEXT_MAX];

    if (len == 0 || len >= sizeof text || memchr(value, '\0', len) != NULL)
        return -EINVAL;
    memcpy(text, value, len);
    text[len] = '\0';
    return kind->parse(text, attr);
}

void mfs_hint_show(const struct mfs_hint_kind *kind, const struct mfs_attr *attr,
                   char out[MFS_HINT_TEXT_MAX])
{
    out[0] = '\0';
    if (mfs_mode_has_hints(attr->mode))
        kind->show(attr, out);
}

bool mfs_hint_is_listed(const struct mfs_hint_kind *kind, const struct mfs_attr *attr)
{
    char text[MFS_HINT_TEXT_MAX];

    mfs_hint_show(kind, attr, text);
    return text[0] != '\0' && (S_ISDIR(attr->mode) || !kind->fixed);
}
