/* Many small files read at once, by name: one command (mfs_glance) for all names of a directory
 * that are in one partition, all partitions at once. What is read so is not remembered, and nothing
 * is leased: a batch of files is as a rule read once, and leases would have to be revoked by
 * whoever changes them. Names that are asked for a second time are left to a look-up, which does
 * remember. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "meta/cache/cache.h"
#include "meta/call.h"
#include "meta/coherence/leases.h"
#include "meta/ops/ops.h"
#include "partition/protocol.h"

#define ROOM     (512U << 10) /* bytes of an answer, at most */
#define FIXED    5U           /* arguments before the names */
#define NONE     UINT16_MAX
#define PER_FILE (1U + 8U + MFS_RECORD_FIXED + 4U)

static_assert(ROOM >= PER_FILE + MFS_META_CONTENT, "each answer gets on");
static_assert(MFS_META_GLANCES < NONE, "names are numbered");

/* For an answer while it comes. As a rule it comes at once, so that the next one has the same,
 * which is in the processor's caches by then. */
struct room {
    struct room *next;
    char bytes[];
};

/* A command: some of a directory's names, in one partition. */
struct question {
    struct mfs_glances *g;
    bool answered;
    uint64_t parent;
    uint32_t part;
    uint16_t n, first, last; /* names, in their order (next) */
    uint16_t before;         /* another one of that partition */
    struct room *room;       /* that it has */
    struct mfs_ino_arg dir;
    char prefix[2], most[MFS_ARGS_NUM_MAX], cap_text[MFS_ARGS_NUM_MAX];
    size_t cap;
};

struct mfs_glances {
    struct mfs_meta *meta;
    size_t most; /* bytes of a file */
    int64_t asked;
    mfs_glance_fn *fn;
    void *arg;
    const struct mfs_name *names;
    size_t n; /* questions */
    struct question of[MFS_META_GLANCES];
    struct mfs_cmd cmds[MFS_META_GLANCES];
    struct mfs_arg argv[MFS_META_GLANCES * (FIXED + 1)];
    uint16_t next[MFS_META_GLANCES]; /* name of the same question */
    uint16_t left[MFS_META_GLANCES]; /* names that are to be asked again */
    size_t nleft;
    struct room *rooms; /* heap: those that no answer has */
    size_t room_cap;    /* of each */
    unsigned char ailing[(MFS_PARTITIONS_MAX + 7) / 8];
    uint16_t of_part[]; /* the last question of each partition */
};

struct mfs_glances *mfs_glances_create(struct mfs_meta *meta)
{
    struct mfs_glances *g = malloc(sizeof *g + meta->nparts * sizeof *g->of_part);

    if (!g)
        return NULL;
    g->meta = meta;
    g->most = MFS_META_CONTENT < meta->stripe_size ? MFS_META_CONTENT : meta->stripe_size;
    g->rooms = NULL;
    g->room_cap = 0;
    return g;
}

static void free_rooms(struct mfs_glances *g)
{
    while (g->rooms) {
        struct room *next = g->rooms->next;

        free(g->rooms);
        g->rooms = next;
    }
}

void mfs_glances_destroy(struct mfs_glances *g)
{
    if (!g)
        return;
    free_rooms(g);
    free(g);
}

/* --- which ------------------------------------------------------------------------------------ */

/* Was it asked for before? Of some 32,768 names that were not, one is taken for another. */
static bool asked_before(struct mfs_meta *meta, const struct mfs_name *name, size_t len)
{
    uint64_t hash = mfs_hash64(name->name, len, name->dir);
    _Atomic uint16_t *slot = &meta->glanced.marks[hash % MFS_META_GLANCED];
    uint16_t mark = (uint16_t)(hash >> 48 | 1);

    if (atomic_load_explicit(slot, memory_order_relaxed) == mark)
        return true;
    atomic_store_explicit(slot, mark, memory_order_relaxed);
    return false;
}

/* The partition that is to be asked; false: none is. */
static bool is_asked(struct mfs_glances *g, const struct mfs_name *name, uint32_t *part)
{
    size_t len = name->name ? strlen(name->name) : 0;
    struct mfs_attr attr;

    if (len == 0 || len > MFS_NAME_LEN_MAX ||
        mfs_leases_name(g->meta, name->dir, name->name, &attr) || asked_before(g->meta, name, len))
        return false;
    *part = mfs_placement_entry(name->dir, name->name, len, g->meta->nparts);
    return !mfs_bits_test(g->ailing, sizeof g->ailing, *part);
}

