/* cm: the Central Manager's command line, and its daemon. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/cli/verbs.h"

#define EXIT_USAGE 2

static int complain(const char *verb, const struct mfs_err *err, bool usage)
{
    fprintf(stderr, "cm: %s%s%s\n", verb, *verb ? ": " : "", err->msg);
    return usage ? EXIT_USAGE : EXIT_FAILURE;
}

/* One says itself what is wrong with the state directory, the other has none. */
static bool needs_trust(const struct mfs_verb *v)
{
    return v->run != mfs_cmd_doctor && v->run != mfs_cmd_simulate;
}

static int run(const struct mfs_verb *v, int argc, char **argv)
{
    struct mfs_verb_call call = {.conf = mfs_conf_create(v->options), .args = argv};
    struct mfs_err err = {0};
    int status = EXIT_SUCCESS, rc;

    if (!call.conf) {
        mfs_err_set(&err, -ENOMEM, "out of memory");
        return complain(v->name, &err, false);
    }
    call.nargs = mfs_conf_argv(call.conf, argc, argv, v->nargs, &err);
    if (call.nargs >= 0 && mfs_conf_flag(call.conf, "help")) {
        mfs_verb_help(v, stdout);
    } else if (call.nargs < 0 || mfs_paths_init(&call.paths, call.conf, &err)) {
        status = complain(v->name, &err, true);
    } else if (needs_trust(v) && mfs_paths_trust(&call.paths, &err)) {
        status = complain(v->name, &err, false);
    } else {
        rc = v->run(&call, &err);
        if (rc)
            status = complain(v->name, &err, call.usage);
    }
    mfs_conf_destroy(call.conf);
    if (fflush(stdout) && !status)
        status = EXIT_FAILURE;
    return status;
}

int main(int argc, char **argv)
{
    const struct mfs_verb *v;
    struct mfs_err err = {0};

    signal(SIGCHLD, SIG_DFL); /* ignored by our parent, it would hide the ends of our children */
    if (argc < 2) {
        mfs_err_set(&err, -EINVAL, "no command given (see cm --help)");
        return complain("", &err, true);
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        mfs_verbs_help(stdout);
        return EXIT_SUCCESS;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("cm (MemEFS) %s\n", MEMEFS_VERSION);
        return EXIT_SUCCESS;
    }
    v = mfs_verb_find(argv[1], &err);
    return v ? run(v, argc - 2, argv + 2) : complain("", &err, true);
}
