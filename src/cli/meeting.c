/* Files of the directory: "member-NAME" of each, then "STEP-RANK" with a number, at the end
 * "left-RANK" or "failed" with the reason. */
#include "cli/meeting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define PAUSE  (5 * MFS_MSEC)
#define MEMBER "member-"
#define FAILED "failed"
#define LEFT   "left-"

struct mfs_meeting {
    int dir;
    char path[PATH_MAX];
    char name[NAME_MAX + 1]; /* this member's file */
    unsigned members, rank, patience;
};

static int failed(const struct mfs_meeting *m, int rc, struct mfs_err *err)
{
    return mfs_err_set(err, rc, "%s: %s", m->path, strerror(-rc));
}

/* A file with a text, whole from the beginning. */
static int tell(struct mfs_meeting *m, const char *name, const char *text)
{
    char hidden[NAME_MAX + 1];
    int fd, rc = mfs_text_format(hidden, sizeof hidden, ".%s", name);

    if (rc < 0)
        return rc;
    fd = openat(m->dir, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    rc = write(fd, text, strlen(text)) < 0 ? -errno : 0;
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && renameat(m->dir, hidden, m->dir, name) < 0)
        rc = -errno;
    return rc;
}

/* The text of a file; -ENOENT: not told yet. */
static int hear(struct mfs_meeting *m, const char *name, char *text, size_t size)
{
    int fd = openat(m->dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = read(fd, text, size - 1);
    close(fd);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    return 0;
}

/* Another member has given up. */
static int heard_failure(struct mfs_meeting *m, struct mfs_err *err)
{
    char why[256];

    if (hear(m, FAILED, why, sizeof why) != 0)
        return 0;
    return mfs_err_set(err, -ECANCELED, "another node has failed: %s", why);
}

/* Members so far, and this one's place among them. */
static int count_members(struct mfs_meeting *m, unsigned *count)
{
    int fd = openat(m->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (d == NULL)
        return -errno;
    *count = m->rank = 0;
    while ((e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, MEMBER, strlen(MEMBER)) != 0)
            continue;
        ++*count;
        m->rank += strcmp(e->d_name, m->name) < 0;
    }
    closedir(d);
    return 0;
}

static int wait_for_members(struct mfs_meeting *m, struct mfs_err *err)
{
    int64_t end = mfs_clock_mono() + m->patience * MFS_SEC;
    unsigned count = 0;
    int rc;

    for (;;) {
        rc = count_members(m, &count);
        if (rc < 0)
            return failed(m, rc, err);
        rc = heard_failure(m, err);
        if (rc < 0)
            return rc;
        if (count > m->members)
            return mfs_err_set(err, -EEXIST,
                               "%s: %u nodes have come, and %u were expected (see --nodes); "
                               "if an earlier run was killed here, remove the directory",
                               m->path, count, m->members);
        if (count == m->members)
            return 0;
        if (mfs_clock_mono() > end)
            return mfs_err_set(err, -ETIMEDOUT, "%s: %u of %u nodes have come within %u s", m->path,
                               count, m->members, m->patience);
        mfs_clock_sleep(PAUSE);
    }
}

/* Only members may be there: files of an earlier run would be taken for answers. */
static int find_foreign(const struct mfs_meeting *m, struct mfs_err *err)
{
    int fd = openat(m->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (d == NULL)
        return failed(m, -errno, err);
    while (rc == 0 && (e = readdir(d)) != NULL) {
        const char *name = e->d_name + (e->d_name[0] == '.');

        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strncmp(name, MEMBER, strlen(MEMBER)) != 0)
            rc = mfs_err_set(err, -EEXIST,
                             "%s: holds \"%s\" and is needed for the benchmark alone: name a "
                             "directory that is empty or not there",
                             m->path, e->d_name);
    }
    closedir(d);
    return rc;
}

static int enter(struct mfs_meeting *m, struct mfs_err *err)
{
    char host[HOST_NAME_MAX + 1] = "node";
    int rc;

    if (mkdir(m->path, 0755) < 0 && errno != EEXIST)
        return failed(m, -errno, err);
    m->dir = open(m->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->dir < 0)
        return failed(m, -errno, err);
    rc = find_foreign(m, err);
    if (rc < 0)
        return rc;
    gethostname(host, sizeof host - 1);
    rc = mfs_text_format(m->name, sizeof m->name, MEMBER "%.64s-%d", host, (int)getpid());
    if (rc == 0)
        rc = tell(m, m->name, "");
    return rc < 0 ? failed(m, rc, err) : 0;
}

/* Of a failure, when there are any: they may have gone on to the first step. */
static void tell_others(struct mfs_meeting *m, const char *why)
{
    unsigned count = 0;

    if (count_members(m, &count) == 0 && count > 0)
        tell(m, FAILED, why);
}

int mfs_meeting_join(struct mfs_meeting **meeting, const char *dir, unsigned members,
                     unsigned patience, struct mfs_err *err)
{
    struct mfs_meeting *m = calloc(1, sizeof *m);
    int rc;

    if (m == NULL)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    m->dir = -1;
    m->members = members;
    m->patience = patience;
    rc = mfs_text_copy(m->path, sizeof m->path, dir);
    if (rc < 0)
        mfs_err_set(err, rc, "%.100s…: %s", dir, strerror(-rc));
    if (rc == 0)
        rc = enter(m, err);
    if (rc == 0)
        rc = wait_for_members(m, err);
    if (rc < 0 && m->name[0] != '\0') {
        unlinkat(m->dir, m->name, 0);
        tell_others(m, err->msg);
    }
    if (rc < 0) {
        if (m->dir >= 0)
            close(m->dir);
        rmdir(m->path); /* when nobody else is there */
        free(m);
        m = NULL;
    }
    *meeting = m;
    return rc;
}

unsigned mfs_meeting_rank(const struct mfs_meeting *m)
{
    return m->rank;
}

/* Waits for the member's word, until `end`. */
static int await(struct mfs_meeting *m, const char *step, unsigned rank, int64_t end, double *value,
                 struct mfs_err *err)
{
    char name[NAME_MAX + 1], text[64];
    int rc = mfs_text_format(name, sizeof name, "%s-%u", step, rank);

    while (rc == 0) {
        rc = hear(m, name, text, sizeof text);
        if (rc == 0) {
            *value = strtod(text, NULL);
            return 0;
        }
        if (rc == -ENOENT)
            rc = heard_failure(m, err);
        else
            failed(m, rc, err);
        if (rc == 0 && mfs_clock_mono() > end)
            rc = mfs_err_set(err, -ETIMEDOUT, "%s: node %u has not come to \"%s\" within %u s",
                             m->path, rank, step, m->patience);
        if (rc == 0)
            mfs_clock_sleep(PAUSE);
    }
    return rc;
}

int mfs_meeting_step(struct mfs_meeting *m, const char *step, double mine, double *largest,
                     struct mfs_err *err)
{
    int64_t end = mfs_clock_mono() + m->patience * MFS_SEC;
    char name[NAME_MAX + 1], text[64];
    double value = 0;
    int rc = mfs_text_format(name, sizeof name, "%s-%u", step, m->rank);

    snprintf(text, sizeof text, "%.9g", mine);
    if (rc == 0)
        rc = tell(m, name, text);
    if (rc < 0)
        return failed(m, rc, err);
    *largest = mine;
    for (unsigned i = 0; rc == 0 && i < m->members; i++) {
        rc = await(m, step, i, end, &value, err);
        if (rc == 0 && value > *largest)
            *largest = value;
    }
    return rc;
}

/* The directory with all that is in it; what can't be removed stays. */
static void clear_away(struct mfs_meeting *m)
{
    int fd = openat(m->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL)
        unlinkat(m->dir, e->d_name, 0); /* "." and ".." are no files */
    if (d != NULL)
        closedir(d);
    rmdir(m->path);
}

/* Until all others have left, so that the directory may go. */
static void await_leaving(struct mfs_meeting *m)
{
    int64_t end = mfs_clock_mono() + m->patience * MFS_SEC;
    char name[NAME_MAX + 1];

    for (unsigned i = 1; i < m->members; i++) {
        mfs_text_format(name, sizeof name, LEFT "%u", i);
        while (faccessat(m->dir, name, F_OK, 0) < 0 && mfs_clock_mono() < end)
            mfs_clock_sleep(PAUSE);
    }
}

void mfs_meeting_leave(struct mfs_meeting *m, const char *why)
{
    char name[NAME_MAX + 1];

    if (m == NULL)
        return;
    if (why != NULL)
        tell(m, FAILED, why);
    mfs_text_format(name, sizeof name, LEFT "%u", m->rank);
    tell(m, name, "");
    if (m->rank == 0) {
        await_leaving(m);
        clear_away(m);
    }
    close(m->dir);
    free(m);
}
