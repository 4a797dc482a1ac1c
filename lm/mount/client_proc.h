/* The client process of the managed mount, and its files in the node's directory:
 *
 *   mount       the mount point, one line; there before the mount is, gone after it, so that
 *               `cm` finds it when it cleans up after a crash
 *   client.pid  see host/proc.h
 *   client.log  what it writes
 *
 * Calls on small files and fork; nothing here touches the mount itself. */
#ifndef MFS_LM_MOUNT_CLIENT_PROC_H
#define MFS_LM_MOUNT_CLIENT_PROC_H

#include <stddef.h>
#include <stdint.h>

#include "host/proc.h"

struct mfs_client_proc {
    const char *name, *state_dir; /* of the deployment */
    const char *dir;              /* of the node, absolute */
    const char *address;          /* of lm.sock, "unix:/…" */
    uint64_t memory;        /* bytes that it may take, unless the options say; 0: its default */
    const char *log_format; /* likewise; NULL: its default */
};

/* Starts "memefs mount" beside our own executable. 0 or a negative errno. */
int mfs_client_proc_start(const struct mfs_client_proc *c, const char *path, const char *options,
                          struct mfs_proc *proc);

/* Ends a client whose Local Manager was killed before it noted it in lm.json: it flushes what was
 * written meanwhile. Blocks for some 5 s at most, and only when there is one. */
void mfs_client_proc_end_unlisted(const struct mfs_client_proc *c);

/* The last line of client.log, into out[n]. */
void mfs_client_proc_last_words(const struct mfs_client_proc *c, char *out, size_t n);

int mfs_client_proc_note(const struct mfs_client_proc *c, const char *path); /* writes "mount" */
void mfs_client_proc_forget(const struct mfs_client_proc *c); /* removes it and client.pid */

#endif
