#include "base/shown.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

int mfs_shown_json(struct mfs_buf *to, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    int rc = mfs_buf_append(to, "\"", 1);

    while (*s != '\0' && rc == 0) {
        size_t n = mfs_text_utf8((const char *)s);

        if (*s == '"' || *s == '\\')
            rc = mfs_buf_printf(to, "\\%c", *s);
        else if (*s < 0x20)
            rc = mfs_buf_printf(to, "\\u%04x", (unsigned)*s);
        else if (n == 0)
            rc = mfs_buf_printf(to, "\\udc%02x", (unsigned)*s);
        else
            rc = mfs_buf_append(to, s, n);
        s += n > 0 ? n : 1;
    }
    return rc < 0 ? rc : mfs_buf_append(to, "\"", 1);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that such a half of six characters stands for; 0: it is none. */
static unsigned char half(const char *s)
{
    int high = digit(s[4]), low = digit(s[5]);

    if (memcmp(s, "\\udc", 4) != 0 || high < 8 || low < 0)
        return 0;
    return (unsigned char)(high << 4 | low);
}

size_t mfs_shown_unescape(char *json, size_t len)
{
    size_t out = 0;

    for (size_t i = 0; i < len;) {
        unsigned char byte;

        if (json[i] != '\\' || i + 1 == len) {
            json[out++] = json[i++];
        } else if (len - i >= 6 && (byte = half(json + i)) != 0) {
            json[out++] = (char)byte;
            i += 6;
        } else {
            json[out++] = json[i++];
            json[out++] = json[i++];
        }
    }
    return out;
}

/* Can it be shown as it is? ASCII's and Unicode's control characters can't, nor what is no UTF-8.
 */
static bool is_shown(const unsigned char *s, size_t len)
{
    if (len == 1)
        return s[0] >= 0x20 && s[0] != 0x7f;
    return len > 1 && !(s[0] == 0xc2 && s[1] < 0xa0);
}

static bool is_plain(const unsigned char *s)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%=";

    for (size_t n = 0; *s; s += n) {
        n = mfs_text_utf8((const char *)s);
        if (!is_shown(s, n) || (n == 1 && !strchr(plain, *s)))
            return false;
    }
    return true;
}

/* A byte between $' and '. */
static int put_escaped(struct mfs_buf *to, unsigned char c)
{
    if (c == '\n' || c == '\t')
        return mfs_buf_append(to, c == '\n' ? "\\n" : "\\t", 2);
    return mfs_buf_printf(to, "\\%03o", (unsigned)c);
}

int mfs_shown_shell(struct mfs_buf *to, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    bool open = true; /* a part in quotes, of what can be shown */
    int rc;

    if (*s && is_plain(s))
        return mfs_buf_append(to, text, strlen(text));
    rc = mfs_buf_append(to, "'", 1);
    while (*s && rc == 0) {
        size_t n = mfs_text_utf8((const char *)s);
        bool shown = is_shown(s, n);

        if (shown != open)
            rc = mfs_buf_printf(to, "%s", shown ? "''" : "'$'");
        open = shown;
        for (n = n ? n : 1; n && rc == 0; n--, s++) {
            if (!shown)
                rc = put_escaped(to, *s);
            else if (*s == '\'')
                rc = mfs_buf_append(to, "'\\''", 4);
            else
                rc = mfs_buf_append(to, s, 1);
        }
    }
    return rc < 0 ? rc : mfs_buf_append(to, "'", 1);
}
