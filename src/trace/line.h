/* A request of a mount, as it is told: who asked for what, how it ended, and where the time went.
 * The client makes such lines (fuse/inside/), `memefs trace` and `memefs profile` read them. */
#ifndef MFS_TRACE_LINE_H
#define MFS_TRACE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/phases.h"

#define MFS_TRACE_PATH    512 /* of a longer one the beginning is left out: "…/rest" */
#define MFS_TRACE_PROGRAM 32
#define MFS_TRACE_PLACES  MFS_PHASE_PLACES

/* Round trips to one partition. */
struct mfs_trace_place {
    uint32_t node, partition, trips;
    double ms, least_ms;
};

struct mfs_trace_line {
    double time; /* s since 1970: when it came */
    char op[24];
    char path[MFS_TRACE_PATH]; /* from the mount on; "." the mount itself, "" not known */
    uint32_t pid, uid;         /* pid 0: the kernel's own, or of another PID namespace */
    char program[MFS_TRACE_PROGRAM];
    uint64_t offset, bytes;
    char error[24];              /* "ENOENT"; "": none */
    double ms;                   /* all of it, until now if it has not ended */
    double phase_ms[MFS_PHASES]; /* of these; the rest was in the client itself */
    uint32_t trips;              /* round trips */
    uint32_t nplaces;            /* of which … */
    struct mfs_trace_place place[MFS_TRACE_PLACES];
    uint32_t holder_pid;                  /* of the lock that it has waited for; 0: not known */
    char holder[MFS_TRACE_PROGRAM];       /* that program; "": of another mount, or gone */
    bool holder_elsewhere;                /* another mount's */
    uint32_t full;                        /* the node that had no memory, plus 1 */
    bool open;                            /* it has not ended; then … */
    uint32_t waits;                       /* enum mfs_phase plus 1; 0: for nothing */
    uint32_t waits_node, waits_partition; /* of the first two phases */
    double waits_ms;                      /* so far: phase_ms has the waits before this one */
};

/* In the client itself, ms. */
double mfs_trace_client_ms(const struct mfs_trace_line *l);

/* Appends one line, with its newline: for people, or as JSON. 0 or -ENOMEM. */
int mfs_trace_text(const struct mfs_trace_line *l, struct mfs_buf *to);
int mfs_trace_json(const struct mfs_trace_line *l, struct mfs_buf *to);
int mfs_trace_lost_text(uint64_t lost, struct mfs_buf *to);
int mfs_trace_lost_json(uint64_t lost, struct mfs_buf *to);

/* Appends "process 17 (name)", without a name that is "". 0 or -ENOMEM. */
int mfs_trace_process_text(uint32_t pid, const char *name, struct mfs_buf *to);

/* Reads a line of JSON, which is changed. 0, -EINVAL, -ENOMEM; 1: it says that *lost lines are
 * missing. */
int mfs_trace_parse(char *json, size_t len, struct mfs_trace_line *l, uint64_t *lost,
                    struct mfs_err *err);

#endif
