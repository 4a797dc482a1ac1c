#include "trace/hot.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/shown.h"
#include "base/text.h"

#define SELDOM  (100 * MFS_MSEC)
#define OFTEN   (5 * MFS_MSEC)
#define WATCHED (10 * MFS_SEC)
#define HALVED  (10 * MFS_SEC)

struct table {
    uint32_t n;
    struct mfs_hot_item item[MFS_HOT_KEYS];
};

struct mfs_hot_sampler {
    _Atomic int64_t next; /* mono */
    _Atomic int64_t watched;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    int64_t halved;
    double requests;
    struct table file, dir, program;
};

struct mfs_hot_sampler *mfs_hot_create(void)
{
    struct mfs_hot_sampler *h = calloc(1, sizeof *h);

    if (h == NULL)
        return NULL;
    pthread_mutex_init(&h->lock, NULL);
    h->halved = mfs_clock_mono();
    return h;
}

void mfs_hot_destroy(struct mfs_hot_sampler *h)
{
    if (h == NULL)
        return;
    pthread_mutex_destroy(&h->lock);
    free(h);
}

bool mfs_hot_is_due(const struct mfs_hot_sampler *h, int64_t now)
{
    return now >= atomic_load_explicit(&h->next, memory_order_relaxed);
}

void mfs_hot_watched(struct mfs_hot_sampler *h, int64_t now)
{
    atomic_store_explicit(&h->watched, now + WATCHED, memory_order_relaxed);
    if (atomic_load_explicit(&h->next, memory_order_relaxed) > now + OFTEN)
        atomic_store_explicit(&h->next, now + OFTEN, memory_order_relaxed);
}

/* ---- counting -------------------------------------------------------------------------------- */

static void halve_table(struct table *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        t->item[i].requests /= 2;
        t->item[i].bytes /= 2;
        t->item[i].ms /= 2;
    }
}

static void grow_old(struct mfs_hot_sampler *h, int64_t now)
{
    if (now - h->halved > 60 * HALVED) {
        h->file.n = h->dir.n = h->program.n = 0;
        h->requests = 0;
        h->halved = now;
    }
    for (; now - h->halved > HALVED; h->halved += HALVED) {
        h->requests /= 2;
        halve_table(&h->file);
        halve_table(&h->dir);
        halve_table(&h->program);
    }
}

static void count(struct table *t, const char *name, const struct mfs_trace_line *l)
{
    struct mfs_hot_item *least = NULL;
    uint32_t i = 0;

    for (; i < t->n && strcmp(t->item[i].name, name) != 0; i++)
        if (least == NULL || t->item[i].requests < least->requests)
            least = &t->item[i];
    if (i == t->n && t->n < MFS_HOT_KEYS) {
        t->item[t->n++] = (struct mfs_hot_item){0};
    } else if (i == t->n) {
        i = (uint32_t)(least - t->item);
        least->bytes = least->ms = 0; /* its requests stay: so many the new one may have had */
    }
    snprintf(t->item[i].name, sizeof t->item[i].name, "%s", name);
    t->item[i].requests++;
    t->item[i].bytes += (double)l->bytes;
    t->item[i].ms += l->ms;
}

/* The end of a path that is too long, which tells more than its beginning. */
static void shorten(const char *path, size_t len, char out[MFS_HOT_NAME])
{
    static const char more[] = "…/";
    size_t room = MFS_HOT_NAME - sizeof more;
    const char *from = path;

    if (len < MFS_HOT_NAME) {
        snprintf(out, MFS_HOT_NAME, "%.*s", (int)len, path);
        return;
    }
    from = memchr(path + len - room, '/', room);
    from = from != NULL ? from + 1 : path + len - room;
    snprintf(out, MFS_HOT_NAME, "%s%.*s", more, (int)(path + len - from), from);
}

static bool is_one_of(const char *op, const char *const *ops)
{
    while (*ops != NULL && strcmp(op, *ops) != 0)
        ops++;
    return *ops != NULL;
}

