#include "host/caps.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"

#define TEXT_MOST 65536

/* /proc/THREAD/NAME as a string, which is in `text`; NULL: it can't be read. */
static const char *read_of(pid_t thread, const char *name, struct mfs_buf *text)
{
    char path[64];

    mfs_buf_init(text);
    snprintf(path, sizeof path, "/proc/%d/%s", (int)thread, name);
    if (thread <= 0 || mfs_file_read(path, TEXT_MOST, text) || mfs_buf_append(text, "", 1))
        return NULL;
    return mfs_buf_data(text);
}

static bool is_effective(pid_t thread, int capability)
{
    struct mfs_buf text;
    const char *status = read_of(thread, "status", &text);
    const char *line = status ? strstr(status, "\nCapEff:") : NULL;
    uint64_t caps = line ? strtoull(line + strlen("\nCapEff:"), NULL, 16) : 0;

    mfs_buf_fini(&text);
    return caps >> capability & 1;
}

/* Is the number one of those that the map (user_namespaces(7)) has from outside? */
static bool is_mapped(pid_t thread, const char *map, uint32_t number)
{
    unsigned long inside, first, count;
    struct mfs_buf text;
    const char *line = read_of(thread, map, &text);
    bool mapped = false;

    while (line && !mapped && sscanf(line, "%lu %lu %lu", &inside, &first, &count) == 3) {
        mapped = number >= first && number - first < count;
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    mfs_buf_fini(&text);
    return mapped;
}

static bool is_of_our_namespace(pid_t thread)
{
    struct stat its, ours;
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)thread);
    return stat(path, &its) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
           its.st_ino == ours.st_ino && its.st_dev == ours.st_dev;
}

bool mfs_caps_has(pid_t thread, int capability)
{
    return is_effective(thread, capability) && is_of_our_namespace(thread);
}

bool mfs_caps_over(pid_t thread, int capability, uid_t uid, gid_t gid)
{
    return is_effective(thread, capability) && is_mapped(thread, "uid_map", uid) &&
           is_mapped(thread, "gid_map", gid);
}
