/* Shows where the pieces of a file are. The mounted client tells the partition table and the file's
 * numbers (client/layout.h); which stripe is where is computed here as any client does. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/text.h"
#include "cli/verbs.h"
#include "cluster/placement.h"
#include "client/layout.h"

#define ADDRESS_MAX 80

struct part {
    uint32_t node;
    char address[ADDRESS_MAX];
};

#define HINT_PREFIX "user.memefs."

/* Asked for by name: files do not list what can't be set for them. */
static const char *const hint_names[] = {"place", "ttl",    "delete-after-reads",
                                         "pin",   "stripe", "replicas"};

struct layout {
    char deployment[64];
    uint64_t epoch, ino, size, data_end;
    uint32_t stripe_size, nparts;
    struct part *part;
};

/* What of a file one node has. */
struct sum {
    uint64_t stripes, bytes;
};

/* Fetches one of the virtual attributes as a text into buf[MEMEFS_LAYOUT_MAX + 1]. */
static int fetch(const char *file, uint32_t chunk, char *buf)
{
    char name[64] = MEMEFS_XATTR_LAYOUT;
    ssize_t n;

    if (chunk > 0)
        snprintf(name, sizeof name, MEMEFS_XATTR_LAYOUT ".%" PRIu32, chunk);
    n = getxattr(file, name, buf, MEMEFS_LAYOUT_MAX);
    if (n < 0)
        return -errno;
    buf[n] = '\0';
    return 0;
}

static int parse_head(const char *text, struct layout *l)
{
    int n = sscanf(
        text,
        "memefs-layout 4\ndeployment %63s\nepoch %" SCNu64 "\nino %" SCNu64 "\nsize %" SCNu64
        "\ndata_end %" SCNu64 "\nstripe_size %" SCNu32 "\npartitions %" SCNu32,
        l->deployment, &l->epoch, &l->ino, &l->size, &l->data_end, &l->stripe_size, &l->nparts);

    if (n != 7 || l->stripe_size == 0 || l->nparts == 0 || l->nparts > MFS_PARTITIONS_MAX)
        return -EPROTO;
    l->part = calloc(l->nparts, sizeof *l->part);
    return l->part != NULL ? 0 : -ENOMEM;
}

static void parse_parts(char *text, struct layout *l)
{
    char *line, *rest = text;

    while ((line = strsep(&rest, "\n")) != NULL) {
        uint32_t p, node;
        char address[ADDRESS_MAX];

        if (sscanf(line, "p %" SCNu32 " %" SCNu32 " %79s", &p, &node, address) != 3 ||
            p >= l->nparts)
            continue;
        l->part[p].node = node;
        memcpy(l->part[p].address, address, sizeof address);
    }
}

static int load(const char *file, struct layout *l)
{
    char *buf = malloc(MEMEFS_LAYOUT_MAX + 1);
    int rc = buf != NULL ? fetch(file, 0, buf) : -ENOMEM;

    if (rc == 0)
        rc = parse_head(buf, l);
    for (uint32_t chunk = 0; rc == 0 && chunk * MEMEFS_LAYOUT_CHUNK < l->nparts; chunk++) {
        if (chunk > 0)
            rc = fetch(file, chunk, buf);
        if (rc == 0)
            parse_parts(buf, l);
    }
    free(buf);
    return rc;
}

static void print_hint(const char *name, const char *value, bool first, bool json)
{
    if (!json) {
        printf("%s %s=%s", first ? "   hints" : "", name, value);
        return;
    }
    printf("%s", first ? "" : ", ");
    mfs_verb_json_text(name);
    printf(": ");
    mfs_verb_json_text(value);
}

static void print_hints(const char *file, bool json)
{
    bool any = false;

    for (size_t i = 0; i < sizeof hint_names / sizeof *hint_names; i++) {
        char name[64], value[256];
        ssize_t n;

        snprintf(name, sizeof name, HINT_PREFIX "%s", hint_names[i]);
        n = getxattr(file, name, value, sizeof value - 1);
        if (n < 0)
            continue;
        value[n] = '\0';
        print_hint(hint_names[i], value, !any, json);
        any = true;
    }
    if (any && !json)
        printf("\n");
}

