/* What files have in them, by a key each, and what else all kinds of load need. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "elastic_load.h"

/* --- content -------------------------------------------------------------------------------- */

uint64_t load_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

uint64_t load_rnd(uint64_t *state, uint64_t below)
{
    *state += 0x9e3779b97f4a7c15ULL;
    return load_mix(*state) % below;
}

void load_fill(unsigned char *p, size_t n, uint64_t key, uint64_t off)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = load_mix(key + (off + i) * 0x9e3779b97f4a7c15ULL);

        memcpy(p + i, &word, 8);
    }
}

bool load_same(const unsigned char *p, size_t n, uint64_t key, uint64_t off, const char *path)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = load_mix(key + (off + i) * 0x9e3779b97f4a7c15ULL), has = 0;
        size_t len = n - i < 8 ? n - i : 8;

        memcpy(&has, p + i, len);
        if (memcmp(&has, &word, len) != 0)
            return load_wrong("%s: wrong bytes at %llu: %016llx, not %016llx", path,
                              (unsigned long long)(off + i), (unsigned long long)has,
                              (unsigned long long)word);
    }
    return true;
}

bool load_read_same(int fd, unsigned char *buf, size_t n, uint64_t key, uint64_t off,
                    const char *path)
{
    ssize_t got = load_read(fd, buf, n, off, path);

    if (got < 0)
        return false;
    if ((size_t)got != n)
        return load_wrong("read %s: %zd of %zu bytes at %llu", path, got, n,
                          (unsigned long long)off);
    return load_same(buf, n, key, off, path);
}

bool load_file_same(const char *path, uint64_t size, uint64_t key, unsigned char *buf)
{
    int fd = load_open(path, O_RDONLY);
    bool ok = fd >= 0;

    for (uint64_t off = 0; ok && off < size; off += CHUNK)
        ok = load_read_same(fd, buf, size - off < CHUNK ? size - off : CHUNK, key, off, path);
    if (ok && load_read(fd, buf, 8, size, path) != 0)
        ok = load_wrong("%s: longer than %llu bytes", path, (unsigned long long)size);
    return fd < 0 ? false : load_close(fd, path) && ok;
}

bool load_file_write(const char *path, int flags, uint64_t size, uint64_t key, unsigned char *buf)
{
    int fd = load_open(path, O_WRONLY | flags);
    bool ok = fd >= 0;

    for (uint64_t off = 0; ok && off < size; off += CHUNK) {
        size_t n = size - off < CHUNK ? size - off : CHUNK;

        load_fill(buf, n, key, off);
        ok = load_write(fd, buf, n, off, path);
    }
    return fd < 0 ? false : load_close(fd, path) && ok;
}

/* --- threads -------------------------------------------------------------------------------- */

bool load_go_on(void)
{
    if (load.pause_us)
        usleep(load.pause_us);
    return !atomic_load(&load.stop);
}

__attribute__((format(printf, 3, 4))) char *load_at(char out[PATHS], unsigned mount,
                                                    const char *fmt, ...)
{
    int n = snprintf(out, PATHS, "%s/", load.root[mount]);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(out + n, PATHS - (size_t)n, fmt, ap);
    va_end(ap);
    return out;
}

uint64_t load_new_key(struct worker *w)
{
    return load_mix(load.seed ^ load_rnd(&w->random, UINT64_MAX)) & ~7ULL;
}
