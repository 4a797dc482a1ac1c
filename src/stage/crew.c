#include "stage/crew.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "stage/impl.h"
#include "stage/words.h"

#define FAILURES_MOST 1000 /* of a worker that are kept */

struct worker {
    struct worker *next;
    uint32_t command;
    char *id, *name; /* name: the node's; or `id` itself */
    struct mfs_stage_counts counts;
    bool ended, complete, full; /* told of its end; was through */
    uint32_t nfailures;
    struct mfs_stage_failure *failure;
};

struct mfs_stage_crew {
    struct mfs_stage_tally *tally;
    struct worker *worker;
};

struct mfs_stage_crew *mfs_stage_crew_create(struct mfs_stage_tally *tally)
{
    struct mfs_stage_crew *c = calloc(1, sizeof *c);

    if (c)
        c->tally = tally;
    return c;
}

static void free_worker(struct worker *w)
{
    for (uint32_t i = 0; i < w->nfailures; i++) {
        free(w->failure[i].path);
        free(w->failure[i].why);
    }
    free(w->failure);
    free(w->name);
    free(w->id);
    free(w);
}

void mfs_stage_crew_destroy(struct mfs_stage_crew *c)
{
    struct worker *w, *next;

    for (w = c ? c->worker : NULL; w; w = next) {
        next = w->next;
        free_worker(w);
    }
    free(c);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static struct worker *find(struct mfs_stage_crew *c, uint32_t command, const char *name,
                           const char *id)
{
    struct worker *w;

    for (w = c->worker; w; w = w->next)
        if (w->command == command && !strcmp(w->id, id))
            return w;
    w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->command = command;
    w->id = strdup(id);
    w->name = strdup(*name ? name : id);
    if (!w->id || !w->name) {
        free_worker(w);
        return NULL;
    }
    w->next = c->worker;
    c->worker = w;
    return w;
}

static void take_counts(struct worker *w, char **word, int n)
{
    uint64_t count[12];

    if (n != 12)
        return;
    for (int i = 0; i < n; i++)
        if (mfs_text_u64(word[i], &count[i]))
            return;
    w->counts = (struct mfs_stage_counts){.files = count[0],
                                          .directories = count[1],
                                          .others = count[2],
                                          .bytes = count[3],
                                          .skipped = count[4],
                                          .skipped_bytes = count[5],
                                          .failed = count[6],
                                          .all_files = count[7],
                                          .all_bytes = count[8],
                                          .all = count[9] != 0,
                                          .found = count[10],
                                          .left_out = count[11]};
}

/* What there is no memory for was at least told. */
static void keep(struct worker *w, int code, const char *path, const char *why)
{
    struct mfs_stage_failure *longer, *f;

    if (w->nfailures == FAILURES_MOST)
        return;
    longer = realloc(w->failure, (w->nfailures + 1) * sizeof *longer);
    if (!longer)
        return;
    w->failure = longer;
    f = &longer[w->nfailures];
    *f = (struct mfs_stage_failure){strdup(path), code, strdup(why)};
    if (f->path && f->why) {
        w->nfailures++;
        return;
    }
    free(f->path);
    free(f->why);
}

bool mfs_stage_crew_take(struct mfs_stage_crew *c, uint32_t command, const char *name, char *line)
{
    char *word[MFS_STAGE_WORDS + 1], plain[512];
    int n = mfs_stage_words_take(line, word);
    struct worker *w;
    uint64_t code;

    if (n < 4 || strcmp(word[0], "stage") != 0 || !(w = find(c, command, name, word[1])))
        return false;
    if (!strcmp(word[2], "counts")) {
        take_counts(w, word + 3, n - 3);
    } else if (!strcmp(word[2], "failed") && n == 6 && !mfs_text_u64(word[3], &code)) {
        keep(w, -(int)code, word[4], word[5]);
        mfs_text_plain(plain, sizeof plain, word[4]);
        mfs_stage_tally_say(c->tally, "%s: %s: %s\n", w->name, plain, word[5]);
    } else if (!strcmp(word[2], "error") && n == 5) {
        w->ended = true;
        mfs_stage_tally_say(c->tally, "%s: %s\n", w->name, word[4]);
    } else if (!strcmp(word[2], "end") && n == 5) {
        w->ended = true;
        w->full = !strcmp(word[3], "1");
        w->complete = !w->full && !strcmp(word[4], "0");
    } else {
        return false;
    }
    return true;
}

/* ---- all together ---------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Each skips what others have copied: what was there before is what all have not copied. */
void mfs_stage_crew_count(const struct mfs_stage_crew *c, struct mfs_stage_counts *sum)
{
    uint64_t files = 0, bytes = 0; /* that the one furthest on has passed by */

    *sum = (struct mfs_stage_counts){0};
    for (const struct worker *w = c->worker; w; w = w->next) {
        sum->files += w->counts.files;
        sum->directories += w->counts.directories;
        sum->others += w->counts.others;
        sum->bytes += w->counts.bytes;
        files = larger(files, w->counts.files + w->counts.skipped);
        bytes = larger(bytes, w->counts.bytes + w->counts.skipped_bytes);
        sum->all_files = larger(sum->all_files, w->counts.all_files);
        sum->all_bytes = larger(sum->all_bytes, w->counts.all_bytes);
        sum->all |= w->counts.all;
        sum->left_out = larger(sum->left_out, w->counts.left_out);
    }
    sum->skipped = files > sum->files ? files - sum->files : 0;
    sum->skipped_bytes = sum->skipped && bytes > sum->bytes ? bytes - sum->bytes : 0;
}

bool mfs_stage_crew_ended(const struct mfs_stage_crew *c, uint32_t command)
{
    bool ended = false;

    for (const struct worker *w = c->worker; w; w = w->next) {
        if (w->command != command)
            continue;
        if (!w->ended)
            return false;
        ended = true;
    }
    return ended;
}

/* Of those that have not come to their ends as well. */
static uint64_t most_found(const struct mfs_stage_crew *c)
{
    uint64_t most = 0;

    for (const struct worker *w = c->worker; w; w = w->next)
        most = larger(most, w->counts.found);
    return most;
}

/* One before which the source is not mounted copies the empty directory without a failure: only who
 * has found as much as any other can tell of all. */
static struct worker *best(const struct mfs_stage_crew *c)
{
    struct worker *best = NULL;
    uint64_t most = most_found(c);

    for (struct worker *w = c->worker; w; w = w->next)
        if (w->complete && w->counts.found == most &&
            (!best || w->counts.failed < best->counts.failed))
            best = w;
    return best;
}

bool mfs_stage_crew_whole(const struct mfs_stage_crew *c)
{
    const struct worker *w = best(c);

    return w && !w->counts.failed;
}

static int add_part(struct mfs_stage_result *r, const struct worker *w, uint64_t most)
{
    struct mfs_stage_part *longer = realloc(r->part, ((size_t)r->nparts + 1) * sizeof *longer);

    if (!longer)
        return -ENOMEM;
    r->part = longer;
    longer[r->nparts] = (struct mfs_stage_part){.node = strdup(w->name),
                                                .files = w->counts.files,
                                                .bytes = w->counts.bytes,
                                                .failed = w->counts.failed,
                                                .whole = w->complete && w->counts.found == most};
    return longer[r->nparts].node ? (int)++r->nparts : -ENOMEM;
}

/* Without the same sources nobody knows what was to be copied. */
static bool tell_differences(const struct mfs_stage_crew *c, uint64_t most)
{
    bool differs = false;

    for (const struct worker *w = c->worker; w; w = w->next) {
        if (!w->complete || w->counts.found == most)
            continue;
        mfs_stage_tally_say(c->tally,
                            "%s: has found %" PRIu64 " of the %" PRIu64
                            " names that another node has found: the source is not the same there, "
                            "or changes\n",
                            w->name, w->counts.found, most);
        differs = true;
    }
    return differs;
}

bool mfs_stage_crew_result(struct mfs_stage_crew *c, struct mfs_stage_result *r)
{
    struct worker *w = best(c);
    uint64_t most = most_found(c);

    for (const struct worker *any = c->worker; any; any = any->next)
        r->full |= any->full;
    for (const struct worker *any = c->worker; any; any = any->next)
        if (add_part(r, any, most) < 0)
            break; /* without memory some are not told */
    r->differs = tell_differences(c, most);
    if (!w)
        return false;
    r->counts.failed = w->counts.failed;
    r->nfailures = w->nfailures;
    r->failure = w->failure;
    w->failure = NULL;
    w->nfailures = 0;
    return true;
}
