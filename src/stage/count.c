#include "stage/count.h"

#include <fts.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads/thread.h"

struct mfs_stage_counter {
    struct mfs_stage *stage;
    pthread_t thread;
    atomic_bool end;
};

static void look(struct mfs_stage_counter *c, char *path)
{
    char *paths[] = {path, NULL};
    FTS *all = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    const FTSENT *e;

    while (all && !c->end && (e = fts_read(all)))
        if (e->fts_info == FTS_F)
            mfs_stage_tally_expect(c->stage->tally, 1, (uint64_t)e->fts_statp->st_size);
    if (all)
        fts_close(all);
}

static void *run(void *arg)
{
    struct mfs_stage_counter *c = arg;
    const struct mfs_stage_list *l = c->stage->plan->list;

    for (uint32_t i = 0; i < l->n && !c->end; i++)
        if (!strstr(l->entry[i].from, "://"))
            look(c, l->entry[i].from);
    if (!c->end)
        mfs_stage_tally_expected(c->stage->tally);
    return NULL;
}

struct mfs_stage_counter *mfs_stage_count_begin(struct mfs_stage *s)
{
    struct mfs_stage_counter *c = s->plan->progress || s->plan->count ? calloc(1, sizeof *c) : NULL;

    if (!c)
        return NULL;
    c->stage = s;
    if (!mfs_thread_start(&c->thread, "count", run, c))
        return c;
    free(c);
    return NULL;
}

void mfs_stage_count_end(struct mfs_stage_counter *c)
{
    if (!c)
        return;
    c->end = true;
    pthread_join(c->thread, NULL);
    free(c);
}
