/* Options: each listed once, in a table; argv parsing, the config file's keys, checks and --help
 * come from it. A value given on the command line wins over the file's, which wins over the
 * default. Not thread-safe. Does no I/O except mfs_conf_help. */
#ifndef MFS_ARGS_CONF_H
#define MFS_ARGS_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum mfs_conf_type {
    MFS_CONF_FLAG,   /* --key, --key=no */
    MFS_CONF_STRING, /* any text, length within [min, max] when max > 0 */
    MFS_CONF_UINT,   /* within [min, max] when max > 0 */
    MFS_CONF_REAL,   /* likewise */
    MFS_CONF_SIZE,   /* bytes, "4G"; likewise */
    MFS_CONF_CHOICE, /* one of the words of `arg`, separated by '|' */
    MFS_CONF_LIST,   /* as STRING; each further one is added behind a comma */
    MFS_CONF_ALIAS, /* another word for the option `arg`, or for "option=value". One letter is given
                     * behind one dash: -o VALUE, -oVALUE */
};

/* Of a text that a message quotes, so that the reason has room behind it: bytes, and a format. */
#define MFS_CONF_SHOWN_MAX 100
#define MFS_CONF_SHOWN     "%.100s"

struct mfs_conf_option {
    const char *key; /* without dashes; also the config file's key. NULL ends the table */
    enum mfs_conf_type type;
    const char *arg;  /* what --help shows for the value; for CHOICE the words themselves */
    const char *def;  /* default as text, NULL for none */
    double min, max;  /* bounds; both 0: none */
    const char *help; /* NULL hides it */
};

enum mfs_conf_source { MFS_CONF_DEFAULT, MFS_CONF_FILE, MFS_CONF_ARGV };

struct mfs_conf;

/* groups: NULL-terminated array of option tables, which must outlive the conf, as keys are unique
 * over all of them. NULL (ENOMEM). */
struct mfs_conf *mfs_conf_create(const struct mfs_conf_option *const *groups);
void mfs_conf_destroy(struct mfs_conf *c);

/* Sets a value after checking it; one that a stronger source has set stays. -EINVAL for an unknown
 * key (the nearest known one is named) or a bad value. */
int mfs_conf_set(struct mfs_conf *c, const char *key, const char *text, enum mfs_conf_source source,
                 struct mfs_err *err);

/* Sets what "key=VALUE" or "flag" says, as a command line does; messages have `dashes` before the
 * key. */
int mfs_conf_word(struct mfs_conf *c, const char *dashes, const char *word, struct mfs_err *err);

/* Parses "--key VALUE", "--key=VALUE", "--flag" and letters; "--" ends options. What is not an
 * option is moved to the front of argv in order; their number is returned, or -EINVAL. `args` is
 * the most that are allowed. */
int mfs_conf_argv(struct mfs_conf *c, int argc, char **argv, int args, struct mfs_err *err);

/* The value of a known key (an unknown one is a bug and aborts). str is NULL when there is neither
 * a value nor a default; numbers and flags are then 0. */
const char *mfs_conf_str(const struct mfs_conf *c, const char *key);
uint64_t mfs_conf_uint(const struct mfs_conf *c, const char *key); /* UINT and SIZE */
double mfs_conf_real(const struct mfs_conf *c, const char *key);
bool mfs_conf_flag(const struct mfs_conf *c, const char *key);
bool mfs_conf_given(const struct mfs_conf *c, const char *key); /* by file or argv */
bool mfs_conf_knows(const struct mfs_conf *c, const char *key); /* is there such an option? */

/* The lines about the options, for --help: "dashes key", and what comes before a value. */
void mfs_conf_help(const struct mfs_conf_option *const *groups, const char *dashes, char equals,
                   FILE *to);

#endif
