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

int mfs_put_parse(const void *request, size_t len, struct mfs_put_parsed *to)
{
    const char *rest = (const char *)request + sizeof to->head;
    int rc;

    if (len < sizeof to->head)
        return -EINVAL;
    memcpy(&to->head, request, sizeof to->head);
    len -= sizeof to->head;
    rc = check_head(&to->head, len);
    if (rc)
        return rc;
    memcpy(to->name, rest, to->head.name_len);
    to->name[to->head.name_len] = '\0';
    to->content = rest + to->head.name_len;
    to->content_len = len - to->head.name_len;
    if (strlen(to->name) < to->head.name_len || strchr(to->name, '/'))
        return -EINVAL;
    return !strcmp(to->name, ".") || !strcmp(to->name, "..") ? -EEXIST : 0;
}
