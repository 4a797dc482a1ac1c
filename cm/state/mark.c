#include "cm/state/mark.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "proto/messages.h"

static_assert(MFS_MARK_MAX < MFS_TEXT_MAX, "an event has all of a mark");

int mfs_mark_check(const char *text, struct mfs_err *err)
{
    char plain[4 * MFS_MARK_MAX + 1];

    if (!text[strspn(text, " ")])
        return mfs_err_set(err, -EINVAL, "a mark has a text, as the name of the stage that begins");
    if (strlen(text) > MFS_MARK_MAX)
        return mfs_err_set(err, -EINVAL, "a mark has %d bytes at most, not %zu", MFS_MARK_MAX,
                           strlen(text));
    mfs_text_plain(plain, sizeof plain, text);
    if (strcmp(plain, text) != 0)
        return mfs_err_set(err, -EINVAL,
                           "a mark is UTF-8 without control characters, as line feeds: %s", plain);
    return 0;
}
