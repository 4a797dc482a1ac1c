/* A file to a server; a large one to S3 in parts at a time. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/text.h"
#include "stage/content.h"
#include "stage/remote/impl.h"

#define PART       ((uint64_t)16 << 20)
#define PARTS_MOST 9999 /* of S3's 10,000 */
#define ETAG_MAX   160

struct put {
    struct mfs_stage_task task;
    struct mfs_stage_dir *dir; /* a use */
    char *name, *to;           /* in the directory; below the target, "": is the target */
    int fd;
    struct stat st;
    char mtime[64], mode[48];

    uint64_t part; /* bytes of each; what follows is of one in parts */
    uint32_t nparts;
    char upload[1200]; /* the id, encoded */
    char (*etag)[ETAG_MAX];
    atomic_uint left;
    atomic_int rc; /* of the first that failed, which has told it */
};

struct part {
    struct mfs_stage_task task;
    struct put *put;
    uint32_t n; /* from 1 on */
};

static void put_destroy(struct put *p)
{
    if (p->fd >= 0)
        close(p->fd);
    mfs_stage_dir_put(p->dir);
    free(p->etag);
    free(p->name);
    free(p->to);
    free(p);
}

static void tell(const struct put *p, int code, const char *why)
{
    if (code != -EINTR)
        mfs_stage_fail(p->dir->stage, p->dir, p->name, false, code, "%s", why);
}

