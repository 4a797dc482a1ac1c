#include "cm/change/on_end.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cm/provider/run.h"
#include "cm/state/events.h"

#define LEAST (2 * MFS_SEC) /* that it is tried for */

struct mfs_on_end {
    struct mfs_cm *cm;
    struct mfs_run *run; /* cm checkpoint; NULL: it does not run */
    bool due, saved;
};

struct mfs_on_end *mfs_on_end_create(struct mfs_cm *cm)
{
    struct mfs_on_end *o = calloc(1, sizeof *o);

    if (o)
        *o = (struct mfs_on_end){.cm = cm, .due = true};
    return o;
}

void mfs_on_end_destroy(struct mfs_on_end *o)
{
    if (!o)
        return;
    mfs_run_drop(o->run);
    free(o);
}

const char *mfs_on_end_dir(const struct mfs_cm *cm)
{
    return cm->state.on_end[0] ? cm->state.on_end + strlen(MFS_ON_END_CHECKPOINT) : NULL;
}

void mfs_on_end_again(struct mfs_on_end *o)
{
    o->due = true;
    o->saved = false;
}

bool mfs_on_end_saved(const struct mfs_on_end *o)
{
    return o->saved;
}

static void ended(void *arg, const struct mfs_err *why, const char *output)
{
    struct mfs_on_end *o = arg;
    char last[300];

    o->run = NULL;
    o->saved = !why;
    if (o->saved)
        return;
    mfs_run_last_line(output, last, sizeof last);
    mfs_event_add(o->cm->paths->events, "cm", "checkpoint-failed", "%s: cm checkpoint %s: %s",
                  mfs_on_end_dir(o->cm), why->msg, last);
}

static void begin(struct mfs_on_end *o, int64_t limit)
{
    const struct mfs_run_options options = {.limit = limit > LEAST ? limit : LEAST, .read = true};
    struct mfs_cm *cm = o->cm;
    char program[PATH_MAX];
    const char *argv[] = {program,         "checkpoint",  mfs_on_end_dir(cm), "--name",
                          cm->paths->name, "--state-dir", cm->paths->dir,     NULL};
    struct mfs_err err = {0};

    if (mfs_run_sibling("cm", program, sizeof program))
        mfs_error("departures", "cm, which writes the checkpoint, is not found");
    else
        o->run = mfs_run_begin(&cm->provider_context, argv, &options, ended, o, &err);
    if (!o->run && err.code)
        mfs_error("departures", "%s", err.msg);
}

bool mfs_on_end_saves(struct mfs_on_end *o, int64_t limit)
{
    if (!o->run && o->due && mfs_on_end_dir(o->cm)) { /* there is one at a time in a directory */
        o->due = false;
        begin(o, limit);
    }
    return o->run != NULL;
}
