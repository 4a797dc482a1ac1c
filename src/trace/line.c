#include "trace/line.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/shown.h"
#include "proto/schema.h"

#define FIELDS (const struct mfs_field[])

/* ---- text ------------------------------------------------------------------------------------ */

double mfs_trace_client_ms(const struct mfs_trace_line *l)
{
    double rest = l->ms - (l->waits > 0 ? l->waits_ms : 0);

    for (unsigned i = 0; i < MFS_PHASES; i++)
        rest -= l->phase_ms[i];
    return rest > 0 ? rest : 0;
}

static int put_time(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    time_t s = (time_t)l->time;
    struct tm tm;

    localtime_r(&s, &tm);
    return mfs_buf_printf(to, "%02d:%02d:%02d.%06d", tm.tm_hour, tm.tm_min, tm.tm_sec,
                          (int)((l->time - floor(l->time)) * 1e6));
}

static int put_places(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    int rc = 0;

    for (uint32_t i = 0; i < l->nplaces && rc == 0; i++)
        rc = mfs_buf_printf(to, "%snode %u partition %u", i == 0 ? " (" : ", ", l->place[i].node,
                            l->place[i].partition);
    if (rc == 0 && l->trips > 1)
        rc = mfs_buf_printf(to, "%s%u round trips", l->nplaces > 0 ? "; " : " (", l->trips);
    if (rc == 0 && (l->nplaces > 0 || l->trips > 1))
        rc = mfs_buf_append(to, ")", 1);
    return rc;
}

int mfs_trace_process_text(uint32_t pid, const char *name, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, "process %u", pid);

    if (rc < 0 || name[0] == '\0')
        return rc;
    rc = mfs_buf_append(to, " (", 2);
    if (rc == 0)
        rc = mfs_shown_shell(to, name);
    return rc < 0 ? rc : mfs_buf_append(to, ")", 1);
}

static int put_holder(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    int rc;

    if (l->holder_pid == 0)
        return 0;
    rc = mfs_buf_append(to, " (held by ", 10);
    if (rc == 0)
        rc = mfs_trace_process_text(l->holder_pid, l->holder, to);
    return rc < 0 ? rc : mfs_buf_printf(to, "%s)", l->holder_elsewhere ? " of another mount" : "");
}

static int put_phases(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, "  client %.3f", mfs_trace_client_ms(l));

    for (unsigned i = 0; i < MFS_PHASES && rc == 0; i++) {
        if (l->phase_ms[i] <= 0)
            continue;
        rc = mfs_buf_printf(to, "  %s %.3f", mfs_phase_name(i), l->phase_ms[i]);
        if (rc == 0 && i == MFS_PHASE_PARTITION)
            rc = put_places(l, to);
        if (rc == 0 && i == MFS_PHASE_LOCK)
            rc = put_holder(l, to);
    }
    return rc;
}

/* What one that has not ended waits for. */
static int put_wait(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    int rc;

    if (!l->open)
        return 0;
    if (l->waits == 0)
        return mfs_buf_printf(to, "  not ended");
    rc = mfs_buf_printf(to, "  not ended: waits for %s, %.3f", mfs_phase_name(l->waits - 1),
                        l->waits_ms);
    if (rc == 0 && l->waits - 1 <= MFS_PHASE_MOVE)
        rc = mfs_buf_printf(to, " (node %u partition %u)", l->waits_node, l->waits_partition);
    if (rc == 0 && l->waits - 1 == MFS_PHASE_LOCK)
        rc = put_holder(l, to);
    return rc;
}

static int put_bytes(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    return l->bytes > 0 ? mfs_buf_printf(to, "  %" PRIu64 " bytes at %" PRIu64, l->bytes, l->offset)
                        : 0;
}

int mfs_trace_text(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    int rc = put_time(l, to);

    if (rc == 0)
        rc = mfs_buf_printf(to, " %9.3f ms  %-10s ", l->ms, l->op);
    if (rc == 0)
        rc = l->path[0] != '\0' ? mfs_shown_shell(to, l->path) : mfs_buf_append(to, "?", 1);
    if (rc == 0)
        rc = put_bytes(l, to);
    if (rc == 0 && l->error[0] != '\0')
        rc = mfs_buf_printf(to, "  %s", l->error);
    if (rc == 0)
        rc = mfs_buf_append(to, "  ", 2);
    if (rc == 0)
        rc = l->program[0] != '\0' ? mfs_shown_shell(to, l->program) : 0;
    if (rc == 0)
        rc = mfs_buf_printf(to, "[%u]", l->pid);
    if (rc == 0)
        rc = put_phases(l, to);
    if (rc == 0)
        rc = put_wait(l, to);
    return rc < 0 ? rc : mfs_buf_append(to, "\n", 1);
}

