#include "cm/history/ring.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct mfs_history_ring {
    uint32_t step, slots, fields;
    int64_t last; /* the newest step, counted from 1970; below 0: none */
    double sum[MFS_HISTORY_FIELDS_MAX];
    uint32_t count[MFS_HISTORY_FIELDS_MAX]; /* of what the newest step is the mean */
    float figure[];                         /* slots times fields; a step's place never changes */
};

static size_t size_of(const struct mfs_history_ring *r)
{
    return (size_t)r->slots * r->fields * sizeof *r->figure;
}

struct mfs_history_ring *mfs_history_ring_create(uint32_t step, uint32_t slots, uint32_t fields)
{
    struct mfs_history_ring *r;

    assert(step && slots && fields <= MFS_HISTORY_FIELDS_MAX);
    r = calloc(1, sizeof *r + (size_t)slots * fields * sizeof *r->figure);
    if (!r)
        return NULL;
    r->step = step;
    r->slots = slots;
    r->fields = fields;
    mfs_history_ring_clear(r);
    return r;
}

void mfs_history_ring_destroy(struct mfs_history_ring *r)
{
    free(r);
}

static void no_mean(struct mfs_history_ring *r)
{
    memset(r->sum, 0, sizeof r->sum);
    memset(r->count, 0, sizeof r->count);
}

void mfs_history_ring_clear(struct mfs_history_ring *r)
{
    r->last = -1;
    no_mean(r);
    for (size_t i = 0; i < (size_t)r->slots * r->fields; i++)
        r->figure[i] = NAN;
}

static float *at(struct mfs_history_ring *r, int64_t step)
{
    return r->figure + (size_t)(step % r->slots) * r->fields;
}

static void forget(struct mfs_history_ring *r, int64_t step)
{
    for (uint32_t f = 0; f < r->fields; f++)
        at(r, step)[f] = NAN;
}

/* Makes this step the newest. */
static void go_to(struct mfs_history_ring *r, int64_t step)
{
    int64_t distance = step - r->last;

    if (r->last < 0 || distance >= r->slots || distance <= -(int64_t)r->slots)
        mfs_history_ring_clear(r);
    else if (distance > 0)
        for (int64_t s = r->last + 1; s <= step; s++)
            forget(r, s);
    else
        for (int64_t s = step; s <= r->last; s++)
            forget(r, s);
    r->last = step;
    no_mean(r);
}

void mfs_history_ring_put(struct mfs_history_ring *r, int64_t time, const float *figures)
{
    if (time < 0)
        return;
    if (time / r->step != r->last)
        go_to(r, time / r->step);
    for (uint32_t f = 0; f < r->fields; f++) {
        if (isnan(figures[f]))
            continue;
        r->sum[f] += figures[f];
        at(r, r->last)[f] = (float)(r->sum[f] / ++r->count[f]);
    }
}

uint32_t mfs_history_ring_step(const struct mfs_history_ring *r)
{
    return r->step;
}

int64_t mfs_history_ring_last(const struct mfs_history_ring *r)
{
    return r->last < 0 ? -1 : r->last * r->step;
}

float mfs_history_ring_mean(const struct mfs_history_ring *r, uint32_t field, int64_t from,
                            uint32_t length)
{
    int64_t oldest = r->last - r->slots + 1, first = (from + r->step - 1) / r->step;
    double sum = 0;
    uint32_t n = 0;

    if (r->last < 0 || from < 0)
        return NAN;
    for (int64_t s = first < oldest ? oldest : first; s <= r->last && s * r->step < from + length;
         s++) {
        float v = r->figure[(size_t)(s % r->slots) * r->fields + field];

        sum += isnan(v) ? 0 : v;
        n += !isnan(v);
    }
    return n ? (float)(sum / n) : NAN;
}

static int put_list(const struct mfs_history_ring *r, uint32_t field, int64_t from, uint32_t length,
                    struct mfs_buf *out)
{
    int rc = 0;

    for (int64_t t = from; t <= r->last * r->step && !rc; t += length) {
        float v = mfs_history_ring_mean(r, field, t, length);

        if (t > from)
            rc = mfs_buf_append(out, ",", 1);
        if (!rc)
            rc = isnan(v) ? mfs_buf_append(out, "null", 4) : mfs_buf_printf(out, "%.6g", (double)v);
    }
    return rc;
}

int mfs_history_ring_json(const struct mfs_history_ring *r, uint32_t length,
                          const char *const *names, struct mfs_buf *out)
{
    int64_t from = (r->last - r->slots + 1) * r->step;
    int rc;

    if (r->last < 0)
        return mfs_buf_printf(out, "{\"step\":%u,\"first\":0}", length);
    from = from < 0 ? 0 : (from + length - 1) / length * length;
    rc = mfs_buf_printf(out, "{\"step\":%u,\"first\":%lld", length, (long long)from);
    for (uint32_t f = 0; f < r->fields && !rc; f++) {
        if (!names[f])
            continue;
        rc = mfs_buf_printf(out, ",\"%s\":[", names[f]);
        if (!rc)
            rc = put_list(r, f, from, length, out);
        if (!rc)
            rc = mfs_buf_append(out, "]", 1);
    }
    return rc ? rc : mfs_buf_append(out, "}", 1);
}

/* ---- kept ------------------------------------------------------------------------------------ */

struct head {
    uint32_t step, slots, fields, unused;
    int64_t last;
};

int mfs_history_ring_save(const struct mfs_history_ring *r, struct mfs_buf *out)
{
    const struct head h = {r->step, r->slots, r->fields, 0, r->last};
    int rc = mfs_buf_append(out, &h, sizeof h);

    return rc ? rc : mfs_buf_append(out, r->figure, size_of(r));
}

int64_t mfs_history_ring_load(struct mfs_history_ring *r, const void *p, size_t n)
{
    struct head h;

    mfs_history_ring_clear(r);
    if (n < sizeof h + size_of(r))
        return -EINVAL;
    memcpy(&h, p, sizeof h);
    if (h.step != r->step || h.slots != r->slots || h.fields != r->fields ||
        h.last > INT64_MAX / 2 / r->step)
        return -EINVAL;
    r->last = h.last < 0 ? -1 : h.last;
    memcpy(r->figure, (const char *)p + sizeof h, size_of(r));
    return (int64_t)(sizeof h + size_of(r));
}
