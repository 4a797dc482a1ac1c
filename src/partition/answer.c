#include "partition/answer.h"

#include <stdlib.h>
#include <string.h>

/* The server itself ends when there is no memory, and so do we. */
void mfs_answer_reserve(struct mfs_answer *a, size_t n)
{
    if (a->room >= a->n + n)
        return;
    a->room = a->n + n;
    a->p = realloc(a->p, a->room);
    if (!a->p)
        abort();
}

void mfs_answer_add(struct mfs_answer *a, const void *p, size_t n)
{
    if (a->room < a->n + n)
        mfs_answer_reserve(a, a->n + 2 * n + 256);
    if (n)
        memcpy(a->p + a->n, p, n);
    a->n += n;
}

void mfs_answer_byte(struct mfs_answer *a, size_t byte)
{
    mfs_answer_add(a, &(char){(char)byte}, 1);
}

void mfs_answer_span(struct mfs_answer *a, struct mfs_span s)
{
    mfs_answer_add(a, s.p, s.n);
}

void mfs_answer_fini(struct mfs_answer *a)
{
    free(a->p);
}

int mfs_answer_send(struct mfs_answer *a, struct RedisModuleCtx *ctx)
{
    int rc = mfs_redis.ReplyWithStringBuffer(ctx, a->p ? a->p : "", a->n);

    free(a->p);
    return rc;
}
