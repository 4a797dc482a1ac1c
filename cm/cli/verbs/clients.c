/* `cm clients`: the mounts of all nodes, and what they have done. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "cm/cli/verbs.h"

#define TIME_LIMIT (10 * MFS_SEC)
#define CELL       48

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

static void fill(struct row *r, const struct mfs_mount *m)
{
    const struct passwd *user = m->pid ? getpwuid(m->uid) : NULL;

    snprintf(r->cell[NODE], CELL, "%.47s", m->node);
    snprintf(r->cell[HOST], CELL, "%.47s", m->host);
    snprintf(r->cell[PID], CELL, "%u", m->pid);
    if (user)
        snprintf(r->cell[USER], CELL, "%.47s", user->pw_name);
    else if (m->pid)
        snprintf(r->cell[USER], CELL, "%u", m->uid);
    else
        snprintf(r->cell[USER], CELL, "-"); /* lm does not see its process */
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

static int render(const struct mfs_mounts *list, struct mfs_buf *out)
{
    struct row *rows = calloc(list->n + 1, sizeof *rows);
    int rc;

    if (!rows)
        return -ENOMEM;
    for (int c = 0; c < COLUMNS; c++)
        snprintf(rows[0].cell[c], CELL, "%s", titles[c]);
    mfs_text_copy(rows[0].path, sizeof rows[0].path, "MOUNT");
    for (uint32_t i = 0; i < list->n; i++)
        fill(&rows[i + 1], &list->mount[i]);
    rc = put_rows(rows, list->n + 1, out);
    free(rows);
    return rc;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct mfs_mounts list;
    struct mfs_buf b;
    int rc = mfs_client_call(&call->paths, MFS_MSG_CLIENTS, NULL, TIME_LIMIT, &list, err);

    if (rc)
        return rc;
    mfs_buf_init(&b);
    rc = mfs_conf_flag(call->conf, "json") ? mfs_render_json(&mfs_mounts_schema, &list, &b)
                                           : render(&list, &b);
    rc = mfs_render_print(rc, &b, err);
    mfs_schema_clear(&mfs_mounts_schema, &list);
    return rc;
}

const struct mfs_verb mfs_cm_clients = {
    .name = "clients",
    .summary = "show the mounts of all nodes, and what they have done",
    .about =
        "Shows each mount that a node's Local Manager knows: where it is, its process, user and\n"
        "version, since when it is there, when it last told of itself, how many operations it has\n"
        "done and how many of these ended with an error, the bytes of reads and writes, and how\n"
        "long 99 of 100 operations took at most.",
    .options = MFS_OPTIONS(mfs_json_options, mfs_deployment_options),
    .run = run};
