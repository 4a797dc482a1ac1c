#include "cm/life/ui_doctor.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/provider/run.h"
#include "proto/encode.h"
#include "proto/json.h"

#define REST  (60 * MFS_SEC) /* between two */
#define LIMIT (30 * MFS_SEC)
#define END   "\n]\n" /* of the findings; behind it is what the command says of itself */

struct mfs_ui_doctor {
    struct mfs_cm *cm;
    struct mfs_run *run;     /* NULL: it does not run */
    int64_t again;           /* not before, mono */
    int64_t time;            /* of what is below, wall clock, s; 0: none yet */
    struct mfs_buf findings; /* a JSON array; empty: there are none, because of `error` */
    char error[300];
};

struct mfs_ui_doctor *mfs_ui_doctor_create(struct mfs_cm *cm)
{
    struct mfs_ui_doctor *d = calloc(1, sizeof *d);

    if (!d)
        return NULL;
    d->cm = cm;
    mfs_buf_init(&d->findings);
    return d;
}

void mfs_ui_doctor_destroy(struct mfs_ui_doctor *d)
{
    if (!d)
        return;
    if (d->run)
        mfs_run_kill(d->run);
    mfs_run_drop(d->run);
    mfs_buf_fini(&d->findings);
    free(d);
}

int64_t mfs_ui_doctor_time(const struct mfs_ui_doctor *d)
{
    return d ? d->time : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void over(struct mfs_ui_doctor *d, const char *error)
{
    if (error) {
        mfs_buf_clear(&d->findings);
        snprintf(d->error, sizeof d->error, "%s", error);
    }
    d->time = mfs_clock_real().tv_sec;
    d->again = mfs_clock_mono() + REST;
}

/* The array that the output begins with, if that is one. */
static bool take(struct mfs_ui_doctor *d, const char *output)
{
    const char *end = strstr(output, END);
    struct mfs_buf b;
    cJSON *json;

    if (!end)
        return false;
    mfs_buf_init(&b);
    mfs_buf_clear(&d->findings);
    if (mfs_buf_append(&d->findings, output, (size_t)(end - output) + strlen(END) - 1) ||
        mfs_buf_printf(&b, "{\"findings\":") ||
        mfs_buf_append(&b, mfs_buf_data(&d->findings), mfs_buf_len(&d->findings)) ||
        mfs_buf_append(&b, "}", 1))
        json = NULL;
    else
        json = mfs_json_parse(mfs_buf_data(&b), mfs_buf_len(&b), NULL);
    mfs_buf_fini(&b);
    cJSON_Delete(json);
    return json != NULL;
}

/* That checks have failed is an exit status, too. */
static void ended(void *arg, const struct mfs_err *why, const char *output)
{
    struct mfs_ui_doctor *d = arg;
    char last[200], text[300];

    d->run = NULL;
    d->error[0] = '\0';
    if (take(d, output)) {
        over(d, NULL);
        return;
    }
    mfs_run_last_line(output, last, sizeof last);
    snprintf(text, sizeof text, "cm doctor %.80s: %s", why ? why->msg : "says nothing of use",
             last);
    over(d, text);
}

void mfs_ui_doctor_watched(struct mfs_ui_doctor *d)
{
    const struct mfs_run_options options = {.limit = LIMIT, .read = true};
    struct mfs_err err = {0};
    char program[PATH_MAX];
    const char *argv[] = {program,       "doctor",          "--json", "--name", d->cm->paths->name,
                          "--state-dir", d->cm->paths->dir, NULL};

    if (d->run || mfs_clock_mono() < d->again || !mfs_cm_in_phase(d->cm, MFS_PHASE_RUNNING))
        return;
    if (mfs_run_sibling("cm", program, sizeof program))
        over(d, "cm, which looks, is not found beside this one");
    else
        d->run = mfs_run_begin(&d->cm->provider_context, argv, &options, ended, d, &err);
    if (!d->run && err.code)
        over(d, err.msg);
}

/* ---- the page -------------------------------------------------------------------------------- */

int mfs_ui_doctor_page(void *arg, bool other, struct mfs_httpd_answer *a)
{
    const struct mfs_cm *cm = arg;
    const struct mfs_ui_doctor *d = cm->ui_doctor;
    int rc = mfs_buf_printf(&a->out, "{\"time\":%lld,\"error\":", (long long)mfs_ui_doctor_time(d));

    (void)other;
    a->type = "application/json";
    if (!rc)
        rc = mfs_string_encode(d ? d->error : "", &a->out);
    if (!rc)
        rc = mfs_buf_printf(&a->out, ",\"findings\":");
    if (!rc && d && mfs_buf_len(&d->findings))
        rc = mfs_buf_append(&a->out, mfs_buf_data(&d->findings), mfs_buf_len(&d->findings));
    else if (!rc)
        rc = mfs_buf_printf(&a->out, "null");
    return rc ? rc : mfs_buf_append(&a->out, "}", 1);
}
