/* Instances: asked for, looked after and terminated. One DescribeInstances tells of all. An
 * instance that EC2 does not name yet may be there all the same (its answers are consistent in the
 * end only); one that could not be heard of, because EC2 did not answer, is found by its tags. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"
#include "cm/provider/ec2/impl.h"

#define RUN_TIME       (90 * MFS_SEC)
#define LOOK_TIME      (20 * MFS_SEC)
#define TERMINATE_TIME (25 * MFS_SEC)
#define UNSEEN_MOST    10 /* looks until an instance that is not named is taken for gone */

static_assert(TERMINATE_TIME < MFS_RELEASE_TIME, "the provider says first what is wrong");

/* ---- asking for one -------------------------------------------------------------------------- */

/* So long as this has no definite answer, there may be an instance. */
static bool is_definite(const struct mfs_err *why)
{
    return why->code == -EREMOTEIO || why->code == -ENOKEY || why->code == -ENOTCONN;
}

static void none_came(struct mfs_ec2_place *p, const struct mfs_err *why)
{
    if (p->state == MFS_EC2_LEAVING) {
        mfs_notices_released(p->of->notices, p->node, NULL);
        mfs_ec2_unlist(p);
        return;
    }
    p->state = MFS_EC2_NONE;
    mfs_notices_failed(p->of->notices, p->node, why);
}

static void ran(void *arg, const struct mfs_err *why, const struct mfs_ec2_answer *a)
{
    struct mfs_ec2_place *p = arg;

    p->call = NULL;
    if (why && is_definite(why)) {
        none_came(p, why);
        return;
    }
    if (why)
        snprintf(p->why, sizeof p->why, "%.159s", why->msg);
    if (!why && a->n && !mfs_text_copy(p->id, sizeof p->id, a->instance[0].id) && mfs_ec2_note(p))
        mfs_warn("ec2", "instance %s of node %u could not be noted", p->id, p->node);
    if (p->state != MFS_EC2_LEAVING)
        p->state = MFS_EC2_WAITS;
    else if (p->id[0])
        mfs_ec2_terminate(p);
}

static int add(struct mfs_buf *form, const char *name, const char *value)
{
    return value && *value ? mfs_ec2_form(form, name, value) : 0;
}

/* "a,b" as NAME.1=a, NAME.2=b. */
static int add_list(struct mfs_buf *form, const char *name, const char *list)
{
    char key[64], value[128];
    int rc = 0, n = 0;

    while (list && *list && !rc) {
        size_t len = strcspn(list, ",");

        snprintf(key, sizeof key, "%s.%d", name, ++n);
        rc = mfs_text_format(value, sizeof value, "%.*s", (int)len, list);
        rc = rc ? rc : mfs_ec2_form(form, key, value);
        list += len + (list[len] == ',');
    }
    return rc;
}

static int add_tags(struct mfs_buf *form, const struct mfs_ec2 *e,
                    const struct mfs_provider_node *n)
{
    char name[128], node[16];
    int rc;

    snprintf(name, sizeof name, "memefs-%.64s-%s", e->context->paths->name, n->name);
    snprintf(node, sizeof node, "%u", n->id);
    rc = mfs_buf_printf(form, "&TagSpecification.1.ResourceType=instance"
                              "&TagSpecification.1.Tag.1.Key=Name");
    rc = rc ? rc : mfs_ec2_form(form, "TagSpecification.1.Tag.1.Value", name);
    rc = rc ? rc : mfs_ec2_form(form, "TagSpecification.1.Tag.2.Key", MFS_EC2_TAG_OF);
    rc = rc ? rc : mfs_ec2_form(form, "TagSpecification.1.Tag.2.Value", e->tag);
    rc = rc ? rc : mfs_ec2_form(form, "TagSpecification.1.Tag.3.Key", MFS_EC2_TAG_NODE);
    return rc ? rc : mfs_ec2_form(form, "TagSpecification.1.Tag.3.Value", node);
}

/* The token makes a call that comes twice ask for one instance. */
static int add_token(struct mfs_buf *form, const struct mfs_ec2 *e,
                     const struct mfs_provider_node *n)
{
    const struct mfs_provider_context *c = e->context;
    const char *fields[] = {"ec2", "node", n->name};
    char token[MFS_MAC_TEXT];
    int rc = mfs_mac(c->secret->bytes, c->secret->len, fields, 3, token);

    return rc ? rc : mfs_ec2_form(form, "ClientToken", token);
}

static int add_options(struct mfs_buf *form, const struct mfs_provider_context *c)
{
    static const char *const options[][2] = {{"ec2-image", "ImageId"},
                                             {"ec2-type", "InstanceType"},
                                             {"ec2-subnet", "SubnetId"},
                                             {"ec2-key", "KeyName"},
                                             {"ec2-profile", "IamInstanceProfile.Name"}};
    int rc = mfs_buf_printf(form, "&MinCount=1&MaxCount=1&MetadataOptions.HttpTokens=required"
                                  "&InstanceInitiatedShutdownBehavior=terminate");

    for (size_t i = 0; i < sizeof options / sizeof *options && !rc; i++)
        rc = add(form, options[i][1], mfs_provider_option(c, options[i][0]));
    rc = rc ? rc : add_list(form, "SecurityGroupId", mfs_provider_option(c, "ec2-groups"));
    if (!rc && mfs_provider_option(c, "ec2-spot"))
        rc = mfs_buf_printf(form, "&InstanceMarketOptions.MarketType=spot");
    return rc;
}

