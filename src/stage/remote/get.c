/* Files of servers as sources. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "stage/file.h"
#include "stage/remote/impl.h"

struct remote_file {
    struct mfs_buf url;
    char etag[160], match[180];
    bool ranges;  /* the server knows them */
    bool endless; /* it does not tell how long the file is */
    bool dated;
    int64_t modified; /* s since 1970; 0: the server does not tell */
};

static struct remote_file *remote_of(const struct mfs_stage_file *f)
{
    return f->remote;
}

static struct mfs_stage_http_call get_of(struct mfs_stage_file *f, uint64_t lo, uint64_t hi)
{
    const struct remote_file *r = remote_of(f);
    struct mfs_stage_http_call c =
        mfs_stage_call_of(f->item->dir->stage, "GET", f->item->from, &r->url);

    c.ranged = !r->endless && (lo || hi != (uint64_t)f->st.st_size);
    c.lo = lo;
    c.hi = hi;
    c.resumes = r->ranges;
    if (!c.ranged && !r->endless && r->ranges) /* all of it, which may break off */
        c.ranged = true;
    c.header[0] = r->match[0] ? r->match : NULL;
    return c;
}

/* ---- copying --------------------------------------------------------------------------------- */

struct sink {
    struct mfs_stage_range *range;
    bool endless;
    uint64_t begin, at;
    struct mfs_hash *hash; /* NULL: not wanted */
    int rc;                /* of the target */
};

static int sink(void *arg, const char *p, size_t n)
{
    struct sink *s = arg;

    if (!p) { /* all of it once more */
        mfs_hash_destroy(s->hash);
        s->hash = s->hash ? mfs_hash_create() : NULL;
        s->range->copied -= s->at - s->begin;
        s->at = s->begin;
        if (s->endless &&
            ftruncate(s->range->to, (off_t)s->begin) < 0) { /* it may be shorter now */
            s->rc = -errno;
            return s->rc;
        }
        return s->range->verify && !s->hash ? -ENOMEM : 0;
    }
    if (s->hash)
        mfs_hash_add(s->hash, p, n);
    while (n) {
        ssize_t put = pwrite(s->range->to, p, n, (off_t)s->at);

        if (put < 0 && errno != EINTR) {
            s->rc = -errno;
            return s->rc;
        }
        put = put < 0 ? 0 : put;
        p += put;
        n -= (size_t)put;
        s->at += (uint64_t)put;
        s->range->copied += (uint64_t)put;
    }
    return 0;
}

static int check(struct mfs_stage_file *f, const struct mfs_stage_http_call *c,
                 const struct sink *s, struct mfs_err *err)
{
    const struct remote_file *r = remote_of(f);

    const char *total = strchr(c->range, '/');
    uint64_t n;
    bool other =
        (r->etag[0] && c->etag[0] && strcmp(r->etag, c->etag) != 0) ||
        (!r->etag[0] && r->modified && c->modified && r->modified != c->modified) ||
        (!r->endless && total && !mfs_text_u64(total + 1, &n) && n != (uint64_t)f->st.st_size);

    if (other)
        return mfs_err_set(err, -ESTALE, "changed while it was read: run the same again");
    if (r->endless)
        f->st.st_size = (off_t)s->at;
    return 0;
}

static int copy(struct mfs_stage_file *f, struct mfs_stage_range *range, struct mfs_err *err)
{
    struct sink s = {.range = range,
                     .endless = remote_of(f)->endless,
                     .begin = range->at,
                     .at = range->at,
                     .hash = range->verify ? mfs_hash_create() : NULL};
    struct mfs_stage_http_call c = get_of(f, range->at, range->end);
    int rc = range->verify && !s.hash ? -ENOMEM : 0;

    c.sink = sink;
    c.arg = &s;
    if (!rc && (range->end > range->at || remote_of(f)->endless)) {
        range->reading = true;
        rc = mfs_stage_http(&c, err);
        rc = rc ? rc : check(f, &c, &s, err);
        range->reading = s.rc == 0;
    }
    if (!rc && range->verify && s.at > s.begin) {
        rc = mfs_stage_read_back(range->to, s.begin, s.at, mfs_hash_sum(s.hash));
        range->reading = false;
    }
    if (!rc && range->sum)
        rc = mfs_stage_sum(range->to, 0, (uint64_t)f->st.st_size, range->sum);
    mfs_hash_destroy(s.hash);
    mfs_buf_fini(&c.text);
    return rc;
}

