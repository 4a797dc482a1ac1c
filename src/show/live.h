/* A live screen: a sample is taken each second, in a thread of its own, so that keys are answered
 * while what is asked for samples does not answer; each is drawn until the next one comes. */
#ifndef MFS_SHOW_LIVE_H
#define MFS_SHOW_LIVE_H

#include <stdbool.h>

#include "base/err.h"

enum mfs_live_key {
    MFS_LIVE_NONE, /* there was none */
    MFS_LIVE_QUIT,
    MFS_LIVE_TAKEN,
};

struct mfs_live {
    /* The sampler's thread: a sample, or NULL with the reason. */
    void *(*take)(void *source, struct mfs_err *err);
    void *source;
    void (*destroy)(void *source); /* when no sample is taken any more; not when one never ends */
    void (*free_sample)(void *sample);
    /* The caller's thread, as are the next. sample NULL: there is none yet; notice: why there is no
     * newer one, "" when there is. */
    void (*draw)(void *view, const void *sample, const char *notice);
    enum mfs_live_key (*key)(void *view, const void *sample); /* the next key that was pressed */
    bool (*paused)(const void *view);                         /* samples wait */
    void *view;
};

/* Takes the terminal over and shows it until `key` says QUIT, or a signal or the terminal ends it.
 * The status to exit with, 128 and a signal's number; or a negative errno with the reason. Does not
 * return, but ends the process, when a sample is still being taken at the end: exit(3) would take
 * libraries from under that, which _exit(2) does not. */
int mfs_live_run(const struct mfs_live *live, struct mfs_err *err);

#endif
