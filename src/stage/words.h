/* Lines of words, by which the processes of a call on several nodes speak to each other: a word has
 * any bytes but NUL; those that no launcher may touch (spaces, control characters, all beyond
 * ASCII) are %XX. Pure. */
#ifndef MFS_STAGE_WORDS_H
#define MFS_STAGE_WORDS_H

#include "base/buf.h"

#define MFS_STAGE_WORDS 24 /* of a line, at most */

/* Appends a line of the words, of which NULL is the last. 0 or -ENOMEM. */
int mfs_stage_words_put(struct mfs_buf *to, const char *const *words);

/* Takes a line (without its newline) apart, in place; word[n] is NULL. Their number, or -EINVAL. */
int mfs_stage_words_take(char *line, char *word[MFS_STAGE_WORDS + 1]);

#endif
