/* The agent's memory across its own death: the state file, written and taken up again. */
#include "lm/agent/partitions/incoming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "lm/agent/state.h"

#define AREA "state"

void mfs_agent_redis_put(const struct mfs_redis *r, struct mfs_state_redis *s)
{
    s->index = r->part;
    s->port = r->port;
    mfs_text_copy(s->unix_path, sizeof s->unix_path, r->unix_path);
    mfs_text_copy(s->password, sizeof s->password, r->password);
    mfs_text_copy(s->admin_password, sizeof s->admin_password, r->admin_password);
    mfs_state_proc_set(&s->proc, &r->proc);
}

struct mfs_redis mfs_agent_redis_get(const struct mfs_state_redis *s)
{
    struct mfs_redis r = {.part = s->index, .port = (uint16_t)s->port};

    r.proc = mfs_state_proc_get(&s->proc);
    mfs_text_copy(r.unix_path, sizeof r.unix_path, s->unix_path);
    mfs_text_copy(r.password, sizeof r.password, s->password);
    mfs_text_copy(r.admin_password, sizeof r.admin_password, s->admin_password);
    return r;
}

static void put_part(const struct mfs_agent_part *p, struct mfs_state_redis *s)
{
    mfs_agent_redis_put(&p->redis, s);
    s->lost = p->lost;
    s->termed = p->termed;
}

static void put_client(const struct mfs_client *c, struct mfs_state_client *s)
{
    mfs_state_proc_set(&s->proc, &c->proc);
    mfs_text_copy(s->mount, sizeof s->mount, c->mount);
    mfs_text_copy(s->session, sizeof s->session, c->session);
    s->instance = c->instance;
}

static struct mfs_client get_client(const struct mfs_state_client *s)
{
    struct mfs_client c = {.proc = mfs_state_proc_get(&s->proc), .instance = s->instance};

    mfs_text_copy(c.mount, sizeof c.mount, s->mount);
    mfs_text_copy(c.session, sizeof c.session, s->session);
    return c;
}

static void put_scalars(const struct mfs_agent *a, struct mfs_state *s)
{
    struct mfs_client mounter;

    mfs_text_copy(s->name, sizeof s->name, a->opts.name);
    s->node = a->opts.node;
    s->nparts = a->nparts;
    s->stripe_size = a->stripe_size;
    s->memory = a->memory;
    s->control = a->succession.port;
    s->term = a->succession.term;
    s->candidate = a->succession.candidate;
    s->vote_term = a->succession.vote_term;
    s->vote_for = a->succession.vote_for;
    s->table = a->table;
    mfs_text_copy(s->mount, sizeof s->mount, mfs_mounter_path(a->mounter));
    mfs_text_copy(s->options, sizeof s->options, mfs_mounter_options(a->mounter));
    mfs_mounter_client(a->mounter, &mounter);
    put_client(&mounter, &s->mounter);
}

/* What they point to is the caller's to free, also on failure. 0 or -ENOMEM. */
static int put_lists(const struct mfs_agent *a, struct mfs_state *s)
{
    size_t n, nparts = 0;
    struct mfs_client *clients = mfs_clients_list(a->clients, &n);

    for (const struct mfs_agent_part *p = a->parts; p; p = p->next)
        nparts++;
    s->client = calloc(n + 1, sizeof *s->client);
    s->redis = calloc(nparts + 1, sizeof *s->redis);
    s->copy = calloc(mfs_agent_copies_list(a, NULL) + 1, sizeof *s->copy);
    if (s->client && s->redis && s->copy) {
        for (size_t i = 0; i < n; i++)
            if (clients[i].proc.pid) /* another one comes back by itself, or does not */
                put_client(&clients[i], &s->client[s->nclients++]);
        for (const struct mfs_agent_part *p = a->parts; p; p = p->next)
            put_part(p, &s->redis[s->nredis++]);
        for (const struct mfs_agent_copy *c = a->copies; c; c = c->next)
            if (c->redis.proc.pid && !c->taken)
                mfs_agent_copy_put(c, &s->copy[s->ncopies++]);
    }
    free(clients);
    return s->client && s->redis && s->copy ? 0 : -ENOMEM;
}

int mfs_agent_save(struct mfs_agent *a)
{
    struct mfs_state s = {0};
    int rc;

    if (a->phase == MFS_AGENT_ENDED) /* its files are gone; a table may still come */
        return 0;
    put_scalars(a, &s);
    rc = put_lists(a, &s);
    if (!rc)
        rc = mfs_state_save(&s, a->path.state);
    if (rc && !a->unsaved)
        mfs_agent_event(a, "state-unwritable", "%s: %s", a->path.state, strerror(-rc));
    else if (!rc && a->unsaved)
        mfs_agent_event(a, "state-written", "%s", a->path.state);
    a->unsaved = rc != 0;
    free(s.client);
    free(s.redis);
    free(s.copy);
    return rc;
}

