/* The callers that wait for a mount, and how they are answered. */
#include <errno.h>
#include <stdlib.h>

#include "lm/mount/mounter_impl.h"

struct mfs_mounter_waiter {
    struct mfs_mounter_waiter *next;
    mfs_mounter_done *done;
    void *arg;
};

void mfs_mounter_forget(struct mfs_mounter_waiter **list)
{
    while (*list) {
        struct mfs_mounter_waiter *next = (*list)->next;

        free(*list);
        *list = next;
    }
}

int mfs_mounter_await(struct mfs_mounter_waiter **list, mfs_mounter_done *done, void *arg)
{
    struct mfs_mounter_waiter *w = calloc(1, sizeof *w);

    if (!w)
        return -ENOMEM;
    *w = (struct mfs_mounter_waiter){*list, done, arg};
    *list = w;
    return 0;
}

void mfs_mounter_answer(struct mfs_mounter_waiter **list, const struct mfs_err *err)
{
    struct mfs_mounter_waiter *now = *list;

    *list = NULL;
    while (now) {
        struct mfs_mounter_waiter *next = now->next;

        now->done(now->arg, err);
        free(now);
        now = next;
    }
}

struct refusal {
    mfs_mounter_done *done;
    void *arg;
    struct mfs_err err;
};

static void refuse(void *arg)
{
    struct refusal *r = arg;

    r->done(r->arg, r->err.code ? &r->err : NULL);
    free(r);
}

void mfs_mounter_answer_later(struct mfs_loop *loop, mfs_mounter_done *done, void *arg,
                              const struct mfs_err *err)
{
    struct refusal *r = calloc(1, sizeof *r);

    if (!r)
        return;
    *r = (struct refusal){done, arg, *err};
    if (mfs_loop_post(loop, refuse, r))
        free(r);
}
