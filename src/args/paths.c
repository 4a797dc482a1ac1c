/* The state directory: chosen by the options, looked at by mfs_paths_open, which resolves symbolic
 * links on the way and has all paths begin with the result. Everything below it has a name of fixed
 * length at most, so that a directory that is not too long leaves room for all, sockets too. */
#include "args/paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "base/trusted_dir.h"

/* The longest name below the directory that must fit into a UNIX socket's address. */
#define LONGEST_SOCKET "/node-65535/redis-65535.sock"
#define SUN_PATH_MAX   sizeof(((struct sockaddr_un *)NULL)->sun_path)

const struct mfs_conf_option mfs_deployment_options[] = {
    {"name", MFS_CONF_STRING, "NAME", "memefs", 1, MFS_DEPLOYMENT_NAME_MAX - 1,
     "the deployment's name"},
    {"state-dir", MFS_CONF_STRING, "DIR", NULL, 1, 4000,
     "where it keeps its state (default: /run/memefs/NAME; without root "
     "$XDG_RUNTIME_DIR/memefs/NAME "
     "or /dev/shm/memefs-UID/NAME)"},
    {0}};

static int check_name(const char *name, struct mfs_err *err)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    if (!*name || *name == '.' || *name == '-' || name[strspn(name, good)] ||
        strlen(name) >= MFS_DEPLOYMENT_NAME_MAX)
        return mfs_err_set(err, -EINVAL,
                           "name: \"%s\" is not 1 to %d letters, digits, dots, dashes or "
                           "underscores, beginning with a letter or digit",
                           name, MFS_DEPLOYMENT_NAME_MAX - 1);
    return 0;
}

/* The paths of what is in p->dir. */
static int fill(struct mfs_paths *p)
{
    const struct {
        char *out;
        const char *file;
    } files[] = {{p->secret, "secret"},
                 {p->state, "cm.json"},
                 {p->address, "cm.addr"},
                 {p->pid, "cm.pid"},
                 {p->log, "cm.log"},
                 {p->events, "events.jsonl"},
                 {p->history, "history"},
                 {p->token, "token"},
                 {p->token_write, "token-write"},
                 {p->failure, "failure"},
                 {p->old_events, "events.jsonl.1"}};
    int rc = strlen(p->dir) + sizeof LONGEST_SOCKET > SUN_PATH_MAX ? -ENAMETOOLONG : 0;

    for (size_t i = 0; i < sizeof files / sizeof *files && !rc; i++)
        rc = mfs_text_format(files[i].out, PATH_MAX, "%s/%s", p->dir, files[i].file);
    return rc;
}

static int say_filled(int rc, struct mfs_err *err)
{
    if (rc == -ENAMETOOLONG)
        return mfs_err_set(err, rc,
                           "state-dir: a path of more than %zu bytes leaves no room for sockets",
                           SUN_PATH_MAX - sizeof LONGEST_SOCKET);
    return rc ? mfs_err_set(err, rc, "state-dir: %s", strerror(-rc)) : 0;
}

static bool is_ours(const char *dir)
{
    struct stat st;

    return !stat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* Is a deployment of that name in `base`, whose directory that makes? */
static bool is_in(const char *base, const char *name, char dir[PATH_MAX])
{
    char secret[PATH_MAX];

    return !mfs_text_format(dir, PATH_MAX, "%s/%s", base, name) &&
           !mfs_text_format(secret, sizeof secret, "%s/secret", dir) && !access(secret, F_OK);
}

/* The directories that a deployment's may be in by default, the best one first; "" behind the last.
 */
static void find_places(char places[4][PATH_MAX / 2])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    size_t n = 0, len = runtime ? strlen(runtime) : 0;
    char dir[64];

    memset(places, 0, 4 * sizeof places[0]);
    if (!geteuid()) {
        mfs_text_copy(places[0], sizeof places[0], MFS_STATE_DIR_ROOT);
        return;
    }
    while (len > 1 && runtime[len - 1] == '/')
        len--;
    if (runtime && runtime[0] == '/' && is_ours(runtime) &&
        !mfs_text_format(places[n], sizeof places[n], "%.*s/memefs", (int)len, runtime))
        n++;
    snprintf(dir, sizeof dir, "/run/user/%u", geteuid());
    if (is_ours(dir))
        mfs_text_format(places[n++], sizeof places[0], "%s/memefs", dir);
    mfs_text_format(places[n], sizeof places[0], MFS_STATE_DIR_USER "-%u", geteuid());
}

