#include "cm/history/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "proto/encode.h"

#define HOUR       3600
#define MINUTE     60
#define DAY        86400
#define NODE_STEP  10
#define SHOWN_STEP 4
#define SHOWN_NODE 30
#define SHOWN_MOST 64
#define MAGIC      "memefs history 1"

const char *const mfs_history_names[MFS_HISTORY_FIGURES] = {[MFS_HISTORY_USED] = "used",
                                                            [MFS_HISTORY_CAPACITY] = "capacity",
                                                            [MFS_HISTORY_ALLOCATED] = "allocated",
                                                            [MFS_HISTORY_NODES_THERE] = "nodes",
                                                            [MFS_HISTORY_OPERATIONS] = "operations",
                                                            [MFS_HISTORY_IN] = "in",
                                                            [MFS_HISTORY_OUT] = "out",
                                                            [MFS_HISTORY_P99] = "p99",
                                                            [MFS_HISTORY_MOVES] = "moves",
                                                            [MFS_HISTORY_PAID] = "paid",
                                                            [MFS_HISTORY_READ] = "read",
                                                            [MFS_HISTORY_WRITTEN] = "written"};

static const char *const shown_of_node[MFS_HISTORY_NODE_FIGURES] = {[MFS_HISTORY_NODE_USED] =
                                                                        "used"};

struct mfs_history *mfs_history_create(void)
{
    struct mfs_history *h = calloc(1, sizeof *h);

    if (!h)
        return NULL;
    h->hour = mfs_history_ring_create(1, HOUR, MFS_HISTORY_FIGURES);
    h->day = mfs_history_ring_create(MINUTE, DAY / MINUTE, MFS_HISTORY_FIGURES);
    if (h->hour && h->day)
        return h;
    mfs_history_destroy(h);
    return NULL;
}

static void forget_nodes(struct mfs_history *h)
{
    for (uint32_t i = 0; i < h->nnodes; i++)
        mfs_history_ring_destroy(h->node[i].ring);
    h->nnodes = 0;
}

void mfs_history_destroy(struct mfs_history *h)
{
    if (!h)
        return;
    forget_nodes(h);
    mfs_history_ring_destroy(h->hour);
    mfs_history_ring_destroy(h->day);
    free(h);
}

void mfs_history_put(struct mfs_history *h, int64_t time, const float figures[MFS_HISTORY_FIGURES])
{
    mfs_history_ring_put(h->hour, time, figures);
    mfs_history_ring_put(h->day, time, figures);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static struct mfs_history_node *add(struct mfs_history *h, const char *name)
{
    struct mfs_history_node *n = &h->node[h->nnodes];

    n->ring = mfs_history_ring_create(NODE_STEP, HOUR / NODE_STEP, MFS_HISTORY_NODE_FIGURES);
    if (!n->ring)
        return NULL;
    mfs_text_copy(n->name, sizeof n->name, name);
    h->nnodes++;
    return n;
}

static struct mfs_history_node *find(struct mfs_history *h, int64_t time, const char *name)
{
    struct mfs_history_node *silent = h->node;

    for (uint32_t i = 0; i < h->nnodes; i++) {
        if (!strcmp(h->node[i].name, name))
            return &h->node[i];
        if (mfs_history_ring_last(h->node[i].ring) < mfs_history_ring_last(silent->ring))
            silent = &h->node[i];
    }
    if (h->nnodes < MFS_HISTORY_NODES)
        return add(h, name);
    if (mfs_history_ring_last(silent->ring) > time - HOUR)
        return NULL;
    mfs_history_ring_clear(silent->ring);
    mfs_text_copy(silent->name, sizeof silent->name, name);
    return silent;
}

void mfs_history_put_node(struct mfs_history *h, int64_t time, const char *name,
                          const float figures[MFS_HISTORY_NODE_FIGURES])
{
    struct mfs_history_node *n = find(h, time, name);

    if (n)
        mfs_history_ring_put(n->ring, time, figures);
}

/* ---- shown ----------------------------------------------------------------------------------- */

static int put_node(const struct mfs_history_node *n, bool first, struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "%s{\"name\":", first ? "" : ",");

    if (!rc)
        rc = mfs_string_encode(n->name, out);
    if (!rc)
        rc = mfs_buf_printf(out, ",\"curve\":");
    if (!rc)
        rc = mfs_history_ring_json(n->ring, SHOWN_NODE, shown_of_node, out);
    return rc ? rc : mfs_buf_append(out, "}", 1);
}

