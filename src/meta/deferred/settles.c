/* Source entries of renames that this client has made, across partitions, which are yet to follow.
 * The decision stands at the target's partition and the intent in the entry, so whoever meets that
 * knows that the name is gone; here it is only cleared away, of many renames at once. If this
 * client dies, others do it as of any rename that was left (docs/design/metadata.md). */
#include "meta/internal.h"

#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "meta/call.h"
#include "meta/deferred/deferred.h"

#define AT_ONCE 64 /* so many do not wait for their time */

struct mfs_settle {
    uint64_t dir;
    uint32_t part, decider;
    char txn[MFS_TXN_LEN];
    struct mfs_settle *prev, *next;
    char name[];
};

struct mfs_settles {
    pthread_mutex_t flushing; /* one at a time: the next one then finds all done */
    pthread_mutex_t mutex;    /* a leaf */
    struct mfs_settle *list;  /* under mutex, as is what follows */
    unsigned n;               /* in the list */
};

struct mfs_settles *mfs_settles_create(void)
{
    struct mfs_settles *s = calloc(1, sizeof *s);

    if (s) {
        pthread_mutex_init(&s->flushing, NULL);
        pthread_mutex_init(&s->mutex, NULL);
    }
    return s;
}

static void drop(struct mfs_settle *list)
{
    struct mfs_settle *p, *next;

    DL_FOREACH_SAFE(list, p, next)
    {
        free(p);
    }
}

void mfs_settles_destroy(struct mfs_settles *s)
{
    if (!s)
        return;
    drop(s->list);
    pthread_mutex_destroy(&s->flushing);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

void mfs_settles_add(struct mfs_meta *meta, uint64_t dir, const char *name, uint32_t part,
                     const char *txn, uint32_t decider)
{
    struct mfs_settles *s = meta->settles;
    size_t len = strlen(name) + 1;
    struct mfs_settle *p = malloc(sizeof *p + len);
    bool many;

    if (!p)
        return; /* housekeeping will find it */
    p->dir = dir;
    p->part = part;
    p->decider = decider;
    memcpy(p->txn, txn, MFS_TXN_LEN);
    memcpy(p->name, name, len);
    pthread_mutex_lock(&s->mutex);
    DL_APPEND(s->list, p);
    many = ++s->n >= AT_ONCE;
    pthread_mutex_unlock(&s->mutex);
    mfs_ticker_work(&meta->closes_ticker);
    if (many)
        mfs_ticker_hurry(&meta->closes_ticker);
}

bool mfs_settles_has(struct mfs_meta *meta, const char *txn)
{
    struct mfs_settles *s = meta->settles;
    struct mfs_settle *p;
    bool found = false;

    pthread_mutex_lock(&s->mutex);
    DL_FOREACH(s->list, p)
    {
        found = found || !memcmp(p->txn, txn, MFS_TXN_LEN);
    }
    pthread_mutex_unlock(&s->mutex);
    return found;
}

/* --- clearing -----------------------------------------------------------------------------------
 */

struct batch {
    const struct mfs_settle *of[AT_ONCE];
    struct mfs_ino_arg dir[AT_ONCE];
    struct mfs_args args[AT_ONCE];
    struct mfs_cmd cmds[AT_ONCE];
    size_t n;
};

static void settle_args(struct mfs_args *args, const struct mfs_settle *p, struct mfs_ino_arg *dir)
{
    *dir = mfs_ino_arg(p->dir);
    mfs_args_bin(args, dir->b, sizeof dir->b);
    mfs_args_str(args, p->name);
    mfs_args_bin(args, p->txn, MFS_TXN_LEN);
    mfs_args_str(args, "");
}

/* What remains in the batch has followed. */
static void settle(struct mfs_meta *meta, struct batch *b)
{
    size_t done = 0;

    for (size_t i = 0; i < b->n; i++) {
        mfs_args_init(&b->args[i], "mfs_settle");
        settle_args(&b->args[i], b->of[i], &b->dir[i]);
        b->cmds[i] = mfs_args_cmd(&b->args[i], b->of[i]->part);
        b->cmds[i].idempotent = true;
    }
    mfs_store_exec(meta->store, b->cmds, b->n);
    for (size_t i = 0; i < b->n; i++)
        if (!b->cmds[i].rc)
            b->of[done++] = b->of[i];
    mfs_cmds_fini(b->cmds, b->n);
    b->n = done;
}

static void post_forget(struct mfs_meta *meta, const struct mfs_settle *p)
{
    struct mfs_call c;

    mfs_call_command(&c, "mfs_forget");
    mfs_args_bin(&c.args, p->txn, MFS_TXN_LEN);
    mfs_call_post(meta, &c, p->decider);
}

static void forget(struct mfs_meta *meta, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        mfs_args_init(&b->args[i], "mfs_forget");
        mfs_args_bin(&b->args[i], b->of[i]->txn, MFS_TXN_LEN);
        b->cmds[i] = mfs_args_cmd(&b->args[i], b->of[i]->decider);
        b->cmds[i].idempotent = true;
    }
    if (b->n)
        mfs_store_exec(meta->store, b->cmds, b->n);
    mfs_cmds_fini(b->cmds, b->n);
}

