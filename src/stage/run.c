#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "memefs/memefs.h"
#include "stage/count.h"
#include "stage/impl.h"
#include "stage/remote/remote.h"

#define DEFERRED_WAIT (50 * MFS_MSEC)

/* ---- what the target is ---------------------------------------------------------------------- */

static uint32_t number_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? (uint32_t)strtoul(at + strlen(name), NULL, 10) : 0;
}

/* In a deployment, of how many partitions, and of which stripes? 0: in none. */
static void learn_deployment(struct mfs_stage *s, int fd)
{
    char *text = malloc(MEMEFS_LAYOUT_MAX + 1);
    ssize_t len = text ? fgetxattr(fd, MEMEFS_XATTR_LAYOUT, text, MEMEFS_LAYOUT_MAX) : -1;

    if (len > 0) {
        text[len] = '\0';
        s->stripe_size = number_of(text, "\nstripe_size ");
        s->nparts = s->stripe_size ? number_of(text, "\npartitions ") : 0;
    }
    free(text);
}

uint64_t mfs_stage_call(const struct mfs_stage_list *l)
{
    struct mfs_hash *h = mfs_hash_create();
    char here[PATH_MAX] = "";
    uint64_t sum;

    if (!h)
        return 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const char *from = l->entry[i].from;

        if (*from != '/' && !mfs_stage_is_url(from) && (*here || getcwd(here, sizeof here))) {
            mfs_hash_add(h, here, strlen(here));
            mfs_hash_add(h, "/", 1);
        }
        mfs_hash_add(h, from, strlen(from) + 1);
    }
    sum = mfs_hash_sum(h);
    mfs_hash_destroy(h);
    return sum;
}

/* The target by its number: it has another path on another node, or from another directory. */
static uint64_t id_of(const struct mfs_stage *s, const struct stat *target)
{
    const char *last = s->plan->exact ? s->plan->target : "";
    uint64_t call = s->plan->call ? s->plan->call : mfs_stage_call(s->plan->list);

    last = strrchr(last, '/') ? strrchr(last, '/') + 1 : last;
    return mfs_hash64(last, strlen(last), mfs_hash64(&target->st_ino, sizeof target->st_ino, call));
}

int mfs_stage_target_directory(const struct mfs_stage_plan *plan, char *out, size_t n)
{
    int rc = mfs_file_absolute(plan->target, out, n);
    char *slash;

    if (!rc && plan->exact && (slash = strrchr(out, '/')))
        slash[slash == out] = '\0';
    return rc;
}

