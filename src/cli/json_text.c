/* Names of files as JSON, and for people: names are bytes, JSON is UTF-8, and terminals obey. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/verbs.h"

/* The length of the character in UTF-8 that begins here (RFC 3629); 0: there is none. */
static size_t utf8_len(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t code;

    if (n <= 1 || s[0] > 0xf4)
        return s[0] > 0xf4 ? 0 : n;
    code = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

void mfs_verb_json_text(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    putchar('"');
    while (*s != '\0') {
        size_t n = utf8_len(s);

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
        n = utf8_len(s);
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
        size_t n = utf8_len(s);
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