/* A request is of a file and of the directory that it is in, or of a directory alone. */
static void count_path(struct mfs_hot_sampler *h, const struct mfs_trace_line *l)
{
    static const char *const of_dir[] = {"opendir",    "readdir",  "readdirplus",
                                         "releasedir", "fsyncdir", NULL};
    static const char *const of_parent[] = {"mkdir", "rmdir", NULL};
    const char *slash = strrchr(l->path, '/');
    char name[MFS_HOT_NAME];

    if (l->path[0] == '\0')
        return;
    shorten(l->path, strlen(l->path), name);
    if (is_one_of(l->op, of_dir) || strcmp(name, ".") == 0) {
        count(&h->dir, name, l);
        return;
    }
    if (!is_one_of(l->op, of_parent))
        count(&h->file, name, l);
    if (slash != NULL)
        shorten(l->path, (size_t)(slash - l->path), name);
    count(&h->dir, slash != NULL ? name : ".", l);
}

void mfs_hot_add(struct mfs_hot_sampler *h, const struct mfs_trace_line *l, int64_t now)
{
    bool often = now < atomic_load_explicit(&h->watched, memory_order_relaxed);
    char name[MFS_HOT_NAME];

    atomic_store_explicit(&h->next, now + (often ? OFTEN : SELDOM), memory_order_relaxed);
    snprintf(name, sizeof name, "%s[%u]", l->program[0] != '\0' ? l->program : "-", l->pid);
    pthread_mutex_lock(&h->lock);
    grow_old(h, now);
    h->requests++;
    count_path(h, l);
    count(&h->program, name, l);
    pthread_mutex_unlock(&h->lock);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int by_requests(const void *a, const void *b)
{
    const struct mfs_hot_item *x = a, *y = b;

    if (x->requests > y->requests || x->requests < y->requests)
        return x->requests > y->requests ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Less than half a sample is what was long ago. */
static int take(const struct table *t, uint32_t most, struct mfs_hot_item **to, uint32_t *n)
{
    struct mfs_hot_item *list = calloc(t->n + 1, sizeof *list);

    *to = list;
    *n = 0;
    if (list == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->item[i].requests >= 0.5)
            list[(*n)++] = t->item[i];
    if (*n > 0)
        qsort(list, *n, sizeof *list, by_requests);
    if (*n > most)
        *n = most;
    return 0;
}

int mfs_hot_take(struct mfs_hot_sampler *h, int64_t now, uint32_t most, struct mfs_hot *to)
{
    int rc;

    *to = (struct mfs_hot){0};
    pthread_mutex_lock(&h->lock);
    grow_old(h, now);
    to->requests = h->requests;
    rc = take(&h->file, most, &to->file, &to->nfiles);
    if (rc == 0)
        rc = take(&h->dir, most, &to->dir, &to->ndirs);
    if (rc == 0)
        rc = take(&h->program, most, &to->program, &to->nprograms);
    pthread_mutex_unlock(&h->lock);
    if (rc < 0)
        mfs_schema_clear(&mfs_hot_schema, to);
    return rc;
}

static int put_items(const char *title, const struct mfs_hot_item *item, uint32_t n, double all,
                     struct mfs_buf *to)
{
    int rc = mfs_buf_printf(to, "%8s %10s %10s  %s\n", "share", "mean ms", "mean size", title);

    for (uint32_t i = 0; i < n && rc == 0; i++) {
        rc = mfs_buf_printf(to, "%7.1f%% %10.3f %10s  ", all > 0 ? 100 * item[i].requests / all : 0,
                            item[i].ms / item[i].requests,
                            MFS_TEXT_BYTES((uint64_t)(item[i].bytes / item[i].requests)));
        if (rc == 0)
            rc = mfs_shown_shell(to, item[i].name);
        if (rc == 0)
            rc = mfs_buf_append(to, "\n", 1);
    }
    return rc;
}

int mfs_hot_text(const struct mfs_hot *h, struct mfs_buf *to)
{
    int rc = put_items("file", h->file, h->nfiles, h->requests, to);

    if (rc == 0)
        rc = put_items("directory", h->dir, h->ndirs, h->requests, to);
    return rc < 0 ? rc : put_items("process", h->program, h->nprograms, h->requests, to);
}
