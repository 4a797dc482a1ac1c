/* Keys in bulk. Deleting goes by mfs_sdel with some hundred keys a command, so that no partition is
 * kept from its other clients for long; searching by SCAN on all partitions at once. */
#include "data/stripes/stripe_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/placement.h"
#include "store/args.h"
#include "store/keys.h"
#include "store/reply.h"

#define SLAB         8192U /* stripes deleted per round trip */
#define KEYS_PER_CMD 512U
#define BYTES_MAX    ((int64_t)KEYS_PER_CMD << 24) /* no stripe has more than 16 MiB */
#define SCAN_COUNT   "10000"
#define SCAN_PAYS    4096U /* fewer possible stripes are asked for one by one in any case */

struct item {
    uint32_t part, stripe;
};

static int item_cmp(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    return x->part < y->part ? -1 : x->part > y->part;
}

/* The deletion of one slab: keys sorted by partition, cut into commands. */
struct slab {
    struct item *items;
    char (*keys)[MFS_KEY_STRIPE_LEN];
    struct mfs_arg *args; /* three words before each command's keys */
    struct mfs_cmd *cmds;
    size_t ncmds;
};

static int slab_init(struct slab *s, size_t n)
{
    *s = (struct slab){.items = malloc((n + 1) * sizeof *s->items),
                       .keys = malloc((n + 1) * sizeof *s->keys),
                       .args = malloc((2 * n + 1) * sizeof *s->args),
                       .cmds = malloc((n + MFS_STRIPE_EDITS_MAX) * sizeof *s->cmds)};
    return s->items && s->keys && s->args && s->cmds ? 0 : -ENOMEM;
}

static void slab_fini(struct slab *s)
{
    free(s->items);
    free(s->keys);
    free(s->args);
    free(s->cmds);
}

static void slab_add_deletes(struct slab *s, uint64_t ino, const uint32_t *stripes, size_t n,
                             uint32_t nparts)
{
    struct mfs_cmd *cmd = NULL;
    struct mfs_arg *arg = s->args;

    for (size_t i = 0; i < n; i++)
        s->items[i] = (struct item){mfs_placement_stripe(ino, stripes[i], nparts), stripes[i]};
    qsort(s->items, n, sizeof *s->items, item_cmp);
    for (size_t i = 0; i < n; i++) {
        if (!cmd || cmd->part != s->items[i].part || cmd->argc == 1 + KEYS_PER_CMD) {
            cmd = &s->cmds[s->ncmds++];
            *cmd = (struct mfs_cmd){
                .part = s->items[i].part, .argv = arg, .argc = 1, .idempotent = true};
            *arg++ = (struct mfs_arg){"mfs_sdel", 8};
        }
        mfs_key_stripe(s->keys[i], ino, s->items[i].stripe);
        *arg++ = (struct mfs_arg){s->keys[i], MFS_KEY_STRIPE_LEN};
        cmd->argc++;
    }
}

static void edit_cmd(struct mfs_args *a, char *key, uint64_t ino, const struct mfs_stripe_edit *e)
{
    mfs_key_stripe(key, ino, e->stripe);
    mfs_args_init(a, e->command);
    mfs_args_bin(a, key, MFS_KEY_STRIPE_LEN);
    mfs_args_int(a, e->a);
    if (strcmp(e->command, "mfs_szero") == 0)
        mfs_args_int(a, e->b);
}

/* Bytes of stripes, as a partition counts them; what cannot be counts as none. */
static int64_t reply_bytes(const struct mfs_reply *r)
{
    int64_t n = mfs_reply_int(r);

    return n >= 0 && n <= BYTES_MAX ? n : 0;
}

/* mfs_sdel answers with the bytes freed, edits with the old and the new length. */
static int64_t reply_grown(const struct mfs_reply *r)
{
    if (mfs_reply_type(r) == MFS_REPLY_ARRAY)
        return reply_bytes(mfs_reply_at(r, 1)) - reply_bytes(mfs_reply_at(r, 0));
    return -reply_bytes(r);
}

