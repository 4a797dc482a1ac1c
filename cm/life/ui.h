/* The pages of `cm start --ui` (http/httpd.h); arg is the struct mfs_cm. */
#ifndef MFS_CM_LIFE_UI_H
#define MFS_CM_LIFE_UI_H

#include "cm/nodes/control.h"
#include "http/httpd.h"

int mfs_ui_page(void *arg, bool other, struct mfs_httpd_answer *a);
int mfs_ui_style(void *arg, bool other, struct mfs_httpd_answer *a);
int mfs_ui_script(void *arg, bool other, struct mfs_httpd_answer *a);
int mfs_ui_past(void *arg, bool other, struct mfs_httpd_answer *a);
/* A server-sent event: figures, policy, the last events, status and mounts as one JSON object. */
int mfs_ui_now(void *arg, bool other, struct mfs_httpd_answer *a);

/* Takes {"do":"scale","nodes":N,"from":N}, {"do":"drain","node":NAME} or
 * {"do":"policy","name":NAME,"from":NAME}; where `from` is not so any more it refuses. */
void mfs_ui_change(void *arg, const char *from, const char *body, size_t n,
                   struct mfs_httpd_verdict *v);

#endif
