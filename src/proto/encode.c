/* Structs to JSON text, straight from their schemas into a buffer: a cm of many partitions writes
 * its state, megabytes, at each step. The layout is cJSON's. */
#include "proto/encode.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

struct writer {
    struct mfs_buf *out;
    enum mfs_layout layout;
    unsigned depth;
    int rc; /* 0, or -ENOMEM from the first time on */
};

static void put(struct writer *w, const char *text, size_t len)
{
    if (!w->rc)
        w->rc = mfs_buf_append(w->out, text, len);
}

static void put_tabs(struct writer *w, unsigned n)
{
    while (n--)
        put(w, "\t", 1);
}

static void put_escaped(struct writer *w, unsigned char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    const char *at = c ? strchr(plain, c) : NULL;
    char text[8] = "\\";

    if (at)
        text[1] = letter[at - plain];
    else
        snprintf(text, sizeof text, "\\u%04x", c);
    put(w, text, at ? 2 : 6);
}

static void put_string(struct writer *w, const char *s)
{
    put(w, "\"", 1);
    for (;;) {
        size_t n = 0;

        while ((unsigned char)s[n] >= ' ' && s[n] != '"' && s[n] != '\\')
            n++;
        put(w, s, n);
        s += n;
        if (!*s)
            break;
        put_escaped(w, (unsigned char)*s++);
    }
    put(w, "\"", 1);
}

static void put_whole(struct writer *w, uint64_t v)
{
    char digits[20], *at = digits + sizeof digits;

    do
        *--at = (char)('0' + v % 10);
    while (v /= 10);
    put(w, at, (size_t)(digits + sizeof digits - at));
}

/* As many digits as it takes to read the same number. */
static void put_real(struct writer *w, double v)
{
    char text[32];
    int n;

    if (!isfinite(v))
        v = 0;
    n = snprintf(text, sizeof text, "%1.15g", v);
    if (strtod(text, NULL) != v)
        n = snprintf(text, sizeof text, "%1.17g", v);
    put(w, text, (size_t)n);
}

/* A number without a word is a mistake of this program; "" is what no reader takes for one. */
static void put_word(struct writer *w, const struct mfs_field *f, uint32_t v)
{
    uint32_t i = 0;

    while (i < v && f->words[i])
        i++;
    assert(f->words[i]);
    put_string(w, f->words[i] ? f->words[i] : "");
}

static uint32_t list_count(const struct mfs_field *f, const void *from)
{
    uint32_t n;

    memcpy(&n, (const char *)from + f->count, sizeof n);
    return n;
}

static const char *pointer(const void *at)
{
    const char *p;

    memcpy(&p, at, sizeof p);
    return p;
}

static void put_struct(struct writer *w, const struct mfs_schema *schema, const void *from);

static void put_list(struct writer *w, const struct mfs_field *f, const void *from)
{
    const char *items = pointer((const char *)from + f->offset);
    uint32_t n = list_count(f, from);
    bool pretty = w->layout == MFS_LAYOUT_PRETTY;

    bool lines = w->layout == MFS_LAYOUT_LINES;

    put(w, "[\n", lines ? 2 : 1);
    w->depth++;
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            put(w, lines ? "\n," : ", ", lines || pretty ? 2 : 1);
        put_struct(w, f->sub, items + i * f->sub->size);
    }
    w->depth--;
    put(w, "\n]" + !lines, lines ? 2 : 1);
}

static bool is_unknown(const struct mfs_field *f, const void *p)
{
    if (!f->unknown)
        return false;
    switch (f->type) {
    case MFS_FIELD_U32:
        return *(const uint32_t *)p == MFS_UNKNOWN_U32;
    case MFS_FIELD_U64:
        return *(const uint64_t *)p == MFS_UNKNOWN_U64;
    default:
        assert(f->type == MFS_FIELD_F64);
        return isnan(*(const double *)p);
    }
}

