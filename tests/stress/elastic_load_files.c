/* Load on the content of files. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "elastic_load.h"

#define SMALL (64U << 10) /* largest small file */
#define SLOTS 128U        /* small files of one thread */

/* --- large files ---------------------------------------------------------------------------- */

#define LARGE_FILES 4U

void *load_large_files(void *arg)
{
    struct worker *w = arg;
    uint64_t size[LARGE_FILES] = {0}, key[LARGE_FILES] = {0};
    uint64_t most = load.budget / 4 / LARGE_FILES; /* two threads have half of it */
    char path[PATHS], other[PATHS];
    bool ok = true;

    while (ok && load_go_on()) {
        unsigned i = (unsigned)load_rnd(&w->random, LARGE_FILES);

        load_at(path, w->mount, "large%u-%u", w->id, i);
        load_at(other, 1 - w->mount, "large%u-%u", w->id, i);
        if (size[i] && load_rnd(&w->random, 3) == 0) {
            ok = load_unlink(path) && load_is_there(other, false, -1);
            size[i] = 0;
            continue;
        }
        size[i] = 1 + load_rnd(&w->random, most);
        key[i] = load_new_key(w);
        ok = load_file_write(path, O_CREAT | O_TRUNC, size[i], key[i], w->buf) &&
             load_is_there(other, true, (int64_t)size[i]) &&
             load_file_same(load_rnd(&w->random, 4) ? other : path, size[i], key[i], w->buf);
    }
    for (unsigned i = 0; ok && i < 2 * LARGE_FILES; i++)
        if (size[i / 2])
            ok = load_file_same(load_at(path, i % 2, "large%u-%u", w->id, i / 2), size[i / 2],
                                key[i / 2], w->buf);
    return NULL;
}

/* --- small files ---------------------------------------------------------------------------- */

struct small {
    bool there;
    uint64_t size, key;
};

/* A file without a name lives as long as it is open. */
static bool nameless(struct worker *w, const char *path)
{
    uint64_t size = 1 + load_rnd(&w->random, SMALL), key = load_new_key(w);
    int fd = load_open(path, O_RDWR | O_CREAT | O_EXCL);
    bool ok;

    if (fd < 0)
        return false;
    load_fill(w->buf, size, key, 0);
    ok = load_unlink(path) && load_write(fd, w->buf, size, 0, path) && load_fsync(fd, path);
    if (ok)
        ok = load_read_same(fd, w->buf, size, key, 0, path);
    return load_close(fd, path) && ok;
}

static bool small_step(struct worker *w, struct small *list)
{
    unsigned i = (unsigned)load_rnd(&w->random, SLOTS);
    char path[PATHS], other[PATHS], name[PATHS];
    struct small *f = &list[i];

    load_at(path, w->mount, "small%u/%u", w->id, i);
    load_at(other, 1 - w->mount, "small%u/%u", w->id, i);
    switch (load_rnd(&w->random, 8)) {
    case 0:
        if (!f->there)
            return load_is_there(other, false, -1);
        f->there = false;
        return load_unlink(path) && load_is_there(other, false, -1);
    case 1:
        return nameless(w, load_at(name, w->mount, "small%u/nameless", w->id));
    case 2:
    case 3:
    case 4:
        return f->there ? load_file_same(other, f->size, f->key, w->buf)
                        : load_is_there(path, false, -1);
    default:
        f->size = load_rnd(&w->random, SMALL);
        f->key = load_new_key(w);
        if (!load_file_write(path, f->there ? O_TRUNC : O_CREAT | O_EXCL, f->size, f->key, w->buf))
            return false;
        f->there = true;
        return true;
    }
}