/* The directory that the copies come into, as the uppermost one. */
static int open_target(struct mfs_stage *s, struct mfs_stage_dir **top, struct mfs_err *err)
{
    char path[PATH_MAX];
    struct mfs_stage_dir *d;
    struct stat st = {0};
    int rc = mfs_stage_target_directory(s->plan, path, sizeof path);

    if (!rc)
        rc = mfs_file_mkdirs(path, 0777);
    if (rc)
        return mfs_err_set(err, rc, "%s: %s", s->plan->target, strerror(-rc));
    d = *top = mfs_stage_dir_create(s, NULL, "", path);
    if (!d)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    d->to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rc = d->to < 0 || fstat(d->to, &st) < 0 ? -errno : mfs_stage_dir_learn(d);
    if (!rc) {
        s->dev = st.st_dev;
        s->ino = st.st_ino;
        s->target = d->to;
        s->id = id_of(s, &st);
        learn_deployment(s, d->to);
        if (s->nparts)
            mfs_stage_pool_spread(s->pool, s->plan->threads);
        return 0;
    }
    mfs_stage_dir_put(d);
    return mfs_err_set(err, rc, "%s: %s", s->plan->target, strerror(-rc));
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The last name of a path; of a directory's content, ".". NULL: it has none. */
static const char *last_name(const char *path, char name[NAME_MAX + 1])
{
    size_t len = strlen(path);
    const char *last = memrchr(path, '/', len);

    last = last ? last + 1 : path;
    if (!*last || !strcmp(last, "."))
        return ".";
    if (!strcmp(last, "..") || strlen(last) > NAME_MAX)
        return NULL;
    memcpy(name, last, strlen(last) + 1);
    return name;
}

/* One name of the way to a copy; what is not there is made. NULL: told. */
static struct mfs_stage_dir *enter(struct mfs_stage_dir *in, const char *name)
{
    struct mfs_stage *s = in->stage;
    struct mfs_stage_dir *d = mfs_stage_dir_create(s, in, "", name);
    int rc = d ? 0 : -ENOMEM;

    if (!rc && !strcmp(name, ".."))
        rc = -EINVAL;
    if (!rc && mkdirat(in->to, name, 0777 & ~s->mask) < 0 && errno != EEXIST)
        rc = -errno;
    if (!rc) {
        d->to = openat(in->to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        rc = d->to < 0 ? -errno : mfs_stage_dir_learn(d);
    }
    if (!rc)
        return d;
    mfs_stage_fail(s, in, name, true, rc, "%s",
                   rc == -ENOTDIR ? "is there and is no directory: move it out of the way"
                                  : strerror(-rc));
    if (d)
        mfs_stage_dir_put(d);
    return NULL;
}

/* The directory of entries whose names have slashes, kept for the next one, as lists are sorted. */
struct way {
    struct mfs_stage_dir *dir;
    char *path; /* "a/b"; NULL: none */
};

static struct mfs_stage_dir *follow(struct mfs_stage_dir *top, struct way *way, const char *to,
                                    size_t len)
{
    struct mfs_stage_dir *d = top, *next;
    char *path = strndup(to, len), *rest = path, *name;

    mfs_stage_dir_get(top);
    while (d && path && (name = strsep(&rest, "/"))) {
        if (!*name || !strcmp(name, "."))
            continue;
        next = enter(d, name);
        mfs_stage_dir_put(d);
        d = next;
    }
    free(path);
    if (way->dir)
        mfs_stage_dir_put(way->dir);
    free(way->path);
    *way = (struct way){d, strndup(to, len)};
    return d;
}

static void add_entry(struct mfs_stage_dir *top, struct way *way, const struct mfs_stage_entry *e)
{
    struct mfs_stage *s = top->stage;
    struct mfs_stage_dir *d = top;
    struct mfs_stage_item *i;
    char name[NAME_MAX + 1];
    const char *to = e->to ? e->to : last_name(e->from, name), *slash;

    if (!e->to && mfs_stage_is_url(e->from))
        to = mfs_stage_url_name(e->from, name, sizeof name);

    if (!*e->from || !to) {
        mfs_stage_fail(s, top, e->from, false, -EINVAL, "has no name to be copied to: give -T");
        return;
    }
    slash = strrchr(to, '/');
    if (slash) {
        size_t len = (size_t)(slash - to);

        if (!way->dir || !way->path || strncmp(way->path, to, len) != 0 || way->path[len])
            follow(top, way, to, len);
        d = way->dir;
        to = slash + 1;
    }
    if (!d)
        return;
    if (!strcmp(to, "..")) {
        mfs_stage_fail(s, d, e->from, false, -EINVAL, "would be copied out of the target");
        return;
    }
    i = mfs_stage_item_create(d, e->from, *to ? to : ".");
    if (!i)
        return;
    i->has_sum = e->has_sum;
    memcpy(i->sum, e->sum, sizeof i->sum);
    if (mfs_stage_is_url(e->from))
        mfs_stage_get(i);
    else
        mfs_stage_walk_item(i);
}

/* What S3 has below a prefix. */
struct below {
    struct mfs_stage_dir *top;
    struct way *way;
    const char *url, *to;
};

static void add_object(void *arg, const char *key)
{
    const struct below *b = arg;
    char to[PATH_MAX], from[PATH_MAX];
    struct mfs_stage_entry e = {.from = from, .to = to};

    if (mfs_text_format(from, sizeof from, "%s%s", b->url, key) ||
        mfs_text_format(to, sizeof to, "%s%s%s", b->to ? b->to : "", b->to ? "/" : "", key))
        mfs_stage_fail(b->top->stage, b->top, key, false, -ENAMETOOLONG, "%s",
                       strerror(ENAMETOOLONG));
    else if (*key && key[strlen(key) - 1] != '/') /* a mark of a directory */
        add_entry(b->top, b->way, &e);
    mfs_stage_pool_help(b->top->stage->pool);
}

static void add_prefix(struct mfs_stage_dir *top, struct way *way, const struct mfs_stage_entry *e)
{
    bool slash = e->from[strlen(e->from) - 1] == '/';
    char url[PATH_MAX];
    struct below below = {top, way, url, e->to};
    struct mfs_err err = {0};
    int rc = mfs_text_format(url, sizeof url, "%s%s", e->from, slash ? "" : "/");

    rc = rc ? mfs_err_set(&err, rc, "%s", strerror(-rc))
            : mfs_stage_each_object(top->stage, url, add_object, &below, &err);
    if (rc && rc != -EINTR)
        mfs_stage_fail(top->stage, top, e->from, false, rc, "%s", err.msg);
}

static void add_entries(struct mfs_stage *s, struct mfs_stage_dir *top)
{
    const struct mfs_stage_list *l = s->plan->list;
    struct way way = {0};

    for (uint32_t n = 0; n < l->n && !mfs_stage_ends(s); n++) {
        struct mfs_stage_entry e = l->entry[n];
        char name[NAME_MAX + 1];

        if (s->plan->exact)
            e.to = (char *)last_name(s->plan->target, name);
        if (mfs_stage_is_prefix(e.from))
            add_prefix(top, &way, &e);
        else
            add_entry(top, &way, &e);
        mfs_stage_pool_help(s->pool);
    }
    if (way.dir)
        mfs_stage_dir_put(way.dir);
    free(way.path);
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Each directory that is not finished has two descriptors. */
static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static uint64_t longest(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX
                                                                                  : limit.rlim_cur;
}

static int begin(struct mfs_stage *s, struct mfs_err *err)
{
    int rc;

    s->self.st_uid = geteuid();
    s->self.st_gid = getegid();
    s->longest = longest();
    mfs_random(&s->turn, sizeof s->turn); /* without, it begins as others do */
    s->leader = -1;
    pthread_mutex_init(&s->mutex, NULL);
    s->tally = mfs_stage_tally_create(s->plan->progress, s->plan->watch);
    s->links = mfs_stage_links_create();
    s->remains = mfs_stage_remains_create();
    rc = mfs_stage_places_create(&s->places, s->plan->list);
    rc = rc                                   ? rc
         : s->tally && s->links && s->remains ? mfs_stage_pool_create(&s->pool, s->plan->threads)
                                              : -ENOMEM;
    return rc ? mfs_err_set(err, rc, "%s", strerror(-rc)) : 0;
}

static void end(struct mfs_stage *s)
{
    mfs_stage_pool_destroy(s->pool);
    mfs_stage_remote_destroy(s->remote);
    mfs_stage_links_destroy(s->links);
    mfs_stage_remains_destroy(s->remains);
    mfs_stage_places_destroy(s->places);
    mfs_stage_tally_destroy(s->tally);
    pthread_mutex_destroy(&s->mutex);
}

/* What is out of memory is to be on the disk when the call has ended. */
static void settle(const struct mfs_stage *s, struct mfs_stage_dir *top)
{
    if (!s->nparts && syncfs(top->to) < 0)
        mfs_stage_fail(top->stage, top, NULL, true, -errno,
                       "%s: what has been copied may not be on the disk: repeat with --verify",
                       strerror(errno));
}

static void finish_late(struct mfs_stage *s)
{
    struct mfs_stage_dir *d;

    while ((d = s->late)) {
        s->late = d->late;
        mfs_stage_dir_put(d);
    }
}

static int copy_all(struct mfs_stage *s, struct mfs_stage_result *result, struct mfs_err *err)
{
    struct mfs_stage_others others = {0};
    struct mfs_stage_counter *counter;
    struct mfs_stage_dir *top = NULL;
    int rc = open_target(s, &top, err), lock;

    if (rc)
        return rc;
    assert(top);
    s->mask = umask(0);
    lock = mfs_stage_lock(s, top->to, err);
    if (lock < 0) {
        mfs_stage_dir_put(top);
        return lock;
    }
    counter = mfs_stage_count_begin(s);
    add_entries(s, top);
    mfs_stage_pool_wait(s->pool);
    while (mfs_stage_walk_deferred(s)) {
        mfs_stage_pool_wait(s->pool);
        mfs_stage_watch_others(s, &others);
        mfs_clock_sleep(DEFERRED_WAIT);
    }
    mfs_stage_remove_remains(s, top);
    mfs_stage_count_end(counter);
    settle(s, top);
    mfs_stage_unlock(s, top->to, lock);
    finish_late(s);
    mfs_stage_dir_put(top);
    mfs_stage_tally_result(s->tally, result);
    result->full = s->full;
    result->stopped = *s->plan->stop;
    return 0;
}

/* To a server. */
static int put_all(struct mfs_stage *s, struct mfs_stage_result *result, struct mfs_err *err)
{
    struct mfs_stage_dir *top = mfs_stage_dir_create(s, NULL, "", s->plan->target);

    if (!top)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < s->plan->list->n && !mfs_stage_ends(s); i++)
        mfs_stage_send(top, &s->plan->list->entry[i]);
    mfs_stage_tally_expected(s->tally);
    mfs_stage_pool_wait(s->pool);
    mfs_stage_dir_put(top);
    mfs_stage_tally_result(s->tally, result);
    result->full = s->full;
    result->stopped = *s->plan->stop;
    return 0;
}

int mfs_stage_run(const struct mfs_stage_plan *plan, struct mfs_stage_result *result,
                  struct mfs_err *err)
{
    struct mfs_stage s = {.plan = plan};
    int rc;

    raise_limit();
    rc = begin(&s, err);
    if (!rc)
        rc = mfs_stage_remote_create(&s.remote, plan, err);
    if (!rc)
        rc = mfs_stage_is_url(plan->target) ? put_all(&s, result, err) : copy_all(&s, result, err);
    end(&s);
    return rc;
}
