#include "cm/state/differs.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *key, *helps;
} advice[] = {
    {"nodes", "cm scale changes the number of nodes"},
    {"policy", "cm policy changes it"},
    {"ui-write", "it stays so while this cm runs; a new one takes --ui-write=no (kill -KILL the "
                 "process in cm.pid, then cm start: all else goes on)"},
    {"mount", "memefs mount mounts it at another place, too"},
    {"mount-options", "memefs mount -o mounts it with others at another place, too"},
};

#define ELSE                                                                                       \
    "it stays so while it runs; leave the option out (cm status shows what runs), or start "       \
    "another "                                                                                     \
    "deployment, with a --name and a --mount of its own"

int mfs_state_differs(struct mfs_err *err, const char *key, const char *has)
{
    const char *helps = ELSE;
    char is[64] = "";

    for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
        if (!strcmp(key, advice[i].key))
            helps = advice[i].helps;
    if (has)
        snprintf(is, sizeof is, " (%s)", *has ? has : "none");
    return mfs_err_set(err, -EEXIST, "it runs already, with another --%s%s: %s", key, is, helps);
}
