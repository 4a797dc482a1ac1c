/* Contents: files that one process writes, rewrites in part, lengthens, cuts and removes, and reads
 * through every mount. A block of a file says whose and which version it is, so that what is read
 * is known whatever it is.
 *
 * A file is *sure* (what is there was acknowledged, by close) or not: a call failed, and until it
 * was read, each block may be as before or as in one of the tries. A file that was being changed
 * when its client died is left alone for as long as other mounts may show it as it was. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soak.h"

#define FILES  40U
#define BLOCKS 1000U /* of a file at most: four stripes */
#define TRIES  6U    /* states that an unsure file may be in */

/* Version 0 of a block is zeros. */
struct state {
    bool there;
    uint64_t size;
    uint32_t version[BLOCKS];
};

struct file {
    unsigned number;
    uint64_t ino;        /* when it was seen last; 0: it was not */
    uint32_t last;       /* version */
    int64_t stale_until; /* 0: all that changed it have told the others */
    unsigned states;
    struct state state[TRIES]; /* one: it is sure */
};

struct files {
    struct soak_worker *w;
    struct file file[FILES];
};

static uint64_t identity(const struct soak_worker *w, const struct file *f)
{
    return soak_mix(w->s->seed ^ ((uint64_t)w->id << 32 | f->number));
}

static uint64_t blocks_of(uint64_t size)
{
    return (size + SOAK_BLOCK - 1) / SOAK_BLOCK;
}

/* --- a block --------------------------------------------------------------------------------- */

static uint64_t word(uint64_t id, uint64_t block, uint32_t version, size_t at)
{
    return at == 0   ? id
           : at == 1 ? block << 32 | version
                     : soak_mix(id + (block << 32 | version) + at * 0x9e3779b97f4a7c15ULL);
}

static void block_fill(unsigned char *p, uint64_t id, uint64_t block, uint32_t version)
{
    for (size_t i = 0; i < SOAK_BLOCK / 8; i++) {
        uint64_t x = version ? word(id, block, version, i) : 0;

        memcpy(p + 8 * i, &x, 8);
    }
}

/* The version of a block of n bytes, a multiple of 16; -1 when it is none of this file's. */
static int64_t block_version(const unsigned char *p, size_t n, uint64_t id, uint64_t block)
{
    uint64_t second;
    uint32_t version;

    memcpy(&second, p + 8, 8);
    version = (uint32_t)second;
    for (size_t i = 0; i < n / 8; i++) {
        uint64_t want = version ? word(id, block, version, i) : 0;

        if (memcmp(p + 8 * i, &want, 8) != 0)
            return -1;
    }
    return version;
}

/* --- what may be there ----------------------------------------------------------------------- */

static bool may_be_there(const struct file *f, bool there)
{
    for (unsigned i = 0; i < f->states; i++)
        if (f->state[i].there == there)
            return true;
    return false;
}

/* Of a file of which a try was cut short, each length up to the longest may be seen. */
static bool may_have_size(const struct file *f, uint64_t size)
{
    uint64_t most = 0;

    if (f->states == 1)
        return f->state[0].size == size;
    for (unsigned i = 0; i < f->states; i++)
        if (f->state[i].size > most)
            most = f->state[i].size;
    return size <= most;
}

static bool may_have_block(const struct file *f, uint64_t block, int64_t version)
{
    for (unsigned i = 0; i < f->states; i++) {
        const struct state *s = &f->state[i];
        bool in = s->there && block < blocks_of(s->size);

        if ((in && s->version[block] == version) || (f->states > 1 && version == 0))
            return true;
    }
    return false;
}

static int judge_content(struct soak_worker *w, const struct file *f, const char *path, size_t n,
                         struct state *seen)
{
    uint64_t id = identity(w, f);

    *seen = (struct state){.there = true, .size = n};
    if (!may_have_size(f, n) || n % 16) {
        soak_wrong_file(w->s, path, f->ino, "%zu bytes, not %llu (%s)", n,
                        (unsigned long long)f->state[0].size, f->states > 1 ? "or others" : "sure");
        return 1;
    }
    for (uint64_t b = 0; b < blocks_of(n); b++) {
        size_t len = n - b * SOAK_BLOCK < SOAK_BLOCK ? n - b * SOAK_BLOCK : SOAK_BLOCK;
        const unsigned char *p = w->buf + b * SOAK_BLOCK;
        int64_t version = block_version(p, len, id, b);

        if (!may_have_block(f, b, version)) {
            uint64_t has[2];

            memcpy(has, p, sizeof has);
            soak_wrong_file(w->s, path, f->ino,
                            "block %llu is of version %lld, not %u (%s): %016llx %016llx",
                            (unsigned long long)b, (long long)version, f->state[0].version[b],
                            f->states > 1 ? "or others" : "sure", (unsigned long long)has[0],
                            (unsigned long long)has[1]);
            return 1;
        }
        seen->version[b] = (uint32_t)version;
    }
    return 0;
}

