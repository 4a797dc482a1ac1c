/* The exec provider: nodes are started by a command of the operator's, which runs the lm there in
 * whatever way: in a network namespace, by ssh, as a job step of a scheduler. The command is the
 * shell's, with these filled in:
 *
 *   {lm}       the Local Manager's whole command line, quoted for the shell
 *   {node}     the node's index, {name} its name, {address} its address
 *
 * It must stay until the lm has ended, as its end is taken for that. Nodes see the state directory
 * at the same path: the deployment's secret is there. */
#include "cm/provider/provider.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text.h"

static int append_quoted(struct mfs_buf *out, const char *const *argv)
{
    char word[4 * PATH_MAX];
    int rc = 0;

    for (size_t i = 0; argv[i] && !rc; i++) {
        rc = mfs_text_quote(word, sizeof word, argv[i]);
        if (!rc)
            rc = mfs_buf_printf(out, i ? " %s" : "%s", word);
    }
    return rc;
}

/* Appends what stands for the mark at the beginning of *at and moves on behind it; any other
 * character stands for itself. */
static int append_next(struct mfs_buf *out, const char **at, const struct mfs_cm_node *node,
                       const struct mfs_lm_command *lm)
{
    static const char *const marks[] = {"{lm}", "{node}", "{name}", "{address}"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (strncmp(*at, marks[i], strlen(marks[i])))
            continue;
        *at += strlen(marks[i]);
        switch (i) {
        case 0:
            return append_quoted(out, lm->argv);
        case 1:
            return mfs_buf_printf(out, "%u", node->slot);
        case 2:
            return mfs_buf_printf(out, "%s", node->name);
        default:
            return mfs_buf_printf(out, "%s", node->address);
        }
    }
    return mfs_buf_printf(out, "%c", *(*at)++);
}

static int fill_in(const struct mfs_paths *p, const struct mfs_cm_state *s,
                   const struct mfs_cm_node *node, const char *address, const char *command,
                   struct mfs_buf *out)
{
    struct mfs_lm_command lm;
    int rc = mfs_provider_command(p, s, node, address, &lm);

    while (rc >= 0 && *command)
        rc = append_next(out, &command, node, &lm);
    if (rc >= 0)
        rc = mfs_buf_append(out, "", 1);
    return rc < 0 ? rc : 0;
}

static int start(const struct mfs_paths *p, const struct mfs_cm_state *s,
                 const struct mfs_cm_node *node, const char *address, struct mfs_proc *proc,
                 struct mfs_err *err)
{
    const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    struct mfs_buf line;
    int rc;

    mfs_buf_init(&line);
    rc = fill_in(p, s, node, address, s->exec_start, &line);
    if (rc) {
        mfs_err_set(err, rc, "%s: %s", node->name, strerror(-rc));
    } else {
        argv[2] = mfs_buf_data(&line);
        rc = mfs_provider_spawn(p, node, argv, proc, err);
    }
    mfs_buf_fini(&line);
    return rc;
}

static pid_t stop(const struct mfs_paths *p, const struct mfs_cm_state *s,
                  const struct mfs_cm_node *node)
{
    const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    struct mfs_buf line;
    pid_t pid = 0;
    int rc;

    if (!s->exec_stop[0])
        return 0;
    mfs_buf_init(&line);
    rc = fill_in(p, s, node, "", s->exec_stop, &line);
    if (!rc) {
        argv[2] = mfs_buf_data(&line);
        pid = mfs_proc_spawn(argv, p->log);
        rc = pid < 0 ? (int)pid : 0;
    }
    if (rc)
        mfs_warn("provider", "%s: the stop command: %s", node->name, strerror(-rc));
    mfs_buf_fini(&line);
    return rc ? 0 : pid;
}

const struct mfs_provider mfs_provider_exec = {&mfs_traits_exec, start, stop};