void *load_small_files(void *arg)
{
    static struct small lists[2][SLOTS];
    struct worker *w = arg;
    struct small *list = lists[w->mount];
    char path[PATHS];
    bool ok = load_mkdir(load_at(path, w->mount, "small%u", w->id));

    while (ok && load_go_on())
        ok = small_step(w, list);
    for (unsigned i = 0; ok && i < 2 * SLOTS; i++) {
        struct small *f = &list[i / 2];

        load_at(path, i % 2, "small%u/%u", w->id, i / 2);
        ok = f->there ? load_file_same(path, f->size, f->key, w->buf)
                      : load_is_there(path, false, -1);
    }
    return NULL;
}

/* --- rewrites in place: one file, every other 16 blocks belong to each mount ---------------- */

#define RUN 16U

static uint64_t block_of(const struct worker *w, uint64_t i)
{
    return (2 * (i / RUN) + w->mount) * RUN + i % RUN;
}

static uint64_t stamp(uint64_t block, uint32_t version)
{
    return load_mix(load.seed ^ (block << 32 | version)) & ~7ULL;
}

static bool blocks_same(struct worker *w, int fd, const uint32_t *version, uint64_t i, uint64_t n,
                        const char *path)
{
    uint64_t off = block_of(w, i) * BLOCK;
    ssize_t got = load_read(fd, w->buf, n * BLOCK, off, path);
    bool ok = got >= 0;

    if (ok && (uint64_t)got != n * BLOCK)
        ok = load_wrong("read %s: %zd of %llu bytes at %llu", path, got,
                        (unsigned long long)(n * BLOCK), (unsigned long long)off);
    for (uint64_t b = 0; ok && b < n; b++)
        ok = load_same(w->buf + b * BLOCK, BLOCK, stamp(block_of(w, i + b), version[i + b]),
                       off + b * BLOCK, path);
    return ok;
}

static bool blocks_write(struct worker *w, int fd, uint32_t *version, uint64_t i, uint64_t n,
                         const char *path)
{
    uint64_t off = block_of(w, i) * BLOCK;

    for (uint64_t b = 0; b < n; b++)
        load_fill(w->buf + b * BLOCK, BLOCK, stamp(block_of(w, i + b), ++version[i + b]),
                  off + b * BLOCK);
    return load_write(fd, w->buf, n * BLOCK, off, path);
}

static bool rewrite_step(struct worker *w, const int fd[2], uint32_t *version, uint64_t blocks,
                         char path[2][PATHS])
{
    uint64_t i = load_rnd(&w->random, blocks), n = 1 + load_rnd(&w->random, RUN - i % RUN);
    unsigned m = w->mount;

    switch (load_rnd(&w->random, 16)) {
    case 0: /* what is stored is seen everywhere */
        return load_fsync(fd[m], path[m]) && blocks_same(w, fd[1 - m], version, i, n, path[1 - m]);
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
        return blocks_same(w, fd[m], version, i, n, path[m]);
    default:
        return blocks_write(w, fd[m], version, i, n, path[m]);
    }
}

void *load_rewrites(void *arg)
{
    struct worker *w = arg;
    uint64_t blocks = load.budget / 8 / BLOCK / RUN * RUN; /* of this mount */
    uint32_t *version = calloc(blocks, sizeof *version);
    char path[2][PATHS];
    int fd[2];
    bool ok;

    for (unsigned m = 0; m < 2; m++)
        fd[m] = load_open(load_at(path[m], m, "rewrites"), O_RDWR | O_CREAT);
    ok = version && fd[0] >= 0 && fd[1] >= 0;
    for (uint64_t i = 0; ok && i < blocks; i += RUN)
        ok = blocks_write(w, fd[w->mount], version, i, RUN, path[w->mount]);
    while (ok && load_go_on())
        ok = rewrite_step(w, fd, version, blocks, path);
    if (ok)
        ok = load_fsync(fd[w->mount], path[w->mount]);
    for (unsigned m = 0; m < 2; m++) {
        for (uint64_t i = 0; ok && i < blocks; i += RUN)
            ok = blocks_same(w, fd[m], version, i, RUN, path[m]);
        if (fd[m] >= 0)
            load_close(fd[m], path[m]);
    }
    free(version);
    return NULL;
}
