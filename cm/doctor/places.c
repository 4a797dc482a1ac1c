/* The machines that a provider has places on (--hosts): each must let us in without a question, and
 * have the programs. All are asked at once, by the provider's commands. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cm/doctor/impl.h"
#include "cm/provider/children.h"

#define PLACES_MOST 64 /* asked at once; of more the first */
#define PLACES_TIME (6 * MFS_SEC)
#define STEP        (10 * MFS_MSEC)
#define OUTPUT_MAX  (1U << 20)
#define CHECK       "hosts"

struct place {
    struct mfs_provider_probe probe;
    char log[PATH_MAX];
    pid_t pid;
    int status;
    bool ended;
};

static void begin(struct place *p, const char *dir, unsigned number)
{
    p->pid = mfs_text_format(p->log, sizeof p->log, "%s/%u", dir, number)
                 ? -ENAMETOOLONG
                 : mfs_proc_spawn(p->probe.argv, p->log);
    p->ended = p->pid < 0;
    p->status = -1;
}

static bool all_ended(struct place *p, unsigned n)
{
    bool all = true;

    for (unsigned i = 0; i < n; i++) {
        if (!p[i].ended)
            p[i].ended = waitpid(p[i].pid, &p[i].status, WNOHANG) == p[i].pid;
        all &= p[i].ended;
    }
    return all;
}

static void wait_for(struct place *p, unsigned n)
{
    int64_t until = mfs_clock_mono() + PLACES_TIME;

    while (!all_ended(p, n) && mfs_clock_mono() < until)
        mfs_clock_sleep(STEP);
    for (unsigned i = 0; i < n; i++)
        if (!p[i].ended) {
            kill(-p[i].pid, SIGKILL); /* it leads a group */
            waitpid(p[i].pid, NULL, 0);
        }
}

static void how_it_ended(const struct place *p, struct mfs_err *how)
{
    how->code = -ECHILD;
    if (p->pid < 0)
        snprintf(how->msg, sizeof how->msg, "could not be asked: %s", strerror(-p->pid));
    else if (!p->ended)
        snprintf(how->msg, sizeof how->msg, "did not answer in %lld s",
                 (long long)(PLACES_TIME / MFS_SEC));
    else
        mfs_children_how(p->status, how->msg, sizeof how->msg);
}

/* Can it be used? */
static bool judge(struct mfs_doctor *d, const struct mfs_provider *provider, const struct place *p)
{
    struct mfs_err how, why;
    struct mfs_buf output;

    if (p->ended && !p->status)
        return true;
    how_it_ended(p, &how);
    mfs_buf_init(&output);
    if (mfs_file_read(p->log, OUTPUT_MAX, &output) || mfs_buf_append(&output, "", 1))
        mfs_buf_clear(&output);
    provider->explain(&p->probe, &how, mfs_buf_len(&output) ? mfs_buf_data(&output) : "", &why);
    mfs_buf_fini(&output);
    mfs_doctor_add(d, MFS_DOCTOR_FAIL, CHECK, "%s", why.msg);
    mfs_doctor_advise(d, "make this work: %s", p->probe.advice);
    return false;
}

static void ask(struct mfs_doctor *d, const struct mfs_provider *provider, struct place *p,
                unsigned n, bool more)
{
    char dir[] = "/tmp/memefs-doctor-XXXXXX";
    unsigned good = 0;

    if (!mkdtemp(dir)) {
        mfs_doctor_add(d, MFS_DOCTOR_WARN, CHECK, "not asked: /tmp: %s", strerror(errno));
        mfs_doctor_advise(d, "make /tmp writable");
        return;
    }
    for (unsigned i = 0; i < n; i++)
        begin(&p[i], dir, i);
    wait_for(p, n);
    for (unsigned i = 0; i < n; i++)
        good += judge(d, provider, &p[i]);
    mfs_file_remove_tree(dir);
    if (good)
        mfs_doctor_add(
            d, MFS_DOCTOR_OK, CHECK, "%s of %u%s can be logged in to and have the programs",
            good == n ? "all" : MFS_TEXT_COUNT(good, "host"), n, more ? " (the first)" : "");
}

void mfs_doctor_places(struct mfs_doctor *d, const struct mfs_provider *provider,
                       const struct mfs_provider_option *option, uint32_t noptions)
{
    struct place *p = provider->probe ? calloc(PLACES_MOST, sizeof *p) : NULL;
    struct mfs_provider_probe beyond;
    unsigned n = 0;

    if (!p)
        return;
    while (n < PLACES_MOST && !provider->probe(option, noptions, n, &p[n].probe))
        n++;
    if (n)
        ask(d, provider, p, n, n == PLACES_MOST && !provider->probe(option, noptions, n, &beyond));
    free(p);
}