static int delete_slab(struct mfs_store *store, uint64_t ino, const struct mfs_stripe_edit *edits,
                       size_t nedits, const uint32_t *stripes, size_t n, int64_t *grown)
{
    uint32_t nparts = mfs_store_nparts(store);
    struct mfs_args args[MFS_STRIPE_EDITS_MAX];
    char keys[MFS_STRIPE_EDITS_MAX][MFS_KEY_STRIPE_LEN];
    struct slab s;
    int rc = slab_init(&s, n);

    if (rc)
        goto out;
    slab_add_deletes(&s, ino, stripes, n, nparts);
    for (size_t i = 0; i < nedits; i++) {
        edit_cmd(&args[i], keys[i], ino, &edits[i]);
        s.cmds[s.ncmds] =
            mfs_args_cmd(&args[i], mfs_placement_stripe(ino, edits[i].stripe, nparts));
        s.cmds[s.ncmds++].idempotent = true;
    }
    rc = mfs_store_exec(store, s.cmds, s.ncmds);
    for (size_t i = 0; i < s.ncmds; i++)
        if (!s.cmds[i].rc)
            *grown += reply_grown(s.cmds[i].reply);
    mfs_cmds_fini(s.cmds, s.ncmds);
out:
    slab_fini(&s);
    return rc;
}

int mfs_stripe_delete(struct mfs_store *store, uint64_t ino, const struct mfs_stripe_edit *edits,
                      size_t nedits, const uint32_t *stripes, size_t n, int64_t *grown)
{
    int rc;

    do {
        size_t now = n < SLAB ? n : SLAB;

        rc = now || nedits ? delete_slab(store, ino, edits, nedits, stripes, now, grown) : 0;
        nedits = 0;
        stripes += now;
        n -= now;
    } while (n && !rc);
    return rc;
}

int mfs_stripe_scan_pays(struct mfs_store *store, uint64_t count, bool *pays)
{
    uint32_t nparts = mfs_store_nparts(store);
    struct mfs_arg arg = {"DBSIZE", 6};
    struct mfs_cmd *cmds;
    uint64_t keys = 0;
    int rc;

    *pays = false;
    if (count <= SCAN_PAYS)
        return 0;
    cmds = calloc(nparts, sizeof *cmds);
    if (!cmds)
        return -ENOMEM;
    for (uint32_t i = 0; i < nparts; i++)
        cmds[i] = (struct mfs_cmd){.part = i, .argv = &arg, .argc = 1, .idempotent = true};
    rc = mfs_store_exec(store, cmds, nparts);
    for (uint32_t i = 0; i < nparts && !rc; i++)
        keys += (uint64_t)mfs_reply_int(cmds[i].reply);
    mfs_cmds_fini(cmds, nparts);
    free(cmds);
    *pays = count > keys;
    return rc;
}

/* "S<ino>*", the bytes that SCAN's patterns know escaped. */
static size_t scan_pattern(char out[2 * MFS_KEY_INO_LEN + 1], uint64_t ino)
{
    char key[MFS_KEY_INO_LEN];
    size_t n = 0;

    mfs_key_ino(key, 'S', ino);
    for (size_t i = 0; i < sizeof key; i++) {
        if (memchr("*?[]\\^-", key[i], 7))
            out[n++] = '\\';
        out[n++] = key[i];
    }
    out[n++] = '*';
    return n;
}

struct cursor {
    char text[24]; /* "" when this partition is through */
    struct mfs_arg argv[6];
};

static int take_scan_reply(const struct mfs_reply *r, struct cursor *c, mfs_stripe_scan_fn *fn,
                           void *arg)
{
    const struct mfs_reply *keys = mfs_reply_at(r, 1);
    size_t len, count = mfs_reply_count(keys), n = 0;
    const char *next = mfs_reply_str(mfs_reply_at(r, 0), &len);
    uint32_t *stripes = malloc((count + 1) * sizeof *stripes);
    int rc = -ENOMEM;

    if (!stripes)
        goto out;
    rc = -EIO;
    if (!next || len >= sizeof c->text)
        goto out;
    memcpy(c->text, next, len);
    c->text[len] = 0;
    if (strcmp(c->text, "0") == 0)
        c->text[0] = 0;
    for (size_t i = 0; i < count; i++) {
        const char *key = mfs_reply_str(mfs_reply_at(keys, i), &len);

        if (key && len == MFS_KEY_STRIPE_LEN)
            stripes[n++] = mfs_get_be32(key + MFS_KEY_INO_LEN);
    }
    rc = n ? fn(arg, stripes, n) : 0;
out:
    free(stripes);
    return rc;
}