static int fill_in(struct mfs_buf *form, const struct mfs_ec2 *e, const struct mfs_provider_node *n,
                   struct mfs_err *err)
{
    struct mfs_buf data;
    int rc = add_options(form, e->context);

    rc = rc ? rc : add_tags(form, e, n);
    rc = rc ? rc : add_token(form, e, n);
    if (rc)
        return mfs_err_set(err, rc, "%s", strerror(-rc));
    mfs_buf_init(&data);
    rc = mfs_ec2_user_data(e->context, n, &data, err);
    if (!rc && mfs_ec2_form(form, "UserData", mfs_buf_data(&data)))
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_buf_wipe(&data);
    return rc;
}

int mfs_ec2_run(struct mfs_ec2_place *p, const struct mfs_provider_node *n, struct mfs_err *err)
{
    struct mfs_buf form;
    int rc;

    mfs_buf_init(&form);
    rc = fill_in(&form, p->of, n, err);
    if (!rc)
        p->call = mfs_ec2_begin(p->of->api, "RunInstances", &form, RUN_TIME, ran, p, err);
    mfs_buf_wipe(&form);
    return rc ? rc : p->call ? 0 : err->code;
}

/* ---- looking after them ---------------------------------------------------------------------- */

static bool is_ending(const struct mfs_ec2_instance *i)
{
    return strcmp(i->state, "pending") != 0 && strcmp(i->state, "running") != 0;
}

static bool is_gone(const struct mfs_ec2_instance *i)
{
    return !strcmp(i->state, "shutting-down") || !strcmp(i->state, "terminated");
}

static void comes(struct mfs_ec2_place *p, const struct mfs_ec2_instance *i)
{
    const struct mfs_provider_context *c = p->of->context;
    char what[MFS_PROVIDER_WHAT_MAX], why[MFS_PROVIDER_REASON_MAX];

    if (!strcmp(i->state, "running")) {
        p->state = MFS_EC2_RUNS;
        snprintf(what, sizeof what, "instance %s at %.19s", i->id, i->address);
        mfs_notices_ready(p->of->notices, p->node, what);
        return;
    }
    snprintf(why, sizeof why, "instance %s is %.31s", i->id, i->state);
    if (!strcmp(why, p->why))
        return;
    mfs_text_copy(p->why, sizeof p->why, why);
    c->calls->waiting(c->arg, p->node, why);
}

static void goes(struct mfs_ec2_place *p, const struct mfs_ec2_instance *i)
{
    bool runs = p->state == MFS_EC2_RUNS;
    struct mfs_err why;

    p->state = MFS_EC2_LOST;
    mfs_err_set(&why, -ENODEV, "%sinstance %s is %s%s%s", runs ? "has gone: " : "", i->id, i->state,
                i->why[0] ? ": " : "", i->why);
    if (runs)
        mfs_notices_ended(p->of->notices, p->node, why.msg);
    else
        mfs_notices_failed(p->of->notices, p->node, &why);
}

static struct mfs_ec2_place *find(const struct mfs_ec2 *e, const struct mfs_ec2_instance *i)
{
    struct mfs_ec2_place *p = e->first;
    uint64_t node;

    if (!i->id[0] || mfs_text_u64(i->node, &node))
        return NULL;
    while (p && p->node != node)
        p = p->next;
    return p;
}

/* A second instance of a node: EC2 has given more than was asked for, or has told another one than
 * it gave. Which of them has the node's lm is not known here; the other one's is refused by cm, and
 * ends its instance. Both are given back with the node. */
static void see_other(struct mfs_ec2_place *p, const struct mfs_ec2_instance *i)
{
    if (is_ending(i) || !strcmp(p->other, i->id))
        return;
    mfs_warn("ec2", "node %u has instance %s besides %s", p->node, i->id, p->id);
    mfs_text_copy(p->other, sizeof p->other, i->id);
}

static void take_other(struct mfs_ec2_place *p)
{
    mfs_text_copy(p->id, sizeof p->id, p->other);
    p->other[0] = '\0';
    p->unseen = 0;
}

/* By its tags an instance is found that could not be noted. */
static void learn(struct mfs_ec2_place *p, const struct mfs_ec2_instance *i)
{
    mfs_text_copy(p->id, sizeof p->id, i->id);
    if (p->state != MFS_EC2_LEAVING) {
        mfs_ec2_note(p);
    } else if (is_gone(i)) {
        mfs_notices_released(p->of->notices, p->node, NULL);
        mfs_ec2_unlist(p);
    } else {
        mfs_ec2_terminate(p);
    }
}

