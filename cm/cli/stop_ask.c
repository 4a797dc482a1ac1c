#include "cm/cli/stop_ask.h"

#include <stdio.h>

#include "base/text.h"
#include "cm/ask/held.h"
#include "cm/cli/agree.h"

bool mfs_stop_may(const struct mfs_paths *p)
{
    char what[256], bytes[64] = "", files[64] = "files, how many can not be told now";
    struct mfs_held h;

    if (!mfs_agree_can_ask() || !mfs_held_look(p, &h) || (h.counted && !h.files))
        return true;
    if (h.bytes)
        snprintf(bytes, sizeof bytes, ", %s", MFS_TEXT_BYTES(h.bytes));
    if (h.counted)
        snprintf(files, sizeof files, "%llu files and directories", (unsigned long long)h.files);
    snprintf(what, sizeof what,
             "%s holds %s%s: all of it is lost when it stops (cm checkpoint saves it)", p->name,
             files, bytes);
    return mfs_agree(what);
}
