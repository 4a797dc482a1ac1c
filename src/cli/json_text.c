/* Text as JSON. Names of files are bytes, JSON is UTF-8. */
#include <stdint.h>
#include <stdio.h>

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