int mfs_trace_lost_text(uint64_t lost, struct mfs_buf *to)
{
    return mfs_buf_printf(to, "%" PRIu64 " lost: the reader is too slow\n", lost);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static int put_named(struct mfs_buf *to, const char *name, const char *value)
{
    int rc = mfs_buf_printf(to, ",\"%s\":", name);

    return rc < 0 ? rc : mfs_shown_json(to, value);
}

static int json_places(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, ",\"trips\":%u,\"places\":[", l->trips);

    for (uint32_t i = 0; i < l->nplaces && rc == 0; i++)
        rc = mfs_buf_printf(
            to, "%s{\"node\":%u,\"partition\":%u,\"trips\":%u,\"ms\":%.6f,\"least_ms\":%.6f}",
            i > 0 ? "," : "", l->place[i].node, l->place[i].partition, l->place[i].trips,
            l->place[i].ms, l->place[i].least_ms);
    return rc < 0 ? rc : mfs_buf_append(to, "]", 1);
}

static int json_phases(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, ",\"client_ms\":%.6f", mfs_trace_client_ms(l));

    for (unsigned i = 0; i < MFS_PHASES && rc == 0; i++)
        if (l->phase_ms[i] > 0)
            rc = mfs_buf_printf(to, ",\"%s_ms\":%.6f", mfs_phase_name(i), l->phase_ms[i]);
    if (rc == 0 && l->trips > 0)
        rc = json_places(l, to);
    if (rc == 0 && l->full > 0)
        rc = mfs_buf_printf(to, ",\"full\":%u", l->full);
    return rc;
}

static int json_holder(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    int rc = 0;

    if (l->holder_pid == 0)
        return 0;
    rc = mfs_buf_printf(to, ",\"holder_pid\":%u,\"holder_elsewhere\":%s", l->holder_pid,
                        l->holder_elsewhere ? "true" : "false");
    return rc < 0 ? rc : put_named(to, "holder", l->holder);
}

static int json_open(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    int rc;

    if (!l->open)
        return 0;
    rc = mfs_buf_printf(to, ",\"open\":true");
    if (rc == 0 && l->waits > 0)
        rc = mfs_buf_printf(to, ",\"waits\":\"%s\",\"waits_ms\":%.6f", mfs_phase_name(l->waits - 1),
                            l->waits_ms);
    if (rc == 0 && l->waits > 0 && l->waits - 1 <= MFS_PHASE_MOVE)
        rc = mfs_buf_printf(to, ",\"waits_node\":%u,\"waits_partition\":%u", l->waits_node,
                            l->waits_partition);
    return rc;
}

int mfs_trace_json(const struct mfs_trace_line *l, struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, "{\"time\":%.6f,\"op\":\"%s\"", l->time, l->op);

    if (rc == 0)
        rc = put_named(to, "path", l->path);
    if (rc == 0)
        rc = mfs_buf_printf(to, ",\"pid\":%u,\"uid\":%u", l->pid, l->uid);
    if (rc == 0)
        rc = put_named(to, "program", l->program);
    if (rc == 0 && l->bytes > 0)
        rc = mfs_buf_printf(to, ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64, l->offset, l->bytes);
    if (rc == 0 && l->error[0] != '\0')
        rc = put_named(to, "error", l->error);
    if (rc == 0)
        rc = mfs_buf_printf(to, ",\"ms\":%.6f", l->ms);
    if (rc == 0)
        rc = json_phases(l, to);
    if (rc == 0)
        rc = json_holder(l, to);
    if (rc == 0)
        rc = json_open(l, to);
    return rc < 0 ? rc : mfs_buf_append(to, "}\n", 2);
}

int mfs_trace_lost_json(uint64_t lost, struct mfs_buf *to)
{
    return mfs_buf_printf(to, "{\"lost\":%" PRIu64 "}\n", lost);
}

