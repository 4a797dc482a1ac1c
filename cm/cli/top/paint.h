/* The terminal of `cm top`, and what is painted on it: texts, which are cut at the edge and of
 * which nothing reaches it as a control sequence, and bars, in UTF-8 or ASCII as the locale has it.
 * The thread of the screen. */
#ifndef MFS_CM_CLI_TOP_PAINT_H
#define MFS_CM_CLI_TOP_PAINT_H

#include <stdbool.h>

enum mfs_paint { MFS_PAINT_PLAIN, MFS_PAINT_GOOD, MFS_PAINT_WARN, MFS_PAINT_BAD, MFS_PAINT_DIM };

/* What is painted next has that colour, where there are colours; no more. */
void mfs_paint_color(enum mfs_paint c, bool on);

void mfs_paint_text(int row, int col, const char *text);
void mfs_paint_put(int row, int col, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void mfs_paint_bar(int row, int col, double part, double whole, int width, enum mfs_paint c);

#endif
