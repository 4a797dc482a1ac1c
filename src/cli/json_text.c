#include <stdio.h>

#include "base/shown.h"
#include "cli/verbs.h"

/* What there is no memory for is not shown. */
static void show(int (*how)(struct mfs_buf *to, const char *text), const char *text)
{
    struct mfs_buf b;

    mfs_buf_init(&b);
    if (how(&b, text) == 0)
        fwrite(mfs_buf_data(&b), 1, mfs_buf_len(&b), stdout);
    mfs_buf_fini(&b);
}

void mfs_verb_json_text(const char *text)
{
    show(mfs_shown_json, text);
}

void mfs_verb_shell_text(const char *text)
{
    show(mfs_shown_shell, text);
}
