/* The EC2 provider: a node is an instance, whose user data start the lm when it has booted.
 *
 *              RunInstances              DescribeInstances              DescribeInstances
 *     none -----------------> it waits -------------------> it runs ----------------------> lost
 *      ^                         |            running                 shutting-down, stopped
 *      +-------------------------+ failed
 *
 * What is noted of a node is "instance ID". An instance has tags, made of the deployment's secret
 * and the node's id, by which one whose number could not be noted any more is found all the same,
 * and a client token, so that a request that comes twice asks for one. A node whose instance has
 * gone is not given another one: its place is lost, and with it what the node held. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cm/provider/ec2/impl.h"
#include "cm/provider/options.h"

#define HANDLE "instance "

/* ---- places ---------------------------------------------------------------------------------- */

static struct mfs_ec2_place *find(const struct mfs_ec2 *e, uint32_t node)
{
    struct mfs_ec2_place *p = e->first;

    while (p && p->node != node)
        p = p->next;
    return p;
}

static struct mfs_ec2_place *list(struct mfs_ec2 *e, uint32_t node, enum mfs_ec2_state state)
{
    struct mfs_ec2_place *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    *p = (struct mfs_ec2_place){.of = e, .node = node, .state = state, .next = e->first};
    e->first = p;
    return p;
}

void mfs_ec2_unlist(struct mfs_ec2_place *p)
{
    struct mfs_ec2_place **at = &p->of->first;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    mfs_ec2_drop(p->call);
    free(p);
}

/* Of an earlier cm, with what it noted; without, it may have asked for one, and tags tell. */
static struct mfs_ec2_place *take_up(struct mfs_ec2 *e, const struct mfs_provider_node *n,
                                     enum mfs_ec2_state state)
{
    struct mfs_ec2_place *p = list(e, n->id, state);

    if (p && !strncmp(n->handle, HANDLE, strlen(HANDLE)))
        mfs_text_copy(p->id, sizeof p->id, n->handle + strlen(HANDLE));
    return p;
}

int mfs_ec2_note(const struct mfs_ec2_place *p)
{
    const struct mfs_provider_context *c = p->of->context;
    char handle[MFS_PROVIDER_HANDLE_MAX];
    int rc = mfs_text_format(handle, sizeof handle, HANDLE "%s", p->id);

    return rc ? rc : c->calls->note(c->arg, p->node, handle);
}

/* ---- requests -------------------------------------------------------------------------------- */

static int begin(struct mfs_ec2 *e, const struct mfs_provider_node *n, struct mfs_err *err)
{
    struct mfs_ec2_place *p = find(e, n->id);
    int rc;

    if (!p)
        p = take_up(e, n, n->handle[0] ? MFS_EC2_WAITS : MFS_EC2_NONE);
    else if (p->state == MFS_EC2_LOST)
        return mfs_err_set(err, -ENODEV, "its instance %s has gone", p->id);
    else if (p->state != MFS_EC2_NONE)
        return mfs_err_set(err, -EALREADY, "instance %s is there already", p->id);
    if (!p)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    if (p->state == MFS_EC2_WAITS)
        return 0; /* a look tells the rest */
    rc = mfs_ec2_run(p, n, err);
    if (!rc)
        p->state = MFS_EC2_ASKED;
    return rc;
}

static int request(void *state, const struct mfs_provider_node *n, uint32_t count,
                   struct mfs_err *err)
{
    struct mfs_ec2 *e = state;

    for (uint32_t i = 0; i < count; i++)
        if (begin(e, &n[i], err))
            mfs_notices_failed(e->notices, n[i].id, err);
    return 0;
}

static enum mfs_provided adopt(void *state, const struct mfs_provider_node *n,
                               char what[MFS_PROVIDER_WHAT_MAX])
{
    (void)what;
    return take_up(state, n, MFS_EC2_WAITS) ? MFS_PROVIDED_REQUESTED : MFS_PROVIDED_NONE;
}

/* The connection ends an lm; the release, what is left. */
static int pass_signal(void *state, uint32_t node, int signo)
{
    (void)signo;
    return find(state, node) ? -ENOSYS : -ESRCH;
}

static int release(void *state, const struct mfs_provider_node *n)
{
    struct mfs_ec2 *e = state;
    struct mfs_ec2_place *p = find(e, n->id);

    if (!p)
        p = take_up(e, n, MFS_EC2_LEAVING);
    if (!p)
        return 0; /* cm gives up waiting, and says so */
    if (p->state == MFS_EC2_NONE) {
        mfs_ec2_unlist(p);
        return 1;
    }
    if (p->id[0] && !p->call)
        mfs_ec2_terminate(p);
    else
        p->state = MFS_EC2_LEAVING; /* the answer, or a look, tells which one */
    return 0;
}

/* ---- the provider ---------------------------------------------------------------------------- */

static void close_ec2(void *state)
{
    struct mfs_ec2 *e = state;

    while (e->first)
        mfs_ec2_unlist(e->first);
    mfs_timer_cancel(e->timer);
    mfs_ec2_drop(e->look);
    mfs_ec2_api_destroy(e->api);
    mfs_notices_destroy(e->notices);
    free(e);
}

static int name_tag(struct mfs_ec2 *e)
{
    const char *fields[] = {"ec2", "deployment"};
    char mac[MFS_MAC_TEXT];
    int rc = mfs_mac(e->context->secret->bytes, e->context->secret->len, fields, 2, mac);

    return rc ? rc : mfs_text_format(e->tag, sizeof e->tag, "%.32s", mac);
}

static int open_ec2(const struct mfs_provider_context *c, void **state, struct mfs_err *err)
{
    const char *region = mfs_provider_option(c, "ec2-region");
    struct mfs_ec2 *e = calloc(1, sizeof *e);

    if (!e)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    e->context = c;
    e->notices = mfs_notices_create(c);
    e->timer = mfs_loop_timer(c->loop, MFS_EC2_LOOK, MFS_EC2_LOOK, mfs_ec2_look, e);
    e->api =
        mfs_ec2_api_create(c->loop, region ? region : "", mfs_provider_option(c, "ec2-endpoint"));
    if (e->notices && e->timer && e->api && !name_tag(e)) {
        *state = e;
        return 0;
    }
    close_ec2(e);
    return mfs_err_set(err, -ENOMEM, "out of memory");
}

static const struct mfs_provider_traits traits = {
    .name = "ec2", .own_machines = true, .queue_time = 300 * MFS_SEC};

const struct mfs_provider mfs_provider_ec2 = {.traits = &traits,
                                              .options = mfs_ec2_options,
                                              .environment = mfs_ec2_environment,
                                              .check = mfs_ec2_check,
                                              .open = open_ec2,
                                              .close = close_ec2,
                                              .adopt = adopt,
                                              .request = request,
                                              .signal = pass_signal,
                                              .release = release};
