/* The kernel's list of mounts (mountinfo) tells which bind mounts there are: they have the device
 * number of the file system, and the directory in it. Invariant: as long as one of a file system's
 * mounts is there, no other file system gets its device number. So a device that was noted still
 * means the same file system, even after its daemon has died. */
#include "host/bind_mounts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/types.h>
#include <unistd.h>

#include "host/timed_call.h"
#include "base/clock.h"
#include "host/dead_mount.h"
#include "base/log.h"
#include "host/mountinfo.h"
#include "base/text.h"

#define AREA        "binds"
#define CALL_LIMIT  (1 * MFS_SEC)
#define COMMAND_MAX 512
#define SPACES_MOST 256 /* mount name spaces that are looked into */

struct device {
    unsigned major, minor;
};

struct bind {
    struct device of;
    unsigned long flags;
    char *root, *point;
};

struct mfs_bind_mounts {
    struct device *device;
    size_t ndevices;
    struct bind *bind;
    size_t n;
};

struct mfs_bind_mounts *mfs_bind_mounts_create(void)
{
    return calloc(1, sizeof(struct mfs_bind_mounts));
}

static void forget(struct mfs_bind_mounts *b)
{
    for (size_t i = 0; i < b->n; i++) {
        free(b->bind[i].root);
        free(b->bind[i].point);
    }
    free(b->bind);
    free(b->device);
    *b = (struct mfs_bind_mounts){0};
}

void mfs_bind_mounts_destroy(struct mfs_bind_mounts *b)
{
    if (!b)
        return;
    forget(b);
    free(b);
}

bool mfs_bind_mounts_any(const struct mfs_bind_mounts *b)
{
    return b->ndevices > 0;
}

static bool same(struct device d, const struct mfs_mountinfo *m)
{
    return d.major == m->major && d.minor == m->minor;
}

static bool is_noted(const struct mfs_bind_mounts *b, const struct mfs_mountinfo *m)
{
    for (size_t i = 0; i < b->ndevices; i++)
        if (same(b->device[i], m))
            return true;
    return false;
}

/* ---- noting ---------------------------------------------------------------------------------- */

static int note_device(struct mfs_bind_mounts *b, const struct mfs_mountinfo *m)
{
    struct device *more;

    if (is_noted(b, m))
        return 0;
    more = reallocarray(b->device, b->ndevices + 1, sizeof *more);
    if (!more)
        return -ENOMEM;
    b->device = more;
    b->device[b->ndevices++] = (struct device){m->major, m->minor};
    return 0;
}

static int note_bind(struct mfs_bind_mounts *b, const struct mfs_mountinfo *m)
{
    struct bind *more, new = {{m->major, m->minor}, m->flags, NULL, NULL};

    for (size_t i = 0; i < b->n; i++)
        if (same(b->bind[i].of, m) && !strcmp(b->bind[i].point, m->point))
            return 0;
    more = reallocarray(b->bind, b->n + 1, sizeof *more);
    if (!more)
        return -ENOMEM;
    b->bind = more;
    new.root = strdup(m->root);
    new.point = strdup(m->point);
    if (!new.root || !new.point) {
        free(new.root);
        free(new.point);
        return -ENOMEM;
    }
    b->bind[b->n++] = new;
    return 0;
}

struct noting {
    struct mfs_bind_mounts *b;
    const struct mfs_mountinfo *top;
};

static int note_one(void *arg, const struct mfs_mountinfo *m)
{
    const struct noting *n = arg;

    if (m->major != n->top->major || m->minor != n->top->minor || !strcmp(m->point, n->top->point))
        return 0;
    return note_bind(n->b, m);
}

int mfs_bind_mounts_note(struct mfs_bind_mounts *b, const char *path)
{
    struct mfs_mountinfo top;
    struct noting n = {b, &top};
    struct mfs_buf text;
    int rc;

    mfs_buf_init(&text);
    rc = mfs_mountinfo_read(0, &text);
    if (!rc)
        rc = mfs_mountinfo_parse(mfs_buf_data(&text), path, &top);
    if (!rc && !strncmp(top.fstype, "fuse", 4)) {
        rc = note_device(b, &top);
        if (!rc)
            rc = mfs_mountinfo_each(mfs_buf_data(&text), note_one, &n);
    }
    mfs_buf_fini(&text);
    return rc == -ENOENT ? 0 : rc;
}