/* --- questions -------------------------------------------------------------------------------- */

static struct question *question_of(struct mfs_glances *g, uint64_t parent, uint32_t part)
{
    uint16_t at = g->of_part[part];

    while (at != NONE && g->of[at].parent != parent)
        at = g->of[at].before;
    if (at != NONE)
        return &g->of[at];
    at = (uint16_t)g->n++;
    g->of[at] = (struct question){.g = g,
                                  .parent = parent,
                                  .part = part,
                                  .first = NONE,
                                  .last = NONE,
                                  .before = g->of_part[part]};
    g->of_part[part] = at;
    return &g->of[at];
}

static void add(struct mfs_glances *g, uint16_t name, uint32_t part)
{
    struct question *q = question_of(g, g->names[name].dir, part);

    if (q->n++ == 0)
        q->first = name;
    else
        g->next[q->last] = name;
    q->last = name;
    g->next[name] = NONE;
}

static void begin(struct mfs_glances *g)
{
    g->n = 0;
    memset(g->of_part, 0xff, g->meta->nparts * sizeof *g->of_part);
}

static struct mfs_arg number_arg(char text[MFS_ARGS_NUM_MAX], size_t number)
{
    return (struct mfs_arg){text, (size_t)snprintf(text, MFS_ARGS_NUM_MAX, "%zu", number)};
}

/* Its command, with arguments from *argv on. */
static struct mfs_cmd command(struct mfs_glances *g, struct question *q, struct mfs_arg *argv)
{
    uint32_t argc = 0;

    q->dir = mfs_ino_arg(q->parent);
    mfs_part_arg(q->part, q->prefix);
    argv[argc++] = (struct mfs_arg){"mfs_glance", strlen("mfs_glance")};
    argv[argc++] = (struct mfs_arg){q->dir.b, sizeof q->dir.b};
    argv[argc++] = (struct mfs_arg){q->prefix, sizeof q->prefix};
    argv[argc++] = number_arg(q->most, g->most);
    argv[argc++] = number_arg(q->cap_text, q->cap);
    for (uint16_t at = q->first; at != NONE; at = g->next[at])
        argv[argc++] = (struct mfs_arg){g->names[at].name, strlen(g->names[at].name)};
    return (struct mfs_cmd){.part = q->part, .argv = argv, .argc = argc, .idempotent = true};
}

/* Rooms of before may be too small. */
static void size_rooms(struct mfs_glances *g)
{
    size_t most = 0;

    for (size_t i = 0; i < g->n; i++) {
        struct question *q = &g->of[i];

        q->cap = q->n * (PER_FILE + g->most);
        q->cap = q->cap < ROOM ? q->cap : ROOM;
        most = most > q->cap ? most : q->cap;
    }
    if (most <= g->room_cap)
        return;
    free_rooms(g);
    g->room_cap = most;
}

/* When its connection broke, a question has the room already. */
static void *take_room(void *arg, size_t len)
{
    struct question *q = arg;
    struct mfs_glances *g = q->g;

    if (!q->room) {
        q->room = g->rooms;
        if (q->room)
            g->rooms = q->room->next;
        else
            q->room = malloc(sizeof *q->room + g->room_cap);
    }
    (void)len; /* no more than was said to the partition, or it is skipped */
    return q->room ? q->room->bytes : NULL;
}

