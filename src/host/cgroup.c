/* /proc/PID/cgroup names the groups; from each with the memory controller (v2's only one, or v1's
 * "memory") up to the mount each group's limit and usage are read. A group that can't be read, or
 * has no limit, is skipped. */
#include "host/cgroup.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define UNLIMITED (1ULL << 60) /* v1 has no word for it: LONG_MAX in whole pages */
#define TEXT_MAX  (1U << 20)

struct kind {
    const char *mount, *limit, *used; /* below the root; files */
    const char *pages[2];             /* of files: lines of memory.stat */
};

static const struct kind kinds[] = {
    {"", "memory.max", "memory.current", {"\ninactive_file ", "\nactive_file "}},
    {"/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"\ntotal_inactive_file ", "\ntotal_active_file "}}};

/* A file with a number. 0, or a negative errno; -EINVAL also for "max". */
static int read_number(const char *dir, const char *name, uint64_t *value)
{
    char path[PATH_MAX], text[32];
    struct mfs_buf b;
    int rc = mfs_text_format(path, sizeof path, "%s/%s", dir, name);

    mfs_buf_init(&b);
    if (!rc)
        rc = mfs_file_read(path, sizeof text - 1, &b);
    if (!rc)
        rc = mfs_text_format(text, sizeof text, "%.*s", (int)mfs_buf_len(&b), mfs_buf_data(&b));
    mfs_buf_fini(&b);
    if (rc)
        return rc;
    text[strcspn(text, "\n")] = '\0';
    return mfs_text_u64(text, value);
}

/* Bytes of pages of files in the group; 0 when it does not tell. */
static uint64_t file_pages(const struct kind *k, const char *dir)
{
    char path[PATH_MAX];
    uint64_t sum = 0;
    struct mfs_buf b;

    mfs_buf_init(&b);
    if (!mfs_text_format(path, sizeof path, "%s/memory.stat", dir) &&
        !mfs_buf_append(&b, "\n", 1) && !mfs_file_read(path, TEXT_MAX, &b) &&
        !mfs_buf_append(&b, "", 1)) {
        for (size_t i = 0; i < 2; i++) {
            const char *at = strstr(mfs_buf_data(&b), k->pages[i]);

            sum += at ? strtoull(at + strlen(k->pages[i]), NULL, 10) : 0;
        }
    }
    mfs_buf_fini(&b);
    return sum;
}

static void look_at(const struct kind *k, const char *dir, mfs_cgroup_limit *each, void *arg)
{
    uint64_t limit, used, pages;

    if (read_number(dir, k->limit, &limit) || limit >= UNLIMITED)
        return;
    if (read_number(dir, k->used, &used))
        used = 0;
    pages = file_pages(k, dir);
    each(arg, dir, limit, used > pages ? used - pages : 0);
}

/* The group at `path` and those above it, up to the mount. */
static int climb(const struct kind *k, const char *root, const char *path, int len,
                 mfs_cgroup_limit *each, void *arg)
{
    size_t top = strlen(root) + strlen(k->mount);
    char dir[PATH_MAX];
    int rc = mfs_text_format(dir, sizeof dir, "%s%s%.*s", root, k->mount, len, path);

    if (rc)
        return rc;
    if (strstr(dir + top, "/..")) /* of another name space: only its root can be seen */
        dir[top] = '\0';
    for (;;) {
        char *slash = strrchr(dir + top, '/');

        if (!slash || slash[1]) /* "/" at the end is the mount itself, which comes next */
            look_at(k, dir, each, arg);
        if (!slash)
            return 0;
        *slash = '\0';
    }
}

/* Is "memory" among the controllers "a,b,c" of that length? */
static bool has_memory(const char *list, size_t len)
{
    static const char word[] = "memory";

    for (const char *at = list; at < list + len;) {
        size_t n = strcspn(at, ",:");

        if (n == sizeof word - 1 && !strncmp(at, word, n))
            return true;
        at += n + 1;
    }
    return false;
}

int mfs_cgroup_each(const char *text, const char *root, mfs_cgroup_limit *each, void *arg)
{
    int rc = 0;

    while (*text && !rc) {
        int len = (int)strcspn(text, "\n");
        const char *list = memchr(text, ':', (size_t)len), *path = NULL;

        if (list)
            path = memchr(list + 1, ':', (size_t)(text + len - list - 1));
        if (path) {
            bool unified = path == list + 1;
            bool memory = unified || has_memory(list + 1, (size_t)(path - list - 1));

            if (memory)
                rc = climb(&kinds[!unified], root, path + 1, (int)(text + len - path - 1), each,
                           arg);
        }
        text += len + (text[len] == '\n');
    }
    return rc;
}

int mfs_cgroup_of(int pid, mfs_cgroup_limit *each, void *arg)
{
    char path[64];
    struct mfs_buf b;
    int rc;

    if (pid)
        snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    else
        mfs_text_copy(path, sizeof path, "/proc/self/cgroup");
    mfs_buf_init(&b);
    rc = mfs_file_read(path, TEXT_MAX, &b);
    if (!rc)
        rc = mfs_buf_append(&b, "", 1);
    if (!rc)
        rc = mfs_cgroup_each(mfs_buf_data(&b), MFS_CGROUP_ROOT, each, arg);
    mfs_buf_fini(&b);
    return rc;
}

static void least_left(void *arg, const char *dir, uint64_t limit, uint64_t used)
{
    uint64_t *least = arg, left = limit > used ? limit - used : 0;

    (void)dir;
    if (left < *least)
        *least = left;
}

uint64_t mfs_cgroup_left(void)
{
    uint64_t least = UINT64_MAX;

    mfs_cgroup_of(0, least_left, &least);
    return least;
}
