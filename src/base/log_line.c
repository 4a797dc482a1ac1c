/* Every form has the message last, so that of one that is too long only its end is lost. */
#include "base/log_line.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define FRAME 8 /* bytes that always have room: ends of strings and of the object */

struct line {
    char *at;
    size_t n, most;
};

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const int priorities[] = {3, 4, 6, 7}; /* of syslog(3) */

const char *mfs_log_level_name(enum mfs_log_level level)
{
    return level_names[level];
}

/* All of it or nothing. */
static bool put(struct line *l, const char *text, size_t n)
{
    if (l->n + n > l->most)
        return false;
    memcpy(l->at + l->n, text, n);
    l->n += n;
    return true;
}

/* As much as there is room for. */
__attribute__((format(printf, 2, 3))) static void put_format(struct line *l, const char *fmt, ...)
{
    size_t room = l->most - l->n;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(l->at + l->n, room, fmt, ap);
    va_end(ap);
    if (n > 0)
        l->n += (size_t)n < room ? (size_t)n : room - 1;
}

static void put_time(struct line *l, const struct timespec *when)
{
    char text[32];
    struct tm tm;

    gmtime_r(&when->tv_sec, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    put_format(l, "%s.%06ldZ", text, when->tv_nsec / 1000);
}

static size_t put_text(struct line *l, const struct mfs_log_entry *e)
{
    put_time(l, &e->when);
    put_format(l, " %s %s[%d] [%s] %s: %s", level_names[e->level], e->program, e->pid, e->thread,
               e->area, e->message);
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i] == '\n')
            l->at[i] = ' ';
    l->at[l->n++] = '\n';
    return l->n;
}

size_t mfs_log_line_text(const struct mfs_log_entry *e, char *out)
{
    struct line l = {out, 0, MFS_LOG_LINE_MAX - 1};

    return put_text(&l, e);
}

size_t mfs_log_line_stream(const struct mfs_log_entry *e, char *out)
{
    struct line l = {out, 0, MFS_LOG_LINE_MAX - 1};

    put_format(&l, "<%d>", priorities[e->level]);
    return put_text(&l, e);
}

/* One character of a JSON string; `used`: bytes of the text that it is. */
static bool put_escaped(struct line *l, const char *text, size_t *used)
{
    unsigned char c = (unsigned char)*text;
    char code[8];

    *used = mfs_text_utf8(text);
    if (*used > 1 || (*used && c >= 0x20 && c != '"' && c != '\\' && c != 0x7f))
        return put(l, text, *used);
    if (!*used)
        snprintf(code, sizeof code, "\\\\x%02x", c);
    else if (c == '"' || c == '\\')
        snprintf(code, sizeof code, "\\%c", c);
    else
        snprintf(code, sizeof code, "\\u%04x", c);
    *used = 1;
    return put(l, code, strlen(code));
}

static void put_string(struct line *l, const char *name, const char *text)
{
    size_t used = 0;

    put_format(l, ",\"%s\":\"", name);
    for (; *text && put_escaped(l, text, &used); text += used)
        ;
    l->at[l->n++] = '"';
}

size_t mfs_log_line_json(const struct mfs_log_entry *e, char *out)
{
    struct line l = {out, 0, MFS_LOG_LINE_MAX - FRAME};

    put_format(&l, "{\"time\":\"");
    put_time(&l, &e->when);
    put_format(&l, "\"");
    put_string(&l, "level", level_names[e->level]);
    put_string(&l, "program", e->program);
    put_format(&l, ",\"pid\":%d", e->pid);
    put_string(&l, "thread", e->thread);
    put_string(&l, "area", e->area);
    put_string(&l, "message", e->message);
    l.at[l.n++] = '}';
    l.at[l.n++] = '\n';
    return l.n;
}

size_t mfs_log_line_journal(const struct mfs_log_entry *e, char *out)
{
    struct line l = {out, 0, MFS_LOG_LINE_MAX};
    uint64_t len; /* little-endian, as what follows has no end of line of its own */
    size_t room;

    put_format(&l,
               "PRIORITY=%d\nSYSLOG_IDENTIFIER=%s\nMEMEFS_AREA=%s\nMEMEFS_THREAD=%s\n"
               "CODE_FILE=%s\nCODE_LINE=%d\nCODE_FUNC=%s\nMESSAGE\n",
               priorities[e->level], e->program, e->area, e->thread, e->file, e->line, e->function);
    room = l.most - l.n - sizeof len - 1;
    len = strnlen(e->message, room);
    for (size_t i = 0; i < sizeof len; i++)
        l.at[l.n++] = (char)(len >> (8 * i));
    put(&l, e->message, len);
    put(&l, "\n", 1);
    return l.n;
}