/* ---- restoring ------------------------------------------------------------------------------- */

/* What the child does; it may hang. */
struct rebind {
    const char *target, *point;
    unsigned long flags;
    bool detach, set_flags;
};

static int rebind(const void *arg)
{
    const struct rebind *r = arg;

    if (r->detach && umount2(r->point, MNT_DETACH | UMOUNT_NOFOLLOW))
        return -errno;
    if (mount(r->target, r->point, NULL, MS_BIND, NULL))
        return -errno;
    if (r->set_flags && mount(NULL, r->point, NULL, MS_REMOUNT | MS_BIND | r->flags, NULL))
        return -errno;
    return 0;
}

static bool is_below(const char *path, const char *above)
{
    size_t len = strlen(above);

    return !strncmp(path, above, len) && path[len] == '/';
}

/* Detaching a mount takes along what is mounted below it: then it is not in its place any more,
 * though it was not unmounted. */
static bool went_along(const struct mfs_bind_mounts *b, const struct bind *bind, const char *path)
{
    bool below = is_below(bind->point, path);

    for (size_t i = 0; i < b->n; i++)
        below |= is_below(bind->point, b->bind[i].point);
    return below;
}

/* What to type; cut off where it does not fit. */
static void name_command(char out[COMMAND_MAX], const char *before, const char *point)
{
    char word[COMMAND_MAX];

    if (mfs_text_quote(word, sizeof word, point))
        snprintf(word, sizeof word, "%.400s", point);
    snprintf(out, COMMAND_MAX, "%sumount -l %.400s", before, word);
}

static void lose(struct mfs_bind_mounts_result *r, const char *point, const char *why)
{
    char command[COMMAND_MAX];

    name_command(command, "", point);
    r->lost++;
    snprintf(r->example, sizeof r->example, "%.250s stays dead: %.250s; %.480s", point, why,
             command);
    mfs_warn(AREA, "%s", r->example);
}

/* 1: it has been made anew; 0: another process has changed what is there; or a negative errno. */
static int restore_one(const struct mfs_bind_mounts *b, const struct bind *bind,
                       const struct mfs_mountinfo *top)
{
    struct rebind r = {.point = bind->point, .flags = bind->flags};
    struct mfs_mountinfo now;
    char target[PATH_MAX];
    int rc = mfs_mountinfo_find(bind->point, &now);

    if (rc == -ENOENT ? !went_along(b, bind, top->point)
                      : !rc && (!same(bind->of, &now) || strcmp(now.root, bind->root) != 0))
        return 0;
    if (rc && rc != -ENOENT)
        return rc;
    r.detach = !rc;
    r.set_flags = bind->flags != top->flags;
    r.target = target;
    rc = mfs_text_format(target, sizeof target, "%s%s", top->point,
                         strcmp(bind->root, "/") ? bind->root : "");
    if (!rc)
        rc = mfs_timed_call(mfs_timed_stat, target, CALL_LIMIT);
    if (!rc)
        rc = mfs_timed_call(rebind, &r, CALL_LIMIT);
    return rc ? rc : 1;
}

static void restore_all(const struct mfs_bind_mounts *b, const struct mfs_mountinfo *top,
                        struct mfs_bind_mounts_result *result)
{
    char why[256];

    for (size_t i = 0; i < b->n; i++) {
        const struct bind *bind = &b->bind[i];
        int rc = restore_one(b, bind, top);

        if (rc > 0) {
            result->restored++;
            mfs_info(AREA, "%s: bound anew to %s of %s", bind->point, bind->root, top->point);
        } else if (rc < 0) {
            snprintf(why, sizeof why, "%.90s in %.90s: %.60s", bind->root, top->point,
                     strerror(-rc));
            lose(result, bind->point, why);
        }
    }
}

