/* What `cm doctor` finds, for the page. Its checks wait and look into directories: cm runs the
 * command beside itself, while somebody watches, a minute after the one before has ended at the
 * earliest, and kills what takes longer than 30 s. The loop's thread; nothing blocks. */
#ifndef MFS_CM_LIFE_UI_DOCTOR_H
#define MFS_CM_LIFE_UI_DOCTOR_H

#include "cm/nodes/control.h"
#include "http/httpd.h"

struct mfs_ui_doctor;

struct mfs_ui_doctor *mfs_ui_doctor_create(struct mfs_cm *cm); /* NULL: no memory */
void mfs_ui_doctor_destroy(struct mfs_ui_doctor *d);           /* ends what runs. Takes NULL */

/* Somebody watches: the command is run if it is time to. */
void mfs_ui_doctor_watched(struct mfs_ui_doctor *d);

/* When the command has ended last, wall clock, s; 0: it has not yet. Takes NULL. */
int64_t mfs_ui_doctor_time(const struct mfs_ui_doctor *d);

/* A page (arg: the struct mfs_cm): {"time":S,"error":WHY,"findings":[…]}, the findings as `cm
 * doctor
 * --json` has them; null where it could not be run to its end, and why. */
int mfs_ui_doctor_page(void *arg, bool other, struct mfs_httpd_answer *a);

#endif
