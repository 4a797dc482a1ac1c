/* Curves of the past as SVG, for papers and slides: black on white, without a script. Pure. */
#ifndef MFS_CM_CLI_SVG_H
#define MFS_CM_CLI_SVG_H

#include "cm/history/history.h"

/* A picture of some figures over time. */
struct mfs_svg_chart {
    const char *name, *title;
    const char *(*unit)(double v, char out[24]);
    uint32_t n;
    struct {
        const char *label;
        enum mfs_history_figure figure;
    } line[3];
};

/* memory, nodes, throughput, operations, latency; the end has no name. */
extern const struct mfs_svg_chart mfs_svg_charts[];

/* A line across the curves. */
struct mfs_svg_mark {
    int64_t at;       /* s since 1970 */
    const char *text; /* shown where the pointer is, any characters; the caller's */
    bool stage;       /* a stage of the run begins: in colour, with its text beside */
};

/* Appends it: what is known, by means over `step` s, and of n marks those within. 0 or -ENOMEM. */
int mfs_svg_draw(const struct mfs_svg_chart *c, const struct mfs_history_ring *r, uint32_t step,
                 const struct mfs_svg_mark *marks, size_t n, struct mfs_buf *out);

#endif
