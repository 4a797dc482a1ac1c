/* What runs on each node: the plan comes by the input, and the result goes by the output. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/text.h"
#include "base/threads/thread.h"
#include "stage/impl.h"
#include "stage/nodes.h"
#include "stage/words.h"

#define LOOK_EACH   100               /* ms */
#define PLAN_MOST   ((size_t)4 << 30) /* bytes */
#define WORKER_NAME 128

struct worker {
    int input, output;
    char name[WORKER_NAME];
    atomic_bool stop, ended;
    const char *token; /* what the starter has put into the target */
    struct mfs_stage_list list;
    struct mfs_stage_plan plan;
    char *root, *root_there;
    struct mfs_buf text; /* of the plan */
};

/* ---- the plan -------------------------------------------------------------------------------- */

/* Where the path is here. The caller's to free; NULL: ENOMEM. */
static char *translate(const struct worker *w, const char *path)
{
    size_t len = strlen(w->root);
    char *here;

    if (!len || !*w->root_there || strncmp(path, w->root, len) != 0 ||
        (path[len] && path[len] != '/'))
        return strdup(path);
    return asprintf(&here, "%s%s", w->root_there, path + len) < 0 ? NULL : here;
}

static int take_head(struct worker *w, bool in, char **word, int n)
{
    uint64_t version, call, jobs;

    if (n != 10 || strcmp(word[0], "memefs-stage") != 0 || mfs_text_u64(word[1], &version) ||
        version != 3 || strcmp(word[2], in ? "in" : "out") != 0)
        return -EPROTO;
    if (mfs_text_u64(word[4], &call) || mfs_text_u64(word[5], &jobs) || !jobs || jobs > 1024)
        return -EPROTO;
    w->root = word[7];
    w->root_there = word[8];
    w->token = word[9];
    w->plan = (struct mfs_stage_plan){.list = &w->list,
                                      .target = translate(w, word[3]),
                                      .exact = strchr(word[6], 'e') != NULL,
                                      .verify = strchr(word[6], 'v') != NULL,
                                      .count = strchr(word[6], 'c') != NULL,
                                      .shared = true,
                                      .threads = (unsigned)jobs,
                                      .call = call,
                                      .stop = &w->stop};
    return w->plan.target ? 0 : -ENOMEM;
}

static int take_entry(struct worker *w, char **word, int n)
{
    char *from;
    int rc;

    if (n != 4 || strcmp(word[0], "entry") != 0 || !w->plan.target)
        return -EPROTO;
    from = translate(w, word[1]);
    rc = from ? mfs_stage_list_add(&w->list, from, *word[2] ? word[2] : NULL) : -ENOMEM;
    free(from);
    if (!rc && *word[3]) {
        struct mfs_stage_entry *e = &w->list.entry[w->list.n - 1];

        e->has_sum = true;
        rc = mfs_text_unhex(word[3], e->sum, sizeof e->sum) ? -EPROTO : 0;
    }
    return rc;
}

/* Up to the line "go". */
static int read_text(struct worker *w)
{
    for (;;) {
        const char *end = (char *)mfs_buf_data(&w->text) + mfs_buf_len(&w->text);
        char *room;
        ssize_t n;

        if (mfs_buf_len(&w->text) >= 4 && !memcmp(end - 4, "\ngo\n", 4))
            return mfs_buf_append(&w->text, "", 1);
        if (mfs_buf_len(&w->text) > PLAN_MOST)
            return -EFBIG;
        room = mfs_buf_reserve(&w->text, 65536);
        if (!room)
            return -ENOMEM;
        n = read(w->input, room, 65536);
        if (n == 0)
            return -EPROTO;
        if (n < 0 && errno != EINTR)
            return -errno;
        mfs_buf_commit(&w->text, n > 0 ? (size_t)n : 0);
    }
}

static int read_plan(struct worker *w, bool in, struct mfs_err *err)
{
    char *word[MFS_STAGE_WORDS + 1], *rest, *line;
    int rc = read_text(w);

    rest = rc ? NULL : mfs_buf_data(&w->text);
    for (bool first = true; !rc && (line = strsep(&rest, "\n")) && strcmp(line, "go") != 0;
         first = false) {
        int n = mfs_stage_words_take(line, word);

        rc = n < 0 ? -EPROTO : first ? take_head(w, in, word, n) : take_entry(w, word, n);
    }
    if (rc == -EPROTO)
        return mfs_err_set(err, rc,
                           "what came on the standard input is no call of this version of memefs: "
                           "--worker is for what --nodes and --launch start");
    return rc ? mfs_err_set(err, rc, "the call: %s", strerror(-rc)) : 0;
}

/* ---- what it tells --------------------------------------------------------------------------- */

