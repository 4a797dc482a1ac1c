/* The local provider: each node is an lm on this machine, with an address of 127.0.0.0/8. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/provider/children.h"

struct local {
    const struct mfs_provider_context *context;
    struct mfs_notices *notices;
    struct mfs_children *children;
};

static void close_local(void *state)
{
    struct local *l = state;

    mfs_children_destroy(l->children);
    mfs_notices_destroy(l->notices);
    free(l);
}

static int open_local(const struct mfs_provider_context *c, void **state, struct mfs_err *err)
{
    struct local *l = calloc(1, sizeof *l);

    if (!l)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    l->context = c;
    l->notices = mfs_notices_create(c);
    l->children = mfs_children_create(c, l->notices);
    if (!l->notices || !l->children) {
        close_local(l);
        return mfs_err_set(err, -ENOMEM, "out of memory");
    }
    *state = l;
    return 0;
}

static enum mfs_provided adopt(void *state, const struct mfs_provider_node *n,
                               char what[MFS_PROVIDER_WHAT_MAX])
{
    const struct local *l = state;

    return mfs_children_adopt(l->children, n, what) ? MFS_PROVIDED_STARTED : MFS_PROVIDED_NONE;
}

static int start(const struct local *l, const struct mfs_provider_node *n, struct mfs_err *err)
{
    struct mfs_lm_command c;
    int rc = mfs_provider_command(l->context, n, &c);

    if (rc)
        return mfs_err_set(err, rc, "%s", strerror(-rc));
    return mfs_children_start(l->children, n, c.argv, err);
}

static int request(void *state, const struct mfs_provider_node *n, uint32_t count,
                   struct mfs_err *err)
{
    const struct local *l = state;

    for (uint32_t i = 0; i < count; i++)
        if (start(l, &n[i], err))
            mfs_notices_failed(l->notices, n[i].id, err);
    return 0;
}

static int pass_signal(void *state, uint32_t node, int signo)
{
    return mfs_children_signal(((struct local *)state)->children, node, signo);
}

static int release(void *state, const struct mfs_provider_node *n)
{
    mfs_children_drop(((struct local *)state)->children, n->id);
    return 1;
}

static const struct mfs_provider_traits traits = {
    .name = "local", .sees_processes = true, .one_machine = true};

const struct mfs_provider mfs_provider_local = {.traits = &traits,
                                                .open = open_local,
                                                .close = close_local,
                                                .adopt = adopt,
                                                .request = request,
                                                .signal = pass_signal,
                                                .release = release};
