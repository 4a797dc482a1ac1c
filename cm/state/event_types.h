/* The words that events have as their type (`what`); docs/reference/events.md says what they mean.
 */
#ifndef MFS_CM_STATE_EVENT_TYPES_H
#define MFS_CM_STATE_EVENT_TYPES_H

#include <stdbool.h>
#include <stddef.h>

extern const char *const mfs_event_types[]; /* sorted; NULL behind the last */

bool mfs_event_type_known(const char *word, size_t len);

#endif
