/* lm, the Local Manager: command line, daemon, and away. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args/program.h"
#include "base/clock.h"
#include "base/log.h"
#include "host/own_address.h"
#include "host/proc.h"
#include "base/text.h"
#include "base/trusted_dir.h"
#include "lm/agent/agent.h"
#include "lm/place.h"
#include "lm/secret.h"
#include "net/supervisor.h"

#define FIRST_CONTACT (20 * MFS_SEC) /* with a cm that has started us: it is there */

struct daemon {
    char dir[PATH_MAX]; /* node-ID */
    int lock;           /* held as long as we live: one lm per node */
    int starter;        /* pipe to the process that was started in the foreground, or -1 */
    bool given;         /* the secret was handed over, by cm */
};

static int node_path(const struct daemon *d, const char *name, char path[PATH_MAX])
{
    return mfs_text_format(path, PATH_MAX, "%s/%s", d->dir, name);
}

static int lock_node(struct daemon *d, struct mfs_err *err)
{
    char path[PATH_MAX];
    int rc = mfs_trusted_dir_make(d->dir, err);

    if (rc)
        return rc;
    rc = node_path(d, "lm.lock", path);
    d->lock = rc ? rc : mfs_trusted_open(AT_FDCWD, path, O_RDWR | O_CREAT, 0600);
    if (d->lock < 0)
        return mfs_err_set(err, d->lock, "can't open %s/lm.lock: %s", d->dir, strerror(-d->lock));
    if (flock(d->lock, LOCK_EX | LOCK_NB))
        return mfs_err_set(err, -errno, "another lm runs for this node (%s is locked)", path);
    return 0;
}

/* Forks into the background; the parent waits there until the child can serve or has failed. */
static int go_background(struct daemon *d, struct mfs_err *err)
{
    int fds[2];
    char ok = 0;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) || (pid = fork()) < 0)
        return mfs_err_set(err, -errno, "can't fork: %s", strerror(errno));
    if (pid) {
        close(fds[1]);
        exit(read(fds[0], &ok, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    close(fds[0]);
    d->starter = fds[1];
    setsid();
    return 0;
}

static void detach_output(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

static void release_starter(void *arg)
{
    struct daemon *d = arg;

    if (d->starter < 0)
        return;
    if (write(d->starter, "", 1) == 1)
        detach_output();
    close(d->starter);
    d->starter = -1;
}

/* A cm that has handed over the secret is there: what started us hears whether it has taken us. */
static void started(void *arg)
{
    struct daemon *d = arg;
    char path[PATH_MAX];
    struct mfs_proc self;

    if (!mfs_proc_identify(getpid(), &self) && !node_path(d, "lm.pid", path))
        mfs_proc_save(&self, path);
    if (!d->given)
        release_starter(d);
}

static int open_log(const struct daemon *d, const struct mfs_conf *c, struct mfs_err *err)
{
    enum mfs_log_level level;
    char path[PATH_MAX];
    bool to_stderr = mfs_conf_flag(c, "foreground") && strcmp(mfs_conf_str(c, "log"), "file") != 0;
    int rc = mfs_log_level_parse(mfs_conf_str(c, "log-level"), &level);

    mfs_log_set_format(mfs_conf_str(c, "log-format"));
    if (!rc)
        rc = node_path(d, "lm.log", path);
    if (!rc)
        rc = mfs_log_open("lm", to_stderr ? NULL : path, level);
    return rc ? mfs_err_set(err, rc, "can't open the log: %s", strerror(-rc)) : 0;
}

static void remove_files(const struct daemon *d)
{
    static const char *const names[] = {"lm.pid", "lm.lock"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!node_path(d, names[i], path))
            unlink(path);
    }
}

/* Others reach this node by the address by which it reaches cm, unless another one was given. */
static int find_address(const struct mfs_conf *c, char out[INET6_ADDRSTRLEN], struct mfs_err *err)
{
    const char *cm = mfs_conf_str(c, "cm"), *network = mfs_conf_str(c, "network"), *port;
    char host[128];
    int rc;

    if (mfs_conf_str(c, "address"))
        return 0;
    if (network) {
        rc = mfs_own_address_in(network, out);
        return rc ? mfs_err_set(err, rc,
                                rc == -EINVAL ? "network: %s is no network like 10.1.0.0/16"
                                              : "network: this machine has no address in %s",
                                network)
                  : 0;
    }
    rc = mfs_own_address_split(cm, host, sizeof host, &port);
    if (!rc)
        rc = mfs_own_address(host, out);
    return rc ? mfs_err_set(err, rc, "no way to cm at %s: %s", cm, strerror(-rc)) : 0;
}

/* `secret`: what was handed over, or NULL. */
static int serve(const struct mfs_conf *c, const struct mfs_paths *paths, const char *secret,
                 struct mfs_err *err)
{
    char state[PATH_MAX], address[INET6_ADDRSTRLEN];
    struct mfs_agent_opts opts = {.name = paths->name,
                                  .node = (uint32_t)mfs_conf_uint(c, "node"),
                                  .state_dir = paths->dir,
                                  .dump_dir = mfs_conf_str(c, "dump-dir"),
                                  .cm = mfs_conf_str(c, "cm"),
                                  .control = mfs_conf_flag(c, "clean"),
                                  .iface = mfs_conf_str(c, "interface"),
                                  .log_format = mfs_conf_str(c, "log-format"),
                                  .metrics = (uint32_t)mfs_conf_uint(c, "metrics"),
                                  .interval = (int64_t)mfs_conf_uint(c, "interval") * MFS_MSEC,
                                  .grace = (int64_t)mfs_conf_uint(c, "grace") * MFS_SEC};
    struct daemon d = {.lock = -1, .starter = -1, .given = secret != NULL};
    int rc;

    rc = find_address(c, address, err);
    if (rc)
        return rc;
    opts.address = mfs_conf_str(c, "address") ? mfs_conf_str(c, "address") : address;
    opts.first_contact = secret ? FIRST_CONTACT : 0;
    opts.joined = secret ? release_starter : NULL;
    rc = mfs_paths_node(paths, opts.node, "", d.dir);
    if (rc)
        return mfs_err_set(err, rc, "%s: path too long", paths->dir);
    if (!mfs_conf_flag(c, "foreground"))
        rc = go_background(&d, err);
    if (!rc)
        rc = lock_node(&d, err);
    if (!rc && secret)
        rc = mfs_place_take(paths, opts.node, secret, err);
    if (!rc)
        rc = open_log(&d, c, err);
    if (rc)
        return rc;
    mfs_proc_prefer();
    mfs_proc_raise_files();
    mfs_info("lm", "version %s, node %u of \"%s\" at %s", MEMEFS_VERSION, opts.node, opts.name,
             opts.address);
    rc = mfs_agent_run(&opts, started, &d, err);
    if (rc)
        mfs_error("lm", "%s", err->msg);
    remove_files(&d);
    /* What has ended in order has no state; what could not must be found by the next one. */
    if (mfs_conf_flag(c, "clean") && !node_path(&d, "lm.json", state) && access(state, F_OK))
        mfs_place_leave(paths, opts.node);
    return rc;
}

static int check_given(const struct mfs_conf *c, struct mfs_err *err)
{
    static const char *const needed[] = {"node", "cm"};

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!mfs_conf_given(c, needed[i]))
            return mfs_err_set(err, -EINVAL, "--%s is missing, see lm --help", needed[i]);
    }
    return 0;
}

