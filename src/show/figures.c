#include "show/figures.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

int mfs_show_cells(double part, double whole, int width)
{
    double cells = whole > 0 ? part / whole * width : 0;

    if (!(part > 0) || !(cells > 0) || width <= 0)
        return 0;
    if (cells >= width)
        return width;
    return cells < 1 ? 1 : (int)lround(cells);
}

const char *mfs_show_duration(double seconds, char out[16])
{
    if (!(seconds > 0))
        snprintf(out, 16, "-");
    else if (seconds < 1e-3)
        snprintf(out, 16, "%.0f us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(out, 16, seconds < 0.1 ? "%.1f ms" : "%.0f ms", seconds * 1e3);
    else
        snprintf(out, 16, seconds < 100 ? "%.1f s" : "%.0f s", seconds);
    return out;
}

const char *mfs_show_rate(double bytes, char out[24])
{
    return mfs_text_bytes(isnan(bytes) ? UINT64_MAX : (uint64_t)bytes, out, 24);
}

const char *mfs_show_share(uint64_t part, uint64_t whole, int decimals, char out[24])
{
    if (part == UINT64_MAX || whole == UINT64_MAX)
        snprintf(out, 24, "-");
    else
        snprintf(out, 24, "%.*f%%", decimals, whole ? 100 * (double)part / (double)whole : 0.0);
    return out;
}
