/* Names of files as JSON, and for people: names are bytes, JSON is UTF-8, and terminals obey. */
#ifndef MFS_BASE_SHOWN_H
#define MFS_BASE_SHOWN_H

#include <stddef.h>

#include "base/buf.h"

/* Appends a JSON string of the text, with its quotes. A byte that is no UTF-8 becomes "\udcXX",
 * half of a surrogate pair, as RFC 8259 (8.2) allows: what Python calls "surrogateescape" (PEP
 * 383), whose os.fsencode makes the byte of it again. 0 or -ENOMEM. */
int mfs_shown_json(struct mfs_buf *to, const char *text);

/* Makes such halves in a JSON text bytes again, which is no UTF-8 then, but what C has as a name.
 * Returns the new length. */
size_t mfs_shown_unescape(char *json, size_t len);

/* Appends the name of a file as ls(1) shows it on a terminal: itself if a shell would read it as
 * one plain word, else quoted so that a shell reads it as what it is; what a terminal could take
 * for an order of its own (ESC, a newline) as $'\033'. 0 or -ENOMEM. */
int mfs_shown_shell(struct mfs_buf *to, const char *text);

#endif
