/* Names of files as JSON, and for people: names are bytes, JSON is UTF-8, and terminals obey. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/verbs.h"

void mfs_verb_json_text(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    putchar('"');
    while (*s != '\0') {
        size_t n = mfs_text_utf8((const char *)s);

        if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if (*s < 0x20)
            printf("\\u%04x", (unsigned)*s);
        else if (n == 0)
            printf("\\udc%02x", (unsigned)*s);
        else
            fwrite(s, 1, n, stdout);
        s += n > 0 ? n : 1;
    }
    putchar('"');
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
static void put_escaped(unsigned char c)
{
    if (c == '\n' || c == '\t')
        fputs(c == '\n' ? "\\n" : "\\t", stdout);
    else
        printf("\\%03o", (unsigned)c);
}

void mfs_verb_shell_text(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    bool open = true; /* a part in quotes, of what can be shown */

    if (*s && is_plain(s)) {
        fputs(text, stdout);
        return;
    }
    putchar('\'');
    while (*s) {
        size_t n = mfs_text_utf8((const char *)s);
        bool shown = is_shown(s, n);

        if (shown != open)
            fputs(shown ? "''" : "'$'", stdout);
        open = shown;
        for (n = n ? n : 1; n; n--, s++) {
            if (!shown)
                put_escaped(*s);
            else if (*s == '\'')
                fputs("'\\''", stdout);
            else
                putchar(*s);
        }
    }
    putchar('\'');
}