static void give_room_back(struct question *q)
{
    if (!q->room)
        return;
    q->room->next = q->g->rooms;
    q->g->rooms = q->room;
    q->room = NULL;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* What is known of it otherwise must not be seen again, if it is older. */
static void tell(struct mfs_glances *g, uint16_t name, int rc, const struct mfs_attr *attr,
                 struct mfs_bytes content)
{
    const struct mfs_name *is = &g->names[name];

    mfs_filecache_forget(g->meta->files, is->dir, is->name, rc ? 0 : attr->ino);
    if (!rc)
        mfs_filecache_compare(g->meta->files, attr, g->asked);
    g->fn(g->arg, name, rc, attr, content.p, content.n);
}

/* The file that the answer begins with is taken off it. False: it is none. */
static bool take_file(struct mfs_glances *g, uint16_t name, struct mfs_bytes *answer)
{
    struct mfs_bytes record, content;
    struct mfs_attr attr;
    uint64_t ino;

    if (answer->n < PER_FILE - 1)
        return false;
    ino = mfs_get_be64(answer->p);
    record = (struct mfs_bytes){answer->p + 8, MFS_RECORD_FIXED};
    content.p = record.p + record.n + 4;
    content.n = mfs_get_le32(content.p - 4);
    if (content.n > answer->n - (PER_FILE - 1) ||
        mfs_meta_take(g->meta, ino, record, g->asked, &attr) || !S_ISREG(attr.mode) ||
        attr.size > g->most || content.n > attr.size)
        return false;
    answer->p = content.p + content.n;
    answer->n -= PER_FILE - 1 + content.n;
    tell(g, name, 0, &attr, content);
    return true;
}

static void take_files(struct question *q, struct mfs_bytes answer)
{
    struct mfs_glances *g = q->g;

    for (uint16_t at = q->first; at != NONE && answer.n > 0; at = g->next[at]) {
        enum mfs_glance_status status = (enum mfs_glance_status)answer.p[0];

        answer.p++;
        answer.n--;
        if (status == MFS_GLANCE_ABSENT)
            tell(g, at, -ENOENT, NULL, (struct mfs_bytes){NULL, 0});
        else if (status == MFS_GLANCE_ROOM)
            g->left[g->nleft++] = at;
        else if (status == MFS_GLANCE_FILE && !take_file(g, at, &answer))
            return;
    }
}

/* While other partitions are still at work. A question that was sent again is done with. */
static void take_answer(void *arg, const struct mfs_cmd *cmd)
{
    struct question *q = arg;

    if (!q->answered && cmd->into_len > 0)
        take_files(q, (struct mfs_bytes){cmd->into, (size_t)cmd->into_len});
    q->answered = true;
    give_room_back(q);
}

static void send(struct mfs_glances *g)
{
    struct mfs_arg *argv = g->argv;

    for (size_t i = 0; i < g->n; i++) {
        struct question *q = &g->of[i];

        g->cmds[i] = command(g, q, argv);
        g->cmds[i].room = take_room;
        g->cmds[i].into_cap = q->cap;
        g->cmds[i].taken = take_answer;
        g->cmds[i].arg = q;
        argv += g->cmds[i].argc;
    }
    g->asked = mfs_clock_mono();
    mfs_store_exec(g->meta->store, g->cmds, g->n);
}

/* One round trip. Those that there was no room for are left. */
static void run(struct mfs_glances *g)
{
    g->nleft = 0;
    if (!g->n)
        return;
    size_rooms(g);
    send(g);
    for (size_t i = 0; i < g->n; i++)
        give_room_back(&g->of[i]);
    mfs_cmds_fini(g->cmds, g->n);
}

/* The number of names that are left gets less: each answer has room for one file. */
static void run_left(struct mfs_glances *g, size_t before)
{
    while (g->nleft && g->nleft < before) {
        before = g->nleft;
        begin(g);
        for (size_t i = 0; i < before; i++) {
            const struct mfs_name *name = &g->names[g->left[i]];

            add(g, g->left[i],
                mfs_placement_entry(name->dir, name->name, strlen(name->name), g->meta->nparts));
        }
        run(g);
    }
}

void mfs_meta_glance(struct mfs_glances *g, const struct mfs_name *names, size_t n,
                     mfs_glance_fn *fn, void *arg)
{
    size_t asked = 0;

    g->names = names;
    g->fn = fn;
    g->arg = arg;
    begin(g);
    memset(g->ailing, 0, sizeof g->ailing);
    mfs_store_ailing(g->meta->store, g->ailing);
    for (size_t i = 0; i < n && i < MFS_META_GLANCES; i++) {
        uint32_t part;

        if (!is_asked(g, &names[i], &part))
            continue;
        add(g, (uint16_t)i, part);
        asked++;
    }
    run(g);
    run_left(g, asked);
}
