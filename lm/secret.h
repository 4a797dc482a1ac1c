/* The deployment's secret, as what starts a Local Manager hands it over. */
#ifndef MFS_LM_SECRET_H
#define MFS_LM_SECRET_H

#include <stddef.h>

#include "base/err.h"

#define MFS_LM_SECRET_MAX 256 /* with its NUL */

/* From the environment (MFS_SECRET_VARIABLE), where it is wiped out, so that nothing that is
 * started from here has it; else the first line of standard input, which is waited for some
 * seconds. 0, or a negative errno with what to do. */
int mfs_lm_secret_given(char out[MFS_LM_SECRET_MAX], struct mfs_err *err);

#endif
