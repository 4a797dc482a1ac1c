/* Small texts. Parsers accept the whole text or nothing: "12abc" is no number. */
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DISTANCE_MAX 64

int mfs_text_u64(const char *text, uint64_t *value)
{
    unsigned long long v;
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    errno = 0;
    v = strtoull(text, &end, 10);
    if (*end)
        return -EINVAL;
    if (errno)
        return -ERANGE;
    *value = v;
    return 0;
}

int mfs_text_f64(const char *text, double *value)
{
    char *end;
    double v;

    if (!isdigit((unsigned char)text[0]) && text[0] != '-' && text[0] != '.')
        return -EINVAL;
    v = strtod(text, &end);
    if (*end || end == text)
        return -EINVAL;
    if (!isfinite(v))
        return -ERANGE;
    *value = v;
    return 0;
}

static int unit_shift(const char *unit)
{
    static const char units[] = "KMGTP";
    const char *at;

    if (!*unit || !strcasecmp(unit, "b"))
        return 0;
    at = strchr(units, toupper((unsigned char)unit[0]));
    if (!at || (unit[1] && strcasecmp(unit + 1, "b") && strcasecmp(unit + 1, "ib")))
        return -1;
    return (int)(at - units + 1) * 10;
}

int mfs_text_size(const char *text, uint64_t *bytes)
{
    double v;
    char *end;
    int shift;

    /* strtod alone would also take "0x10", "inf", a sign and blanks. */
    if (!isdigit((unsigned char)text[0]) ||
        (text[0] == '0' && tolower((unsigned char)text[1]) == 'x'))
        return -EINVAL;
    v = strtod(text, &end);
    shift = unit_shift(end);
    if (shift < 0)
        return -EINVAL;
    v = ldexp(v, shift);
    if (!(v < 9007199254740992.0)) /* 2^53: exact in JSON, too */
        return -ERANGE;
    *bytes = (uint64_t)v;
    return 0;
}

int mfs_text_bool(const char *text, bool *value)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!strcasecmp(text, words[i])) {
            *value = i % 2;
            return 0;
        }
    }
    return -EINVAL;
}

const char *mfs_text_bytes(uint64_t bytes, char *out, size_t n)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)bytes;
    size_t u = 0;

    if (bytes == UINT64_MAX) {
        snprintf(out, n, "-");
        return out;
    }
    while (v >= 1023.95 && u < 5) {
        v /= 1024;
        u++;
    }
    snprintf(out, n, u && v < 99.95 ? "%.1f %s" : "%.0f %s", v, units[u]);
    return out;
}

const char *mfs_text_count(uint64_t count, const char *noun, char *out, size_t n)
{
    snprintf(out, n, "%llu %s%s", (unsigned long long)count, noun, count == 1 ? "" : "s");
    return out;
}

void mfs_text_hex(const void *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *b = p;

    for (size_t i = 0; i < n; i++) {
        *out++ = digits[b[i] >> 4];
        *out++ = digits[b[i] & 15];
    }
    *out = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int mfs_text_unhex(const char *text, void *out, size_t n)
{
    unsigned char *b = out;

    if (strlen(text) != 2 * n)
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        int hi = hex_digit(text[2 * i]), lo = hex_digit(text[2 * i + 1]);

        if (hi < 0 || lo < 0)
            return -EINVAL;
        b[i] = (unsigned char)(hi << 4 | lo);
    }
    return 0;
}

int mfs_text_copy(char *out, size_t n, const char *text)
{
    size_t len = strlen(text);

    if (len >= n) {
        out[0] = '\0';
        return -ENAMETOOLONG;
    }
    memcpy(out, text, len + 1);
    return 0;
}

int mfs_text_format(char *out, size_t n, const char *fmt, ...)
{
    va_list ap;
    int len;

    va_start(ap, fmt);
    len = vsnprintf(out, n, fmt, ap);
    va_end(ap);
    if (len >= 0 && (size_t)len < n)
        return 0;
    out[0] = '\0';
    return -ENAMETOOLONG;
}

int mfs_text_quote(char *out, size_t n, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%=";
    size_t len = 1;

    if (*word && !word[strspn(word, plain)])
        return mfs_text_copy(out, n, word);
    for (const char *c = word; *c && len + 6 < n; c++) { /* a quote, as four, and the end */
        if (*c == '\'') {
            memcpy(out + len, "'\\''", 4);
            len += 4;
        } else {
            out[len++] = *c;
        }
        word = c + 1;
    }
    if (*word || n < 3) {
        out[0] = '\0';
        return -ENAMETOOLONG;
    }
    out[0] = '\'';
    memcpy(out + len, "'", 2);
    return 0;
}

unsigned mfs_text_distance(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b);
    unsigned row[DISTANCE_MAX];

    if (la >= DISTANCE_MAX || lb >= DISTANCE_MAX)
        return DISTANCE_MAX;
    for (size_t j = 0; j <= lb; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= la; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= lb; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);

            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[lb];
}

size_t mfs_text_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
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

void mfs_text_plain(char *out, size_t n, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t len = 0, used;
    char code[8];

    for (; *s; s += used) {
        bool control = *s < 0x20 || *s == 0x7f || (*s == 0xc2 && s[1] < 0xa0);
        const char *from = (const char *)s;
        size_t width;

        used = width = control ? 0 : mfs_text_utf8(from);
        if (!used) {
            width = (size_t)snprintf(code, sizeof code, "\\x%02x", *s);
            from = code;
            used = 1;
        }
        if (len + width >= n)
            break;
        memcpy(out + len, from, width);
        len += width;
    }
    out[len] = '\0';
}
