/* Load on names: a directory of files and directories, by turns through both mounts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elastic_load.h"

#define NAMES 48U

enum node { NOTHING, A_FILE, A_DIR };

static bool list_same(const enum node *shadow, unsigned id, unsigned mount)
{
    bool seen[NAMES] = {false};
    char path[PATHS];
    int64_t t = load_now_ns();
    DIR *dir = opendir(load_at(path, mount, "names%u", id));
    struct dirent *e;
    bool ok = true;

    if (!dir)
        return load_wrong("list %s: %s", path, strerror(errno));
    while (ok && (errno = 0, e = readdir(dir))) {
        unsigned long i = strtoul(e->d_name, NULL, 10);

        if (e->d_name[0] == '.')
            continue;
        if (i >= NAMES || seen[i] || shadow[i] == NOTHING)
            ok = load_wrong("list %s: \"%s\" should not be there", path, e->d_name);
        else
            seen[i] = true;
    }
    if (ok && errno)
        ok = load_wrong("list %s: %s", path, strerror(errno));
    closedir(dir);
    load_took(LIST, t);
    for (unsigned i = 0; ok && i < NAMES; i++)
        if (shadow[i] != NOTHING && !seen[i])
            ok = load_wrong("list %s: \"%u\" is missing", path, i);
    return ok;
}

static bool make_node(enum node *node, uint64_t dice, const char *path)
{
    int fd;

    *node = dice % 3 ? A_FILE : A_DIR;
    if (*node == A_DIR)
        return load_mkdir(path);
    fd = load_open(path, O_WRONLY | O_CREAT | O_EXCL);
    return fd >= 0 && load_close(fd, path);
}

/* rename(2) replaces what is of the same kind; directories here are empty. */
static bool may_replace(enum node from, enum node to)
{
    return to == NOTHING || from == to;
}

static bool names_step(struct worker *w, enum node *shadow)
{
    unsigned i = (unsigned)load_rnd(&w->random, NAMES), j = (unsigned)load_rnd(&w->random, NAMES);
    unsigned m = (unsigned)load_rnd(&w->random, 2);
    char path[PATHS], to[PATHS];

    load_at(path, m, "names%u/%u", w->id, i);
    load_at(to, m, "names%u/%u", w->id, j);
    switch (load_rnd(&w->random, 8)) {
    case 0:
        return list_same(shadow, w->id, m);
    case 1:
    case 2:
        return load_is_there(path, shadow[i] != NOTHING, -1);
    case 3:
    case 4:
        if (shadow[i] == NOTHING || i == j || !may_replace(shadow[i], shadow[j]))
            return true;
        shadow[j] = shadow[i];
        shadow[i] = NOTHING;
        return load_rename(path, to);
    default:
        break;
    }
    if (shadow[i] == NOTHING)
        return make_node(&shadow[i], load_rnd(&w->random, 3), path);
    if (shadow[i] == A_DIR) {
        shadow[i] = NOTHING;
        return load_rmdir(path);
    }
    shadow[i] = NOTHING;
    return load_unlink(path);
}

void *load_names(void *arg)
{
    struct worker *w = arg;
    enum node shadow[NAMES] = {NOTHING};
    char path[PATHS];
    bool ok = load_mkdir(load_at(path, w->mount, "names%u", w->id));

    while (ok && load_go_on())
        ok = names_step(w, shadow);
    if (ok && list_same(shadow, w->id, 0))
        list_same(shadow, w->id, 1);
    return NULL;
}
