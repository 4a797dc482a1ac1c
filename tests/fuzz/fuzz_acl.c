/* A directory's default ACL, which any user sets, as new files inherit it: it stays as long as it
 * is and only ever takes permissions away. ctest: timeout=60 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "vfs/names/acl.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fuzz_input in = {p, n};
    mode_t asked = (mode_t)fuzz_u16(&in) & 07777, mode = asked;
    bool needed = false;
    char *acl = fuzz_text(in);
    int rc = mfs_acl_inherit(acl, in.n, &mode, &needed);

    FUZZ_CHECK(rc == 0 || rc == -EINVAL);
    FUZZ_CHECK(!(mode & ~asked));
    FUZZ_CHECK(rc || in.n >= 4);
    free(acl);
    return 0;
}
