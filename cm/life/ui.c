/* What the page of a deployment asks for (cm/ui): its files, the past, and each second what there
 * is now. */
#include "cm/life/ui.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cm/change/autoscale.h"
#include "cm/history/keep.h"
#include "cm/life/status.h"
#include "cm/life/ui_doctor.h"
#include "cm/nodes/mounts.h"
#include "cm/plan/policy.h"
#include "cm/state/events.h"
#include "cm/ui/assets.h"
#include "proto/encode.h"

static int put_file(enum mfs_ui_file which, struct mfs_httpd_answer *a)
{
    const struct mfs_ui_asset *f = &mfs_ui_assets[which];

    a->type = f->type;
    return mfs_buf_append(&a->out, f->text, f->len);
}

int mfs_ui_page(void *arg, bool other, struct mfs_httpd_answer *a)
{
    (void)arg;
    (void)other;
    return put_file(MFS_UI_HTML, a);
}

int mfs_ui_style(void *arg, bool other, struct mfs_httpd_answer *a)
{
    (void)arg;
    (void)other;
    return put_file(MFS_UI_CSS, a);
}

int mfs_ui_script(void *arg, bool other, struct mfs_httpd_answer *a)
{
    (void)arg;
    (void)other;
    return put_file(MFS_UI_JS, a);
}

int mfs_ui_past(void *arg, bool other, struct mfs_httpd_answer *a)
{
    (void)other;
    a->type = "application/json";
    return mfs_history_json(mfs_history_of(arg), &a->out);
}

/* ---- now ------------------------------------------------------------------------------------- */

/* The newest figures, as the curves go on with them. */
static int put_now(const struct mfs_cm *cm, struct mfs_buf *out)
{
    const struct mfs_history_ring *r = mfs_history_of(cm)->hour;
    int64_t last = mfs_history_ring_last(r), now = mfs_clock_real().tv_sec;
    int rc = mfs_buf_printf(out, "\"now\":{\"time\":%lld", (long long)now);

    for (uint32_t f = 0; f < MFS_HISTORY_FIGURES && !rc; f++) {
        float v = now - last < 5 ? mfs_history_ring_mean(r, f, last, 1) : NAN;

        rc = isnan(v) ? mfs_buf_printf(out, ",\"%s\":null", mfs_history_names[f])
                      : mfs_buf_printf(out, ",\"%s\":%.9g", mfs_history_names[f], (double)v);
    }
    return rc ? rc : mfs_buf_printf(out, "}");
}

static int put_policy(const struct mfs_cm *cm, struct mfs_buf *out)
{
    double out_at, in_at;

    if (!mfs_autoscale_thresholds(cm, &out_at, &in_at))
        out_at = in_at = 0;
    return mfs_buf_printf(
        out,
        ",\"scale_out_at\":%g,\"scale_in_at\":%g,\"changing\":%s,\"writes\":%s,\"doctor\":%lld",
        out_at, in_at, mfs_cm_changing(cm) ? "true" : "false",
        cm->state.ui_write ? "true" : "false", (long long)mfs_ui_doctor_time(cm->ui_doctor));
}

static int put_events(struct mfs_buf *out)
{
    struct mfs_event list[MFS_EVENTS_RECENT];
    unsigned n = mfs_event_recent(list);
    int rc = mfs_buf_printf(out, ",\"events\":[");

    for (unsigned i = 0; i < n && !rc; i++) {
        rc = i ? mfs_buf_append(out, ",", 1) : 0;
        if (!rc)
            rc = mfs_schema_put(&mfs_event_schema, &list[i], MFS_LAYOUT_LEAN, 0, out);
    }
    return rc ? rc : mfs_buf_printf(out, "]");
}

static int put_status(const struct mfs_cm *cm, struct mfs_buf *out)
{
    struct mfs_mounts mounts;
    struct mfs_status s;
    int rc = mfs_status_make(cm, &s);

    if (rc)
        return rc;
    rc = mfs_buf_printf(out, ",\"status\":");
    if (!rc)
        rc = mfs_schema_put(&mfs_status_schema, &s, MFS_LAYOUT_LEAN, 0, out);
    mfs_schema_clear(&mfs_status_schema, &s);
    if (!rc)
        rc = mfs_mounts_list(cm, &mounts);
    if (rc)
        return rc;
    rc = mfs_buf_printf(out, ",\"told\":");
    if (!rc)
        rc = mfs_schema_put(&mfs_mounts_schema, &mounts, MFS_LAYOUT_LEAN, 0, out);
    free(mounts.mount);
    return rc;
}

int mfs_ui_now(void *arg, bool other, struct mfs_httpd_answer *a)
{
    const struct mfs_cm *cm = arg;
    int rc = mfs_buf_printf(&a->out, "data: {");

    (void)other;
    if (cm->ui_doctor)
        mfs_ui_doctor_watched(cm->ui_doctor);
    if (!rc)
        rc = put_now(arg, &a->out);
    if (!rc)
        rc = put_policy(arg, &a->out);
    if (!rc)
        rc = put_events(&a->out);
    if (!rc)
        rc = put_status(arg, &a->out);
    return rc ? rc : mfs_buf_printf(&a->out, "}\n\n");
}
