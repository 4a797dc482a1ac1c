/* The page that shows a deployment, as it is in this folder: made part of the program by CMake. */
#ifndef MFS_CM_UI_ASSETS_H
#define MFS_CM_UI_ASSETS_H

#include <stddef.h>

struct mfs_ui_asset {
    const char *path; /* that it is served at */
    const char *type;
    const char *text;
    size_t len;
};

enum mfs_ui_file { MFS_UI_HTML, MFS_UI_CSS, MFS_UI_JS, MFS_UI_FILES };

extern const struct mfs_ui_asset mfs_ui_assets[MFS_UI_FILES];

#endif
