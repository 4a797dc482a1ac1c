/* Structs from JSON trees (to JSON: encode.c). A field that is a struct or a list recurses over its
 * schema. Invariant: a struct whose decoding failed holds nothing that is to be freed. */
#include "proto/schema.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

#define NUMBER_MAX 9007199254740992.0 /* 2^53 */
#define LIST_MAX   65536U

static uint32_t list_count(const void *from, const struct mfs_field *f)
{
    uint32_t n;

    memcpy(&n, (const char *)from + f->count, sizeof n);
    return n;
}

static void *list_items(const void *from, const struct mfs_field *f)
{
    void *items;

    memcpy(&items, (const char *)from + f->offset, sizeof items);
    return items;
}

/* ---- from JSON ------------------------------------------------------------------------------- */

static int bad(const struct mfs_field *f, const char *why, struct mfs_err *err)
{
    return mfs_err_set(err, -EINVAL, "%s: %s", f->name, why);
}

static int whole_number(const struct mfs_field *f, const cJSON *item, double limit, uint64_t *v,
                        struct mfs_err *err)
{
    double d = cJSON_IsNumber(item) ? item->valuedouble : NAN;

    if (f->max && (double)f->max < limit)
        limit = (double)f->max;
    if (!(d >= 0) || d != floor(d) || d > limit)
        return bad(f, "not a whole number in range", err);
    *v = (uint64_t)d;
    return 0;
}

static int text(const struct mfs_field *f, const cJSON *item, char *to, struct mfs_err *err)
{
    size_t len;

    if (!cJSON_IsString(item))
        return bad(f, "not a text", err);
    len = strlen(item->valuestring);
    if (len >= f->size)
        return bad(f, "too long", err);
    memcpy(to, item->valuestring, len + 1);
    return 0;
}

static int long_text(const struct mfs_field *f, const cJSON *item, char **to, struct mfs_err *err)
{
    if (!cJSON_IsString(item))
        return bad(f, "not a text", err);
    *to = strdup(item->valuestring);
    return *to ? 0 : mfs_err_set(err, -ENOMEM, "out of memory");
}

static int word(const struct mfs_field *f, const cJSON *item, uint32_t *v, struct mfs_err *err)
{
    if (!cJSON_IsString(item))
        return bad(f, "not a text", err);
    for (*v = 0; f->words[*v]; ++*v)
        if (strcmp(f->words[*v], item->valuestring) == 0)
            return 0;
    return bad(f, "none of the words that it may be", err);
}

static int list(const struct mfs_field *f, const cJSON *json, void *to, struct mfs_err *err)
{
    uint32_t n, done = 0, max = f->max ? (uint32_t)f->max : LIST_MAX;
    const cJSON *item;
    char *items;
    int rc = 0;

    if (!cJSON_IsArray(json))
        return bad(f, "not a list", err);
    n = (uint32_t)cJSON_GetArraySize(json);
    if (n > max)
        return bad(f, "too many", err);
    items = calloc(n ? n : 1, f->sub->size);
    if (!items)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    cJSON_ArrayForEach(item, json)
    {
        rc = mfs_schema_from_json(f->sub, item, items + done * f->sub->size, err);
        if (rc) {
            mfs_err_prefix(err, "%s[%u]", f->name, done);
            break;
        }
        done++;
    }
    /* Also on failure: the caller clears what is there. */
    memcpy((char *)to + f->offset, &items, sizeof items);
    memcpy((char *)to + f->count, &done, sizeof done);
    return rc;
}

static void set_unknown(const struct mfs_field *f, void *p)
{
    if (f->type == MFS_FIELD_U32)
        *(uint32_t *)p = MFS_UNKNOWN_U32;
    else if (f->type == MFS_FIELD_U64)
        *(uint64_t *)p = MFS_UNKNOWN_U64;
    else
        *(double *)p = MFS_UNKNOWN_F64;
}

static int field_from_json(const struct mfs_field *f, const cJSON *item, void *to,
                           struct mfs_err *err)
{
    char *p = (char *)to + f->offset;
    uint64_t v = 0;
    int rc;

    if (f->unknown && cJSON_IsNull(item)) {
        set_unknown(f, p);
        return 0;
    }
    switch (f->type) {
    case MFS_FIELD_BOOL:
        if (!cJSON_IsBool(item))
            return bad(f, "neither true nor false", err);
        *(bool *)(void *)p = cJSON_IsTrue(item);
        return 0;
    case MFS_FIELD_U32:
        rc = whole_number(f, item, UINT32_MAX, &v, err);
        *(uint32_t *)(void *)p = (uint32_t)v;
        return rc;
    case MFS_FIELD_U64:
        rc = whole_number(f, item, NUMBER_MAX, &v, err);
        *(uint64_t *)(void *)p = v;
        return rc;
    case MFS_FIELD_F64:
        if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
            return bad(f, "not a number", err);
        *(double *)(void *)p = item->valuedouble;
        return 0;
    case MFS_FIELD_STR:
        return text(f, item, p, err);
    case MFS_FIELD_TEXT:
        return long_text(f, item, (char **)(void *)p, err);
    case MFS_FIELD_WORD:
        return word(f, item, (uint32_t *)(void *)p, err);
    case MFS_FIELD_OBJECT:
        return mfs_schema_from_json(f->sub, item, p, err);
    case MFS_FIELD_ARRAY:
        return list(f, item, to, err);
    case MFS_FIELD_TABLE:
        return mfs_table_from_json(item, (struct mfs_table **)(void *)p, err);
    }
    return -EINVAL;
}

int mfs_schema_from_json(const struct mfs_schema *schema, const cJSON *json, void *to,
                         struct mfs_err *err)
{
    int rc = 0;

    memset(to, 0, schema->size);
    if (!cJSON_IsObject(json))
        return mfs_err_set(err, -EINVAL, "%s: not an object", schema->name);
    for (const struct mfs_field *f = schema->fields; f->name && !rc; f++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, f->name);

        if (item)
            rc = field_from_json(f, item, to, err);
        else if (f->required)
            rc = bad(f, "missing", err);
    }
    if (rc)
        mfs_schema_clear(schema, to);
    return rc;
}

int mfs_schema_decode(const struct mfs_schema *schema, const char *json_text, size_t len, void *to,
                      struct mfs_err *err)
{
    cJSON *json = mfs_json_parse(json_text, len, err);
    int rc;

    if (!json) {
        memset(to, 0, schema->size);
        mfs_err_prefix(err, "%s", schema->name);
        return -EINVAL;
    }
    rc = mfs_schema_from_json(schema, json, to, err);
    cJSON_Delete(json);
    return rc;
}

static void clear_list(const struct mfs_field *f, void *from)
{
    char *items = list_items(from, f);
    uint32_t n = list_count(from, f);

    for (uint32_t i = 0; i < n; i++)
        mfs_schema_clear(f->sub, items + i * f->sub->size);
    free(items);
}

void mfs_schema_clear(const struct mfs_schema *schema, void *from)
{
    for (const struct mfs_field *f = schema->fields; f->name; f++) {
        if (f->type == MFS_FIELD_ARRAY)
            clear_list(f, from);
        else if (f->type == MFS_FIELD_OBJECT)
            mfs_schema_clear(f->sub, (char *)from + f->offset);
        else if (f->type == MFS_FIELD_TABLE || f->type == MFS_FIELD_TEXT)
            free(list_items(from, f));
    }
    memset(from, 0, schema->size);
}
