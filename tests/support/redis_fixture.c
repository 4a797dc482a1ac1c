#include "redis_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "redis_fixture_impl.h"
#include "store/admin/admin.h"
#include "store/admin/module.h"
#include "store/rights.h"
#include "net/proof.h"

int redis_fixture_complain(int rc, const char *what)
{
    fprintf(stderr, "redis fixture: %s: %s\n", what, strerror(-rc));
    return rc;
}

static int free_port(uint32_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;

    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&a, sizeof a) || getsockname(fd, (struct sockaddr *)&a, &len))
        rc = -errno;
    *port = ntohs(a.sin_port);
    close(fd);
    return rc;
}

static void file_name(const struct redis_fixture *f, uint32_t part, const char *suffix, char *out,
                      size_t n)
{
    snprintf(out, n, "%s/%u-%u.%s", f->dir, part, f->server[part].generation, suffix);
}

void redis_fixture_journal(const struct redis_fixture *f, uint32_t part, char *out, size_t n)
{
    file_name(f, part, "journal", out, n);
}

void redis_fixture_socket(const struct redis_fixture *f, uint32_t part, char *out, size_t n)
{
    file_name(f, part, "sock", out, n);
}

/* The module's arguments. */
static void module_args(const struct redis_fixture *f, uint32_t part, bool again, char *out,
                        size_t n)
{
    char path[MFS_UNIXPATH_MAX];

    char keys[2][MFS_MAC_TEXT] = {0};
    const struct mfs_partition *p = &f->table->part[part];
    int len = 0;

    redis_fixture_journal(f, part, path, sizeof path);
    if (f->opts.journal)
        len = snprintf(out, n, " journal \"%s\"%s", path, again ? " replay" : "");
    mfs_proof_key(p->password, keys[0]);
    mfs_proof_key(REDIS_FIXTURE_ADMIN_PASSWORD, keys[1]);
    snprintf(out + len, n - (size_t)len, " at 127.0.0.1 %u key %s %s key %s %s",
             p->port ? p->port : 1, MFS_REDIS_USER, keys[0], MFS_REDIS_ADMIN, keys[1]);
}

static int write_config(const struct redis_fixture *f, uint32_t part, bool again, const char *path)
{
    const struct mfs_partition *p = &f->table->part[part];
    char socket_path[MFS_UNIXPATH_MAX], log[MFS_UNIXPATH_MAX], module[PATH_MAX], text[8192];
    char args[512];
    int n = mfs_module_path(module, sizeof module);

    if (n)
        return n;

    file_name(f, part, "sock", socket_path, sizeof socket_path);
    file_name(f, part, "log", log, sizeof log);
    module_args(f, part, again, args, sizeof args);
    n = snprintf(text, sizeof text,
                 "loadmodule \"%s\"%s\nenable-debug-command yes\nbind 127.0.0.1\nport "
                 "%u\nunixsocket %s\ndir %s\nlogfile %s\n"
                 "save \"\"\nappendonly no\nrepl-diskless-sync-delay 0\nmaxmemory "
                 "%llu\nmaxmemory-policy noeviction\n"
                 "user default off\n"
                 "user %s on >%s ~* " CLIENT_RIGHTS "\n"
                 "user %s on >%s ~* &* +@all\n",
                 module, args, p->port, socket_path, f->dir, log,
                 (unsigned long long)f->opts.maxmemory, MFS_REDIS_USER, p->password,
                 MFS_REDIS_ADMIN, REDIS_FIXTURE_ADMIN_PASSWORD);
    return mfs_file_write(path, text, (size_t)n, 0600);
}

static int spawn_as(struct redis_fixture *f, uint32_t part, bool again)
{
    char config[MFS_UNIXPATH_MAX];
    pid_t parent = getpid(), pid;
    int rc;

    file_name(f, part, "conf", config, sizeof config);
    rc = write_config(f, part, again, config);
    if (rc)
        return rc;
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            execlp("redis-server", "redis-server", config, (char *)NULL);
        _exit(127);
    }
    f->server[part].pid = pid;
    return 0;
}

static int spawn(struct redis_fixture *f, uint32_t part)
{
    return spawn_as(f, part, false);
}

int redis_fixture_open_admin(struct redis_fixture *f, uint32_t part, struct mfs_admin **admin)
{
    int64_t until = mfs_clock_mono() + START_NS;
    char path[MFS_UNIXPATH_MAX];
    struct mfs_err err;
    int rc;

    file_name(f, part, "sock", path, sizeof path);
    for (;;) {
        rc = mfs_admin_open(admin, path, NULL, 0, REDIS_FIXTURE_ADMIN_PASSWORD, START_NS, &err);
        if (!rc)
            return 0;
        if (mfs_clock_mono() > until || waitpid(f->server[part].pid, NULL, WNOHANG) != 0)
            return redis_fixture_complain(rc, err.msg);
        mfs_clock_sleep(2 * MFS_MSEC);
    }
}

