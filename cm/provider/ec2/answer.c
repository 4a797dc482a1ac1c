/* The answers are XML. Where in it a text stands is known by the names of the elements around it,
 * kept as a path: "instancesSet/item/instanceState/name". */
#include "cm/provider/ec2/answer.h"

#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define PLACE_MAX 512
#define MOST      4096 /* instances of an answer */

struct reader {
    XML_Parser parser;
    struct mfs_ec2_answer *a;
    char path[PLACE_MAX];
    char text[256], key[64];
    size_t len;
    bool any, bad, no_memory;
};

static void cut(char *to, size_t n, const char *from)
{
    size_t len = strnlen(from, n - 1);

    memcpy(to, from, len);
    to[len] = '\0';
}

/* Does the path end so? */
static bool at(const struct reader *r, const char *end)
{
    size_t have = strlen(r->path), want = strlen(end);

    return have >= want && !strcmp(r->path + have - want, end);
}

static struct mfs_ec2_instance *last(const struct reader *r)
{
    return r->a->n ? &r->a->instance[r->a->n - 1] : NULL;
}

/* ---- elements -------------------------------------------------------------------------------- */

static void add_instance(struct reader *r)
{
    struct mfs_ec2_instance *longer;

    longer = r->a->n < MOST ? realloc(r->a->instance, (r->a->n + 1) * sizeof *longer) : NULL;
    if (!longer) {
        r->no_memory = true;
        XML_StopParser(r->parser, XML_FALSE);
        return;
    }
    r->a->instance = longer;
    memset(&longer[r->a->n++], 0, sizeof *longer);
}

static void begins(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct reader *r = arg;
    size_t len = strlen(r->path);

    (void)attributes;
    if (!len)
        r->any = strstr(name, "Response") != NULL;
    if (mfs_text_format(r->path + len, sizeof r->path - len, "/%s", name)) {
        r->path[len] = '\0';
        r->bad = true;
        XML_StopParser(r->parser, XML_FALSE);
        return;
    }
    r->len = 0;
    if (at(r, "/instancesSet/item"))
        add_instance(r);
}

static void takes(struct reader *r)
{
    struct mfs_ec2_instance *i = last(r);

    if (at(r, "/Error/Code"))
        cut(r->a->code, sizeof r->a->code, r->text);
    else if (at(r, "/Error/Message"))
        cut(r->a->message, sizeof r->a->message, r->text);
    else if (at(r, "/tagSet/item/key"))
        cut(r->key, sizeof r->key, r->text);
    else if (!i)
        return;
    else if (at(r, "/instancesSet/item/instanceId"))
        cut(i->id, sizeof i->id, r->text);
    else if (at(r, "/instancesSet/item/instanceState/name"))
        cut(i->state, sizeof i->state, r->text);
    else if (at(r, "/instancesSet/item/privateIpAddress"))
        cut(i->address, sizeof i->address, r->text);
    else if (at(r, "/instancesSet/item/stateReason/message"))
        cut(i->why, sizeof i->why, r->text);
    else if (at(r, "/instancesSet/item/tagSet/item/value") && !strcmp(r->key, MFS_EC2_TAG_NODE))
        cut(i->node, sizeof i->node, r->text);
}

static void ends(void *arg, const XML_Char *name)
{
    struct reader *r = arg;

    (void)name;
    r->text[r->len] = '\0';
    takes(r);
    r->len = 0;
    *strrchr(r->path, '/') = '\0';
}

static void reads(void *arg, const XML_Char *text, int len)
{
    struct reader *r = arg;
    size_t room = sizeof r->text - 1 - r->len, n = (size_t)len < room ? (size_t)len : room;

    memcpy(r->text + r->len, text, n);
    r->len += n;
}

/* EC2's answers have no document type, and so no entities of their own. */
static void refuses(void *arg, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                    int internal)
{
    struct reader *r = arg;

    (void)name, (void)system, (void)public, (void)internal;
    r->bad = true;
    XML_StopParser(r->parser, XML_FALSE);
}

/* ---- an answer ------------------------------------------------------------------------------- */

int mfs_ec2_read(const char *text, size_t len, struct mfs_ec2_answer *a, struct mfs_err *err)
{
    struct reader r = {.parser = XML_ParserCreate(NULL), .a = a};
    bool whole;

    memset(a, 0, sizeof *a);
    if (!r.parser)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, begins, ends);
    XML_SetCharacterDataHandler(r.parser, reads);
    XML_SetStartDoctypeDeclHandler(r.parser, refuses);
    whole = XML_Parse(r.parser, text, (int)len, XML_TRUE) == XML_STATUS_OK;
    XML_ParserFree(r.parser);
    if (whole && r.any)
        return 0;
    mfs_ec2_free(a);
    if (r.no_memory)
        return mfs_err_set(err, -ENOMEM, "no memory for the answer, or more than %u instances",
                           MOST);
    return mfs_err_set(err, -EPROTO, "what answers is not EC2: \"%.60s\"", text);
}

void mfs_ec2_free(struct mfs_ec2_answer *a)
{
    free(a->instance);
    memset(a, 0, sizeof *a);
}

bool mfs_ec2_throttled(const char *code)
{
    return !strcmp(code, "RequestLimitExceeded") || strstr(code, "Throttl");
}

bool mfs_ec2_try_again(long status, const char *code)
{
    static const char *const codes[] = {
        "RequestLimitExceeded",  "Throttling",    "ThrottlingException", "RequestThrottled",
        "EC2ThrottledException", "InternalError", "InternalFailure",     "Unavailable",
        "ServiceUnavailable",    "RequestTimeout"};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(codes[i], code))
            return true;
    return status >= 500 && !*code;
}

const char *mfs_ec2_advice(const char *code)
{
    static const struct {
        const char *code, *advice;
    } known[] = {
        {"RequestExpired", "is this machine's clock right? Else the key has expired"},
        {"ExpiredToken", "renew the key that cm is given"},
        {"AuthFailure", "is the key that cm is given a valid one, and this machine's clock right?"},
        {"InvalidClientTokenId", "is the key that cm is given a valid one, of that region?"},
        {"SignatureDoesNotMatch", "is the key's secret complete?"},
        {"UnauthorizedOperation", "the key needs that right: docs/how-to/run-in-ec2.md"},
        {"InsufficientInstanceCapacity", "another --ec2-type or --ec2-subnet, or later"},
        {"InstanceLimitExceeded", "fewer nodes, or a higher limit from AWS"},
        {"VcpuLimitExceeded", "fewer nodes, or a higher limit from AWS"},
        {"MaxSpotInstanceCountExceeded", "fewer nodes, or without --ec2-spot"},
        {"RequestLimitExceeded", "EC2 throttles this account: later, or fewer nodes at once"},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].code, code))
            return known[i].advice;
    return "";
}

/* ---- a form ---------------------------------------------------------------------------------- */

int mfs_ec2_form(struct mfs_buf *form, const char *name, const char *value)
{
    int rc = mfs_buf_printf(form, "&%s=", name);

    for (; *value && !rc; value++) {
        unsigned char c = (unsigned char)*value;

        rc = isalnum(c) || strchr("-_.~", c) ? mfs_buf_append(form, value, 1)
                                             : mfs_buf_printf(form, "%%%02X", c);
    }
    return rc;
}
