/* `cm clients`: the mounts of all nodes, and what they have done. */
#include <pwd.h>
#include <stdio.h>

#include "base/clock.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "cm/cli/verbs.h"
#include "show/clients.h"

#define TIME_LIMIT (10 * MFS_SEC)
static void name_user(uint32_t uid, char *out, size_t size)
{
    const struct passwd *user = getpwuid(uid);

    if (user)
        snprintf(out, size, "%s", user->pw_name);
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_mounts list;
    struct mfs_buf b;
    int rc = mfs_client_call(&call->paths, MFS_MSG_CLIENTS, NULL, TIME_LIMIT, &list, err);

    if (rc)
        return rc;
    mfs_buf_init(&b);
    rc = mfs_conf_flag(call->conf, "json") ? mfs_render_json(&mfs_mounts_schema, &list, &b)
                                           : mfs_show_clients(&list, name_user, &b);
    rc = mfs_render_print(rc, &b, err);
    mfs_schema_clear(&mfs_mounts_schema, &list);
    return rc;
}

const struct mfs_verb mfs_cm_clients = {
    .name = "clients",
    .summary = "show the mounts of all nodes, and what they have done",
    .about =
        "Shows each mount that a node's Local Manager knows: where it is, its process, user and\n"
        "version, since when it is there, when it last told of itself, how many operations it has\n"
        "done and how many of these ended with an error, the bytes of reads and writes, and how\n"
        "long 99 of 100 operations took at most.",
    .options = MFS_OPTIONS(mfs_json_options, mfs_deployment_options),
    .run = run};
