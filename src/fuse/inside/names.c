/* A set-associative table nodeid → name in a parent, which evicts the least recently used. */
#include "fuse/inside/names.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "fuse/kernel/nodeids.h"
#include "meta/meta.h"

#define ROOT      1
#define SETS      2048U
#define WAYS      8U
#define DEEPEST   128U
#define PROGRAMS  64U
#define FRESH     MFS_SEC          /* a thread of that number is still that one */
#define OPEN_MOST 512U             /* descriptors of a process that are looked at … */
#define SCAN_EACH (100 * MFS_MSEC) /* … so often */
#define OPENED    1024U

struct item {
    uint64_t nodeid, parent; /* nodeid 0: free */
    uint64_t used;
    char *name;
};

struct program {
    uint32_t tid, pid;
    int64_t at;
    char name[32];
};

/* A file that a process has open, by its path from the mount on. */
struct opened {
    uint64_t ino; /* 0: free */
    int64_t at;   /* it was so */
    char *path;
};

struct scan {
    uint32_t pid;
    int64_t at;
};

struct mfs_names {
    struct mfs_nodeids *nodeids;
    struct mfs_meta *meta;
    const char *mount;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    uint64_t now;
    struct item (*set)[WAYS]; /* NULL: nothing was learned */
    struct program program[PROGRAMS];
    struct opened opened[OPENED];
    struct scan scan[PROGRAMS];
};

struct mfs_names *mfs_names_create(struct mfs_nodeids *nodeids, struct mfs_meta *meta,
                                   const char *mount)
{
    struct mfs_names *n = calloc(1, sizeof *n);

    if (n == NULL)
        return NULL;
    pthread_mutex_init(&n->lock, NULL);
    n->nodeids = nodeids;
    n->meta = meta;
    n->mount = mount;
    return n;
}

/* Lock held, or nobody else is there. */
static void empty(struct mfs_names *n)
{
    for (unsigned s = 0; n->set != NULL && s < SETS; s++)
        for (unsigned w = 0; w < WAYS; w++)
            free(n->set[s][w].name);
    free(n->set);
    n->set = NULL;
    for (unsigned i = 0; i < OPENED; i++) {
        free(n->opened[i].path);
        n->opened[i] = (struct opened){0};
    }
}

void mfs_names_forget(struct mfs_names *n)
{
    pthread_mutex_lock(&n->lock);
    empty(n);
    pthread_mutex_unlock(&n->lock);
}

void mfs_names_destroy(struct mfs_names *n)
{
    if (n == NULL)
        return;
    empty(n);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

/* The item of a nodeid, or the one that would have to go for it. */
static struct item *item_of(struct mfs_names *n, uint64_t nodeid)
{
    struct item *set = n->set[mfs_hash64(&nodeid, sizeof nodeid, 0) % SETS], *oldest = set;

    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].nodeid == nodeid)
            return &set[i];
        if (set[i].used < oldest->used)
            oldest = &set[i];
    }
    return oldest;
}

void mfs_names_learn(struct mfs_names *n, uint64_t nodeid, uint64_t parent, const char *name)
{
    struct item *i;

    pthread_mutex_lock(&n->lock);
    if (n->set == NULL)
        n->set = calloc(SETS, sizeof *n->set);
    i = n->set != NULL ? item_of(n, nodeid) : NULL;
    if (i != NULL && (i->nodeid != nodeid || i->parent != parent || strcmp(i->name, name) != 0)) {
        free(i->name);
        *i = (struct item){.nodeid = nodeid, .parent = parent, .name = strdup(name)};
        if (i->name == NULL)
            i->nodeid = 0;
    }
    if (i != NULL)
        i->used = ++n->now;
    pthread_mutex_unlock(&n->lock);
}

static bool has_name(const struct item *i, uint64_t parent, const char *name)
{
    return i->nodeid != 0 && i->parent == parent && strcmp(i->name, name) == 0;
}

static void move(struct item *i, uint64_t parent, const char *name)
{
    char *copy = strdup(name);

    free(i->name);
    i->name = copy;
    i->parent = parent;
    if (copy == NULL)
        i->nodeid = 0;
}

