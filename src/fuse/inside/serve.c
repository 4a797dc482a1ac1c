/* The protocol of the files (linux/fuse.h), by hand: a request that is not named here is refused,
 * and no answer of ours says ENOSYS, as the kernel would take that to be of the whole mount. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <linux/fuse.h>
#include <utlist.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/ino.h"
#include "fuse/inside/describe.h"
#include "fuse/inside/inside_impl.h"
#include "fuse/inside/texts.h"
#include "fuse/mount/device.h"

#define OPCODE_STATX 52U /* FUSE_STATX; linux/fuse.h may be older than the kernel */

#define NAME   ".memefs"
#define DIR_NO 1U /* of the directory; file i has DIR_NO + 1 + i */
#define LIFE   1  /* s that the kernel may use names and attributes for */

typedef int text_fn(struct mfs_fuse *m, bool json, struct mfs_buf *to);

/* text NULL: lines as they come. `asks`: to open it may take a while. */
static const struct file {
    const char *name;
    uint32_t mode;
    bool json, asks;
    text_fn *text;
} files[] = {
    {"stats", 0444, false, false, mfs_text_of_stats},
    {"stats.json", 0444, true, false, mfs_text_of_stats},
    {"nodes", 0444, false, false, mfs_text_of_nodes},
    {"nodes.json", 0444, true, false, mfs_text_of_nodes},
    {"clients", 0400, false, true, mfs_text_of_clients},
    {"clients.json", 0400, true, true, mfs_text_of_clients},
    {"events", 0400, false, true, mfs_text_of_events},
    {"events.json", 0400, true, true, mfs_text_of_events},
    {"hot", 0400, false, false, mfs_text_of_hot},
    {"hot.json", 0400, true, false, mfs_text_of_hot},
    {"slow", 0400, false, false, mfs_text_of_slow},
    {"slow.json", 0400, true, false, mfs_text_of_slow},
    {"trace", 0400, false, false, NULL},
    {"trace.json", 0400, true, false, NULL},
};

#define FILES ((unsigned)(sizeof files / sizeof *files))

/* An open file. */
struct mfs_inside_handle {
    struct mfs_stream *stream; /* NULL: `text` is all of it */
    struct mfs_buf text;
    struct mfs_inside_handle *prev, *next;
};

struct request {
    struct mfs_fuse *m;
    struct fuse_in_header in;
    const char *body;
    size_t len; /* of the body */
};

static uint64_t nodeid_of(unsigned number)
{
    return mfs_ino_make(MFS_NODEIDS_INSIDE_HOME, number);
}

/* NULL: the directory. */
static const struct file *file_of(uint64_t nodeid)
{
    uint64_t number = mfs_ino_seq(mfs_nodeids_ino(nodeid));

    return number > DIR_NO && number - DIR_NO - 1 < FILES ? &files[number - DIR_NO - 1] : NULL;
}

void mfs_inside_reply(struct mfs_fuse *m, uint64_t unique, int error, const void *body, size_t n)
{
    struct fuse_out_header out = {.error = error, .unique = unique};
    struct iovec iov[] = {{&out, sizeof out}, {(void *)(uintptr_t)body, n}};

    mfs_device_answer(m, iov, n > 0 ? 2 : 1);
}

static void answer(const struct request *r, int error, const void *body, size_t n)
{
    mfs_inside_reply(r->m, r->in.unique, error, body, n);
}

/* The operation's arguments; zeros where the request is shorter. */
static void arguments(const struct request *r, void *to, size_t n)
{
    memset(to, 0, n);
    memcpy(to, r->body, n < r->len ? n : r->len);
}

/* ---- names and attributes -------------------------------------------------------------------- */

static struct fuse_attr attr_of(const struct mfs_inside *i, uint64_t nodeid)
{
    const struct file *f = file_of(nodeid);
    struct timespec now = mfs_clock_real();
    uint64_t s = (uint64_t)now.tv_sec;
    uint32_t ns = (uint32_t)now.tv_nsec;

    return (struct fuse_attr){.ino = nodeid,
                              .mode = f != NULL ? S_IFREG | f->mode : S_IFDIR | 0555,
                              .nlink = f != NULL ? 1 : 2,
                              .uid = i->uid,
                              .gid = i->gid,
                              .atime = s,
                              .mtime = s,
                              .ctime = s,
                              .atimensec = ns,
                              .mtimensec = ns,
                              .ctimensec = ns,
                              .blksize = 4096};
}

static void answer_entry(const struct request *r, uint64_t nodeid)
{
    struct fuse_entry_out e = {.nodeid = nodeid,
                               .generation = 1,
                               .entry_valid = LIFE,
                               .attr_valid = LIFE,
                               .attr = attr_of(r->m->inside, nodeid)};

    answer(r, 0, &e, sizeof e);
}

static void lookup(const struct request *r)
{
    for (unsigned i = 0; i < FILES; i++)
        if (strncmp(files[i].name, r->body, r->len) == 0) {
            answer_entry(r, nodeid_of(DIR_NO + 1 + i));
            return;
        }
    answer(r, -ENOENT, NULL, 0);
}