int mfs_history_json(const struct mfs_history *h, struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "{\"hour\":");

    if (!rc)
        rc = mfs_history_ring_json(h->hour, SHOWN_STEP, mfs_history_names, out);
    if (!rc)
        rc = mfs_buf_printf(out, ",\"day\":");
    if (!rc)
        rc = mfs_history_ring_json(h->day, MINUTE, mfs_history_names, out);
    if (!rc)
        rc = mfs_buf_printf(out, ",\"nodes\":[");
    for (uint32_t i = 0; i < h->nnodes && i < SHOWN_MOST && !rc; i++)
        rc = put_node(&h->node[i], !i, out);
    return rc ? rc : mfs_buf_printf(out, "]}");
}

/* ---- kept ------------------------------------------------------------------------------------ */

struct head {
    char magic[sizeof MAGIC];
    uint32_t nnodes;
    uint64_t sum; /* of what follows */
};

int mfs_history_save(const struct mfs_history *h, struct mfs_buf *out)
{
    struct head head = {.magic = MAGIC, .nnodes = h->nnodes};
    size_t begin = mfs_buf_len(out);
    int rc = mfs_buf_append(out, &head, sizeof head);

    if (!rc)
        rc = mfs_history_ring_save(h->hour, out);
    if (!rc)
        rc = mfs_history_ring_save(h->day, out);
    for (uint32_t i = 0; i < h->nnodes && !rc; i++) {
        rc = mfs_buf_append(out, h->node[i].name, sizeof h->node[i].name);
        if (!rc)
            rc = mfs_history_ring_save(h->node[i].ring, out);
    }
    if (rc)
        return rc;
    begin += sizeof head;
    head.sum = mfs_hash64(mfs_buf_data(out) + begin, mfs_buf_len(out) - begin, head.nnodes);
    memcpy(mfs_buf_data(out) + begin - sizeof head, &head, sizeof head);
    return 0;
}

static bool take(struct mfs_history_ring *r, const char **p, size_t *n)
{
    int64_t took = mfs_history_ring_load(r, *p, *n);

    if (took < 0)
        return false;
    *p += took;
    *n -= (size_t)took;
    return true;
}

static int take_node(struct mfs_history *h, const char **p, size_t *n)
{
    char name[MFS_NAME_MAX];
    struct mfs_history_node *node;

    if (*n < sizeof name)
        return -EINVAL;
    memcpy(name, *p, sizeof name);
    name[sizeof name - 1] = '\0';
    *p += sizeof name;
    *n -= sizeof name;
    node = add(h, name);
    if (!node)
        return -ENOMEM;
    return take(node->ring, p, n) ? 0 : -EINVAL;
}

static void empty(struct mfs_history *h)
{
    mfs_history_ring_clear(h->hour);
    mfs_history_ring_clear(h->day);
    forget_nodes(h);
}

int mfs_history_load(struct mfs_history *h, const void *p, size_t n)
{
    const char *at = (const char *)p + sizeof(struct head);
    struct head head;
    int rc;

    empty(h);
    if (n < sizeof head)
        return -EINVAL;
    memcpy(&head, p, sizeof head);
    n -= sizeof head;
    if (memcmp(head.magic, MAGIC, sizeof head.magic) != 0 || head.nnodes > MFS_HISTORY_NODES ||
        head.sum != mfs_hash64(at, n, head.nnodes))
        return -EINVAL;
    rc = take(h->hour, &at, &n) && take(h->day, &at, &n) ? 0 : -EINVAL;
    for (uint32_t i = 0; i < head.nnodes && !rc; i++)
        rc = take_node(h, &at, &n);
    if (!rc && !n)
        return 0;
    empty(h);
    return rc ? rc : -EINVAL;
}
