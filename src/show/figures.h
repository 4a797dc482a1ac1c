/* Figures as screens and tables show them. Pure. */
#ifndef MFS_SHOW_FIGURES_H
#define MFS_SHOW_FIGURES_H

/* Of `width` cells, how many are filled for part of whole; none only for zero. */
int mfs_show_cells(double part, double whole, int width);

/* "820 us", "1.2 ms", "3.4 s", or "-" for 0. Returns out. */
const char *mfs_show_duration(double seconds, char out[16]);

#endif
