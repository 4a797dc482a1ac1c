/* Objects of S3 below a prefix: ListObjectsV2. */
#include <errno.h>
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/table.h"
#include "stage/remote/impl.h"

/* A token, or the keys of a page, by a hash. */
struct seen {
    uint64_t hash;
    UT_hash_handle hh;
};

struct reader {
    XML_Parser parser;
    int depth;
    char name[32]; /* of the element that is open */
    struct mfs_buf text;
    size_t prefix; /* bytes of a key that are known */
    void (*each)(void *arg, const char *key);
    void *arg;
    struct mfs_buf next; /* the token of the next page; empty: there is none */
    uint64_t keys;       /* so far */
    uint64_t of_page;    /* a hash of the page's keys */
    struct seen *seen;   /* a table */
    bool root, no_memory;
};

#define EMPTY_MOST 1000 /* pages in a row: one that never ends is no list */

/* -EPROTO: a page has been like that. */
static int see(struct reader *r, uint64_t hash)
{
    struct seen *s;

    HASH_FIND(hh, r->seen, &hash, sizeof hash, s);
    if (s)
        return -EPROTO;
    s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->hash = hash;
    HASH_ADD(hh, r->seen, hash, sizeof s->hash, s);
    if (s->hh.tbl)
        return 0;
    free(s);
    return -ENOMEM;
}

static void forget(struct reader *r)
{
    struct seen *s, *next;

    HASH_ITER(hh, r->seen, s, next)
    {
        HASH_DEL(r->seen, s);
        free(s);
    }
}

static uint64_t hash_of(const struct mfs_buf *text, uint64_t seed)
{
    return mfs_hash64(mfs_buf_data(text), mfs_buf_len(text), seed);
}

static void XMLCALL begin(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct reader *r = arg;

    (void)attributes;
    if (!r->depth++)
        r->root = !strcmp(name, "ListBucketResult");
    snprintf(r->name, sizeof r->name, "%s", name);
    mfs_buf_fini(&r->text);
    mfs_buf_init(&r->text);
}

static void XMLCALL some_text(void *arg, const XML_Char *p, int n)
{
    struct reader *r = arg;

    r->no_memory |= mfs_buf_append(&r->text, p, (size_t)n) != 0;
}

static void XMLCALL finish(void *arg, const XML_Char *name)
{
    struct reader *r = arg;
    bool key = !strcmp(name, "Key") && r->depth == 3,
         next = !strcmp(name, "NextContinuationToken") && r->depth == 2;

    r->depth--;
    if (!key && !next)
        return;
    r->no_memory |= mfs_buf_append(&r->text, "", 1) != 0;
    if (r->no_memory)
        return;
    r->keys += key;
    if (key)
        r->of_page = hash_of(&r->text, r->of_page);
    if (key && mfs_buf_len(&r->text) > r->prefix)
        r->each(r->arg, mfs_buf_data(&r->text) + r->prefix);
    else if (next)
        r->no_memory = mfs_buf_append(&r->next, mfs_buf_data(&r->text), mfs_buf_len(&r->text)) != 0;
}

static int read_page(struct reader *r, const struct mfs_buf *page, struct mfs_err *err)
{
    int rc = 0;

    r->parser = XML_ParserCreate("UTF-8");
    if (!r->parser)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, begin, finish);
    XML_SetCharacterDataHandler(r->parser, some_text);
    r->depth = 0;
    r->root = false;
    r->of_page = 0;
    if (XML_Parse(r->parser, mfs_buf_data(page), (int)mfs_buf_len(page), XML_TRUE) !=
            XML_STATUS_OK ||
        !r->root)
        rc = mfs_err_set(err, -EPROTO, "what answers is not S3");
    if (r->no_memory)
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
    XML_ParserFree(r->parser);
    return rc;
}

/* The query's names in order, as the signature wants them. */
static int query_of(const struct reader *r, const char *prefix, struct mfs_buf *out)
{
    int rc = 0;

    if (mfs_buf_len(&r->next)) {
        rc = mfs_buf_printf(out, "continuation-token=");
        rc = rc ? rc : mfs_stage_encode(out, mfs_buf_data(&r->next), false);
        rc = rc ? rc : mfs_buf_printf(out, "&");
    }
    rc = rc ? rc : mfs_buf_printf(out, "list-type=2&prefix=");
    rc = rc ? rc : mfs_stage_encode(out, prefix, false);
    return rc ? rc : mfs_buf_append(out, "", 1);
}

static int one_page(struct mfs_stage *s, struct reader *r, const char *bucket, const char *prefix,
                    struct mfs_err *err)
{
    struct mfs_stage_http_call c = {0};
    struct mfs_buf query, url;
    int rc;

    mfs_buf_init(&query);
    mfs_buf_init(&url);
    rc = query_of(r, prefix, &query);
    rc = rc ? rc : mfs_stage_url(s->remote, bucket, "", mfs_buf_data(&query), &url);
    mfs_buf_fini(&r->next);
    mfs_buf_init(&r->next);
    if (rc) {
        mfs_err_set(err, rc, "%s", rc == -EINVAL ? "no bucket has such a name" : strerror(-rc));
    } else {
        c = mfs_stage_call_of(s, "GET", bucket, &url);
        rc = mfs_stage_http(&c, err);
        rc = rc ? rc : read_page(r, &c.text, err);
        mfs_buf_fini(&c.text);
    }
    mfs_buf_fini(&query);
    mfs_buf_fini(&url);
    return rc;
}

/* A list that comes back to where it was never ends. */
static int check_progress(struct reader *r, uint64_t before, uint32_t *empty, struct mfs_err *err)
{
    int rc = see(r, hash_of(&r->next, 1));

    if (!rc && r->keys > before)
        rc = see(r, r->of_page);
    if (rc == -ENOMEM)
        return mfs_err_set(err, rc, "out of memory");
    if (rc)
        return mfs_err_set(err, rc, "the server's list repeats itself: a page of it came twice");
    *empty = r->keys > before ? 0 : *empty + 1;
    return *empty < EMPTY_MOST ? 0 : mfs_err_set(err, -EPROTO, "the server's list has no end");
}

int mfs_stage_each_object(struct mfs_stage *s, const char *url,
                          void (*each)(void *arg, const char *key), void *arg, struct mfs_err *err)
{
    const char *name = url + strlen("s3://");
    size_t len = strcspn(name, "/");
    const char *prefix = name[len] ? name + len + 1 : "";
    struct reader r = {.prefix = strlen(prefix), .each = each, .arg = arg};
    char *bucket = strndup(url, strlen("s3://") + len);
    int rc = bucket ? 0 : mfs_err_set(err, -ENOMEM, "out of memory");
    uint32_t empty = 0;

    mfs_buf_init(&r.text);
    mfs_buf_init(&r.next);
    while (!rc) {
        uint64_t before = r.keys;

        rc = mfs_stage_ends(s) ? -EINTR : one_page(s, &r, bucket, prefix, err);
        if (rc || !mfs_buf_len(&r.next))
            break;
        rc = check_progress(&r, before, &empty, err);
    }
    forget(&r);
    mfs_buf_fini(&r.text);
    mfs_buf_fini(&r.next);
    free(bucket);
    return rc;
}
