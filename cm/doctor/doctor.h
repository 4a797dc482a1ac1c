/* What `cm doctor` has found, and how it is shown. Not thread-safe. */
#ifndef MFS_CM_DOCTOR_DOCTOR_H
#define MFS_CM_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum mfs_doctor_status { MFS_DOCTOR_OK, MFS_DOCTOR_WARN, MFS_DOCTOR_FAIL };

struct mfs_doctor;

struct mfs_doctor *mfs_doctor_create(void); /* NULL: ENOMEM */
void mfs_doctor_destroy(struct mfs_doctor *d);

/* Adds a finding: what was looked at, and what was found. Without memory it is lost, and rendering
 * fails. */
void mfs_doctor_add(struct mfs_doctor *d, enum mfs_doctor_status status, const char *check,
                    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* What to do about the finding that was added last, which is no MFS_DOCTOR_OK. */
void mfs_doctor_advise(struct mfs_doctor *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* How many findings there are of that status. */
size_t mfs_doctor_count(const struct mfs_doctor *d, enum mfs_doctor_status status);

/* Appends "ok|warn|FAIL  check: found" lines, advice below them, or a JSON array of objects {check,
 * status, found, advice}. 0 or -ENOMEM. */
int mfs_doctor_render(const struct mfs_doctor *d, bool json, struct mfs_buf *out);

#endif
