#include "cli/stage_nodes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/mount_files.h"
#include "host/own_address.h"
#include "host/proc.h"
#include "proto/messages.h"

#define LAUNCH "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 {host}"
#define HOST   "{host}"
#define NODE   "{node}"

/* A name that a shell takes for one word, and so does the next shell. */
static bool is_plain(const char *name)
{
    return *name && *name != '-' &&
           !name[strspn(name,
                        "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-")];
}

static int refuse(const char *what, const char *name, struct mfs_err *err)
{
    char plain[PATH_MAX];

    mfs_text_plain(plain, sizeof plain, name);
    return mfs_err_set(err, -EINVAL,
                       "--nodes, --launch: the %s %s has characters that a shell on the way to a "
                       "node may change: letters, digits and any of ./:_- will do",
                       what, plain);
}

/* "PROGRAM stage-in --worker". A launcher has it go through a shell here and one there, and nobody
 * knows how many more; what is started here goes through one. */
static int put_worker(struct mfs_buf *to, const char *verb, bool launched, struct mfs_err *err)
{
    char program[PATH_MAX], quoted[2 * PATH_MAX];
    int rc = mfs_proc_sibling("memefs", program, sizeof program);

    if (!rc && launched && !is_plain(program))
        return refuse("program's path", program, err);
    if (!rc)
        rc = mfs_text_quote(quoted, sizeof quoted, program);
    return rc ? rc : mfs_buf_printf(to, "%s %s --worker", quoted, verb);
}

static int put_launch(struct mfs_buf *to, const char *launch, const char *host, const char *node,
                      struct mfs_err *err)
{
    int rc = 0;

    if (strstr(launch, HOST) && !is_plain(host))
        return refuse("address", host, err);
    if (strstr(launch, NODE) && !is_plain(node))
        return refuse("node's name", node, err);
    while (!rc && *launch) {
        bool is_host = !strncmp(launch, HOST, strlen(HOST)),
             is_node = !strncmp(launch, NODE, strlen(NODE));

        rc = is_host   ? mfs_buf_append(to, host, strlen(host))
             : is_node ? mfs_buf_append(to, node, strlen(node))
                       : mfs_buf_append(to, launch, 1);
        launch += is_host ? strlen(HOST) : is_node ? strlen(NODE) : 1;
    }
    return rc ? rc : mfs_buf_append(to, " ", 1);
}

/* `launch` NULL: on this machine. */
static int add(struct mfs_stage_nodes *nodes, const char *launch, const struct mfs_mount *m,
               const char *verb, struct mfs_err *err)
{
    struct mfs_stage_node *longer =
        realloc(nodes->node, ((size_t)nodes->n + 1) * sizeof *nodes->node);
    struct mfs_stage_node *node;
    struct mfs_buf command;
    int rc;

    if (!longer)
        return mfs_err_set(err, -ENOMEM, "out of memory");
    nodes->node = longer;
    node = &nodes->node[nodes->n++];
    mfs_buf_init(&command);
    rc = launch ? put_launch(&command, launch, m->host, m->node, err)
                : mfs_buf_printf(&command, "exec ");
    if (!rc)
        rc = put_worker(&command, verb, launch != NULL, err);
    if (!rc)
        rc = mfs_buf_append(&command, "", 1);
    *node = (struct mfs_stage_node){.name = strdup(m->node),
                                    .command = rc ? NULL : strdup(mfs_buf_data(&command)),
                                    .root = strdup(m->path)};
    mfs_buf_fini(&command);
    if (!rc && (!node->name || !node->command || !node->root))
        rc = -ENOMEM;
    return rc && !err->code ? mfs_err_set(err, rc, "%s", strerror(-rc)) : rc;
}

void mfs_stage_nodes_fini(struct mfs_stage_nodes *nodes)
{
    for (uint32_t i = 0; i < nodes->n; i++) {
        free(nodes->node[i].name);
        free(nodes->node[i].command);
        free(nodes->node[i].root);
    }
    free(nodes->node);
    free((char *)nodes->root);
    *nodes = (struct mfs_stage_nodes){0};
}

/* ---- which ----------------------------------------------------------------------------------- */

static bool is_named(const char *which, const struct mfs_mount *m)
{
    const char *const names[] = {m->node, m->host};

    if (!which || !strcmp(which, "all"))
        return true;
    for (const char *at = which; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strlen(names[i]) == len && !strncmp(at, names[i], len))
                return true;
        at += len;
    }
    return false;
}

/* The first of the names that is no node's, in out[n]; false: each is one's. */
static bool is_wrong(const char *which, const struct mfs_mounts *all, char *out, size_t n)
{
    for (const char *at = which && strcmp(which, "all") != 0 ? which : ""; *at;
         at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        bool known = false;

        snprintf(out, n, "%.*s", (int)len, at);
        for (uint32_t i = 0; i < all->n && !known; i++)
            known = is_named(out, &all->mount[i]);
        if (!known)
            return true;
        at += len;
    }
    return false;
}

