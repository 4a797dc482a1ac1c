/* Replies are hiredis' reply objects under another name, so that no caller sees hiredis. */
#include "store/reply.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "store/store.h"

static const redisReply *raw(const struct mfs_reply *r)
{
    return (const redisReply *)r;
}

enum mfs_reply_type mfs_reply_type(const struct mfs_reply *r)
{
    if (!r)
        return MFS_REPLY_NIL;
    switch (raw(r)->type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
        return MFS_REPLY_STR;
    case REDIS_REPLY_ARRAY:
        return MFS_REPLY_ARRAY;
    case REDIS_REPLY_INTEGER:
        return MFS_REPLY_INT;
    case REDIS_REPLY_ERROR:
        return MFS_REPLY_ERROR;
    default:
        return MFS_REPLY_NIL;
    }
}

int64_t mfs_reply_int(const struct mfs_reply *r)
{
    return mfs_reply_type(r) == MFS_REPLY_INT ? raw(r)->integer : 0;
}

const char *mfs_reply_str(const struct mfs_reply *r, size_t *len)
{
    enum mfs_reply_type type = mfs_reply_type(r);
    bool text = type == MFS_REPLY_STR || type == MFS_REPLY_ERROR;

    if (len)
        *len = text ? raw(r)->len : 0;
    return text ? raw(r)->str : NULL;
}

size_t mfs_reply_count(const struct mfs_reply *r)
{
    return mfs_reply_type(r) == MFS_REPLY_ARRAY ? raw(r)->elements : 0;
}

const struct mfs_reply *mfs_reply_at(const struct mfs_reply *r, size_t i)
{
    if (i >= mfs_reply_count(r))
        return NULL;
    return (const struct mfs_reply *)raw(r)->element[i];
}

static const struct {
    const char *word; /* the error reply's first */
    int rc;
} error_words[] = {
    {"OOM", -ENOSPC},      {"NOAUTH", -EACCES},     {"WRONGPASS", -EACCES},
    {"NOPERM", -EACCES},   {"LOADING", -EAGAIN},    {"BUSY", -EAGAIN},
    {"TRYAGAIN", -EAGAIN}, {"MASTERDOWN", -EAGAIN}, {"READONLY", -EROFS},
};

/* The number behind "ERRNO ", or -EIO when it is none that Linux knows. */
static int function_errno(const char *digits, size_t len)
{
    int n = 0;
    size_t i;

    for (i = 0; i < len && i < 4 && digits[i] >= '0' && digits[i] <= '9'; i++)
        n = n * 10 + (digits[i] - '0');
    return n > 0 && n < 4096 ? -n : -EIO;
}

int mfs_reply_errno(const char *text, size_t len)
{
    const char *space = memchr(text, ' ', len);
    size_t word = space ? (size_t)(space - text) : len;

    if (word == 5 && space && memcmp(text, "ERRNO", 5) == 0)
        return function_errno(space + 1, len - word - 1);
    for (size_t i = 0; i < sizeof error_words / sizeof *error_words; i++) {
        if (strlen(error_words[i].word) == word && memcmp(text, error_words[i].word, word) == 0)
            return error_words[i].rc;
    }
    return -EIO;
}

void mfs_cmds_fini(struct mfs_cmd *cmds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        freeReplyObject(cmds[i].reply);
        cmds[i].reply = NULL;
    }
}
