/* The screen of `cm top`: draws what the model says, and takes keys. One thread. */
#ifndef MFS_CM_CLI_TOP_SCREEN_H
#define MFS_CM_CLI_TOP_SCREEN_H

#include <stdbool.h>

#include "cm/cli/top/model.h"
#include "show/live.h"

enum mfs_top_page { MFS_TOP_PAGE_MAIN, MFS_TOP_PAGE_HELP, MFS_TOP_PAGE_NODE, MFS_TOP_PAGE_WORK };

/* What is shown besides the sample. */
struct mfs_top_view {
    enum mfs_top_order order;
    enum mfs_top_page page;
    bool paused;
    char selected[MFS_NAME_MAX]; /* node; "": the first */
    uint32_t first;              /* row of nodes at the top */
    const char *notice;          /* why cm does not answer; "" */
};

/* The screen of `cm top`, as show/live.h has it: `view` is a struct mfs_top_view, `sample` a struct
 * mfs_top_sample or NULL. */
void mfs_top_screen_draw(void *view, const void *sample, const char *notice);
enum mfs_live_key mfs_top_screen_key(void *view, const void *sample);
bool mfs_top_screen_paused(const void *view);

#endif