/* Where it is, else in the first place that there is. Programs of one user may have different
 * environments (a session, a batch job), and are to find the same: so the last place, which all of
 * them know, is looked at first. */
static int choose_default(const char *name, char out[PATH_MAX])
{
    char places[4][PATH_MAX / 2];

    find_places(places);
    for (size_t i = sizeof places / sizeof *places; i-- > 0;)
        if (places[i][0] && is_in(places[i], name, out))
            return 0;
    return mfs_text_format(out, PATH_MAX, "%s/%s", places[0], name);
}

/* All that is in one place. */
static int each_in(const char *place, int (*each)(void *arg, struct mfs_paths *p), void *arg)
{
    DIR *d = opendir(place);
    struct mfs_paths p = {0};
    struct dirent *entry;
    int rc = 0;

    while (d && !rc && (entry = readdir(d))) {
        if (check_name(entry->d_name, NULL) ||
            mfs_text_format(p.dir, sizeof p.dir, "%s/%s", place, entry->d_name))
            continue;
        mfs_text_copy(p.name, sizeof p.name, entry->d_name);
        if (is_ours(p.dir) && !fill(&p))
            rc = each(arg, &p);
    }
    if (d)
        closedir(d);
    return rc;
}

int mfs_paths_each(int (*each)(void *arg, struct mfs_paths *p), void *arg)
{
    char places[4][PATH_MAX / 2];
    int rc = 0;

    find_places(places);
    for (size_t i = 0; places[i][0] && !rc; i++)
        if (!i || strcmp(places[i], places[i - 1]) != 0)
            rc = each_in(places[i], each, arg);
    return rc;
}

int mfs_paths_choose(struct mfs_paths *p, const char *name, const char *dir, struct mfs_err *err)
{
    int rc = check_name(name, err);

    memset(p, 0, sizeof *p);
    if (rc)
        return rc;
    mfs_text_copy(p->name, sizeof p->name, name);
    if (dir)
        rc = mfs_file_absolute(dir, p->dir, sizeof p->dir);
    else
        rc = choose_default(p->name, p->dir);
    return say_filled(rc ? rc : fill(p), err);
}

int mfs_paths_init(struct mfs_paths *p, const struct mfs_conf *conf, struct mfs_err *err)
{
    return mfs_paths_choose(p, mfs_conf_str(conf, "name"), mfs_conf_str(conf, "state-dir"), err);
}

int mfs_paths_open(struct mfs_paths *p, unsigned flags, struct mfs_err *err)
{
    int fd = mfs_trusted_dir_open(p->dir, flags, p->dir, err), rc;

    if (fd < 0 && fd != -ENOENT)
        return mfs_err_prefix(err, "state-dir");
    rc = say_filled(fill(p), err);
    if (rc && fd >= 0)
        close(fd);
    return rc ? rc : fd;
}

int mfs_paths_trust(struct mfs_paths *p, struct mfs_err *err)
{
    int fd = mfs_paths_open(p, 0, err);

    if (fd >= 0)
        close(fd);
    return fd >= 0 || fd == -ENOENT ? 0 : fd;
}

int mfs_paths_check(const struct mfs_paths *p, struct mfs_err *err)
{
    int fd = mfs_trusted_dir_open(p->dir, 0, NULL, err);

    if (fd < 0 && fd != -ENOENT && fd != -EACCES)
        return fd;
    if (fd >= 0)
        close(fd);
    if (access(p->secret, R_OK) == 0)
        return 0;
    return mfs_err_set(err, -errno,
                       "%s: %s; is the deployment running (cm start), and are --name and "
                       "--state-dir its own?",
                       p->secret, strerror(errno));
}

int mfs_paths_node(const struct mfs_paths *p, uint32_t node, const char *file, char out[PATH_MAX])
{
    return mfs_text_format(out, PATH_MAX, *file ? "%s/node-%u/%s" : "%s/node-%u%s", p->dir, node,
                           file);
}

int mfs_paths_start(const struct mfs_paths *p, uint32_t node, const char *what, char out[PATH_MAX])
{
    return mfs_text_format(out, PATH_MAX, "%s/start-%u.%s", p->dir, node, what);
}