static void getattr(const struct request *r)
{
    struct fuse_attr_out a = {.attr_valid = LIFE, .attr = attr_of(r->m->inside, r->in.nodeid)};

    answer(r, 0, &a, sizeof a);
}

/* ---- the directory --------------------------------------------------------------------------- */

static size_t put_dirent(char *to, const char *name, uint64_t ino, uint32_t type, uint64_t off,
                         bool plus)
{
    size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET, len = strlen(name);
    size_t size = FUSE_DIRENT_ALIGN(head + len);
    struct fuse_dirent d = {.ino = ino, .off = off, .namelen = (uint32_t)len, .type = type};

    memset(to, 0, size);
    memcpy(to + head - FUSE_NAME_OFFSET, &d, FUSE_NAME_OFFSET);
    memcpy(to + head, name, len);
    return size;
}

static void readdir(const struct request *r, bool plus)
{
    char buf[8192];
    struct fuse_read_in in;
    size_t used = 0;

    arguments(r, &in, sizeof in);
    for (uint64_t i = in.offset; i < FILES + 2; i++) {
        const char *name = i == 0 ? "." : i == 1 ? ".." : files[i - 2].name;
        uint64_t ino = i == 0   ? nodeid_of(DIR_NO)
                       : i == 1 ? FUSE_ROOT_ID
                                : nodeid_of(DIR_NO - 1 + (unsigned)i);
        char one[512];
        size_t n = put_dirent(one, name, ino, (i < 2 ? S_IFDIR : S_IFREG) >> 12, i + 1, plus);

        if (used + n > in.size || used + n > sizeof buf)
            break;
        memcpy(buf + used, one, n);
        used += n;
    }
    answer(r, 0, buf, used);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_file(const struct request *r, const struct file *f, struct mfs_inside_handle *h)
{
    mfs_buf_init(&h->text);
    if (f->text != NULL)
        return f->text(r->m, f->json, &h->text);
    return mfs_stream_open(r->m->inside, f->json, &h->stream);
}

static void release(struct mfs_fuse *m, struct mfs_inside_handle *h)
{
    if (h == NULL)
        return;
    if (h->stream != NULL)
        mfs_stream_close(m->inside, h->stream);
    mfs_buf_fini(&h->text);
    free(h);
}

static void note(struct mfs_inside *i, struct mfs_inside_handle *h)
{
    pthread_mutex_lock(&i->lock);
    DL_APPEND(i->handles, h);
    pthread_mutex_unlock(&i->lock);
}

static void close_it(struct mfs_fuse *m, struct mfs_inside_handle *h)
{
    pthread_mutex_lock(&m->inside->lock);
    DL_DELETE(m->inside->handles, h);
    pthread_mutex_unlock(&m->inside->lock);
    release(m, h);
}

void mfs_inside_close_all(struct mfs_fuse *m)
{
    while (m->inside->handles != NULL)
        close_it(m, m->inside->handles);
}

static void open_it(const struct request *r)
{
    const struct file *f = file_of(r->in.nodeid);
    struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO | FOPEN_NOFLUSH};
    struct fuse_open_in in;
    struct mfs_inside_handle *h;
    int rc;

    arguments(r, &in, sizeof in);
    if (f == NULL || (in.flags & O_ACCMODE) != O_RDONLY || (in.flags & O_TRUNC)) {
        answer(r, -EACCES, NULL, 0);
        return;
    }
    h = calloc(1, sizeof *h);
    rc = h != NULL ? open_file(r, f, h) : -ENOMEM;
    if (rc < 0) {
        release(r->m, h);
        answer(r, rc, NULL, 0);
        return;
    }
    if (f->text == NULL)
        out.open_flags |= FOPEN_NONSEEKABLE | FOPEN_STREAM;
    note(r->m->inside, h);
    out.fh = (uintptr_t)h;
    answer(r, 0, &out, sizeof out);
}

static void read_it(const struct request *r)
{
    struct fuse_read_in in;
    struct mfs_inside_handle *h;
    size_t len, n;

    arguments(r, &in, sizeof in);
    h = (struct mfs_inside_handle *)(uintptr_t)in.fh; // NOLINT
    if (h->stream != NULL) {
        mfs_stream_read(r->m->inside, h->stream, r->in.unique, in.size, !(in.flags & O_NONBLOCK));
        return;
    }
    pthread_mutex_lock(&r->m->inside->lock); /* it stays until the answer has been given */
    len = mfs_buf_len(&h->text);
    n = in.offset < len ? len - in.offset : 0;
    answer(r, 0, n > 0 ? mfs_buf_data(&h->text) + in.offset : NULL, n < in.size ? n : in.size);
    pthread_mutex_unlock(&r->m->inside->lock);
}

static void release_it(const struct request *r)
{
    struct fuse_release_in in;

    arguments(r, &in, sizeof in);
    close_it(r->m, (struct mfs_inside_handle *)(uintptr_t)in.fh); // NOLINT
    answer(r, 0, NULL, 0);
}