/* Each answer was of what the first one told of. */
static int unchanged(struct mfs_stage_file *f)
{
    (void)f;
    return 0;
}

static int keep(struct mfs_stage_file *f)
{
    const struct timespec times[2] = {f->st.st_mtim, f->st.st_mtim};
    mode_t mode = f->st.st_mode & 07777;

    if ((mode != f->created || f->item->dir->acl) && fchmod(f->to, mode) < 0)
        return -errno;
    return futimens(f->to, times) < 0 ? -errno : 0;
}

static int same(struct mfs_stage_file *f, int there)
{
    struct mfs_stage_http_call c = get_of(f, 0, (uint64_t)f->st.st_size);
    struct mfs_err err;
    int rc;

    if (!f->st.st_size)
        return 1;
    rc = mfs_stage_same_remote(&c, there, (uint64_t)f->st.st_size, &err);
    mfs_buf_fini(&c.text);
    return rc < 0 ? 0 : rc; /* the copy tells what is wrong */
}

static void shut(struct mfs_stage_file *f)
{
    struct remote_file *r = remote_of(f);

    mfs_buf_fini(&r->url);
    free(r);
}

static const struct mfs_stage_source remote = {0, copy, unchanged, keep, same, NULL, shut, false};

/* ---- what the server tells of it ------------------------------------------------------------- */

static int refuse(void *arg, const char *p, size_t n)
{
    (void)arg, (void)p, (void)n;
    return -ECANCELED;
}

/* HEAD; where that is not allowed, a GET that is broken off. */
static int ask(struct mfs_stage_file *f, struct mfs_stage_http_call *c, struct mfs_err *err)
{
    struct mfs_stage *s = f->item->dir->stage;
    const char *slash;
    int rc;

    *c = mfs_stage_call_of(s, "HEAD", f->item->from, &remote_of(f)->url);
    rc = mfs_stage_http(c, err);
    if (!rc || c->key || (c->status != 403 && c->status != 405 && c->status != 501))
        return rc;
    mfs_buf_fini(&c->text);
    *c = mfs_stage_call_of(s, "GET", f->item->from, &remote_of(f)->url);
    c->header[0] = "Range: bytes=0-0";
    c->sink = refuse;
    rc = mfs_stage_http(c, err);
    if (c->status == 206) {
        slash = strchr(c->range, '/');
        c->ranges = true;
        c->has_length = slash && !mfs_text_u64(slash + 1, &c->length);
    }
    return c->status / 100 == 2 ? 0 : rc;
}

