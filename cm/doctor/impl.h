/* Inside `cm doctor`: what its checks share. Each wait is bounded, and so are all of them together
 * (`until`); what may hang for ever is looked at by a child process. */
#ifndef MFS_CM_DOCTOR_IMPL_H
#define MFS_CM_DOCTOR_IMPL_H

#include <assert.h>

#include "base/clock.h"
#include "host/proc.h"
#include "cm/doctor/doctor.h"
#include "args/paths.h"
#include "cm/state/state.h"
#include "net/auth.h"

#define MFS_DOCTOR_CALL_TIME (1 * MFS_SEC) /* for one answer */
#define MFS_DOCTOR_TIME      (6 * MFS_SEC) /* for all answers of the deployment */

static_assert(MFS_DOCTOR_CALL_TIME < MFS_DOCTOR_TIME, "one answer is a part of all");

/* What is known of a node, in the order of state.node. */
struct mfs_doctor_node {
    char name[MFS_NAME_MAX];
    bool here;     /* it runs on this machine, in a PID name space that we see */
    bool lm_good;  /* its lm runs and answers */
    uint64_t used; /* memory, by partitions that answered */
};

struct mfs_doctor_case {
    struct mfs_doctor *d;
    struct mfs_paths *paths;
    char which[2 * PATH_MAX + MFS_NAME_MAX]; /* " --name …": behind a command that is advised */
    int64_t until;                           /* asking ends (mfs_clock_mono) */

    bool there;     /* there is a state directory */
    bool recorded;  /* `state` is what it holds, else zero */
    bool secret_ok; /* `secret` likewise */
    struct mfs_cm_state state;
    struct mfs_secret secret;

    struct mfs_proc daemon; /* cm, pid 0: none */
    bool answered;          /* cm has answered with `status` */
    struct mfs_status status;
    struct mfs_doctor_node *node; /* state.nnodes of them */
    bool parts_bad;               /* some partition does not answer: mounts wait for it */
};

/* The state directory is looked at first, as the others want to know what it says. */
void mfs_doctor_directory(struct mfs_doctor_case *c);
void mfs_doctor_machine(struct mfs_doctor_case *c);  /* kernel, rights, limits */
void mfs_doctor_cgroup(struct mfs_doctor_case *c);   /* limits of memory */
void mfs_doctor_programs(struct mfs_doctor_case *c); /* redis-server and the module */

/* The machines of a provider's places, by its options. */
void mfs_doctor_places(struct mfs_doctor *d, const struct mfs_provider *provider,
                       const struct mfs_provider_option *option, uint32_t noptions);

/* cm, Local Managers, partitions, mounts, memory; or what is left of a deployment that is dead. */
void mfs_doctor_deployment(struct mfs_doctor_case *c);

/* Parts of that. */
void mfs_doctor_managers(struct mfs_doctor_case *c);
void mfs_doctor_partitions(struct mfs_doctor_case *c);
void mfs_doctor_mounts(struct mfs_doctor_case *c);
void mfs_doctor_damage(struct mfs_doctor_case *c);
void mfs_doctor_remains(struct mfs_doctor_case *c, bool dead);

/* Runs a program until its output, which goes to the file `log` and then to *out with a NUL, has
 * `word` (NULL: to its end), or for so many ns, and kills it. status: as of waitpid(2), may be
 * NULL. 0, or a negative errno when it can't be run. */
int mfs_doctor_run(const char *const *argv, const char *log, const char *word, int64_t time,
                   struct mfs_buf *out, int *status);

/* How long a call may take now: 0 when the time of all is over. */
int64_t mfs_doctor_time(const struct mfs_doctor_case *c);

/* The process in DIR/node-ID/FILE, pid 0 when there is no such file; it may be dead. */
struct mfs_proc mfs_doctor_noted(const struct mfs_doctor_case *c, uint32_t node, const char *file);

/* A path for the shell that reads advice. */
#define MFS_DOCTOR_QUOTED(path) mfs_doctor_quote(path, (char[2 * PATH_MAX]){0}, 2 * PATH_MAX)
const char *mfs_doctor_quote(const char *path, char *out, size_t n);

/* Does a process listen at that UNIX socket? Does not block. */
bool mfs_doctor_listens(const char *path);

#endif
