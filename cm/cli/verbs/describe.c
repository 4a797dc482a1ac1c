/* `cm describe`: all that is known of a node, a partition or a mount. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cm/ask/client.h"
#include "cm/cli/describe.h"
#include "cm/cli/render.h"
#include "cm/cli/verbs.h"
#include "cm/state/event_reader.h"

#define TIME_LIMIT    (10 * MFS_SEC)
#define CLIENTS_LIMIT MFS_SEC

/* Where cm is on another machine its events are there, and none are shown. */
static int add_events(const struct mfs_paths *p, struct mfs_description *d, struct mfs_err *err)
{
    int n = mfs_event_last(p, mfs_describe_event, d, d->event, MFS_DESCRIBE_EVENTS);

    if (n < 0 && n != -ENOENT)
        return mfs_err_set(err, n, "%s: %s", p->events, strerror(-n));
    d->nevents = n > 0 ? (uint32_t)n : 0;
    return 0;
}

/* What clients have done comes by a question of its own; where it does not, the rest is shown. */
static void add_clients(const struct mfs_paths *p, struct mfs_status *s)
{
    struct mfs_mounts list;
    struct mfs_err none;

    if (mfs_client_call(p, MFS_MSG_CLIENTS, NULL, CLIENTS_LIMIT, &list, &none))
        return;
    s->mount = list.mount;
    s->nmounts = list.n;
    list.mount = NULL; /* s has it now */
    list.n = 0;
    mfs_schema_clear(&mfs_mounts_schema, &list);
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_description d;
    struct mfs_status s;
    struct mfs_buf b;
    int rc = mfs_client_call(&call->paths, MFS_MSG_STATUS, NULL, TIME_LIMIT, &s, err);

    if (rc)
        return rc;
    add_clients(&call->paths, &s);
    rc = mfs_describe(&s, call->args[0], &d, err);
    mfs_schema_clear(&mfs_status_schema, &s);
    if (rc)
        return rc;
    rc = add_events(&call->paths, &d, err);
    if (!rc) {
        mfs_buf_init(&b);
        rc = mfs_conf_flag(call->conf, "json") ? mfs_render_json(&mfs_description_schema, &d, &b)
                                               : mfs_describe_render(&d, &b);
        rc = mfs_render_print(rc, &b, err);
    }
    mfs_schema_clear(&mfs_description_schema, &d);
    return rc;
}

const struct mfs_verb mfs_cm_describe = {
    .name = "describe",
    .args = "NODE|PARTITION|MOUNT",
    .summary = "show all that is known of one of them, with its last events",
    .least = 1,
    .most = 1,
    .options = MFS_OPTIONS(mfs_json_options, mfs_deployment_options),
    .run = run};
