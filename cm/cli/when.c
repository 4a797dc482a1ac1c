#include "cm/cli/when.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND     INT64_C(1000000) /* in us */
#define COUNT_MOST 100000000 /* days of that many us go into 64 bits, and so does now less them */

/* "10m", "2h ago" */
static int parse_ago(const char *text, int64_t now, int64_t *when)
{
    static const struct {
        char letter;
        int64_t length;
    } units[] = {{'s', SECOND}, {'m', 60 * SECOND}, {'h', 3600 * SECOND}, {'d', 86400 * SECOND}};
    size_t digits = strspn(text, "0123456789");
    long long count = strtoll(text, NULL, 10);

    if (!digits || count > COUNT_MOST ||
        (text[digits] && text[digits + 1] && strcmp(text + digits + 1, " ago")))
        return -EINVAL;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (text[digits] == units[i].letter) {
            *when = now - count * units[i].length;
            return 0;
        }
    }
    return -EINVAL;
}

/* Behind the point: as many digits as there are, of which six count. */
static const char *parse_fraction(const char *text, int64_t *us)
{
    int64_t unit = SECOND / 10;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++, unit /= 10)
        *us += (*at - '0') * unit;
    return at > text ? at : NULL;
}

/* "Z" or "+01:30": how far ahead of UTC, in us. */
static int parse_zone(const char *text, int64_t *ahead)
{
    int hours, minutes, n = 0;

    *ahead = 0;
    if (!strcmp(text, "Z") || !strcmp(text, "z"))
        return 0;
    if ((*text != '+' && *text != '-') ||
        sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &n) != 2 || n != 5 || text[6] ||
        strspn(text + 1, "0123456789") != 2 || hours > 23 || minutes > 59)
        return -EINVAL;
    *ahead = (hours * 60 + minutes) * 60 * SECOND * (*text == '-' ? -1 : 1);
    return 0;
}

static int parse_date(const char *text, int64_t *when)
{
    struct tm tm = {0}, same;
    int64_t us = 0, ahead;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    time_t t;

    if (rest && *rest == '.')
        rest = parse_fraction(rest + 1, &us);
    if (!rest || parse_zone(rest, &ahead))
        return -EINVAL;
    same = tm;
    t = timegm(&same);
    if (same.tm_mday != tm.tm_mday || same.tm_hour != tm.tm_hour) /* no 30 February */
        return -EINVAL;
    *when = (int64_t)t * SECOND + us - ahead;
    return 0;
}

int mfs_when_parse(const char *text, int64_t now, int64_t *when)
{
    return strchr(text, 'T') ? parse_date(text, when) : parse_ago(text, now, when);
}
