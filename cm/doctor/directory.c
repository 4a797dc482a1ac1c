/* The state directory: its owner, the users that may look into it, and what it says. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "host/timed_call.h"
#include "base/text.h"
#include "cm/doctor/impl.h"

#define DIRECTORY   "state directory"
#define SPACE_LEAST (1ULL << 20)  /* the state itself, with some thousand partitions */
#define SPACE_WANT  (64ULL << 20) /* logs grow */

/* ---- room ------------------------------------------------------------------------------------ */

static void judge_space(struct mfs_doctor *d, const char *dir, const struct statvfs *st)
{
    uint64_t room = (uint64_t)st->f_bavail * st->f_frsize;
    bool no_files = st->f_files && !st->f_favail;

    if (room >= SPACE_WANT && !no_files) {
        mfs_doctor_add(d, MFS_DOCTOR_OK, "space", "%s free in %s", MFS_TEXT_BYTES(room), dir);
        return;
    }
    mfs_doctor_add(d, room < SPACE_LEAST || no_files ? MFS_DOCTOR_FAIL : MFS_DOCTOR_WARN, "space",
                   "%s and %llu files free in %s", MFS_TEXT_BYTES(room),
                   (unsigned long long)st->f_favail, dir);
    mfs_doctor_advise(d, "remove something there, or give cm start another --state-dir: state and "
                         "logs need room");
}

/* Of the nearest directory that is there. */
static void check_space(struct mfs_doctor_case *c)
{
    char dir[PATH_MAX];
    struct statvfs st;

    mfs_text_copy(dir, sizeof dir, c->paths->dir);
    while (statvfs(dir, &st)) {
        if (errno != ENOENT || !strcmp(dir, "/")) {
            mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, "space", "%s: %s", dir, strerror(errno));
            mfs_doctor_advise(c->d, "give cm start another --state-dir");
            return;
        }
        dirname(dir); /* in place; of an absolute path it ends at "/" */
    }
    judge_space(c->d, dir, &st);
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* Is it ours alone? Says so only when not. */
static bool check_private(struct mfs_doctor_case *c, const char *check, const char *path,
                          mode_t want)
{
    struct stat st;

    if (stat(path, &st)) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, check, "%s: %s", path, strerror(errno));
        mfs_doctor_advise(c->d, "cm stop%s: it ends and clears away what is there", c->which);
        return false;
    }
    if (st.st_uid != geteuid()) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, check, "%s belongs to user %u, this is user %u", path,
                       st.st_uid, geteuid());
        mfs_doctor_advise(c->d, "run cm as user %u, or chown %u %s", st.st_uid, geteuid(),
                          MFS_DOCTOR_QUOTED(path));
        return false;
    }
    if (st.st_mode & 077) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, check, "%s has mode %04o: others can get at it", path,
                       st.st_mode & 07777);
        mfs_doctor_advise(c->d, "chmod %04o %s", want, MFS_DOCTOR_QUOTED(path));
        return false;
    }
    return true;
}

/* Nothing that is said in a directory that others have a hand in is looked at. */
static bool check_trusted(struct mfs_doctor_case *c)
{
    struct mfs_err err;
    struct stat st;

    if (!mfs_paths_trust(c->paths, &err))
        return true;
    mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, DIRECTORY, "%s", err.msg);
    if (!stat(c->paths->dir, &st) && st.st_uid != geteuid())
        mfs_doctor_advise(c->d,
                          "run cm as user %u, whose directory it is, or give another "
                          "--state-dir",
                          st.st_uid);
    else
        mfs_doctor_advise(c->d,
                          "have only user %u and root be able to write there, or give "
                          "another --state-dir",
                          geteuid());
    return false;
}

static void check_secret(struct mfs_doctor_case *c)
{
    struct mfs_err err;

    if (!check_private(c, "secret", c->paths->secret, 0600))
        return;
    c->secret_ok = !mfs_secret_load(c->paths->secret, &c->secret, &err);
    if (c->secret_ok) {
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, "secret", "%s, for nobody else", c->paths->secret);
        return;
    }
    mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, "secret", "%s", err.msg);
    mfs_doctor_advise(c->d, "cm stop%s, then cm start: no manager can be talked to without it",
                      c->which);
}

/* ---- content --------------------------------------------------------------------------------- */

static void load_state(struct mfs_doctor_case *c)
{
    struct mfs_err err;
    int rc = mfs_cm_state_load(&c->state, c->paths->state, &err);

    c->recorded = !rc;
    if (!rc) {
        if (check_private(c, "state", c->paths->state, 0600))
            mfs_doctor_add(c->d, MFS_DOCTOR_OK, "state", "%s: %s, %s, %s", c->paths->state,
                           c->state.phase, MFS_TEXT_COUNT(c->state.nnodes, "node"),
                           MFS_TEXT_COUNT(c->state.nparts, "partition"));
    } else if (rc != -ENOENT) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, "state", "%s", err.msg);
        mfs_doctor_advise(c->d, "cm stop%s: it ends and clears away what is there", c->which);
    }
}

/* A cm start or stop holds the directory's lock (lock.h). */
static void check_lock(struct mfs_doctor_case *c)
{
    int fd = open(c->paths->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK) {
        mfs_doctor_add(c->d, MFS_DOCTOR_WARN, DIRECTORY,
                       "a cm start or cm stop is at work; what is found may pass");
        mfs_doctor_advise(c->d, "cm doctor%s once more when it has ended", c->which);
    }
    close(fd);
}

void mfs_doctor_directory(struct mfs_doctor_case *c)
{
    const char *dir = c->paths->dir;
    int rc = mfs_timed_call(mfs_timed_stat, dir, MFS_DOCTOR_CALL_TIME);

    if (rc == -ENOENT) {
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, DIRECTORY, "no %s: deployment %s does not run", dir,
                       c->paths->name);
        check_space(c);
        return;
    }
    if (rc) {
        mfs_doctor_add(c->d, MFS_DOCTOR_FAIL, DIRECTORY, "%s: %s", dir, strerror(-rc));
        mfs_doctor_advise(c->d, "mend the file system that it is on, or give another --state-dir");
        return;
    }
    if (!check_trusted(c)) {
        check_space(c);
        return;
    }
    dir = c->paths->dir;
    c->there = true;
    if (check_private(c, DIRECTORY, dir, 0700))
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, DIRECTORY, "%s, for nobody else", dir);
    check_lock(c);
    check_space(c);
    load_state(c);
    if (c->recorded)
        check_secret(c);
}
