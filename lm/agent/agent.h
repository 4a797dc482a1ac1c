/* The Local Manager itself: one loop that ties cm, the redis processes, the clients and the mount
 * of a node together. docs/design/protocol.md says what cm may expect of it. */
#ifndef MFS_LM_AGENT_AGENT_H
#define MFS_LM_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct mfs_agent_opts {
    const char *name; /* of the deployment */
    uint32_t node;
    const char *address;       /* of the node: numeric */
    const char *state_dir;     /* of the deployment, absolute */
    const char *dump_dir;      /* where to make one for dumps, absolute; NULL: /var/tmp */
    const char *cm;            /* HOST:PORT */
    bool control;              /* there may be a cm on another machine, or come to be one */
    const char *iface;         /* that is measured; NULL: the one with the address */
    const char *log_format;    /* of the mount: a word of MFS_LOG_FORMATS; NULL: its default */
    int64_t first_contact;     /* ns to join cm for the first time, with nothing on board; 0: any */
    int64_t interval;          /* ns between two looks at the redis processes, and two reports */
    void (*joined)(void *arg); /* NULL: nobody asks; see mfs_agent_run */
    uint32_t metrics;          /* port at which figures are served, 0: none */
    int64_t grace;             /* ns from SIGTERM to the end, at most, for what is here to move */
};

/* Runs until cm says stop, SIGINT comes, or SIGTERM and what follows from it (leave.c), and
 * everything that was started has ended: 0.
 * A negative errno with the reason when it could not begin, or cm refused it. `started` (may be
 * NULL) is called when clients can connect, `joined` once cm has taken the node, or when the time
 * of first_contact is over and it goes on without: with what it found on board. */
int mfs_agent_run(const struct mfs_agent_opts *opts, void (*started)(void *arg), void *arg,
                  struct mfs_err *err);

#endif
