/* Asks before something is lost. */
#ifndef MFS_CM_CLI_AGREE_H
#define MFS_CM_CLI_AGREE_H

#include <stdbool.h>

/* Is somebody there to be asked: are standard input and error a terminal? */
bool mfs_agree_can_ask(void);
/* Says it, and waits for an answer. Only "y…" is true; false, too, where nobody can be asked. */
bool mfs_agree(const char *what);

#endif
