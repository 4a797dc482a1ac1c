#include "stage/words.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

static int put_byte(struct mfs_buf *to, unsigned char c)
{
    return c <= ' ' || c == '%' || c >= 0x7f ? mfs_buf_printf(to, "%%%02x", c)
                                             : mfs_buf_append(to, &c, 1);
}

int mfs_stage_words_put(struct mfs_buf *to, const char *const *words)
{
    int rc = 0;

    for (; !rc && *words; words++) {
        if (!**words) /* an empty one must be seen */
            rc = mfs_buf_append(to, "%", 1);
        for (const char *p = *words; !rc && *p; p++)
            rc = put_byte(to, (unsigned char)*p);
        if (!rc)
            rc = mfs_buf_append(to, words[1] ? " " : "\n", 1);
    }
    return rc;
}

static int decode(char *word)
{
    char *out = word;

    if (!strcmp(word, "%")) {
        *word = '\0';
        return 0;
    }
    while (*word) {
        char digits[3] = {0};

        if (*word != '%') {
            *out++ = *word++;
            continue;
        }
        strncpy(digits, word + 1, 2);
        if (strlen(digits) != 2 || mfs_text_unhex(digits, out, 1) || !*out)
            return -EINVAL;
        out++;
        word += 3;
    }
    *out = '\0';
    return 0;
}

int mfs_stage_words_take(char *line, char *word[MFS_STAGE_WORDS + 1])
{
    char *next;
    int n = 0, rc = 0;

    while (!rc && (next = strsep(&line, " "))) {
        if (n == MFS_STAGE_WORDS || !*next)
            return -EINVAL;
        rc = decode(next);
        word[n++] = next;
    }
    word[n] = NULL;
    return rc ? rc : n;
}
