#include "cm/ui/assets.h"

#include "cm/ui/embedded.h" /* made by embed.cmake */

#define TEXT(bytes) (const char *)(bytes), sizeof(bytes)

const struct mfs_ui_asset mfs_ui_assets[MFS_UI_FILES] = {
    [MFS_UI_HTML] = {"/ui", "text/html; charset=utf-8", TEXT(mfs_ui_page_html)},
    [MFS_UI_CSS] = {"/ui/page.css", "text/css; charset=utf-8", TEXT(mfs_ui_page_css)},
    [MFS_UI_JS] = {"/ui/page.js", "text/javascript; charset=utf-8", TEXT(mfs_ui_page_js)}};
