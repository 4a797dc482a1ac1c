/* JSON texts to and from trees, and flat objects for config files. */
#include "proto/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "line 3, column 7: …" of `at`; lines and columns (bytes) are counted from 1. */
static void complain(const char *text, const char *at, const char *what, struct mfs_err *err)
{
    const char *line = text;
    unsigned n = 1;

    for (const char *p = text; p < at; p++)
        if (*p == '\n') {
            line = p + 1;
            n++;
        }
    mfs_err_set(err, -EINVAL, "line %u, column %zu: %s", n, (size_t)(at - line) + 1, what);
}

cJSON *mfs_json_parse(const char *text, size_t len, struct mfs_err *err)
{
    const char *end = NULL, *what = "not JSON";
    cJSON *json = cJSON_ParseWithLengthOpts(text, len, &end, false);

    if (!end)
        end = text;
    if (cJSON_IsObject(json)) {
        while (end < text + len && strchr(" \n\r\t", *end) && *end)
            end++;
        if (end == text + len)
            return json;
        what = "the JSON object has ended before this";
    } else if (json) {
        end = text;
        what = "not a JSON object";
    }
    cJSON_Delete(json);
    complain(text, end, what, err);
    return NULL;
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

/* cJSON ends a text there. */
static const char *find_nul(const char *text, size_t len)
{
    static const char nul[] = "\\u0000";

    for (const char *at = text, *end = text + len;
         (at = memchr(at, '\\', (size_t)(end - at))) && end - at > 1; at += 2)
        if ((size_t)(end - at) >= sizeof nul - 1 && !memcmp(at, nul, sizeof nul - 1))
            return at;
    return NULL;
}

int mfs_json_pairs(const char *text, size_t len,
                   int (*each)(void *arg, const char *key, const char *value, struct mfs_err *err),
                   void *arg, struct mfs_err *err)
{
    cJSON *json = mfs_json_parse(text, len, err);
    const char *nul = json ? find_nul(text, len) : NULL;
    const cJSON *item;
    int rc = 0;

    if (nul)
        complain(text, nul, "a NUL", err);
    if (!json || nul) {
        cJSON_Delete(json);
        return -EINVAL;
    }
    cJSON_ArrayForEach(item, json)
    {
        rc = pair(item, each, arg, err);
        if (rc < 0)
            break;
    }
    cJSON_Delete(json);
    return rc < 0 ? rc : 0;
}