/* As HTTP writes a time, whatever the locale. */
static void put_since(struct remote_file *r)
{
    static const char days[] = "SunMonTueWedThuFriSat",
                      months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t t = (time_t)r->modified;
    struct tm tm;

    if (gmtime_r(&t, &tm))
        snprintf(r->match, sizeof r->match,
                 "If-Unmodified-Since: %.3s, %02d %.3s %d %02d:%02d:%02d GMT",
                 days + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900,
                 tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static void learn(struct mfs_stage_file *f, const struct mfs_stage_http_call *c)
{
    const struct mfs_stage *s = f->item->dir->stage;
    struct remote_file *r = remote_of(f);
    /* The owner is not kept: nobody is to run it as this user. */
    uint64_t mode = c->key ? strtoul(c->mode, NULL, 8) & 0777 : 0;

    f->st.st_mode = S_IFREG | (mode ? mode : 0666 & ~s->mask);
    f->st.st_uid = s->self.st_uid;
    f->st.st_gid = f->item->dir->gid;
    f->st.st_nlink = 1;
    f->st.st_size = c->has_length ? (off_t)c->length : 0;
    r->dated = c->modified > 0 || *c->mtime;
    if (!*c->mtime || mfs_stage_mtime_parse(c->mtime, &f->st.st_mtim))
        f->st.st_mtim.tv_sec = c->modified;
    if (!r->dated)
        clock_gettime(CLOCK_REALTIME, &f->st.st_mtim);
    r->endless = !c->has_length;
    r->ranges = c->ranges || c->key;
    r->modified = c->modified > 0 ? c->modified : 0;
    if (c->etag[0] == '"') { /* a weak one says nothing of bytes */
        f->tag = mfs_hash64(c->etag, strlen(c->etag), 0);
        mfs_text_copy(r->etag, sizeof r->etag, c->etag);
        snprintf(r->match, sizeof r->match, "If-Match: %s", r->etag);
    } else if (r->modified) {
        put_since(r);
    } else {
        r->ranges = false; /* nothing tells whether two are of the same file */
    }
    f->whole = r->endless || !r->ranges;
}

static void fail(struct mfs_stage_item *i, int code, const char *why)
{
    if (code != -EINTR)
        mfs_stage_fail(i->dir->stage, i->dir, i->from, false, code, "%s", why);
}

static void run(struct mfs_stage_task *task)
{
    struct mfs_stage_item *i =
        (struct mfs_stage_item *)((char *)task - offsetof(struct mfs_stage_item, task));
    struct mfs_stage *s = i->dir->stage;
    struct mfs_stage_file *f;
    struct remote_file *r;
    struct mfs_stage_http_call c = {0};
    struct mfs_err err = {0};
    int rc;

    if (!mfs_stage_place_take(i))
        return;
    f = calloc(1, sizeof *f);
    r = calloc(1, sizeof *r);
    rc = f && r ? 0 : -ENOMEM;

    if (!rc) {
        mfs_buf_init(&r->url);
        *f = (struct mfs_stage_file){.item = i, .source = &remote, .remote = r, .from = -1};
        rc = mfs_stage_url(s->remote, i->from, "", "", &r->url);
        if (!rc)
            rc = mfs_stage_ends(s) ? -EINTR : ask(f, &c, &err);
        mfs_buf_fini(&c.text);
    }
    if (rc) {
        fail(i, rc,
             rc == -ENOENT && mfs_stage_is_url(i->from) && i->from[0] == 's'
                 ? "there is no such object (a prefix ends with a slash)"
             : err.code ? err.msg
                        : strerror(-rc));
        if (r)
            mfs_buf_fini(&r->url);
        free(r);
        free(f);
        mfs_stage_item_destroy(i);
        return;
    }
    learn(f, &c);
    mfs_stage_tally_expect(s->tally, 1, (uint64_t)f->st.st_size);
    mfs_stage_file_begin(f);
}

void mfs_stage_get(struct mfs_stage_item *i)
{
    i->task.run = run;
    i->task.queue = &i->dir->queue;
    mfs_stage_pool_add(i->dir->stage->pool, &i->task);
}

/* ---- comparing ------------------------------------------------------------------------------- */

struct compare {
    int fd;
    uint64_t at;
    char buf[65536];
};

static int compare(void *arg, const char *p, size_t n)
{
    struct compare *c = arg;

    if (!p)
        c->at = 0;
    while (p && n) {
        size_t some = n < sizeof c->buf ? n : sizeof c->buf;
        ssize_t got = pread(c->fd, c->buf, some, (off_t)c->at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? -errno : -EUCLEAN;
        if (memcmp(p, c->buf, (size_t)got) != 0)
            return -EUCLEAN;
        p += got;
        n -= (size_t)got;
        c->at += (uint64_t)got;
    }
    return 0;
}

int mfs_stage_same_remote(struct mfs_stage_http_call *get, int fd, uint64_t size,
                          struct mfs_err *err)
{
    struct compare *c = malloc(sizeof *c);
    int rc;

    if (!c)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    c->fd = fd;
    c->at = 0;
    get->sink = compare;
    get->arg = c;
    rc = mfs_stage_http(get, err);
    rc = rc == -EUCLEAN ? 0 : rc ? rc : c->at == size;
    free(c);
    return rc;
}
