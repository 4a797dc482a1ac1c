#include "show/clients.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define CELL 48

enum column {
    NODE,
    HOST,
    PID,
    USER,
    VERSION,
    SINCE,
    HEARD,
    OPS,
    ERRORS,
    READ,
    WRITTEN,
    P99,
    COLUMNS
};

static const char *const titles[COLUMNS] = {
    [NODE] = "NODE",   [HOST] = "HOST", [PID] = "PID",       [USER] = "USER",
    [SINCE] = "SINCE", [OPS] = "OPS",   [ERRORS] = "ERRORS", [VERSION] = "VERSION",
    [READ] = "READ",   [P99] = "P99",   [HEARD] = "HEARD",   [WRITTEN] = "WRITTEN"};

struct row {
    char cell[COLUMNS][CELL];
    char path[4 * MFS_PATH_MAX];
};

static void put_time(uint64_t seconds, char out[CELL])
{
    time_t t = (time_t)seconds;
    struct tm tm;

    if (!seconds || !localtime_r(&t, &tm) || !strftime(out, CELL, "%Y-%m-%d %H:%M:%S", &tm))
        snprintf(out, CELL, "-");
}

static void put_heard(const struct mfs_mount *m, char out[CELL])
{
    if (m->operations)
        snprintf(out, CELL, "%.1f s%s", (double)m->age_ms / 1000, m->connected ? "" : ", gone");
    else
        snprintf(out, CELL, "%s", m->connected ? "-" : "gone");
}

static void fill(struct row *r, const struct mfs_mount *m, mfs_show_user *user)
{
    snprintf(r->cell[NODE], CELL, "%.47s", m->node);
    snprintf(r->cell[HOST], CELL, "%.47s", m->host);
    snprintf(r->cell[PID], CELL, "%u", m->pid);
    if (m->pid)
        snprintf(r->cell[USER], CELL, "%u", m->uid);
    else
        snprintf(r->cell[USER], CELL, "-"); /* lm does not see its process */
    if (m->pid && user)
        user(m->uid, r->cell[USER], CELL);
    snprintf(r->cell[VERSION], CELL, "%.31s", m->version[0] ? m->version : "-");
    put_time(m->since, r->cell[SINCE]);
    put_heard(m, r->cell[HEARD]);
    snprintf(r->cell[OPS], CELL, "%llu", (unsigned long long)m->operations);
    snprintf(r->cell[ERRORS], CELL, "%llu", (unsigned long long)m->errors);
    mfs_text_bytes(m->read_bytes, r->cell[READ], CELL);
    mfs_text_bytes(m->written_bytes, r->cell[WRITTEN], CELL);
    snprintf(r->cell[P99], CELL, "%.3f ms", m->p99 * 1000);
    mfs_text_quote(r->path, sizeof r->path, m->path);
}

static int put_rows(const struct row *rows, uint32_t n, struct mfs_buf *out)
{
    int width[COLUMNS] = {0}, rc = 0;

    for (uint32_t i = 0; i < n; i++)
        for (int c = 0; c < COLUMNS; c++)
            if ((int)strlen(rows[i].cell[c]) > width[c])
                width[c] = (int)strlen(rows[i].cell[c]);
    for (uint32_t i = 0; i < n && !rc; i++) {
        for (int c = 0; c < COLUMNS && !rc; c++)
            rc = mfs_buf_printf(out, c >= OPS ? "%*s  " : "%-*s  ", width[c], rows[i].cell[c]);
        if (!rc)
            rc = mfs_buf_printf(out, "%s\n", rows[i].path);
    }
    return rc;
}

int mfs_show_clients(const struct mfs_mounts *list, mfs_show_user *user, struct mfs_buf *out)
{
    struct row *rows = calloc(list->n + 1, sizeof *rows);
    int rc;

    if (!rows)
        return -ENOMEM;
    for (int c = 0; c < COLUMNS; c++)
        snprintf(rows[0].cell[c], CELL, "%s", titles[c]);
    mfs_text_copy(rows[0].path, sizeof rows[0].path, "MOUNT");
    for (uint32_t i = 0; i < list->n; i++)
        fill(&rows[i + 1], &list->mount[i], user);
    rc = put_rows(rows, list->n + 1, out);
    if (!rc && list->left_out)
        rc = mfs_buf_printf(out, "and %u more\n", list->left_out);
    free(rows);
    return rc;
}

int mfs_show_event(const struct mfs_event *e, struct mfs_buf *out)
{
    return mfs_buf_printf(out, "%s  %-8s  %-16s  %s\n", e->time, e->who, e->what, e->text);
}

int mfs_show_told(const struct mfs_told *t, struct mfs_buf *out)
{
    if (t->nothing)
        return mfs_buf_printf(out, "cm does not answer, and has told nothing yet\n");
    if (t->stale)
        return mfs_buf_printf(out, "cm does not answer: this is what it told %.1f s ago\n",
                              (double)t->age_ms / 1000);
    return 0;
}
