/* The screen of `memefs top`, as show/live.h has it: `view` is a struct mfs_mount_view, `sample` a
 * struct mfs_mount_top or NULL. One thread. */
#ifndef MFS_CLI_TOP_SCREEN_H
#define MFS_CLI_TOP_SCREEN_H

#include "cli/top/model.h"
#include "show/live.h"

enum mfs_mount_page {
    MFS_MOUNT_PAGE_MAIN,
    MFS_MOUNT_PAGE_HELP,
    MFS_MOUNT_PAGE_OPERATION,
    MFS_MOUNT_PAGE_FILES,
    MFS_MOUNT_PAGE_DIRS,
    MFS_MOUNT_PAGE_PROGRAMS,
    MFS_MOUNT_PAGE_NODES
};

struct mfs_mount_view {
    enum mfs_mount_top_order order;
    enum mfs_mount_page page;
    bool paused;
    char selected[24]; /* operation; "": the first */
    uint32_t first;    /* row of operations at the top */
};

void mfs_mount_screen_draw(void *view, const void *sample, const char *notice);
enum mfs_live_key mfs_mount_screen_key(void *view, const void *sample);
bool mfs_mount_screen_paused(const void *view);

#endif
