#include "cm/cli/svg.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define WIDTH  720
#define HEIGHT 260
#define LEFT   80
#define RIGHT  12
#define TOP    44
#define BOTTOM 28
#define POINTS 86400 /* s that are looked back, at most */
#define MIDDLE ((LEFT + WIDTH - RIGHT) / 2.0)
#define WORDS  24U /* characters of a stage's text beside its line: less than half of the width */

static const char *const colors[] = {"#1f5fa8", "#a34f00", "#5c6570"};

static const char *unit_bytes(double v, char out[24])
{
    return mfs_text_bytes((uint64_t)v, out, 24);
}

static const char *unit_rate(double v, char out[24])
{
    char text[20];

    snprintf(out, 24, "%s/s", mfs_text_bytes((uint64_t)v, text, sizeof text));
    return out;
}

static const char *unit_count(double v, char out[24])
{
    snprintf(out, 24, "%.4g", v);
    return out;
}

static const char *unit_seconds(double v, char out[24])
{
    if (v < 1e-3)
        snprintf(out, 24, "%.3g µs", v * 1e6);
    else if (v < 1)
        snprintf(out, 24, "%.3g ms", v * 1e3);
    else
        snprintf(out, 24, "%.3g s", v);
    return out;
}

const struct mfs_svg_chart mfs_svg_charts[] = {
    {"memory",
     "Memory",
     unit_bytes,
     3,
     {{"used", MFS_HISTORY_USED},
      {"for data", MFS_HISTORY_CAPACITY},
      {"given by nodes", MFS_HISTORY_ALLOCATED}}},
    {"nodes", "Nodes", unit_count, 1, {{"nodes", MFS_HISTORY_NODES_THERE}}},
    {"throughput",
     "Throughput of links",
     unit_rate,
     2,
     {{"in", MFS_HISTORY_IN}, {"out", MFS_HISTORY_OUT}}},
    {"operations",
     "Operations of all mounts, per second",
     unit_count,
     1,
     {{"operations", MFS_HISTORY_OPERATIONS}}},
    {"latency",
     "Time that 99 of 100 operations stay below",
     unit_seconds,
     1,
     {{"p99", MFS_HISTORY_P99}}},
    {0}};

/* What the picture is of. */
struct frame {
    const struct mfs_history_ring *ring;
    uint32_t step;
    int64_t from, to; /* steps that begin in [from, to] */
    double most;
};

static struct frame measure(const struct mfs_svg_chart *c, const struct mfs_history_ring *r,
                            uint32_t step)
{
    int64_t last = mfs_history_ring_last(r);
    struct frame f = {.ring = r, .step = step, .from = last, .to = last};

    for (int64_t t = last < POINTS ? 0 : last - POINTS; last >= 0 && t <= last; t++) {
        if (t % step)
            continue;
        if (f.from == last && !isnan(mfs_history_ring_mean(r, MFS_HISTORY_NODES_THERE, t, step)))
            f.from = t;
        for (uint32_t i = 0; i < c->n; i++)
            f.most = fmax(f.most, mfs_history_ring_mean(r, c->line[i].figure, t, step));
    }
    f.most = f.most > 0 ? f.most * 1.05 : 1;
    return f;
}

static double x_of(const struct frame *f, int64_t t)
{
    double span = f->to > f->from ? (double)(f->to - f->from) : 1;

    return LEFT + (WIDTH - LEFT - RIGHT) * (double)(t - f->from) / span;
}

static double y_of(const struct frame *f, double v)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - v / f->most);
}

/* A gap is one in the line, too. */
static int put_line(const struct frame *f, enum mfs_history_figure figure, const char *color,
                    struct mfs_buf *out)
{
    int rc = mfs_buf_printf(
        out, "<path fill=\"none\" stroke-width=\"1.5\" stroke=\"%s\" d=\"M%d %d", color, LEFT, TOP);
    bool pen = false;

    for (int64_t t = f->from; t <= f->to && !rc; t++) {
        double v = t % f->step ? NAN : mfs_history_ring_mean(f->ring, figure, t, f->step);

        if (t % f->step)
            continue;
        if (!isnan(v))
            rc = mfs_buf_printf(out, "%c%.1f %.1f", pen ? 'L' : 'M', x_of(f, t), y_of(f, v));
        pen = !isnan(v);
    }
    return rc ? rc : mfs_buf_printf(out, "\"/>\n");
}

