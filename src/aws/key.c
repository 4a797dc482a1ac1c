/* A key comes from the first place that has a whole one. */
#include "aws/key.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

#define FILE_MOST (1U << 20)

void mfs_aws_key_take(struct mfs_aws_key *key, const char *name, size_t len, const char *value)
{
    static const struct {
        const char *name;
        size_t at, size;
    } fields[] = {
#define KEY(word, member) {word, offsetof(struct mfs_aws_key, member), sizeof key->member}
        KEY("aws_access_key_id", id),    KEY("aws_secret_access_key", secret),
        KEY("aws_session_token", token), KEY("AccessKeyId", id),
        KEY("SecretAccessKey", secret),  KEY("Token", token),
#undef KEY
    };

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strlen(fields[i].name) == len && !strncmp(fields[i].name, name, len) &&
            mfs_text_copy((char *)key + fields[i].at, fields[i].size, value))
            ((char *)key)[fields[i].at] = '\0'; /* what is too long is no key */
}

bool mfs_aws_key_whole(const struct mfs_aws_key *key)
{
    return key->id[0] && key->secret[0];
}

/* Without what stands around it. */
static char *trimmed(char *line)
{
    size_t len;

    line += strspn(line, " \t\r");
    len = strlen(line);
    while (len && strchr(" \t\r", line[len - 1]))
        line[--len] = '\0';
    return line;
}

/* "[NAME]" */
static bool is_profile(const char *line, const char *profile)
{
    size_t len = strlen(profile);

    return !strncmp(line + 1, profile, len) && !strcmp(line + 1 + len, "]");
}

int mfs_aws_key_of_profile(const char *text, const char *profile, struct mfs_aws_key *key)
{
    bool ours = false;

    memset(key, 0, sizeof *key);
    while (*text) {
        size_t len = strcspn(text, "\n"), name;
        char buf[sizeof key->token + 64], *line, *value;

        mfs_text_format(buf, sizeof buf, "%.*s", (int)(len < sizeof buf - 1 ? len : 0), text);
        text += len + (text[len] == '\n');
        line = trimmed(buf);
        if (*line == '[')
            ours = is_profile(line, profile);
        value = strchr(line, '=');
        if (!ours || *line == '#' || !value)
            continue;
        name = strcspn(line, " \t=");
        mfs_aws_key_take(key, line, name, trimmed(value + 1));
    }
    return mfs_aws_key_whole(key) ? 0 : -ENOENT;
}

bool mfs_aws_key_of_environment(struct mfs_aws_key *key)
{
    const char *id = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY"),
               *token = getenv("AWS_SESSION_TOKEN");

    memset(key, 0, sizeof *key);
    return id && secret && !mfs_text_copy(key->id, sizeof key->id, id) &&
           !mfs_text_copy(key->secret, sizeof key->secret, secret) &&
           !mfs_text_copy(key->token, sizeof key->token, token ? token : "") &&
           mfs_aws_key_whole(key);
}

bool mfs_aws_key_of_file(struct mfs_aws_key *key, char *why, size_t n)
{
    const char *named = getenv("AWS_SHARED_CREDENTIALS_FILE"), *home = getenv("HOME"),
               *profile = getenv("AWS_PROFILE");
    char path[PATH_MAX];
    struct mfs_buf text;
    int rc;

    *why = '\0';
    if (mfs_text_format(path, sizeof path, "%s%s",
                        named  ? named
                        : home ? home
                               : "",
                        named ? "" : "/.aws/credentials"))
        return false;
    mfs_buf_init(&text);
    rc = mfs_file_read(path, FILE_MOST, &text);
    if (rc && rc != -ENOENT)
        snprintf(why, n, "%.80s: %s", path, strerror(-rc));
    rc = rc ? rc : mfs_buf_append(&text, "", 1);
    rc = rc ? rc : mfs_aws_key_of_profile(mfs_buf_data(&text), profile ? profile : "default", key);
    mfs_buf_wipe(&text);
    return !rc;
}
