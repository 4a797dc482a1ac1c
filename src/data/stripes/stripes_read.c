/* Reading stripes: a whole one with GET, a part with GETRANGE, each received straight into place.
 */
#include "data/stripes/stripes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/placement.h"
#include "data/stripes/geometry.h"
#include "data/stripes/stripe_io.h"
#include "store/keys.h"

#define GETS_ON_STACK 4

/* The arguments of one read. */
struct request {
    char key[MFS_KEY_STRIPE_LEN];
    char from[11], to[11];
    struct mfs_arg argv[4];
};

static struct mfs_cmd plan_get(struct request *r, const struct mfs_stripe_get *get,
                               uint32_t stripe_size, uint32_t nparts)
{
    struct mfs_cmd cmd = {.part = mfs_placement_stripe(get->ino, get->stripe, nparts),
                          .argv = r->argv,
                          .argc = 2,
                          .into = get->into,
                          .into_cap = get->len,
                          .idempotent = true};
    int n;

    mfs_key_stripe(r->key, get->ino, get->stripe);
    r->argv[0] = (struct mfs_arg){"GET", 3};
    r->argv[1] = (struct mfs_arg){r->key, sizeof r->key};
    if (get->len == stripe_size)
        return cmd;
    r->argv[0] = (struct mfs_arg){"GETRANGE", 8};
    n = snprintf(r->from, sizeof r->from, "%u", get->off);
    r->argv[2] = (struct mfs_arg){r->from, (size_t)n};
    n = snprintf(r->to, sizeof r->to, "%u", get->off + get->len - 1);
    r->argv[3] = (struct mfs_arg){r->to, (size_t)n};
    cmd.argc = 4;
    return cmd;
}

static int take_result(struct mfs_stripe_get *get, const struct mfs_cmd *cmd)
{
    size_t have = cmd->into_len > 0 ? (size_t)cmd->into_len : 0;

    get->rc = cmd->rc;
    if (!cmd->rc && have < get->len)
        memset((char *)get->into + have, 0, get->len - have);
    return cmd->rc;
}

int mfs_stripe_get(struct mfs_store *store, struct mfs_stripe_get *gets, size_t n)
{
    uint32_t nparts = mfs_store_nparts(store);
    struct mfs_cmd few_cmds[GETS_ON_STACK], *cmds = few_cmds;
    struct request few_requests[GETS_ON_STACK], *requests = few_requests;
    int rc = 0;

    if (n > GETS_ON_STACK) {
        cmds = malloc(n * sizeof *cmds);
        requests = malloc(n * sizeof *requests);
    }
    if (!cmds || !requests) {
        rc = -ENOMEM;
        for (size_t i = 0; i < n; i++)
            gets[i].rc = rc;
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        cmds[i] = plan_get(&requests[i], &gets[i], mfs_store_stripe_of(store, gets[i].ino), nparts);
    mfs_store_exec(store, cmds, n);
    for (size_t i = 0; i < n; i++) {
        int one = take_result(&gets[i], &cmds[i]);

        rc = rc ? rc : one;
    }
    mfs_cmds_fini(cmds, n);
out:
    if (n > GETS_ON_STACK) {
        free(cmds);
        free(requests);
    }
    return rc;
}

int mfs_stripes_read(struct mfs_store *store, uint64_t ino, uint64_t off, size_t len, void *buf)
{
    uint32_t size = mfs_store_stripe_of(store, ino);
    size_t n = len ? (size_t)((off + len - 1) / size - off / size + 1) : 0, done = 0;
    struct mfs_stripe_get few[GETS_ON_STACK], *gets = few;
    int rc;

    if (!len)
        return 0;
    if (n > GETS_ON_STACK && !(gets = malloc(n * sizeof *gets)))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct mfs_piece piece = mfs_geometry_piece(off + done, len - done, size);

        gets[i] =
            (struct mfs_stripe_get){ino, piece.stripe, piece.off, piece.len, (char *)buf + done, 0};
        done += piece.len;
    }
    rc = mfs_stripe_get(store, gets, n);
    if (gets != few)
        free(gets);
    return rc;
}
