/* The screen of `cm top`: draws what the model says, and takes keys. One thread. */
#ifndef MFS_CM_CLI_TOP_SCREEN_H
#define MFS_CM_CLI_TOP_SCREEN_H

#include <stdbool.h>

#include "cm/cli/top/model.h"

enum mfs_top_page { MFS_TOP_PAGE_MAIN, MFS_TOP_PAGE_HELP, MFS_TOP_PAGE_NODE };

/* What is shown besides the sample. */
struct mfs_top_view {
    enum mfs_top_order order;
    enum mfs_top_page page;
    bool paused;
    char selected[MFS_NAME_MAX];  /* node; "": the first */
    uint32_t first;               /* row of nodes at the top */
    char notice[MFS_ERR_MSG_MAX]; /* why cm does not answer; "" */
};

enum mfs_top_key {
    MFS_TOP_KEY_NONE,
    MFS_TOP_KEY_QUIT,
    MFS_TOP_KEY_REDRAW, /* the size has changed */
    MFS_TOP_KEY_TAKEN,  /* the view has changed */
};

void mfs_top_screen_draw(const struct mfs_top_sample *s, struct mfs_top_view *v);

/* The next key that was pressed, which changes the view; NONE: there is none just now. */
enum mfs_top_key mfs_top_screen_key(const struct mfs_top_sample *s, struct mfs_top_view *v);

#endif
