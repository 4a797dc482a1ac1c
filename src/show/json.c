#include "show/json.h"

#include "base/text.h"

size_t mfs_show_plain(const char *at)
{
    const unsigned char *s = (const unsigned char *)at;

    if ((*s < ' ' && *s != '\n' && *s != '\t') || *s == 0x7f || (*s == 0xc2 && s[1] < 0xa0))
        return 0;
    return mfs_text_utf8(at);
}

static int put_code(const char *at, size_t *used, struct mfs_buf *out)
{
    unsigned char c = (unsigned char)*at;

    *used = 1;
    if (c < 0x80)
        return mfs_buf_printf(out, "\\u%04x", c);
    if (!mfs_text_utf8(at))
        return mfs_buf_printf(out, "\\udc%02x", c);
    *used = 2;
    return mfs_buf_printf(out, "\\u%04x", (unsigned char)at[1]); /* U+0080 to U+009F */
}

int mfs_show_json(const struct mfs_schema *schema, const void *what, bool pretty,
                  struct mfs_buf *out)
{
    struct mfs_buf b;
    size_t n = 0;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_schema_encode(schema, what, pretty, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "\n", 2);
    for (const char *at = mfs_buf_data(&b); !rc && *at; at += n) {
        const char *end = at;

        while (*end && (n = mfs_show_plain(end)))
            end += n;
        n = (size_t)(end - at);
        rc = n ? mfs_buf_append(out, at, n) : put_code(at, &n, out);
    }
    mfs_buf_fini(&b);
    return rc;
}
