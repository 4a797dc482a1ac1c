#include "cm/history/stages.h"

#include <math.h>

#define HOUR 3600
#define DAY  86400

/* `sum` of a figure over time, per second; `most` of it. */
struct total {
    double sum, most;
};

static struct total total_of(const struct mfs_history_ring *r, enum mfs_history_figure f,
                             int64_t from, int64_t to)
{
    uint32_t step = mfs_history_ring_step(r);
    struct total t = {NAN, NAN};

    for (int64_t at = (from + step - 1) / step * step; at < to; at += step) {
        double v = mfs_history_ring_mean(r, f, at, step);

        if (isnan(v))
            continue;
        t.sum = (isnan(t.sum) ? 0 : t.sum) + v * step;
        t.most = fmax(t.most, v); /* of a NaN and a number that is the number */
    }
    return t;
}

void mfs_stage_measure(const struct mfs_history *h, int64_t from, int64_t to,
                       struct mfs_stage_figures *out)
{
    int64_t last = mfs_history_ring_last(h->hour);
    const struct mfs_history_ring *r = from > last - HOUR ? h->hour : h->day;
    struct total nodes;

    if (last < 0) {
        *out = (struct mfs_stage_figures){NAN, NAN, NAN, NAN, NAN};
        return;
    }
    from = from > last - DAY ? from : last - DAY;
    to = to <= last ? to : last + 1;
    nodes = total_of(r, MFS_HISTORY_PAID, from, to);
    *out = (struct mfs_stage_figures){
        .written = total_of(r, MFS_HISTORY_WRITTEN, from, to).sum,
        .read = total_of(r, MFS_HISTORY_READ, from, to).sum,
        .memory = total_of(r, MFS_HISTORY_USED, from, to).most,
        .nodes = nodes.most,
        .node_hours = nodes.sum / HOUR,
    };
}