static int run(struct mfs_verb_call *call, struct mfs_err *err)
{
    bool given = !strcmp(mfs_conf_str(call->conf, "secret"), "given");
    char secret[MFS_LM_SECRET_MAX];
    int rc, fd;

    /* The caller may have a strict one; mount points are for every user, and all that is not is
     * made with a mode of its own. */
    umask(022);
    mfs_supervisor_init();
    rc = check_given(call->conf, err);
    if (!rc && given)
        rc = mfs_lm_secret_given(secret, err);
    if (!rc) {
        fd = mfs_paths_open(&call->paths, given ? MFS_TRUSTED_MAKE : 0, err);
        if (fd < 0)
            return fd;
        close(fd);
        rc = serve(call->conf, &call->paths, given ? secret : NULL, err);
        explicit_bzero(secret, sizeof secret);
    }
    call->usage = rc == -EINVAL;
    return rc;
}

static const struct mfs_conf_option options[] = {
    {"secret", MFS_CONF_CHOICE, "file|given", "file", 0, 0,
     "where the deployment's secret is: in the state directory, or handed over, in MEMEFS_SECRET "
     "or "
     "as a line on standard input, and put there"},
    {"node", MFS_CONF_UINT, "ID", NULL, 0, 65534, "this node's number"},
    {"address", MFS_CONF_STRING, "ADDR", NULL, 1, 63,
     "this node's address, numeric (default: the one by which it reaches cm)"},
    {"network", MFS_CONF_STRING, "CIDR", NULL, 1, 63,
     "this node's address is the one that it has in this network, e.g. 10.1.0.0/16"},
    {"cm", MFS_CONF_STRING, "HOST:PORT", NULL, 1, 127, "where the Central Manager listens"},
    {"dump-dir", MFS_CONF_STRING, "DIR", "/var/tmp", 1, 4000,
     "where dumps of partitions go while they move cold; a directory is made in it"},
    {"interface", MFS_CONF_STRING, "NAME", NULL, 1, 15,
     "the network interface that is measured (default: the one with --address)"},
    {"interval", MFS_CONF_UINT, "MS", "1000", 100, 60000, "time between two measurements"},
    {"grace", MFS_CONF_UINT, "SECONDS", "25", 0, 86400,
     "from SIGTERM to the end, at most: what is here moves to other nodes meanwhile"},
    {"foreground", MFS_CONF_FLAG, NULL, NULL, 0, 0, "do not fork, log to stderr"},
    {"log", MFS_CONF_CHOICE, "auto|file", "auto", 0, 0,
     "file: log to lm.log in the node's directory also with --foreground"},
    {"clean", MFS_CONF_FLAG, NULL, NULL, 0, 0,
     "at the end remove the node's directory, and with the machine's last node what is left"},
    {"metrics", MFS_CONF_UINT, "PORT", NULL, 1, 65535,
     "serve figures over HTTP at --address and this port, or the next one that is free of 16 "
     "(default: not)"},
    {"log-level", MFS_CONF_CHOICE, "error|warn|info|debug", "info", 0, 0, "how much to log"},
    {"log-format", MFS_CONF_CHOICE, MFS_LOG_FORMATS, "text", 0, 0,
     "lines of the log, and of the mount's: for people, or a JSON object each"},
    {0}};

static const struct mfs_verb verb = {
    .name = "",
    .about =
        "The Local Manager of one node of a MemEFS deployment: runs its redis-servers and its\n"
        "file system client. Started by cm. It needs --node and --cm.",
    .options = MFS_OPTIONS(mfs_deployment_options, options),
    .run = run};

static const struct mfs_program program = {.name = "lm",
                                           .verbs = (const struct mfs_verb *const[]){&verb, NULL}};

int main(int argc, char **argv)
{
    return mfs_program_run(&program, argc, argv);
}
