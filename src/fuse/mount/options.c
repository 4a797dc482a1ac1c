/* A word of -o is one for the kernel or libfuse (`for_kernel`, passed on), one that only mount(8)
 * reads (`for_others` and x-…, dropped), or one of our options (`options`); any other is an
 * error. */
#include "fuse/mount/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "args/conf.h"

#define MIB (1024.0 * 1024)

static const struct mfs_conf_option options[] = {
    {"cache", MFS_CONF_CHOICE, "strict|relaxed", "strict", 0, 0,
     "changes by other mounts show at once, or up to 1 s late"},
    {"atime", MFS_CONF_FLAG, NULL, "yes", 0, 0, "access times, relatime-like (default)"},
    {"noatime", MFS_CONF_ALIAS, "atime=no", NULL, 0, 0, "no access times"},
    {"diratime", MFS_CONF_FLAG, NULL, "yes", 0, 0, "access times of directories, too (default)"},
    {"nodiratime", MFS_CONF_ALIAS, "diratime=no", NULL, 0, 0, "no access times of directories"},
    {"awake", MFS_CONF_FLAG, NULL, "yes", 0, 0,
     "in virtual machines: processors poll instead of halting while many requests come (default)"},
    {"noawake", MFS_CONF_ALIAS, "awake=no", NULL, 0, 0, "they may halt"},
    {"uring", MFS_CONF_CHOICE, "auto|on|off", "auto", 0, 0,
     "requests come by io_uring, where the kernel offers it (auto: they do not)"},
    {"max_threads", MFS_CONF_UINT, "N", "32", 2, 1024, "workers that serve requests"},
    {"data_threads", MFS_CONF_UINT, "N", "4", 1, 64,
     "threads that store data, and as many that read ahead"},
    {"memory", MFS_CONF_SIZE, "SIZE", "512M", 24 * MIB, 65536 * MIB,
     "bytes that the client may take, over all it keeps"},
    {"write_window", MFS_CONF_SIZE, "SIZE", NULL, 4 * MIB, 65536 * MIB,
     "bytes written but not yet stored, over all files (default: a quarter of memory)"},
    {"read_window", MFS_CONF_SIZE, "SIZE", NULL, 4 * MIB, 65536 * MIB,
     "bytes read ahead, over all files (default: a quarter of memory)"},
    {"io_timeout", MFS_CONF_UINT, "N", "30", 1, 3600,
     "seconds that a partition may take to answer"},
    {"full_wait", MFS_CONF_UINT, "N", "60", 0, 86400,
     "seconds that a writer waits for memory while nodes can still come"},
    {"slow", MFS_CONF_REAL, "SECONDS", "1", 0, 86400,
     "a request that takes so long is logged (0: none)"},
    {"stats", MFS_CONF_FLAG, NULL, "yes", 0, 0,
     "there are files about the mount in .memefs (default)"},
    {"nostats", MFS_CONF_ALIAS, "stats=no", NULL, 0, 0, "there are not"},
    {"log_level", MFS_CONF_CHOICE, "error|warn|info|debug", "info", 0, 0, "how much to log"},
    {"log_format", MFS_CONF_CHOICE, MFS_LOG_FORMATS, "text", 0, 0,
     "lines of the log: for people, or a JSON object each"},
    {0}};

/* What the kernel, or libfuse for it, understands, and what only concerns mount(8). */
static const char *const for_kernel[] = {"ro",   "rw",     "suid", "nosuid", "dev",    "nodev",
                                         "exec", "noexec", "sync", "async",  "dirsync"};
static const char *const for_others[] = {
    "defaults", "auto",   "noauto",  "user",        "users",
    "nouser",   "nofail", "_netdev", "allow_other", "default_permissions",
    "relatime"};

static const struct mfs_conf_option *const groups[] = {options, NULL};

static enum mfs_mount_uring uring_of(const char *word)
{
    if (strcmp(word, "on") == 0)
        return MFS_MOUNT_URING_ON;
    return strcmp(word, "off") == 0 ? MFS_MOUNT_URING_OFF : MFS_MOUNT_URING_AUTO;
}

static void take_values(struct mfs_mount_options *o, const struct mfs_conf *c)
{
    o->relaxed = strcmp(mfs_conf_str(c, "cache"), "relaxed") == 0;
    o->no_atime = !mfs_conf_flag(c, "atime");
    o->no_diratime = !mfs_conf_flag(c, "diratime");
    o->no_awake = !mfs_conf_flag(c, "awake");
    o->uring = uring_of(mfs_conf_str(c, "uring"));
    o->workers = (uint32_t)mfs_conf_uint(c, "max_threads");
    o->threads = (uint32_t)mfs_conf_uint(c, "data_threads");
    o->memory = mfs_conf_uint(c, "memory");
    o->write_window = (size_t)mfs_conf_uint(c, "write_window");
    o->read_window = (size_t)mfs_conf_uint(c, "read_window");
    o->io_timeout = (uint32_t)mfs_conf_uint(c, "io_timeout");
    o->full_wait = (uint32_t)mfs_conf_uint(c, "full_wait");
    o->slow = (int64_t)(mfs_conf_real(c, "slow") * 1e9);
    o->no_stats = !mfs_conf_flag(c, "stats");
    mfs_log_level_parse(mfs_conf_str(c, "log_level"), &o->log_level);
    o->log_format = strcmp(mfs_conf_str(c, "log_format"), "json") == 0 ? "json" : "text";
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

static int parse_word(struct mfs_mount_options *o, struct mfs_conf *c, const char *word,
                      struct mfs_err *err)
{
    int rc = 0;

    if (among(for_kernel, sizeof for_kernel / sizeof *for_kernel, word))
        rc = mfs_buf_printf(&o->kernel, ",%s", word);
    else if (!among(for_others, sizeof for_others / sizeof *for_others, word) &&
             strncmp(word, "x-", 2) != 0)
        return mfs_conf_word(c, "-o ", word, err);
    return rc < 0 ? mfs_err_set(err, rc, "out of memory") : 0;
}

static int parse(struct mfs_mount_options *o, struct mfs_conf *c, char *list, struct mfs_err *err)
{
    char *word;
    int rc = 0;

    while (rc == 0 && (word = strsep(&list, ",")) != NULL)
        if (*word != '\0')
            rc = parse_word(o, c, word, err);
    return rc;
}

int mfs_mount_options_parse(struct mfs_mount_options *o, const char *list, struct mfs_err *err)
{
    struct mfs_conf *c = mfs_conf_create(groups);
    char *copy = strdup(list);
    int rc;

    memset(o, 0, sizeof *o);
    mfs_buf_init(&o->kernel);
    if (c != NULL && copy != NULL)
        rc = parse(o, c, copy, err);
    else
        rc = mfs_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        take_values(o, c);
    free(copy);
    mfs_conf_destroy(c);
    return rc;
}

void mfs_mount_options_help(FILE *to)
{
    fputs("\nMount options:\n", to);
    mfs_conf_help(groups, "", '=', to);
    fputs("  suid, dev                   set-user-ID programs and device files work (default: no)\n"
          "  ro, noexec, sync, dirsync and their opposites: see mount(8)\n",
          to);
}
