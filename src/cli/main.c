/* memefs: the file system client and the user's tools. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/verbs.h"

struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *usage, *help;
};

static const struct verb verbs[] = {
    {"mount", mfs_verb_mount, "[OPTION]... PATH", "mount a deployment's file system"},
    {"umount", mfs_verb_umount, "PATH", "unmount it"},
    {"fsck", mfs_verb_fsck, "[OPTION]...", "check a running deployment, and repair it"},
    {"lost", mfs_verb_lost, "[OPTION]... [DIR]", "list the files of which data were lost"},
    {"layout", mfs_verb_layout, "FILE [--json]", "show where the pieces of a file are"},
};

#define VERBS (sizeof verbs / sizeof verbs[0])

static void help(FILE *to)
{
    fputs("usage: memefs COMMAND [ARGUMENT]...\n\n"
          "Mounts a MemEFS deployment and looks into it.\n\nCommands:\n",
          to);
    for (size_t i = 0; i < VERBS; i++)
        fprintf(to, "  %-6s %-18s %s\n", verbs[i].name, verbs[i].usage, verbs[i].help);
    fputs("\n\"memefs COMMAND --help\" shows a command's options; \"memefs --version\" the "
          "version.\n",
          to);
}

int mfs_verb_fail(const char *verb, int status, const struct mfs_err *err)
{
    char msg[sizeof err->msg];
    size_t n = 0;

    /* A name of a file may stand in it: nothing is for the terminal. */
    for (; err->msg[n]; n++)
        msg[n] = (unsigned char)err->msg[n] < ' ' || err->msg[n] == 0x7f ? '?' : err->msg[n];
    msg[n] = '\0';
    fprintf(stderr, "memefs: %s: %s\n", verb, msg);
    return status;
}

int mfs_verb_parse(struct mfs_conf *conf, const struct mfs_conf_option *const *groups,
                   const char *usage, int argc, char **argv, int args, int *status)
{
    const char *verb = argv[0];
    struct mfs_err err;
    int n, most = args < 0 ? -args : args;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0)
            continue;
        fputs(usage, stdout);
        mfs_conf_help(groups, stdout);
        *status = MFS_EXIT_OK;
        return -1;
    }
    n = mfs_conf_argv(conf, argc - 1, argv + 1, most, &err);
    if (n >= 0 && n < args)
        n = mfs_err_set(&err, -1, "too few arguments; try memefs %s --help", verb);
    if (args < 0 && n >= 0)
        for (int i = n; i < most; i++)
            argv[1 + i] = NULL;
    if (n < 0)
        *status = mfs_verb_fail(verb, MFS_EXIT_USAGE, &err);
    return n < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    signal(SIGCHLD, SIG_DFL); /* ignored by who starts us, it would hide the ends of our children */
    if (argc < 2) {
        help(stderr);
        return MFS_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help(stdout);
        return MFS_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("memefs %s\n", MEMEFS_VERSION);
        return MFS_EXIT_OK;
    }
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    fprintf(stderr, "memefs: %s: no such command; try memefs --help\n", argv[1]);
    return MFS_EXIT_USAGE;
}
