/* What the instances use, and what each may: looking at them, and dividing the node's
 * memory among them. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "host/proc.h"
#include "cluster/capacity.h"
#include "lm/redis/instances_impl.h"
#include "store/admin/admin.h"
#include "proto/times.h"

#define AREA       "redis"
#define CALL_LIMIT (1 * MFS_SEC)
#define PATIENCE   3    /* looks at a process that does not answer … */
#define RARELY     8    /* … after which only each so many is one, as each costs CALL_LIMIT */
#define CROWD      1024 /* connections of a process, of maxclients in redis_conf.c */
#define IDLE_LEAST (2ULL << 20)     /* worth a purge when memory is short */
#define REGULARLY  (900 * MFS_MSEC) /* a look after so long is a regular one, once a second */

static_assert(REGULARLY < MFS_REPORT_EACH, "the look of each second is a regular one");

void mfs_instances_reckon(struct mfs_instances *f, size_t fresh)
{
    uint64_t beyond = fresh * MFS_CAPACITY_PROCESS;

    for (size_t i = 0; i < f->n; i++)
        beyond += f->member[i].beyond;
    f->usable = mfs_memory_usable(f->memory, beyond);
}

/* What a process takes of the node: a copy that is on its way needs its place already, and so does
 * an image that is being loaded. */
static uint64_t takes(const struct mfs_redis *r, uint64_t used)
{
    return (r->incoming || r->image) && r->expected > used ? r->expected : used;
}

/* Connects when needed. A process that answers with an error is as silent as one that does not. */
static int connect_member(struct mfs_instance *m)
{
    struct mfs_err err = {0};
    int rc;

    if (m->admin)
        return 0;
    rc = mfs_admin_open(&m->admin, m->redis.unix_path, NULL, 0, m->redis.admin_password, CALL_LIMIT,
                        &err);
    if (rc && !m->silent)
        mfs_warn(AREA, "partition %u: %s", m->redis.part, err.msg);
    return rc;
}

static void lose_contact(struct mfs_instance *m, const struct mfs_err *err)
{
    mfs_warn(AREA, "partition %u: %s", m->redis.part, err->msg);
    mfs_admin_close(m->admin);
    m->admin = NULL;
    m->silent = true;
}

static void count(struct mfs_instances *f, struct mfs_instance *m,
                  const struct mfs_admin_info *info)
{
    if (m->counted && info->net_in >= m->net_in && info->net_out >= m->net_out &&
        info->commands >= m->commands && info->out_of_memory >= m->out_of_memory) {
        f->net_in += info->net_in - m->net_in;
        f->net_out += info->net_out - m->net_out;
        f->commands += info->commands - m->commands;
        f->out_of_memory += info->out_of_memory - m->out_of_memory;
    }
    m->counted = true;
    m->net_in = info->net_in;
    m->net_out = info->net_out;
    m->commands = info->commands;
    m->errors = info->errors;
    m->out_of_memory = info->out_of_memory;
}

/* Redis gives a connection that has not logged on all the time there is, and has only so many:
 * strangers could keep clients out. */
static int show_out(struct mfs_instance *m, uint32_t connections, struct mfs_err *err)
{
    if (connections < CROWD)
        return 0;
    mfs_warn(AREA, "partition %u: %u connections; those that nobody has logged on by are closed",
             m->redis.part, connections);
    return mfs_admin_drop_strangers(m->admin, err);
}

static void count_memory(struct mfs_instances *f, struct mfs_instance *m,
                         const struct mfs_admin_info *info)
{
    struct mfs_memory_seen seen = {.used = info->used_memory,
                                   .not_counted = info->not_counted,
                                   .anon = mfs_proc_anonymous(&m->redis.proc),
                                   .active = info->active,
                                   .resident = info->resident,
                                   .others = info->copied +
                                             mfs_redis_journal_bytes(&f->node, m->redis.part)};
    uint64_t used;

    m->told = true;
    m->beyond = mfs_memory_reckon(&seen, &used, &m->idle);
    m->growing = used > m->used;
    f->moved += used > m->used ? used - m->used : m->used - used;
    m->used = used;
    m->rss = info->used_memory_rss;
    m->keys = info->keys;
    m->redis.maxmemory = info->maxmemory;
}

/* What was deleted goes back to the system: when it is much, once usage is calm; when memory is
 * short, at once, as the others on this node can't use it before. */
static void give_back(struct mfs_instances *f, struct mfs_instance *m)
{
    bool due = f->regular && mfs_memory_purge_due(&m->rest, m->used, m->rss);
    struct mfs_err err = {0};

    if (m->redis.incoming || !(due || (f->tight && !m->growing && m->idle >= IDLE_LEAST)))
        return;
    m->idle = 0;
    if (mfs_admin_purge(m->admin, &err))
        lose_contact(m, &err);
}

