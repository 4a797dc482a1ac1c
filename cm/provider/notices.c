#include "cm/provider/notices.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/text.h"

enum kind { READY, FAILED, ENDED, RELEASED };

struct notice {
    enum kind kind;
    uint32_t node;
    struct mfs_err text; /* code 0 for what is no failure */
    struct notice *next;
};

struct mfs_notices {
    const struct mfs_provider_context *context;
    struct notice *first, **end;
    struct mfs_timer *soon; /* NULL: there is nothing to tell */
};

struct mfs_notices *mfs_notices_create(const struct mfs_provider_context *c)
{
    struct mfs_notices *n = calloc(1, sizeof *n);

    if (!n)
        return NULL;
    n->context = c;
    n->end = &n->first;
    return n;
}

static struct notice *take_first(struct mfs_notices *n)
{
    struct notice *first = n->first;

    n->first = first->next;
    if (!n->first)
        n->end = &n->first;
    return first;
}

void mfs_notices_destroy(struct mfs_notices *n)
{
    if (!n)
        return;
    mfs_timer_cancel(n->soon);
    while (n->first)
        free(take_first(n));
    free(n);
}

static void tell(const struct mfs_provider_context *c, const struct notice *x)
{
    switch (x->kind) {
    case READY:
        c->calls->ready(c->arg, x->node, x->text.msg);
        break;
    case FAILED:
        c->calls->failed(c->arg, x->node, &x->text);
        break;
    case ENDED:
        c->calls->ended(c->arg, x->node, x->text.msg);
        break;
    case RELEASED:
        c->calls->released(c->arg, x->node, x->text.code ? &x->text : NULL);
        break;
    }
}

static void tell_all(void *arg)
{
    struct mfs_notices *n = arg;

    n->soon = NULL;
    while (n->first) {
        struct notice *x = take_first(n);

        tell(n->context, x);
        free(x);
    }
}

static void add(struct mfs_notices *n, enum kind kind, uint32_t node, int code, const char *text)
{
    struct notice *x = calloc(1, sizeof *x);

    if (x && !n->soon)
        n->soon = mfs_loop_timer(n->context->loop, 0, 0, tell_all, n);
    if (!x || !n->soon) {
        mfs_error("provider", "node %u: %s: lost, as there is no memory", node, text);
        free(x);
        return;
    }
    *x = (struct notice){.kind = kind, .node = node};
    x->text.code = code;
    mfs_text_copy(x->text.msg, sizeof x->text.msg, text);
    *n->end = x;
    n->end = &x->next;
}

void mfs_notices_ready(struct mfs_notices *n, uint32_t node, const char *what)
{
    add(n, READY, node, 0, what);
}

void mfs_notices_failed(struct mfs_notices *n, uint32_t node, const struct mfs_err *why)
{
    add(n, FAILED, node, why->code, why->msg);
}

void mfs_notices_ended(struct mfs_notices *n, uint32_t node, const char *how)
{
    add(n, ENDED, node, 0, how);
}

void mfs_notices_released(struct mfs_notices *n, uint32_t node, const struct mfs_err *why)
{
    add(n, RELEASED, node, why ? why->code : 0, why ? why->msg : "");
}
