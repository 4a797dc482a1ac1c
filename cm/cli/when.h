/* Times that an operator says. Pure. */
#ifndef MFS_CM_CLI_WHEN_H
#define MFS_CM_CLI_WHEN_H

#include <stdint.h>

/* RFC 3339 ("2026-01-31T12:00:00.5+01:00", or with Z), or how long before `now`: "10m", "2h ago",
 * with s, m, h or d. Microseconds since 1970; 0 or -EINVAL. */
int mfs_when_parse(const char *text, int64_t now, int64_t *when);

#endif