int redis_fixture_format(struct redis_fixture *f, uint32_t part)
{
    struct mfs_admin_format how = {f->table->name, part, f->table->nparts, f->table->stripe_size};
    struct mfs_admin *admin;
    struct mfs_err err;
    int rc = redis_fixture_open_admin(f, part, &admin);

    if (rc)
        return rc;
    rc = mfs_admin_format(admin, &how, &err);
    if (rc)
        redis_fixture_complain(rc, err.msg);
    mfs_admin_close(admin);
    return rc;
}

int redis_fixture_launch(struct redis_fixture *f, uint32_t part)
{
    struct mfs_partition *p = &f->table->part[part];
    int rc = 0;

    p->node = REDIS_FIXTURE_NODE;
    snprintf(p->host, sizeof p->host, "127.0.0.1");
    snprintf(p->password, sizeof p->password, "fixture-%u-%u", part, f->server[part].generation);
    if (f->opts.tcp)
        rc = free_port(&p->port);
    else
        file_name(f, part, "sock", p->unix_path, sizeof p->unix_path);
    return rc ? rc : spawn(f, part);
}

int redis_fixture_start(struct redis_fixture **out, const struct redis_fixture_opts *opts)
{
    struct redis_fixture *f = calloc(1, sizeof *f);
    int rc = -ENOMEM;

    *out = NULL;
    if (!f)
        goto out;
    f->opts = *opts;
    f->server = calloc(opts->nparts, sizeof *f->server);
    f->table = mfs_table_new(opts->nparts);
    snprintf(f->dir, sizeof f->dir, "/tmp/mfs-redis-XXXXXX");
    if (!f->server || !f->table)
        goto out;
    if (!mkdtemp(f->dir)) {
        rc = -errno;
        f->dir[0] = 0;
        goto out;
    }
    f->table->epoch = 1;
    f->table->stripe_size = opts->stripe_size ? opts->stripe_size : 1U << 20;
    snprintf(f->table->name, sizeof f->table->name, "fixture");
    rc = 0;
    for (uint32_t i = 0; i < opts->nparts && !rc; i++)
        rc = redis_fixture_launch(f, i);
    for (uint32_t i = 0; i < opts->nparts && !rc; i++)
        rc = redis_fixture_format(f, i);
out:
    if (rc) {
        redis_fixture_complain(rc, "start");
        redis_fixture_stop(f);
    } else {
        *out = f;
    }
    return rc;
}

static void end(pid_t pid)
{
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

void redis_fixture_stop(struct redis_fixture *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; f->server && i < f->opts.nparts; i++)
        end(f->server[i].pid);
    redis_fixture_release(f);
    if (f->dir[0])
        mfs_file_remove_tree(f->dir);
    free(f->old);
    free(f->server);
    free(f->table);
    free(f);
}

struct mfs_table *redis_fixture_table(const struct redis_fixture *f)
{
    return mfs_table_dup(f->table);
}

pid_t redis_fixture_pid(const struct redis_fixture *f, uint32_t part)
{
    return f->server[part].pid;
}

void redis_fixture_kill(struct redis_fixture *f, uint32_t part)
{
    end(f->server[part].pid);
    f->server[part].pid = 0;
}

int redis_fixture_restart(struct redis_fixture *f, uint32_t part)
{
    int rc = spawn(f, part);

    return rc ? rc : redis_fixture_format(f, part);
}

int redis_fixture_revive(struct redis_fixture *f, uint32_t part)
{
    int rc = spawn_as(f, part, true);

    return rc ? rc : redis_fixture_format(f, part);
}

int redis_fixture_leave_behind(struct redis_fixture *f, uint32_t part)
{
    pid_t *old = realloc(f->old, (f->nold + 1) * sizeof *old);

    if (!old)
        return -ENOMEM;
    f->old = old;
    f->old[f->nold++] = f->server[part].pid;
    f->server[part].generation++;
    f->table->epoch++;
    return 0;
}

int redis_fixture_move(struct redis_fixture *f, uint32_t part)
{
    int rc = redis_fixture_leave_behind(f, part);

    if (!rc)
        rc = redis_fixture_launch(f, part);
    return rc ? rc : redis_fixture_format(f, part);
}

void redis_fixture_release(struct redis_fixture *f)
{
    for (size_t i = 0; i < f->nold; i++)
        end(f->old[i]);
    f->nold = 0;
}