static void put_field(struct writer *w, const struct mfs_field *f, const void *from)
{
    const void *p = (const char *)from + f->offset;

    if (is_unknown(f, p)) {
        put(w, "null", 4);
        return;
    }
    switch (f->type) {
    case MFS_FIELD_BOOL:
        if (*(const bool *)p)
            put(w, "true", 4);
        else
            put(w, "false", 5);
        break;
    case MFS_FIELD_U32:
        put_whole(w, *(const uint32_t *)p);
        break;
    case MFS_FIELD_U64:
        put_whole(w, *(const uint64_t *)p);
        break;
    case MFS_FIELD_F64:
        put_real(w, *(const double *)p);
        break;
    case MFS_FIELD_STR:
        put_string(w, p);
        break;
    case MFS_FIELD_TEXT:
        put_string(w, pointer(p) ? pointer(p) : "");
        break;
    case MFS_FIELD_WORD:
        put_word(w, f, *(const uint32_t *)p);
        break;
    case MFS_FIELD_OBJECT:
        put_struct(w, f->sub, p);
        break;
    case MFS_FIELD_ARRAY:
        put_list(w, f, from);
        break;
    case MFS_FIELD_TABLE:
        if (!w->rc)
            w->rc = mfs_table_encode((const void *)pointer(p), w->layout, w->depth, w->out);
        break;
    }
}

static bool is_default(const struct mfs_schema *schema, const void *from);

/* What a reader takes it for when it is absent. */
static bool is_zero(const struct mfs_field *f, const void *from)
{
    const void *p = (const char *)from + f->offset;

    switch (f->type) {
    case MFS_FIELD_BOOL:
        return !*(const bool *)p;
    case MFS_FIELD_U32:
    case MFS_FIELD_WORD:
        return !*(const uint32_t *)p;
    case MFS_FIELD_U64:
        return !*(const uint64_t *)p;
    case MFS_FIELD_F64:
        return *(const double *)p == 0;
    case MFS_FIELD_STR:
        return !*(const char *)p;
    case MFS_FIELD_OBJECT:
        return is_default(f->sub, p);
    case MFS_FIELD_ARRAY:
        return !list_count(f, from);
    case MFS_FIELD_TEXT:
    case MFS_FIELD_TABLE:
        return !pointer(p);
    }
    return false;
}

static bool is_default(const struct mfs_schema *schema, const void *from)
{
    for (const struct mfs_field *f = schema->fields; f->name; f++)
        if (f->required || !is_zero(f, from))
            return false;
    return true;
}

static void put_struct(struct writer *w, const struct mfs_schema *schema, const void *from)
{
    bool pretty = w->layout == MFS_LAYOUT_PRETTY, first = true;
    bool lean = w->layout == MFS_LAYOUT_LEAN || w->layout == MFS_LAYOUT_LINES;
    bool lines = pretty || (w->layout == MFS_LAYOUT_LINES && !w->depth);

    w->depth++;
    put(w, "{\n", pretty ? 2 : 1);
    for (const struct mfs_field *f = schema->fields; f->name; f++) {
        if (lean && !f->required && is_zero(f, from))
            continue;
        if (!first)
            put(w, ",\n", lines ? 2 : 1);
        first = false;
        put_tabs(w, pretty ? w->depth : 0);
        put_string(w, f->name);
        put(w, ":\t", pretty ? 2 : 1);
        put_field(w, f, from);
    }
    w->depth--;
    if (pretty && !first)
        put(w, "\n", 1);
    put_tabs(w, pretty ? w->depth : 0);
    put(w, "}", 1);
}

int mfs_schema_put(const struct mfs_schema *schema, const void *from, enum mfs_layout layout,
                   unsigned depth, struct mfs_buf *out)
{
    struct writer w = {out, layout, depth, 0};
    size_t len = mfs_buf_len(out);

    put_struct(&w, schema, from);
    if (w.rc)
        out->end = out->start + len;
    return w.rc;
}

int mfs_schema_encode(const struct mfs_schema *schema, const void *from, bool pretty,
                      struct mfs_buf *out)
{
    return mfs_schema_put(schema, from, pretty ? MFS_LAYOUT_PRETTY : MFS_LAYOUT_LINE, 0, out);
}

int mfs_schema_encode_lines(const struct mfs_schema *schema, const void *from, struct mfs_buf *out)
{
    return mfs_schema_put(schema, from, MFS_LAYOUT_LINES, 0, out);
}

int mfs_string_encode(const char *text, struct mfs_buf *out)
{
    struct writer w = {.out = out};

    put_string(&w, text);
    return w.rc;
}