/* Frees the list. `wait`: until the outcomes are forgotten, too. */
static void clear(struct mfs_meta *meta, struct mfs_settle *list, bool wait)
{
    struct mfs_settle *at = list;
    struct batch *b = list ? malloc(sizeof *b) : NULL;

    while (b && at) {
        for (b->n = 0; at && b->n < AT_ONCE; at = at->next)
            b->of[b->n++] = at;
        settle(meta, b);
        for (size_t i = 0; !wait && i < b->n; i++)
            post_forget(meta, b->of[i]);
        if (wait)
            forget(meta, b);
    }
    free(b);
    drop(list);
}

void mfs_settles_flush(struct mfs_meta *meta)
{
    struct mfs_settles *s = meta->settles;
    struct mfs_settle *list;

    pthread_mutex_lock(&s->flushing);
    pthread_mutex_lock(&s->mutex);
    list = s->list;
    s->list = NULL;
    s->n = 0;
    pthread_mutex_unlock(&s->mutex);
    clear(meta, list, true);
    pthread_mutex_unlock(&s->flushing);
}

void mfs_settles_now(struct mfs_meta *meta, uint64_t dir)
{
    struct mfs_settles *s = meta->settles;
    struct mfs_settle *p, *next, *list = NULL;

    pthread_mutex_lock(&s->mutex);
    DL_FOREACH_SAFE(s->list, p, next)
    {
        if (p->dir == dir) {
            DL_DELETE(s->list, p);
            s->n--;
            DL_APPEND(list, p);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    clear(meta, list, false);
}

/* --- along with what comes next under the name ---------------------------------------------------
 */

struct mfs_settle *mfs_settles_take(struct mfs_meta *meta, uint64_t dir, const char *name)
{
    struct mfs_settles *s = meta->settles;
    struct mfs_settle *p, *found = NULL;

    pthread_mutex_lock(&s->mutex);
    DL_FOREACH(s->list, p)
    {
        if (p->dir == dir && !strcmp(p->name, name))
            found = p;
    }
    if (found) {
        DL_DELETE(s->list, found);
        s->n--;
    }
    pthread_mutex_unlock(&s->mutex);
    return found;
}

void mfs_settles_call(struct mfs_calls *calls, const struct mfs_settle *p, struct mfs_ino_arg *dir)
{
    settle_args(&mfs_calls_add(calls, "mfs_settle", p->part)->args, p, dir);
}

void mfs_settles_called(struct mfs_meta *meta, struct mfs_settle *p, const struct mfs_call *c)
{
    if (p && !c->cmd.rc && c->cmd.reply) /* else it is housekeeping's */
        post_forget(meta, p);
    free(p);
}
