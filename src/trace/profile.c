#include "trace/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/profile_impl.h"

struct mfs_profile *mfs_profile_create(const char *below)
{
    struct mfs_profile *p = calloc(1, sizeof *p);

    if (p != NULL)
        p->below = strdup(below);
    if (p != NULL && p->below == NULL) {
        free(p);
        p = NULL;
    }
    return p;
}

static void free_table(struct mfs_profile_sum **table)
{
    struct mfs_profile_sum *s, *next;

    HASH_ITER(hh, *table, s, next)
    {
        HASH_DEL(*table, s);
        free(s->key);
        free(s);
    }
}

void mfs_profile_destroy(struct mfs_profile *p)
{
    if (p == NULL)
        return;
    free_table(&p->op);
    free_table(&p->process);
    free_table(&p->path);
    free_table(&p->dir);
    free_table(&p->missing);
    free_table(&p->lock);
    free(p->node);
    free(p->below);
    free(p);
}

bool mfs_profile_is_below(const char *path, const char *below)
{
    size_t len = strlen(below);

    if (strcmp(below, ".") == 0)
        return true;
    return strncmp(path, below, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

void mfs_profile_lost(struct mfs_profile *p, uint64_t lines)
{
    p->lost += lines;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static struct mfs_profile_node *node_of(struct mfs_profile *p, uint32_t number)
{
    struct mfs_profile_node *more;

    for (uint32_t i = 0; i < p->nnodes; i++)
        if (p->node[i].node == number)
            return &p->node[i];
    more = realloc(p->node, (p->nnodes + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    p->node = more;
    p->node[p->nnodes] = (struct mfs_profile_node){.node = number};
    return &p->node[p->nnodes++];
}

static int add_place(struct mfs_profile *p, const struct mfs_trace_place *place, bool below)
{
    struct mfs_profile_node *n = node_of(p, place->node);

    if (n == NULL)
        return -ENOMEM;
    if (place->least_ms > 0 && (n->least_ms <= 0 || place->least_ms < n->least_ms))
        n->least_ms = place->least_ms;
    if (!below)
        return 0;
    n->trips += place->trips;
    n->ms += place->ms;
    return 0;
}

/* A request that waits for a partition now. */
static int add_waiting(struct mfs_profile *p, const struct mfs_trace_line *l)
{
    struct mfs_profile_node *n;

    if (!l->open || l->waits == 0 || l->waits - 1 > MFS_PHASE_MOVE)
        return 0;
    n = node_of(p, l->waits_node);
    if (n == NULL)
        return -ENOMEM;
    n->hanging++;
    if (l->waits_ms > n->hanging_ms) {
        n->hanging_ms = l->waits_ms;
        n->partition = l->waits_partition;
    }
    return 0;
}

int mfs_profile_nodes(struct mfs_profile *p, const struct mfs_trace_nodes *before,
                      const struct mfs_trace_nodes *after)
{
    for (uint32_t i = 0; i < after->n; i++) {
        struct mfs_profile_node *n = node_of(p, after->node[i].node);

        if (n == NULL)
            return -ENOMEM;
        n->seen = after->node[i];
        n->has_seen = true;
        for (uint32_t k = 0; k < before->n; k++)
            if (before->node[k].node == n->node &&
                before->node[k].round_trips <= n->seen.round_trips) {
                n->seen.round_trips -= before->node[k].round_trips;
                n->seen.ms -= before->node[k].ms;
            }
    }
    return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int sum_of(struct mfs_profile_sum **table, const char *key, struct mfs_profile_sum **sum)
{
    struct mfs_profile_sum *s;

    HASH_FIND_STR(*table, key, s);
    *sum = s;
    if (s != NULL || HASH_COUNT(*table) >= MFS_PROFILE_KEYS)
        return 0;
    s = calloc(1, sizeof *s);
    if (s != NULL)
        s->key = strdup(key);
    if (s == NULL || s->key == NULL) {
        free(s);
        return -ENOMEM;
    }
    HASH_ADD_KEYPTR(hh, *table, s->key, strlen(s->key), s);
    if (s->hh.tbl == NULL) {
        free(s->key);
        free(s);
        return -ENOMEM;
    }
    *sum = s;
    return 0;
}

/* What a request has taken in the last most_ms: the wait that has not ended is of the end of it,
 * and of what was before, whose order is not known, each has its share. */
static struct mfs_profile_times times_of(const struct mfs_trace_line *l, double most_ms)
{
    struct mfs_profile_times t = {.all = l->ms < most_ms ? l->ms : most_ms};
    double waits = l->open && l->waits > 0 ? l->waits_ms : 0, before = l->ms - waits, part;

    if (waits > t.all)
        waits = t.all;
    part = before > 0 ? (t.all - waits) / before : 0;
    t.client = mfs_trace_client_ms(l) * part;
    for (unsigned i = 0; i < MFS_PHASES; i++)
        t.phase[i] = l->phase_ms[i] * part;
    if (l->waits > 0)
        t.phase[l->waits - 1] += waits;
    return t;
}

static void add_to(struct mfs_profile_sum *s, const struct mfs_trace_line *l,
                   const struct mfs_profile_times *t)
{
    if (s == NULL)
        return;
    s->requests++;
    s->errors += l->error[0] != '\0';
    s->bytes += l->bytes;
    s->open += l->open;
    s->t.all += t->all;
    s->t.client += t->client;
    for (unsigned i = 0; i < MFS_PHASES; i++)
        s->t.phase[i] += t->phase[i];
}

static int add_key(struct mfs_profile_sum **table, const char *key, const struct mfs_trace_line *l,
                   const struct mfs_profile_times *t, struct mfs_profile_sum **sum)
{
    int rc = sum_of(table, key, sum);

    if (rc == 0)
        add_to(*sum, l, t);
    return rc;
}

static void directory_of(const char *path, char *out)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        snprintf(out, MFS_TRACE_PATH, "%s", path[0] != '\0' ? "." : "");
    else
        snprintf(out, MFS_TRACE_PATH, "%.*s", (int)(slash - path), path);
}

static int add_lock(struct mfs_profile *p, const struct mfs_trace_line *l,
                    const struct mfs_profile_times *t)
{
    struct mfs_profile_sum *s;
    int rc;

    if (t->phase[MFS_PHASE_LOCK] <= 0)
        return 0;
    rc = add_key(&p->lock, l->path, l, t, &s);
    if (rc == 0 && s != NULL && l->holder_pid != 0) {
        s->holder_pid = l->holder_pid;
        s->elsewhere = l->holder_elsewhere;
        snprintf(s->holder, sizeof s->holder, "%s", l->holder);
    }
    return rc;
}

static int add_missing(struct mfs_profile *p, const struct mfs_trace_line *l, const char *dir,
                       const struct mfs_profile_times *t)
{
    struct mfs_profile_sum *s;

    if (strcmp(l->op, "lookup") != 0 || strcmp(l->error, "ENOENT") != 0)
        return 0;
    add_to(&p->none, l, t);
    return add_key(&p->missing, dir, l, t, &s);
}

static int add_full(struct mfs_profile *p, const struct mfs_trace_line *l)
{
    struct mfs_profile_node *n;

    p->no_space += strcmp(l->error, "ENOSPC") == 0;
    if (l->full == 0)
        return 0;
    n = node_of(p, l->full - 1);
    if (n == NULL)
        return -ENOMEM;
    n->full++;
    return 0;
}

static int add_below(struct mfs_profile *p, const struct mfs_trace_line *l,
                     const struct mfs_profile_times *t)
{
    char dir[MFS_TRACE_PATH], process[MFS_TRACE_PROGRAM + 16];
    struct mfs_profile_sum *s;
    int rc;

    directory_of(l->path, dir);
    snprintf(process, sizeof process, "%s[%u]", l->program, l->pid);
    add_to(&p->all, l, t);
    rc = add_key(&p->op, l->op, l, t, &s);
    if (rc == 0)
        rc = add_key(&p->process, process, l, t, &s);
    if (rc == 0 && s != NULL)
        s->pid = l->pid;
    if (rc == 0)
        rc = add_key(&p->path, l->path, l, t, &s);
    if (rc == 0)
        rc = add_key(&p->dir, dir, l, t, &s);
    if (rc == 0)
        rc = add_missing(p, l, dir, t);
    if (rc == 0)
        rc = add_lock(p, l, t);
    return rc < 0 ? rc : add_full(p, l);
}

int mfs_profile_add(struct mfs_profile *p, const struct mfs_trace_line *l, double most_ms)
{
    struct mfs_profile_times t = times_of(l, most_ms);
    bool below = mfs_profile_is_below(l->path, p->below);
    int rc = 0;

    for (uint32_t i = 0; i < l->nplaces && rc == 0; i++)
        rc = add_place(p, &l->place[i], below);
    if (rc == 0 && below)
        rc = add_waiting(p, l);
    return rc < 0 || !below ? rc : add_below(p, l, &t);
}