/* Reads the file by that mount: what is seen must be allowed, and is sure from then on. 0, or a
 * negative errno when nothing can be seen. */
static int look(struct soak_worker *w, struct file *f, unsigned mount, int flags)
{
    static struct state seen;
    char path[SOAK_PATH];
    struct stat st;
    ssize_t n;
    int fd, rc;

    soak_path(w, mount, path, "files%u/%u", w->id, f->number);
    fd = soak_open(w, path, O_RDONLY | flags);
    if (fd == -ENOENT) {
        rc = soak_stat(w, mount, path, &st);
        if (rc != -ENOENT)
            return rc < 0 ? rc : -EAGAIN;
        if (!may_be_there(f, false))
            soak_wrong_file(w->s, path, f->ino, "is not there");
        seen = (struct state){0};
    } else if (fd < 0) {
        return fd;
    } else {
        f->ino = soak_ino(fd);
        n = soak_read(w, fd, w->buf, SOAK_BUF, 0, path);
        soak_close(w, fd, path);
        if (n < 0)
            return (int)n;
        if (!may_be_there(f, true)) {
            soak_wrong_file(w->s, path, f->ino, "%zd bytes, should not be there", n);
            seen = (struct state){.there = true, .size = (uint64_t)n};
        } else if (judge_content(w, f, path, (size_t)n, &seen)) {
            f->states = 1; /* has been told; the next look is for the next change */
            return 0;
        }
    }
    atomic_fetch_add(&w->s->verified, 1);
    f->state[0] = seen;
    f->states = 1;
    return 0;
}

/* --- changes --------------------------------------------------------------------------------- */

/* Blocks begin … end of the state, as one write per MiB. */
static int put_blocks(struct soak_worker *w, const struct file *f, const struct state *s, int fd,
                      uint64_t begin, uint64_t end, const char *path)
{
    uint64_t id = identity(w, f);
    int rc = 0;

    for (uint64_t b = begin; rc == 0 && b < end;) {
        uint64_t n = 0, off = b * SOAK_BLOCK, len;

        for (; n < 256 && b < end; n++, b++)
            block_fill(w->buf + n * SOAK_BLOCK, id, b, s->version[b]);
        len = n * SOAK_BLOCK;
        rc = soak_write(w, fd, w->buf, s->size - off < len ? s->size - off : len, off, path);
    }
    return rc;
}

static int write_blocks(struct soak_worker *w, struct file *f, const struct state *s, int flags,
                        uint64_t begin, uint64_t end)
{
    char path[SOAK_PATH];
    int fd, rc, closed;

    soak_path(w, w->mount, path, "files%u/%u", w->id, f->number);
    fd = soak_open(w, path, O_WRONLY | flags);
    if (fd < 0)
        return fd;
    f->ino = soak_ino(fd);
    rc = put_blocks(w, f, s, fd, begin, end, path);
    if (rc == 0 && soak_rnd(w, 3) == 0)
        rc = soak_fsync(w, fd, path);
    closed = soak_close(w, fd, path);
    return rc ? rc : closed;
}

static uint64_t some_size(struct soak_worker *w)
{
    uint64_t blocks = soak_rnd(w, 4) ? 1 + soak_rnd(w, 16) : 1 + soak_rnd(w, BLOCKS);

    return blocks * SOAK_BLOCK - 16 * soak_rnd(w, SOAK_BLOCK / 16);
}

static int whole(struct soak_worker *w, struct file *f, struct state *next)
{
    *next = (struct state){.there = true, .size = some_size(w)};
    for (uint64_t b = 0; b < blocks_of(next->size); b++)
        next->version[b] = f->last;
    return write_blocks(w, f, next, O_CREAT | O_TRUNC, 0, blocks_of(next->size));
}