/* A node may have several mounts: one at the same place as here goes first. */
static const struct mfs_mount *better(const struct mfs_mount *a, const struct mfs_mount *b,
                                      const char *here)
{
    if (!a || (strcmp(a->path, here) != 0 && !strcmp(b->path, here)))
        return b;
    return a;
}

static const struct mfs_mount *mount_of(const struct mfs_mounts *all, uint32_t i, const char *here)
{
    const struct mfs_mount *best = NULL;

    for (uint32_t k = 0; k < all->n; k++) {
        const struct mfs_mount *m = &all->mount[k];

        if (strcmp(m->node, all->mount[i].node) != 0 || *m->path != '/' || !m->connected ||
            !m->ready)
            continue;
        if (k < i)
            return NULL; /* the node was there already */
        best = better(best, m, here);
    }
    return best;
}

static bool is_here(const char *host)
{
    char own[INET6_ADDRSTRLEN];

    return mfs_own_address_is_loopback(host) || (!mfs_own_address(host, own) && !strcmp(own, host));
}

static int add_all(struct mfs_stage_nodes *nodes, const struct mfs_mounts *all, const char *which,
                   const char *launch, const char *here, const char *verb, struct mfs_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; !rc && i < all->n; i++) {
        const struct mfs_mount *m = mount_of(all, i, here);

        if (m && is_named(which, m))
            rc = add(nodes, is_here(m->host) ? NULL : launch, m, verb, err);
    }
    return rc;
}

static int ask(const struct mfs_mount_files *files, struct mfs_mounts *all, struct mfs_err *err)
{
    struct mfs_buf text;
    int rc;

    mfs_buf_init(&text);
    rc = mfs_mount_files_read(files, "clients.json", &text, err);
    if (rc == -EACCES || rc == -EPERM)
        mfs_err_set(err, rc,
                    "%s: only its owner and root see which nodes have a mount; or give --launch "
                    "with what starts on all nodes by itself, as srun does",
                    files->mount);
    if (!rc)
        rc = mfs_schema_decode(&mfs_mounts_schema, mfs_buf_data(&text), mfs_buf_len(&text), all,
                               err);
    if (!rc && (all->told.stale || all->told.nothing))
        rc = mfs_err_set(err, -EAGAIN,
                         "%s: cm, or this node's lm, does not answer, so which nodes have a mount "
                         "is not known: \"cm status\" tells more",
                         files->mount);
    mfs_buf_fini(&text);
    return rc;
}

static int find(struct mfs_stage_nodes *nodes, const struct mfs_mount_files *files,
                const char *which, const char *launch, const char *verb, struct mfs_err *err)
{
    struct mfs_mounts all = {0};
    char wrong[MFS_NAME_MAX];
    int rc = ask(files, &all, err);

    if (rc)
        return rc;
    if (is_wrong(which, &all, wrong, sizeof wrong))
        rc = mfs_err_set(err, -ENOENT,
                         "--nodes: no node %s has a mount; \"cm clients\" lists those that have",
                         wrong);
    else
        rc = add_all(nodes, &all, which, launch, files->mount, verb, err);
    if (!rc && !nodes->n)
        rc = mfs_err_set(err, -ENOENT, "--nodes: no node has a mount that answers");
    mfs_schema_clear(&mfs_mounts_schema, &all);
    return rc;
}

static int find_of_mount(struct mfs_stage_nodes *nodes, const char *which, const char *launch,
                         const char *path, const char *verb, struct mfs_err *err)
{
    struct mfs_mount_files files;
    int rc = mfs_mount_files_open(path, &files, err);

    if (rc)
        return rc;
    nodes->root = strdup(files.mount);
    rc = nodes->root ? find(nodes, &files, which, launch, verb, err)
                     : mfs_err_set(err, -ENOMEM, "out of memory");
    mfs_mount_files_close(&files);
    return rc;
}

static int take_launcher(struct mfs_stage_nodes *nodes, const char *launch, const char *verb,
                         struct mfs_err *err)
{
    const struct mfs_mount all = {.node = "--launch"}; /* mounted where it is here */
    int rc = add(nodes, launch, &all, verb, err);

    if (rc)
        return rc;
    nodes->node[0].many = true;
    nodes->root = strdup("");
    return nodes->root ? 0 : mfs_err_set(err, -ENOMEM, "out of memory");
}

int mfs_stage_nodes_find(struct mfs_stage_nodes *nodes, const char *which, const char *launch,
                         const char *path, const char *verb, struct mfs_err *err)
{
    bool each = !launch || strstr(launch, HOST) || strstr(launch, NODE);
    int rc;

    if (!each && which && strcmp(which, "all") != 0)
        return mfs_err_set(err, -EINVAL,
                           "--nodes %s: --launch has no {host} or {node}, so that it chooses the "
                           "nodes",
                           which);
    rc = each ? find_of_mount(nodes, which, launch ? launch : LAUNCH, path, verb, err)
              : take_launcher(nodes, launch, verb, err);
    if (rc)
        mfs_stage_nodes_fini(nodes);
    return rc;
}