static void print_head(const char *file, const struct layout *l, uint64_t stripes, bool json)
{
    if (!json) {
        mfs_verb_shell_text(file);
        printf(": inode %" PRIu64 ", %" PRIu64 " bytes, %s of %" PRIu32
               " bytes, home partition %" PRIu32 " of %" PRIu32 "\n",
               l->ino, l->size, MFS_TEXT_COUNT(stripes, "stripe"), l->stripe_size,
               mfs_placement_home(l->ino), l->nparts);
        print_hints(file, json);
        return;
    }
    printf("{\"file\": ");
    mfs_verb_json_text(file);
    printf(", \"deployment\": ");
    mfs_verb_json_text(l->deployment);
    printf(", \"epoch\": %" PRIu64 ", \"ino\": %" PRIu64 ", \"size\": %" PRIu64
           ", \"stripe_size\": %" PRIu32 ", \"partitions\": %" PRIu32 ", \"home\": %" PRIu32
           ", \"hints\": {",
           l->epoch, l->ino, l->size, l->stripe_size, l->nparts, mfs_placement_home(l->ino));
    print_hints(file, json);
    printf("}, \"stripes\": [");
}

/* Counts it in `sums`, one for each partition. */
static void print_stripe(const struct layout *l, uint32_t n, bool json, struct sum *sums)
{
    uint32_t p = mfs_placement_stripe(l->ino, n, l->nparts);
    uint64_t off = (uint64_t)n * l->stripe_size;
    uint64_t len = l->size - off < l->stripe_size ? l->size - off : l->stripe_size;
    const struct part *part = &l->part[p];

    sums[p].stripes++;
    sums[p].bytes += len;
    if (json)
        printf("%s\n  {\"stripe\": %" PRIu32 ", \"offset\": %" PRIu64 ", \"length\": %" PRIu64
               ", \"partition\": %" PRIu32 ", \"node\": %" PRIu32 ", \"address\": \"%s\"}",
               n > 0 ? "," : "", n, off, len, p, part->node, part->address);
    else
        printf("%8" PRIu32 "  offset %-14" PRIu64 " length %-8" PRIu64 " partition %-5" PRIu32
               " node %-4" PRIu32 " %s\n",
               n, off, len, p, part->node, part->address);
}

static void print_sum(uint32_t node, const struct sum *sum, bool first, bool json)
{
    if (json)
        printf("%s{\"node\": %" PRIu32 ", \"stripes\": %" PRIu64 ", \"bytes\": %" PRIu64 "}",
               first ? "" : ", ", node, sum->stripes, sum->bytes);
    else
        printf("node %-4" PRIu32 " %" PRIu64 " bytes in %s\n", node, sum->bytes,
               MFS_TEXT_COUNT(sum->stripes, "stripe"));
}

/* By node: adds up what the partitions have. */
static void print_sums(const struct layout *l, struct sum *sums, bool json)
{
    bool first = true;

    for (uint32_t p = 0; p < l->nparts; p++) {
        struct sum all = sums[p];

        if (all.stripes == 0)
            continue;
        for (uint32_t q = p + 1; q < l->nparts; q++)
            if (l->part[q].node == l->part[p].node) {
                all.stripes += sums[q].stripes;
                all.bytes += sums[q].bytes;
                sums[q] = (struct sum){0};
            }
        print_sum(l->part[p].node, &all, first, json);
        first = false;
    }
}

static int show(const char *file, const struct layout *l, bool json)
{
    uint64_t stripes = (l->size + l->stripe_size - 1) / l->stripe_size;
    struct sum *sums = calloc(l->nparts, sizeof *sums);

    if (sums == NULL)
        return -ENOMEM;
    print_head(file, l, stripes, json);
    for (uint64_t n = 0; n < stripes && !ferror(stdout); n++)
        print_stripe(l, (uint32_t)n, json, sums);
    if (json)
        printf("%s], \"nodes\": [", stripes > 0 ? "\n" : "");
    print_sums(l, sums, json);
    if (json)
        printf("]}\n");
    free(sums);
    return fflush(stdout) == 0 ? 0 : -errno;
}

static int layout(const char *file, bool json, struct mfs_err *err)
{
    struct layout l = {0};
    int rc = load(file, &l);

    if (rc == 0)
        rc = show(file, &l, json);
    free(l.part);
    if (rc == -EOPNOTSUPP || rc == -ENODATA || rc == -EPROTO)
        return mfs_err_set(err, rc, "%s: not on a MemEFS mount", file);
    return rc < 0 ? mfs_err_set(err, rc, "%s: %s", file, strerror(-rc)) : 0;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    return layout(call->args[0], mfs_conf_flag(call->conf, "json"), err);
}

const struct mfs_verb mfs_verb_layout = {
    .name = "layout",
    .args = "FILE",
    .summary = "show where the pieces of a file are",
    .about =
        "Shows in which partition, and on which node, each stripe of FILE is, how much of it each\n"
        "node has, and its hints.",
    .least = 1,
    .most = 1,
    .options = MFS_OPTIONS(mfs_json_options),
    .run = run};
