#include "show/figures.h"

#include <math.h>
#include <stdio.h>

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