int mfs_agent_must_save(struct mfs_agent *a, struct mfs_err *err)
{
    int rc = mfs_agent_save(a);

    return rc ? mfs_err_set(err, -EBUSY, "can't write %s: %s", a->path.state, strerror(-rc)) : 0;
}

static int restore_redis(struct mfs_agent *a, const struct mfs_state_redis *s)
{
    struct mfs_redis r = mfs_agent_redis_get(s);
    struct mfs_agent_part *p;

    if (!s->lost && mfs_instances_adopt(a->instances, &r))
        return -ENOMEM;
    p = mfs_agent_part_add(a, &r, true);
    if (!p)
        return -ENOMEM;
    p->termed = s->termed;
    p->lost = s->lost; /* when all is taken up it is watched, or revived if it died meanwhile */
    return 0;
}

static int restore_clients(struct mfs_agent *a, const struct mfs_state *s)
{
    struct mfs_client mounter = get_client(&s->mounter);
    int rc = 0;

    /* First the mount, so that it hears of a client that died meanwhile. */
    if (s->mount[0])
        mfs_mounter_adopt(a->mounter, s->mount, s->options, &mounter);
    for (uint32_t i = 0; i < s->nclients && !rc; i++) {
        struct mfs_client c = get_client(&s->client[i]);

        rc = mfs_clients_expect(a->clients, &c);
    }
    if (!rc && mounter.proc.pid)
        rc = mfs_clients_expect(a->clients, &mounter);
    return rc;
}

static int restore(struct mfs_agent *a, struct mfs_state *s)
{
    int rc;

    a->succession.port = s->control;
    a->succession.term = s->term;
    a->succession.candidate = s->candidate;
    a->succession.vote_term = s->vote_term;
    a->succession.vote_for = s->vote_for;
    rc = s->nparts ? mfs_agent_instances_open(a, s->nparts, s->stripe_size, s->memory) : 0;
    for (uint32_t i = 0; i < s->nredis && !rc; i++)
        rc = restore_redis(a, &s->redis[i]);
    for (uint32_t i = 0; i < s->ncopies && !rc; i++)
        rc = mfs_agent_copy_restore(a, &s->copy[i]);
    if (!rc && s->table && !mfs_table_check(s->table)) {
        a->table = s->table;
        s->table = NULL;
        mfs_agent_traffic_table(a);
        rc = mfs_clients_push(a->clients, a->table, NULL, NULL, NULL);
    }
    if (!rc)
        rc = restore_clients(a, s);
    if (!rc && s->nparts)
        mfs_info(AREA, "going on with %u partitions and %u clients, table %llu", s->nredis,
                 s->nclients, a->table ? (unsigned long long)a->table->epoch : 0ULL);
    return rc;
}

static bool is_listed(void *arg, const struct mfs_proc *p)
{
    const struct mfs_agent *a = arg;

    for (const struct mfs_agent_part *q = a->parts; q; q = q->next)
        if (q->redis.proc.pid == p->pid)
            return true;
    for (const struct mfs_agent_copy *c = a->copies; c; c = c->next)
        if (c->redis.proc.pid == p->pid)
            return true;
    return false;
}

/* What was started and not noted any more. cm does not know of it, so nothing would ever end it. */
static void end_unlisted(struct mfs_agent *a)
{
    struct mfs_redis_node node = {.dir = a->path.dir, .dump_dir = a->path.dump};
    int rc = mfs_redis_end_unlisted(&node, is_listed, a);

    if (rc)
        mfs_warn(AREA, "%s: %s", a->path.dir, strerror(-rc));
    mfs_mounter_end_unlisted(a->mounter);
}

int mfs_agent_restore(struct mfs_agent *a, struct mfs_err *err)
{
    struct mfs_state s;
    int rc = mfs_state_load(&s, a->path.state, err);

    if (rc == -ENOENT) {
        end_unlisted(a);
        return 0;
    }
    if (rc)
        return rc;
    if (strcmp(s.name, a->opts.name) || s.node != a->opts.node)
        rc = mfs_err_set(err, -EINVAL, "%s is of node %u of \"%s\"", a->path.state, s.node, s.name);
    else if ((rc = restore(a, &s)))
        mfs_err_set(err, rc, "can't take up %s: %s", a->path.state, strerror(-rc));
    mfs_schema_clear(&mfs_state_schema, &s);
    if (!rc) {
        end_unlisted(a);
        mfs_agent_copies_end_dead(a);
        mfs_agent_look_after(a);
        mfs_agent_save(a);
    }
    return rc;
}
