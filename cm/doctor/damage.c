/* Files of which data were lost when a process died. To count them takes a look through all that is
 * stored, so it is done only where an event tells of a loss, or there may have been one, by `memefs
 * lost`, for a bounded time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cm/doctor/impl.h"
#include "cm/state/event_reader.h"
#include "cm/state/state.h"

#define COUNT_TIME (4 * MFS_SEC)
#define CHECK      "damaged files"

/* Of a process that was started anew without the bytes that it had: not "0 stripes …". */
static bool is_loss(const struct mfs_event *e)
{
    return !strcmp(e->what, "redis-revived") && !strstr(e->text, " 0 stripes ");
}

enum loss { NONE, MAYBE, CERTAIN };

/* A replica may lack bytes (decisions/0046). */
static bool may_be_loss(const struct mfs_event *e, bool first)
{
    return (first && strcmp(e->what, MFS_PHASE_STARTING) != 0) || !strcmp(e->what, "failed-over");
}

/* Has anything been lost since the deployment began? Maybe, when a replica has taken over; when the
 * first events are not there any more, or were never here, as cm came from another machine. */
static enum loss find_loss(const struct mfs_doctor_case *c)
{
    enum loss loss = NONE;
    struct mfs_event_reader *r;
    struct mfs_event e;
    bool first = true;
    int rc = mfs_event_reader_open(c->paths, &r);

    if (rc)
        return MAYBE;
    while (loss != CERTAIN && (rc = mfs_event_reader_next(r, &e)) > 0) {
        if (may_be_loss(&e, first))
            loss = MAYBE;
        if (is_loss(&e))
            loss = CERTAIN;
        first = false;
    }
    mfs_event_reader_close(r);
    return rc < 0 && loss == NONE ? MAYBE : loss;
}

static void say_uncounted(struct mfs_doctor_case *c, enum loss loss)
{
    int seconds = (int)(COUNT_TIME / MFS_SEC);

    if (loss == CERTAIN)
        mfs_doctor_add(
            c->d, MFS_DOCTOR_WARN, CHECK,
            "data were lost, and how many files that left damaged was not found out in %d s",
            seconds);
    else
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, CHECK,
                       "no loss is known; a look for damaged files takes more than %d s", seconds);
    mfs_doctor_advise(c->d, "memefs lost%s lists them", c->which);
}

static void judge(struct mfs_doctor_case *c, enum loss loss, int rc, int status, const char *text)
{
    unsigned n = 0;

    for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n'))
        n++;
    if (rc || status) {
        say_uncounted(c, loss);
    } else if (n) {
        mfs_doctor_add(c->d, MFS_DOCTOR_WARN, CHECK, "%u; what they have lost gives EIO", n);
        mfs_doctor_advise(c->d, "memefs lost%s lists them: make them anew, or remove them",
                          c->which);
    } else {
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, CHECK, "%s",
                       loss == CERTAIN ? "none any more" : "none");
    }
}

static void count(struct mfs_doctor_case *c, enum loss loss)
{
    char dir[] = "/tmp/memefs-doctor-XXXXXX", program[PATH_MAX], log[PATH_MAX];
    const char *const argv[] = {program,       "lost",        "--name", c->paths->name,
                                "--state-dir", c->paths->dir, NULL};
    struct mfs_buf out;
    int rc, status = -1;

    if (!mkdtemp(dir))
        return;
    mfs_buf_init(&out);
    rc = mfs_proc_sibling("memefs", program, sizeof program);
    if (!rc)
        rc = mfs_text_format(log, sizeof log, "%s/lost", dir);
    if (!rc)
        rc = mfs_doctor_run(argv, log, NULL, COUNT_TIME, &out, &status);
    judge(c, loss, rc, status, rc ? "" : mfs_buf_data(&out));
    mfs_buf_fini(&out);
    mfs_file_remove_tree(dir);
}

void mfs_doctor_damage(struct mfs_doctor_case *c)
{
    enum loss loss;

    if (c->parts_bad || !c->answered)
        return; /* it would not answer; others have said why */
    loss = find_loss(c);
    if (loss != NONE)
        count(c, loss);
    else
        mfs_doctor_add(c->d, MFS_DOCTOR_OK, CHECK, "none: no data were lost");
}