/* Nobody reads it any more: then nobody wants it. A line is one write(2). */
static void tell(struct worker *w, const char *const *words)
{
    struct mfs_buf line;

    mfs_buf_init(&line);
    if (mfs_stage_words_put(&line, words) ||
        mfs_file_write_all(w->output, mfs_buf_data(&line), mfs_buf_len(&line)))
        w->stop = true;
    mfs_buf_fini(&line);
}

static void tell_failed(void *arg, const char *path, int code, const char *why)
{
    struct worker *w = arg;
    char number[16];

    snprintf(number, sizeof number, "%d", -code);
    tell(w, (const char *const[]){"stage", w->name, "failed", number, path, why, NULL});
}

static void tell_counts(void *arg, const struct mfs_stage_counts *c)
{
    const uint64_t count[] = {c->files,     c->directories,   c->others, c->bytes,
                              c->skipped,   c->skipped_bytes, c->failed, c->all_files,
                              c->all_bytes, c->all ? 1U : 0U, c->found,  c->left_out};
    enum { N = sizeof count / sizeof *count };
    const char *words[4 + N] = {"stage", ((struct worker *)arg)->name, "counts"};
    char text[N][24];

    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "%" PRIu64, count[i]);
        words[3 + i] = text[i];
    }
    tell(arg, words);
}

static void tell_end(struct worker *w, int rc, const struct mfs_err *err,
                     const struct mfs_stage_result *r)
{
    char number[16];

    snprintf(number, sizeof number, "%d", -rc);
    if (rc)
        tell(w, (const char *const[]){"stage", w->name, "error", number, err->msg, NULL});
    else
        tell(w, (const char *const[]){"stage", w->name, "end", r->full ? "1" : "0",
                                      r->stopped ? "1" : "0", NULL});
}

/* ---- the target ------------------------------------------------------------------------------ */

/* Before anything is made: another directory of that name would take the copies, and nobody would
 * find them. */
static int see_token(const struct worker *w, struct mfs_err *err)
{
    char dir[PATH_MAX], path[PATH_MAX];
    int rc = mfs_stage_target_directory(&w->plan, dir, sizeof dir);

    if (!rc)
        rc = mfs_text_format(path, sizeof path, "%s/%s", dir, w->token);
    if (rc)
        return mfs_err_set(err, rc, "%s: %s", w->plan.target, strerror(-rc));
    if (!access(path, F_OK))
        return 0;
    if (errno != ENOENT && errno != ENOTDIR)
        return mfs_err_set(err, -errno, "%s: %s", dir, strerror(errno));
    return mfs_err_set(err, -EXDEV,
                       "%s is not shared: on this node it is not the directory that it is where "
                       "the call was given",
                       dir);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void *watch_input(void *arg)
{
    struct worker *w = arg;
    struct pollfd p = {.fd = w->input, .events = POLLIN};
    char rest[64];

    while (!w->ended && !w->stop)
        if (poll(&p, 1, LOOK_EACH) > 0 && read(w->input, rest, sizeof rest) <= 0)
            w->stop = true;
    return NULL;
}

static int run(struct worker *w, struct mfs_err *err)
{
    const struct mfs_stage_watch watch = {tell_failed, tell_counts, w};
    struct mfs_stage_result result = {0};
    pthread_t thread;
    int rc = mfs_thread_start(&thread, "input", watch_input, w);

    if (rc)
        return mfs_err_set(err, rc, "a thread: %s", strerror(-rc));
    w->plan.watch = &watch;
    rc = mfs_stage_run(&w->plan, &result, err);
    tell_end(w, rc, err, &result);
    mfs_stage_result_fini(&result);
    w->ended = true;
    pthread_join(thread, NULL);
    return rc;
}

int mfs_stage_work(bool in, int input, int output,
                   int (*check)(const struct mfs_stage_plan *plan, struct mfs_err *err),
                   struct mfs_err *err)
{
    struct worker w = {.input = input, .output = output};
    char host[HOST_NAME_MAX + 1] = "";
    int rc;

    signal(SIGPIPE, SIG_IGN);
    gethostname(host, sizeof host - 1);
    snprintf(w.name, sizeof w.name, "%s:%d", host, (int)getpid());
    mfs_buf_init(&w.text);
    rc = read_plan(&w, in, err);
    if (!rc) {
        tell_counts(&w, &(struct mfs_stage_counts){0}); /* from here on silence tells as well */
        rc = check(&w.plan, err);
        if (!rc)
            rc = see_token(&w, err);
        if (rc)
            tell_end(&w, rc, err, NULL);
        else
            rc = run(&w, err);
        rc = rc ? 1 : 0; /* it has been told */
    }
    free((char *)w.plan.target);
    mfs_stage_list_fini(&w.list);
    mfs_buf_fini(&w.text);
    return rc;
}
