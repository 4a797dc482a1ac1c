#include "fuse/inside/describe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/fs.h>
#include <linux/fuse.h>

#include "base/clock.h"
#include "base/text.h"
#include "fuse/inside/names.h"
#include "meta/meta.h"
#include "store/store.h"

#define MSEC(ns) ((double)(ns) / (double)MFS_MSEC)

/* ---- the raw request ------------------------------------------------------------------------- */

/* What is `off` bytes behind the header, if `n` bytes are there. */
static const void *behind(const struct mfs_request *r, size_t off, size_t n)
{
    size_t at = sizeof(struct fuse_in_header) + off;

    return r->raw != NULL && at + n <= r->len ? r->raw + at : NULL;
}

/* A name that begins there. */
static const char *name_at(const struct mfs_request *r, size_t off)
{
    const char *name = behind(r, off, 1);

    if (name == NULL || memchr(name, '\0', (size_t)(r->raw + r->len - name)) == NULL)
        return NULL;
    return name;
}

/* How far behind the header; -1: none. */
static int name_offset(uint32_t opcode)
{
    switch (opcode) {
    case FUSE_LOOKUP:
    case FUSE_UNLINK:
    case FUSE_RMDIR:
    case FUSE_SYMLINK:
        return 0;
    case FUSE_MKNOD:
        return (int)sizeof(struct fuse_mknod_in);
    case FUSE_MKDIR:
        return (int)sizeof(struct fuse_mkdir_in);
    case FUSE_LINK:
        return (int)sizeof(struct fuse_link_in);
    case FUSE_CREATE:
        return (int)sizeof(struct fuse_create_in);
    case FUSE_RENAME:
        return (int)sizeof(struct fuse_rename_in);
    case FUSE_RENAME2:
        return (int)sizeof(struct fuse_rename2_in);
    default:
        return -1;
    }
}

const char *mfs_describe_name(const struct mfs_request *r)
{
    int off = name_offset(r->opcode);

    return off < 0 ? NULL : name_at(r, (size_t)off);
}

/* ---- what an answer tells -------------------------------------------------------------------- */

static void learn_rename(struct mfs_names *names, const struct mfs_request *r, const char *name)
{
    struct fuse_rename2_in in = {0};
    const char *new_name = name + strlen(name) + 1;
    /* newdir is the first in both forms */
    size_t size = r->opcode == FUSE_RENAME2 ? sizeof in : sizeof(struct fuse_rename_in);
    const void *form = behind(r, 0, size);

    if (form == NULL ||
        name_at(r, (size_t)(new_name - r->raw) - sizeof(struct fuse_in_header)) == NULL)
        return;
    memcpy(&in, form, size);
    mfs_names_renamed(names, r->nodeid, name, in.newdir, new_name, in.flags & RENAME_EXCHANGE);
}

