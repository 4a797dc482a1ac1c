#include "http/exposition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define TOTAL      "_total"
#define WHOLE_MOST 9007199254740992.0 /* 2^53 */

static const char *const kinds[] = {[MFS_METRIC_COUNTER] = "counter",
                                    [MFS_METRIC_GAUGE] = "gauge",
                                    [MFS_METRIC_HISTOGRAM] = "histogram"};

#define PUT(e, ...)                                                                                \
    do {                                                                                           \
        if (!(e)->rc)                                                                              \
            (e)->rc = mfs_buf_printf((e)->out, __VA_ARGS__);                                       \
    } while (0)

/* ---- labels ---------------------------------------------------------------------------------- */

/* Bytes of the character of UTF-8 at s; 0: there is none. */
static unsigned character(const unsigned char *s)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned n = s[0] < 0x80       ? 1
                 : s[0] >> 5 == 6  ? 2
                 : s[0] >> 4 == 14 ? 3
                 : s[0] >> 3 == 30 ? 4
                                   : 0;
    uint32_t c = n > 1 ? s[0] & (0x7fU >> n) : 0;

    for (unsigned i = 1; i < n; i++) {
        if (s[i] >> 6 != 2)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    return n > 1 && (c < least[n] || c > 0x10ffff || c >> 11 == 0x1b) ? 0 : n;
}

static int escape(struct mfs_buf *out, const char *value)
{
    int rc = 0;

    while (*value && !rc) {
        unsigned n = character((const unsigned char *)value);

        if (*value == '\\' || *value == '"')
            rc = mfs_buf_printf(out, "\\%c", *value);
        else if (*value == '\n')
            rc = mfs_buf_append(out, "\\n", 2);
        else
            rc = mfs_buf_append(out, n ? value : "?", n ? n : 1);
        value += n ? n : 1;
    }
    return rc;
}

int mfs_exposition_label(char *labels, size_t n, const char *name, const char *value)
{
    size_t have = strlen(labels);
    struct mfs_buf b;
    int rc;

    mfs_buf_init(&b);
    rc = mfs_buf_printf(&b, "%s%s=\"", have ? "," : "", name);
    if (!rc)
        rc = escape(&b, value);
    if (!rc)
        rc = mfs_buf_append(&b, "\"", 2); /* with its NUL */
    if (!rc && mfs_buf_len(&b) > n - have)
        rc = -ENAMETOOLONG;
    if (!rc)
        memcpy(labels + have, mfs_buf_data(&b), mfs_buf_len(&b));
    mfs_buf_fini(&b);
    return rc;
}

/* ---- families -------------------------------------------------------------------------------- */

static bool ends(const char *text, size_t len, const char *end)
{
    size_t n = strlen(end);

    return len > n && !memcmp(text + len - n, end, n);
}

void mfs_exposition_family(struct mfs_exposition *e, const char *name, enum mfs_metric_kind kind,
                           const char *help)
{
    static const char *const units[] = {"seconds", "bytes", "ratio"};
    size_t len = strlen(name), family = len;

    if (e->open && kind == MFS_METRIC_COUNTER && ends(name, len, TOTAL))
        family -= strlen(TOTAL);
    PUT(e, "# HELP %.*s ", (int)family, name);
    if (!e->rc) /* as a label, but for quotes, which help texts do not have */
        e->rc = escape(e->out, help);
    PUT(e, "\n# TYPE %.*s %s\n", (int)family, name, kinds[kind]);
    for (size_t i = 0; e->open && i < sizeof units / sizeof *units; i++)
        if (ends(name, family, units[i]))
            PUT(e, "# UNIT %.*s %s\n", (int)family, name, units[i]);
}

/* The labels: own, more, and those that all have. */
static void put_labels(struct mfs_exposition *e, const char *own, const char *more)
{
    const char *all = e->all ? e->all : "";

    PUT(e, "%s%s%s%s%s", own, own[0] && more[0] ? "," : "", more,
        (own[0] || more[0]) && all[0] ? "," : "", all);
}

static void put_name(struct mfs_exposition *e, const char *name, const char *suffix,
                     const char *own, const char *more)
{
    if (!own[0] && !more[0] && !e->all) {
        PUT(e, "%s%s ", name, suffix);
        return;
    }
    PUT(e, "%s%s{", name, suffix);
    put_labels(e, own, more);
    PUT(e, "} ");
}