/* Its counts, too, but not those of a copy: what that has is another one's, or not yet whole. One
 * that did not answer the last time may cost CALL_LIMIT: it has to wait for another look when
 * others have cost as much in this one (`until`). */
static void ask(struct mfs_instances *f, struct mfs_instance *m, int64_t until)
{
    struct mfs_err err = {0};

    m->asked = false;
    if (m->silent && mfs_clock_mono() >= until)
        return;
    if (m->missed++ >= PATIENCE && m->missed % RARELY)
        return;
    if (connect_member(m))
        m->silent = true;
    else if (mfs_admin_ask(m->admin, f->regular && !m->redis.incoming, &err))
        lose_contact(m, &err);
    else
        m->asked = true;
}

static void take_answer(struct mfs_instances *f, struct mfs_instance *m)
{
    struct mfs_admin_counts counts = {m->inodes, m->losses};
    struct mfs_admin_info info;
    struct mfs_err err = {0};

    if (!m->asked)
        return;
    if (mfs_admin_told(m->admin, &info, &counts, &err)) {
        lose_contact(m, &err);
        return;
    }
    m->silent = false;
    m->missed = 0;
    m->inodes = counts.inodes;
    m->losses = counts.losses;
    count_memory(f, m, &info);
    count(f, m, &info);
    if (show_out(m, info.connections, &err))
        lose_contact(m, &err);
    else
        give_back(f, m);
}

/* All are asked before the first is waited for: they answer at the same time, and those that hang
 * cost CALL_LIMIT together, and as much again for the connections that were lost with them. Each
 * look begins with another one, so that each comes to be connected. */
static void look(struct mfs_instances *f)
{
    int64_t until = mfs_clock_mono() + CALL_LIMIT;
    size_t first = f->n ? f->looks++ % f->n : 0;

    for (size_t i = 0; i < f->n; i++)
        ask(f, &f->member[(first + i) % f->n], until);
    for (size_t i = 0; i < f->n; i++)
        take_answer(f, &f->member[i]);
}

/* An adopted process that has not answered yet has an unknown limit: taken for an equal part. */
static struct mfs_memory_part memory_of_member(const struct mfs_instances *f,
                                               const struct mfs_instance *m, size_t total)
{
    uint64_t max = m->redis.maxmemory ? m->redis.maxmemory : f->usable / total;

    return (struct mfs_memory_part){.used = takes(&m->redis, m->used),
                                    .max = max,
                                    .idle = m->redis.incoming ? 0 : m->idle,
                                    .fixed = m->silent};
}

/* What all members have, and `extra` fresh ones that do not run yet. */
static struct mfs_memory_part *memory_of(const struct mfs_instances *f,
                                         const struct mfs_redis *fresh, size_t extra)
{
    size_t total = f->n + extra;
    struct mfs_memory_part *parts = calloc(total + 1, sizeof *parts);

    for (size_t i = 0; parts && i < total; i++)
        parts[i] =
            i < f->n
                ? memory_of_member(f, &f->member[i], total)
                : (struct mfs_memory_part){.used = takes(&fresh[i - f->n], MFS_INSTANCE_EMPTY)};
    return parts;
}

/* Gives member i what it should have, as far as the sum allows at this moment. */
static void apply_one(struct mfs_instances *f, struct mfs_memory_part *parts, size_t total,
                      size_t i, uint64_t want)
{
    uint64_t grant = mfs_memory_grant(parts, total, f->usable, i, want);
    struct mfs_instance *m = &f->member[i];
    struct mfs_err err = {0};

    if (parts[i].fixed || grant == parts[i].max || connect_member(m))
        return;
    if (mfs_admin_set_maxmemory(m->admin, grant, &err)) {
        lose_contact(m, &err);
        /* It may have taken effect or not: count the larger. */
        parts[i].max = grant > parts[i].max ? grant : parts[i].max;
        m->redis.maxmemory = parts[i].max;
        return;
    }
    m->redis.maxmemory = parts[i].max = grant;
}

/* Shrinks first, so that the sum of limits stays within bounds at every moment. */
static void apply(struct mfs_instances *f, struct mfs_memory_part *parts, size_t total,
                  const uint64_t *want)
{
    for (int grow = 0; grow <= 1; grow++) {
        for (size_t i = 0; i < f->n; i++) {
            if ((want[i] > parts[i].max) == grow)
                apply_one(f, parts, total, i, want[i]);
        }
    }
}

