/* A client without a kernel: how long a walk to a file takes, and whether what it stores is there.
 *
 *   walk_bench STATE-DIR PATH TEXT WALKS
 *
 * Joins the deployment, makes the file at PATH (in directories that exist) with TEXT in it, looks
 * it up WALKS times, and says how many µs one walk took. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "client/client.h"
#include "client/path.h"
#include "cluster/placement.h"

#define TABLE_WAIT (10 * MFS_SEC)

static const struct mfs_ids ids; /* the superuser's */

static int find_paths(struct mfs_paths *paths, const char *state_dir, struct mfs_err *err)
{
    static const struct mfs_conf_option *const groups[] = {mfs_deployment_options, NULL};
    struct mfs_conf *conf = mfs_conf_create(groups);
    int rc = conf ? mfs_conf_set(conf, "state-dir", state_dir, MFS_CONF_ARGV, err)
                  : mfs_err_set(err, -ENOMEM, "out of memory");

    if (!rc)
        rc = mfs_paths_init(paths, conf, err);
    mfs_conf_destroy(conf);
    return rc;
}

static int store_text(struct mfs_vfs *vfs, uint64_t dir, const char *name, const char *text)
{
    const struct mfs_cred cred = {.umask = 022, .in_group = true};
    struct mfs_attr attr;
    struct mfs_file *file;
    bool keep;
    int rc = mfs_vfs_create_open(vfs, dir, name, 0644, O_WRONLY | O_CREAT | O_TRUNC, &cred, &attr,
                                 &file, &keep);

    if (rc < 0)
        return rc;
    rc = (int)mfs_vfs_write(file, text, strlen(text), 0, 0, 0);
    if (rc >= 0)
        rc = mfs_vfs_flush(file, 1);
    mfs_vfs_release(file);
    return rc;
}

/* Splits the path in place: its file is made in the directory before the last slash. */
static int make(struct mfs_vfs *vfs, char *path, const char *text)
{
    char *slash = strrchr(path, '/');
    struct mfs_attr dir = {.ino = MFS_ROOT_INO};
    int rc = 0;

    if (slash) {
        *slash = '\0';
        rc = mfs_path_lookup(vfs, &ids, MFS_ROOT_INO, path, true, &dir);
        *slash = '/';
    }
    return rc < 0 ? rc : store_text(vfs, dir.ino, slash ? slash + 1 : path, text);
}

static int measure(struct mfs_vfs *vfs, const char *path, unsigned walks)
{
    int64_t began = mfs_clock_mono();
    struct mfs_attr attr = {0};
    int rc = 0;

    for (unsigned i = 0; i < walks && !rc; i++)
        rc = mfs_path_lookup(vfs, &ids, MFS_ROOT_INO, path, true, &attr);
    if (!rc)
        printf("%.1f us a walk, %llu bytes\n",
               (double)(mfs_clock_mono() - began) / 1e3 / (walks ? walks : 1),
               (unsigned long long)attr.size);
    return rc;
}

static int run(const struct mfs_paths *paths, char **argv, struct mfs_err *err)
{
    struct mfs_vfs_opts vfs = {0};
    struct mfs_client_opts opts = {
        .paths = paths, .label = "walk_bench", .table_wait = TABLE_WAIT, .vfs = &vfs};
    struct mfs_client *client;
    int rc = mfs_client_create(&client, &opts, err);

    if (rc < 0)
        return rc;
    rc = mfs_client_start(client, 0, err);
    if (!rc) {
        rc = make(mfs_client_vfs(client), argv[2], argv[3]);
        if (!rc)
            rc = measure(mfs_client_vfs(client), argv[2], (unsigned)strtoul(argv[4], NULL, 10));
        if (rc < 0)
            mfs_err_set(err, rc, "%s: %s", argv[2], strerror(-rc));
    }
    mfs_client_stop_waiting(client);
    mfs_client_destroy(client);
    return rc;
}

int main(int argc, char **argv)
{
    static struct mfs_paths paths;
    struct mfs_err err = {0};

    if (argc != 5) {
        fputs("usage: walk_bench STATE-DIR PATH TEXT WALKS\n", stderr);
        return 2;
    }
    mfs_log_set_level(MFS_LOG_WARN);
    if (!find_paths(&paths, argv[1], &err) && !run(&paths, argv, &err))
        return EXIT_SUCCESS;
    fprintf(stderr, "walk_bench: %s\n", err.msg);
    return EXIT_FAILURE;
}
