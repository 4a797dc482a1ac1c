/* Figures as screens and tables show them. Pure. */
#ifndef MFS_SHOW_FIGURES_H
#define MFS_SHOW_FIGURES_H

#include <stdint.h>

/* Of `width` cells, how many are filled for part of whole; none only for zero. */
int mfs_show_cells(double part, double whole, int width);

/* "820 us", "1.2 ms", "3.4 s", or "-" for 0. Returns out. */
const char *mfs_show_duration(double seconds, char out[16]);

/* "1.2 MiB", or "-" when it is not known (NAN). Returns out. */
const char *mfs_show_rate(double bytes, char out[24]);
#define MFS_SHOW_RATE(bytes) mfs_show_rate(bytes, (char[24]){0})

/* "12.3%" of `part` of `whole` with so many decimals, or "-" when either is not known (UINT64_MAX).
 * Returns out. */
const char *mfs_show_share(uint64_t part, uint64_t whole, int decimals, char out[24]);
#define MFS_SHOW_SHARE(part, whole, decimals) mfs_show_share(part, whole, decimals, (char[24]){0})

#endif
