/* The request that makes a whole small file (proto/put.h), which any user may send to a mount: what
 * is taken for one is a name of one file, plain permissions and times, and all of it lies within
 * the request. ctest: timeout=60 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "proto/put.h"

static void check(const struct mfs_put_parsed *p, const char *request, size_t len)
{
    const struct mfs_put_request *r = &p->head;
    size_t name_len = strlen(p->name);

    FUZZ_CHECK(name_len && name_len == r->name_len && !strchr(p->name, '/'));
    FUZZ_CHECK(strcmp(p->name, ".") != 0 && strcmp(p->name, "..") != 0);
    FUZZ_CHECK(!(r->mode & ~01777U) && r->atime_ns < 1000000000 && r->mtime_ns < 1000000000);
    FUZZ_CHECK(!memcmp(request, r, sizeof *r));
    FUZZ_CHECK(!memcmp(request + sizeof *r, p->name, name_len));
    FUZZ_CHECK((const char *)p->content == request + sizeof *r + name_len);
    FUZZ_CHECK(sizeof *r + name_len + p->content_len == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char *request = malloc(n); /* a read past its end is seen */
    struct mfs_put_parsed parsed;
    int rc;

    if (n)
        memcpy(request, p, n);
    rc = mfs_put_parse(request, n, &parsed);
    FUZZ_CHECK(rc == 0 || rc == -EINVAL || rc == -ENAMETOOLONG || rc == -EEXIST);
    if (!rc)
        check(&parsed, request, n);
    free(request);
    return 0;
}