/* A line as JSON has it. */
struct wire {
    struct mfs_trace_line line;
    uint64_t lost;
    char waits[16];
    uint32_t nplaces;
    struct mfs_trace_place *place;
};

static const struct mfs_schema place_schema = {
    "place", sizeof(struct mfs_trace_place),
    FIELDS{{.name = "node", MFS_FIELD(U32, struct mfs_trace_place, node)},
           {.name = "partition", MFS_FIELD(U32, struct mfs_trace_place, partition)},
           {.name = "trips", MFS_FIELD(U32, struct mfs_trace_place, trips)},
           {.name = "ms", MFS_FIELD(F64, struct mfs_trace_place, ms)},
           {.name = "least_ms", MFS_FIELD(F64, struct mfs_trace_place, least_ms)},
           {0}}};

#define PHASE(word, i)                                                                             \
    {                                                                                              \
        .name = word "_ms", MFS_FIELD(F64, struct wire, line.phase_ms[i])                          \
    }

static const struct mfs_schema wire_schema = {
    "request", sizeof(struct wire),
    FIELDS{{.name = "time", MFS_FIELD(F64, struct wire, line.time)},
           {.name = "op", MFS_FIELD(STR, struct wire, line.op)},
           {.name = "path", MFS_FIELD(STR, struct wire, line.path)},
           {.name = "pid", MFS_FIELD(U32, struct wire, line.pid)},
           {.name = "uid", MFS_FIELD(U32, struct wire, line.uid)},
           {.name = "program", MFS_FIELD(STR, struct wire, line.program)},
           {.name = "offset", MFS_FIELD(U64, struct wire, line.offset)},
           {.name = "bytes", MFS_FIELD(U64, struct wire, line.bytes)},
           {.name = "error", MFS_FIELD(STR, struct wire, line.error)},
           {.name = "ms", MFS_FIELD(F64, struct wire, line.ms)},
           PHASE("partition", MFS_PHASE_PARTITION),
           PHASE("move", MFS_PHASE_MOVE),
           PHASE("room", MFS_PHASE_ROOM),
           PHASE("window", MFS_PHASE_WINDOW),
           PHASE("data", MFS_PHASE_DATA),
           PHASE("mounts", MFS_PHASE_MOUNTS),
           PHASE("lock", MFS_PHASE_LOCK),
           {.name = "trips", MFS_FIELD(U32, struct wire, line.trips)},
           {.name = "places",
            MFS_FIELD_LIST(struct wire, place, nplaces, &place_schema),
            .max = MFS_TRACE_PLACES},
           {.name = "full", MFS_FIELD(U32, struct wire, line.full)},
           {.name = "holder_pid", MFS_FIELD(U32, struct wire, line.holder_pid)},
           {.name = "holder_elsewhere", MFS_FIELD(BOOL, struct wire, line.holder_elsewhere)},
           {.name = "holder", MFS_FIELD(STR, struct wire, line.holder)},
           {.name = "open", MFS_FIELD(BOOL, struct wire, line.open)},
           {.name = "waits", MFS_FIELD(STR, struct wire, waits)},
           {.name = "waits_ms", MFS_FIELD(F64, struct wire, line.waits_ms)},
           {.name = "waits_node", MFS_FIELD(U32, struct wire, line.waits_node)},
           {.name = "waits_partition", MFS_FIELD(U32, struct wire, line.waits_partition)},
           {.name = "lost", MFS_FIELD(U64, struct wire, lost)},
           {0}}};

int mfs_trace_parse(char *json, size_t len, struct mfs_trace_line *l, uint64_t *lost,
                    struct mfs_err *err)
{
    struct wire w;
    int rc;

    len = mfs_shown_unescape(json, len);
    rc = mfs_schema_decode(&wire_schema, json, len, &w, err);
    if (rc < 0)
        return rc;
    *lost = w.lost;
    *l = w.line;
    l->nplaces = w.nplaces;
    for (uint32_t i = 0; i < w.nplaces; i++)
        l->place[i] = w.place[i];
    for (unsigned i = 0; i < MFS_PHASES; i++)
        if (strcmp(w.waits, mfs_phase_name(i)) == 0)
            l->waits = i + 1;
    mfs_schema_clear(&wire_schema, &w);
    return *lost > 0;
}