void mfs_describe_learn(struct mfs_names *names, const struct mfs_request *r,
                        const struct iovec *answer, int n)
{
    const char *name = mfs_describe_name(r);
    const struct fuse_out_header *out = n > 0 ? answer[0].iov_base : NULL;
    struct fuse_entry_out e;

    if (name == NULL || out == NULL || out->error != 0)
        return;
    if (r->opcode == FUSE_RENAME || r->opcode == FUSE_RENAME2)
        learn_rename(names, r, name);
    if (n < 2 || answer[1].iov_len < sizeof e)
        return;
    memcpy(&e, answer[1].iov_base, sizeof e);
    if (e.nodeid != 0)
        mfs_names_learn(names, e.nodeid, r->nodeid, name);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void put_times(const struct mfs_phases *p, struct mfs_trace_line *l)
{
    for (unsigned i = 0; i < MFS_PHASES; i++)
        l->phase_ms[i] = MSEC(atomic_load_explicit(&p->ns[i], memory_order_relaxed));
}

static void put_phases(struct mfs_fuse *m, const struct mfs_phases *p, struct mfs_trace_line *l)
{
    struct mfs_store *store = mfs_vfs_store(m->vfs);

    put_times(p, l);
    l->trips = p->trips;
    l->nplaces = p->nplaces;
    for (unsigned i = 0; i < p->nplaces; i++)
        l->place[i] = (struct mfs_trace_place){.node = mfs_store_node_of(store, p->place[i].part),
                                               .partition = p->place[i].part,
                                               .trips = p->place[i].trips,
                                               .ms = MSEC(p->place[i].ns),
                                               .least_ms = MSEC(p->place[i].least)};
    if (p->full > 0)
        l->full = mfs_store_node_of(store, p->full - 1) + 1;
}

static void put_error(int error, struct mfs_trace_line *l)
{
    const char *name = strerrorname_np(-error);

    if (error != 0)
        snprintf(l->error, sizeof l->error, "%s", name != NULL ? name : "other");
}

static void put_holder(struct mfs_fuse *m, const struct mfs_request *r, struct mfs_described *d)
{
    struct mfs_lock_holder h;

    if (r->waiter == NULL)
        return;
    h = mfs_lock_waiter_holder(r->waiter);
    d->holder = d->line.holder_pid = h.pid;
    d->line.holder_elsewhere =
        h.session != 0 && h.session != mfs_meta_session(mfs_vfs_meta(m->vfs));
}

static void put_request(struct mfs_fuse *m, const struct mfs_request *r, int64_t now,
                        struct mfs_described *d)
{
    struct timespec real = mfs_clock_real();
    const char *name = mfs_describe_name(r);

    memset(d, 0, sizeof *d);
    d->nodeid = r->nodeid;
    d->tid = r->pid;
    snprintf(d->name, sizeof d->name, "%s", name != NULL ? name : "");
    d->line.time = (double)real.tv_sec + (double)real.tv_nsec / 1e9 - MSEC(now - r->since) / 1e3;
    snprintf(d->line.op, sizeof d->line.op, "%s", mfs_request_name(r->op));
    d->line.pid = r->pid;
    d->line.uid = r->uid;
    d->line.ms = MSEC(now - r->since);
    mfs_request_extent(r, &d->line.offset, &d->line.bytes);
    put_holder(m, r, d);
}

void mfs_describe(struct mfs_fuse *m, const struct mfs_request *r, int64_t now, int error,
                  const struct iovec *answer, int n, struct mfs_described *d)
{
    put_request(m, r, now, d);
    put_phases(m, &r->phases, &d->line);
    put_error(error, &d->line);
    if (error != 0)
        d->line.bytes = 0;
    if (error == 0 && r->opcode == FUSE_READ && n > 0) {
        d->line.bytes = 0;
        for (int i = 1; i < n; i++)
            d->line.bytes += answer[i].iov_len;
    }
}

/* Of its phases only what is atomic may be looked at. The waits that are over first: one that ends
 * meanwhile is missed rather than told twice. */
void mfs_describe_open(struct mfs_fuse *m, const struct mfs_request *r, int64_t now,
                       struct mfs_described *d)
{
    const struct mfs_phases *p = &r->phases;
    struct mfs_trace_line *l = &d->line;

    put_request(m, r, now, d);
    l->open = true;
    put_times(p, l);
    l->waits = atomic_load_explicit(&p->waits, memory_order_relaxed);
    if (l->waits == 0)
        return;
    l->waits_ms = MSEC(now - atomic_load_explicit(&p->since, memory_order_relaxed));
    if (l->waits - 1 <= MFS_PHASE_MOVE) {
        l->waits_partition = atomic_load_explicit(&p->part, memory_order_relaxed);
        l->waits_node = mfs_store_node_of(mfs_vfs_store(m->vfs), l->waits_partition);
    }
}

void mfs_describe_names(struct mfs_names *names, struct mfs_described *d)
{
    struct mfs_trace_line *l = &d->line;

    mfs_names_path(names, d->nodeid, d->name[0] != '\0' ? d->name : NULL, d->tid, l->path,
                   sizeof l->path);
    mfs_names_program(names, d->tid, &l->pid, l->program, sizeof l->program);
    if (d->holder != 0 && !l->holder_elsewhere)
        mfs_names_program(names, d->holder, &l->holder_pid, l->holder, sizeof l->holder);
}
