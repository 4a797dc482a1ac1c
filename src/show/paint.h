/* A live screen's terminal, by ncurses, and what is painted on it: texts, which are cut at the edge
 * and of which nothing reaches it as a control sequence, and bars, in UTF-8 or ASCII as the locale
 * has it. The thread of the screen. */
#ifndef MFS_SHOW_PAINT_H
#define MFS_SHOW_PAINT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Can standard output and input be such a terminal ($TERM can place its cursor)? */
bool mfs_paint_can(void);

/* Takes the terminal over; it is given back by _close, and by any end of the process but SIGKILL.
 * 0 or a negative errno with the reason. */
int mfs_paint_open(struct mfs_err *err);
void mfs_paint_close(void);

enum mfs_paint { MFS_PAINT_PLAIN, MFS_PAINT_GOOD, MFS_PAINT_WARN, MFS_PAINT_BAD, MFS_PAINT_DIM };

/* What is painted next has that colour, where there are colours; no more. */
void mfs_paint_color(enum mfs_paint c, bool on);

void mfs_paint_text(int row, int col, const char *text);
void mfs_paint_put(int row, int col, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void mfs_paint_bar(int row, int col, double part, double whole, int width, enum mfs_paint c);

void mfs_paint_title(int row); /* what comes next is a title, until attroff(A_REVERSE) */
/* Whole lines, as many as there are rows above the last one. */
void mfs_paint_lines(int row, const char *text, size_t len);

#endif