static bool divide(struct mfs_instances *f)
{
    uint64_t write = f->node.stripe_size + f->node.stripe_size / 8; /* and what comes with it */
    struct mfs_memory_part *parts = memory_of(f, NULL, 0);
    uint64_t *want = calloc(f->n + 1, sizeof *want);
    bool urgent = false;

    mfs_instances_reckon(f, 0);
    if (parts && want) {
        f->tight = mfs_memory_short(parts, f->n, f->usable);
        mfs_memory_plan(parts, f->n, f->usable, want);
        if (mfs_memory_worthwhile(parts, f->n, f->usable, want, write))
            apply(f, parts, f->n, want);
        urgent = mfs_memory_urgent(parts, f->n, f->usable, write, f->moved);
    }
    free(parts);
    free(want);
    return urgent;
}

static void fill_sample(const struct mfs_instances *f, struct mfs_instances_sample *sample)
{
    sample->capacity = f->usable;
    sample->net_in = f->net_in;
    sample->net_out = f->net_out;
    sample->commands = f->commands;
    sample->out_of_memory = f->out_of_memory;
    sample->part = f->n ? calloc(f->n, sizeof *sample->part) : NULL;
    for (size_t i = 0; i < f->n; i++) {
        const struct mfs_instance *m = &f->member[i];

        sample->used += m->used;
        sample->rss += m->rss;
        if (sample->part)
            sample->part[sample->n++] =
                (struct mfs_instances_part){.part = m->redis.part,
                                            .incoming = m->redis.incoming,
                                            .silent = m->silent,
                                            .told = m->told,
                                            .used = m->used,
                                            .keys = m->keys,
                                            .limit = m->redis.maxmemory,
                                            .net_in = m->net_in,
                                            .net_out = m->net_out,
                                            .commands = m->commands,
                                            .errors = m->errors,
                                            .inodes = m->inodes,
                                            .losses = m->losses,
                                            .out_of_memory = m->out_of_memory};
    }
}

void mfs_instances_measure(struct mfs_instances *f, struct mfs_instances_sample *sample)
{
    int64_t now = mfs_clock_mono();

    *sample = (struct mfs_instances_sample){0};
    f->moved = 0;
    f->regular = now - f->looked_at >= REGULARLY;
    if (f->regular)
        f->looked_at = now;
    look(f);
    sample->urgent = divide(f);
    fill_sample(f, sample);
}

/* Copies that are on their way must fit beside all that is there; the first writer would find
 * memory full otherwise. */
static int check_fits(const struct mfs_instances *f, const struct mfs_memory_part *parts,
                      size_t total, const struct mfs_redis *fresh, size_t n, struct mfs_err *err)
{
    uint64_t sum = 0;
    bool incoming = false, restored = false;

    for (size_t i = 0; i < total; i++)
        sum += parts[i].used;
    for (size_t i = 0; i < n; i++) {
        incoming |= fresh[i].incoming;
        restored |= fresh[i].image != NULL;
    }
    if (restored && sum > f->usable)
        return mfs_err_set(err, -ENOSPC,
                           "no memory for the checkpoint: %zu partitions of it take %" PRIu64
                           " bytes here, and there are %" PRIu64,
                           n, sum, f->usable);
    if (!incoming || sum <= f->usable)
        return 0;
    return mfs_err_set(err, -ENOSPC,
                       "no memory for a copy of partition %u: it takes %" PRIu64
                       " bytes, and %" PRIu64 " of %" PRIu64 " would be in use",
                       fresh[0].part, fresh[0].expected, sum, f->usable);
}

int mfs_instances_make_room(struct mfs_instances *f, struct mfs_redis *fresh, size_t n,
                            struct mfs_err *err)
{
    size_t total = f->n + n;
    struct mfs_memory_part *parts;
    uint64_t *want = calloc(total, sizeof *want);
    int rc = mfs_err_set(err, -ENOMEM, "out of memory");

    look(f);
    mfs_instances_reckon(f, n);
    parts = memory_of(f, fresh, n);
    if (!parts || !want)
        goto out;
    rc = check_fits(f, parts, total, fresh, n, err);
    if (rc)
        goto out;
    mfs_memory_plan(parts, total, f->usable, want);
    apply(f, parts, total, want);
    for (size_t i = 0; i < n && !rc; i++) {
        uint64_t grant = mfs_memory_grant(parts, total, f->usable, f->n + i, want[f->n + i]);

        fresh[i].maxmemory = parts[f->n + i].max = grant;
        if (!grant)
            rc = mfs_err_set(err, -ENOSPC, "no memory left for %zu more partitions", n);
    }
out:
    free(parts);
    free(want);
    return rc;
}
