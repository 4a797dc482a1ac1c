/* The list of findings. */
#include "cm/doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "proto/schema.h"

#define CHECK_MAX  576 /* a path may stand in it */
#define TEXT_MAX   2048
#define STATUS_MAX 8

struct finding {
    enum mfs_doctor_status of;
    char check[CHECK_MAX], status[STATUS_MAX], found[TEXT_MAX], advice[TEXT_MAX];
};

struct mfs_doctor {
    struct finding *finding;
    size_t n;
    bool lost; /* one, for lack of memory */
};

static const char *const names[] = {
    [MFS_DOCTOR_OK] = "ok", [MFS_DOCTOR_WARN] = "warn", [MFS_DOCTOR_FAIL] = "FAIL"};

static const struct mfs_schema finding_schema = {
    "finding", sizeof(struct finding),
    (const struct mfs_field[]){{.name = "check", MFS_FIELD(STR, struct finding, check)},
                               {.name = "status", MFS_FIELD(STR, struct finding, status)},
                               {.name = "found", MFS_FIELD(STR, struct finding, found)},
                               {.name = "advice", MFS_FIELD(STR, struct finding, advice)},
                               {0}}};

struct mfs_doctor *mfs_doctor_create(void)
{
    return calloc(1, sizeof(struct mfs_doctor));
}

void mfs_doctor_destroy(struct mfs_doctor *d)
{
    if (!d)
        return;
    free(d->finding);
    free(d);
}

void mfs_doctor_add(struct mfs_doctor *d, enum mfs_doctor_status status, const char *check,
                    const char *fmt, ...)
{
    struct finding *more = reallocarray(d->finding, d->n + 1, sizeof *more), *f;
    va_list ap;

    if (!more) {
        d->lost = true;
        return;
    }
    d->finding = more;
    f = &d->finding[d->n++];
    f->of = status;
    f->advice[0] = '\0';
    snprintf(f->check, sizeof f->check, "%s", check);
    snprintf(f->status, sizeof f->status, "%s", names[status]);
    va_start(ap, fmt);
    vsnprintf(f->found, sizeof f->found, fmt, ap);
    va_end(ap);
}

void mfs_doctor_advise(struct mfs_doctor *d, const char *fmt, ...)
{
    struct finding *f = d->n ? &d->finding[d->n - 1] : NULL;
    va_list ap;

    if (!f)
        return;
    va_start(ap, fmt);
    vsnprintf(f->advice, sizeof f->advice, fmt, ap);
    va_end(ap);
}

size_t mfs_doctor_count(const struct mfs_doctor *d, enum mfs_doctor_status status)
{
    size_t n = 0;

    for (size_t i = 0; i < d->n; i++)
        n += d->finding[i].of == status;
    return n;
}

static int put_text(const struct finding *f, struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, "%-4s  %s: %s\n", f->status, f->check, f->found);

    if (rc >= 0 && f->advice[0])
        rc = mfs_buf_printf(out, "      -> %s\n", f->advice);
    return rc;
}

static int put_json(const struct finding *f, bool first, struct mfs_buf *out)
{
    int rc = mfs_buf_printf(out, first ? "\n" : ",\n");

    return rc < 0 ? rc : mfs_schema_encode(&finding_schema, f, false, out);
}

int mfs_doctor_render(const struct mfs_doctor *d, bool json, struct mfs_buf *out)
{
    int rc = d->lost ? -ENOMEM : 0;

    if (json && !rc)
        rc = mfs_buf_printf(out, "[");
    for (size_t i = 0; i < d->n && rc >= 0; i++)
        rc = json ? put_json(&d->finding[i], !i, out) : put_text(&d->finding[i], out);
    if (json && rc >= 0)
        rc = mfs_buf_printf(out, "\n]\n");
    return rc < 0 ? rc : 0;
}