void mfs_names_renamed(struct mfs_names *n, uint64_t parent, const char *name, uint64_t new_parent,
                       const char *new_name, bool exchange)
{
    pthread_mutex_lock(&n->lock);
    for (unsigned s = 0; n->set != NULL && s < SETS; s++)
        for (unsigned w = 0; w < WAYS; w++) {
            struct item *i = &n->set[s][w];

            if (has_name(i, parent, name))
                move(i, new_parent, new_name);
            else if (exchange && has_name(i, new_parent, new_name))
                move(i, parent, name);
        }
    pthread_mutex_unlock(&n->lock);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool learned(struct mfs_names *n, uint64_t nodeid, uint64_t *parent, char name[256])
{
    struct item *i;
    bool is = false;

    pthread_mutex_lock(&n->lock);
    if (n->set != NULL) {
        i = item_of(n, nodeid);
        is = i->nodeid == nodeid;
        if (is) {
            *parent = i->parent;
            i->used = ++n->now;
            snprintf(name, 256, "%s", i->name);
        }
    }
    pthread_mutex_unlock(&n->lock);
    return is;
}

/* A path that grows at its beginning. */
struct path {
    char text[PATH_MAX];
    size_t at; /* where it begins */
};

static bool prepend(struct path *p, const char *name)
{
    size_t len = strlen(name);

    if (p->at < len + 1)
        return false;
    if (p->text[p->at] != '\0')
        p->text[--p->at] = '/';
    p->at -= len;
    memcpy(p->text + p->at, name, len);
    return true;
}

/* The directories above; false: one of them is not known. */
static bool climb(struct mfs_names *n, uint64_t nodeid, struct path *p)
{
    uint64_t parent = 0;
    char name[256];

    for (unsigned i = 0; i < DEEPEST && nodeid != ROOT; i++) {
        if (!learned(n, nodeid, &parent, name) &&
            !mfs_nodeids_name(n->nodeids, nodeid, &parent, name) &&
            !mfs_meta_a_name(n->meta, nodeid, &parent, name))
            return false;
        if (!prepend(p, name))
            return false;
        nodeid = parent;
    }
    return nodeid == ROOT;
}

/* The inode of a process' descriptor; 0: it is not known. */
static uint64_t inode_of(uint32_t pid, const char *fd)
{
    char path[64], text[512];
    const char *line;
    ssize_t len;
    int file;

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/fdinfo/%.10s", pid, fd);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    len = read(file, text, sizeof text - 1);
    close(file);
    text[len > 0 ? len : 0] = '\0';
    line = strstr(text, "ino:");
    return line != NULL ? strtoull(line + 4, NULL, 10) : 0;
}

static void remember(struct mfs_names *n, uint64_t ino, const char *path, int64_t now)
{
    struct opened *o = &n->opened[mfs_hash64(&ino, sizeof ino, 0) % OPENED];
    char *copy = strdup(path);

    pthread_mutex_lock(&n->lock);
    free(o->path);
    *o = (struct opened){.ino = copy != NULL ? ino : 0, .at = now, .path = copy};
    pthread_mutex_unlock(&n->lock);
}

/* What the kernel calls it for the process that has it open: it asks no file system for that. */
static void look_at(struct mfs_names *n, uint32_t pid, const char *fd, int64_t now)
{
    char link[64], path[PATH_MAX];
    size_t top = strlen(n->mount);
    uint64_t ino;
    ssize_t len;

    snprintf(link, sizeof link, "/proc/%" PRIu32 "/fd/%.10s", pid, fd);
    len = readlink(link, path, sizeof path - 1);
    if (len <= 0)
        return;
    path[len] = '\0';
    if (strncmp(path, n->mount, top) != 0 || path[top] != '/')
        return;
    ino = inode_of(pid, fd);
    if (ino != 0)
        remember(n, ino, path + top + 1, now);
}

/* Not so often: a process may have many, and the request's answer waits. */
static bool may_scan(struct mfs_names *n, uint32_t pid, int64_t now)
{
    struct scan *s = &n->scan[pid % PROGRAMS];
    bool may;

    pthread_mutex_lock(&n->lock);
    may = s->pid != pid || now - s->at > SCAN_EACH;
    if (may)
        *s = (struct scan){pid, now};
    pthread_mutex_unlock(&n->lock);
    return may;
}

static void scan(struct mfs_names *n, uint32_t pid, int64_t now)
{
    char dir[64];
    struct dirent *e;
    DIR *d;

    snprintf(dir, sizeof dir, "/proc/%" PRIu32 "/fd", pid);
    d = opendir(dir);
    if (d == NULL)
        return;
    for (unsigned i = 0; i < OPEN_MOST && (e = readdir(d)) != NULL; i++)
        look_at(n, pid, e->d_name, now);
    closedir(d);
}

static bool remembered(struct mfs_names *n, uint64_t ino, int64_t now, struct path *p)
{
    struct opened *o = &n->opened[mfs_hash64(&ino, sizeof ino, 0) % OPENED];
    bool is;

    pthread_mutex_lock(&n->lock);
    is = o->ino == ino && now - o->at <= FRESH && prepend(p, o->path);
    pthread_mutex_unlock(&n->lock);
    return is;
}

static bool find_open(struct mfs_names *n, uint64_t ino, uint32_t tid, struct path *p)
{
    int64_t now = mfs_clock_mono();
    char program[32];
    uint32_t pid;

    if (remembered(n, ino, now, p))
        return true;
    mfs_names_program(n, tid, &pid, program, sizeof program);
    if (pid == 0 || !may_scan(n, pid, now))
        return false;
    scan(n, pid, now);
    return remembered(n, ino, now, p);
}

static void take_out(const struct path *p, bool whole, char *out, size_t size)
{
    const char *text = p->text + p->at;
    size_t len = strlen(text), most = size - sizeof "…/";

    if (len == 0) {
        snprintf(out, size, "%s", whole ? "." : "");
        return;
    }
    if (len >= size) {
        text += len - most;
        whole = false;
    }
    snprintf(out, size, "%s%s", whole ? "" : "…/", text);
}

void mfs_names_path(struct mfs_names *n, uint64_t nodeid, const char *name, uint32_t tid, char *out,
                    size_t size)
{
    struct path p = {.at = sizeof p.text - 1};
    bool whole = name == NULL || prepend(&p, name);

    whole = whole && climb(n, nodeid, &p);
    if (!whole && name == NULL && p.text[p.at] == '\0')
        whole = find_open(n, mfs_nodeids_ino(nodeid), tid, &p);
    take_out(&p, whole, out, size);
}

/* ---- programs -------------------------------------------------------------------------------- */

/* /proc/TID/status begins with the name; the process' number is some lines further on. */
static void read_program(uint32_t tid, struct program *p)
{
    char path[64], text[512];
    const char *group;
    ssize_t len;
    int file;

    *p = (struct program){.tid = tid, .pid = tid, .at = mfs_clock_mono()};
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/status", tid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    len = read(file, text, sizeof text - 1);
    close(file);
    text[len > 0 ? len : 0] = '\0';
    sscanf(text, "Name:\t%31[^\n]", p->name);
    group = strstr(text, "\nTgid:");
    if (group != NULL)
        p->pid = (uint32_t)strtoul(group + 6, NULL, 10);
}

void mfs_names_program(struct mfs_names *n, uint32_t tid, uint32_t *pid, char *out, size_t size)
{
    struct program p, *known = &n->program[tid % PROGRAMS];

    if (tid == 0) {
        *pid = 0;
        mfs_text_copy(out, size, "kernel");
        return;
    }
    pthread_mutex_lock(&n->lock);
    p = *known;
    pthread_mutex_unlock(&n->lock);
    if (p.tid != tid || mfs_clock_mono() - p.at > FRESH) {
        struct program before = p;

        read_program(tid, &p);
        if (p.name[0] == '\0' && before.tid == tid) /* it has ended since */
            p = before;
        pthread_mutex_lock(&n->lock);
        *known = p;
        pthread_mutex_unlock(&n->lock);
    }
    *pid = p.pid;
    snprintf(out, size, "%s", p.name);
}
