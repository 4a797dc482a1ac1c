/* The verbs of `memefs`. Each gets its own arguments (argv[0] is the verb) and returns the
 * program's exit status: 0 done, 1 failed, 2 wrong usage. */
#ifndef MFS_CLI_VERBS_H
#define MFS_CLI_VERBS_H

#include "args/conf.h"

enum { MFS_EXIT_OK = 0, MFS_EXIT_FAILED = 1, MFS_EXIT_USAGE = 2 };

int mfs_verb_mount(int argc, char **argv);
int mfs_verb_umount(int argc, char **argv);
int mfs_verb_layout(int argc, char **argv);
int mfs_verb_fsck(int argc, char **argv);
int mfs_verb_lost(int argc, char **argv);

/* One line on stderr, "memefs: VERB: message"; returns `status`. */
int mfs_verb_fail(const char *verb, int status, const struct mfs_err *err);

/* A JSON string of the text, with its quotes, to stdout. A byte that is no UTF-8 becomes "\udcXX",
 * half of a surrogate pair, as RFC 8259 (8.2) allows: what Python calls "surrogateescape" (PEP
 * 383), whose os.fsencode makes the byte of it again. */
void mfs_verb_json_text(const char *text);

/* The name of a file as ls(1) shows it on a terminal: itself if a shell would read it as one plain
 * word, else quoted so that a shell reads it as what it is; what a terminal could take for an order
 * of its own (ESC, a newline) as $'\033'. To stdout. */
void mfs_verb_shell_text(const char *text);

/* Parses options and exactly `args` arguments, which end up in argv[1 …]; with -args, at most so
 * many, and those not given are NULL: argv must have room for them. With --help it prints
 * `usage` and the options. 0, or -1 with *status set to what to exit with. */
int mfs_verb_parse(struct mfs_conf *conf, const struct mfs_conf_option *const *groups,
                   const char *usage, int argc, char **argv, int args, int *status);

#endif
