/* What the library keeps once per process: how often it was forked, which numbers its connections
 * have, the log, and each thread's last error. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto/secure.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text.h"
#include "lib/lib.h"

/* --- forks ------------------------------------------------------------------------------------ */

static atomic_uint forks;
static pthread_mutex_t instances_lock = PTHREAD_MUTEX_INITIALIZER; /* guards instances; a leaf */

/* A child that finds the lock taken has no thread that would give it back. */
static void forks_now(void)
{
    pthread_mutex_lock(&instances_lock);
}

static void forked_here(void)
{
    pthread_mutex_unlock(&instances_lock);
}

static void forked(void)
{
    pthread_mutex_unlock(&instances_lock);
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

/* With the library; a program that has unloaded it has no connections. */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(forks_now, forked_here, forked);
}

__attribute__((destructor)) static void leave(void)
{
    mfs_secure_thread_over();
}

unsigned mfs_lib_forks(void)
{
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

int mfs_lib_enter(const struct memefs *fs)
{
    if (fs == NULL)
        return -EINVAL;
    return fs->forks == mfs_lib_forks() ? 0 : -EBADF;
}

int mfs_lib_enter_file(const struct memefs_file *file)
{
    return file != NULL ? mfs_lib_enter(file->fs) : -EINVAL;
}

/* --- connections ------------------------------------------------------------------------------ */

#define INSTANCES 4096U

static unsigned char instances[INSTANCES];

int mfs_lib_instance_get(unsigned *instance)
{
    unsigned i = 1; /* 0 is what a program says that has one connection only */

    pthread_mutex_lock(&instances_lock);
    while (i < INSTANCES && instances[i])
        i++;
    if (i < INSTANCES)
        instances[i] = 1;
    pthread_mutex_unlock(&instances_lock);
    *instance = i;
    return i < INSTANCES ? 0 : -EMFILE;
}

void mfs_lib_instance_put(unsigned instance)
{
    pthread_mutex_lock(&instances_lock);
    instances[instance] = 0;
    pthread_mutex_unlock(&instances_lock);
}

/* --- the log ---------------------------------------------------------------------------------- */

static atomic_bool log_chosen;

void mfs_lib_quiet(void)
{
    if (!atomic_exchange(&log_chosen, true))
        mfs_log_set_level(MFS_LOG_NONE);
}

int memefs_log(const char *level, const char *path)
{
    enum mfs_log_level l = MFS_LOG_NONE;
    int rc = level != NULL ? mfs_log_level_parse(level, &l) : 0;

    if (rc == 0) {
        atomic_store(&log_chosen, true);
        rc = mfs_log_open("libmemefs", path, l);
    }
    return (int)mfs_lib_end(rc, "log", rc == -EINVAL ? level : path);
}

/* --- errors ----------------------------------------------------------------------------------- */

static _Thread_local struct {
    int code;
    const char *what;
    char path[160];
    char text[MFS_ERR_MSG_MAX];
} last;

int64_t mfs_lib_end(int64_t rc, const char *what, const char *path)
{
    if (rc == -ESTALE && path != NULL)
        rc = -ENOENT;
    if (rc < 0) {
        last.code = (int)rc;
        last.what = what;
        last.text[0] = '\0';
        snprintf(last.path, sizeof last.path, "%s", path != NULL ? path : "");
    }
    return rc;
}

int mfs_lib_end_said(int rc, const struct mfs_err *err)
{
    if (rc < 0) {
        last.code = rc;
        last.what = "";
        snprintf(last.text, sizeof last.text, "%s", err->code != 0 ? err->msg : strerror(-rc));
    }
    return rc;
}

const char *memefs_error(void)
{
    char why[128];

    if (last.code != 0 && last.text[0] == '\0')
        snprintf(last.text, sizeof last.text, "%s%s%s: %s", last.what, last.path[0] ? ": " : "",
                 last.path, strerror_r(-last.code, why, sizeof why));
    return last.text;
}

void memefs_free(void *p)
{
    free(p);
}

const char *memefs_version(void)
{
    return MEMEFS_VERSION;
}