static void see(const struct mfs_ec2 *e, const struct mfs_ec2_instance *i)
{
    struct mfs_ec2_place *p = find(e, i);

    if (!p || p->state == MFS_EC2_ASKED || p->call)
        return;
    if (p->id[0] && strcmp(p->id, i->id) != 0) {
        see_other(p, i);
        return;
    }
    p->unseen = 0;
    if (p->state == MFS_EC2_LEAVING) {
        if (!p->id[0])
            learn(p, i);
        return;
    }
    if (!p->id[0])
        learn(p, i);
    if (p->state != MFS_EC2_WAITS && p->state != MFS_EC2_RUNS)
        return;
    if (is_ending(i))
        goes(p, i);
    else if (p->state == MFS_EC2_WAITS)
        comes(p, i);
}

static bool is_expected(const struct mfs_ec2_place *p)
{
    return p->state == MFS_EC2_WAITS || p->state == MFS_EC2_RUNS ||
           (p->state == MFS_EC2_LEAVING && !p->call);
}

/* EC2 has not named it for a while. */
static void missed(struct mfs_ec2_place *p)
{
    struct mfs_err err;

    if (p->other[0]) {
        take_other(p);
        mfs_ec2_note(p);
        return;
    }
    if (p->state == MFS_EC2_RUNS) {
        p->state = MFS_EC2_LOST;
        mfs_notices_ended(p->of->notices, p->node, "has gone: EC2 has no such instance any more");
        return;
    }
    mfs_err_set(&err, -ENODEV, "EC2 has no instance for it%s%s", p->why[0] ? ": " : "", p->why);
    none_came(p, &err);
}

/* To those that wait for an instance. */
static void tell_failing(const struct mfs_ec2 *e, const struct mfs_err *why)
{
    const struct mfs_provider_context *c = e->context;

    for (struct mfs_ec2_place *p = e->first; p; p = p->next) {
        if (p->state != MFS_EC2_WAITS || !strncmp(p->why, why->msg, sizeof p->why - 1))
            continue;
        snprintf(p->why, sizeof p->why, "%.159s", why->msg);
        c->calls->waiting(c->arg, p->node, p->why);
    }
}

static void looked(void *arg, const struct mfs_err *why, const struct mfs_ec2_answer *a)
{
    struct mfs_ec2 *e = arg;

    e->look = NULL;
    if (why) { /* what is not known has not ended */
        if (!e->failing)
            mfs_warn("ec2", "%s", why->msg);
        e->failing = true;
        tell_failing(e, why);
        return;
    }
    e->failing = false;
    for (struct mfs_ec2_place *p = e->first; p; p = p->next)
        p->unseen += is_expected(p);
    for (uint32_t i = 0; i < a->n; i++)
        see(e, &a->instance[i]);
    for (struct mfs_ec2_place *p = e->first, *next; p; p = next) {
        next = p->next;
        if (is_expected(p) && p->unseen >= UNSEEN_MOST)
            missed(p);
    }
}

void mfs_ec2_look(void *arg)
{
    struct mfs_ec2 *e = arg;
    struct mfs_err err;
    struct mfs_buf form;
    bool any = false;

    for (const struct mfs_ec2_place *p = e->first; p; p = p->next)
        any |= is_expected(p);
    if (!any || e->look)
        return;
    mfs_buf_init(&form);
    if (mfs_ec2_form(&form, "Filter.1.Name", "tag:" MFS_EC2_TAG_OF) ||
        mfs_ec2_form(&form, "Filter.1.Value.1", e->tag))
        mfs_err_set(&err, -ENOMEM, "out of memory");
    else
        e->look = mfs_ec2_begin(e->api, "DescribeInstances", &form, LOOK_TIME, looked, e, &err);
    mfs_buf_fini(&form);
    if (!e->look)
        mfs_warn("ec2", "%s", err.msg);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void terminated(void *arg, const struct mfs_err *why, const struct mfs_ec2_answer *a)
{
    struct mfs_ec2_place *p = arg;
    struct mfs_err err;

    p->call = NULL;
    if (why && !strncmp(a->code, "InvalidInstanceID", strlen("InvalidInstanceID")))
        why = NULL; /* there is none */
    if (!why && p->other[0]) {
        take_other(p);
        mfs_ec2_terminate(p);
        return;
    }
    if (why)
        mfs_err_set(&err, why->code, "instance %s may still run: %s", p->id, why->msg);
    mfs_notices_released(p->of->notices, p->node, why ? &err : NULL);
    mfs_ec2_unlist(p);
}

void mfs_ec2_terminate(struct mfs_ec2_place *p)
{
    struct mfs_err err;
    struct mfs_buf form;

    assert(p->id[0] && !p->call);
    p->state = MFS_EC2_LEAVING;
    mfs_buf_init(&form);
    if (mfs_ec2_form(&form, "InstanceId.1", p->id))
        mfs_err_set(&err, -ENOMEM, "out of memory");
    else
        p->call = mfs_ec2_begin(p->of->api, "TerminateInstances", &form, TERMINATE_TIME, terminated,
                                p, &err);
    mfs_buf_fini(&form);
    if (p->call)
        return;
    mfs_notices_released(p->of->notices, p->node, &err);
    mfs_ec2_unlist(p);
}