static bool is_s3(const struct put *p)
{
    return p->dir->stage->remote->has_key;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call about the file's place. The URL is to be ended as well as the call's text. */
static int begin_call(const struct put *p, const char *method, const char *query,
                      struct mfs_buf *url, struct mfs_stage_http_call *c)
{
    const struct mfs_stage *s = p->dir->stage;
    int rc;

    mfs_buf_init(url);
    rc = mfs_stage_url(s->remote, s->plan->target, p->to, query, url);
    *c = mfs_stage_call_of(s, method, s->plan->target, url);
    return rc;
}

#define SUM "x-amz-content-sha256: "

static int sum_of_text(const char *text, char header[100])
{
    unsigned char sum[MFS_STAGE_SUM];
    int rc = EVP_Digest(text, strlen(text), sum, NULL, EVP_sha256(), NULL) == 1 ? 0 : -EIO;

    memcpy(header, SUM, sizeof SUM);
    mfs_text_hex(sum, sizeof sum, header + sizeof SUM - 1);
    return rc;
}

static int sum_of(const struct put *p, uint64_t at, uint64_t len, char header[100])
{
    unsigned char sum[MFS_STAGE_SUM];
    int rc = mfs_stage_sum(p->fd, at, at + len, sum);

    memcpy(header, SUM, sizeof SUM);
    mfs_text_hex(sum, sizeof sum, header + sizeof SUM - 1);
    return rc;
}

/* Sends [at, at + len). The server compares its sum where it is S3's. */
static int send_range(const struct put *p, const char *query, uint64_t at, uint64_t len,
                      char etag[ETAG_MAX], struct mfs_err *err)
{
    struct mfs_stage_http_call c;
    struct mfs_buf url;
    char sum[100];
    int rc = begin_call(p, "PUT", query, &url, &c);

    c.body = p->fd;
    c.body_at = at;
    c.body_len = len;
    c.header[0] = "Content-Type: application/octet-stream";
    if (is_s3(p)) {
        rc = rc ? rc : sum_of(p, at, len, sum);
        c.header[1] = sum;
        c.header[2] = *query ? NULL : p->mtime;
        c.header[3] = *query ? NULL : p->mode;
    }
    rc = rc ? mfs_err_set(err, rc, "%s", strerror(-rc)) : mfs_stage_http(&c, err);
    if (etag)
        mfs_text_copy(etag, ETAG_MAX, c.etag);
    mfs_buf_fini(&c.text);
    mfs_buf_fini(&url);
    return rc;
}

/* Has the server got it, by size and time? */
static bool is_there(const struct put *p)
{
    struct mfs_stage_http_call c;
    struct mfs_buf url;
    struct mfs_err err;
    struct timespec t;
    bool there;

    there = !begin_call(p, "HEAD", "", &url, &c) && !mfs_stage_http(&c, &err) && c.has_length &&
            c.length == (uint64_t)p->st.st_size;
    if (there && is_s3(p))
        there = !mfs_stage_mtime_parse(c.mtime, &t) && t.tv_sec == p->st.st_mtim.tv_sec &&
                t.tv_nsec == p->st.st_mtim.tv_nsec;
    else if (there)
        there = c.modified > p->st.st_mtim.tv_sec;
    mfs_buf_fini(&c.text);
    mfs_buf_fini(&url);
    return there;
}

static int has_content(const struct put *p, struct mfs_err *err)
{
    struct mfs_stage_http_call c;
    struct mfs_buf url;
    int rc = begin_call(p, "GET", "", &url, &c);

    rc = rc ? rc : mfs_stage_same_remote(&c, p->fd, (uint64_t)p->st.st_size, err);
    mfs_buf_fini(&c.text);
    mfs_buf_fini(&url);
    return rc;
}

/* ---- the end of a file ----------------------------------------------------------------------- */

static int unchanged(const struct put *p, struct mfs_err *err)
{
    struct stat st;

    if (fstat(p->fd, &st) < 0)
        return mfs_err_set(err, -errno, "%s", strerror(errno));
    if (st.st_size != p->st.st_size || st.st_mtim.tv_sec != p->st.st_mtim.tv_sec ||
        st.st_mtim.tv_nsec != p->st.st_mtim.tv_nsec)
        return mfs_err_set(err, -ESTALE, "changed while it was read: run the same again");
    return 0;
}

static int settle(const struct put *p, struct mfs_err *err)
{
    int rc = unchanged(p, err);

    if (rc)
        return rc;
    if (!p->dir->stage->plan->verify)
        return 0;
    rc = has_content(p, err);
    return rc == 1 ? 0
           : rc    ? rc
                   : mfs_err_set(err, -EUCLEAN, "what was read back is not what was sent");
}

static void conclude(struct put *p, int rc, struct mfs_err *err)
{
    struct mfs_stage *s = p->dir->stage;

    if (!rc)
        rc = settle(p, err);
    if (rc)
        tell(p, rc, err->msg);
    else
        mfs_stage_tally_add(s->tally, MFS_STAGE_FILES, 1);
    put_destroy(p);
}

/* ---- in parts -------------------------------------------------------------------------------- */

static int post(const struct put *p, const char *query, const char *text, bool meta,
                struct mfs_buf *answer, struct mfs_err *err)
{
    struct mfs_stage_http_call c;
    struct mfs_buf url;
    char sum[100];
    int rc = begin_call(p, "POST", query, &url, &c);

    rc = rc ? rc : sum_of_text(text, sum);
    c.post = text;
    c.header[3] = sum;
    c.header[0] = "Content-Type: application/xml";
    c.header[1] = meta ? p->mtime : NULL;
    c.header[2] = meta ? p->mode : NULL;
    rc = rc ? mfs_err_set(err, rc, "%s", strerror(-rc)) : mfs_stage_http(&c, err);
    *answer = c.text;
    mfs_buf_fini(&url);
    return rc;
}

/* What stands between <UploadId> and its end. */
static int take_upload(struct put *p, const struct mfs_buf *answer, struct mfs_err *err)
{
    const char *text = mfs_buf_len(answer) ? mfs_buf_data(answer) : "";
    const char *id = memmem(text, mfs_buf_len(answer), "<UploadId>", 10), *end;
    struct mfs_buf name;
    char *copy;
    int rc = -EPROTO;

    end = id ? memchr(id + 10, '<', mfs_buf_len(answer) - (size_t)(id + 10 - text)) : NULL;
    if (!end)
        return mfs_err_set(err, -EPROTO, "what answers is not S3");
    mfs_buf_init(&name);
    copy = strndup(id + 10, (size_t)(end - id - 10));
    if (copy && !mfs_stage_encode(&name, copy, false) && !mfs_buf_append(&name, "", 1))
        rc = mfs_text_copy(p->upload, sizeof p->upload, mfs_buf_data(&name));
    free(copy);
    mfs_buf_fini(&name);
    return rc ? mfs_err_set(err, rc, "what answers is not S3") : 0;
}

static void give_up(const struct put *p)
{
    struct mfs_stage_http_call c;
    char query[1300];
    struct mfs_buf url;
    struct mfs_err err;

    snprintf(query, sizeof query, "uploadId=%s", p->upload);
    if (!begin_call(p, "DELETE", query, &url, &c)) {
        c.stop = NULL; /* also when the run is told to end: what is left there costs money */
        mfs_stage_http(&c, &err);
    }
    mfs_buf_fini(&c.text);
    mfs_buf_fini(&url);
}

static int complete(struct put *p, struct mfs_err *err)
{
    struct mfs_buf text, answer = {0};
    char query[1300];
    int rc;

    mfs_buf_init(&text);
    mfs_buf_init(&answer);
    rc = mfs_buf_printf(&text, "<CompleteMultipartUpload>");
    for (uint32_t n = 1; !rc && n <= p->nparts; n++)
        rc = mfs_buf_printf(&text,
                            "<Part><PartNumber>%" PRIu32 "</PartNumber><ETag>%s</ETag></Part>", n,
                            p->etag[n - 1]);
    rc = rc ? rc : mfs_buf_printf(&text, "</CompleteMultipartUpload>");
    rc = rc ? rc : mfs_buf_append(&text, "", 1);
    snprintf(query, sizeof query, "uploadId=%s", p->upload);
    rc = rc ? mfs_err_set(err, rc, "out of memory")
            : post(p, query, mfs_buf_data(&text), false, &answer, err);
    /* It may have begun its answer with 200 before it failed. */
    if (!rc && mfs_buf_len(&answer) &&
        memmem(mfs_buf_data(&answer), mfs_buf_len(&answer), "<Error>", 7))
        rc = mfs_err_set(err, -EIO, "S3 could not put the parts together: run the same again");
    mfs_buf_fini(&answer);
    mfs_buf_fini(&text);
    return rc;
}

static void parts_end(struct put *p)
{
    struct mfs_err err = {0};
    int rc = p->rc;

    if (!rc) {
        rc = unchanged(p, &err); /* what is torn is not to replace what is whole */
        rc = rc ? rc : complete(p, &err);
        if (rc)
            tell(p, rc, err.msg);
    }
    if (!rc) {
        conclude(p, 0, &err);
        return;
    }
    give_up(p);
    put_destroy(p);
}

static void run_part(struct mfs_stage_task *task)
{
    struct part *part = (struct part *)task;
    struct put *p = part->put;
    struct mfs_stage *s = p->dir->stage;
    uint64_t at = (part->n - 1) * p->part, left = (uint64_t)p->st.st_size - at,
             len = left < p->part ? left : p->part;
    struct mfs_err err = {0};
    char query[1300];
    int rc = p->rc, none = 0;

    if (!rc && mfs_stage_ends(s))
        p->rc = rc = -EINTR;
    if (!rc) {
        snprintf(query, sizeof query, "partNumber=%" PRIu32 "&uploadId=%s", part->n, p->upload);
        rc = send_range(p, query, at, len, p->etag[part->n - 1], &err);
        if (!rc)
            mfs_stage_tally_add(s->tally, MFS_STAGE_BYTES, len);
        else if (atomic_compare_exchange_strong(&p->rc, &none, rc))
            tell(p, rc, err.msg);
    }
    free(part);
    if (--p->left == 0)
        parts_end(p);
}

static int begin_parts(struct put *p, struct mfs_err *err)
{
    uint64_t size = (uint64_t)p->st.st_size;
    struct mfs_buf answer;
    int rc;

    p->part = PART;
    while ((size + p->part - 1) / p->part > PARTS_MOST)
        p->part *= 2;
    p->nparts = (uint32_t)((size + p->part - 1) / p->part);
    p->etag = calloc(p->nparts, sizeof *p->etag);
    if (!p->etag)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    rc = post(p, "uploads=", "", true, &answer, err);
    rc = rc ? rc : take_upload(p, &answer, err);
    mfs_buf_fini(&answer);
    return rc;
}

static void add_parts(struct put *p)
{
    p->left = 1;
    for (uint32_t n = 1; n <= p->nparts; n++) {
        struct part *part = malloc(sizeof *part);

        if (!part) {
            p->rc = -ENOMEM;
            tell(p, -ENOMEM, "out of memory");
            break;
        }
        *part = (struct part){.task = {.run = run_part}, .put = p, .n = n};
        p->left++;
        mfs_stage_pool_add(p->dir->stage->pool, &part->task);
    }
    if (--p->left == 0)
        parts_end(p);
}

/* ---- a file ---------------------------------------------------------------------------------- */

static bool skips(struct put *p)
{
    struct mfs_stage_tally *t = p->dir->stage->tally;
    struct mfs_err err;

    if (!is_there(p) || (p->dir->stage->plan->verify && has_content(p, &err) != 1))
        return false;
    mfs_stage_is_no_reading(p->fd);
    mfs_stage_tally_add(t, MFS_STAGE_SKIPPED, 1);
    mfs_stage_tally_add(t, MFS_STAGE_SKIPPED_BYTES, (uint64_t)p->st.st_size);
    return true;
}

static void run(struct mfs_stage_task *task)
{
    struct put *p = (struct put *)task;
    struct mfs_stage *s = p->dir->stage;
    struct mfs_err err = {0};
    int rc = 0;

    if (mfs_stage_ends(s)) {
        put_destroy(p);
        return;
    }
    p->fd = openat(p->dir->from, p->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (p->fd < 0 || fstat(p->fd, &p->st) < 0) {
        tell(p, -errno, strerror(errno));
        put_destroy(p);
        return;
    }
    if (!S_ISREG(p->st.st_mode)) {
        tell(p, -ESTALE, "changed while it was read: run the same again");
        put_destroy(p);
        return;
    }
    snprintf(p->mtime, sizeof p->mtime, "x-amz-meta-mtime: %lld.%09ld",
             (long long)p->st.st_mtim.tv_sec, p->st.st_mtim.tv_nsec);
    snprintf(p->mode, sizeof p->mode, "x-amz-meta-mode: %o", (unsigned)p->st.st_mode);
    if (skips(p)) {
        put_destroy(p);
    } else if (is_s3(p) && (uint64_t)p->st.st_size > PART) {
        rc = begin_parts(p, &err);
        if (rc)
            conclude(p, rc, &err);
        else
            add_parts(p);
    } else {
        rc = send_range(p, "", 0, (uint64_t)p->st.st_size, NULL, &err);
        if (!rc)
            mfs_stage_tally_add(s->tally, MFS_STAGE_BYTES, (uint64_t)p->st.st_size);
        conclude(p, rc, &err);
    }
}

void mfs_stage_put_file(struct mfs_stage_dir *d, const char *name, const char *to, uint64_t size)
{
    struct mfs_stage *s = d->stage;
    struct put *p = calloc(1, sizeof *p);

    if (!p) {
        mfs_stage_fail(s, d, name, false, -ENOMEM, "out of memory");
        return;
    }
    *p = (struct put){
        .task = {.run = run}, .dir = d, .name = strdup(name), .to = strdup(to), .fd = -1};
    mfs_stage_dir_get(d);
    if (!p->name || !p->to) {
        mfs_stage_fail(s, d, name, false, -ENOMEM, "out of memory");
        put_destroy(p);
        return;
    }
    mfs_stage_tally_expect(s->tally, 1, size);
    mfs_stage_pool_add(s->pool, &p->task);
    mfs_stage_pool_help(s->pool);
}