/* A range of blocks, which may lengthen the file; a hole before it is zeros. */
static int part(struct soak_worker *w, struct file *f, struct state *next)
{
    uint64_t had = blocks_of(next->size), begin = soak_rnd(w, had + 1), end;

    end = begin + 1 + soak_rnd(w, 40);
    if (end > BLOCKS)
        end = BLOCKS;
    if (begin >= end)
        return 0;
    if (end >= had) {
        if (begin == had && next->size % SOAK_BLOCK)
            begin--; /* the last block was not a whole one */
        next->size = end * SOAK_BLOCK;
        if (end > had) /* else a write would leave what is behind its end */
            next->size -= 16 * soak_rnd(w, SOAK_BLOCK / 16);
    }
    for (uint64_t b = begin; b < end; b++)
        next->version[b] = f->last;
    return write_blocks(w, f, next, 0, begin, end);
}

static int cut(struct soak_worker *w, struct file *f, struct state *next)
{
    uint64_t had = blocks_of(next->size), now = soak_rnd(w, had + 8);
    char path[SOAK_PATH];

    if (now > BLOCKS || next->size % SOAK_BLOCK)
        now = soak_rnd(w, had); /* its last block keeps its length */
    for (uint64_t b = now < had ? now : had; b < BLOCKS; b++)
        next->version[b] = 0;
    next->size = now * SOAK_BLOCK;
    return soak_truncate(w, soak_path(w, w->mount, path, "files%u/%u", w->id, f->number),
                         next->size);
}

/* What has no name any more is there until it is closed. */
static int removed(struct soak_worker *w, struct file *f, struct state *next)
{
    char path[SOAK_PATH];
    static struct state seen;
    int fd = -1, rc;
    ssize_t n;

    soak_path(w, w->mount, path, "files%u/%u", w->id, f->number);
    if (f->states == 1 && soak_rnd(w, 4) == 0)
        fd = soak_open(w, path, O_RDONLY);
    next->there = false;
    rc = soak_unlink(w, path);
    if (fd >= 0) {
        f->ino = soak_ino(fd);
        n = rc ? rc : soak_read(w, fd, w->buf, SOAK_BUF, 0, path);
        if (n >= 0)
            judge_content(w, f, path, (size_t)n, &seen);
        soak_close(w, fd, path);
    }
    return rc;
}

static void change(struct soak_worker *w, struct file *f)
{
    static struct state next;
    int rc;

    next = f->state[0];
    f->last++;
    if (f->states > 1 || !next.there || soak_rnd(w, 3) == 0)
        rc = f->states > 1 && soak_rnd(w, 3) == 0 ? removed(w, f, &next) : whole(w, f, &next);
    else if (soak_rnd(w, 5) == 0)
        rc = removed(w, f, &next);
    else
        rc = soak_rnd(w, 4) ? part(w, f, &next) : cut(w, f, &next);
    if (rc == 0) {
        f->state[0] = next;
        f->states = 1;
    } else {
        f->state[f->states++] = next;
        f->stale_until = soak_stale_until(rc);
        atomic_fetch_add(&w->s->unsure, 1);
    }
}

static void step(struct soak_worker *w, struct files *all)
{
    struct file *f = &all->file[soak_rnd(w, FILES)];
    int rc = 0;

    if (soak_now() < f->stale_until)
        return;
    if (f->states > 1 || soak_rnd(w, 3) == 0)
        rc = look(w, f, (unsigned)soak_rnd(w, w->s->mounts), 0);
    /* What can't be read may be lost: then it can be written anew. */
    if (rc == 0 || (f->states < TRIES && soak_rnd(w, 4) == 0))
        change(w, f);
}

/* --- in the end ------------------------------------------------------------------------------ */

struct last_look {
    struct file *f;
    unsigned mount;
};

static int look_again(struct soak_worker *w, void *arg)
{
    struct last_look *l = arg;

    return look(w, l->f, l->mount, O_DIRECT); /* not what a kernel still has */
}

static void last_look(struct soak_worker *w, struct file *f)
{
    while (soak_now() < f->stale_until)
        usleep(200000);
    for (unsigned m = 0; m < w->s->mounts; m++) {
        struct last_look l = {f, m};
        char path[SOAK_PATH];
        int rc = soak_settle(w, look_again, &l);

        if (rc < 0) {
            soak_gone(w, soak_path(w, m, path, "files%u/%u", w->id, f->number), rc);
            return;
        }
    }
}

void soak_files(struct soak_worker *w)
{
    struct files *all = calloc(1, sizeof *all);
    char path[SOAK_PATH];

    if (!all || !soak_make_dir(w, soak_path(w, w->mount, path, "files%u", w->id)))
        abort();
    for (unsigned i = 0; i < FILES; i++)
        all->file[i] = (struct file){.number = i, .states = 1};
    while (soak_go_on(w))
        step(w, all);
    for (unsigned i = 0; i < FILES; i++)
        last_look(w, &all->file[i]);
    free(all);
}
