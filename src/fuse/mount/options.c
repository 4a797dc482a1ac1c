#include "fuse/mount/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MIB (1024.0 * 1024)

enum kind { CACHE, FLAG, NOFLAG, COUNT, SIZE, LEVEL };

struct option {
    const char *key;
    enum kind kind;
    size_t offset;
    double min, max;
    const char *help;
};

#define MEMORY_DEFAULT (512U << 20)

#define AT(member) offsetof(struct mfs_mount_options, member)

static const struct option options[] = {
    {"cache", CACHE, AT(relaxed), 0, 0,
     "changes by other mounts show at once (default), or up to 1 s late"},
    {"atime", NOFLAG, AT(no_atime), 0, 0, "access times, relatime-like (default)"},
    {"noatime", FLAG, AT(no_atime), 0, 0, "no access times"},
    {"diratime", NOFLAG, AT(no_diratime), 0, 0, "access times of directories, too (default)"},
    {"nodiratime", FLAG, AT(no_diratime), 0, 0, "no access times of directories"},
    {"awake", NOFLAG, AT(no_awake), 0, 0,
     "in virtual machines: processors poll instead of halting while many requests come (default)"},
    {"noawake", FLAG, AT(no_awake), 0, 0, "they may halt"},
    {"clone_fd", FLAG, AT(clone_fd), 0, 0, "a device descriptor for each worker"},
    {"max_threads", COUNT, AT(workers), 2, 1024, "workers that serve requests (default 32)"},
    {"data_threads", COUNT, AT(threads), 1, 64,
     "threads that store data, and as many that read ahead (default 4)"},
    {"memory", SIZE, AT(memory), 24 * MIB, 65536 * MIB,
     "bytes that the client may take, over all it keeps (default 512M)"},
    {"write_window", SIZE, AT(write_window), 4 * MIB, 65536 * MIB,
     "bytes written but not yet stored, over all files (default: a quarter of memory)"},
    {"read_window", SIZE, AT(read_window), 4 * MIB, 65536 * MIB,
     "bytes read ahead, over all files (default: a quarter of memory)"},
    {"io_timeout", COUNT, AT(io_timeout), 1, 3600,
     "seconds that a partition may take to answer (default 30)"},
    {"full_wait", COUNT, AT(full_wait), 0, 86400,
     "seconds that a writer waits for memory while nodes can still come (default 60)"},
    {"log_level", LEVEL, AT(log_level), 0, 0, "error, warn, info (default) or debug"},
};

/* What the kernel, or libfuse for it, understands, and what only concerns mount(8). */
static const char *const for_kernel[] = {"ro",   "rw",     "suid", "nosuid", "dev",    "nodev",
                                         "exec", "noexec", "sync", "async",  "dirsync"};
static const char *const for_others[] = {
    "defaults", "auto",   "noauto",  "user",        "users",
    "nouser",   "nofail", "_netdev", "allow_other", "default_permissions",
    "relatime"};

void mfs_mount_options_init(struct mfs_mount_options *o)
{
    memset(o, 0, sizeof *o);
    o->workers = 32;
    o->threads = 4;
    o->memory = MEMORY_DEFAULT;
    o->io_timeout = 30;
    o->full_wait = 60;
    o->log_level = MFS_LOG_INFO;
    mfs_buf_init(&o->kernel);
}

void mfs_mount_options_fini(struct mfs_mount_options *o)
{
    mfs_buf_fini(&o->kernel);
}

static bool among(const char *const *list, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], word) == 0)
            return true;
    return false;
}

static int set_cache(bool *relaxed, const char *value)
{
    *relaxed = strcmp(value, "relaxed") == 0;
    return *relaxed || strcmp(value, "strict") == 0 ? 0 : -EINVAL;
}

static int set_number(const struct option *d, void *field, const char *value)
{
    uint64_t n;
    int rc = d->kind == SIZE ? mfs_text_size(value, &n) : mfs_text_u64(value, &n);

    if (rc == 0 && ((double)n < d->min || (double)n > d->max))
        rc = -ERANGE;
    if (rc < 0)
        return rc;
    if (d->kind == SIZE)
        *(size_t *)field = (size_t)n;
    else
        *(uint32_t *)field = (uint32_t)n;
    return 0;
}

static int set_option(struct mfs_mount_options *o, const struct option *d, const char *value)
{
    void *field = (char *)o + d->offset;

    if (d->kind == FLAG || d->kind == NOFLAG) {
        *(bool *)field = d->kind == FLAG;
        return value == NULL ? 0 : -EINVAL;
    }
    if (value == NULL)
        return -EINVAL;
    switch (d->kind) {
    case CACHE:
        return set_cache(field, value);
    case LEVEL:
        return mfs_log_level_parse(value, field);
    default:
        return set_number(d, field, value);
    }
}

static int parse_word(struct mfs_mount_options *o, char *word, struct mfs_err *err)
{
    char *value = strchr(word, '=');
    int rc = -ENOENT;

    if (among(for_kernel, sizeof for_kernel / sizeof *for_kernel, word))
        return mfs_buf_printf(&o->kernel, ",%s", word);
    if (among(for_others, sizeof for_others / sizeof *for_others, word) ||
        strncmp(word, "x-", 2) == 0)
        return 0;
    if (value != NULL)
        *value++ = '\0';
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(options[i].key, word) == 0)
            rc = set_option(o, &options[i], value);
    if (rc == -ENOENT)
        return mfs_err_set(err, -EINVAL, "-o %s: no such option", word);
    if (rc < 0)
        return mfs_err_set(err, -EINVAL, "-o %s: bad value%s%s", word, value != NULL ? " " : "",
                           value != NULL ? value : "");
    return 0;
}

int mfs_mount_options_parse(struct mfs_mount_options *o, const char *list, struct mfs_err *err)
{
    char *copy = strdup(list), *rest = copy, *word;
    int rc = copy != NULL ? 0 : mfs_err_set(err, -ENOMEM, "out of memory");

    while (rc == 0 && (word = strsep(&rest, ",")) != NULL)
        if (*word != '\0')
            rc = parse_word(o, word, err);
    free(copy);
    return rc;
}

void mfs_mount_options_help(FILE *to)
{
    static const char *const values[] = {
        [CACHE] = "=strict|relaxed", [FLAG] = "", [NOFLAG] = "", [COUNT] = "=N", [SIZE] = "=SIZE",
        [LEVEL] = "=LEVEL"};
    char word[64];

    fputs("\nMount options:\n", to);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        snprintf(word, sizeof word, "%s%s", options[i].key, values[options[i].kind]);
        fprintf(to, "  %-27s %s\n", word, options[i].help);
    }
    fputs("  suid, dev                   set-user-ID programs and device files work (default: no)\n"
          "  ro, noexec, sync, dirsync and their opposites: see mount(8)\n",
          to);
}