static void put_value(struct mfs_exposition *e, double value)
{
    if (value >= -WHOLE_MOST && value <= WHOLE_MOST && value == (double)(int64_t)value)
        PUT(e, "%" PRId64 "\n", (int64_t)value);
    else
        PUT(e, "%.9g\n", value);
}

void mfs_exposition_number(struct mfs_exposition *e, const char *name, const char *labels,
                           double value)
{
    put_name(e, name, "", labels, "");
    put_value(e, value);
}

void mfs_exposition_one(struct mfs_exposition *e, const char *name, enum mfs_metric_kind kind,
                        const char *help, double value)
{
    mfs_exposition_family(e, name, kind, help);
    mfs_exposition_number(e, name, "", value);
}

void mfs_exposition_end(struct mfs_exposition *e)
{
    if (e->open)
        PUT(e, "# EOF\n");
}

/* ---- what programs tell ---------------------------------------------------------------------- */

static void put_histogram(struct mfs_exposition *e, const char *labels,
                          const struct mfs_metric_sample *s)
{
    const char *end = labels[0] || s->labels[0] || e->all ? "," : "";
    uint64_t below = 0;
    uint32_t at = 0;

    for (uint32_t i = 0; i < MFS_METRIC_BUCKETS; i++) {
        if (at < s->nbuckets && s->bucket[at].index == i)
            below += s->bucket[at++].count;
        PUT(e, "%s_bucket{", s->name);
        put_labels(e, labels, s->labels);
        PUT(e, "%sle=\"", end);
        if (i + 1 == MFS_METRIC_BUCKETS)
            PUT(e, "+Inf\"} %" PRIu64 "\n", below);
        else
            PUT(e, "%.9g\"} %" PRIu64 "\n", (double)(1ULL << i) / 1e6, below);
    }
    put_name(e, s->name, "_sum", labels, s->labels);
    PUT(e, "%.9f\n", s->sum);
    put_name(e, s->name, "_count", labels, s->labels);
    PUT(e, "%" PRIu64 "\n", below);
}

static void put_sample(struct mfs_exposition *e, const char *labels,
                       const struct mfs_metric_sample *s)
{
    if (s->kind == MFS_METRIC_HISTOGRAM) {
        put_histogram(e, labels, s);
        return;
    }
    put_name(e, s->name, "", labels, s->labels);
    PUT(e, "%" PRIu64 "\n", s->value);
}

struct line {
    const struct mfs_metric_sample *sample;
    const char *labels;
    uint32_t family, at; /* order of families; within all */
};

static int by_family(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    if (x->family != y->family)
        return x->family < y->family ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Samples of one name mostly follow each other. */
static uint32_t family_of(const struct line *l, uint32_t n, const char *name, uint32_t *families)
{
    for (uint32_t i = n; i-- > 0;)
        if (!strcmp(l[i].sample->name, name))
            return l[i].family;
    return (*families)++;
}

static uint32_t gather(const struct mfs_exposition_source *s, uint32_t n, struct line *l)
{
    uint32_t have = 0, families = 0;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s[i].figures->n; k++) {
            const struct mfs_metric_sample *sample = &s[i].figures->sample[k];
            uint32_t family = family_of(l, have, sample->name, &families);

            l[have] = (struct line){sample, s[i].labels, family, have};
            have++;
        }
    return have;
}

void mfs_exposition_sources(struct mfs_exposition *e, const struct mfs_exposition_source *s,
                            uint32_t n)
{
    size_t most = 0;
    struct line *l;
    uint32_t have;

    for (uint32_t i = 0; i < n; i++)
        most += s[i].figures->n;
    l = calloc(most + 1, sizeof *l);
    if (!l) {
        e->rc = -ENOMEM;
        return;
    }
    have = gather(s, n, l);
    qsort(l, have, sizeof *l, by_family);
    for (uint32_t i = 0; i < have; i++) {
        if (!i || l[i].family != l[i - 1].family)
            mfs_exposition_family(e, l[i].sample->name, l[i].sample->kind, l[i].sample->help);
        put_sample(e, l[i].labels, l[i].sample);
    }
    free(l);
}
