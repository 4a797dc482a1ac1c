/* The redis-server that would be started, and whether it takes our module: it is asked for its
 * version, and run for a moment, on a UNIX socket of its own. */
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
#include "store/admin/module.h"

#define RUN_TIME     (3 * MFS_SEC)
#define STEP         (5 * MFS_MSEC)
#define OUTPUT_MAX   (1U << 20)
#define VERSION_WANT 7 /* functions */
#define SERVER       "redis-server"
#define READY        "eady to accept connections" /* with a capital from 7.2 on */
#define INSTALL      "scripts/setup, or apt install redis-server"

/* Replaces *out by what the program has written so far, with a NUL. */
static int read_output(const char *path, struct mfs_buf *out)
{
    int rc;

    mfs_buf_clear(out);
    rc = mfs_file_read(path, OUTPUT_MAX, out);
    return rc ? rc : mfs_buf_append(out, "", 1);
}

int mfs_doctor_run(const char *const *argv, const char *log, const char *word, int64_t time,
                   struct mfs_buf *out, int *status)
{
    int64_t until = mfs_clock_mono() + time;
    pid_t pid = mfs_proc_spawn(argv, log);
    bool ended = false;
    int rc = 0;

    if (pid < 0)
        return pid;
    while (!ended && !rc && mfs_clock_mono() < until) {
        ended = waitpid(pid, status, WNOHANG) == pid;
        rc = read_output(log, out);
        if (!rc && word && strstr(mfs_buf_data(out), word))
            break;
        if (!ended)
            mfs_clock_sleep(STEP);
    }
    if (!ended) {
        kill(pid, SIGKILL);
        waitpid(pid, status, 0);
    }
    return rc;
}

/* "Redis server v=7.0.15 sha=…" */
static bool judge_version(struct mfs_doctor *d, const char *text)
{
    const char *at = strstr(text, " v=");
    unsigned major = at ? (unsigned)strtoul(at + 3, NULL, 10) : 0;
    int len = at ? (int)strcspn(at + 3, " \n") : 0;

    if (major >= VERSION_WANT) {
        mfs_doctor_add(d, MFS_DOCTOR_OK, SERVER, "version %.*s", len, at + 3);
        return true;
    }
    mfs_doctor_add(d, MFS_DOCTOR_FAIL, SERVER, "version %.*s, and %d is needed, for its functions",
                   len ? len : 7, len ? at + 3 : "unknown", VERSION_WANT);
    mfs_doctor_advise(d, INSTALL);
    return false;
}

static bool check_server(struct mfs_doctor *d, const char *dir)
{
    static const char *const argv[] = {SERVER, "--version", NULL};
    char log[PATH_MAX];
    struct mfs_buf out;
    int rc = mfs_text_format(log, sizeof log, "%s/version", dir);
    bool good = false;

    mfs_buf_init(&out);
    if (!rc)
        rc = mfs_doctor_run(argv, log, "\n", RUN_TIME, &out, NULL);
    if (!rc) {
        good = judge_version(d, mfs_buf_data(&out));
    } else {
        mfs_doctor_add(d, MFS_DOCTOR_FAIL, SERVER, "%s",
                       rc == -ENOENT ? "there is none in PATH" : strerror(-rc));
        mfs_doctor_advise(d, INSTALL);
    }
    mfs_buf_fini(&out);
    return good;
}

/* The line of redis' log that tells of it: "Module … failed to load: …". */
static void judge_module(struct mfs_doctor *d, const char *module, const char *text)
{
    static const char check[] = "module";
    const char *at = strstr(text, "odule "), *line = at;

    if (strstr(text, READY)) {
        mfs_doctor_add(d, MFS_DOCTOR_OK, check, SERVER " loads %s", module);
        return;
    }
    while (line && line > text && line[-1] != '\n')
        line--;
    mfs_doctor_add(d, MFS_DOCTOR_FAIL, check, SERVER " does not load %s: %.*s", module,
                   line ? (int)strcspn(line, "\n") : 20, line ? line : "it does not start");
    mfs_doctor_advise(d, "build or install all of MemEFS anew (scripts/build), for this machine");
}

static void check_module(struct mfs_doctor *d, const char *dir)
{
    char module[PATH_MAX], socket[PATH_MAX], log[PATH_MAX];
    const char *const argv[] = {
        SERVER, "--port",       "0",  "--unixsocket", socket, "--dir",        dir,    "--save",
        "",     "--appendonly", "no", "--logfile",    "",     "--loadmodule", module, NULL};
    struct mfs_buf out;
    int rc = mfs_module_path(module, sizeof module);

    if (rc) {
        mfs_doctor_add(d, MFS_DOCTOR_FAIL, "module",
                       "no memefs-partition.so beside this program, nor where it is installed");
        mfs_doctor_advise(d, "scripts/build, or install all of MemEFS");
        return;
    }
    mfs_buf_init(&out);
    rc = mfs_text_format(socket, sizeof socket, "%s/socket", dir);
    if (!rc)
        rc = mfs_text_format(log, sizeof log, "%s/module", dir);
    if (!rc)
        rc = mfs_doctor_run(argv, log, READY, RUN_TIME, &out, NULL);
    if (!rc)
        judge_module(d, module, mfs_buf_data(&out));
    else
        mfs_doctor_add(d, MFS_DOCTOR_FAIL, "module", "%s", strerror(-rc));
    mfs_buf_fini(&out);
}

void mfs_doctor_programs(struct mfs_doctor_case *c)
{
    char dir[] = "/tmp/memefs-doctor-XXXXXX";

    if (!mkdtemp(dir)) {
        mfs_doctor_add(c->d, MFS_DOCTOR_WARN, SERVER, "not tried: /tmp: %s", strerror(errno));
        mfs_doctor_advise(c->d, "make /tmp writable");
        return;
    }
    if (check_server(c->d, dir))
        check_module(c->d, dir);
    mfs_file_remove_tree(dir);
}
