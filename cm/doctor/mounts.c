/* Mounts: does each node's answer, and are there others of the deployment, binds too, that are
 * dead? Only child processes look at them, all at once, as a look may hang. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/timed_call.h"
#include "host/dead_mount.h"
#include "host/mountinfo.h"
#include "base/text.h"
#include "cm/doctor/impl.h"

#define LOOK_TIME (2 * MFS_SEC)
#define PATIENCE  (50 * MFS_MSEC)
#define FSTYPE    "fuse.memefs"
#define NO_NODE   UINT32_MAX

struct mount {
    char path[PATH_MAX];
    bool part;     /* a bind of a directory in it */
    uint32_t node; /* index in state.node of the node whose mount it is, or NO_NODE */
    struct mfs_proc client;
    struct mfs_timed_call call;
    bool begun;
    int rc;
};

struct mounts {
    struct mfs_doctor_case *c;
    struct mount *mount;
    size_t n;
    size_t good; /* others than the nodes' that answer */
};

static struct mount *add(struct mounts *l, const char *path, uint32_t node)
{
    struct mount *more = reallocarray(l->mount, l->n + 1, sizeof *more);

    if (!more)
        return NULL;
    l->mount = more;
    more = &l->mount[l->n++];
    *more = (struct mount){.node = node};
    mfs_text_copy(more->path, sizeof more->path, path);
    return more;
}

/* ---- which there are ------------------------------------------------------------------------- */

/* Is what that process has mounted seen here, too? Yes when it can't be told. */
static bool same_mounts(const struct mfs_proc *p)
{
    char path[64], here[64], there[64];
    ssize_t a = readlink("/proc/self/ns/mnt", here, sizeof here), b;

    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)p->pid);
    b = p->pid ? readlink(path, there, sizeof there) : -1;
    return a < 0 || b < 0 || (a == b && !memcmp(here, there, (size_t)a));
}

static void add_nodes(struct mounts *l)
{
    for (uint32_t i = 0; l->c->node && i < l->c->state.nnodes; i++) {
        const struct mfs_cm_node *n = &l->c->state.node[i];
        struct mfs_proc lm = mfs_doctor_noted(l->c, n->id, "lm.pid");
        struct mount *m;

        if (!n->mount[0] || !l->c->node[i].here || !same_mounts(&lm))
            continue;
        m = add(l, n->mount, i);
        if (m)
            m->client = mfs_doctor_noted(l->c, n->id, "client.pid");
    }
}

static int add_other(void *arg, const struct mfs_mountinfo *m)
{
    struct mounts *l = arg;
    struct mount *added;

    if (strcmp(m->fstype, FSTYPE) != 0 || strcmp(m->source, l->c->paths->name) != 0)
        return 0;
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->mount[i].path, m->point))
            return 0;
    added = add(l, m->point, NO_NODE);
    if (added)
        added->part = strcmp(m->root, "/") != 0;
    return 0;
}

static void add_others(struct mounts *l)
{
    struct mfs_buf text;

    mfs_buf_init(&text);
    if (!mfs_mountinfo_read(0, &text))
        mfs_mountinfo_each(mfs_buf_data(&text), add_other, l);
    mfs_buf_fini(&text);
}

/* ---- what they say --------------------------------------------------------------------------- */

static void look(struct mounts *l)
{
    int64_t until = mfs_clock_mono() + LOOK_TIME;

    for (size_t i = 0; i < l->n; i++) {
        struct mount *m = &l->mount[i];

        if (mfs_proc_state(&m->client) == 'T')
            continue;
        m->rc = mfs_timed_call_begin(&m->call, mfs_timed_statfs, m->path);
        m->begun = !m->rc;
    }
    for (size_t i = 0; i < l->n; i++)
        if (l->mount[i].begun)
            l->mount[i].rc = mfs_timed_call_end(&l->mount[i].call, until, PATIENCE);
}