static void listxattr(const struct request *r)
{
    struct fuse_getxattr_in in;
    struct fuse_getxattr_out none = {0};

    arguments(r, &in, sizeof in);
    answer(r, 0, &none, in.size == 0 ? sizeof none : 0);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* False: it is libfuse's. */
static bool serve(const struct request *r)
{
    struct fuse_open_out directory = {0};

    switch (r->in.opcode) {
    case FUSE_FORGET: /* knows no such number, and answers nothing */
    case FUSE_STATFS:
    case FUSE_POLL:    /* is always ready, as all files are */
    case OPCODE_STATX: /* no file has it, which the kernel asks once */
        return false;
    case FUSE_LOOKUP:
        return lookup(r), true;
    case FUSE_GETATTR:
        return getattr(r), true;
    case FUSE_OPENDIR:
        return answer(r, 0, &directory, sizeof directory), true;
    case FUSE_READDIR:
    case FUSE_READDIRPLUS:
        return readdir(r, r->in.opcode == FUSE_READDIRPLUS), true;
    case FUSE_OPEN:
        return open_it(r), true;
    case FUSE_READ:
        return read_it(r), true;
    case FUSE_RELEASE:
        return release_it(r), true;
    case FUSE_RELEASEDIR:
    case FUSE_FLUSH:
    case FUSE_FSYNC:
    case FUSE_FSYNCDIR:
        return answer(r, 0, NULL, 0), true;
    case FUSE_LISTXATTR:
        return listxattr(r), true;
    case FUSE_GETXATTR:
        return answer(r, -ENODATA, NULL, 0), true;
    case FUSE_LSEEK:
        return answer(r, -ESPIPE, NULL, 0), true;
    case FUSE_IOCTL:
        return answer(r, -ENOTTY, NULL, 0), true;
    default:
        return answer(r, -EACCES, NULL, 0), true;
    }
}

bool mfs_inside_names(uint64_t parent, const char *name)
{
    return parent == FUSE_ROOT_ID && name != NULL && strcmp(name, NAME) == 0;
}

/* A request that moves or links has two names, or another inode. */
static bool touches_second(const struct request *r, const char *name)
{
    uint64_t other; /* newdir or oldnodeid */

    if (r->in.opcode != FUSE_RENAME && r->in.opcode != FUSE_RENAME2 && r->in.opcode != FUSE_LINK)
        return false;
    arguments(r, &other, sizeof other);
    if (mfs_nodeids_is_inside(other))
        return true;
    return r->in.opcode != FUSE_LINK && name != NULL &&
           name + strlen(name) + 1 < r->body + r->len &&
           mfs_inside_names(other, name + strlen(name) + 1);
}

/* From outside. */
static bool serve_outside(const struct request *r)
{
    struct mfs_request raw = {
        .opcode = r->in.opcode, .raw = r->body - sizeof r->in, .len = r->len + sizeof r->in};
    const char *name = mfs_describe_name(&raw);

    if (name == NULL)
        return false;
    if (r->in.opcode == FUSE_LOOKUP && mfs_inside_names(r->in.nodeid, name))
        return answer_entry(r, nodeid_of(DIR_NO)), true;
    if (mfs_inside_names(r->in.nodeid, name) || touches_second(r, name))
        return answer(r, -EACCES, NULL, 0), true;
    return false;
}

static bool names_it_alone(const struct request *r)
{
    return r->in.opcode == FUSE_LOOKUP && r->len > 0 && r->body[r->len - 1] == '\0' &&
           mfs_inside_names(r->in.nodeid, r->body);
}

/* What libfuse gets of them is not urgent. */
enum mfs_workers_urgency mfs_inside_urgency(const char *raw, size_t len)
{
    struct request r = {.body = raw + sizeof r.in, .len = len - sizeof r.in};
    const struct file *f;

    if (len < sizeof r.in)
        return MFS_WORKERS_NORMAL;
    memcpy(&r.in, raw, sizeof r.in);
    if (names_it_alone(&r))
        return MFS_WORKERS_AT_ONCE;
    if (!mfs_nodeids_is_inside(r.in.nodeid) || r.in.opcode == FUSE_FORGET ||
        r.in.opcode == FUSE_STATFS)
        return MFS_WORKERS_NORMAL;
    f = file_of(r.in.nodeid);
    return r.in.opcode == FUSE_OPEN && f != NULL && f->asks ? MFS_WORKERS_BRIEF
                                                            : MFS_WORKERS_AT_ONCE;
}

static bool interrupt(const struct request *r)
{
    struct fuse_interrupt_in in;

    arguments(r, &in, sizeof in);
    return mfs_stream_interrupt(r->m->inside, in.unique);
}

bool mfs_inside_serve(struct mfs_fuse *m, const char *raw, size_t len)
{
    struct request r = {.m = m, .body = raw + sizeof r.in, .len = len - sizeof r.in};

    if (len < sizeof r.in)
        return false;
    memcpy(&r.in, raw, sizeof r.in);
    if (r.in.opcode == FUSE_INTERRUPT)
        return interrupt(&r);
    return mfs_nodeids_is_inside(r.in.nodeid) ? serve(&r) : serve_outside(&r);
}
