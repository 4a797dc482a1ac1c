/* What the page changes, where it may (--ui-write): the same as `cm scale`, `cm drain` and `cm
 * policy`. It is answered when the change has begun, as the page shows how it goes on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "cluster/placement.h"
#include "cm/change/autoscale.h"
#include "cm/change/scale/scale.h"
#include "cm/life/ui.h"
#include "proto/json.h"

#define AREA     "ui"
#define ACCEPTED 202
#define WRONG    400 /* as it can't be meant */
#define NOT_NOW  409 /* as things are */
#define SOON     503 /* in a second it may be otherwise: nodes have not told their figures yet, say */

static const char *word(const cJSON *json, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);

    return cJSON_IsString(item) ? item->valuestring : "";
}

static int count(const cJSON *json, const char *name, uint32_t *out, struct mfs_err *err)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(json, name);

    if (!cJSON_IsNumber(n) || n->valuedouble < 1 || n->valuedouble > MFS_PARTITIONS_MAX ||
        n->valuedouble != (double)(uint32_t)n->valuedouble)
        return mfs_err_set(err, -EINVAL, "\"%s\" is a number of nodes", name);
    *out = (uint32_t)n->valuedouble;
    return 0;
}

/* Events and the log tell how it ended. */
static void over(void *arg, const struct mfs_err *err, const struct mfs_scale_report *r)
{
    (void)arg;
    (void)r;
    if (err)
        mfs_warn(AREA, "what the page has begun has failed: %s", err->msg);
}

/* What was confirmed is a change of so many nodes, or of this policy: to more nodes may be to fewer
 * by now. */
static int scale(struct mfs_cm *cm, const cJSON *json, const char *who, struct mfs_err *err)
{
    struct mfs_msg_scale what = {.how = "to"};
    uint32_t from = 0;

    if (count(json, "nodes", &what.n, err) || count(json, "from", &from, err))
        return err->code;
    if (from != cm->state.nnodes)
        return mfs_err_set(err, -ESTALE, "not from %s, there are %u now: ask again",
                           MFS_TEXT_COUNT(from, "node"), cm->state.nnodes);
    return mfs_scale_begin(cm, &what, who, over, cm, err);
}

static int drain(struct mfs_cm *cm, const cJSON *json, const char *who, struct mfs_err *err)
{
    struct mfs_scale_node node;
    struct mfs_msg_scale what = {.how = "drain", .nnodes = 1, .node = &node};

    memset(&node, 0, sizeof node);
    if (!word(json, "node")[0] || mfs_text_copy(node.name, sizeof node.name, word(json, "node")))
        return mfs_err_set(err, -EINVAL, "\"node\" is the name of a node");
    return mfs_scale_begin(cm, &what, who, over, cm, err);
}

static int policy(struct mfs_cm *cm, const cJSON *json, const char *who, struct mfs_err *err)
{
    const char *from = word(json, "from");
    char by[MFS_TEXT_MAX];

    if (!from[0])
        return mfs_err_set(err, -EINVAL, "\"from\" is the policy that is to end");
    if (strcmp(from, cm->state.policy) != 0)
        return mfs_err_set(err, -ESTALE, "not from %.64s, the policy is %s now: ask again", from,
                           cm->state.policy);
    snprintf(by, sizeof by, ", by %s", who);
    return mfs_autoscale_change(cm, word(json, "name"), by, err);
}

static const struct change {
    const char *name;
    int (*run)(struct mfs_cm *cm, const cJSON *json, const char *who, struct mfs_err *err);
} changes[] = {{"scale", scale}, {"drain", drain}, {"policy", policy}};

static const struct change *find(const cJSON *json)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (!strcmp(changes[i].name, word(json, "do")))
            return &changes[i];
    return NULL;
}

static unsigned status_of(int rc)
{
    return !rc ? ACCEPTED : rc == -EINVAL ? WRONG : rc == -EAGAIN ? SOON : NOT_NOW;
}

static const char *outcome(const struct mfs_cm *cm, const struct change *what)
{
    if (what->run == policy)
        return "it is set";
    return mfs_cm_changing(cm) ? "begun" : "it is so already";
}

/* What was posted is not logged as it came: any bytes may be in it. */
void mfs_ui_change(void *arg, const char *from, const char *body, size_t n,
                   struct mfs_httpd_verdict *v)
{
    struct mfs_err err = {0};
    cJSON *json = mfs_json_parse(body, n, &err);
    const struct change *what = json ? find(json) : NULL;
    char who[128];
    int rc = -EINVAL;

    snprintf(who, sizeof who, "the page, at %s", from);
    if (what)
        rc = what->run(arg, json, who, &err);
    else if (json)
        mfs_err_set(&err, rc, "\"do\" is scale, drain or policy");
    v->status = status_of(rc);
    mfs_text_copy(v->text, sizeof v->text, rc ? err.msg : outcome(arg, what));
    mfs_info(AREA, "%s asks to %s: %u, %s", who, what ? what->name : "do something unknown",
             v->status, rc ? strerror(-rc) : v->text);
    cJSON_Delete(json);
}
