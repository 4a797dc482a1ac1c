/* JSON texts to and from trees, and flat objects for config files. */
#include "wire/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* *end: where it was found not to be one. */
static cJSON *parse(const char *text, size_t len, const char **end)
{
    cJSON *json = cJSON_ParseWithLengthOpts(text, len, end, false);

    if (!json)
        return NULL;
    if (!cJSON_IsObject(json))
        *end = text;
    else
        while (*end < text + len && strchr(" \n\t\r", **end) && **end)
            (*end)++;
    if (*end == text + len)
        return json;
    cJSON_Delete(json);
    return NULL;
}

cJSON *mfs_json_parse(const char *text, size_t len)
{
    const char *end = NULL;

    return parse(text, len, &end);
}

/* "line 3, column 7" of `at`; lines and columns (bytes) are counted from 1. */
static int complain(const char *text, size_t len, const char *at, struct mfs_err *err)
{
    const char *line = text;
    unsigned n = 1;

    if (!at || at < text || at > text + len)
        at = text;
    for (const char *p = text; p < at; p++)
        if (*p == '\n') {
            line = p + 1;
            n++;
        }
    return mfs_err_set(err, -EINVAL, "line %u, column %zu: not a JSON object", n,
                       (size_t)(at - line) + 1);
}

int mfs_json_print(cJSON *json, bool pretty, struct mfs_buf *out)
{
    char *text = NULL;
    int rc = -ENOMEM;

    if (json)
        text = pretty ? cJSON_Print(json) : cJSON_PrintUnformatted(json);
    if (text)
        rc = mfs_buf_append(out, text, strlen(text));
    cJSON_free(text);
    cJSON_Delete(json);
    return rc;
}

static int pair(const cJSON *item,
                int (*each)(void *arg, const char *key, const char *value, struct mfs_err *err),
                void *arg, struct mfs_err *err)
{
    char *text;
    int rc;

    if (cJSON_IsString(item))
        return each(arg, item->string, item->valuestring, err);
    if (cJSON_IsBool(item))
        return each(arg, item->string, cJSON_IsTrue(item) ? "true" : "false", err);
    if (!cJSON_IsNumber(item))
        return mfs_err_set(err, -EINVAL, "%s: neither a text, a number, true nor false",
                           item->string);
    text = cJSON_PrintUnformatted(item);
    if (!text)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = each(arg, item->string, text, err);
    cJSON_free(text);
    return rc;
}

int mfs_json_pairs(const char *text, size_t len,
                   int (*each)(void *arg, const char *key, const char *value, struct mfs_err *err),
                   void *arg, struct mfs_err *err)
{
    const char *end = NULL;
    cJSON *json = parse(text, len, &end);
    const cJSON *item;
    int rc = 0;

    if (!json)
        return complain(text, len, end, err);
    cJSON_ArrayForEach(item, json)
    {
        rc = pair(item, each, arg, err);
        if (rc < 0)
            break;
    }
    cJSON_Delete(json);
    return rc < 0 ? rc : 0;
}
