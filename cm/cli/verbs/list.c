/* `cm list`: the deployments of this machine and user, as far as their directories tell. Nothing is
 * asked, so that none holds it up, and nothing is touched. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cm/ask/client.h"
#include "cm/cli/render.h"
#include "cm/cli/verbs.h"
#include "cm/nodes/cleanup.h"
#include "cm/provider/traits.h"
#include "cm/state/state.h"

struct found {
    char name[MFS_DEPLOYMENT_NAME_MAX];
    char state[MFS_STATE_MAX];
    char dir[PATH_MAX], cm[MFS_ADDRESS_MAX], mount[MFS_PATH_MAX];
    uint32_t nodes, partitions;
    uint64_t memory;      /* of each node, bytes */
    uint64_t age_seconds; /* since it was started first */
};

struct list {
    struct found *one;
    uint32_t n;
};

static const struct mfs_schema found_schema = {
    "deployment", sizeof(struct found),
    (const struct mfs_field[]){{.name = "name", MFS_FIELD(STR, struct found, name)},
                               {.name = "state", MFS_FIELD(STR, struct found, state)},
                               {.name = "nodes", MFS_FIELD(U32, struct found, nodes)},
                               {.name = "partitions", MFS_FIELD(U32, struct found, partitions)},
                               {.name = "memory", MFS_FIELD(U64, struct found, memory)},
                               {.name = "mount", MFS_FIELD(STR, struct found, mount)},
                               {.name = "cm", MFS_FIELD(STR, struct found, cm)},
                               {.name = "age_seconds", MFS_FIELD(U64, struct found, age_seconds)},
                               {.name = "state_dir", MFS_FIELD(STR, struct found, dir)},
                               {0}}};

static const struct mfs_schema list_schema = {
    "deployments", sizeof(struct list),
    (const struct mfs_field[]){
        {.name = "deployments", MFS_FIELD_LIST(struct list, one, n, &found_schema)}, {0}}};

/* The secret is written once, at the start. */
static uint64_t age_of(const struct mfs_paths *p)
{
    struct stat st;
    time_t now = time(NULL);

    if (stat(p->secret, &st) && stat(p->dir, &st))
        return 0;
    return now > st.st_mtime ? (uint64_t)(now - st.st_mtime) : 0;
}

/* Without a cm: "dead" only where it is seen that nothing runs. Nodes that are elsewhere may. */
static const char *word_of(const struct mfs_paths *p, const struct mfs_cm_state *s)
{
    if (mfs_client_daemon(p).pid)
        return s->phase;
    if (!mfs_provider_traits(s->provider)->sees_processes || mfs_cleanup_living(p))
        return "no-cm";
    return "dead";
}

static void fill_state(const struct mfs_paths *p, struct found *f)
{
    char cm[MFS_ADDRESS_MAX] = "";
    struct mfs_cm_state s;
    struct mfs_err err;

    if (mfs_client_is_elsewhere(p, cm)) {
        mfs_text_copy(f->state, sizeof f->state,
                      mfs_cleanup_is_node(p) || !access(p->state, F_OK) ? "node" : "remains");
        mfs_text_copy(f->cm, sizeof f->cm, cm);
    } else if (mfs_cm_state_load(&s, p->state, &err)) {
        mfs_text_copy(f->state, sizeof f->state, "remains");
    } else {
        mfs_text_copy(f->state, sizeof f->state, word_of(p, &s));
        mfs_text_copy(f->mount, sizeof f->mount, s.mount);
        mfs_text_copy(f->cm, sizeof f->cm, s.cm);
        f->nodes = s.nnodes;
        f->partitions = s.nparts;
        f->memory = s.memory;
        mfs_cm_state_clear(&s);
    }
}

/* What others may change tells nothing. */
static int add(void *arg, struct mfs_paths *p)
{
    struct list *l = arg;
    struct found *more;
    struct mfs_err err;

    if (mfs_paths_trust(p, &err))
        return 0;
    more = reallocarray(l->one, l->n + 1, sizeof *more);
    if (!more)
        return -ENOMEM;
    l->one = more;
    more += l->n++;
    *more = (struct found){.age_seconds = age_of(p)};
    mfs_text_copy(more->name, sizeof more->name, p->name);
    mfs_text_copy(more->dir, sizeof more->dir, p->dir);
    fill_state(p, more);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

static const char *age_text(uint64_t s, char out[24])
{
    if (s < 120)
        snprintf(out, 24, "%llus", (unsigned long long)s);
    else if (s < 7200)
        snprintf(out, 24, "%llum", (unsigned long long)s / 60);
    else if (s < 172800)
        snprintf(out, 24, "%lluh", (unsigned long long)s / 3600);
    else
        snprintf(out, 24, "%llud", (unsigned long long)s / 86400);
    return out;
}

static int render(const struct list *l, struct mfs_buf *out)
{
    int width = 4, rc = 0;

    for (uint32_t i = 0; i < l->n; i++)
        if ((int)strlen(l->one[i].name) > width)
            width = (int)strlen(l->one[i].name);
    rc = mfs_buf_printf(out, "%-*s  %-8s  %5s  %5s  %9s  %5s  %-24s  %s\n", width, "NAME", "STATE",
                        "NODES", "PARTS", "MEMORY", "AGE", "MOUNT", "DIRECTORY");
    for (uint32_t i = 0; i < l->n && !rc; i++) {
        const struct found *f = &l->one[i];
        char age[24];

        rc = mfs_buf_printf(out, "%-*s  %-8s  %5u  %5u  %9s  %5s  %-24s  %s\n", width, f->name,
                            f->state, f->nodes, f->partitions, MFS_TEXT_BYTES(f->memory),
                            age_text(f->age_seconds, age), f->mount[0] ? f->mount : "-", f->dir);
    }
    return rc;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    struct list l = {0};
    struct mfs_buf b;
    int rc = mfs_paths_each(add, &l);

    if (!rc && l.n)
        qsort(l.one, l.n, sizeof *l.one, by_name);
    mfs_buf_init(&b);
    if (!rc)
        rc = mfs_conf_flag(call->conf, "json") ? mfs_render_json(&list_schema, &l, &b)
                                               : render(&l, &b);
    rc = mfs_render_print(rc, &b, err);
    mfs_schema_clear(&list_schema, &l);
    return rc;
}

const struct mfs_verb mfs_cm_list = {
    .name = "list",
    .summary = "list the deployments of this machine and user",
    .about =
        "Lists the deployments of this machine and user, in the default places of their state\n"
        "directories: running, starting or stopping; no-cm: what runs goes on without a cm, cm\n"
        "start brings one (so also where nodes are elsewhere, whatever runs there); dead: nothing\n"
        "of it runs; node: of a deployment whose cm is elsewhere; remains: only logs or the like.",
    .options = MFS_OPTIONS(mfs_json_options),
    .run = run};