/* One SCAN step on every partition that is not through yet; `*left` tells how many there were. */
static int scan_round(struct mfs_store *store, struct cursor *cursors, struct mfs_cmd *cmds,
                      mfs_stripe_scan_fn *fn, void *arg, size_t *left)
{
    uint32_t nparts = mfs_store_nparts(store);
    size_t n = 0;
    int rc;

    for (uint32_t i = 0; i < nparts; i++) {
        if (!cursors[i].text[0])
            continue;
        cursors[i].argv[1] = (struct mfs_arg){cursors[i].text, strlen(cursors[i].text)};
        cmds[n++] =
            (struct mfs_cmd){.part = i, .argv = cursors[i].argv, .argc = 6, .idempotent = true};
    }
    *left = n;
    rc = mfs_store_exec(store, cmds, n);
    for (size_t i = 0; i < n && !rc; i++)
        rc = take_scan_reply(cmds[i].reply, &cursors[cmds[i].part], fn, arg);
    mfs_cmds_fini(cmds, n);
    return rc;
}

int mfs_stripe_scan(struct mfs_store *store, uint64_t ino, mfs_stripe_scan_fn *fn, void *arg)
{
    uint32_t nparts = mfs_store_nparts(store);
    struct cursor *cursors = calloc(nparts, sizeof *cursors);
    struct mfs_cmd *cmds = calloc(nparts, sizeof *cmds);
    char pattern[2 * MFS_KEY_INO_LEN + 1];
    size_t len = scan_pattern(pattern, ino), left;
    int rc = cursors && cmds ? 0 : -ENOMEM;

    if (rc)
        goto out;
    for (uint32_t i = 0; i < nparts; i++) {
        struct mfs_arg argv[] = {{"SCAN", 4},    {NULL, 0},    {"MATCH", 5},
                                 {pattern, len}, {"COUNT", 5}, {SCAN_COUNT, 5}};

        memcpy(cursors[i].argv, argv, sizeof argv);
        strcpy(cursors[i].text, "0");
    }
    do
        rc = scan_round(store, cursors, cmds, fn, arg, &left);
    while (left && !rc);
out:
    free(cursors);
    free(cmds);
    return rc;
}

int mfs_stripe_lengths(struct mfs_store *store, uint64_t ino, uint32_t first, size_t n,
                       uint32_t *lengths)
{
    uint32_t nparts = mfs_store_nparts(store);
    struct mfs_cmd *cmds = calloc(n, sizeof *cmds);
    struct mfs_arg *args = calloc(2 * n, sizeof *args);
    char(*keys)[MFS_KEY_STRIPE_LEN] = malloc(n * sizeof *keys);
    int rc = cmds && args && keys ? 0 : -ENOMEM;

    if (rc)
        goto out;
    for (size_t i = 0; i < n; i++) {
        uint32_t stripe = first + (uint32_t)i;

        mfs_key_stripe(keys[i], ino, stripe);
        args[2 * i] = (struct mfs_arg){"STRLEN", 6};
        args[2 * i + 1] = (struct mfs_arg){keys[i], MFS_KEY_STRIPE_LEN};
        cmds[i] = (struct mfs_cmd){.part = mfs_placement_stripe(ino, stripe, nparts),
                                   .argv = args + 2 * i,
                                   .argc = 2,
                                   .idempotent = true};
    }
    rc = mfs_store_exec(store, cmds, n);
    for (size_t i = 0; i < n && !rc; i++)
        lengths[i] = (uint32_t)mfs_reply_int(cmds[i].reply);
    mfs_cmds_fini(cmds, n);
out:
    free(cmds);
    free(args);
    free(keys);
    return rc;
}