/* lm detaches it and mounts again, if it can. */
static void dead_client(struct mfs_doctor_case *c, const struct mount *m, const char *check)
{
    mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, check, "%s: its client is gone (%s)", m->path,
                   strerror(-m->rc));
    if (c->node[m->node].lm_good)
        mfs_doctor_advise(c->d,
                          "wait: its lm mounts again within 30 s; cm events%s tells why it "
                          "died",
                          c->which);
    else
        mfs_doctor_advise(c->d, "mend its lm, which mounts again");
}

static void no_answer(struct mfs_doctor_case *c, const struct mount *m, const char *check)
{
    if (c->parts_bad) {
        mfs_doctor_add(c->d, MFS_DOCTOR_WARN, check, "%s: %s, as partitions do not answer", m->path,
                       strerror(-m->rc));
        mfs_doctor_advise(c->d, "mend the partitions first");
        return;
    }
    mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, check, "%s: %s", m->path, strerror(-m->rc));
    if (mfs_proc_alive(&m->client))
        mfs_doctor_advise(c->d,
                          "see client.log beside %s/%s/lm.log; kill -KILL %d makes its lm "
                          "mount again, and what was not stored yet is lost",
                          c->paths->dir, c->node[m->node].name, (int)m->client.pid);
    else
        mfs_doctor_advise(c->d, "umount -l %s, then cm start%s", MFS_DOCTOR_QUOTED(m->path),
                          c->which);
}

static void judge_node(struct mfs_doctor_case *c, const struct mount *m)
{
    char check[MFS_NAME_MAX + 16];

    snprintf(check, sizeof check, "%s: mount", c->node[m->node].name);
    if (!m->begun && !m->rc) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, check,
                       "%s: its client, process %d, is stopped by a signal", m->path,
                       (int)m->client.pid);
        mfs_doctor_advise(c->d, "kill -CONT %d", (int)m->client.pid);
    } else if (!m->rc) {
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, check, "%s answers", m->path);
    } else if (mfs_dead_mount_says(m->rc)) {
        dead_client(c, m, check);
    } else if (m->rc == -ENODEV || m->rc == -ENOENT) {
        mfs_doctor_add(c->d, MFS_DOCTOR_WARN, check, "%s: nothing is mounted there", m->path);
        mfs_doctor_advise(c->d, "cm start%s: it mounts it again", c->which);
    } else {
        no_answer(c, m, check);
    }
}

static void judge_other(struct mounts *l, const struct mount *m)
{
    struct mfs_doctor *d = l->c->d;

    if (!m->rc || m->rc == -ENODEV || m->rc == -ENOENT) { /* also of one that went just now */
        l->good++;
    } else if (mfs_dead_mount_says(m->rc)) {
        mfs_doctor_add(d, MFS_DOCTOR_FAIL, "stale mount", "%s%s: its client is gone (%s)", m->path,
                       m->part ? ", a bind of a directory" : "", strerror(-m->rc));
        if (l->c->node)
            mfs_doctor_advise(d, "umount -l %s; then mount it again, if it is wanted",
                              MFS_DOCTOR_QUOTED(m->path));
        else
            mfs_doctor_advise(d, "cm stop%s, and if it stays then, umount -l %s", l->c->which,
                              MFS_DOCTOR_QUOTED(m->path));
    } else {
        mfs_doctor_add(d, l->c->parts_bad ? MFS_DOCTOR_WARN : MFS_DOCTOR_FAIL, "other mount",
                       "%s: %s", m->path, strerror(-m->rc));
        mfs_doctor_advise(d, "mend what else is wrong first; then, umount -l %s",
                          MFS_DOCTOR_QUOTED(m->path));
    }
}

void mfs_doctor_mounts(struct mfs_doctor_case *c)
{
    struct mounts l = {.c = c};

    add_nodes(&l);
    add_others(&l);
    look(&l);
    for (size_t i = 0; i < l.n; i++) {
        if (l.mount[i].node == NO_NODE)
            judge_other(&l, &l.mount[i]);
        else
            judge_node(c, &l.mount[i]);
    }
    if (l.good)
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, "other mounts", "%zu answer", l.good);
    free(l.mount);
}