/* What an element may have, at most so many characters. Control characters are none of XML 1.0. */
static int put_text(const char *text, size_t most, struct mfs_buf *out)
{
    int rc = 0;

    for (const char *at = text; *at && !rc;) {
        unsigned char c = (unsigned char)*at;
        size_t len = mfs_text_utf8(at);

        len = len ? len : 1;
        if (!most--)
            return mfs_buf_append(out, "…", strlen("…"));
        rc = c == '<'   ? mfs_buf_append(out, "&lt;", 4)
             : c == '&' ? mfs_buf_append(out, "&amp;", 5)
             : c < ' '  ? mfs_buf_append(out, " ", 1)
                        : mfs_buf_append(out, at, len);
        at += len;
    }
    return rc;
}

/* The text is on the side of its line where there is more room. */
static int put_mark(const struct frame *f, const struct mfs_svg_mark *m, struct mfs_buf *out)
{
    double x = x_of(f, m->at);
    bool late = x > MIDDLE;
    int rc = mfs_buf_printf(out, "<path class=\"%s\" stroke=\"%s\"%s d=\"M%.1f %dV%d\"><title>",
                            m->stage ? "stage" : "mark", m->stage ? "#7a3f9d" : "#9aa1a8",
                            m->stage ? "" : " stroke-dasharray=\"2 3\"", x, TOP, HEIGHT - BOTTOM);

    if (!rc)
        rc = put_text(m->text, SIZE_MAX, out);
    if (!rc)
        rc = mfs_buf_printf(out, "</title></path>\n");
    if (rc || !m->stage)
        return rc;
    rc = mfs_buf_printf(out,
                        "<text x=\"%.1f\" y=\"%d\" fill=\"#7a3f9d\" font-size=\"10\" "
                        "text-anchor=\"%s\">",
                        late ? x - 3 : x + 3, TOP + 10, late ? "end" : "start");
    if (!rc)
        rc = put_text(m->text, WORDS, out);
    return rc ? rc : mfs_buf_printf(out, "</text>\n");
}

static void put_axes(const struct mfs_svg_chart *c, const struct frame *f, struct mfs_buf *out)
{
    char text[24] = "";

    for (int i = 0; i <= 4; i++) {
        double v = f->most * i / 4;

        mfs_buf_printf(out,
                       "<path stroke=\"#d5d9dd\" d=\"M%d %.1fH%d\"/>\n<text x=\"%d\" y=\"%.1f\" "
                       "text-anchor=\"end\">%s</text>\n",
                       LEFT, y_of(f, v), WIDTH - RIGHT, LEFT - 8, y_of(f, v) + 4, c->unit(v, text));
    }
    for (int i = 0; i <= 4 && f->from >= 0; i++) {
        int64_t t = f->from + (f->to - f->from) * i / 4;
        time_t when = t;
        struct tm tm;

        gmtime_r(&when, &tm);
        strftime(text, sizeof text, "%H:%M:%S", &tm);
        mfs_buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", x_of(f, t),
                       HEIGHT - 8,
                       i == 4 ? "end"
                       : i    ? "middle"
                              : "start",
                       text);
    }
}

int mfs_svg_draw(const struct mfs_svg_chart *c, const struct mfs_history_ring *r, uint32_t step,
                 const struct mfs_svg_mark *marks, size_t nmarks, struct mfs_buf *out)
{
    struct frame f = measure(c, r, step);
    const uint32_t n = c->n;
    int rc = 0;

    assert(n <= sizeof colors / sizeof *colors);
    mfs_buf_printf(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                   "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n<title>%s</title>\n"
                   "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
                   "<text x=\"%d\" y=\"18\" font-size=\"14\">%s (UTC)</text>\n",
                   WIDTH, HEIGHT, WIDTH, HEIGHT, c->title, LEFT, c->title);
    put_axes(c, &f, out);
    for (size_t i = 0; i < nmarks && !rc; i++)
        if (marks[i].at >= f.from && marks[i].at <= f.to)
            rc = put_mark(&f, &marks[i], out);
    for (uint32_t i = 0; i < n && !rc; i++) {
        mfs_buf_printf(out, "<text x=\"%u\" y=\"36\" fill=\"%s\">— %s</text>\n", LEFT + i * 130,
                       colors[i], c->line[i].label);
        rc = f.from < 0 ? 0 : put_line(&f, c->line[i].figure, colors[i], out);
    }
    return rc ? rc : mfs_buf_printf(out, "</svg>\n");
}