/* ---- other mount name spaces ----------------------------------------------------------------- */

struct looking {
    const struct mfs_bind_mounts *b;
    struct mfs_bind_mounts_result *result;
    pid_t pid;
};

static int look_at_mount(void *arg, const struct mfs_mountinfo *m)
{
    struct looking *l = arg;
    char command[COMMAND_MAX], before[48];

    if (!is_noted(l->b, m))
        return 0;
    snprintf(before, sizeof before, "nsenter -m -t %d ", (int)l->pid);
    name_command(command, before, m->point);
    l->result->lost++;
    snprintf(
        l->result->example, sizeof l->result->example,
        "%.250s stays dead in the mount name space of process %d: %.480s, and mount it there anew",
        m->point, (int)l->pid, command);
    mfs_warn(AREA, "%s", l->result->example);
    return 0;
}

static bool read_space(const char *pid, char *out, size_t n)
{
    char path[64];
    ssize_t len;

    snprintf(path, sizeof path, "/proc/%.20s/ns/mnt", pid);
    len = readlink(path, out, n - 1);
    if (len < 0)
        return false;
    out[len] = '\0';
    return true;
}

/* True for the first process of each name space but ours. */
static bool is_new_space(const char *pid, char seen[][32], size_t *n)
{
    char space[32];

    if (*n == SPACES_MOST || !read_space(pid, space, sizeof space))
        return false;
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(seen[i], space))
            return false;
    memcpy(seen[(*n)++], space, sizeof space);
    return true;
}

static void look_elsewhere(const struct mfs_bind_mounts *b, struct mfs_bind_mounts_result *result)
{
    struct looking l = {.b = b, .result = result};
    char(*seen)[32] = calloc(SPACES_MOST, sizeof *seen);
    DIR *proc = opendir("/proc");
    struct mfs_buf text;
    struct dirent *e;
    size_t n = 0;
    uint64_t pid;

    mfs_buf_init(&text);
    if (seen)
        is_new_space("self", seen, &n);
    while (seen && proc && (e = readdir(proc))) {
        if (mfs_text_u64(e->d_name, &pid) || !is_new_space(e->d_name, seen, &n))
            continue;
        l.pid = (pid_t)pid;
        mfs_buf_clear(&text);
        if (!mfs_mountinfo_read(l.pid, &text))
            mfs_mountinfo_each(mfs_buf_data(&text), look_at_mount, &l);
    }
    mfs_buf_fini(&text);
    if (proc)
        closedir(proc);
    free(seen);
}

void mfs_bind_mounts_restore(struct mfs_bind_mounts *b, const char *path,
                             struct mfs_bind_mounts_result *result)
{
    struct mfs_mountinfo top;
    int rc = mfs_mountinfo_find(path, &top);

    *result = (struct mfs_bind_mounts_result){0};
    if (!rc) {
        restore_all(b, &top, result);
        look_elsewhere(b, result);
    } else {
        mfs_warn(AREA, "%s: %s; its %zu binds stay as they are", path, strerror(-rc), b->n);
    }
    forget(b);
}

/* ---- detaching ------------------------------------------------------------------------------- */

static void detach_one(const struct bind *bind)
{
    struct mfs_mountinfo now;
    int rc;

    if (mfs_mountinfo_find(bind->point, &now) || !same(bind->of, &now))
        return;
    if (!mfs_dead_mount(bind->point, CALL_LIMIT))
        return;
    rc = mfs_timed_call(mfs_timed_detach, bind->point, CALL_LIMIT);
    if (rc)
        mfs_warn(AREA, "%s: cannot detach the dead bind: %s", bind->point, strerror(-rc));
    else
        mfs_info(AREA, "%s: dead bind detached", bind->point);
}

/* The last first: it may be mounted on one before it. */
void mfs_bind_mounts_detach(struct mfs_bind_mounts *b)
{
    for (size_t i = b->n; i > 0; i--)
        detach_one(&b->bind[i - 1]);
    forget(b);
}
