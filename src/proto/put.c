#include "proto/put.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define NS_END 1000000000U

static int check_head(const struct mfs_put_request *r, size_t rest)
{
    if (r->name_len == 0 || r->name_len > rest || r->atime_ns >= NS_END || r->mtime_ns >= NS_END)
        return -EINVAL;
    if (r->mode & ~(uint32_t)(0777 | S_ISVTX))
        return -EINVAL;
    return r->name_len > NAME_MAX ? -ENAMETOOLONG : 0;
}

int mfs_put_parse(const void *request, size_t len, struct mfs_put_parts *parts)
{
    const char *rest = (const char *)request + sizeof parts->head;
    int rc;

    if (len < sizeof parts->head)
        return -EINVAL;
    memcpy(&parts->head, request, sizeof parts->head);
    len -= sizeof parts->head;
    rc = check_head(&parts->head, len);
    if (rc)
        return rc;
    memcpy(parts->name, rest, parts->head.name_len);
    parts->name[parts->head.name_len] = '\0';
    parts->content = rest + parts->head.name_len;
    parts->content_len = len - parts->head.name_len;
    if (strlen(parts->name) < parts->head.name_len || strchr(parts->name, '/'))
        return -EINVAL;
    return !strcmp(parts->name, ".") || !strcmp(parts->name, "..") ? -EEXIST : 0;
}
